"""Queries as they are asked of a hub: read, judged, and kept as they were understood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlglot
from sqlglot import exp

from braid.condition.dialect import SparkSql
from braid.core.spans import Span, micros, written
from braid.hub.blueprints import selections_of
from braid.hub.delivering import Slide, Told
from braid.hub.expressions import may_fail
from braid.hub.flat import Texts, flat, renamed
from braid.hub.ledger import Served
from braid.hub.query import StreamQuery, understood
from braid.hub.reader import Reader
from braid.papers.reuse.definition import Definition
from braid.papers.reuse.deployment import Asked


@dataclass(frozen=True)
class New:
    """A query that was read, as planners take it, and as it is written down."""

    query: StreamQuery
    asked: Asked
    windows: Any
    every: str | None
    lifetime: int | None


class Asking:
    """Reads queries over a reader's streams. ``whole``: operators carry all columns of their
    streams, as on one site, where nothing is sent; so they hold more queries.
    """

    def __init__(self, reader: Reader, whole: bool) -> None:
        self.reader, self.whole = reader, whole
        self._known: dict[tuple[str, str, str], StreamQuery] = {}
        self._types = {
            ("", flat(s, c)): kind for s, own in reader.schemas.items() for c, kind in own.items()
        }
        self._failing: dict[str, bool] = {}
        self._selects: dict[tuple[str, str, str], tuple[str, ...]] = {}

    def new(
        self,
        sql: str,
        name: str,
        sink: str,
        windows: Mapping[str, Span] | Span | None = None,
        every: Span | None = None,
        lifetime: Span | None = None,
    ) -> New:
        """Raises QueryError for a query that is not taken."""
        spans = _written(windows)
        slide = None if every is None else written(every, "every")
        lives = None if lifetime is None else micros(lifetime, f"lifetime of {name!r}")
        query = understood(sql, self.reader.schemas, self.reader.time, spans, slide)
        self.reader.judge(query)
        asked = Asked(name, self.planned(query), sink, sql=sql)
        return New(query, asked, spans, slide, lives)

    def planned(self, query: StreamQuery) -> Definition:
        """The definition as operators are asked for it: they make every match, and ticks are told
        of those.
        """
        columns = query.definition.columns
        if self.whole:
            columns = tuple(frozenset(self.reader.schemas[s]) for s in query.definition.streams)
        return replace(query.definition, columns=columns, slides=frozenset())

    def of(self, served: Served) -> StreamQuery:
        """A query that was taken before: a hub starts again though new ones like it are refused."""
        key = served.sql, repr(served.windows), repr(served.every)
        if key not in self._known:
            schemas, time = self.reader.schemas, self.reader.time
            given = served.windows, served.every
            self._known[key] = understood(served.sql, schemas, time, *given, stored=True)
        return self._known[key]

    def told(self, served: Served) -> Told:
        """What a query that is answered makes of its operator's results."""
        query, span = self.of(served), served.spans[-1]
        slide = query.every and Slide(query.every, query.windows, served.since)
        select = self._selected(served, query)
        return Told(served.name, span.operator, span.bit, span.where, select, slide or None)

    def _selected(self, served: Served, query: StreamQuery) -> tuple[str, ...]:
        key = served.sql, repr(served.windows), repr(served.every)
        if key not in self._selects:
            self._selects[key] = tuple(self._select(query))
        return self._selects[key]

    def _select(self, query: StreamQuery) -> Iterator[str]:
        """What may fail of what is selected of each match, over a plain table of results."""
        for tree in of_matches(query):
            if tree.find(exp.Star) is None:
                text = tree.sql(dialect=SparkSql, normalize_functions=False)
                plain = renamed(text, lambda alias, column: flat(query.aliases[alias], column))
                if self._may_fail(plain):
                    yield plain

    def may_fail(self, told: Told) -> bool:
        """Whether an expression of a query may fail on its operator's results."""
        return bool(told.select) or (told.where is not None and self._may_fail(told.where))

    def _may_fail(self, sql: str) -> bool:
        if sql not in self._failing:
            self._failing[sql] = self.reader.ansi and may_fail(sql, self._types)
        return self._failing[sql]

    def texts(self, queries: Iterable[Served], *more: StreamQuery) -> Texts:
        """The SQL of all selections that these queries have."""
        known = [*(self.of(q) for q in queries), *more]
        return selections_of((q.definition, q.filters) for q in known)


def of_matches(query: StreamQuery) -> Iterator[exp.Expr]:
    """What is selected of each match: all that is selected, or, of groups of matches, what their
    aggregates are of.
    """
    told = [*query.select, *([query.having] if query.having else [])]
    trees = [sqlglot.parse_one(sql, dialect=SparkSql).unalias() for sql in told]
    if not query.groups and not query.aggregates:
        yield from trees
        return
    for tree in trees:
        for call in tree.find_all(exp.AggFunc):
            yield from _of_call(call)


def _of_call(call: exp.AggFunc) -> Iterator[exp.Expr]:
    """What an aggregate is of; with FILTER only where that lets a match through, and what FILTER
    says.
    """
    inner = call.this.expressions if isinstance(call.this, exp.Distinct) else [call.this]
    every = (p for p in (*inner, *call.expressions) if isinstance(p, exp.Expr))
    parts = [p for p in every if not isinstance(p, exp.Star)]
    if not isinstance(call.parent, exp.Filter):
        yield from parts
        return
    passes = call.parent.expression.this
    yield from (exp.case().when(passes.copy(), part.copy()) for part in parts)
    if not parts:
        yield passes


def _written(windows: Mapping[str, Span] | Span | None) -> Any:
    if windows is None:
        return None
    if isinstance(windows, Mapping):
        return {a: written(w, f"window of {a}") for a, w in windows.items()}
    return written(windows, "window")
