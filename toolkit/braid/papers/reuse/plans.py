"""The dynamic program of the exact planner: over sets of streams and nodes, the least cost to have
a part of the query there. Ours; see planner.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.definition import Definition
from braid.papers.reuse.deployment import New, Reused, Tree
from braid.papers.reuse.network import Floats, Truths


@dataclass(frozen=True)
class Leaf:
    """What a plan starts from: streams that are at a node, and how they came there."""

    streams: frozenset[str]
    node: int
    tree: Tree


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
