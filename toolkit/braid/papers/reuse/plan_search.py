"""The dynamic program of the exact planner.

It finds, for each set of streams and each node, the least cost of having that part of the query
there. Braid's own; see planner.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import NewOperator, ReusedOperator, Tree
from braid.papers.reuse.network import Floats, Truths
from braid.papers.reuse.query_definition import Definition


@dataclass(frozen=True)
class PlanLeaf:
    """A leaf of the search: streams available at a node, and the plan that provides them."""

    streams: frozenset[str]
    node: int
    tree: Tree


@dataclass(frozen=True)
class ReuseCandidate:
    """An operator that can be reused for a part.

    ``cost_bound`` is a lower bound of the added cost. ``cost(limit)`` returns the exact cost, which
    takes longer; a cost above the limit may be returned as any number not below it.
    """

    operator: int
    node: int
    cost_bound: float
    cost: Callable[[float], float]


Candidates = Callable[[Definition], Iterator[ReuseCandidate]]
"""A function that yields the operators that can be reused for a part."""

Way = Tree | tuple[int, int] | dict[int, int]
"""How a part is made: a leaf, a join of two parts (as bits of leaves), or an operator by node."""


class PlanTable:
    """The least costs of the parts of one query, by set of leaves and by node.

    This is the table of the dynamic program. ``allowed`` marks the nodes that may host operators.
    With ``forced``, no new operator is made if one can be reused. With a ``sink``, costs of the
    whole query are computed for that node only. With ``tell``, every reuse of the whole query is
    kept with its cost.
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
        self.all_leaves = (1 << len(leaves)) - 1
        self.parts: dict[int, Definition] = {}
        self.cheapest: dict[int, Floats] = {}
        self.there: dict[int, Floats] = {}
        self.ways: dict[int, list[tuple[Floats, Way]]] = {}
        self.tuples: dict[int, float] = {}
        self.links = self._find_join_links()
        for mask in range(1, 1 << len(leaves)):
            if self._is_connected(mask):
                self._solve_part(mask)

    def _find_join_links(self) -> set[int]:
        """Return the leaves that each join connects, as bits."""
        linked = set()
        for join in self.wanted.joins:
            touched = (
                bool(leaf.streams & join.joined_streams) << i for i, leaf in enumerate(self.leaves)
            )
            linked.add(sum(touched))
        return linked

    def _is_connected(self, mask: int) -> bool:
        """Return whether joins connect these leaves."""
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
        self.cheapest[mask] = np.min([cost for cost, _ in ways], axis=0)
        rate = self.tuples[mask] * self.model.rates.result_width(part)
        # A missing path stays inf, because rates are above 0.
        if len(chosen) == 1:
            self.there[mask] = self.far[chosen[0].node] * rate
        elif self.sink is not None and mask == self.all_leaves:
            at = self.sink
            self.there[mask] = np.full(len(self.far), np.inf)
            self.there[mask][at] = (self.cheapest[mask] + self.far[at] * rate).min()
        else:
            self.there[mask] = (self.cheapest[mask] + self.far * rate).min(axis=1)

    def _list_leaf_choices(self, leaf: PlanLeaf) -> list[tuple[Floats, Way]]:
        cost = np.full(len(self.far), np.inf)
        cost[leaf.node] = 0.0
        return [(cost, leaf.tree)]

    def _list_part_choices(self, mask: int, part: Definition) -> list[tuple[Floats, Way]]:
        new = list(self._list_new_joins(mask))
        built = np.min([cost for cost, _ in new], axis=0)
        reused = list(self._list_reuse_choices(mask, part, built)) if self.candidates else []
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
        self, mask: int, part: Definition, cheapest: Floats
    ) -> Iterator[tuple[Floats, Way]]:
        """Yield the cheapest operator at each node.

        An operator that costs no less than bringing the part there from elsewhere is skipped. For
        the whole query, the path to the sink is included; with ``tell`` or ``forced``, or without a
        sink, no operator for it is skipped.
        """
        assert self.candidates is not None
        reusable = sorted(self.candidates(part), key=lambda c: c.cost_bound)
        if not reusable:
            return
        rate = self.tuples[mask] * self.model.rates.result_width(part)
        every = mask == self.all_leaves and (self.tell or self.forced or self.sink is None)
        bound, best = self._bound_useful_cost(mask, cheapest, rate), dict[int, tuple[float, int]]()
        for c in reusable:
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

    def _bound_useful_cost(self, mask: int, cheapest: Floats, rate: float) -> Floats:
        """Return, by node, the highest useful cost of a part that is available at these costs.

        For the whole query, cost is compared at the sink; for other parts, at any node.
        """
        if mask != self.all_leaves or self.sink is None:
            there: Floats = (cheapest + self.far * rate).min(axis=1)
            return there
        away: Floats = self.far[:, self.sink] * rate
        bound: Floats = np.where(np.isfinite(away), (cheapest + away).min(), -np.inf) - away
        return bound

    def _bound_transfer_cost(self, mask: int, node: int, rate: float) -> Floats:
        """Return, by node, the highest useful extra cost of a part that is available at another."""
        if mask != self.all_leaves or self.sink is None:
            there: Floats = self.far[node] * rate
            return there
        away: Floats = self.far[:, self.sink] * rate
        bound: Floats = np.where(np.isfinite(away), away[node], -np.inf) - away
        return bound

    def min_cost(self, sink: int) -> float:
        """Return the least cost of having the whole query's results at a node."""
        return float(self.there[self.all_leaves][sink])

    def best_tree(self, sink: int) -> Tree:
        """Return the cheapest plan."""
        return self._build_tree(self.all_leaves, sink)

    def _build_tree(self, mask: int, target: int) -> Tree:
        """Return the plan that provides a part at a node."""
        rate = self.tuples[mask] * self.model.rates.result_width(self.parts[mask])
        node = int((self.cheapest[mask] + self.far[:, target] * rate).argmin())
        _, way = min(self.ways[mask], key=lambda w: float(w[0][node]))
        if isinstance(way, dict):
            return ReusedOperator(way[node], self.model.network.nodes[node].name)
        if not isinstance(way, tuple):
            return way
        inputs = tuple(self._build_tree(m, node) for m in way)
        return NewOperator(self.parts[mask].streams, self.model.network.nodes[node].name, inputs)
