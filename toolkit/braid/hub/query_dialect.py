"""Parse Spark SQL with CQL's window after a stream's name.

Example: ``FROM flights [RANGE 5 MINUTES SLIDE 1 MINUTE] f``. Source: Seshadri 2008, section 2.1,
whose queries are written so.
"""

from __future__ import annotations

import re
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from braid.condition.spark_dialect import SparkSql, describe_sql_error, to_sql
from braid.condition.syntax_arguments import Table, find_unread, name_for_user
from braid.errors import QueryError
from braid.papers.reuse.query_definition import UNBOUNDED
from braid.util.durations import parse_duration

_UNITS = {"min": "minute", "mins": "minute", "sec": "second", "secs": "second", "hr": "hour"}
_UNITS |= {"hrs": "hour"}


_WORDS = {
    **{"except_": "EXCEPT", "sample": "TABLESAMPLE", "laterals": "LATERAL VIEW", "with_": "WITH"},
    **{"columns": "a list of column names", "hint": "a hint", "hints": "a hint", "pivots": "PIVOT"},
    **{"distinct": "DISTINCT", "order": "ORDER BY", "sort": "SORT BY", "cluster": "CLUSTER BY"},
    **{"distribute": "DISTRIBUTE BY", "windows": "WINDOW", "version": "VERSION or TIMESTAMP AS OF"},
    **{"joins": "a join in parentheses", "when": "TIMESTAMP AS OF", "locks": "FOR UPDATE"},
}
"""Users' names of statement arguments; others keep the names of sqlglot."""
STATEMENT: Table = {
    exp.Select: ("expressions", "from_", "joins", "where", "group", "having"),
    exp.From: ("this",),
    exp.Join: ("this", "on", "using", "side", "kind", "method"),
    exp.Table: ("this", "alias", "db"),
    exp.TableAlias: ("this",),
    exp.Star: (),
    exp.Where: ("this",),
    exp.Group: ("expressions", "grouping_sets", "cube", "rollup", "totals", "all"),
    exp.Having: ("this",),
    exp.Alias: ("this", "alias"),
    exp.Filter: ("this", "expression"),
}
"""By class of node, the arguments of a SELECT that some rule of the hub reads or refuses."""
ACCEPTED = (
    "a query is SELECT ... FROM streams [RANGE ...] JOIN or WHERE ..., and GROUP BY and HAVING "
    "with a SLIDE"
)


class CQL(SparkSql):
    """Spark SQL with windows after streams.

    ``meta["window"]`` of a table has the words of each of its windows.
    """

    class Parser(SparkSql.Parser):
        """Parser that reads a window wherever a table's name or alias may end."""

        def _parse_table_parts(self, *args: Any, **kwargs: Any) -> Any:
            return self._parse_window_words(super()._parse_table_parts(*args, **kwargs))

        def _parse_table(self, *args: Any, **kwargs: Any) -> Any:
            return self._parse_window_words(super()._parse_table(*args, **kwargs))

        def _parse_window_words(self, table: Any) -> Any:
            while isinstance(table, exp.Table) and self._match(TokenType.L_BRACKET):
                words: list[str] = []
                while self._curr and not self._match(TokenType.R_BRACKET):
                    words.append(self._curr.text.lower())
                    self._advance()
                if self._prev.token_type != TokenType.R_BRACKET:
                    self.raise_error("a window [ is not closed by ]")
                table.meta.setdefault("window", []).append(words)
            return table


def parse_query(sql: str) -> exp.Select:
    """Return the tree of a query. Raises QueryError if it is not one SELECT."""
    if not isinstance(sql, str) or not sql.strip():
        raise QueryError(f"the query is {sql!r}; it must be text, such as SELECT ... FROM ...")
    try:
        trees = sqlglot.parse(sql, dialect=CQL)
        for tree in filter(None, trees):
            to_sql(tree)  # fails now if sqlglot cannot write the query back
    except sqlglot.errors.SqlglotError as error:
        if re.search(r"\bMATCH_CONDITION\s*\(", sql, re.IGNORECASE):
            raise QueryError(
                "MATCH_CONDITION is asked for, which Spark SQL does not have; write the comparison "
                "of event times into ON, as in ASOF JOIN s ON r.k = s.k AND r.ts >= s.ts"
            ) from None
        raise QueryError(f"the query is not valid Spark SQL: {describe_sql_error(error)}") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        raise QueryError(f"the query is {sql.strip()!r}; it must be one SELECT over streams")
    _check_statement(trees[0])
    return trees[0]


def _check_statement(tree: exp.Select) -> None:
    """Raise QueryError for a word of the statement that no rule reads."""
    for node in tree.walk():
        if (name := find_unread(node, STATEMENT)) is None:
            continue
        word = _WORDS.get(name, name_for_user(name))
        where = "" if isinstance(node, exp.Select) else f" in {to_sql(node).strip()!r}"
        raise QueryError(f"{word}{where} is not supported; {ACCEPTED}")


def parse_window(table: exp.Table) -> tuple[int | None, int | None]:
    """Return RANGE and SLIDE of a table in microseconds; None: not given.

    Raises QueryError for an invalid window.
    """
    given = table.meta.get("window", [])
    if not given:
        return None, None
    if len(given) > 1:
        raise QueryError(f"stream {table.name!r} has {len(given)} windows; it takes one")
    words = [w for w in given[0] if w != "interval"]
    text = f"[{' '.join(words).upper()}]"
    if not words or words[0] != "range":
        raise QueryError(
            f"the window of {table.name!r} is {text}; it must be [RANGE span] or [RANGE span SLIDE "
            "span]"
        )
    at = words.index("slide") if "slide" in words else len(words)
    size = words[1:at]
    every = _parse_span(words[at + 1 :], f"SLIDE of {table.name}") if at < len(words) else None
    if size == ["unbounded"]:
        return UNBOUNDED, every
    return _parse_span(size, f"RANGE of {table.name}"), every


def _parse_span(words: list[str], what: str) -> int:
    named = [_UNITS.get(w, w) for w in words]
    try:
        return parse_duration(" ".join(named), what)
    except ValueError as error:
        raise QueryError(str(error)) from None
