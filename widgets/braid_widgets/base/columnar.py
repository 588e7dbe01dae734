"""Records as they go to the browser: by column, so that a name is sent once and not for each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

Record = TypeVar("Record", bound=NamedTuple)


class Columns(dict[str, list[Any]], Generic[Record]):
    """A list for each field of a named tuple, all of one length."""

    @classmethod
    def from_records(cls, kind: type[Record], records: Iterable[Record]) -> Columns[Record]:
        """The columns of these records, which are of one kind."""
        fields: tuple[str, ...] = kind._fields
        values = [list(column) for column in zip(*records, strict=True)] or [[] for _ in fields]
        return cls(zip(fields, values, strict=True))
