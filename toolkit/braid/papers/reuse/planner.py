"""The exact planner: join order, placement and reuse of one query, in one dynamic program.

Seshadri 2008, section 2.2, names the objective and the parts of a planner and gives no algorithm.
This one is Braid's own: it finds, for each set of streams and each node, the least cost of having
that part of the query there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np

from braid.errors import PlanningError
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import (
    DeployedQuery,
    Deployment,
    NewOperator,
    Operator,
    ReusedOperator,
    StreamLeaf,
    Tree,
    add_query,
    remove_queries,
)
from braid.papers.reuse.network import Network
from braid.papers.reuse.plan_search import PlanLeaf, PlanTable, ReuseCandidate
from braid.papers.reuse.query_definition import INNER, Definition
from braid.papers.reuse.reuse_lattice import ALL, ReuseLattice

Reuse = Literal["relaxed", "contained", "exact", "always", "separate"]
"""The kinds of operators that a planner may reuse.

"relaxed": operators that can be relaxed; "contained": those that contain the query; "exact":
those that equal it; "always": every operator that meets the base conditions, at any cost;
"separate": none.
"""
REUSES: tuple[Reuse, ...] = get_args(Reuse)
MOST_STREAMS = 8
"""Maximum number of streams in a query: there are 3^streams ways to split it in two."""


@dataclass(frozen=True)
class Alternative:
    """An option for the whole query that was not chosen.

    ``extra_cost`` is what it would have added; ``rejection`` says why it was not possible.
    """

    description: str
    extra_cost: float = math.inf
    rejection: str = ""


@dataclass(frozen=True)
class Decision:
    """A plan for a query, with the cost that it adds, modelled."""

    tree: Tree
    cost: float
    alternatives: tuple[Alternative, ...] = ()

    @property
    def reused_operators(self) -> tuple[int, ...]:
        """The ids of the reused operators."""
        return tuple(_iterate_reused_operators(self.tree))


def _iterate_reused_operators(tree: Tree) -> Iterator[int]:
    if isinstance(tree, ReusedOperator):
        yield tree.operator
    elif isinstance(tree, NewOperator):
        for read in tree.inputs:
            yield from _iterate_reused_operators(read)


class Planner:
    """A planner that adds one query at a time to a deployment.

    Parameters
    ----------
    model
        Network, rates and costs.
    reuse
        What may be reused. Default: "relaxed".
    fuse
        Merge new operators of one query on one node into an operator of more streams.
    parts
        Reuse operators for a part of a query too, not only for the whole query.
    """

    def __init__(
        self, model: CostModel, reuse: Reuse = "relaxed", fuse: bool = False, parts: bool = True
    ) -> None:
        self.model, self.reuse, self.fuse, self.parts = model, reuse, fuse, parts
        self.lattice = ReuseLattice()
        self.deployment: Deployment | None = None

    @property
    def network(self) -> Network:
        """The network of the cost model."""
        return self.model.network

    def sync_lattice(self, deployment: Deployment) -> None:
        """Update the lattice to a deployment: insert and remove what differs from the last one."""
        if deployment is self.deployment:
            return
        old = _select_inner_operators(self.deployment) if self.deployment else {}
        new = _select_inner_operators(deployment)
        for id in old.keys() - new.keys():
            self.lattice.remove_entry(id)
        for id, operator in new.items():
            there = old.get(id)
            if there is not operator and there != operator:
                self.lattice.insert_entry(
                    operator.lattice_entry(self.network.location_indicator([operator.node]))
                )
        self.deployment = deployment

    def plan_query(
        self,
        deployment: Deployment,
        query: DeployedQuery,
        now: int = 0,
        regions: int = ALL,
        tell: bool = True,
    ) -> Decision:
        """Return the cheapest plan for one more query.

        ``regions`` (bits) restrict where operators may be reused. With ``tell``, the costs of all
        alternatives are computed; otherwise the search drops an alternative once it costs more.

        Raises PlanningError if there is no plan.
        """
        wanted = query.definition
        if len(wanted.streams) > MOST_STREAMS:
            raise PlanningError(
                f"query {query.name!r} joins {len(wanted.streams)} streams; at most {MOST_STREAMS} "
                "can be planned"
            )
        self.sync_lattice(deployment)
        sink = self.network.find_node_index(query.sink)
        plans = self._make_plan_table(deployment, query, now, regions, tell)
        cost = plans.min_cost(sink)
        if not math.isfinite(cost):
            raise PlanningError(_explain_missing_plan(self.network, deployment, query))
        tree = plans.best_tree(sink)
        tree = fuse_operators(tree) if self.fuse else tree
        considered = tuple(self._list_alternatives(plans, sink)) if tell else ()
        return Decision(tree, cost, considered)

    def _make_plan_table(
        self, deployment: Deployment, query: DeployedQuery, now: int, regions: int, tell: bool
    ) -> PlanTable:
        wanted, network = query.definition, self.network
        leaves = [
            PlanLeaf(
                frozenset([s]), network.find_node_index(deployment.source_node(s)), StreamLeaf(s)
            )
            for s in wanted.streams
        ]

        def candidates(part: Definition) -> Iterator[ReuseCandidate]:
            if self.reuse == "separate" or not (self.parts or part is wanted):
                return
            if part.kind != INNER:
                yield from _list_equal_operators(deployment, part, network)
                return
            masks = self.model.rates.sample_masks(part)
            overlaps = self.reuse in ("relaxed", "always")
            for offer, serves in self.lattice.find_reusable_operators(part, regions, overlaps):
                operator = deployment.operators[offer.id]
                if not self._may_reuse(deployment, operator, part, serves):
                    continue
                node, price = network.node_index[operator.node], 0.0
                if self.reuse != "always":
                    price = self.model.lifetime_extension_cost(
                        deployment, operator, now, query.ends_at
                    )
                if serves or self.reuse != "relaxed":
                    yield ReuseCandidate(operator.id, node, price, partial(_ignore_limit, price))
                    continue
                least = self.model.relaxed_cost_bound(deployment, operator, masks)
                more = partial(self.model.relaxed_cost, deployment, operator, part, masks, price)
                yield ReuseCandidate(operator.id, node, price + least, more)

        forced = self.reuse == "always"
        sink = network.find_node_index(query.sink)
        working = network.hosting_mask
        return PlanTable(self.model, wanted, leaves, working, candidates, forced, sink, tell)

    def _may_reuse(
        self, deployment: Deployment, operator: Operator, part: Definition, serves: bool
    ) -> bool:
        if self.reuse == "exact":
            return any(d.definition == part for d in operator.demands)
        return serves or deployment.can_relax(operator, part)

    def _list_alternatives(self, plans: PlanTable, sink: int) -> Iterator[Alternative]:
        all_leaves = plans.all_leaves
        carried = (
            plans.far[:, sink]
            * plans.tuples[all_leaves]
            * self.model.rates.result_width(plans.wanted)
        )
        new = [cost for cost, way in plans.ways[all_leaves] if isinstance(way, tuple)]
        if new:
            costs = np.min(new, axis=0) + carried
            node = int(costs.argmin())
            yield Alternative(f"a new join at {self.network.nodes[node].name}", float(costs[node]))
        for cost, way in plans.ways[all_leaves]:
            for node, operator in way.items() if isinstance(way, dict) else ():
                description = f"operator {operator} at {self.network.nodes[node].name}"
                yield Alternative(description, float(cost[node] + carried[node]))


def _select_inner_operators(deployment: Deployment) -> dict[int, Operator]:
    """Return the operators that other definitions can be answered from."""
    return {id: o for id, o in deployment.operators.items() if o.definition.kind == INNER}


def _list_equal_operators(
    deployment: Deployment, wanted: Definition, network: Network
) -> Iterator[ReuseCandidate]:
    """Yield the operators with exactly this definition, for a join that is not inner."""
    for operator in deployment.operators.values():
        if operator.serving_demand(wanted) is not None:
            node = network.node_index[operator.node]
            yield ReuseCandidate(operator.id, node, 0.0, partial(_ignore_limit, 0.0))


def _ignore_limit(price: float, limit: float) -> float:
    return price


def fuse_operators(tree: Tree) -> Tree:
    """Return the plan with new operators merged into their consumers on the same node."""
    if not isinstance(tree, NewOperator):
        return tree
    inputs: list[Tree] = []
    for read in map(fuse_operators, tree.inputs):
        same = isinstance(read, NewOperator) and read.node == tree.node
        inputs += read.inputs if same and isinstance(read, NewOperator) else [read]
    return replace(tree, inputs=tuple(inputs))


def _explain_missing_plan(network: Network, deployment: Deployment, query: DeployedQuery) -> str:
    far, sink = network.latency_ms, network.find_node_index(query.sink)
    for stream in query.definition.streams:
        source = deployment.source_node(stream)
        if not np.isfinite(far[network.find_node_index(source), sink]):
            return f"there is no path from {source}, where {stream} comes from, to {query.sink}"
    return f"no node that is up can do what query {query.name!r} asks for"


class PlanningService:
    """The planner node of section 2.2: it plans and deploys queries as they come and go."""

    def __init__(self, planner: Planner, deployment: Deployment) -> None:
        self.planner, self.deployment = planner, deployment

    def submit_query(self, query: DeployedQuery, now: int = 0, tell: bool = True) -> Decision:
        """Deploy a query. Return the decision."""
        decision = self.planner.plan_query(self.deployment, query, now, tell=tell)
        self.deployment = add_query(self.deployment, query, decision.tree)
        return decision

    def withdraw_query(self, name: str) -> None:
        """Remove a query."""
        self.deployment = remove_queries(self.deployment, name)
