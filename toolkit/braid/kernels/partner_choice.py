"""Choose between the rows that searches of several blocks have found for the same tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from braid.core.match_rules import MatchRule
from braid.kernels.asof_search import (
    BestRows,
    RankTies,
    SortedRows,
    measure_distances,
    mirror_orders,
)


class BestSoFar:
    """The best rows for some probes in one direction, after a search of some blocks.

    - ``orders``: by probe, the order of its best row, mirrored if later rows are looked for.
    - ``blocks``, ``rows``: the number of the row's block, -1 if there is none, and its position.
    """

    def __init__(self, size: int, dtype: np.dtype[np.generic]) -> None:
        self.orders = np.zeros(size, dtype)
        self.blocks, self.rows = np.full(size, -1), np.zeros(size, np.int64)
        self._ties: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []

    def list_open_probes(self, rows: SortedRows) -> np.ndarray:
        """Return the probes for which a block may have a better row, or one of equal order."""
        if not len(rows.orders):
            return np.zeros(0, np.int64)
        return np.flatnonzero((self.blocks < 0) | (self.orders <= rows.orders.max()))

    def add_block(self, number: int, best: BestRows) -> None:
        """Take the rows of a block that are better."""
        at, before = best.probes, self.blocks[best.probes] >= 0
        current = self.orders[at]
        same = np.flatnonzero(before & (best.orders == current))
        if len(same):
            some, numbers = at[same], np.full(len(same), number)
            self._ties.append((some, numbers, best.rows[same], best.orders[same]))
        better = np.flatnonzero(~before | (best.orders > current))
        some = at[better]
        self.orders[some], self.blocks[some] = best.orders[better], number
        self.rows[some] = best.rows[better]

    def decide_ties(self, rank: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        """Take the best of rows of equal order by the rule for ties.

        ``rank`` returns the ranks of rows, given the numbers of their blocks and their positions.
        """
        if not self._ties:
            return
        probes, blocks, rows, orders = (np.concatenate(e) for e in zip(*self._ties, strict=True))
        still = np.flatnonzero(orders == self.orders[probes])
        if not len(still):
            return
        first = np.unique(probes[still])
        probes = np.concatenate([first, probes[still]])
        blocks = np.concatenate([self.blocks[first], blocks[still]])
        rows = np.concatenate([self.rows[first], rows[still]])
        order = np.lexsort((rank(blocks, rows), probes))
        self.blocks[probes[order]] = blocks[order]  # the greatest of a probe is the last
        self.rows[probes[order]] = rows[order]


def choose_nearer_side(before: BestSoFar, after: BestSoFar, orders: np.ndarray) -> np.ndarray:
    """Return for which probes the row after them is nearer than that before; equal distances count.

    ``orders``: those of the probes.
    """
    nearer = (before.blocks < 0) & (after.blocks >= 0)
    both = np.flatnonzero((before.blocks >= 0) & (after.blocks >= 0))
    probe, there = orders[both], mirror_orders(after.orders[both])
    backward = measure_distances(probe, before.orders[both])
    nearer[both] = measure_distances(there, probe) <= backward
    return nearer


def choose_best_rows(
    candidates: Sequence[BestRows], orders: np.ndarray, rule: MatchRule, rank_ties: RankTies
) -> np.ndarray:
    """Return which of the rows that several blocks found are the best of their probes.

    Parameters
    ----------
    candidates
        The best rows of each block, with orders as they are.
    orders
        The orders of the probes.
    rule
        Which of two orders is better.
    rank_ties
        Returns the ranks of the rows at some positions in the concatenation of ``candidates``.

    The result has positions in the concatenation of ``candidates``, by probe.
    """
    probes = np.concatenate([each.probes for each in candidates])
    every = np.concatenate([each.orders for each in candidates])
    ranked = _rank_distances(orders[probes], every, rule)
    order = np.lexsort((*ranked[::-1], probes))
    same = np.zeros(len(order), bool)
    same[:-1] = probes[order[1:]] == probes[order[:-1]]
    best = ~same
    for values in ranked:
        ordered = values[order]
        same[:-1] &= ordered[1:] == ordered[:-1]
    if not same.any():
        return order[best]
    is_tied = same.copy()
    is_tied[1:] |= same[:-1]
    tied = np.flatnonzero(is_tied)
    run = np.cumsum(~np.concatenate([[False], same[:-1]]))[tied]
    order[tied] = order[tied[np.lexsort((rank_ties(order[tied]), run))]]
    return order[best]


def _rank_distances(
    probes: np.ndarray, rows: np.ndarray, rule: MatchRule
) -> tuple[np.ndarray, ...]:
    """Return the numbers to compare, most significant first; the greatest is best."""
    if rule.match == "latest":
        return (rows,)
    if rule.match == "first":
        return (mirror_orders(rows),)
    distance = measure_distances(np.maximum(probes, rows), np.minimum(probes, rows))
    return (~distance if distance.dtype.kind == "u" else -distance), rows
