"""Positions that sort keys."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_DIGIT, _MOST_BITS = 16, 32
"""NumPy sorts 16-bit integers by counting, in a third of the time of a comparison sort. Integers of
up to two such digits are therefore sorted digit by digit.
"""


def sort_positions(
    keys: npt.NDArray[np.generic], groups: npt.NDArray[np.integer] | None = None
) -> npt.NDArray[np.intp]:
    """Return the positions that sort the keys.

    With ``groups`` (integers from 0), keys are sorted by group first.
    """
    above, bits = _offsets_from_minimum(keys)
    if above is not None and groups is not None:
        more = int(groups.max()).bit_length()
        if bits + more <= _MOST_BITS:
            above |= groups.astype(np.uint32) << np.uint32(bits)
            bits, groups = bits + more, None
    order = np.argsort(keys) if above is None else _sort_by_digits(above, bits)
    return order if groups is None else order[np.argsort(groups[order], kind="stable")]


def _offsets_from_minimum(
    keys: npt.NDArray[np.generic],
) -> tuple[npt.NDArray[np.uint32] | None, int]:
    """Return the distance of integers from the least, and its bits; None if it is too large."""
    if keys.dtype.kind != "i" or not len(keys):
        return None, 0
    low, high = int(keys.min()), int(keys.max())
    bits = (high - low).bit_length()
    if bits > _MOST_BITS:
        return None, bits
    return (keys.astype(np.int64, copy=False) - low).astype(np.uint32), bits


def _sort_by_digits(numbers: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.intp]:
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    if bits > _DIGIT:
        digit = (numbers >> np.uint32(_DIGIT)).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
    return order


def sort_column(column: pa.Array) -> npt.NDArray[np.intp]:
    """Return the positions that sort a column. NULL comes last."""
    if not column.null_count:
        return np.argsort(column.to_numpy(zero_copy_only=False), kind="stable")
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    there = np.flatnonzero(valid)
    order = np.argsort(column.drop_null().to_numpy(), kind="stable")
    return np.concatenate([there[order], np.flatnonzero(~valid)])
