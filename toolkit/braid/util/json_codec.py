"""Convert typed values to JSON and back, such as settings and states of placements.

A frozen dataclass is an object by field name, a tuple an array, and a key of a mapping text.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Return a value as plain JSON values: dictionaries, lists, numbers, text, None."""
    return msgspec.json.decode(msgspec.json.encode(value))


def from_plain(data: Any, kind: type[T], what: str = "the value") -> T:
    """Return the value of a type from the data that ``to_plain`` returned.

    Raises ValueError, which begins with ``what``, for data of another shape.
    """
    try:
        return msgspec.convert(data, kind, str_keys=True)
    except msgspec.ValidationError as error:
        message = str(error)
        raise ValueError(f"{what} is not accepted: {message[0].lower()}{message[1:]}") from None


def round_trip(value: T, kind: type[T]) -> T:
    """Return the value after it has been stored and read."""
    body = msgspec.json.encode(value)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        return from_plain(msgspec.json.decode(body), kind)  # raises with the reason
