"""Rank rows by several columns: the rule that decides between partners of equal order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_DENSE = {"sort_keys": [("", "ascending", "at_start")], "tiebreaker": "dense"}


def rank_rows(columns: Sequence[pa.Array], size: int) -> npt.NDArray[np.int64]:
    """Return the rank of each of ``size`` rows; equal rows have equal ranks.

    Earlier columns decide first. NULL is the least value of a column and NaN the greatest; lists
    and maps are compared element by element.
    """
    codes = [code for column in columns for code in _rank_column_values(column)]
    if not codes or not size:
        return np.zeros(size, np.int64)
    order = np.lexsort(codes[::-1])
    is_new = np.zeros(size, np.int64)
    for code in codes:
        ordered = code[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    ranks = np.empty(size, np.int64)
    ranks[order] = np.cumsum(is_new)
    return ranks


def _rank_column_values(column: pa.Array) -> list[np.ndarray]:
    """Return the ranks of a column's values; of a struct, of its fields in order."""
    kind = column.type
    if pa.types.is_struct(kind):
        is_there = column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        return [
            is_there,
            *(code for field in column.flatten() for code in _rank_column_values(field)),
        ]
    if pa.types.is_null(kind):
        return []
    if pa.types.is_floating(kind):
        return [_rank_float_values(column)]
    if pa.types.is_nested(kind):
        return [_rank_nested_values(column)]
    return [np.asarray(pc.rank(column, **_DENSE).to_numpy())]


def _rank_float_values(column: pa.Array) -> np.ndarray:
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    ranks = np.zeros(len(column), np.int64)
    values = column.drop_null().to_numpy(zero_copy_only=False)
    ranks[valid] = 1 + np.unique(values, return_inverse=True)[1]
    return ranks


def _rank_nested_values(column: pa.Array) -> np.ndarray:
    keys = [_make_sort_key(value) for value in column.to_pylist()]
    rank = {key: n for n, key in enumerate(sorted({*keys}))}
    return np.array([rank[key] for key in keys], np.int64)


def _make_sort_key(value: Any) -> tuple[Any, ...]:
    """Return a key that sorts values of one type: NULL first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, tuple(map(_make_sort_key, value.values())))
    if isinstance(value, list | tuple):
        return (1, tuple(map(_make_sort_key, value)))
    return (2,) if value != value else (1, value)
