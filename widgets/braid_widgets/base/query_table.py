"""The editable table of queries: name, window, selection, on or off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ipywidgets as W
import sqlglot
from braid.condition.spark_dialect import SparkSql
from braid.core.query import Query
from sqlglot import exp

from braid_widgets.base.live_updates import error_html


@dataclass(frozen=True)
class QueryRow:
    """A row of the table: a query as typed, and whether it is active.

    - ``window``: one duration for all streams, such as "10 minutes", or one per stream, such as "a:
      1 hour, b: 5 minutes".
    - ``selection``: Spark SQL over ``alias.column``; each term refers to one stream. Empty: no
      selection.
    """

    name: str
    window: str
    selection: str = ""
    is_active: bool = True

    @classmethod
    def from_query(cls, query: Query, streams: Sequence[str], on: bool = True) -> QueryRow:
        """Return a query over these streams in the form in which it is typed."""
        arguments = query.to_arguments(streams)
        spans = ", ".join(f"{alias}: {window}" for alias, window in arguments["windows"].items())
        return cls(query.name, spans, " AND ".join(arguments["where"].values()), on)

    def to_query(self, streams: Sequence[str]) -> Query:
        """Return the typed query. Raises ValueError if it is invalid for these streams."""
        if not self.name.strip():
            raise ValueError(f"a query with window {self.window!r} has no name; give it one")
        parts = [part.partition(":") for part in self.window.split(",") if ":" in self.window]
        spans = {alias.strip(): span.strip() for alias, _, span in parts}
        return Query.parse(
            self.name,
            streams,
            spans or self.window,
            _parse_selections(self.name, self.selection, streams),
        )


def _parse_selections(name: str, where: str, streams: Sequence[str]) -> dict[str, str]:
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
            f"the selection of {name!r}, {where!r}, is no condition in Spark SQL"
        ) from error
    if tree is None:
        return []
    return (
        [term.unnest() for term in tree.flatten()] if isinstance(tree, exp.And) else [tree.unnest()]
    )


class QueryTable(W.VBox):
    """A table whose rows can be edited, switched on and off, added and removed.

    ``active_queries`` are those of the last valid state; ``changed`` is called with them if they
    differ. While a typed query is invalid, a sentence says why, all texts stay, and the queries do
    not change.
    """

    def __init__(
        self,
        streams: Sequence[str],
        queries: Iterable[QueryRow],
        changed: Callable[[tuple[QueryRow, ...]], Any] = lambda q: None,
    ) -> None:
        self.changed, self.message = changed, W.HTML()
        self.more = W.Button(description="Add a query", icon="plus", layout=W.Layout(width="140px"))
        self.more.on_click(lambda _: self._add_row())
        self.rows = W.VBox()
        super().__init__([_make_header_row(), self.rows, W.HBox([self.more, self.message])])
        self.load_queries(streams, queries)

    def load_queries(self, streams: Sequence[str], queries: Iterable[QueryRow]) -> None:
        """Replace the streams and their queries. Raises ValueError for an invalid query."""
        self.streams, self.queries = tuple(streams), tuple(queries)
        for query in self.queries:
            query.to_query(self.streams)
        self.rows.children = [_Row(q, self._read_rows, self._remove_row) for q in self.queries]
        self.message.value = ""

    def set_active(self, served: Iterable[str]) -> None:
        """Show which queries are served, by name, without calling ``changed``."""
        served_names = set(served)
        self.queries = tuple(replace(q, is_active=q.name in served_names) for q in self.queries)
        for row in self.rows.children:
            row.switch(row.query.name in served_names)

    @property
    def active_queries(self) -> tuple[Query, ...]:
        """Return the queries of the rows that are on."""
        return tuple(q.to_query(self.streams) for q in self.queries if q.is_active)

    def _add_row(self) -> None:
        names = {row.query.name for row in self.rows.children}
        name = next(n for n in (f"query {k}" for k in range(1, len(names) + 2)) if n not in names)
        last = self.rows.children[-1].query.window if self.rows.children else "1 minute"
        self.rows.children = [
            *self.rows.children,
            _Row(QueryRow(name, last, is_active=False), self._read_rows, self._remove_row),
        ]
        self._read_rows()

    def _remove_row(self, row: _Row) -> None:
        self.rows.children = [r for r in self.rows.children if r is not row]
        self._read_rows()

    def _read_rows(self, change: Any = None) -> None:
        queries = tuple(row.query for row in self.rows.children)
        try:
            self._check_queries(queries)
        except ValueError as error:
            self.message.value = error_html(error)
            return
        self.message.value = ""
        if queries != self.queries:
            self.queries = queries
            self.changed(queries)

    def _check_queries(self, queries: Sequence[QueryRow]) -> None:
        for row in queries:
            row.to_query(self.streams)
        names = [q.name for q in queries]
        if twice := next((n for n in names if names.count(n) > 1), None):
            raise ValueError(f"two queries are named {twice!r}; names tell their results apart")
        if not any(q.is_active for q in queries):
            raise ValueError("no query is on; a shared join serves one or more")


_WIDTHS = {"160px": "140px", "290px": "60px", "430px": "60px"}
"""Preferred and minimum widths of the name, which is always fully visible, the window and the
selection.
"""


ROW = "braid-query"
"""The CSS class of a row. In a narrow window, a row has three lines with labeled fields, and the
header is hidden.
"""


def _make_column_layouts() -> list[W.Layout]:
    """Return the layouts of the columns, which shrink in a narrow window."""
    rest = [
        W.Layout(flex=f"0 1 {wide}", width="auto", min_width=least)
        for wide, least in _WIDTHS.items()
    ]
    return [W.Layout(width="44px"), *rest]


def _make_header_row() -> W.HBox:
    titles = zip(("on", "query", "window", "selection"), _make_column_layouts(), strict=True)
    head = W.HBox([W.HTML(f"<b>{title}</b>", layout=layout) for title, layout in titles])
    return head.add_class(ROW).add_class("braid-heads")


class _Row(W.HBox):
    """The controls of one query."""

    def __init__(
        self, query: QueryRow, read: Callable[[Any], Any], remove: Callable[[_Row], Any]
    ) -> None:
        layouts = _make_column_layouts()
        late = dict(continuous_update=False)
        self.on = W.Checkbox(
            value=query.is_active, indent=False, layout=layouts[0], tooltip="serve it"
        )
        self.name = W.Text(query.name, layout=layouts[1], **late)
        self.window = W.Text(
            query.window,
            placeholder="10 minutes, or a: 1 hour, b: 5 minutes",
            layout=layouts[2],
            **late,
        )
        self.where = W.Text(query.selection, placeholder="every tuple", layout=layouts[3], **late)
        narrow = W.Layout(width="40px", flex="0 0 auto")
        gone = W.Button(icon="trash", tooltip="remove the query", layout=narrow)
        gone.on_click(lambda _: remove(self))
        self._read = read
        super().__init__([self.on, self.name, self.window, self.where, gone])
        self.add_class(ROW)
        for control in (self.on, self.name, self.window, self.where):
            control.observe(read, "value")
        for box in (self.name, self.window, self.where):
            W.dlink((box, "value"), (box, "tooltip"))  # shows text that does not fit

    @property
    def query(self) -> QueryRow:
        return QueryRow(
            self.name.value.strip(),
            self.window.value.strip(),
            self.where.value.strip(),
            self.on.value,
        )

    def switch(self, on: bool) -> None:
        self.on.unobserve(self._read, "value")
        self.on.value = on
        self.on.observe(self._read, "value")
