"""Which values a link admits: ``lo <= left - right <= hi`` over whole numbers and floats as Spark
compares them. NaN equals NaN and is the largest.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from braid.condition.predicate import Link

_ROUNDING = 1e-6
"""How much further out an inexact link looks, relative to the numbers that it adds."""
_WORTH = 16
"""For each value that probes, so many of a block may be gone through to count what there is: that
takes less than half of what searching does, and the more probe, the less.
"""


def holds(a: np.ndarray, b: np.ndarray, link: Link) -> np.ndarray:
    """An exact link on aligned keys. Order is compared directly where there is no offset; NaN
    equals NaN and is the largest.
    """
    if link.lo == link.hi == 0 and not any(link.strict):
        a_nan, b_nan = _nan(a), _nan(b)
        return a == b if a_nan is None or b_nan is None else (a == b) | (a_nan & b_nan)
    keep: np.ndarray | None = None
    if link.lo > -np.inf:
        above = _at_least(a, _shift(b, link.lo), link.strict[0])
        keep = _unless(above, _beyond(b, max(link.lo, 0)))
    if link.hi < np.inf:
        below = _at_least(_shift(b, link.hi), a, link.strict[1])
        below = _unless(below, _beyond(b, min(link.hi, 0)))
        keep = below if keep is None else keep & below
    return np.ones(len(a), bool) if keep is None else keep


def _unless(mask: np.ndarray, other: np.ndarray | None) -> np.ndarray:
    return mask if other is None else mask & ~other


def _nan(values: np.ndarray) -> np.ndarray | None:
    """Where a value is NaN; None: nowhere, as it is with whole numbers. Nothing else differs from
    itself, whatever the type.
    """
    return None if values.dtype.kind == "i" else np.asarray(values != values)


def _at_least(a: np.ndarray, b: np.ndarray, strict: bool) -> np.ndarray:
    above, a_nan = a > b if strict else a >= b, _nan(a)
    if a_nan is None:
        return above
    return above | (_unless(a_nan, _nan(b)) if strict else a_nan)


def _shift(values: np.ndarray, by: float) -> np.ndarray:
    """values + by, clipped at the ends of the integer range."""
    if by == 0 or values.dtype.kind == "f":
        return values + by
    limits = np.iinfo(values.dtype)
    by = int(max(min(by, 1 << 64), -1 << 64))
    if abs(by) > limits.max:
        return _shift(_shift(values, by // 2), by - by // 2)
    if not _overflows(values, by):
        return values + by
    clipped = np.minimum(values, limits.max - by) if by > 0 else np.maximum(values, limits.min - by)
    return clipped + by


def _beyond(values: np.ndarray, by: float) -> np.ndarray | None:
    """Where values + by is past the end of the integer range, so that no integer is as far out;
    None: nowhere.
    """
    if by == 0 or values.dtype.kind == "f" or not _overflows(values, by):
        return None
    limits = np.iinfo(values.dtype)
    return values > limits.max - by if by > 0 else values < limits.min - by


def _overflows(values: np.ndarray, by: float) -> bool:
    """Whether some value + by is past the end of the integer range."""
    limits = np.iinfo(values.dtype)
    if by > 0:
        return bool(int(values.max(initial=limits.min)) > limits.max - by)
    return bool(int(values.min(initial=limits.max)) < limits.min - by)


def ranges(
    probe: np.ndarray, stored: np.ndarray, link: Link, left: bool
) -> tuple[np.ndarray, np.ndarray]:
    """By binary search, for each value of ``probe``, the first position and the one past the last
    in the sorted ``stored`` values that satisfy the link. ``left``: the stored values are its left
    side.
    """
    whole = probe.dtype.kind == stored.dtype.kind == "i"
    if whole and link.lo == link.hi == 0 and not any(link.strict):
        return _equal(probe, stored)
    low, high, strict = link.lo, link.hi, link.strict
    if not left:
        low, high, strict = -high, -low, strict[::-1]
    first = np.zeros(len(probe), np.int64)
    last = np.full(len(probe), len(stored), np.int64)
    if low > -np.inf:
        side: Literal["left", "right"] = "right" if strict[0] and link.exact else "left"
        first = np.searchsorted(stored, _widen(probe, low, link, -1), side)
        if (beyond := _beyond(probe, max(low, 0))) is not None:
            first = np.where(beyond, len(stored), first)
    if high < np.inf:
        side = "left" if strict[1] and link.exact else "right"
        last = np.searchsorted(stored, _widen(probe, high, link, 1), side)
        if (beyond := _beyond(probe, min(high, 0))) is not None:
            last = np.where(beyond, 0, last)
    return first, last


def _equal(probe: np.ndarray, stored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for equality of whole numbers. Where many probe and what is stored lies close
    together, how many there are of each is counted; else only what is there is searched for its
    end.
    """
    span = int(stored[-1]) - int(stored[0]) + 1 if len(stored) else 0
    if span and len(stored) + span <= _WORTH * len(probe):
        return _counted(probe.astype(np.int64, copy=False), stored.astype(np.int64, copy=False))
    first = np.searchsorted(stored, probe)
    there = np.flatnonzero(stored[np.minimum(first, len(stored) - 1)] == probe)
    last = first.copy()
    last[there] = np.searchsorted(stored, probe[there], "right")
    return first, last


def _counted(probe: np.ndarray, stored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By the number of stored values at each distance from the first, and none further on."""
    further = int(stored[-1] - stored[0]) + 1
    counts = np.bincount(stored - stored[0], minlength=further + 1)
    away = (probe - stored[0]).view(np.uint64)  # what is below lies far above here
    at = np.minimum(away, np.uint64(further)).view(np.int64)
    last = np.cumsum(counts)[at]
    return last - counts[at], last


def _widen(probe: np.ndarray, by: float, link: Link, direction: int) -> np.ndarray:
    """probe + by; where rounding could hide a match, a little further out (the residual
    decides).
    """
    shifted = _shift(probe, by)
    if link.exact or probe.dtype.kind != "f":
        return shifted
    slack = _ROUNDING * (np.abs(probe) + abs(by))
    return shifted + direction * np.where(np.isfinite(slack), slack, 0)
