"""Typed values as JSON and back: settings and states of placements, and all else that is stored.

A frozen dataclass is an object by field name, a tuple an array, and a key of a mapping text.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """A value of dataclasses, tuples and mappings as what JSON has: lists, numbers, text, None."""
    return msgspec.json.decode(msgspec.json.encode(value))


def from_plain(data: Any, kind: type[T], what: str = "the value") -> T:
    """The value of a type that ``plain`` made the data of.

    Raises ValueError, with one sentence that begins with ``what``, for data of another shape.
    """
    try:
        return msgspec.convert(data, kind, str_keys=True)
    except msgspec.ValidationError as error:
        found = str(error)
        raise ValueError(f"{what} is not accepted: {found[0].lower()}{found[1:]}") from None


def round_trip(value: T, kind: type[T]) -> T:
    """The value as it is once it has been stored and read."""
    body = msgspec.json.encode(value)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        return from_plain(msgspec.json.decode(body), kind)  # which says what is wrong
