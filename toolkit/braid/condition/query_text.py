"""A query of a shared join in one line, ``name: windows where selection``.

``windows`` is one duration for all streams, as in "late: 10 minutes", or one for each, as in
"late: a: 1 hour, b: 5 minutes". The selection is Spark SQL over ``alias.column``, and each of its
terms refers to one stream; without it, the query takes every tuple.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import exp

from braid.condition.spark_dialect import SparkSql
from braid.core.query import Query


def parse_query_text(text: str, streams: Sequence[str]) -> Query:
    """Return the query of a line. Raises ValueError if it is invalid for these streams."""
    name, _, rest = (part.strip() for part in text.partition(":"))
    window, *selection = re.split(r"(?i)\bwhere\b", rest, maxsplit=1)
    if not name or not window.strip():
        raise ValueError(
            f"the query is {text.strip()!r}; it is written as a name, a colon and a window, as in "
            f"'late: 10 minutes where {streams[0]}.x > 3'"
        )
    where = _parse_selections(name, *selection, streams=streams)
    return Query.parse(name, streams, _parse_windows(name, window.strip(), streams), where)


def parse_query_texts(text: str, streams: Sequence[str]) -> tuple[Query, ...]:
    """Return the queries of the lines that are not empty.

    Raises ValueError for an invalid query, for two of one name and if there is none.
    """
    queries = tuple(parse_query_text(line, streams) for line in text.splitlines() if line.strip())
    names = [query.name for query in queries]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"two queries are named {twice!r}; names tell their results apart")
    if not queries:
        raise ValueError("there is no query; a shared join serves one or more")
    return queries


def format_query_text(query: Query, streams: Sequence[str]) -> str:
    """Return the line of a query over these streams."""
    arguments = query.to_arguments(streams)
    spans, where = arguments["windows"], " AND ".join(_format_selections(arguments["where"]))
    is_one = len({*spans.values()}) == 1
    windows = [span if is_one else f"{alias}: {span}" for alias, span in spans.items()]
    text = f"{query.name}: {windows[0] if is_one else ', '.join(windows)}"
    return f"{text} where {where}" if where else text


def _format_selections(where: Mapping[str, str]) -> Iterator[str]:
    """Yield each alias's selection with qualified columns, as it may stand beside AND."""
    for alias, sql in where.items():

        def qualify(node: Any, alias: str = alias) -> Any:
            if isinstance(node, exp.Column) and len(node.parts) == 1:
                return exp.column(node.this, exp.to_identifier(alias))
            return node

        yield _format_term(sqlglot.parse_one(sql, dialect=SparkSql).transform(qualify))


def _format_term(term: Any) -> str:
    sql: str = term.sql(dialect=SparkSql)
    has_to_be_enclosed = isinstance(term, exp.Connector) and not isinstance(term, exp.And)
    return f"({sql})" if has_to_be_enclosed else sql


def _find_alias(column: Any) -> str:
    """Return the alias of a column in lower case, or "" for one without it."""
    return column.parts[0].name.lower() if len(column.parts) > 1 else ""


def _parse_windows(name: str, window: str, streams: Sequence[str]) -> str | dict[str, str]:
    """Return the one window, or the windows by alias. Raises ValueError for two of one alias."""
    if ":" not in window:
        return window
    aliases_by_lower, windows = {alias.lower(): alias for alias in streams}, dict[str, str]()
    for part in window.split(","):
        alias, _, span = (each.strip() for each in part.partition(":"))
        alias = aliases_by_lower.get(alias.lower(), alias)
        if alias in windows:
            raise ValueError(f"query {name!r} has two windows for {alias}; it needs one for each")
        windows[alias] = span
    return windows


def _parse_selections(
    name: str, where: str | None = None, *, streams: Sequence[str]
) -> dict[str, str]:
    """Return, by alias, the terms of the selection over that stream.

    Raises ValueError for invalid SQL and for a term over none or several of the streams.
    """
    conditions: dict[str, list[str]] = {}
    aliases_by_lower = {alias.lower(): alias for alias in streams}
    for term in [] if where is None else _parse_conjuncts(name, where):
        aliases = sorted({_find_alias(column) for column in term.find_all(exp.Column)})
        if len(aliases) != 1 or aliases[0] not in aliases_by_lower:
            over = " and ".join(filter(None, aliases)) or "no stream"
            raise ValueError(
                f"query {name!r} selects by {term.sql(dialect=SparkSql)!r}, which is over {over}; "
                "write alias.column, with one alias in each term; the streams are "
                f"{', '.join(streams)}"
            )
        conditions.setdefault(aliases_by_lower[aliases[0]], []).append(_format_term(term))
    return {alias: " AND ".join(terms) for alias, terms in conditions.items()}


def _parse_conjuncts(name: str, where: str) -> list[Any]:
    """Return the terms of a condition. Raises ValueError for what is no condition."""
    refusal = f"the selection of {name!r}, {where.strip()!r}, is no condition in Spark SQL"
    try:
        trees = sqlglot.parse(where, dialect=SparkSql)
    except sqlglot.errors.SqlglotError as error:
        raise ValueError(refusal) from error
    terms = [term for tree in trees if tree for term in _flatten_conjunction(tree)]
    if len(trees) != 1 or not terms or not all(map(_is_condition, terms)):
        raise ValueError(refusal)
    return terms


def _is_condition(term: Any) -> bool:
    return isinstance(term, exp.Condition) and term.find(exp.Query) is None


def _flatten_conjunction(tree: Any) -> list[Any]:
    """Return the terms that AND connects, however they are enclosed in parentheses."""
    tree = tree.unnest()
    if not isinstance(tree, exp.And):
        return [tree]
    return [term for part in tree.flatten() for term in _flatten_conjunction(part)]
