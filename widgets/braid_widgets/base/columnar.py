"""Records in columns: each field name is sent to the browser once, not once per record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

Record = TypeVar("Record", bound=NamedTuple)


class Columns(dict[str, list[Any]], Generic[Record]):
    """One list per field of a named tuple, all of the same length."""

    @classmethod
    def from_records(cls, kind: type[Record], records: Iterable[Record]) -> Columns[Record]:
        """Return the columns of these records, which are all of one kind."""
        fields: tuple[str, ...] = kind._fields
        values = [list(column) for column in zip(*records, strict=True)] or [[] for _ in fields]
        return cls(zip(fields, values, strict=True))
