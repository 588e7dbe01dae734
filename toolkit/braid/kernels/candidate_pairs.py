"""Find candidate pairs of partial results and rows of a block: by an index, or all of them.

Pairs for which a sum of key columns may overflow its type are found, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from braid.condition.access_paths import (
    AccessPath,
    CommonElements,
    Disjunction,
    EditDistance,
    OrderSearch,
    OverflowGuard,
    TextMatch,
    TextPrefix,
)
from braid.condition.predicate import GuardedStep
from braid.kernels.disjunction_pairs import find_disjunction_pairs
from braid.kernels.edit_distance_pairs import find_texts_within_edits
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.order_search import PairChunk, find_pairs_in_order
from braid.kernels.range_search import expand_ranges, search_ranges, split_into_chunks
from braid.kernels.set_overlap import SetColumn, pairs_sharing
from braid.kernels.sum_overflows import Bounds, find_overflows
from braid.kernels.text_prefix_pairs import find_prefix_pairs


def find_candidate_pairs(
    partial: PartialMatches,
    rows: BlockRows,
    stream: int,
    index: AccessPath | None,
    most: int,
) -> Iterator[PairChunk]:
    """Yield the pairs that the index admits, in chunks."""
    size = rows.row_total
    if not size or not len(partial):
        return
    if isinstance(index, OrderSearch):
        yield from find_pairs_in_order(partial, rows, stream, index, most)
        return
    if isinstance(index, CommonElements):
        here, other = (index.left, index.right)[:: 1 if index.left[0] == stream else -1]
        for pair in find_sharing_pairs(
            *partial.set_column(*other), rows.set_column(here[1]), index.min_elements
        ):
            yield PairChunk(*pair)
        return
    if isinstance(index, (Disjunction, TextPrefix, EditDistance)):
        for pair in _find_united_pairs(partial, rows, stream, index, most):
            yield PairChunk(*pair)
        return
    if index is None:
        first = np.zeros(len(partial), np.int64)
        last = np.full(len(partial), size)
        order = None
    else:
        here, other = (index.left, index.right)[:: 1 if index.left[0] == stream else -1]
        stored, order = rows.sorted_keys(here[1])
        first, last = search_ranges(
            partial.column_values(*other), stored, index, here == index.left
        )
    counts = np.maximum(last - first, 0)
    hits = np.flatnonzero(counts)
    ends = np.cumsum(counts[hits])
    for start, stop in split_into_chunks(ends, most):
        some = hits[start:stop]
        for pair in expand_ranges(some, first[some], counts[some], order, most):
            yield PairChunk(*pair)


def _find_united_pairs(
    partial: PartialMatches,
    rows: BlockRows,
    stream: int,
    index: Disjunction | TextMatch,
    most: int,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the pairs that some of several searches find."""
    if isinstance(index, Disjunction):
        return find_disjunction_pairs(partial, rows, stream, index, most)
    if isinstance(index, EditDistance):
        return find_texts_within_edits(partial, rows, stream, index, most)
    return find_prefix_pairs(partial, rows, stream, index, most)


def find_pairs_at_risk(
    partial: PartialMatches,
    rows: BlockRows,
    danger: GuardedStep,
    bounds: Sequence[Bounds],
    stream: int,
    most: int,
) -> Iterator[PairChunk]:
    """Yield candidate pairs of a guarded sum, in chunks.

    They are those of an index. Without one, they are all pairs whose sum may overflow, judging by
    the ``bounds`` of its columns.
    """
    if danger.access_path is not None:
        yield from find_candidate_pairs(partial, rows, stream, danger.access_path, most)
        return
    columns = [
        (bound, rows.numpy_column(n)) if s == stream else (partial.column_values(s, n), bound)
        for (s, n, _), bound in zip(danger.guard.weighted_columns, bounds, strict=True)
    ]
    of_partial, of_rows = zip(*columns, strict=True)
    left = _find_rows_at_risk(danger.guard, of_partial, len(partial))
    right = _find_rows_at_risk(danger.guard, of_rows, rows.row_total)
    counts = np.full(len(left), len(right))
    for start, stop in split_into_chunks(np.cumsum(counts), most) if len(right) else ():
        first = np.zeros(stop - start, np.int64)
        for a, b in expand_ranges(np.arange(start, stop), first, counts[start:stop], None, most):
            yield PairChunk(left[a], right[b])


def _find_rows_at_risk(
    guard: OverflowGuard, columns: Sequence[np.ndarray | Bounds], size: int
) -> np.ndarray:
    """Return the positions that may belong to an overflowing sum."""
    if all(isinstance(column, tuple) for column in columns):
        return np.arange(size)
    return np.flatnonzero(find_overflows(guard, columns))


def find_sharing_pairs(
    sets: SetColumn, at: np.ndarray, stored: SetColumn, least: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs whose sets have at least ``least`` common elements.

    A set that several partial results refer to is counted once.
    """
    chosen, which = np.unique(at, return_inverse=True)
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(len(chosen) + 1))
    for left, right in pairs_sharing(sets, chosen, stored, least):
        times = ends[left + 1] - ends[left]
        done = np.cumsum(times)
        inside = np.arange(done[-1]) - np.repeat(done - times, times)
        yield order[np.repeat(ends[left], times) + inside], np.repeat(right, times)
