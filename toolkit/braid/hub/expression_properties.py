"""Properties of query expressions: whether they may fail, whether the time zone matters."""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from braid.condition.duckdb_compiler import DuckDBCompiler
from braid.condition.failure_guards import is_safe
from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import SqlType
from braid.errors import UnsupportedExpressionError

_TIMES = ("timestamp", "timestamp_ntz", "date")
_TEXT = (exp.Upper, exp.Lower, exp.Trim)
"""Functions from text to text that only Spark implements and that cannot fail."""


def may_fail(sql: str, types: Mapping[tuple[str, str], SqlType]) -> bool:
    """Return whether Spark SQL over columns of these types may fail on some tuple.

    ``types``: by (alias, name). True also if the expression is not known to be safe.
    """
    tree = sqlglot.parse_one(sql, dialect=SparkSql)
    tree = tree.transform(lambda n: n.this if isinstance(n, _TEXT) else n)
    try:
        DuckDBCompiler(types).compile_expression(tree)
    except UnsupportedExpressionError:
        return True
    return not is_safe(tree)


def depends_on_time_zone(sql: str, types: Mapping[tuple[str, str], SqlType]) -> bool:
    """Return whether the result of Spark SQL may depend on the time zone.

    It may if it reads a time or a day, except for the microseconds of a timestamp. ``types``: by
    (alias, name).
    """

    def kind(column: exp.Column) -> str:
        return types[column.table, column.name].name

    def plain(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.UnixMicros):
            inner = node.this.this if isinstance(node.this, exp.Cast) else node.this
            if isinstance(inner, exp.Column) and kind(inner) == "timestamp":
                return exp.Literal.number(0)
        return node

    tree = sqlglot.parse_one(sql, dialect=SparkSql).transform(plain)
    return any(kind(c) in _TIMES for c in tree.find_all(exp.Column))


def has_float(sql: str, types: Mapping[tuple[str, str], SqlType]) -> bool:
    """Return whether Spark SQL reads a column of 32-bit floats.

    Without ANSI, Spark compares such a column with a whole number as floats, whereas the DuckDB SQL
    compares doubles.
    """
    columns = sqlglot.parse_one(sql, dialect=SparkSql).find_all(exp.Column)
    return any(types[c.table, c.name].name == "float" for c in columns)
