"""Search sorted keys for the ranges that an index condition admits, and expand ranges to pairs.

An index condition over integers or floats is ``lower <= left - right <= upper``. As in Spark, NaN
equals NaN and is the largest number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from braid.condition.access_paths import IndexCondition

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


def evaluate_search(
    probe: np.ndarray, stored: np.ndarray, link: IndexCondition, left: bool
) -> np.ndarray:
    """Return, by position, whether ``search_ranges`` admits a stored value for a probing one.

    It admits more than an inexact condition, whose residual decides.
    """
    if link.is_exact:
        return evaluate_condition(*((stored, probe) if left else (probe, stored)), link)
    low, high = (link.lower, link.upper) if left else (-link.upper, -link.lower)
    keep = np.ones(len(probe), bool)
    if low > -np.inf:
        above = _compare_at_least(stored, _shift_with_slack(probe, low, link, -1), False)
        keep &= _exclude_from_mask(above, _find_overflowing(probe, max(low, 0)))
    if high < np.inf:
        below = _compare_at_least(_shift_with_slack(probe, high, link, 1), stored, False)
        keep &= _exclude_from_mask(below, _find_overflowing(probe, min(high, 0)))
    return keep


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
    low, high, strict = link.lower, link.upper, link.open_bounds
    if not left:
        low, high, strict = -high, -low, strict[::-1]
    if (is_integral or link.is_exact) and not _may_reach(probe, stored, low, high):
        return np.zeros(len(probe), np.int64), np.zeros(len(probe), np.int64)
    if is_integral and low == high == 0 and not any(strict):
        return search_equal_ranges(probe, stored)
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


def _may_reach(probe: np.ndarray, stored: np.ndarray, low: float, high: float) -> bool:
    """Return whether the least and greatest values allow a match; True if one of them is NaN.

    A block whose keys are elsewhere is left out without a search.
    """
    if not len(probe) or not len(stored):
        return False
    ends = (probe.min(), probe.max(), stored[0], stored[-1])
    least, greatest, begin, end = (each.item() for each in ends)
    return not (greatest + high < begin or least + low > end)


def search_equal_ranges(probe: np.ndarray, stored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


def concat_position_ranges(first: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the positions of ranges, one after the other.

    ``first``, ``counts``: begin and length of each range.
    """
    starts = np.cumsum(counts) - counts
    return np.asarray(np.arange(int(counts.sum())) + np.repeat(first - starts, counts))


def expand_ranges(
    hits: np.ndarray, first: np.ndarray, counts: np.ndarray, order: np.ndarray | None, most: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the pairs of each position in ``hits`` with its range of sorted rows, in chunks.

    - ``first``, ``counts``: begin and length of each range.
    - ``order``: positions of the sorted rows; None: as stored.
    - ``most``: maximum number of pairs of a chunk.
    """
    left = np.repeat(hits, counts)
    right = concat_position_ranges(first, counts)
    if order is not None:
        right = order[right]
    for at in range(0, len(right), most):  # a single probe may exceed a chunk
        yield left[at : at + most], right[at : at + most]
