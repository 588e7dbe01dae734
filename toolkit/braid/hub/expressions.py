"""What is known of expressions of queries: whether they may fail, whether a time zone matters."""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from braid.condition.calls import BITS, COMPARISONS, PARTS
from braid.condition.compiler import Compiler
from braid.condition.sqltypes import SqlType
from braid.condition.typed import Unknown

_SAFE = {
    *(exp.Column, exp.Identifier, exp.Paren, exp.Literal, exp.Boolean, exp.Null, exp.DataType),
    *(exp.And, exp.Or, exp.Not, exp.In, exp.Between, exp.Is, *COMPARISONS, *BITS),
    *(exp.If, exp.Case, exp.Nullif, exp.Coalesce, exp.Greatest, exp.Least),
    *(exp.Concat, exp.DPipe, exp.Length, exp.Substring, exp.Left, exp.Right),
    *(exp.StartsWith, exp.EndsWith, exp.Contains, exp.StrPosition, exp.Replace),
    *(exp.UnixMicros, exp.UnixDate, exp.TsOrDsToDate, exp.DateDiff, *PARTS),
}
"""Kinds of nodes that have a value wherever their operands have one, of types that the compiler
takes: it casts only what loses nothing.
"""
_TIMES = ("timestamp", "timestamp_ntz", "date")
_TEXT = (exp.Upper, exp.Lower, exp.Trim)
"""Texts of texts, which only Spark knows and which do not fail either."""


def may_fail(sql: str, types: Mapping[tuple[str, str], SqlType]) -> bool:
    """Whether Spark SQL over columns of these types, by (alias, name), may fail on some tuple, or
    is not known not to.
    """
    tree = sqlglot.parse_one(sql, dialect="spark")
    tree = tree.transform(lambda n: n.this if isinstance(n, _TEXT) else n)
    try:
        Compiler(types).compile(tree)
    except Unknown:
        return True
    return not all(type(n) in _SAFE or _is_safe(n) for n in tree.walk())


def is_zoned(sql: str, types: Mapping[tuple[str, str], SqlType]) -> bool:
    """Whether the time zone may matter to Spark SQL over columns of these types: it reads a time or
    a day, but for the microseconds of a timestamp.
    """

    def kind(column: exp.Column) -> str:
        return types[column.table, column.name].name

    def plain(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.UnixMicros):
            inner = node.this.this if isinstance(node.this, exp.Cast) else node.this
            if isinstance(inner, exp.Column) and kind(inner) == "timestamp":
                return exp.Literal.number(0)
        return node

    tree = sqlglot.parse_one(sql, dialect="spark").transform(plain)
    return any(kind(c) in _TIMES for c in tree.find_all(exp.Column))


def has_float(sql: str, types: Mapping[tuple[str, str], SqlType]) -> bool:
    """Whether Spark SQL reads a column of 32-bit floats. Without ANSI, Spark makes such a float of
    a whole number that it is compared with, and DuckDB is told to make a double of both.
    """
    columns = sqlglot.parse_one(sql, dialect="spark").find_all(exp.Column)
    return any(types[c.table, c.name].name == "float" for c in columns)


def _is_safe(node: exp.Expr) -> bool:
    """Whether it has a value wherever its operands have one, by what these are."""
    if isinstance(node, exp.Cast):  # sqlglot takes Spark's casts for TryCast, which is one
        return not isinstance(node.this, exp.Literal)
    if isinstance(node, exp.Like):
        pattern = node.expression
        return isinstance(pattern, exp.Literal) and "\\" not in pattern.this
    return _is_age(node)


def _is_age(node: exp.Expr) -> bool:
    """Whether it is the difference of two event times in microseconds."""
    return isinstance(node, exp.Sub) and _is_time(node.this) and _is_time(node.expression)


def _is_time(node: exp.Expr) -> bool:
    if isinstance(node, exp.Greatest):
        return all(map(_is_time, (node.this, *node.expressions)))
    return isinstance(node, exp.UnixMicros)
