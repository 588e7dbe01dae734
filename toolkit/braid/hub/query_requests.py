"""Parse, check and restore the queries of a hub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlglot
from sqlglot import exp

from braid.condition.spark_dialect import SparkSql
from braid.errors import QueryError
from braid.hub.delivery import DeliveryRule, TickSchedule
from braid.hub.expression_properties import may_fail
from braid.hub.flat_results import Texts, flat_column_name, rename_columns
from braid.hub.hub_backend import StreamReader
from braid.hub.hub_state import RegisteredQuery
from braid.hub.operator_definitions import selection_texts
from braid.hub.query_parser import StreamQuery, parse_stream_query
from braid.papers.reuse.deployment import DeployedQuery
from braid.papers.reuse.query_definition import UNBOUNDED, Definition
from braid.util.durations import Span, normalize_duration, parse_duration


@dataclass(frozen=True)
class AdmittedQuery:
    """A parsed query, for planners and for the hub state.

    ``lifetime``: microseconds of event time; None: until it is withdrawn.
    """

    query: StreamQuery
    parsed: DeployedQuery
    windows: Any
    slide: str | None
    lifetime: int | None


class QueryReader:
    """Reader of queries over a reader's streams.

    ``stores_all_columns``: operators store all columns of their streams, and so serve more queries.
    This fits one site, where nothing is sent.
    """

    def __init__(self, reader: StreamReader, stores_all_columns: bool) -> None:
        self.reader, self.stores_all_columns = reader, stores_all_columns
        self._parsed: dict[tuple[str, str, str], StreamQuery] = {}
        self._types = {
            ("", flat_column_name(s, c)): kind
            for s, columns in reader.schemas.items()
            for c, kind in columns.items()
        }
        self._failing: dict[str, bool] = {}
        self._selects: dict[tuple[str, str, str], tuple[str, ...]] = {}

    def admit_query(
        self,
        sql: str,
        name: str,
        sink: str,
        windows: Mapping[str, Span] | Span | None = None,
        slide: Span | None = None,
        lifetime: Span | None = None,
    ) -> AdmittedQuery:
        """Return a query that was parsed and checked. Raises QueryError if it is invalid."""
        spans = _normalize_windows(windows)
        written_slide = None if slide is None else normalize_duration(slide, "slide")
        lives = None if lifetime is None else parse_duration(lifetime, f"lifetime of {name!r}")
        query = parse_stream_query(sql, self.reader.schemas, self.reader.time, spans, written_slide)
        self.reader.check_query(query)
        self._check_answerable(query)
        deployed = DeployedQuery(name, self.operator_definition(query), sink, sql=sql)
        return AdmittedQuery(query, deployed, spans, written_slide, lives)

    def _check_answerable(self, query: StreamQuery) -> None:
        """Raise QueryError for a join that is not inner and that this hub cannot answer."""
        d = query.definition
        if d.preserved_streams and not self.stores_all_columns:
            raise QueryError(
                "the query is no inner join, and this hub is on a network, where operators are "
                "inner joins; ask it of a hub on one site"
            )
        for stream in d.preserved_streams:
            window = d.windows[d.stream_index(stream)]
            endless = {s for s in d.streams if s != stream}.difference(self.reader.last_batches)
            if window >= UNBOUNDED and endless:
                raise QueryError(
                    f"a tuple of {stream} can have a partner at any later time, as its window is "
                    f"unbounded and {min(endless)} does not end, so that it could never be "
                    "answered; give it a window"
                )

    def operator_definition(self, query: StreamQuery) -> Definition:
        """Return the definition for operators, without SLIDE: ticks are made from all matches."""
        columns = query.definition.columns
        if self.stores_all_columns:
            columns = tuple(frozenset(self.reader.schemas[s]) for s in query.definition.streams)
        return replace(query.definition, columns=columns, slides=frozenset())

    def restore_query(self, served: RegisteredQuery) -> StreamQuery:
        """Return a stored query. It stays valid even if a new query like it would be refused."""
        key = served.sql, repr(served.windows), repr(served.slide)
        if key not in self._parsed:
            schemas, time = self.reader.schemas, self.reader.time
            given = served.windows, served.slide
            self._parsed[key] = parse_stream_query(served.sql, schemas, time, *given, stored=True)
        return self._parsed[key]

    def delivery_rule(self, served: RegisteredQuery) -> DeliveryRule:
        """Return how an active query is answered from its operator's results."""
        query, span = self.restore_query(served), served.serving_intervals[-1]
        slide = query.slide and TickSchedule(
            query.slide, query.windows_by_stream, served.start_time
        )
        select = self._cached_fallible_selects(served, query)
        return DeliveryRule(
            served.name, span.operator, span.bit, span.compensation, select, slide or None
        )

    def _cached_fallible_selects(
        self, served: RegisteredQuery, query: StreamQuery
    ) -> tuple[str, ...]:
        key = served.sql, repr(served.windows), repr(served.slide)
        if key not in self._selects:
            self._selects[key] = tuple(self._find_fallible_selects(query))
        return self._selects[key]

    def _find_fallible_selects(self, query: StreamQuery) -> Iterator[str]:
        """Yield the selected expressions that may fail, over flat results."""
        for tree in selected_expressions(query):
            if tree.find(exp.Star) is None:
                text = tree.sql(dialect=SparkSql, normalize_functions=False)
                plain = rename_columns(
                    text, lambda alias, column: flat_column_name(query.aliases[alias], column)
                )
                if self._may_fail(plain):
                    yield plain

    def may_fail(self, rule: DeliveryRule) -> bool:
        """Return whether an expression of a query may fail on its operator's results."""
        return bool(rule.select) or (rule.where is not None and self._may_fail(rule.where))

    def _may_fail(self, sql: str) -> bool:
        if sql not in self._failing:
            self._failing[sql] = self.reader.ansi and may_fail(sql, self._types)
        return self._failing[sql]

    def selection_texts(self, queries: Iterable[RegisteredQuery], *more: StreamQuery) -> Texts:
        """Return the SQL of all selections of these queries."""
        parsed = [*(self.restore_query(q) for q in queries), *more]
        return selection_texts((q.definition, q.filters) for q in parsed)


def selected_expressions(query: StreamQuery) -> Iterator[exp.Expr]:
    """Yield the expressions evaluated on each match: selected ones, or arguments of aggregates."""
    expressions = [*query.select, *([query.having] if query.having else [])]
    trees = [sqlglot.parse_one(sql, dialect=SparkSql).unalias() for sql in expressions]
    if not query.groups and not query.aggregates:
        yield from trees
        return
    for tree in trees:
        for call in tree.find_all(exp.AggFunc):
            yield from _list_call_arguments(call)


def _list_call_arguments(call: exp.AggFunc) -> Iterator[exp.Expr]:
    """Yield the arguments of an aggregate, or its FILTER if there are none.

    With a FILTER, arguments count only if it accepts the match.
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


def _normalize_windows(windows: Mapping[str, Span] | Span | None) -> Any:
    if windows is None:
        return None
    if isinstance(windows, Mapping):
        return {a: normalize_duration(w, f"window of {a}") for a, w in windows.items()}
    return normalize_duration(windows, "window")
