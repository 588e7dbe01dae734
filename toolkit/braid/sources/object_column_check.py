"""Check that Arrow carries the objects of a column unchanged.

Arrow infers one type for all of them: of a date and a time it makes dates, of bytes and text bytes,
and of times in nanoseconds times in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from math import isnan
from typing import Any

import pyarrow as pa

from braid.errors import RefusedColumnError

_MISSING = {"NoneType", "NAType", "NaTType"}
_LONG = 80
"""Most characters of a value in a message."""
_NESTED = (list, tuple)
_PLAIN = (str, bytes, bool, int, float, Decimal)
"""Types that Arrow carries unchanged if a column has no other."""


def check_objects(stream: str, name: str, values: Iterable[Any], column: pa.ChunkedArray) -> None:
    """Raise RefusedColumnError if a value differs from the one that Arrow made of it.

    Values are compared unless all are of one plain type, because that takes longer than to read
    them.
    """
    kinds = _find_types(values)
    if len(kinds) < 2 and kinds <= {*_PLAIN}:
        return
    for given, carried in zip(values, column.to_pylist(), strict=True):
        if not _is_carried_unchanged(given, carried):
            before, after = map(_quote_short_value, (given, carried))
            problem = f"has the value {before}, which Arrow would store as {after}"
            remedy = "give its values one type (times: pandas.to_datetime)"
            raise RefusedColumnError(stream, name, problem, remedy)


def is_missing(value: Any) -> bool:
    """Return whether pandas or Polars treats the value as NULL."""
    is_nan = isinstance(value, float) and isnan(value)
    return is_nan or type(value).__name__ in _MISSING


def _quote_short_value(value: Any) -> str:
    """Return a value for a message, shortened."""
    text = repr(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."


def _find_types(values: Iterable[Any]) -> set[type]:
    """Return the types of values, and of the elements of those that are lists."""
    kinds = {kind for kind in set(map(type, values)) if kind.__name__ not in _MISSING}
    if not kinds & {*_NESTED}:
        return kinds
    lists = (value for value in values if isinstance(value, _NESTED))
    return kinds.difference(_NESTED).union(*map(_find_types, lists))


def _is_carried_unchanged(given: Any, carried: Any) -> bool:
    """Return whether a value is the one that Arrow made of it."""
    if isinstance(given, dict):
        return isinstance(carried, dict) and all(
            _is_carried_unchanged(given.get(name), carried.get(name)) for name in {*given, *carried}
        )
    if isinstance(given, _NESTED) or getattr(given, "ndim", False):
        return (
            isinstance(carried, list)
            and len(given) == len(carried)
            and all(map(_is_carried_unchanged, given, carried))
        )
    if is_missing(given):
        return is_missing(carried)
    if type(given).__name__ in ("datetime64", "timedelta64"):  # of NumPy, which has no zones
        return bool(given == type(given)(carried))
    return bool(given == carried)
