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
from braid.papers.reuse.deployment import NewOperator, ReusedOperator, Tree
from braid.papers.reuse.network import Floats, Truths


@dataclass(frozen=True)
class PlanLeaf:
    """What a plan starts from: streams that are at a node, and how they came there."""

    streams: frozenset[str]
    node: int
    tree: Tree


@dataclass(frozen=True)
class ReuseCandidate:
    """An operator that can be had for a part: where it is, what it costs more at ``least``, and
    what exactly, which takes longer to say; from a limit on, no less than that will do.
    """

    operator: int
    node: int
    cost_bound: float
    cost: Callable[[float], float]


Candidates = Callable[[Definition], Iterator[ReuseCandidate]]
"""The operators that can be had for a part."""

Way = Tree | tuple[int, int] | dict[int, int]
"""How a part is made: a leaf, a join of two parts (as bits of leaves), or by node an operator."""


class PlanTable:
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
        leaves: Sequence[PlanLeaf],
        allowed: Truths,
        candidates: Candidates | None = None,
        forced: bool = False,
        sink: int | None = None,
        tell: bool = False,
    ) -> None:
        self.model, self.wanted, self.leaves = model, wanted, leaves
        self.far = model.network.latency_ms / 1e3
        self.barred = np.where(allowed, 0.0, np.inf)
        self.candidates, self.forced, self.sink, self.tell = candidates, forced, sink, tell
        self.whole = (1 << len(leaves)) - 1
        self.parts: dict[int, Definition] = {}
        self.made: dict[int, Floats] = {}
        self.there: dict[int, Floats] = {}
        self.ways: dict[int, list[tuple[Floats, Way]]] = {}
        self.tuples: dict[int, float] = {}
        self.links = self._find_join_links()
        for mask in range(1, 1 << len(leaves)):
            if self._is_connected(mask):
                self._solve_part(mask)

    def _find_join_links(self) -> set[int]:
        """What each join links, as bits of leaves."""
        found = set()
        for join in self.wanted.joins:
            touched = (
                bool(leaf.streams & join.joined_streams) << i for i, leaf in enumerate(self.leaves)
            )
            found.add(sum(touched))
        return found

    def _is_connected(self, mask: int) -> bool:
        """Whether joins link these leaves."""
        inside = [link for link in self.links if link | mask == mask]
        reached, before = mask & -mask, 0
        while reached != before:
            before = reached
            for link in inside:
                if link & reached:
                    reached |= link
        return reached == mask

    def _solve_part(self, mask: int) -> None:
        chosen = [leaf for i, leaf in enumerate(self.leaves) if mask >> i & 1]
        part = self.wanted.restrict_to(frozenset().union(*(leaf.streams for leaf in chosen)))
        self.parts[mask] = part
        self.tuples[mask] = self.model.rates.result_rate(part)
        ways = (
            self._list_leaf_choices(chosen[0])
            if len(chosen) == 1
            else self._list_part_choices(mask, part)
        )
        self.ways[mask] = ways
        self.made[mask] = np.min([cost for cost, _ in ways], axis=0)
        rate = self.tuples[mask] * self.model.rates.result_width(part)
        # A path that is not there stays inf: rates are above 0.
        if len(chosen) == 1:
            self.there[mask] = self.far[chosen[0].node] * rate
        elif self.sink is not None and mask == self.whole:
            at = self.sink
            self.there[mask] = np.full(len(self.far), np.inf)
            self.there[mask][at] = (self.made[mask] + self.far[at] * rate).min()
        else:
            self.there[mask] = (self.made[mask] + self.far * rate).min(axis=1)

    def _list_leaf_choices(self, leaf: PlanLeaf) -> list[tuple[Floats, Way]]:
        cost = np.full(len(self.far), np.inf)
        cost[leaf.node] = 0.0
        return [(cost, leaf.tree)]

    def _list_part_choices(self, mask: int, part: Definition) -> list[tuple[Floats, Way]]:
        new = list(self._list_new_joins(mask))
        made = np.min([cost for cost, _ in new], axis=0)
        reused = list(self._list_reuse_choices(mask, part, made)) if self.candidates else []
        return reused if self.forced and reused else [*new, *reused]

    def _list_new_joins(self, mask: int) -> Iterator[tuple[Floats, Way]]:
        lowest = mask & -mask
        first = (mask - 1) & mask
        while first:
            second = mask ^ first
            if first & lowest and first in self.there and second in self.there:
                work = self.tuples[first] + self.tuples[second] + self.tuples[mask]
                cost = self.there[first] + self.there[second] + self.barred
                yield cost + self.model.work_weight * work, (first, second)
            first = (first - 1) & mask

    def _list_reuse_choices(
        self, mask: int, part: Definition, made: Floats
    ) -> Iterator[tuple[Floats, Way]]:
        """The cheapest operator at each node. One that costs as much as to have the part brought
        there from elsewhere is not looked at any further, unless all is to be told; nor, for all of
        the query, one that costs as much with the way to the sink.
        """
        assert self.candidates is not None
        found = sorted(self.candidates(part), key=lambda c: c.cost_bound)
        if not found:
            return
        rate = self.tuples[mask] * self.model.rates.result_width(part)
        every = mask == self.whole and (self.tell or self.forced or self.sink is None)
        bound, best = self._bound_useful_cost(mask, made, rate), dict[int, tuple[float, int]]()
        for c in found:
            limit = math.inf if every else float(bound[c.node])
            if c.cost_bound < limit and (cost := c.cost(limit)) < limit:
                best[c.node] = min(best.get(c.node, (math.inf, -1)), (cost, c.operator))
                bound = (
                    bound
                    if every
                    else np.minimum(bound, cost + self._bound_transfer_cost(mask, c.node, rate))
                )
        if best:
            costs = np.full(len(self.far), np.inf)
            costs[list(best)] = [cost for cost, _ in best.values()]
            yield costs, {node: operator for node, (_, operator) in best.items()}

    def _bound_useful_cost(self, mask: int, made: Floats, rate: float) -> Floats:
        """By node, what a part may cost there at most to be of use, if it can be had at these costs
        already: of all of the query at the sink, of others anywhere.
        """
        if mask != self.whole or self.sink is None:
            there: Floats = (made + self.far * rate).min(axis=1)
            return there
        away: Floats = self.far[:, self.sink] * rate
        bound: Floats = np.where(np.isfinite(away), (made + away).min(), -np.inf) - away
        return bound

    def _bound_transfer_cost(self, mask: int, node: int, rate: float) -> Floats:
        """By node, what a part that is at another may cost there at most to be of use, less what it
        costs where it is.
        """
        if mask != self.whole or self.sink is None:
            there: Floats = self.far[node] * rate
            return there
        away: Floats = self.far[:, self.sink] * rate
        bound: Floats = np.where(np.isfinite(away), away[node], -np.inf) - away
        return bound

    def min_cost(self, sink: int) -> float:
        """The least cost to have all at a node."""
        return float(self.there[self.whole][sink])

    def best_tree(self, sink: int) -> Tree:
        """The plan of the least cost."""
        return self._build_tree(self.whole, sink)

    def _build_tree(self, mask: int, target: int) -> Tree:
        """The plan that has a part at a node."""
        rate = self.tuples[mask] * self.model.rates.result_width(self.parts[mask])
        node = int((self.made[mask] + self.far[:, target] * rate).argmin())
        _, way = min(self.ways[mask], key=lambda w: float(w[0][node]))
        if isinstance(way, dict):
            return ReusedOperator(way[node], self.model.network.nodes[node].name)
        if not isinstance(way, tuple):
            return way
        inputs = tuple(self._build_tree(m, node) for m in way)
        return NewOperator(self.parts[mask].streams, self.model.network.nodes[node].name, inputs)
