"""Conditions that choose tuples of one stream, as DuckDB SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp

from braid.answer_check_sql import translate_condition
from braid.answer_check_text import quote_text
from braid.condition.spark_dialect import SparkSql
from braid.util.validation import format_value

Selector = str | Mapping[str, Any]
"""Spark SQL over the columns of one stream, or values by column; None asks for NULL."""


@dataclass(frozen=True)
class RowSelector:
    """A condition on the tuples of a stream.

    - ``sql``: DuckDB SQL, with ``?`` for each of the ``values``.
    - ``values``: values.
    - ``columns``: the columns that it names.
    - ``text``: for messages.
    """

    sql: str
    values: tuple[Any, ...]
    columns: tuple[str, ...]
    text: str


def list_conjuncts(sql: str) -> list[str]:
    """Return the conjuncts of Spark SQL."""
    tree = sqlglot.parse_one(sql, dialect=SparkSql)
    parts = [*tree.flatten()] if isinstance(tree, exp.And) else [tree.unnest()]
    return [part.sql(dialect=SparkSql) for part in parts]


def qualify_columns(alias: str, sql: str) -> str:
    """Return Spark SQL over the columns of one stream with its alias before each of them."""

    def qualify_node(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        names = [part.name for part in node.parts]
        path = names[1:] if len(names) > 1 and names[0].lower() == alias.lower() else names
        column: exp.Expr = exp.column(path[0], table=alias, quoted=True)
        for field in path[1:]:
            column = exp.Dot(this=column, expression=exp.to_identifier(field, quoted=True))
        return column

    return sqlglot.parse_one(sql, dialect=SparkSql).transform(qualify_node).sql(dialect=SparkSql)


def parse_selector(
    alias: str, selector: Any, columns: Sequence[str], type_name: Callable[[str], str]
) -> RowSelector:
    """Return the condition that chooses tuples of a stream.

    Parameters
    ----------
    alias
        The stream.
    selector
        Spark SQL, or values by column.
    columns
        The columns of the stream.
    type_name
        Returns DuckDB's type of DuckDB SQL over the stream.

    Raises ValueError for another type, an unknown column, a column of another stream, and SQL that
    is invalid or that DuckDB may evaluate differently from Spark.
    """
    if isinstance(selector, Mapping):
        return _parse_values(alias, selector, columns)
    if not isinstance(selector, str) or not selector.strip():
        raise ValueError(
            f"the rows of {alias} are {format_value(selector)}; they must be a condition, such as "
            f"'{columns[0]} = 7', or values by column, such as {{{columns[0]!r}: 7}}"
        )
    try:
        tree = sqlglot.parse_one(selector, dialect=SparkSql)
    except sqlglot.errors.SqlglotError as error:
        line = str(error).splitlines()[0]
        raise ValueError(f"the condition on {alias}, {selector!r}, is no SQL: {line}") from None
    named = dict.fromkeys(_name_column(alias, node, columns) for node in tree.find_all(exp.Column))
    sql = translate_condition(qualify_columns(alias, selector), type_name)
    return RowSelector(sql, (), tuple(named), selector)


def _parse_values(alias: str, values: Mapping[str, Any], columns: Sequence[str]) -> RowSelector:
    for name in values:
        _check_column(alias, name, columns)
    parts = [f"{quote_text(alias)}.{quote_text(name)} IS NOT DISTINCT FROM ?" for name in values]
    text = " AND ".join(
        f"{name} IS NULL" if value is None else f"{name} = {format_value(value)}"
        for name, value in values.items()
    )
    return RowSelector(
        " AND ".join(parts) or "true", tuple(values.values()), tuple(values), text or "any"
    )


def _name_column(alias: str, node: exp.Column, columns: Sequence[str]) -> str:
    """Return the name of a column of the stream. Raises ValueError for another one."""
    first, *rest = [part.name for part in node.parts]
    if rest and first.lower() == alias.lower():
        return _check_column(alias, rest[0], columns)
    if rest and first.lower() not in map(str.lower, columns):
        raise ValueError(
            f"the condition on {alias} names {first}.{rest[0]}; it may name columns of {alias} "
            f"only: {', '.join(columns)}"
        )
    return _check_column(alias, first, columns)


def _check_column(alias: str, name: Any, columns: Sequence[str]) -> str:
    by_name = {column.lower(): column for column in columns}
    if not isinstance(name, str) or name.lower() not in by_name:
        raise ValueError(f"{alias} has no column {format_value(name)}; it has {', '.join(columns)}")
    return by_name[name.lower()]
