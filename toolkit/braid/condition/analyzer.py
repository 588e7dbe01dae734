"""The interface to type-check a condition, by Spark or by rules for tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from braid.condition.sql_types import SqlType


class Analyzer(Protocol):
    """A type checker for expressions over the streams.

    - ``names``: columns by alias.
    - ``is_ansi``: whether a failed calculation is an error; otherwise it is NULL.
    - ``sized_null``: whether the size of a NULL array is -1, as in Spark without ANSI; otherwise it
      is NULL.
    - ``has_time_zone``: whether the session's time zone differs from UTC.
    """

    names: Mapping[str, Sequence[str]]
    is_ansi: bool
    sized_null: bool
    has_time_zone: bool

    def check_condition(self, tree: exp.Expr, on: str) -> None:
        """Raise PredicateError if the condition is not supported."""
        ...

    def infer_type(self, alias: str, sql: str) -> SqlType | None:
        """Return the type of Spark SQL over a stream's own columns; None if it is invalid."""
        ...

    def infer_arrow_type(self, alias: str, sql: str) -> pa.DataType:
        """Return the column's type in Arrow."""
        ...
