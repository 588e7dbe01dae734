"""SharedRun: a running shared join whose queries and slices can change between batches."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeVar

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from braid.core.join_kinds import INNER, parse_kind
from braid.core.query import Query
from braid.core.reserved_columns import MARK, QUERIES
from braid.core.run_events import Event, QueryAdded, QueryRemoved
from braid.core.stream_clocks import find_latest_times
from braid.join_run import JoinRun
from braid.kernels.join_spec import JoinSpec
from braid.papers.slices import chain as chains
from braid.papers.slices.chain import MODES
from braid.run_results import read_results
from braid.shared.block_marking import plan_rewrite, rewrite_replicas
from braid.shared.query_changes import Queries, add_query, remove_query
from braid.shared.query_marks import BitmapTagger
from braid.shared.query_results import ResultsByQuery, list_served_bits, read_result_bits
from braid.shared.shared_config import SharedJoinConfig, make_query
from braid.util.durations import Span, parse_duration

V = TypeVar("V")


class SharedRun(JoinRun):
    """A running shared join: a JoinRun whose queries and slices can change between batches.

    A change is committed when its method returns, and survives a restart.
    """

    config: SharedJoinConfig
    _marking: BitmapTagger | None = None

    def _open_input(self) -> tuple[JoinSpec, Any]:
        if (state := self.store.last_state()) is not None:
            self._check_preserved(state.queries)
        spec, union = super()._open_input()
        marked = (replace(w, column_slots=(*w.column_slots, (MARK, MARK))) for w in spec.layouts)
        return replace(spec, layouts=tuple(marked)), union

    def make_query(
        self,
        name: str,
        windows: Span | Mapping[str, Span] | None = None,
        where: Mapping[str, str] | None = None,
        on: str | None = None,
        streams: Sequence[str] | None = None,
        how: Any = "inner",
        **asof: Any,
    ) -> Query:
        """Return a query for this run without adding it; see ``add``.

        Raises ValueError if this run cannot serve the query.
        """
        query = make_query(self._join, name, windows, where, on, streams, how=how, **asof)
        self._check_preserved([query])
        return query

    def _check_preserved(self, queries: Sequence[Query]) -> None:
        """Raise ValueError if a query preserves a stream that no query preserved at the start.

        Tuples of such a stream that can have no partner do not reach the run.
        """
        for q in queries:
            for stream in {*q.kind.preserved} - {*self.config.kind.preserved}:
                raise ValueError(
                    f"query {q.name!r} has how={q.kind.to_json(list(self.config.streams))!r}, and "
                    f"no query that this run was started with keeps the tuples of "
                    f"{list(self.config.streams)[stream]}; start a run with such a query"
                )

    def _make_start_events(self) -> list[Any]:
        return [
            *super()._make_start_events(),
            *(self._make_query_added_event(q, -1) for q in self.config.queries),
        ]

    def _make_query_added_event(self, q: Query, batch: int) -> QueryAdded:
        def by_alias(each: Sequence[V]) -> dict[str, V]:
            return dict(zip(self.config.streams, each, strict=True))

        return QueryAdded(
            batch,
            q.name,
            q.bitmap_position,
            by_alias(q.windows),
            by_alias(q.selections),
            by_alias(q.complete_since),
            q.kind.to_json(list(self.config.streams)),
            None if q.match is None else q.match.to_arguments(),
        )

    def _join_batch(self, source: DataFrame, number: int) -> None:
        streams, seen = range(len(self.config.streams)), Observation()
        self._engine.run_batch(
            self._current_tagger().add_bitmaps(source, seen),
            number,
            lambda: [seen.get[str(s)] for s in streams],
        )

    def _make_empty_batch(self) -> DataFrame:
        return self._current_tagger().add_bitmaps(super()._make_empty_batch(), Observation())

    def _current_tagger(self) -> BitmapTagger:
        if self._marking is None or self._marking.queries != self.queries:
            self._marking = BitmapTagger(self._engine.spec.layouts, self.queries)
        return self._marking

    @property
    def queries(self) -> tuple[Query, ...]:
        """Queries that are served now."""
        return self._engine.state.queries

    def results(self, name: str, ordered: bool = False) -> DataFrame:  # type: ignore[override]
        """Return the committed results of one query, as JoinRun.results does.

        The results of a removed query are those from the time it was served.

        ``ordered``: order results by the latest event time of their members. The commit of a batch
        is the punctuation of Fig. 5.7: results are ordered within a batch, and all results of a
        batch precede those of the next.

        The results are complete from batch ``first_retained_batch`` on.

        Raises ValueError if no query has had this name, or none of its results are retained.
        """
        return self._read_query_results(name, ordered=ordered)

    def _read_query_results(
        self,
        name: str,
        since: int | None = None,
        end: int | None = None,
        ordered: bool = False,
    ) -> DataFrame:
        served = self._list_query_files(name, since, end, merged=not ordered)
        empty = self._spark.createDataFrame([], self._schema)
        parts = [self._select_structs(name, empty)]
        for bit, files in served:
            results = self._read_bit_results(files, bit)
            results = results.orderBy(*self._result_order()) if ordered else results
            parts.append(self._select_structs(name, results.drop(QUERIES)))
        self.store.keep_until_exit()
        return reduce(DataFrame.union, parts[1:] or parts)

    def _select_structs(self, name: str, results: DataFrame) -> DataFrame:
        """Return the columns of a query's results: a semi or anti join has one struct."""
        added = [e for e in self.store.events.events_of_type(QueryAdded) if e.name == name]
        aliases = list(self.config.streams)
        kinds = [parse_kind(e.how, aliases) for e in added] or [INNER]
        shown = {stream for kind in kinds for stream in kind.structs or range(len(aliases))}
        return results.drop(*(a for s, a in enumerate(aliases) if s not in shown))

    def _list_query_files(
        self, name: str, since: int | None = None, end: int | None = None, merged: bool = True
    ) -> list[tuple[int, list[str]]]:
        """Return the query's bit and its result files for each interval in which it was served.

        ``since``: first batch; None: the first retained batch. ``end``: end of the batches,
        exclusive. Intervals without files are left out.
        """
        spans, first_retained = self._find_serving_intervals(name), self.first_retained_batch
        if not spans:
            names = dict.fromkeys(e.name for e in self.store.events.events_of_type(QueryAdded))
            gone = (
                f"; of those removed before batch {first_retained} nothing is retained"
                if first_retained
                else ""
            )
            raise ValueError(f"no query is named {name!r}; there are: {', '.join(names)}{gone}")
        if since is None:
            since = first_retained
            spans = [
                s for s in spans if s[1] >= first_retained or s[2] is None or s[2] > first_retained
            ]
            if not spans:
                raise ValueError(
                    f"query {name!r} was served only before batch {first_retained}; none of its "
                    "results is retained"
                )
        served = list[tuple[int, list[str]]]()
        for bit, first, last in spans:
            ends = [e for e in (last, end) if e is not None]
            within = max(first, since), min(ends, default=None)
            if files := self.store.results.result_files(*within, merged=merged):
                served.append((bit, files))
        return served

    def _read_batch_results(self, batch: int) -> ResultsByQuery:
        """Return the results of one batch by query. They are valid until the next call."""
        files = self.store.results.temporary_result_files(batch, self._deep)
        bits, events = read_result_bits(files), self.store.events
        served = list_served_bits(events.events_of_type(QueryAdded, QueryRemoved), batch)
        with_rows = {name: bit for name, bit in served.items() if bits >> bit & 1}
        return ResultsByQuery(
            with_rows,
            lambda name, bit: self._select_structs(
                name, self._read_bit_results(files, bit).drop(QUERIES)
            ),
        )

    def _read_bit_results(self, files: list[str], bit: int) -> DataFrame:
        """Return the results of the query with a bit, from result files."""
        schema = T.StructType([*self._schema.fields, T.StructField(QUERIES, T.LongType())])
        serves_query = F.col(QUERIES).bitwiseAND(F.lit(1 << bit)) != 0
        return read_results(self._spark, schema, files).where(serves_query)

    def results_since(self, batch: int = 0, name: str = "") -> tuple[DataFrame, int]:
        """Return one query's results from number ``batch`` on, and the number to pass next time.

        Passing the returned number to the next call returns every result exactly once. Raises
        ValueError if some of the results are no longer retained.
        """
        end = self._next_result_batch(batch)
        return self._read_query_results(name, batch, end), max(batch, end)

    def results_stream(self, flat: bool = False) -> DataFrame:
        """Raise ValueError: results belong to many queries. Use ``results_since`` for one query."""
        raise ValueError(
            "the results of a shared run are of many queries; read one query's batch by batch with "
            "results_since(batch, name)"
        )

    def _result_order(self) -> list[Column]:
        batch = F.regexp_extract(F.col("_metadata.file_name"), r"^(\d+)", 1).cast("int")
        return [
            batch,
            F.greatest(*(F.col(f"`{a}`.`{t}`") for a, t in self.config.event_time_columns.items())),
        ]

    def _find_serving_intervals(self, name: str) -> list[tuple[int, int, int | None]]:
        """Return the intervals in which a query was served, as its bit, first batch and end batch.

        The end is exclusive; None: still served.
        """
        spans: list[tuple[int, int, int | None]] = []
        for e in self.store.events.events_of_type(QueryAdded, QueryRemoved):
            if isinstance(e, QueryAdded) and e.name == name:
                spans.append((e.bitmap_position, e.batch + 1, None))
            elif isinstance(e, QueryRemoved) and e.name == name:
                spans[-1] = (*spans[-1][:2], e.batch)
        return spans

    def add(
        self,
        name: str,
        windows: Span | Mapping[str, Span] | None = None,
        where: Mapping[str, str] | None = None,
        on: str | None = None,
        streams: Sequence[str] | None = None,
        how: Any = "inner",
        match: Any = None,
        tolerance: Any = None,
        strict: bool = False,
        ties: Any = None,
        order: Any = None,
    ) -> None:
        """Add a query that is served from the next batch on.

        Parameters
        ----------
        name
            Name of the query, unique among the queries that are served.
        windows
            One duration for all streams, as "10 minutes", or durations by alias. An as-of query
            with a tolerance needs none.
        where
            Conditions by alias over that stream's columns, as in ``{"a": "a.value > 30"}``.
        on, streams
            Condition and streams of the query, if they should be checked against those of this run.
        how
            Kind of the query; see ``braid.core.join_kinds``. A query that is not an inner join
            answers the tuples that come from now on, but not those earlier than its longest window
            after the times of QueryAdded. Some query of the start must have preserved its streams.
        match, tolerance, strict, ties
            An as-of query: each tuple of the first stream that comes from now on takes one partner
            by event time, within the windows; see ``braid.core.match_rules``. It answers like a
            query that is not an inner join.
        order
            Not supported: a ValueError says why.

        The query gets the results of new tuples with the tuples that the state still holds. Its
        answers are complete from the start if some query retains the tuples of every stream as
        long, with no selection there or with the same one.

        Otherwise, a result is guaranteed if its member on that stream is no older than the time of
        adding minus the longest window of such a query. The event QueryAdded reports these event
        times. Answers are complete, at the latest, once event time has advanced by the query's own
        windows. Takes one pass over the state.

        Raises ValueError if this run cannot serve the query; nothing has changed then.
        """
        asof = {"match": match, "tolerance": tolerance, "strict": strict}
        asof |= {"ties": ties, "order": order}
        with self._turn:
            state = self._engine.state
            new = self.make_query(name, windows, where, on, streams, how, **asof)
            watermarks = self._engine.rules.find_state_watermarks(state)
            queries = add_query(
                state.queries, new, watermarks, find_latest_times(state.clocks, state.pending)
            )
            self._change_queries(
                queries, [self._make_query_added_event(queries[-1], state.batch + 1)]
            )

    def remove(self, name: str) -> None:
        """Remove a query and the state that only it used.

        Raises ValueError if there is no such query, or it is the only one.
        """
        with self._turn:
            queries = remove_query(self.queries, name)
            if not queries:
                raise ValueError(f"{name!r} is the only query; stop the run instead of removing it")
            self._change_queries(queries, [QueryRemoved(self._engine.state.batch + 1, name)])

    def split_slice(self, age: Span, stream: str | None = None) -> None:
        """Split the slice that spans ``age``, as "10 minutes", for one stream or all (Fig. 7.4).

        The chain then stays as given until ``rebalance``. Raises ValueError if there is nothing to
        split.
        """
        with self._turn:
            self._change_slices(
                chains.split_slice(
                    self._engine.state.placement_state,
                    parse_duration(age, "age"),
                    self._find_stream_index(stream),
                )
            )

    def merge_slices(self, age: Span, stream: str | None = None) -> None:
        """Merge the two slices that meet at ``age`` (Fig. 7.5); see ``split_slice``."""
        with self._turn:
            self._change_slices(
                chains.merge_slices(
                    self._engine.state.placement_state,
                    parse_duration(age, "age"),
                    self._find_stream_index(stream),
                )
            )

    def rebalance(self, chain: str) -> None:
        """Choose the chain again by "memory", "cpu" or "auto", and keep to that mode."""
        if chain not in MODES:
            raise ValueError(f"chain is {chain!r}; it must be one of {', '.join(MODES)}")
        with self._turn:
            self._change_slices(chains.request_rebalance(self._engine.state.placement_state, chain))  # type: ignore[arg-type]

    def _find_stream_index(self, stream: str | None) -> int | None:
        if stream is not None and stream not in self.config.streams:
            raise ValueError(
                f"no stream is named {stream!r}; there are: {', '.join(self.config.streams)}"
            )
        return None if stream is None else list(self.config.streams).index(stream)

    def _change_slices(self, policy: Any) -> None:
        self._check_active()
        self._engine.commit_change(self.queries, policy, None, [], clock.perf_counter())

    def _change_queries(self, queries: Queries, happened: list[Any]) -> None:
        self._check_active()
        began, engine = clock.perf_counter(), self._engine
        happened = [*self._recover_lost_hosts(), *happened]
        new = tuple(q for q in queries if q not in engine.state.queries)
        schemas = [self._schema[a].dataType for a in self.config.streams]
        job, partitions = plan_rewrite(engine, queries), engine.spec.partitions
        lines = rewrite_replicas(self._spark, job, schemas, new, partitions)
        engine.commit_change(queries, engine.state.placement_state, lines, happened, began)

    def _recover_lost_hosts(self) -> Sequence[Event]:
        """Recover lost hosts, whose tuples are read when queries change. Return the events."""
        engine = self._engine
        run = engine.execute_without_tuples
        touched = engine.touches.apply_to_state(engine.spec, engine.placement, engine.state, run)
        engine.store.check_reported_files(touched.report)
        engine.state = touched.state
        return touched.events

    def _check_active(self) -> None:
        if self._outcome:
            raise RuntimeError("the run has ended; resume it to change what it serves")
