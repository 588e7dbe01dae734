"""EngineRun: a running join whose batches an engine executes, and its measurements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from braid.batch_sink import BatchSink, Give
from braid.core.event_jsonl import log_events
from braid.core.query_waiting import list_waiting_by_query
from braid.core.run_events import BatchCommitted, PlacementChosen, RunStarted
from braid.core.stream_clocks import describe_watermarks, to_times
from braid.execution.engine import Engine
from braid.execution.executors import Executor, make_executor
from braid.explain import Explanation, explain_join
from braid.kernels.join_spec import JoinSpec
from braid.run_lifecycle import RunProgress
from braid.run_metrics import metrics_table
from braid.run_views import can_view, watch
from braid.shedding_options import estimates_table
from braid.shedding_options import shedding_status as shed_status
from braid.sources.batch_drivers import BatchDriver, BatchThread
from braid.sources.stream_source import AnalyzedJoin
from braid.storage.event_log import EventLog
from braid.storage.run_store import RunStore
from braid.touched_run import TouchedRun
from braid.util.durations import to_datetime
from braid.util.html_table import render_html_table
from braid.util.machine import available_cores

if TYPE_CHECKING:
    from braid.util.row_tables import RowTable


class EngineRun(TouchedRun):
    """A running or ended join, independent of the source of its tuples."""

    def __init__(
        self,
        join: AnalyzedJoin,
        store: RunStore,
        query: Mapping[str, Any],
        pace: float,
        trigger: Mapping[str, Any],
        give: Give | None = None,
    ) -> None:
        super().__init__(store, pace)
        self.config, self._join, self._settings = join.config, join, query
        opening = self._make_start_events()
        store.log_opening_events(opening)
        log_events(opening[:1], self.store.where)
        state = store.last_state()
        self._done_before = 0 if state is None else state.epoch + 1
        is_closed = state is not None and state.is_closed
        if not is_closed:
            store.input.start_splitting(self._done_before, store.force)
        config, (spec, frame) = join.config, self._open_input()
        self._engine = Engine(
            spec,
            join.placement,
            store,
            config.lateness_microseconds,
            config.checks_coverage,
            self._publish_events,
            self._make_executor(config.executor),
            config.queries,
            config.shed,
            ahead=config.ahead_microseconds,
            last_epochs=self._find_last_epochs(),
            timeless=config.timeless_streams,
            idle=config.idle_microseconds,
        )
        self._restore_touches()
        self._sink = None if give is None else BatchSink(give, store, self._read_batch_results)
        self._engine.make_empty_batch = self._make_empty_batch
        if is_closed:  # the process died before foreachBatch had the last batches
            self._start_batches(BatchThread(range(0), self._stopping.is_set))
            return
        self._start_batches(self._make_driver(frame, trigger))
        self._start_watch()

    @abstractmethod
    def _make_empty_batch(self) -> Any:
        """Return a batch without tuples."""

    def _waits_for_silence(self) -> bool:
        waits = not self.config.kind.is_inner or self.config.match is not None
        waits |= self.config.shares_queries  # as-of queries may be added
        return self._settings["batches"] is None and waits

    def _has_due_answers(self) -> bool:
        return self._engine.has_due_answers()

    def _run_empty_batch(self) -> None:
        self._engine.run_empty_batch(self._make_empty_batch())

    @property
    def _is_closed(self) -> bool:
        return self._engine.state.is_closed

    def _take_over(self) -> None:
        self.store.take_over()
        started = [replace(e, resumed=True) for e in self._make_start_events()[:1]]
        self.store.log_opening_events(started)

    def _note_sink_seconds(self, seconds: float) -> None:
        self._engine.last_delivery = seconds

    def _end_streams(self) -> None:
        self._engine.close(self._make_empty_batch)

    def _find_last_epochs(self) -> tuple[int | None, ...]:
        """Return, by stream, the micro-batch with its last tuple; None: it is endless."""
        last = self._settings["last_batches"]
        return tuple(last.get(alias) for alias in self.config.streams)

    def _open_input(self) -> tuple[JoinSpec, Any]:
        """Return the settings that stay the same for all batches, and the union of the streams."""
        join, source = self._join, self._join.source
        streams = source.open_streams(self.store)
        kind, weighs = join.config.kind, join.config.shed is not None
        self._schema: Any = source.make_result_schema(
            streams, weighs, kind.structs, join.config.changes, join.config.has_change_types
        )
        self._irregular_schema: Any = source.make_result_schema(
            streams, False, range(len(streams)), join.config.changes
        )
        union, layouts = source.union_streams(join, streams)
        columns, types = source.list_column_names(streams), source.find_result_types(streams)
        return join.make_spec(columns, layouts, self.store, types), union

    @abstractmethod
    def _make_driver(self, frame: Any, trigger: Mapping[str, Any]) -> BatchDriver:
        """Return the driver of the batches of the union."""

    @abstractmethod
    def _check_input(self, number: int) -> None:
        """Raise DamagedRunError if some of a batch's input is missing."""

    @abstractmethod
    def _read_batch_results(self, batch: int) -> Any:
        """Return the results of one batch. They are valid until the next call."""

    def _make_start_events(self) -> list[Any]:
        """Return the events that precede the first batch."""
        config, placement = self.config, self._join.placement
        name = type(placement).__name__
        started = RunStarted(
            tuple(config.streams),
            config.on,
            self._join.window_texts,
            name,
            self._settings["settings"],
            placement.hosts,
            placement.key_space_size,
            self._settings["batches"],
            resumed=config.resumed,
            condition_parts=tuple(part.text for part in self._join.predicate.parts),
            interval_seconds=self._pace or None,
            cores=available_cores(),
        )
        if (chosen := self._settings.get("chosen_placement")) is None:
            return [started]
        return [started, PlacementChosen(name, chosen["reason"], chosen["relative_costs"])]

    @property
    def _event_log(self) -> EventLog:
        return self.store.events

    def _measure_progress(self) -> RunProgress:
        state = self._engine.state
        return RunProgress(
            state.batch,
            state.epoch + 1,
            self._settings["batches"],
            sum(state.received),
            state.irregular.count_by_stream(list(self.config.streams)),
        )

    def _run_next_batch(self, source: Any, number: int) -> None:
        """Run a batch, then wait until the files of the next one are complete.

        Spark lists these files when this returns.
        """
        super()._run_next_batch(source, number)
        with self._turn:  # generated streams do not change meanwhile
            self.store.input.wait_for_batch(number + 1)

    def _run_batch(self, source: Any, number: int) -> None:
        with self.store.raise_if_superseded():
            self._deliver_to_sink()
            self._check_input(number)
            self._join_batch(source, number)
            self._deliver_to_sink()

    def _join_batch(self, source: Any, number: int) -> None:
        self._engine.run_batch(source, number)

    def _finish_batches(self) -> None:
        super()._finish_batches()
        if self.exception() is not None:
            return
        with self.store.raise_if_superseded():
            self._engine.drain(self._make_empty_batch, self._stopping.is_set)
            self._deliver_to_sink()
            if not self._stopping.is_set() and not self._engine.state.is_closed:
                self.store.input.wait_until_split()
            self.store.finish_commit()

    def set_executor(self, way: str) -> None:
        """Set the executor of the next batches: "spark", "process" or "auto"; see StreamJoin."""
        chosen = self._make_executor(way)
        with self._turn:
            self._engine.executor = chosen

    def estimate_results(self) -> RowTable:
        """Return estimates of the full join's results, for a run that sheds load.

        There is a row for each batch and one for the total.

        The total covers the batches whose events are retained. Columns:

        - ``batch``: its number from 0, or "all".
        - ``fraction``: r, the share of pairs.
        - ``results``: results found.
        - ``estimated_results``: estimated results of the full join.
        - ``error_95``: half the width of its 95 % confidence interval; NaN: unknown.
        - ``considered_pair_share``: considered pairs divided by all pairs.
        - ``skipped_pairs``: pairs not considered.
        - ``utility``, ``estimated_utility``: utility found, and estimated for the full join.

        Raises ValueError for a run that sheds no load.
        """
        if self.config.shed is None:
            raise ValueError("the run sheds no load, so that its results are all there are")
        return estimates_table(self.events())

    def _make_executor(self, way: str) -> Executor:
        return make_executor(way, self.store.events.recent_events, self.config.driver_memory)

    def _publish_events(self, happened: list[Any]) -> None:
        """Log the events of a committed batch."""
        log_events(happened, self.store.where)

    def __repr__(self) -> str:
        s = self.status
        batches = f"{s['batch']} of {s['batches']}" if s["batches"] is not None else s["batch"]
        resumed = ", resumed with the input that it began with" if self.config.resumed else ""
        return (
            f"{type(self).__name__}({' ⋈ '.join(self.config.streams)}: {s['state']}, "
            f"batch {batches}, {s['tuples']:,} tuples{self._count_irregular()}, "
            f"in {self.store.where!r}{resumed})"
        )

    def _count_irregular(self) -> str:
        """Return the irregular tuples in words, for ``repr``."""
        state = self._engine.state
        described = state.irregular.describe_counts(list(self.config.streams), state.clocks)
        return f" ({described})" if described else ""

    def _ipython_display_(self) -> None:
        """Show the live view (see ``braid.watch``), or a table without the extra for notebooks."""
        if not can_view():
            raise NotImplementedError  # IPython shows the table instead
        watch(self)._ipython_display_()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Return the live view as a mimebundle, for IPython and others."""
        return watch(self)._repr_mimebundle_(**options) if can_view() else {}

    def _repr_html_(self) -> str:
        status = self.status | {"watermark": describe_watermarks(self._find_watermarks())}
        rows = tuple((name, str(value)) for name, value in status.items())
        return render_html_table(f"{type(self).__name__} in {self.store.where}", rows)

    @property
    def watermark(self) -> dict[str, datetime | None]:
        """The earliest event time still expected of the other streams, by stream, in UTC.

        It is the least clock of the others, each less its lateness. None: one of them has sent
        nothing, or none has event time. The last microsecond of the year 9999: they have ended.
        """
        times = self._find_watermarks().items()
        return {alias: None if time is None else to_datetime(time) for alias, time in times}

    def _find_watermarks(self) -> dict[str, int | None]:
        engine = self._engine
        times = to_times(engine.rules.find_state_watermarks(engine.state))
        return dict(zip(self.config.streams, times, strict=True))

    @property
    def status(self) -> dict[str, Any]:
        """The status of the run, as ``RunLifecycle.status`` has it, with "watermark".

        A join that is not inner also has "waiting": tuples by preserved stream that are not final;
        an as-of join those of its first stream that have not taken a partner. In a shared join
        they are by query, as they differ from query to query.
        """
        kind, waiting = self.config.kind, self._engine.state.answers.waiting
        aliases = list(self.config.streams)
        more: dict[str, Any] = {"watermark": self.watermark}
        if self.config.shares_queries:
            state = self._engine.state
            more["waiting"] = list_waiting_by_query(state.waiting_by_query, state.queries, aliases)
        elif self.config.match is not None:
            more["waiting"] = {aliases[0]: self._engine.state.releases.waiting}
        elif not kind.is_inner:
            more["waiting"] = {aliases[stream]: waiting[stream] for stream in kind.preserved}
        if self.config.shed is not None:
            more["shedding"] = shed_status(self.store.events.recent_events())
        return super().status | more

    def metrics(self, by: str = "host") -> RowTable:
        """Return the metrics of the retained batches, one row per batch and host.

        Columns, whose bytes are those of Arrow buffers:

        - ``batch``, ``host``: their numbers, from 0.
        - ``received_tuples``, ``received_bytes``: sent to the host.
        - ``stored_tuples``, ``stored_bytes``: held after the batch.
        - ``migrated_tuples``, ``migrated_bytes``: read from other hosts.
        - ``discarded_tuples``: dropped.
        - ``compared_pairs``: candidate pairs, which all conditions of an index admit.
        - ``probes``: tuples and intermediate results that probed a block, once for each hop.
        - ``sent_partials``, ``received_partials``, ``received_partial_bytes``: intermediate
          results.
        - ``results``, ``seconds``: results found, and the time of this work.
        - ``skipped_pairs``, ``considered_pairs``: pairs of a probing tuple and a row of a block
          that load shedding skipped, and those that it did not; 0 without it.

        With ``by="batch"``, one row per batch, with sums over all hosts:

        - ``batch``, ``received_tuples``, ``results``, ``stored_tuples``, ``compared_pairs``: as
          above.
        - ``executor``: the executor that ran it.
        - ``source_seconds``, ``planning_seconds``, ``transfer_seconds``, ``kernel_seconds``,
          ``commit_seconds``, ``total_seconds``: by phase (see ``core.batch_history``).
        - ``previous_commit_seconds``: duration of the previous commit.

        Raises ValueError for another ``by``.
        """
        return metrics_table(self.store.events.events_of_type(BatchCommitted), by)

    def explain(self) -> Explanation:
        """Return the explanation of the join, with the pairs that the retained batches compared.

        See ``StreamJoin.explain``, which estimates them.
        """
        commits = self.store.events.events_of_type(BatchCommitted)
        return explain_join(self._join, steps=[s for each in commits for s in each.step_counts])
