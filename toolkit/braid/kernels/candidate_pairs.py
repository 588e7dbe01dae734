"""Find candidate pairs of partial results and rows of a block: by an index, or all of them.

An index condition over integers or floats is ``lower <= left - right <= upper``. As in Spark, NaN
equals NaN and is the largest number. Pairs for which a sum of key columns overflows its type are
found, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from braid.condition.access_paths import AccessPath, CommonElements, IndexCondition
from braid.condition.predicate import GuardedStep, OverflowGuard
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.set_overlap import SetColumn, pairs_sharing

_ROUNDING = 1e-6
"""Slack of an inexact condition, relative to the numbers that it adds."""
_WORTH = 16
"""For up to this many stored values per probing value, counting stored values takes less than half
the time of searching. The more values probe, the greater the gain.
"""


def evaluate_condition(a: np.ndarray, b: np.ndarray, link: IndexCondition) -> np.ndarray:
    """Return, by position, whether an exact condition holds for aligned keys.

    Without an offset, order is compared directly. NaN equals NaN and is the largest number.
    """
    if link.lower == link.upper == 0 and not any(link.open_bounds):
        a_nan, b_nan = _find_nan(a), _find_nan(b)
        return a == b if a_nan is None or b_nan is None else (a == b) | (a_nan & b_nan)
    keep: np.ndarray | None = None
    if link.lower > -np.inf:
        above = _compare_at_least(a, _shift_clipped(b, link.lower), link.open_bounds[0])
        keep = _exclude_from_mask(above, _find_overflowing(b, max(link.lower, 0)))
    if link.upper < np.inf:
        below = _compare_at_least(_shift_clipped(b, link.upper), a, link.open_bounds[1])
        below = _exclude_from_mask(below, _find_overflowing(b, min(link.upper, 0)))
        keep = below if keep is None else keep & below
    return np.ones(len(a), bool) if keep is None else keep


def _exclude_from_mask(mask: np.ndarray, other: np.ndarray | None) -> np.ndarray:
    return mask if other is None else mask & ~other


def _find_nan(values: np.ndarray) -> np.ndarray | None:
    """Return where a value is NaN; None: integers have none. Only NaN differs from itself."""
    return None if values.dtype.kind == "i" else np.asarray(values != values)


def _compare_at_least(a: np.ndarray, b: np.ndarray, strict: bool) -> np.ndarray:
    above, a_nan = a > b if strict else a >= b, _find_nan(a)
    if a_nan is None:
        return above
    return above | (_exclude_from_mask(a_nan, _find_nan(b)) if strict else a_nan)


def _shift_clipped(values: np.ndarray, by: float) -> np.ndarray:
    """Return values + by, clipped to the integer range."""
    if by == 0 or values.dtype.kind == "f":
        return values + by
    limits = np.iinfo(values.dtype)
    by = int(max(min(by, 1 << 64), -1 << 64))
    if abs(by) > limits.max:
        return _shift_clipped(_shift_clipped(values, by // 2), by - by // 2)
    if not _has_overflow(values, by):
        return values + by
    clipped = np.minimum(values, limits.max - by) if by > 0 else np.maximum(values, limits.min - by)
    return clipped + by


def _find_overflowing(values: np.ndarray, by: float) -> np.ndarray | None:
    """Return where values + by leaves the integer range; None: nowhere.

    No integer satisfies the bound there.
    """
    if by == 0 or values.dtype.kind == "f" or not _has_overflow(values, by):
        return None
    limits = np.iinfo(values.dtype)
    return values > limits.max - by if by > 0 else values < limits.min - by


def _has_overflow(values: np.ndarray, by: float) -> bool:
    """Return whether some value + by leaves the integer range."""
    limits = np.iinfo(values.dtype)
    if by > 0:
        return bool(int(values.max(initial=limits.min)) > limits.max - by)
    return bool(int(values.min(initial=limits.max)) < limits.min - by)


def search_ranges(
    probe: np.ndarray, stored: np.ndarray, link: IndexCondition, left: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each ``probe`` value, the range [first, last) of matching ``stored`` values.

    It is found by binary search. ``left``: the stored values are its left side.
    """
    is_integral = probe.dtype.kind == stored.dtype.kind == "i"
    if is_integral and link.lower == link.upper == 0 and not any(link.open_bounds):
        return _search_equal_ranges(probe, stored)
    low, high, strict = link.lower, link.upper, link.open_bounds
    if not left:
        low, high, strict = -high, -low, strict[::-1]
    first = np.zeros(len(probe), np.int64)
    last = np.full(len(probe), len(stored), np.int64)
    if low > -np.inf:
        side: Literal["left", "right"] = "right" if strict[0] and link.is_exact else "left"
        first = np.searchsorted(stored, _shift_with_slack(probe, low, link, -1), side)
        if (beyond := _find_overflowing(probe, max(low, 0))) is not None:
            first = np.where(beyond, len(stored), first)
    if high < np.inf:
        side = "left" if strict[1] and link.is_exact else "right"
        last = np.searchsorted(stored, _shift_with_slack(probe, high, link, 1), side)
        if (beyond := _find_overflowing(probe, min(high, 0))) is not None:
            last = np.where(beyond, 0, last)
    return first, last


def _search_equal_ranges(probe: np.ndarray, stored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same for equality of integers.

    If many values probe and the stored ones are dense, the occurrences of each stored value are
    counted. Otherwise the end of a range is searched only for values that occur.
    """
    span = int(stored[-1]) - int(stored[0]) + 1 if len(stored) else 0
    if span and len(stored) + span <= _WORTH * len(probe):
        return _count_equal_ranges(
            probe.astype(np.int64, copy=False), stored.astype(np.int64, copy=False)
        )
    first = np.searchsorted(stored, probe)
    there = np.flatnonzero(stored[np.minimum(first, len(stored) - 1)] == probe)
    last = first.copy()
    last[there] = np.searchsorted(stored, probe[there], "right")
    return first, last


def _count_equal_ranges(probe: np.ndarray, stored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranges by counting the stored values at each distance from the first."""
    further = int(stored[-1] - stored[0]) + 1
    counts = np.bincount(stored - stored[0], minlength=further + 1)
    away = (probe - stored[0]).view(np.uint64)  # values below become large numbers
    at = np.minimum(away, np.uint64(further)).view(np.int64)
    last = np.cumsum(counts)[at]
    return last - counts[at], last


def _shift_with_slack(
    probe: np.ndarray, by: float, link: IndexCondition, direction: int
) -> np.ndarray:
    """Return probe + by, with slack if rounding could hide a match (a residual decides)."""
    shifted = _shift_clipped(probe, by)
    if link.is_exact or probe.dtype.kind != "f":
        return shifted
    slack = _ROUNDING * (np.abs(probe) + abs(by))
    return shifted + direction * np.where(np.isfinite(slack), slack, 0)


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
    index: AccessPath | None,
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
    if danger.access_path is not None:
        yield from find_candidate_pairs(partial, rows, stream, danger.access_path, most)
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
