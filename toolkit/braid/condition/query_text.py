"""A query of a shared join in one line, ``name: windows where selection``.

``windows`` is one duration for all streams, as in "late: 10 minutes", or one for each, as in
"late: a: 1 hour, b: 5 minutes". The selection is Spark SQL over ``alias.column``, and each of its
terms refers to one stream; without it, the query takes every tuple.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    pairs = [part.partition(":") for part in window.split(",") if ":" in window]
    windows = {alias.strip(): span.strip() for alias, _, span in pairs} or window.strip()
    return Query.parse(name, streams, windows, _parse_selections(name, *selection, streams=streams))


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
    spans, where = arguments["windows"], " AND ".join(arguments["where"].values())
    is_one = len({*spans.values()}) == 1
    windows = [span if is_one else f"{alias}: {span}" for alias, span in spans.items()]
    text = f"{query.name}: {windows[0] if is_one else ', '.join(windows)}"
    return f"{text} where {where}" if where else text


def _parse_selections(name: str, where: str = "", *, streams: Sequence[str]) -> dict[str, str]:
    """Return, by alias, the terms of the selection over that stream.

    Raises ValueError for invalid SQL and for a term over none or several of the streams.
    """
    conditions: dict[str, list[str]] = {}
    for term in _parse_conjuncts(name, where):
        aliases = sorted({column.table for column in term.find_all(exp.Column)})
        if len(aliases) != 1 or aliases[0] not in list(streams):
            over = " and ".join(filter(None, aliases)) or "no stream"
            raise ValueError(
                f"query {name!r} selects by {term.sql(dialect=SparkSql)!r}, which is over {over}; "
                "write alias.column, with one alias in each term; the streams are "
                f"{', '.join(streams)}"
            )
        sql = term.sql(dialect=SparkSql)
        conditions.setdefault(aliases[0], []).append(
            f"({sql})" if isinstance(term, exp.Or) else sql
        )
    return {alias: " AND ".join(terms) for alias, terms in conditions.items()}


def _parse_conjuncts(name: str, where: str) -> list[Any]:
    try:
        tree = sqlglot.parse_one(where, dialect=SparkSql) if where.strip() else None
    except sqlglot.errors.SqlglotError as error:
        raise ValueError(
            f"the selection of {name!r}, {where.strip()!r}, is no condition in Spark SQL"
        ) from error
    if tree is None:
        return []
    return (
        [term.unnest() for term in tree.flatten()] if isinstance(tree, exp.And) else [tree.unnest()]
    )
