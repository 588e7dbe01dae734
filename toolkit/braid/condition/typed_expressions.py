"""Expressions of Spark SQL as DuckDB SQL of a known type: what all rules for that build on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NoReturn

from sqlglot import exp

from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import (
    NUMERIC,
    VOID,
    SqlType,
    common_type,
    compares_alike,
    duckdb_type_name,
)

Typed = tuple[str, SqlType]
"""DuckDB SQL and Spark's type."""


class UnsupportedExpressionError(ValueError):
    """An expression that is not known to mean the same: its text, and why."""

    def __init__(self, node: exp.Expr, why: str = "") -> None:
        self.text, self.why = node.sql(dialect=SparkSql).replace("`", ""), why
        super().__init__(f"{self.text!r}{why}")


class TypedSql(ABC):
    """Casts and common types. ``ours`` says that the text is made by the parser, which also uses
    hashes, and casts that it knows to lose nothing. ``by_zero`` is DuckDB SQL of what a division by
    0 gives; where there is none, one must not divide by what may be 0.
    """

    def __init__(self, ours: bool, by_zero: str) -> None:
        self.ours, self.by_zero = ours, by_zero

    @abstractmethod
    def compile_expression(self, node: exp.Expr) -> Typed:
        """Raises Unknown for what is not known to mean the same in both."""

    def _raise_unsupported(self, node: exp.Expr, why: str = "") -> NoReturn:
        raise UnsupportedExpressionError(node, why)

    def _compile_as(self, node: exp.Expr, kind: SqlType, cast: bool = False) -> str:
        """The expression as this type; a number may be ``cast`` to it."""
        sql, found = self.compile_expression(node)
        if found in (kind, VOID):
            return sql
        if not cast or found.name not in NUMERIC:
            self._raise_unsupported(node, f" is of type {found} where {kind} is needed")
        return self._cast_to((sql, found), kind)

    def _cast_to(self, typed: Typed, kind: SqlType) -> str:
        sql, found = typed
        return sql if found == kind else f"CAST({sql} AS {duckdb_type_name(kind)})"

    def _compile_to_common_type(
        self, node: exp.Expr, *parts: exp.Expr
    ) -> tuple[list[str], SqlType]:
        """The parts in the type in which Spark compares them and calculates."""
        typed = [self.compile_expression(part) for part in parts]
        kind = common_type(*(k for _, k in typed))
        equality = isinstance(node, (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ))
        if kind is None or not compares_alike(kind, equality):
            listed = " and ".join(sorted({str(k) for _, k in typed}))
            what = "brings together" if kind is None else "compares"
            self._raise_unsupported(node, f" {what} {listed}")
        return [self._cast_to(t, kind) for t in typed], kind
