"""What judges a condition and knows the types of its expressions: Spark, or rules for tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from braid.condition.sql_types import SqlType


class Analyzer(Protocol):
    """Judges expressions over the streams; ``names`` are their columns by alias. ``ansi``: what
    cannot be calculated is an error; else it is NULL. ``sized_null``: the size of a NULL array is
    -1, as Spark has it without ANSI, and not NULL. ``zoned``: clocks go by another time zone than
    UTC.
    """

    names: Mapping[str, Sequence[str]]
    is_ansi: bool
    sized_null: bool
    has_time_zone: bool

    def check_condition(self, tree: exp.Expr, on: str) -> None:
        """Raises PredicateError for a condition that is not taken."""
        ...

    def infer_type(self, alias: str, sql: str) -> SqlType | None:
        """The type of Spark SQL over a stream's own columns; None where it means nothing."""
        ...

    def infer_arrow_type(self, alias: str, sql: str) -> pa.DataType:
        """The type of the column in Arrow."""
        ...
