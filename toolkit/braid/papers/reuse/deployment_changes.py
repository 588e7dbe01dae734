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
    remove_queries,
    with_operator_moved,
)
from braid.papers.reuse.planner import Planner, PlanningService

HORIZON = 3600.0
"""Seconds for which a plan is taken to last when it is weighed against the work of changing."""


@dataclass(frozen=True)
class DeploymentChanges:
    """What must be done: operators to build, each after those that it reads; (operator, from, to)
    to move; (operator, version) to drop.
    """

    build: tuple[Operator, ...]
    move: tuple[tuple[int, str, str], ...]
    drop: tuple[tuple[int, int], ...]


def diff_deployments(old: Deployment, new: Deployment) -> DeploymentChanges:
    """What leads from one deployment to another."""
    before = {(o.id, o.version): o for o in old.operators.values()}
    after = {(o.id, o.version): o for o in new.operators.values()}
    return DeploymentChanges(
        tuple(o for o in new.topological_order() if (o.id, o.version) not in before),
        tuple(
            (key[0], before[key].node, o.node)
            for key, o in after.items()
            if key in before and before[key].node != o.node
        ),
        tuple(sorted(before.keys() - after.keys())),
    )


def queries_reading(deployment: Deployment, operators: Collection[int]) -> list[str]:
    """The queries whose answers come, at some remove, from one of these operators."""
    touched = set(operators)
    for operator in deployment.topological_order():
        if touched.intersection(i for i in operator.inputs if isinstance(i, int)):
            touched.add(operator.id)
    return [name for name, q in deployment.queries.items() if q.operator in touched]


def queries_using_demand(deployment: Deployment, operator: int, bit: int) -> list[str]:
    """The queries whose answers come, at some remove, from one demand of an operator."""
    touched = {(operator, bit)}
    for other in deployment.topological_order():
        for demand in other.demands:
            used = zip(other.inputs, demand.upstream_bits, strict=True)
            if touched.intersection(used):
                touched.add((other.id, demand.bit))
    return [n for n, q in deployment.queries.items() if (q.operator, q.bit) in touched]


def replan_in_order(
    planner: Planner, deployment: Deployment, names: Iterable[str], now: int = 0
) -> Deployment:
    """The deployment with these queries planned anew, in this order. Raises PlanError if one has no
    plan.
    """
    asked = [deployment.queries[name] for name in names]
    service = PlanningService(planner, remove_queries(deployment, *(q.name for q in asked)))
    for query in asked:
        service.submit_query(replace(query, operator=-1, bit=0), now, tell=False)
    order = {name: service.deployment.queries[name] for name in deployment.queries}
    return replace(service.deployment, queries=order)


def replan_after_failure(
    planner: Planner, deployment: Deployment, nodes: Collection[str], now: int = 0
) -> Deployment:
    """The deployment without the operators at these nodes: the queries that they answer, and those
    whose ways are cut, are planned anew by a planner that knows the network without the nodes. What
    somebody has put at another node goes on there if the new plans have the same join.
    """
    model = planner.model
    gone = [o.id for o in deployment.operators.values() if o.node in nodes]
    cut = [
        f
        for f in deployment.all_flows()
        if model.path_latency_seconds(f.source_node, f.target_node) == math.inf
    ]
    gone += [f.consumer for f in cut if isinstance(f.consumer, int)]
    names = dict.fromkeys(queries_reading(deployment, gone))
    names |= dict.fromkeys(f.consumer for f in cut if isinstance(f.consumer, str))
    new = replan_in_order(planner, deployment, names, now)
    made = new.operators.keys() - deployment.operators.keys()
    for put in deployment.operators.values():
        if put.is_pinned and put.id not in new.operators and put.node not in nodes:
            new = _restore_operator(model, new, put, made)
    return keep_operator_ids(deployment, new)


def _restore_operator(
    model: CostModel, deployment: Deployment, put: Operator, made: Collection[int]
) -> Deployment:
    """The deployment with an operator of those ``made`` that makes what another did at that one's
    node, where it stays, if there is one, and paths to there.
    """
    new = (o for o in deployment.operators.values() if o.id in made and not o.is_pinned)
    if (
        id := next(
            (o.id for o in new if _make_output_signature(o) == _make_output_signature(put)), None
        )
    ) is None:
        return deployment
    there = with_operator_moved(deployment, id, put.node, stays=True)
    cut = any(
        model.path_latency_seconds(f.source_node, f.target_node) == math.inf
        for f in there.all_flows()
    )
    return deployment if cut else there


def _make_output_signature(operator: Operator) -> tuple[object, ...]:
    own = operator.definition
    return own.streams, own.joins, {d.definition for d in operator.demands}


def is_worthwhile(
    model: CostModel, old: Deployment, new: Deployment, lasts: float = HORIZON
) -> bool:
    """Whether what a deployment saves while it ``lasts`` (seconds) is more than what the change
    sends: the windows of all that is built, and of all that moves.
    """
    saving = model.cost_saving(old, new)
    if saving <= 1e-9:
        return False
    todo, sent = diff_deployments(old, new), 0.0
    for operator in todo.build:
        for size, flow in _iterate_window_bytes(model, new, operator):
            sent += size * model.path_latency_seconds(flow.source_node, flow.target_node)
    for id, source, target in todo.move:
        for size, _ in _iterate_window_bytes(model, new, new.operators[id]):
            sent += size * model.path_latency_seconds(source, target)
    return saving * lasts > sent


def _iterate_window_bytes(
    model: CostModel, deployment: Deployment, operator: Operator
) -> Iterator[tuple[float, Flow]]:
    """The bytes that an operator's windows hold of each thing that it reads."""
    longest = min(max(operator.definition.windows) / 1e6, model.rates.cache_size)
    for flow in deployment.operator_inflows(operator, operator.definition):
        yield model.rates.result_byte_rate(flow.definition) * longest, flow


def keep_operator_ids(old: Deployment, new: Deployment) -> Deployment:
    """The new deployment with the names of operators that were there: at the same node, of the same
    inputs and demands.
    """
    alike: dict[tuple[str, tuple[Input, ...]], list[Operator]] = {}
    for o in old.operators.values():
        alike.setdefault((o.node, o.inputs), []).append(o)
    renamed: dict[int, tuple[Operator, dict[int, int]]] = {}
    operators = {id: o for id, o in new.operators.items() if old.operators.get(id) is o}
    for operator in new.topological_order():
        if operator.id in operators and renamed.keys().isdisjoint(operator.inputs):
            continue
        mine, bits = _rename_inputs(operator, renamed), {d.bit: d.bit for d in operator.demands}
        for there in alike.get((mine.node, mine.inputs), ()):
            gone = there.id not in new.operators and mine.id not in old.operators
            free = there.id == mine.id or (gone and there.id not in operators)
            if free and _is_same_operator(there, mine):
                bits = {d.bit: _find_demand_bit(there, d) for d in mine.demands}
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


def _rename_inputs(
    operator: Operator, renamed: dict[int, tuple[Operator, dict[int, int]]]
) -> Operator:
    """The operator with the new names of what it reads."""
    inputs: tuple[Input, ...] = tuple(
        renamed[i][0].id if i in renamed and isinstance(i, int) else i for i in operator.inputs
    )
    demands = tuple(
        replace(
            d,
            upstream_bits=tuple(
                renamed[i][1][u] if i in renamed and isinstance(i, int) and u is not None else u
                for i, u in zip(operator.inputs, d.upstream_bits, strict=True)
            ),
        )
        for d in operator.demands
    )
    return replace(operator, inputs=inputs, demands=demands)


def _is_same_operator(there: Operator, mine: Operator) -> bool:
    place = there.node == mine.node and there.inputs == mine.inputs
    return (
        place
        and there.definition.joins == mine.definition.joins
        and there.definition.columns == mine.definition.columns
        and {(d.definition, d.upstream_bits) for d in there.demands}
        == {(d.definition, d.upstream_bits) for d in mine.demands}
    )


def _find_demand_bit(there: Operator, demand: Demand) -> int:
    return next(
        d.bit
        for d in there.demands
        if d.definition == demand.definition and d.upstream_bits == demand.upstream_bits
    )
