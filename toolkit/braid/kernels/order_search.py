"""Find candidate pairs by several index conditions on one order of a block's rows.

The pairs of a probe are a range of positions in the order of its narrowest range. The next range
admits some rows of it. If it admits many, they are checked one by one; otherwise a tree over their
ranks finds them. Further ranges are checks. Among three ranges or more, the two that together admit
fewest pairs of a sample are searched: those of overlapping intervals admit half of the rows each,
but few rows together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from braid.condition.access_paths import IndexCondition, OrderSearch, RangeSearch
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.ordered_rows import OrderedRows
from braid.kernels.range_search import (
    evaluate_search,
    expand_ranges,
    search_ranges,
    split_into_chunks,
)

_WIDTHS = 256
"""Probes that are sampled to choose between two ranges."""
_PAIRS = 4096
"""Pairs that are sampled to choose two of more ranges."""
_GOLDEN = 0.6180339887498949
"""Fractional parts of its multiples are spread evenly over any number of them."""
_SAMPLED = 512
"""Candidates that are sampled to decide how to search for ranks."""
_MOST_CHECKED = 3
"""Candidates are checked one by one if at most this many are for one result."""
_FREE = 8
"""They are also checked if at most one in this many probes has a candidate that is no result."""


class PairChunk(NamedTuple):
    """Pairs of a position in the partial results and one in the block.

    - ``unchecked``: conditions of the access path that the pairs may not fulfill.
    """

    left: np.ndarray
    right: np.ndarray
    unchecked: tuple[IndexCondition, ...] = ()


class _Ranges(NamedTuple):
    """Ranges [first, last) of positions or ranks, by probe in ``hits``."""

    hits: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def take_ranges(self, at: np.ndarray) -> _Ranges:
        return _Ranges(*(each[at] for each in self))

    def keep_filled(self) -> _Ranges:
        """Return the ranges that are not empty."""
        return self.take_ranges(np.flatnonzero(self.first < self.last))


class _Step(NamedTuple):
    """A probe of a block's rows.

    - ``most``: maximum number of pairs of a chunk.
    """

    partial: PartialMatches
    rows: BlockRows
    stream: int
    most: int


def find_pairs_in_order(
    partial: PartialMatches, rows: BlockRows, stream: int, search: OrderSearch, most: int
) -> Iterator[PairChunk]:
    """Yield the pairs that the search admits, in chunks of at most ``most``.

    If the block does not store its orders, it is searched by the equality alone.
    """
    step = _Step(partial, rows, stream, most)
    size, probes = rows.row_total, len(partial)
    ranges = _Ranges(np.arange(probes), np.zeros(probes, np.int64), np.full(probes, size))
    positions = None
    if search.equality is not None:
        keys, positions = rows.sorted_keys(search.equality.find_key(stream) or "")
        ranges = _intersect_ranges(ranges, step, keys, [search.equality]).keep_filled()
        if not _can_search_within(search, rows, keys):
            checks = (c for each in search.ranges for c in each.conditions if c.is_exact)
            yield from _expand_chunks(ranges, positions, most, tuple(checks))
            return
    best, *others = _sort_searches(ranges, step, search.ranges, positions)
    ordered = rows.orders.find_order(best.order)
    assert ordered is not None
    ascending = ordered.ascending_values
    if search.equality is None:
        ranges = _intersect_ranges(ranges, step, ascending, best.conditions).keep_filled()
    else:
        ranges = _search_within(ranges, step, ordered, best.conditions)
    if others:
        yield from _search_ranks(ranges, step, best, others)
    else:
        yield from _expand_chunks(ranges, ordered.positions, most)


def _can_search_within(search: OrderSearch, rows: BlockRows, keys: np.ndarray) -> bool:
    """Return whether the block stores the orders of ranges, and the equality finds one key."""
    assert search.equality is not None
    has_orders = all(rows.orders.find_order(each.order) for each in search.ranges)
    has_slack = not search.equality.is_exact and keys.dtype.kind != "i"
    return bool(search.ranges) and has_orders and not has_slack


def _sort_searches(
    ranges: _Ranges,
    step: _Step,
    searches: Sequence[RangeSearch],
    positions: np.ndarray | None,
) -> Sequence[RangeSearch]:
    """Return the searches, those that admit fewest of a sample first.

    ``positions``: of the rows to which the ranges refer; None: as stored.
    """
    if len(searches) == 1 or not len(ranges.hits):
        return searches
    if len(searches) == 2:
        return _sort_by_width(ranges, step, searches)
    admitted = _evaluate_sample(ranges, step, searches, positions)
    counts = [int(np.count_nonzero(each)) for each in admitted]

    def count_both(pair: tuple[int, int]) -> tuple[int, int]:
        a, b = pair
        return int(np.count_nonzero(admitted[a] & admitted[b])), counts[a] + counts[b]

    two = min(combinations(range(len(searches)), 2), key=count_both)
    order = sorted(range(len(searches)), key=lambda n: (n not in two, counts[n]))
    return [searches[n] for n in order]


def _evaluate_sample(
    ranges: _Ranges,
    step: _Step,
    searches: Sequence[RangeSearch],
    positions: np.ndarray | None,
) -> list[np.ndarray]:
    """Return, by search, which pairs of a sample of the ranges it admits."""
    number = np.arange(_PAIRS)
    probes = number * len(ranges.hits) // _PAIRS
    widths = (ranges.last - ranges.first)[probes]
    right = ranges.first[probes] + (number * _GOLDEN % 1 * widths).astype(np.int64)
    right = right if positions is None else positions[right]
    left = ranges.hits[probes]

    return [_evaluate_conditions(step, each.conditions, left, right) for each in searches]


def _evaluate_conditions(
    step: _Step, conditions: Iterable[IndexCondition], left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Return which pairs a search by these conditions admits."""
    keep = np.ones(len(left), bool)
    for condition in conditions:
        is_left = condition.left[0] == step.stream
        (_, stored), probing = condition.ends[:: 1 if is_left else -1]
        values = step.partial.values_at(*probing, left), step.rows.numpy_column(stored)[right]
        keep &= evaluate_search(*values, condition, is_left)
    return keep


def _sort_by_width(
    ranges: _Ranges, step: _Step, searches: Sequence[RangeSearch]
) -> Sequence[RangeSearch]:
    """Return the searches, those that admit fewest of a sample of probes first."""
    count = min(_WIDTHS, len(ranges.hits))
    sampled = ranges.take_ranges(np.arange(count) * len(ranges.hits) // count)
    widths = {}
    for search in searches:
        ordered = step.rows.orders.find_order(search.order)
        assert ordered is not None
        matched = _find_ranks(sampled, step, ordered.ascending_values, search.conditions)
        widths[search.order] = int(np.maximum(matched.last - matched.first, 0).sum())
    return sorted(searches, key=lambda search: widths[search.order])


def _intersect_ranges(
    ranges: _Ranges,
    step: _Step,
    ascending: np.ndarray,
    conditions: Sequence[IndexCondition],
) -> _Ranges:
    """Return ranges of ``ascending`` values that also fulfill the conditions."""
    (hits, first, last), partial = ranges, step.partial
    for condition in conditions:
        is_left = condition.left[0] == step.stream
        other = condition.right if is_left else condition.left
        probing = (
            partial.column_values(*other)
            if len(hits) == len(partial)
            else partial.values_at(*other, hits)
        )
        begin, end = search_ranges(probing, ascending, condition, is_left)
        first, last = np.maximum(first, begin), np.minimum(last, end)
    return _Ranges(hits, first, last)


def _find_ranks(
    ranges: _Ranges, step: _Step, ascending: np.ndarray, conditions: Sequence[IndexCondition]
) -> _Ranges:
    """Return the ranks that fulfill the conditions, for the same probes."""
    hits = ranges.hits
    everything = _Ranges(hits, np.zeros(len(hits), np.int64), np.full(len(hits), len(ascending)))
    return _intersect_ranges(everything, step, ascending, conditions)


def _search_within(
    ranges: _Ranges, step: _Step, ordered: OrderedRows, conditions: Sequence[IndexCondition]
) -> _Ranges:
    """Return the parts of runs of equal keys that fulfill conditions on the ``within`` column."""
    ascending, packed = ordered.ascending_values, ordered.packed_ranks
    ranks = _find_ranks(ranges, step, ascending, conditions)
    base = ranges.first * (len(ascending) + 1)
    first, last = (np.searchsorted(packed, base + bound) for bound in (ranks.first, ranks.last))
    return _Ranges(ranges.hits, first, last).keep_filled()


def _search_ranks(
    ranges: _Ranges, step: _Step, best: RangeSearch, others: Sequence[RangeSearch]
) -> Iterator[PairChunk]:
    """Yield the pairs of the ranges that also fulfill the others' conditions.

    - ``best``: the search that found the ranges.

    A tree searches by the first of the others.
    """
    next_best, *further = others
    ordered, other_order = map(step.rows.orders.find_order, (best.order, next_best.order))
    assert ordered is not None and other_order is not None
    (hits, first, last), most = ranges, step.most
    ranks = _find_ranks(ranges, step, other_order.ascending_values, next_best.conditions)
    trees = step.rows.orders.rank_trees(best.order, next_best.order)
    if _should_check(ranges, ranks, trees.ranks, len(step.partial)):
        candidates = _expand_chunks(ranges, ordered.positions, most)
        yield from _keep_admitted(candidates, step, others)
        return
    size = len(trees.ranks)
    if not ranks.first.any():
        pairs = trees.least_ranks.find_pairs(first, last, size - ranks.last, most)
    elif (ranks.last >= size).all():
        pairs = trees.greatest_ranks.find_pairs(first, last, ranks.first, most)
    else:
        pairs = trees.sorted_ranks.find_pairs(first, last, ranks.first, ranks.last, most)
    at_rows = ordered.positions
    chunks = (
        PairChunk(hits[probes], at if at_rows is None else at_rows[at]) for probes, at in pairs
    )
    yield from _keep_admitted(chunks, step, further) if further else chunks


def _keep_admitted(
    chunks: Iterable[PairChunk], step: _Step, searches: Sequence[RangeSearch]
) -> Iterator[PairChunk]:
    """Yield the pairs that further searches admit, too.

    So the same pairs are found, whichever of several ranges is searched first.
    """
    conditions = [condition for search in searches for condition in search.conditions]
    for chunk in chunks:
        keep = np.flatnonzero(_evaluate_conditions(step, conditions, chunk.left, chunk.right))
        yield PairChunk(chunk.left[keep], chunk.right[keep])


def _should_check(ranges: _Ranges, bounds: _Ranges, ranks: np.ndarray, probes: int) -> bool:
    """Return whether to check all candidates rather than to search a tree, judging by a sample."""
    ends = np.cumsum(ranges.last - ranges.first)
    total = int(ends[-1]) if len(ends) else 0
    if _FREE * total <= probes:
        return True
    sampled = np.arange(_SAMPLED) * total // _SAMPLED
    of = np.searchsorted(ends, sampled, "right")
    rank = ranks[ranges.last[of] - (ends[of] - sampled)]
    share = float(np.mean((rank >= bounds.first[of]) & (rank < bounds.last[of])))
    return _MOST_CHECKED * share >= 1 or _FREE * total * (1 - share) <= probes


def _expand_chunks(
    ranges: _Ranges,
    positions: np.ndarray | None,
    most: int,
    unchecked: tuple[IndexCondition, ...] = (),
) -> Iterator[PairChunk]:
    """Yield all pairs of the ranges, in chunks. They may not fulfill ``unchecked`` conditions."""
    hits, first, last = ranges
    counts = last - first
    for start, stop in split_into_chunks(np.cumsum(counts), most):
        some = slice(start, stop)
        for pair in expand_ranges(hits[some], first[some], counts[some], positions, most):
            yield PairChunk(*pair, unchecked)
