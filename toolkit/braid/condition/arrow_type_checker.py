"""Type-check conditions over Arrow tables without Spark, for the SQL that the compiler supports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import sqlglot
from sqlglot import exp

from braid.condition.column_names import quote_condition
from braid.condition.duckdb_compiler import DuckDBCompiler
from braid.condition.duckdb_typed_expressions import Typed
from braid.condition.failure_guards import find_fallible_parts
from braid.condition.overflow_guards import describe_with_type
from braid.condition.residual_predicate import FallibleExpression
from braid.condition.set_similarity import MEASURES, rewrite_to_overlap
from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import (
    BOOLEAN,
    INTERVAL,
    SqlType,
    arrow_type_of_sql,
    sql_type_of_arrow,
)
from braid.errors import PredicateError, UnsupportedExpressionError
from braid.util.validation import refuse_nanoseconds

_WITHOUT_DIVISION = (
    "compare without a division: size(array_intersect(a.x, b.x)) * 3 >= size(array_distinct(a.x)) "
    "+ size(array_distinct(b.x)) is a Jaccard similarity of at least 0.5"
)

_WINDOW_CALLS = ("UNIX_MICROS(", "TIMESTAMP_MICROS(")
"""Calls by which ``time_functions`` replaces windows."""


class ArrowAnalyzer:
    """A type checker for expressions over tables of these schemas."""

    def __init__(self, streams: Mapping[str, pa.Table | pa.Schema]) -> None:
        self.schemas = {a: s if isinstance(s, pa.Schema) else s.schema for a, s in streams.items()}
        self.names: Mapping[str, Sequence[str]] = {a: s.names for a, s in self.schemas.items()}
        self.is_ansi, self.sized_null, self.has_time_zone = True, False, False
        self.zone_spread = 0

    def check_condition(self, tree: exp.Expr, on: str) -> None:
        """Raise PredicateError for an unsupported condition.

        It must be boolean, and known to have the same result in DuckDB as in Spark.
        """
        columns = {
            (a, f.name): sql_type_of_arrow(f.type) for a, s in self.schemas.items() for f in s
        }
        for column in tree.find_all(exp.Column):
            kind = columns.get((column.table, column.name))
            if kind is not None and "timestamp[ns" in kind.name:
                refuse_nanoseconds(column.table, column.name)
            if kind is not None and kind.name == "null":
                raise PredicateError(
                    f"column '{column.table}.{column.name}' in the join condition is of type null, "
                    "as all of its values are NULL; cast it to the type that they would have"
                )
        try:
            kind = DuckDBCompiler(columns).compile_expression(
                rewrite_to_overlap(tree.copy(), _find_aliases)
            )[1]
        except UnsupportedExpressionError as error:
            is_rewritten = any(f"{name}(".upper() in error.text.upper() for name in MEASURES)
            is_own = all(n not in error.text or n in on.upper() for n in _WINDOW_CALLS)
            text = error.text if is_own and not is_rewritten else on
            part = f"{quote_condition(text)} in the join condition"
            raise PredicateError(
                f"{part}{error.why and error.why + ' and'} is not known to mean the same without "
                "Spark; give the streams as Spark DataFrames, or "
                f"{_WITHOUT_DIVISION if is_rewritten else 'write what it says into a column'}"
            ) from None
        if kind != BOOLEAN:
            raise PredicateError(
                f"the join condition {quote_condition(on)} is of type {kind}; it must be boolean"
            )

    def compile_expression(self, alias: str, sql: str) -> Typed:
        """Return DuckDB SQL for Spark SQL over a stream's own columns.

        Raises UnsupportedExpressionError for other SQL.
        """
        columns = {("", f.name): sql_type_of_arrow(f.type) for f in self.schemas[alias]}
        return DuckDBCompiler(columns, is_generated=True).compile_text(sql)

    def find_fallible_parts(self, alias: str, sql: str) -> Iterator[FallibleExpression]:
        """Yield the parts of an expression over one stream that may fail, innermost first."""
        for node in find_fallible_parts(sqlglot.parse_one(sql, dialect=SparkSql)):
            compiled, kind = self.compile_expression(alias, node.sql(dialect=SparkSql))
            named = node.copy()
            for column in [*named.find_all(exp.Column)]:
                free = next(k for k in ("table", "db", "catalog") if not column.args.get(k))
                column.set(free, exp.to_identifier(alias))
            yield FallibleExpression(compiled, describe_with_type(named, kind))

    def infer_type(self, alias: str, sql: str) -> SqlType | None:
        """Return Spark's type of an expression; None if unknown."""
        try:
            return self.compile_expression(alias, sql)[1]
        except UnsupportedExpressionError:
            return None

    def infer_arrow_type(self, alias: str, sql: str) -> pa.DataType:
        """Return the column's type in Arrow; that of an interval is that of its microseconds.

        Raises PredicateError for a type that columns cannot have.
        """
        tree = sqlglot.parse_one(sql, dialect=SparkSql)
        if isinstance(tree, exp.Column) and not tree.table:
            return self.schemas[alias].field(tree.name).type
        kind = self.compile_expression(alias, sql)[1]
        arrow = pa.int64() if kind == INTERVAL else arrow_type_of_sql(kind)
        if arrow is None:
            raise PredicateError(
                f"{quote_condition(sql)} in the join condition is of type {kind}; columns of that "
                "type are not made without Spark: give the streams as Spark DataFrames, or write "
                "what it says into a column"
            )
        return arrow


def _find_aliases(node: exp.Expr) -> set[str]:
    return {column.table for column in node.find_all(exp.Column)}
