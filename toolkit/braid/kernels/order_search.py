"""Find candidate pairs by several index conditions on one order of a block's rows.

The pairs of a probe are a range of positions in the order: the intersection of the ranges that its
conditions admit. A condition on the ``ranked`` column keeps some rows of the range. If most are
kept, they are checked one by one; otherwise a tree over the ranks finds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from braid.condition.access_paths import IndexCondition, OrderSearch
from braid.kernels.block_orders import OrderedRows
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.range_search import expand_ranges, search_ranges, split_into_chunks

_SAMPLED = 512
"""Candidates that are sampled to decide how to search for ranks."""
_MOST_CHECKED = 3
"""Candidates are checked one by one if at most this many are for one result."""
_FREE = 8
"""They are also checked if at most one in this many probes has a candidate that is no result."""


class PairChunk(NamedTuple):
    """Pairs of a position in the partial results and one in the block.

    - ``unchecked``: conditions of the access path that the pairs may not fulfil.
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


def find_pairs_in_order(
    partial: PartialMatches, rows: BlockRows, stream: int, search: OrderSearch, most: int
) -> Iterator[PairChunk]:
    """Yield the pairs that the search admits, in chunks of at most ``most``.

    If the block does not store the order, it is searched by its column alone.
    """
    keys, positions = rows.sorted_keys(search.order.column)
    ordered = rows.find_order(search.order)
    if ordered is not None:
        keys, positions = ordered.sorted_keys, ordered.positions
    everything = _Ranges(
        np.arange(len(partial)), np.zeros(len(partial), np.int64), np.full(len(partial), len(keys))
    )
    ranges = _intersect_ranges(
        everything, partial, keys, search.column_conditions, stream
    ).keep_filled()
    if ordered is None or not _has_single_runs(search, keys):
        others = search.within_conditions + search.ranked_conditions
        yield from _expand_chunks(ranges, positions, most, others)
        return
    if search.within_conditions:
        ranges = _search_within(ranges, ordered, partial, search.within_conditions, stream)
    if search.ranked_conditions:
        yield from _search_ranks(ranges, ordered, partial, search.ranked_conditions, stream, most)
    else:
        yield from _expand_chunks(ranges, positions, most)


def _has_single_runs(search: OrderSearch, keys: np.ndarray) -> bool:
    """Return whether rows that an equality finds have one key. Slack for rounding finds more."""
    equality = search.column_conditions[0]
    return not search.within_conditions or equality.is_exact or keys.dtype.kind == "i"


def _intersect_ranges(
    ranges: _Ranges,
    partial: PartialMatches,
    ascending: np.ndarray,
    conditions: Sequence[IndexCondition],
    stream: int,
) -> _Ranges:
    """Return ranges of ``ascending`` values that also fulfil the conditions."""
    hits, first, last = ranges
    for condition in conditions:
        is_left = condition.left[0] == stream
        other = condition.right if is_left else condition.left
        probing = (
            partial.column_values(*other)
            if len(hits) == len(partial)
            else partial.values_at(*other, hits)
        )
        begin, end = search_ranges(probing, ascending, condition, is_left)
        first, last = np.maximum(first, begin), np.minimum(last, end)
    return _Ranges(hits, first, last)


def _search_within(
    ranges: _Ranges,
    ordered: OrderedRows,
    partial: PartialMatches,
    conditions: Sequence[IndexCondition],
    stream: int,
) -> _Ranges:
    """Return the parts of runs of equal keys that fulfil conditions on the ``within`` column."""
    ascending = ordered.within_values
    hits, begins, _ = ranges
    everything = _Ranges(hits, np.zeros(len(hits), np.int64), np.full(len(hits), len(ascending)))
    ranks = _intersect_ranges(everything, partial, ascending, conditions, stream)
    base = begins * (len(ascending) + 1)
    first, last = (
        np.searchsorted(ordered.packed_ranks, base + bound) for bound in (ranks.first, ranks.last)
    )
    return _Ranges(hits, first, last).keep_filled()


def _search_ranks(
    ranges: _Ranges,
    ordered: OrderedRows,
    partial: PartialMatches,
    conditions: Sequence[IndexCondition],
    stream: int,
    most: int,
) -> Iterator[PairChunk]:
    """Yield the pairs of the ranges that also fulfil conditions on the ``ranked`` column."""
    ascending, hits = ordered.ranked_values, ranges.hits
    everything = _Ranges(hits, np.zeros(len(hits), np.int64), np.full(len(hits), len(ascending)))
    ranks = _intersect_ranges(everything, partial, ascending, conditions, stream)
    if _should_check(ranges, ranks, ordered.ranked_ranks, len(partial)):
        yield from _expand_chunks(ranges, ordered.positions, most, conditions)
        return
    first, last = ranges.first, ranges.last
    if not ranks.first.any():
        pairs = ordered.least_ranks.find_pairs(first, last, len(ascending) - ranks.last, most)
    elif (ranks.last >= len(ascending)).all():
        pairs = ordered.greatest_ranks.find_pairs(first, last, ranks.first, most)
    else:
        pairs = ordered.sorted_ranks.find_pairs(first, last, ranks.first, ranks.last, most)
    for probes, at in pairs:
        yield PairChunk(hits[probes], at if ordered.positions is None else ordered.positions[at])


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
    conditions: Sequence[IndexCondition] = (),
) -> Iterator[PairChunk]:
    """Yield all pairs of the ranges, in chunks. They may not fulfil these conditions.

    Inexact ones are not checked, as a residual decides.
    """
    unchecked = tuple(c for c in conditions if c.is_exact)
    hits, first, last = ranges
    counts = last - first
    for start, stop in split_into_chunks(np.cumsum(counts), most):
        some = slice(start, stop)
        for pair in expand_ranges(hits[some], first[some], counts[some], positions, most):
            yield PairChunk(*pair, unchecked)
