"""Differences between deployments: what to build, move and drop; and re-planning of queries.

Seshadri 2008, section 2.2, assumes that deployments can be modified at run time and covers neither
failures nor re-planning; this module is Braid's own.
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
"""Default lifetime of a plan, in seconds, when its savings are compared with the cost of changing.
"""


@dataclass(frozen=True)
class DeploymentChanges:
    """The steps that turn one deployment into another.

    - ``build``: operators to build, each after those that it reads.
    - ``move``: (operator, source node, target node).
    - ``drop``: (operator, version).
    """

    build: tuple[Operator, ...]
    move: tuple[tuple[int, str, str], ...]
    drop: tuple[tuple[int, int], ...]


def diff_deployments(old: Deployment, new: Deployment) -> DeploymentChanges:
    """Return the steps that turn one deployment into another."""
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
    """Return the queries that one of these operators answers, directly or through others."""
    touched = set(operators)
    for operator in deployment.topological_order():
        if touched.intersection(i for i in operator.inputs if isinstance(i, int)):
            touched.add(operator.id)
    return [name for name, q in deployment.queries.items() if q.operator in touched]


def queries_using_demand(deployment: Deployment, operator: int, bit: int) -> list[str]:
    """Return the queries that one demand of an operator answers, directly or through others."""
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
    """Return the deployment with these queries re-planned, in this order.

    Raises PlanningError if one has no plan.
    """
    queries = [deployment.queries[name] for name in names]
    service = PlanningService(planner, remove_queries(deployment, *(q.name for q in queries)))
    for query in queries:
        service.submit_query(replace(query, operator=-1, bit=0), now, tell=False)
    order = {name: service.deployment.queries[name] for name in deployment.queries}
    return replace(service.deployment, queries=order)


def replan_after_failure(
    planner: Planner, deployment: Deployment, nodes: Collection[str], now: int = 0
) -> Deployment:
    """Return the deployment without the operators at failed nodes.

    The queries that they answer, and those with a broken path, are re-planned by a planner whose
    network lacks the nodes. An operator pinned at another node is kept if the new plans contain the
    same join.
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
    added = new.operators.keys() - deployment.operators.keys()
    for put in deployment.operators.values():
        if put.is_pinned and put.id not in new.operators and put.node not in nodes:
            new = _restore_operator(model, new, put, added)
    return keep_operator_ids(deployment, new)


def _restore_operator(
    model: CostModel, deployment: Deployment, put: Operator, new_operators: Collection[int]
) -> Deployment:
    """Return the deployment with a pinned operator restored at its node.

    One of the ``new_operators`` that computes the same results replaces it there. If there is none,
    or a path to the node is missing, the deployment is unchanged.
    """
    new = (o for o in deployment.operators.values() if o.id in new_operators and not o.is_pinned)
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
    definition = operator.definition
    return definition.streams, definition.joins, {d.definition for d in operator.demands}


def is_worthwhile(
    model: CostModel, old: Deployment, new: Deployment, lasts: float = HORIZON
) -> bool:
    """Return whether a new deployment saves more in ``lasts`` seconds than the change sends.

    The change sends the windows of every operator that is built or moved.
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
    """Yield the bytes in an operator's windows for each of its inputs."""
    longest = min(max(operator.definition.windows) / 1e6, model.rates.longest_window_seconds)
    for flow in deployment.operator_inflows(operator, operator.definition):
        yield model.rates.result_byte_rate(flow.definition) * longest, flow


def keep_operator_ids(old: Deployment, new: Deployment) -> Deployment:
    """Return the new deployment with the ids of old operators that are equal.

    Two operators are equal if they have the same node, inputs and demands.
    """
    alike: dict[tuple[str, tuple[Input, ...]], list[Operator]] = {}
    for o in old.operators.values():
        alike.setdefault((o.node, o.inputs), []).append(o)
    renamed: dict[int, tuple[Operator, dict[int, int]]] = {}
    operators = {id: o for id, o in new.operators.items() if old.operators.get(id) is o}
    for operator in new.topological_order():
        if operator.id in operators and renamed.keys().isdisjoint(operator.inputs):
            continue
        candidate, bits = (
            _rename_inputs(operator, renamed),
            {d.bit: d.bit for d in operator.demands},
        )
        for there in alike.get((candidate.node, candidate.inputs), ()):
            gone = there.id not in new.operators and candidate.id not in old.operators
            free = there.id == candidate.id or (gone and there.id not in operators)
            if free and _is_same_operator(there, candidate):
                bits = {d.bit: _find_demand_bit(there, d) for d in candidate.demands}
                demands = tuple(replace(d, bit=bits[d.bit]) for d in candidate.demands)
                candidate = replace(there, demands=demands, until=operator.until)
                candidate = there if candidate == there else candidate
                break
        renamed[operator.id] = candidate, bits
        operators[candidate.id] = candidate
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
    """Return the operator with the new ids of its inputs."""
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


def _is_same_operator(there: Operator, other: Operator) -> bool:
    place = there.node == other.node and there.inputs == other.inputs
    return (
        place
        and there.definition.joins == other.definition.joins
        and there.definition.columns == other.definition.columns
        and {(d.definition, d.upstream_bits) for d in there.demands}
        == {(d.definition, d.upstream_bits) for d in other.demands}
    )


def _find_demand_bit(there: Operator, demand: Demand) -> int:
    return next(
        d.bit
        for d in there.demands
        if d.definition == demand.definition and d.upstream_bits == demand.upstream_bits
    )
