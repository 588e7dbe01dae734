"""From one deployment to the next: what must be built, moved and dropped; and deployments in which
some queries are planned anew.

Source: Seshadri 2008, section 2.2, takes modification at run time for given, and says nothing of
failures or of planning anew; this is ours.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import (
    Demand,
    Deployment,
    Flow,
    Input,
    Operator,
    moved,
    withdrawn,
)
from braid.papers.reuse.planner import Planner, Service

HORIZON = 3600.0
"""Seconds for which a plan is taken to last when it is weighed against the work of changing."""


@dataclass(frozen=True)
class Changes:
    """What must be done: operators to build, each after those that it reads; (operator, from, to)
    to move; (operator, version) to drop.
    """

    build: tuple[Operator, ...]
    move: tuple[tuple[int, str, str], ...]
    drop: tuple[tuple[int, int], ...]


def changes(old: Deployment, new: Deployment) -> Changes:
    """What leads from one deployment to another."""
    before = {(o.id, o.version): o for o in old.operators.values()}
    after = {(o.id, o.version): o for o in new.operators.values()}
    return Changes(
        tuple(o for o in new.upstream() if (o.id, o.version) not in before),
        tuple(
            (key[0], before[key].node, o.node)
            for key, o in after.items()
            if key in before and before[key].node != o.node
        ),
        tuple(sorted(before.keys() - after.keys())),
    )


def reading(deployment: Deployment, operators: Collection[int]) -> list[str]:
    """The queries whose answers come, at some remove, from one of these operators."""
    touched = set(operators)
    for operator in deployment.upstream():
        if touched.intersection(i for i in operator.inputs if isinstance(i, int)):
            touched.add(operator.id)
    return [name for name, q in deployment.queries.items() if q.operator in touched]


def using(deployment: Deployment, operator: int, bit: int) -> list[str]:
    """The queries whose answers come, at some remove, from one demand of an operator."""
    touched = {(operator, bit)}
    for other in deployment.upstream():
        for demand in other.demands:
            used = zip(other.inputs, demand.uses, strict=True)
            if touched.intersection(used):
                touched.add((other.id, demand.bit))
    return [n for n, q in deployment.queries.items() if (q.operator, q.bit) in touched]


def planned(
    planner: Planner, deployment: Deployment, names: Iterable[str], now: int = 0
) -> Deployment:
    """The deployment with these queries planned anew, in this order. Raises PlanError if one has no
    plan.
    """
    asked = [deployment.queries[name] for name in names]
    service = Service(planner, withdrawn(deployment, *(q.name for q in asked)))
    for query in asked:
        service.submit(replace(query, operator=-1, bit=0), now, tell=False)
    order = {name: service.deployment.queries[name] for name in deployment.queries}
    return replace(service.deployment, queries=order)


def failed(
    planner: Planner, deployment: Deployment, nodes: Collection[str], now: int = 0
) -> Deployment:
    """The deployment without the operators at these nodes: the queries that they answer, and those
    whose ways are cut, are planned anew by a planner that knows the network without the nodes. What
    somebody has put at another node goes on there if the new plans have the same join.
    """
    model = planner.model
    gone = [o.id for o in deployment.operators.values() if o.node in nodes]
    cut = [f for f in deployment.flows() if model.latency(f.source, f.target) == math.inf]
    gone += [f.to for f in cut if isinstance(f.to, int)]
    names = dict.fromkeys(reading(deployment, gone))
    names |= dict.fromkeys(f.to for f in cut if isinstance(f.to, str))
    new = planned(planner, deployment, names, now)
    made = new.operators.keys() - deployment.operators.keys()
    for put in deployment.operators.values():
        if put.stays and put.id not in new.operators and put.node not in nodes:
            new = _put_back(model, new, put, made)
    return kept(deployment, new)


def _put_back(
    model: CostModel, deployment: Deployment, put: Operator, made: Collection[int]
) -> Deployment:
    """The deployment with an operator of those ``made`` that makes what another did at that one's
    node, where it stays, if there is one, and paths to there.
    """
    new = (o for o in deployment.operators.values() if o.id in made and not o.stays)
    if (id := next((o.id for o in new if _makes(o) == _makes(put)), None)) is None:
        return deployment
    there = moved(deployment, id, put.node, stays=True)
    cut = any(model.latency(f.source, f.target) == math.inf for f in there.flows())
    return deployment if cut else there


def _makes(operator: Operator) -> tuple[object, ...]:
    own = operator.definition
    return own.streams, own.joins, {d.definition for d in operator.demands}


def worth(model: CostModel, old: Deployment, new: Deployment, lasts: float = HORIZON) -> bool:
    """Whether what a deployment saves while it ``lasts`` (seconds) is more than what the change
    sends: the windows of all that is built, and of all that moves.
    """
    saving = model.saving(old, new)
    if saving <= 1e-9:
        return False
    todo, sent = changes(old, new), 0.0
    for operator in todo.build:
        for size, flow in _held(model, new, operator):
            sent += size * model.latency(flow.source, flow.target)
    for id, source, target in todo.move:
        for size, _ in _held(model, new, new.operators[id]):
            sent += size * model.latency(source, target)
    return saving * lasts > sent


def _held(
    model: CostModel, deployment: Deployment, operator: Operator
) -> Iterator[tuple[float, Flow]]:
    """The bytes that an operator's windows hold of each thing that it reads."""
    longest = min(max(operator.definition.windows) / 1e6, model.rates.most)
    for flow in deployment.inflows(operator, operator.definition):
        yield model.rates.bytes(flow.definition) * longest, flow


def kept(old: Deployment, new: Deployment) -> Deployment:
    """The new deployment with the names of operators that were there: at the same node, of the same
    inputs and demands.
    """
    alike: dict[tuple[str, tuple[Input, ...]], list[Operator]] = {}
    for o in old.operators.values():
        alike.setdefault((o.node, o.inputs), []).append(o)
    renamed: dict[int, tuple[Operator, dict[int, int]]] = {}
    operators = {id: o for id, o in new.operators.items() if old.operators.get(id) is o}
    for operator in new.upstream():
        if operator.id in operators and renamed.keys().isdisjoint(operator.inputs):
            continue
        mine, bits = _renamed(operator, renamed), {d.bit: d.bit for d in operator.demands}
        for there in alike.get((mine.node, mine.inputs), ()):
            gone = there.id not in new.operators and mine.id not in old.operators
            free = there.id == mine.id or (gone and there.id not in operators)
            if free and _same(there, mine):
                bits = {d.bit: _bit(there, d) for d in mine.demands}
                demands = tuple(replace(d, bit=bits[d.bit]) for d in mine.demands)
                mine = replace(there, demands=demands, until=operator.until)
                mine = there if mine == there else mine
                break
        renamed[operator.id] = mine, bits
        operators[mine.id] = mine
    queries = {
        name: replace(q, operator=renamed[q.operator][0].id, bit=renamed[q.operator][1][q.bit])
        if q.operator in renamed
        else q
        for name, q in new.queries.items()
    }
    return replace(new, operators=operators, queries=queries)


def _renamed(operator: Operator, renamed: dict[int, tuple[Operator, dict[int, int]]]) -> Operator:
    """The operator with the new names of what it reads."""
    inputs: tuple[Input, ...] = tuple(
        renamed[i][0].id if i in renamed and isinstance(i, int) else i for i in operator.inputs
    )
    demands = tuple(
        replace(
            d,
            uses=tuple(
                renamed[i][1][u] if i in renamed and isinstance(i, int) and u is not None else u
                for i, u in zip(operator.inputs, d.uses, strict=True)
            ),
        )
        for d in operator.demands
    )
    return replace(operator, inputs=inputs, demands=demands)


def _same(there: Operator, mine: Operator) -> bool:
    place = there.node == mine.node and there.inputs == mine.inputs
    return (
        place
        and there.definition.joins == mine.definition.joins
        and there.definition.columns == mine.definition.columns
        and {(d.definition, d.uses) for d in there.demands}
        == {(d.definition, d.uses) for d in mine.demands}
    )


def _bit(there: Operator, demand: Demand) -> int:
    return next(
        d.bit for d in there.demands if d.definition == demand.definition and d.uses == demand.uses
    )
