"""Find candidate pairs of partial results and rows of a block: by an index, or all of them.

Also find pairs for which a sum of key columns overflows its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from braid.condition.predicate import CommonElements, GuardedStep, IndexCondition, OverflowGuard
from braid.kernels.block_rows import BlockRows, PartialMatches
from braid.kernels.key_ranges import search_ranges
from braid.kernels.set_overlap import SetColumn, pairs_sharing

Bounds = tuple[int, int]
"""The least and the greatest value of a column."""
_HALF = 32
Split = tuple[np.ndarray | np.int64, np.ndarray | np.int64]
"""Integers of more than 64 bits: the multiples of 2^32, and the rest."""


def may_overflow(guard: OverflowGuard, bounds: Sequence[Bounds]) -> bool:
    """Return whether values within the ``bounds`` of the guard's columns may overflow its type."""
    low = high = 0
    for (_, _, factor), each in zip(guard.weighted_columns, bounds, strict=True):
        low += min(factor * each[0], factor * each[1])
        high += max(factor * each[0], factor * each[1])
    return low < guard.lower_limit or high > guard.upper_limit


def find_overflows(guard: OverflowGuard, columns: Sequence[np.ndarray | Bounds]) -> np.ndarray:
    """Return, by position, whether the aligned columns of the guard overflow its type.

    A column given by its bounds may have any value between them.
    """
    low: Split = (np.int64(0), np.int64(0))
    high = low
    for (_, _, factor), column in zip(guard.weighted_columns, columns, strict=True):
        values = column if isinstance(column, tuple) else (column, column)
        first, last = values if factor > 0 else values[::-1]
        low = _add_product(low, first, factor)
        high = _add_product(high, last, factor)
    return _compare_less(low, _split_number(guard.lower_limit)) | _compare_less(
        _split_number(guard.upper_limit), high
    )


def _split_number(value: np.ndarray | int) -> Split:
    if isinstance(value, int):
        return np.int64(value >> _HALF), np.int64(value & ((1 << _HALF) - 1))
    return value >> _HALF, value & ((1 << _HALF) - 1)


def _add_product(total: Split, value: np.ndarray | int, factor: int) -> Split:
    above, below = _split_number(value)
    rest = total[1] + factor * below
    return total[0] + factor * above + (rest >> _HALF), rest & ((1 << _HALF) - 1)


def _compare_less(a: Split, b: Split) -> np.ndarray:
    return np.asarray((a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1])))


def find_candidate_pairs(
    partial: PartialMatches,
    rows: BlockRows,
    stream: int,
    index: IndexCondition | CommonElements | None,
    most: int,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the pairs that the index admits, in chunks.

    A pair is (position in the partial results, position in the block).
    """
    size = rows.batch.num_rows
    if not size or not len(partial):
        return
    if isinstance(index, CommonElements):
        here, other = (index.left, index.right)[:: 1 if index.left[0] == stream else -1]
        yield from find_sharing_pairs(
            *partial.set_column(*other), rows.set_column(here[1]), index.min_elements
        )
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
        yield from _expand_ranges(
            hits[start:stop], first[hits[start:stop]], counts[hits[start:stop]], order, most
        )


def find_pairs_at_risk(
    partial: PartialMatches,
    rows: BlockRows,
    danger: GuardedStep,
    bounds: Sequence[Bounds],
    stream: int,
    most: int,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield candidate pairs of a guarded sum, in chunks.

    They are those of an index. Without one, they are all pairs whose sum may overflow, judging by
    the ``bounds`` of its columns.
    """
    if danger.index is not None:
        yield from find_candidate_pairs(partial, rows, stream, danger.index, most)
        return
    columns = [
        (bound, rows.numpy_column(n)) if s == stream else (partial.column_values(s, n), bound)
        for (s, n, _), bound in zip(danger.guard.weighted_columns, bounds, strict=True)
    ]
    of_partial, of_rows = zip(*columns, strict=True)
    left = _find_rows_at_risk(danger.guard, of_partial, len(partial))
    right = _find_rows_at_risk(danger.guard, of_rows, rows.batch.num_rows)
    counts = np.full(len(left), len(right))
    for start, stop in split_into_chunks(np.cumsum(counts), most) if len(right) else ():
        first = np.zeros(stop - start, np.int64)
        for a, b in _expand_ranges(np.arange(start, stop), first, counts[start:stop], None, most):
            yield left[a], right[b]


def _find_rows_at_risk(
    guard: OverflowGuard, columns: Sequence[np.ndarray | Bounds], size: int
) -> np.ndarray:
    """Return the positions that may belong to an overflowing sum."""
    if all(isinstance(column, tuple) for column in columns):
        return np.arange(size)
    return np.flatnonzero(find_overflows(guard, columns))


def split_into_chunks(ends: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of the values with these running sums.

    The values of each range sum to at most ``most``, unless it is a single value.
    """
    start = 0
    while start < len(ends):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + most, "right")))
        yield start, stop
        start = stop


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


def _expand_ranges(
    hits: np.ndarray, first: np.ndarray, counts: np.ndarray, order: np.ndarray | None, most: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    total = int(counts.sum())
    starts = np.cumsum(counts) - counts
    left = np.repeat(hits, counts)
    right = np.arange(total) + np.repeat(first - starts, counts)
    if order is not None:
        right = order[right]
    for at in range(0, total, most):  # a single probe may exceed a chunk
        yield left[at : at + most], right[at : at + most]
