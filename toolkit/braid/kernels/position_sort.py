"""Positions of rows: all of them, or those that sort keys; and different numbers in order."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_DIGIT, _MOST_BITS = 16, 32
"""NumPy sorts 16-bit integers by counting, in a third of the time of a comparison sort. Integers of
up to two such digits are therefore sorted digit by digit.
"""
_FEW = 1 << 10
"""Rows up to which the positions of all rows are kept for each number of rows."""
_MOST_STABLE_BITS = 48
"""A stable sort is slower: three digits are sorted faster than by comparisons."""


def sort_positions(
    keys: npt.NDArray[np.generic], groups: npt.NDArray[np.integer] | None = None
) -> npt.NDArray[np.intp]:
    """Return the positions that sort the keys.

    With ``groups`` (integers from 0), keys are sorted by group first.
    """
    above, bits = _offsets_from_minimum(keys, _MOST_BITS)
    if above is not None and groups is not None:
        more = int(groups.max()).bit_length()
        if bits + more <= _MOST_BITS:
            above |= groups.astype(np.uint32) << np.uint32(bits)
            bits, groups = bits + more, None
    order = np.argsort(keys) if above is None else _sort_by_digits(above, bits)
    return order if groups is None else order[np.argsort(groups[order], kind="stable")]


def sort_stably(keys: npt.NDArray[np.generic]) -> npt.NDArray[np.intp]:
    """Return the positions that sort the keys. Equal keys keep their order."""
    above, bits = _offsets_from_minimum(keys, _MOST_STABLE_BITS)
    return np.argsort(keys, kind="stable") if above is None else _sort_by_digits(above, bits)


def _offsets_from_minimum(
    keys: npt.NDArray[np.generic], most_bits: int
) -> tuple[npt.NDArray[np.unsignedinteger] | None, int]:
    """Return the distance of integers from the least, and its bits; None if it is too large."""
    if keys.dtype.kind != "i" or not len(keys):
        return None, 0
    low, high = int(keys.min()), int(keys.max())
    bits = (high - low).bit_length()
    if bits > most_bits:
        return None, bits
    above = keys.astype(np.int64, copy=False) - low
    return above.astype(np.uint32 if bits <= _MOST_BITS else np.uint64), bits


def _sort_by_digits(numbers: npt.NDArray[np.unsignedinteger], bits: int) -> npt.NDArray[np.intp]:
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    for shift in range(_DIGIT, bits, _DIGIT):
        digit = (numbers >> numbers.dtype.type(shift)).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
    return order


def sort_numbers(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the numbers in order."""
    return numbers[sort_positions(numbers)]


def sort_distinct(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the different numbers in order.

    ``np.unique`` hashes them, which takes 20 times as long for a million.
    """
    ordered = sort_numbers(numbers)
    is_new = np.ones(len(ordered), bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def sort_column(column: pa.Array) -> npt.NDArray[np.intp]:
    """Return the positions that sort a column. NULL comes last."""
    if not column.null_count:
        return sort_stably(column.to_numpy(zero_copy_only=False))
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    there = np.flatnonzero(valid)
    order = sort_stably(column.drop_null().to_numpy(zero_copy_only=False))
    return np.concatenate([there[order], np.flatnonzero(~valid)])


def list_positions(size: int) -> np.ndarray:
    """Return the positions of all rows, read-only as blocks of one size share them."""
    return _list_few_positions(size) if size <= _FEW else _make_positions(size)


def _make_positions(size: int) -> np.ndarray:
    positions = np.arange(size)
    positions.flags.writeable = False
    return positions


_list_few_positions = lru_cache(_FEW)(_make_positions)
