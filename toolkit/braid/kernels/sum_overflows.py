"""Find pairs for which a sum of key columns overflows its type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from braid.condition.access_paths import OverflowGuard

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
