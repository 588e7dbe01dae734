"""Find the best partner of each tuple among the rows of a block, by the order of an as-of join.

A block is searched once for each direction. Its rows are sorted by the key of an equality, by order
and by the rule for ties, so that the best row is the last one at or before a tuple. Toward later
rows, all orders are mirrored. If a condition has to be checked as well, rows are tried outward, a
few at a time, until one fulfills it.

Pure NumPy: no blocks, no streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from braid.condition.access_paths import IndexCondition
from braid.core.match_rules import MatchRule
from braid.kernels.range_search import expand_ranges, search_ranges

PIECE = 16
"""Rows that are tried at once, after the first one."""
_MOST_PAIRS = 1 << 20
"""Maximum number of pairs that are checked at once."""
_MOST_PACKED = 1 << 62

Admits = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Returns which pairs fulfill a condition: positions of probes, and of rows in the block."""
RankTies = Callable[[np.ndarray], np.ndarray]
"""Returns the ranks of the rows at some positions by the rule for ties; the best is greatest."""


class Probes(NamedTuple):
    """Tuples that look for partners.

    - ``groups``: numbers of the rows' groups in which each may find one; -1: in none.
    - ``orders``: their orders.
    """

    groups: npt.NDArray[np.int64]
    orders: np.ndarray


class BestRows(NamedTuple):
    """The best row of a block for some probes, by position in both.

    ``orders``: the orders of these rows.
    """

    probes: np.ndarray
    rows: np.ndarray
    orders: np.ndarray

    def take_positions(self, at: np.ndarray) -> BestRows:
        """Return some of them."""
        return BestRows(*(each[at] for each in self))


def mirror_orders(orders: np.ndarray) -> np.ndarray:
    """Return orders that sort the other way round, at the same distances from each other."""
    return ~orders if orders.dtype.kind == "i" else -orders


@dataclass
class SortedRows:
    """Rows of a block, sorted by group, order and the rule for ties.

    - ``positions``: positions in the block.
    - ``keys``: the key of each group, ascending; None: all rows are one group.
    - ``starts``: where each group begins, and the number of rows.
    - ``orders``: their orders.
    - ``packed``: group and rank of the order in one number, ascending.
    - ``distinct``: the different orders that ranks count; None: ranks count from ``least``.
    """

    positions: npt.NDArray[np.intp]
    keys: np.ndarray | None
    starts: npt.NDArray[np.int64]
    orders: np.ndarray
    packed: npt.NDArray[np.int64]
    width: int
    least: int
    distinct: np.ndarray | None

    @classmethod
    def sort_rows(
        cls,
        keys: np.ndarray | None,
        orders: np.ndarray,
        rank_ties: RankTies,
        chosen: np.ndarray | None = None,
    ) -> SortedRows:
        """Return rows sorted by key, order and ties.

        ``chosen``: positions of the rows that count; None: all.
        """
        positions = np.arange(len(orders)) if chosen is None else chosen
        positions = _sort_positions(keys, orders, positions)
        ordered = orders[positions]
        grouped = None if keys is None else keys[positions]
        new = _find_changes(grouped, len(positions))
        group = np.cumsum(new) - 1
        positions = _sort_ties(positions, _find_ties(new, ordered), rank_ties)
        starts = np.append(np.flatnonzero(new), len(positions))
        group_keys = None if grouped is None else grouped[starts[:-1]]
        ranks, width, least, distinct = _rank_orders(ordered, len(starts))
        packed = group * width + ranks
        return cls(positions, group_keys, starts, ordered, packed, width, least, distinct)

    def find_probe_groups(
        self, keys: np.ndarray | None, equality: IndexCondition | None, size: int
    ) -> npt.NDArray[np.int64]:
        """Return the group in which each of ``size`` probes with these keys may find a partner."""
        if self.keys is None or keys is None or equality is None:
            return np.zeros(size, np.int64)
        starts = np.flatnonzero(_find_changes(keys, size))
        is_in_runs = 2 * len(starts) <= size  # as in a block that is sorted by the key
        probing = keys[starts] if is_in_runs else keys
        first, last = search_ranges(probing, self.keys, equality, left=False)
        groups = np.where(first < last, first, -1)
        return np.repeat(groups, np.diff(np.append(starts, size))) if is_in_runs else groups

    def find_last_rows(self, probes: Probes, is_strict: bool) -> npt.NDArray[np.int64]:
        """Return the position of the last row of each probe's group that is not after it.

        ``is_strict``: that is before it. The row before the group if there is none.
        """
        ranks = self._rank_probe_orders(probes.orders, is_strict)
        return np.searchsorted(self.packed, probes.groups * self.width + ranks, "right") - 1

    def _rank_probe_orders(self, orders: np.ndarray, is_strict: bool) -> np.ndarray:
        """Return the greatest rank of a row that is not after a probe."""
        if self.distinct is not None:
            return np.searchsorted(self.distinct, orders, "left" if is_strict else "right")
        limited = np.clip(orders, self.least - 1, self.least + self.width - 2)
        return np.maximum(limited - (self.least - 1) - is_strict, 0)


def find_best_rows(
    probes: Probes, rows: SortedRows, rule: MatchRule, admits: Admits | None = None
) -> BestRows:
    """Return the best row of each probe that has one.

    Parameters
    ----------
    probes, rows
        With orders that are mirrored if later partners are looked for.
    rule
        The tolerance, and whether equal orders count.
    admits
        Returns which pairs fulfill the rest of the condition; None: all.
    """
    there = np.flatnonzero(probes.groups >= 0)
    some = Probes(probes.groups[there], probes.orders[there])
    last = rows.find_last_rows(some, rule.is_strict)
    filled = np.flatnonzero(last >= rows.starts[some.groups])
    at, last = there[filled], last[filled]
    if admits is None:
        near = _find_near(probes.orders[at], rows.orders[last], rule.tolerance)
        at, last = (at, last) if near is None else (at[near], last[near])
    else:
        at, last = _search_outward(probes, at, last, rows, rule, admits)
    return BestRows(at, rows.positions[last], rows.orders[last])


def _search_outward(
    probes: Probes,
    at: np.ndarray,
    last: np.ndarray,
    rows: SortedRows,
    rule: MatchRule,
    admits: Admits,
) -> tuple[np.ndarray, np.ndarray]:
    """Return probes and sorted positions of the last row that fulfills the condition."""
    admitted: list[tuple[np.ndarray, np.ndarray]] = []
    begin = rows.starts[probes.groups[at]]
    size = 1
    while len(at):
        first = np.maximum(begin, last - size + 1)
        best = np.full(len(at), -1)
        for some in _split_evenly(len(at), _MOST_PAIRS // size):
            best[some] = _find_last_admitted(
                probes, at[some], first[some], last[some], rows, rule, admits
            )
        done = best >= 0
        if done.any():
            admitted.append((at[done], best[done]))
        near = _find_near(probes.orders[at], rows.orders[first], rule.tolerance)
        more = ~done & (first > begin)
        more = more if near is None else more & near
        at, last, begin, size = at[more], first[more] - 1, begin[more], PIECE
    if len(admitted) < 2:
        return admitted[0] if admitted else (at, last)
    every = [np.concatenate(each) for each in zip(*admitted, strict=True)]
    order = np.argsort(every[0])
    return every[0][order], every[1][order]


def _find_last_admitted(
    probes: Probes,
    at: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    rows: SortedRows,
    rule: MatchRule,
    admits: Admits,
) -> np.ndarray:
    """Return the last row of each range [first, last] that its probe admits; -1: there is none."""
    if bool((first == last).all()):
        holds = admits(at, rows.positions[last])
        near = _find_near(probes.orders[at], rows.orders[last], rule.tolerance)
        return np.where(holds if near is None else holds & near, last, -1)
    counts = last - first + 1
    ((which, row),) = expand_ranges(np.arange(len(at)), first, counts, None, int(counts.sum()))
    probe = at[which]
    holds = admits(probe, rows.positions[row])
    near = _find_near(probes.orders[probe], rows.orders[row], rule.tolerance)
    best = np.full(len(at), -1)
    fulfilling = np.flatnonzero(holds if near is None else holds & near)
    best[which[fulfilling]] = row[
        fulfilling
    ]  # rows of a probe ascend, so that the last assignment stays
    return best


def _split_evenly(size: int, most: int) -> Iterator[slice]:
    for start in range(0, size, most):
        yield slice(start, min(size, start + most))


def measure_distances(greater: np.ndarray, less: np.ndarray) -> np.ndarray:
    """Return the distances of orders. The difference of two 64-bit integers needs no sign."""
    if greater.dtype.kind == "i":
        return greater.astype(np.int64, copy=False).view(np.uint64) - less.astype(
            np.int64, copy=False
        ).view(np.uint64)
    with np.errstate(invalid="ignore"):  # two infinite orders
        return np.where(greater == less, 0.0, greater - less)


def _find_near(probes: np.ndarray, rows: np.ndarray, tolerance: float | None) -> np.ndarray | None:
    """Return whether rows, which are not after the probes, are within the tolerance; None: all."""
    if tolerance is None:
        return None
    distance = measure_distances(probes, rows)
    return np.asarray(
        distance <= (np.uint64(tolerance) if distance.dtype.kind == "u" else tolerance)
    )


def _sort_positions(
    keys: np.ndarray | None, orders: np.ndarray, positions: np.ndarray
) -> np.ndarray:
    """Return positions sorted by key and order. Blocks are mostly sorted already."""
    ordered = orders[positions]
    ascending = ordered[1:] >= ordered[:-1]
    if keys is None:
        return positions if ascending.all() else positions[np.argsort(ordered, kind="stable")]
    key = keys[positions]
    if bool(np.all((key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & ascending))):
        return positions
    return positions[np.lexsort((ordered, key))]


def _find_changes(keys: np.ndarray | None, size: int) -> np.ndarray:
    """Return where a key differs from the one before it."""
    new = np.zeros(size, bool)
    new[:1] = True
    if keys is not None:
        new[1:] = keys[1:] != keys[:-1]
        if keys.dtype.kind == "f":
            nan = keys != keys
            new[1:] &= ~(nan[1:] & nan[:-1])  # NaN equals NaN
    return new


def _find_ties(new: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Return whether a row has the group and the order of the row before it."""
    same = ~new
    same[1:] &= orders[1:] == orders[:-1]
    return same


def _sort_ties(positions: np.ndarray, same: np.ndarray, rank_ties: RankTies) -> np.ndarray:
    """Return the positions with those of equal group and order sorted by the rule for ties."""
    if not same.any():
        return positions
    is_tied = same.copy()
    is_tied[:-1] |= same[1:]
    tied = np.flatnonzero(is_tied)
    run = np.cumsum(~same)[tied]
    sorted_positions = positions.copy()
    sorted_positions[tied] = positions[tied][np.lexsort((rank_ties(positions[tied]), run))]
    return sorted_positions


def _rank_orders(orders: np.ndarray, groups: int) -> tuple[np.ndarray, int, int, np.ndarray | None]:
    """Return ranks from 1, one more than the greatest, the least order, and the distinct ones."""
    if orders.dtype.kind == "i" and len(orders):
        least, greatest = int(orders.min()), int(orders.max())
        width = greatest - least + 3
        limits = np.iinfo(orders.dtype)
        fits = limits.min < least and greatest < limits.max
        if fits and width * groups < _MOST_PACKED:
            return orders - (least - 1), width, least, None
    distinct = np.unique(orders)
    return np.searchsorted(distinct, orders) + 1, len(distinct) + 2, 0, distinct
