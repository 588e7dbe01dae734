"""The exact planner: join order, placement and reuse of one query, in one dynamic program.

Source: Seshadri 2008, section 2.2, names the objective and the parts of a planner and gives no
algorithm. This one is ours: over sets of streams and nodes, the least cost to have a part of the
query there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np

from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.definition import Definition
from braid.papers.reuse.deployment import (
    Asked,
    Deployment,
    New,
    Operator,
    Reused,
    Source,
    Tree,
    submitted,
    withdrawn,
)
from braid.papers.reuse.lattice import ALL, ReuseLattice
from braid.papers.reuse.network import Floats, Network, Truths

Reuse = Literal["relaxed", "contained", "exact", "always", "separate"]
"""What may be reused: what can be relaxed, what holds the query, what is the same, whatever meets
the base conditions whatever it costs, nothing.
"""
REUSES: tuple[Reuse, ...] = get_args(Reuse)
MOST_STREAMS = 8
"""A query of more streams is refused: there are 3^streams ways to cut it in two."""


@dataclass(frozen=True)
class Considered:
    """What could have been done for the whole query, and what it would have cost more; ``why`` says
    why it could not be done.
    """

    what: str
    cost: float = math.inf
    why: str = ""


@dataclass(frozen=True)
class Decision:
    """A plan for a query and what it adds to the cost, modelled."""

    tree: Tree
    cost: float
    considered: tuple[Considered, ...] = ()

    @property
    def reused(self) -> tuple[int, ...]:
        """The operators that are reused."""
        return tuple(_reused(self.tree))


def _reused(tree: Tree) -> Iterator[int]:
    if isinstance(tree, Reused):
        yield tree.operator
    elif isinstance(tree, New):
        for read in tree.inputs:
            yield from _reused(read)


@dataclass(frozen=True)
class Leaf:
    """What a plan starts from: streams that are at a node, and how they came there."""

    streams: frozenset[str]
    node: int
    tree: Tree


class PlanError(ValueError):
    """There is no plan; the message says why."""


@dataclass(frozen=True)
class Candidate:
    """An operator that can be had for a part: where it is, what it costs more at ``least``, and
    what exactly, which takes longer to say; from a limit on, no less than that will do.
    """

    operator: int
    node: int
    least: float
    price: Callable[[float], float]


Candidates = Callable[[Definition], Iterator[Candidate]]
"""The operators that can be had for a part."""

Way = Tree | tuple[int, int] | dict[int, int]
"""How a part is made: a leaf, a join of two parts (as bits of leaves), or by node an operator."""


class Plans:
    """The least costs of the parts of one query, by set of leaves and by node: the table of the
    dynamic program.

    ``allowed`` are the nodes where operators may be put, by node. With ``forced`` nothing new is
    made where something can be reused. With a ``sink`` only costs there are asked for of the whole;
    with ``tell`` all that could be reused for the whole is there with its cost.
    """

    def __init__(
        self,
        model: CostModel,
        wanted: Definition,
        leaves: Sequence[Leaf],
        allowed: Truths,
        candidates: Candidates | None = None,
        forced: bool = False,
        sink: int | None = None,
        tell: bool = False,
    ) -> None:
        self.model, self.wanted, self.leaves = model, wanted, leaves
        self.far = model.network.latency / 1e3
        self.barred = np.where(allowed, 0.0, np.inf)
        self.candidates, self.forced, self.sink, self.tell = candidates, forced, sink, tell
        self.whole = (1 << len(leaves)) - 1
        self.parts: dict[int, Definition] = {}
        self.made: dict[int, Floats] = {}
        self.there: dict[int, Floats] = {}
        self.ways: dict[int, list[tuple[Floats, Way]]] = {}
        self.tuples: dict[int, float] = {}
        self.links = self._links()
        for mask in range(1, 1 << len(leaves)):
            if self._connected(mask):
                self._solve(mask)

    def _links(self) -> set[int]:
        """What each join links, as bits of leaves."""
        found = set()
        for join in self.wanted.joins:
            touched = (bool(leaf.streams & join.streams) << i for i, leaf in enumerate(self.leaves))
            found.add(sum(touched))
        return found

    def _connected(self, mask: int) -> bool:
        """Whether joins link these leaves."""
        inside = [link for link in self.links if link | mask == mask]
        reached, before = mask & -mask, 0
        while reached != before:
            before = reached
            for link in inside:
                if link & reached:
                    reached |= link
        return reached == mask

    def _solve(self, mask: int) -> None:
        chosen = [leaf for i, leaf in enumerate(self.leaves) if mask >> i & 1]
        part = self.wanted.part(frozenset().union(*(leaf.streams for leaf in chosen)))
        self.parts[mask] = part
        self.tuples[mask] = self.model.rates.tuples(part)
        ways = self._leaf(chosen[0]) if len(chosen) == 1 else self._joined(mask, part)
        self.ways[mask] = ways
        self.made[mask] = np.min([cost for cost, _ in ways], axis=0)
        rate = self.tuples[mask] * self.model.rates.width(part)
        # A path that is not there stays inf: rates are above 0.
        if len(chosen) == 1:
            self.there[mask] = self.far[chosen[0].node] * rate
        elif self.sink is not None and mask == self.whole:
            at = self.sink
            self.there[mask] = np.full(len(self.far), np.inf)
            self.there[mask][at] = (self.made[mask] + self.far[at] * rate).min()
        else:
            self.there[mask] = (self.made[mask] + self.far * rate).min(axis=1)

    def _leaf(self, leaf: Leaf) -> list[tuple[Floats, Way]]:
        cost = np.full(len(self.far), np.inf)
        cost[leaf.node] = 0.0
        return [(cost, leaf.tree)]

    def _joined(self, mask: int, part: Definition) -> list[tuple[Floats, Way]]:
        new = list(self._new(mask))
        made = np.min([cost for cost, _ in new], axis=0)
        reused = list(self._reusing(mask, part, made)) if self.candidates else []
        return reused if self.forced and reused else [*new, *reused]

    def _new(self, mask: int) -> Iterator[tuple[Floats, Way]]:
        lowest = mask & -mask
        first = (mask - 1) & mask
        while first:
            second = mask ^ first
            if first & lowest and first in self.there and second in self.there:
                work = self.tuples[first] + self.tuples[second] + self.tuples[mask]
                cost = self.there[first] + self.there[second] + self.barred
                yield cost + self.model.kappa * work, (first, second)
            first = (first - 1) & mask

    def _reusing(self, mask: int, part: Definition, made: Floats) -> Iterator[tuple[Floats, Way]]:
        """The cheapest operator at each node. One that costs as much as to have the part brought
        there from elsewhere is not looked at any further, unless all is to be told; nor, for all of
        the query, one that costs as much with the way to the sink.
        """
        assert self.candidates is not None
        found = sorted(self.candidates(part), key=lambda c: c.least)
        if not found:
            return
        rate = self.tuples[mask] * self.model.rates.width(part)
        every = mask == self.whole and (self.tell or self.forced or self.sink is None)
        bound, best = self._bound(mask, made, rate), dict[int, tuple[float, int]]()
        for c in found:
            limit = math.inf if every else float(bound[c.node])
            if c.least < limit and (cost := c.price(limit)) < limit:
                best[c.node] = min(best.get(c.node, (math.inf, -1)), (cost, c.operator))
                bound = bound if every else np.minimum(bound, cost + self._way(mask, c.node, rate))
        if best:
            costs = np.full(len(self.far), np.inf)
            costs[list(best)] = [cost for cost, _ in best.values()]
            yield costs, {node: operator for node, (_, operator) in best.items()}

    def _bound(self, mask: int, made: Floats, rate: float) -> Floats:
        """By node, what a part may cost there at most to be of use, if it can be had at these costs
        already: of all of the query at the sink, of others anywhere.
        """
        if mask != self.whole or self.sink is None:
            there: Floats = (made + self.far * rate).min(axis=1)
            return there
        away: Floats = self.far[:, self.sink] * rate
        bound: Floats = np.where(np.isfinite(away), (made + away).min(), -np.inf) - away
        return bound

    def _way(self, mask: int, node: int, rate: float) -> Floats:
        """By node, what a part that is at another may cost there at most to be of use, less what it
        costs where it is.
        """
        if mask != self.whole or self.sink is None:
            there: Floats = self.far[node] * rate
            return there
        away: Floats = self.far[:, self.sink] * rate
        bound: Floats = np.where(np.isfinite(away), away[node], -np.inf) - away
        return bound

    def cost(self, sink: int) -> float:
        """The least cost to have all at a node."""
        return float(self.there[self.whole][sink])

    def tree(self, sink: int) -> Tree:
        """The plan of the least cost."""
        return self._at(self.whole, sink)

    def _at(self, mask: int, target: int) -> Tree:
        """The plan that has a part at a node."""
        rate = self.tuples[mask] * self.model.rates.width(self.parts[mask])
        node = int((self.made[mask] + self.far[:, target] * rate).argmin())
        _, way = min(self.ways[mask], key=lambda w: float(w[0][node]))
        if isinstance(way, dict):
            return Reused(way[node], self.model.network.nodes[node].name)
        if not isinstance(way, tuple):
            return way
        inputs = tuple(self._at(m, node) for m in way)
        return New(self.parts[mask].streams, self.model.network.nodes[node].name, inputs)


class Planner:
    """Plans queries one by one on what is deployed.

    Parameters
    ----------
    model
        Network, rates and costs.
    reuse
        What may be reused.
    fuse
        New operators of one query that are on one node become one of more streams.
    parts
        Whether operators for a part of a query may be reused, or only those for all of it.
    """

    def __init__(
        self, model: CostModel, reuse: Reuse = "relaxed", fuse: bool = False, parts: bool = True
    ) -> None:
        self.model, self.reuse, self.fuse, self.parts = model, reuse, fuse, parts
        self.lattice = ReuseLattice()
        self.deployment: Deployment | None = None

    @property
    def network(self) -> Network:
        """The network that is planned on."""
        return self.model.network

    def know(self, deployment: Deployment) -> None:
        """Bring the lattice up to a deployment: what differs from the last one is put in or taken
        out.
        """
        if deployment is self.deployment:
            return
        old = self.deployment.operators if self.deployment else {}
        for id in old.keys() - deployment.operators.keys():
            self.lattice.remove(id)
        for id, operator in deployment.operators.items():
            there = old.get(id)
            if there is not operator and there != operator:
                self.lattice.insert(operator.offer(self.network.nid([operator.node])))
        self.deployment = deployment

    def plan(
        self,
        deployment: Deployment,
        asked: Asked,
        now: int = 0,
        regions: int = ALL,
        tell: bool = True,
    ) -> Decision:
        """The cheapest plan for one more query. ``regions`` (bits) are where operators may be
        reused. Unless it is to ``tell`` what else could be done, what costs more is not reckoned to
        the end. Raises PlanError if there is none.
        """
        wanted = asked.definition
        if len(wanted.streams) > MOST_STREAMS:
            raise PlanError(
                f"query {asked.name!r} joins {len(wanted.streams)} streams; at most {MOST_STREAMS} "
                "can be planned"
            )
        self.know(deployment)
        sink = self.network.place(asked.sink)
        plans = self._table(deployment, asked, now, regions, tell)
        cost = plans.cost(sink)
        if not math.isfinite(cost):
            raise PlanError(_unreachable(self.network, deployment, asked))
        tree = plans.tree(sink)
        tree = fused(tree) if self.fuse else tree
        considered = tuple(self._considered(plans, sink)) if tell else ()
        return Decision(tree, cost, considered)

    def _table(
        self, deployment: Deployment, asked: Asked, now: int, regions: int, tell: bool
    ) -> Plans:
        wanted, network = asked.definition, self.network
        leaves = [
            Leaf(frozenset([s]), network.place(deployment.source(s)), Source(s))
            for s in wanted.streams
        ]

        def candidates(part: Definition) -> Iterator[Candidate]:
            if self.reuse == "separate" or not (self.parts or part is wanted):
                return
            masks = self.model.rates.masks(part)
            overlaps = self.reuse in ("relaxed", "always")
            for offer, serves in self.lattice.search(part, regions, overlaps):
                operator = deployment.operators[offer.id]
                if not self._may(deployment, operator, part, serves):
                    continue
                node, price = network.index[operator.node], 0.0
                if self.reuse != "always":
                    price = self.model.prolonging(deployment, operator, now, asked.until)
                if serves or self.reuse != "relaxed":
                    yield Candidate(operator.id, node, price, partial(_same, price))
                    continue
                least = self.model.relaxed_at_least(deployment, operator, masks)
                more = partial(self.model.relaxed, deployment, operator, part, masks, price)
                yield Candidate(operator.id, node, price + least, more)

        forced = self.reuse == "always"
        sink = network.place(asked.sink)
        working = network.working
        return Plans(self.model, wanted, leaves, working, candidates, forced, sink, tell)

    def _may(
        self, deployment: Deployment, operator: Operator, part: Definition, serves: bool
    ) -> bool:
        if self.reuse == "exact":
            return any(d.definition == part for d in operator.demands)
        return serves or deployment.relaxable(operator, part)

    def _considered(self, plans: Plans, sink: int) -> Iterator[Considered]:
        whole = plans.whole
        carried = plans.far[:, sink] * plans.tuples[whole] * self.model.rates.width(plans.wanted)
        new = [cost for cost, way in plans.ways[whole] if isinstance(way, tuple)]
        if new:
            costs = np.min(new, axis=0) + carried
            node = int(costs.argmin())
            yield Considered(f"a new join at {self.network.nodes[node].name}", float(costs[node]))
        for cost, way in plans.ways[whole]:
            for node, operator in way.items() if isinstance(way, dict) else ():
                said = f"operator {operator} at {self.network.nodes[node].name}"
                yield Considered(said, float(cost[node] + carried[node]))


def _same(price: float, limit: float) -> float:
    return price


def fused(tree: Tree) -> Tree:
    """The plan with new operators that feed one on the same node taken into it."""
    if not isinstance(tree, New):
        return tree
    inputs: list[Tree] = []
    for read in map(fused, tree.inputs):
        same = isinstance(read, New) and read.node == tree.node
        inputs += read.inputs if same and isinstance(read, New) else [read]
    return replace(tree, inputs=tuple(inputs))


def _unreachable(network: Network, deployment: Deployment, asked: Asked) -> str:
    far, sink = network.latency, network.place(asked.sink)
    for stream in asked.definition.streams:
        source = deployment.source(stream)
        if not np.isfinite(far[network.place(source), sink]):
            return f"there is no path from {source}, where {stream} comes from, to {asked.sink}"
    return f"no node that is up can do what query {asked.name!r} asks for"


class Service:
    """Plans and deploys queries as they come and go: the planner node of section 2.2, without
    tuples.
    """

    def __init__(self, planner: Planner, deployment: Deployment) -> None:
        self.planner, self.deployment = planner, deployment

    def submit(self, asked: Asked, now: int = 0, tell: bool = True) -> Decision:
        """Deploy a query."""
        decision = self.planner.plan(self.deployment, asked, now, tell=tell)
        self.deployment = submitted(self.deployment, asked, decision.tree)
        return decision

    def withdraw(self, name: str) -> None:
        """Take a query away."""
        self.deployment = withdrawn(self.deployment, name)

    @property
    def cost(self) -> float:
        """C(G, Σ(t)) now, modelled."""
        return self.planner.model.total(self.deployment)
