"""Background re-optimization: re-plan one query or operator at a time until nothing saves more.

Seshadri 2008 plans each query when it arrives, and considers re-planning everything at each arrival
too expensive (section 1). This module, Braid's own, is in between: the first queries were planned
when there was little to reuse, and later operators may replace earlier ones. The lifetime of a plan
is unknown. Assuming that it lasts as long again as it has lasted, the caller delays a change until
the savings pay for it, so that waiting costs no more than changing.
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
"""An item to review: a query by name, or an operator by id."""
QUERIES = 60
"""Maximum number of queries of an operator under review: all of them would be re-planned."""


def review_items(model: CostModel, deployment: Deployment) -> list[Item]:
    """Return the items in review order: operators, most expensive first, then queries."""

    def cost(id: int) -> float:
        return -model.operator_cost(deployment, deployment.operators[id])

    return [*sorted(deployment.operators, key=cost), *deployment.queries]


def review_item(
    planner: Planner, deployment: Deployment, item: Item, now: int = 0, lasts: float = HORIZON
) -> Deployment:
    """Return the deployment after the review of one item.

    A query is re-planned. An operator is moved to its best node, or removed and its queries
    re-planned. The deployment is unchanged if that does not save, in ``lasts`` seconds, more than
    it sends, or if it would move or remove a pinned operator.
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
    """Return the deployment with an operator at the node where its flows cost least."""
    moved, network = deployment.operators[operator], model.network
    if moved.is_pinned:
        return deployment
    far, cost = network.latency_ms / 1e3, np.where(network.hosting_mask, 0.0, np.inf)
    for flow in deployment.operator_inflows(moved, moved.definition):
        cost = (
            cost
            + model.rates.result_byte_rate(flow.definition)
            * far[network.find_node_index(flow.source_node)]
        )
    for rate, target in _list_sent_flows(model, deployment, operator):
        cost = cost + rate * far[:, target]
    best = int(cost.argmin())
    if not cost[best] < cost[network.find_node_index(moved.node)] - 1e-9:
        return deployment
    return with_operator_moved(deployment, operator, network.nodes[best].name)


def _list_sent_flows(
    model: CostModel, deployment: Deployment, operator: int
) -> Iterator[tuple[float, int]]:
    """Yield the bytes a second that an operator sends, with the index of the target node."""
    place = model.network.find_node_index
    for other in deployment.operators.values():
        if operator in other.inputs:
            for flow in deployment.operator_inflows(other, other.definition):
                if flow.item == operator:
                    yield model.rates.result_byte_rate(flow.definition), place(flow.target_node)
    for query in deployment.queries.values():
        if query.operator == operator:
            yield model.rates.result_byte_rate(query.definition), place(query.sink)


def _find_affected_queries(model: CostModel, deployment: Deployment, item: Item) -> list[str]:
    """Return the queries to re-plan for an item.

    The list is empty if no other operator can replace this one at a gain, or if a pinned operator
    answers one of the queries.
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
    """Return an upper bound of the saving from removing an operator.

    It is the operator's cost, minus the extra cost if the nearest other operator with the same join
    sends its results.
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
    """Return the deployment after reviews of all items, repeated until nothing changes.

    Each change saves something, so this ends.
    """
    looks = ReviewQueue()
    while due := looks.due_items(planner.model, deployment):
        for item in due:
            looks.mark_reviewed(item)
            before, deployment = deployment, review_item(planner, deployment, item, now, lasts)
            looks.note_change(before, deployment)
    return deployment


class ReviewQueue:
    """The items that are due for review: first all, then those affected by changes.

    A change to an operator affects a query if the query joins all streams of that operator, since
    only then can its plan differ. It affects an operator if it affects a query that reads it.
    """

    def __init__(self) -> None:
        self._changes = 0
        self._seen: dict[Item, int] = {}
        self._changed: dict[frozenset[str], int] = {}

    def mark_reviewed(self, item: Item) -> None:
        """Record that an item is being reviewed."""
        self._seen[item] = self._changes

    def note_change(self, old: Deployment, new: Deployment) -> None:
        """Record a new deployment. A removed query is forgotten: its name may be used again."""
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
        """Return the due items, in the order of ``review_items``."""
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
    """Return the cheapest deployment of five: the current one and four alternatives.

    Three alternatives re-plan all queries: in order of arrival, most bytes first, and in random
    order. The fourth is the current one after reviews. Alternatives ignore pins and keep the ids of
    unchanged operators.
    """
    free = unpin_operators(deployment)
    tried = [
        keep_operator_ids(free, replan_in_order(planner, free, order, now))
        for order in _list_planning_orders(planner.model, list(free.queries.values()), seed)
    ]
    rests = review_until_stable(planner, free, now)
    return min([deployment, *tried, rests], key=planner.model.total_cost)


def _list_planning_orders(
    model: CostModel, queries: Sequence[DeployedQuery], seed: int
) -> Iterator[list[str]]:
    names = [q.name for q in queries]
    yield names
    yield [
        q.name for q in sorted(queries, key=lambda q: -model.rates.result_byte_rate(q.definition))
    ]
    yield random.Random(seed).sample(names, len(names))
