"""What is deployed comes to rest: one thing after another is looked at again while queries do not
come.

Source: Seshadri 2008 plans each query as it comes, and finds it too much to plan all anew at each
arrival (section 1). This is ours, and in between: the first queries were planned when there was
little to reuse, and operators that came later may stand in for earlier ones. Nobody knows how long
a plan lasts; who takes it to last as long again as it has waits with a change for as long as it
takes to pay, so that to wait costs no more than to change.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import (
    DeployedQuery,
    Deployment,
    Operator,
    unpin_operators,
    with_operator_moved,
)
from braid.papers.reuse.deployment_changes import (
    HORIZON,
    is_worthwhile,
    keep_operator_ids,
    queries_reading,
    replan_in_order,
)
from braid.papers.reuse.planner import Planner

Item = str | int
"""What is looked at: a query by name, or an operator by id."""
QUERIES = 60
"""An operator that has more queries is not looked at: they would all be planned anew."""


def review_items(model: CostModel, deployment: Deployment) -> list[Item]:
    """What to look at, in this order: operators, those that cost most first, then queries."""

    def cost(id: int) -> float:
        return -model.operator_cost(deployment, deployment.operators[id])

    return [*sorted(deployment.operators, key=cost), *deployment.queries]


def review_item(
    planner: Planner, deployment: Deployment, item: Item, now: int = 0, lasts: float = HORIZON
) -> Deployment:
    """The deployment with a query planned anew; with an operator at its best place, or without it
    and its queries planned anew. As it is where that does not save more than it sends while it
    ``lasts`` (seconds), and where an operator would go that stays.
    """
    model, tried = planner.model, list[Deployment]()
    names = _find_affected_queries(model, deployment, item)
    if 0 < len(names) <= QUERIES:
        tried.append(
            keep_operator_ids(deployment, replan_in_order(planner, deployment, names, now))
        )
    if item in deployment.operators and isinstance(item, int):
        tried.append(place_optimally(model, deployment, item))
    paying = (t for t in tried if is_worthwhile(model, deployment, t, lasts))
    return max(paying, key=partial(model.cost_saving, deployment), default=deployment)


def place_optimally(model: CostModel, deployment: Deployment, operator: int) -> Deployment:
    """The deployment with an operator where it costs least to have all get there and from there."""
    own, network = deployment.operators[operator], model.network
    if own.is_pinned:
        return deployment
    far, cost = network.latency_ms / 1e3, np.where(network.can_host_mask, 0.0, np.inf)
    for flow in deployment.operator_inflows(own, own.definition):
        cost = (
            cost
            + model.rates.result_byte_rate(flow.definition)
            * far[network.find_node_index(flow.source_node)]
        )
    for rate, target in _list_sent_flows(model, deployment, operator):
        cost = cost + rate * far[:, target]
    best = int(cost.argmin())
    if not cost[best] < cost[network.find_node_index(own.node)] - 1e-9:
        return deployment
    return with_operator_moved(deployment, operator, network.nodes[best].name)


def _list_sent_flows(
    model: CostModel, deployment: Deployment, operator: int
) -> Iterator[tuple[float, int]]:
    """What an operator sends: bytes a second, and the node that they go to."""
    place = model.network.find_node_index
    for other in deployment.operators.values():
        if operator in other.inputs:
            for flow in deployment.operator_inflows(other, other.definition):
                if flow.item == operator:
                    yield model.rates.result_byte_rate(flow.definition), place(flow.target_node)
    for asked in deployment.queries.values():
        if asked.operator == operator:
            yield model.rates.result_byte_rate(asked.definition), place(asked.sink)


def _find_affected_queries(model: CostModel, deployment: Deployment, item: Item) -> list[str]:
    """The queries to plan anew; none for an operator that no other can stand in for at a gain, and
    none where one of them is answered by an operator that stays.
    """
    if isinstance(item, str):
        names = [item] if item in deployment.queries else []
    else:
        operator = deployment.operators.get(item)
        gains = operator is not None and _estimate_max_saving(model, deployment, operator) > 0
        names = queries_reading(deployment, [item]) if gains else []
    stay = [o.id for o in deployment.operators.values() if o.is_pinned]
    return names if not stay or set(names).isdisjoint(queries_reading(deployment, stay)) else []


def _estimate_max_saving(model: CostModel, deployment: Deployment, operator: Operator) -> float:
    """What it saves at most to be without an operator: what it costs, less what it costs more if
    all that it sends comes from the nearest other that joins the same.
    """
    streams, joins = operator.definition.streams, operator.definition.joins
    far, place = model.network.latency_ms / 1e3, model.network.find_node_index
    others = [
        place(o.node)
        for o in deployment.operators.values()
        if o is not operator and o.definition.streams == streams and o.definition.joins <= joins
    ]
    if not others:
        return 0.0
    saved, here = model.operator_cost(deployment, operator), place(operator.node)
    for rate, target in _list_sent_flows(model, deployment, operator.id):
        saved -= rate * float(far[np.array(others), target].min() - far[here, target])
    return saved


def review_until_stable(
    planner: Planner, deployment: Deployment, now: int = 0, lasts: float = HORIZON
) -> Deployment:
    """The deployment when all has been looked at again, until nothing changes any more: each change
    saves something, so that comes to an end.
    """
    looks = ReviewQueue()
    while due := looks.due_items(planner.model, deployment):
        for item in due:
            looks.mark_reviewed(item)
            before, deployment = deployment, review_item(planner, deployment, item, now, lasts)
            looks.note_change(before, deployment)
    return deployment


class ReviewQueue:
    """What is to be looked at again: all, and then what has had a change near it since. A change is
    near a query if it is of an operator on streams that the query joins: a plan for it can have no
    other; and near an operator if it is near a query that reads it.
    """

    def __init__(self) -> None:
        self._changes = 0
        self._seen: dict[Item, int] = {}
        self._changed: dict[frozenset[str], int] = {}

    def mark_reviewed(self, item: Item) -> None:
        """It is looked at now."""
        self._seen[item] = self._changes

    def note_change(self, old: Deployment, new: Deployment) -> None:
        """What is deployed is the new one now. A name whose query has gone may be another's."""
        if new is old:
            return
        for name in old.queries.keys() - new.queries.keys():
            self._seen.pop(name, None)
        self._changes += 1
        before, after = old.operators, new.operators
        for id in before.keys() | after.keys():
            was, there = before.get(id), after.get(id)
            if was is not there and (operator := there or was):
                self._changed[frozenset(operator.definition.streams)] = self._changes

    def due_items(self, model: CostModel, deployment: Deployment) -> list[Item]:
        """What to look at, in the order of ``items``."""
        return [i for i in review_items(model, deployment) if self._is_due(deployment, i)]

    def _is_due(self, deployment: Deployment, item: Item) -> bool:
        if item not in self._seen:
            return True
        near = [streams for streams, last in self._changed.items() if last > self._seen[item]]
        names = (
            [item] if isinstance(item, str) else queries_reading(deployment, [item]) if near else []
        )
        joined = {deployment.queries[name].definition.streams for name in names}
        return any(streams.issubset(all_of) for streams in near for all_of in joined)


def best_replan(
    planner: Planner, deployment: Deployment, now: int = 0, seed: int = 0
) -> Deployment:
    """The cheapest of four: all queries planned anew as they came, those of most bytes first, and
    in a random order; and what is deployed, come to rest. Operators that come out as they are stay,
    but none is kept where somebody has put it.
    """
    free = unpin_operators(deployment)
    tried = [
        keep_operator_ids(free, replan_in_order(planner, free, order, now))
        for order in _list_planning_orders(planner.model, list(free.queries.values()), seed)
    ]
    rests = review_until_stable(planner, free, now)
    return min([deployment, *tried, rests], key=planner.model.total_cost)


def _list_planning_orders(
    model: CostModel, asked: Sequence[DeployedQuery], seed: int
) -> Iterator[list[str]]:
    names = [q.name for q in asked]
    yield names
    yield [q.name for q in sorted(asked, key=lambda q: -model.rates.result_byte_rate(q.definition))]
    yield random.Random(seed).sample(names, len(names))
