"""The lifecycle of a running join: batches, pause, stop, end, status and events."""

from __future__ import annotations

import threading
import time as clock
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from braid.batch_sink import BatchSink, Give
from braid.core.event_logging import LOGGER, log_events
from braid.core.events import BatchCommitted, PlacementChosen, RunEnded, RunStarted
from braid.errors import FencedError
from braid.execution.engine import Engine
from braid.execution.executors import Executor, make_executor
from braid.health import RunHealth, read_health
from braid.join_config import JoinConfig
from braid.kernels.join_spec import JoinSpec
from braid.papers.shedding.shedding_rate import Budget
from braid.run_metrics import metrics_table
from braid.run_views import can_view, watch
from braid.shedding_options import estimates_table
from braid.shedding_options import shedding_status as shed_status
from braid.storage.run_store import RunStore
from braid.util.cancellation import wait_interruptibly
from braid.util.durations import parse_duration
from braid.util.environment import current_workers
from braid.util.error_summary import summarize_error, with_cause
from braid.util.html_table import render_html_table
from braid.util.json_codec import from_plain, to_plain

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


class RunLifecycle(ABC):
    """A running or ended join, independent of the source of its tuples."""

    def __init__(
        self,
        setup: JoinConfig,
        store: RunStore,
        query: Mapping[str, Any],
        pace: float,
        trigger: Mapping[str, Any],
        give: Give | None = None,
    ) -> None:
        self.config, self.store, self._settings = setup, store, query
        opening = self._make_start_events()
        store.log_opening_events(opening)
        log_events(opening[:1])
        self._reason, self._came = "", 0
        self._gate, self._turn = threading.Event(), threading.RLock()
        self._gate.set()
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._over, self._at = False, 0
        self._pace, self._next_turn = pace, 0.0
        self._began = clock.monotonic()
        state = store.last_state()
        self._done_before = 0 if state is None else state.epoch + 1
        store.copied.start_splitting(self._done_before, store.force)
        spec, frame = self._open_input()
        self._engine = Engine(
            spec,
            setup.placement,
            store,
            setup.lateness_microseconds,
            setup.checks_coverage,
            self._publish_events,
            self._make_executor(setup.executor),
            setup.queries,
            setup.shed,
            ahead=parse_duration(setup.ahead, "ahead"),
        )
        self._restore_budget()
        self._sink = None if give is None else BatchSink(give, store, self._read_batch_results)
        self._spark_query = self._start_query(frame, trigger)
        current_workers().start_thread("braid-run", self._wait_and_end)

    def _restore_budget(self) -> None:
        """Restore the budget that an earlier process of this run was adjusted to."""
        shed, stored = self.config.shed, self._settings.get("shedding_budget")
        if shed is not None and stored is not None:
            budget = from_plain(stored, Budget, "the stored budget")
            self._engine.amend_shedder(lambda state: shed.with_budget(state, budget))

    @abstractmethod
    def _open_input(self) -> tuple[JoinSpec, Any]:
        """Return the settings that stay the same for all batches, and the union of the streams."""

    @abstractmethod
    def _start_query(self, frame: Any, trigger: Mapping[str, Any]) -> StreamingQuery:
        """Start to pass each batch of the union to ``_run_next_batch``."""

    @abstractmethod
    def _prepare_batch(self, frame: Any, number: int) -> None:
        """Prepare a batch before it runs.

        Raises DamagedRunError if some of its input is missing.
        """

    @abstractmethod
    def _make_empty_batch(self) -> Any:
        """Return a batch without tuples."""

    @abstractmethod
    def _read_batch_results(self, batch: int) -> Any:
        """Return the results of one batch. They are valid until the next call."""

    def _make_start_events(self) -> list[Any]:
        """Return the events that precede the first batch."""
        j = self.config
        started = RunStarted(
            tuple(j.streams),
            j.on,
            j.windows,
            type(j.placement).__name__,
            self._settings["settings"],
            j.placement.hosts,
            j.placement.key_space_size,
            self._settings["batches"],
            resumed=j.resumed,
        )
        if (chosen := self._settings.get("chosen_placement")) is None:
            return [started]
        name = type(j.placement).__name__
        return [started, PlacementChosen(name, chosen["reason"], chosen["relative_costs"])]

    def _deliver_to_sink(self) -> None:
        """Deliver committed batches to the sink, if there is one."""
        if self._sink is None:
            return
        with self.store.raise_if_superseded():
            self._sink.deliver_until(self._engine.state.batch, self._stopping.is_set)

    def _run_batch(self, frame: Any, number: int) -> None:
        self._engine.run_batch(frame, number)

    def _run_next_batch(self, frame: Any, number: int) -> None:
        """Run a micro-batch; called by Spark.

        An exception must reach Spark. Otherwise Spark would regard the batch as done.
        """
        self._gate.wait()
        self._stopping.wait(max(0.0, self._next_turn - clock.monotonic()))
        self._next_turn = clock.monotonic() + self._pace
        with self._turn:
            if self._stopping.is_set():
                raise RuntimeError("the run was stopped before this batch")
            self._at = threading.get_ident()
            try:
                with self.store.raise_if_superseded():
                    self._deliver_to_sink()
                    self._prepare_batch(frame, number)
                    self._run_batch(frame, number)
                    self._deliver_to_sink()
            except Exception as error:
                self._error = with_cause(error, f"batch {self._engine.state.batch + 1} failed")
                raise
            except BaseException as error:  # an interrupt: only an Exception reaches Spark
                self._error = error
                raise RuntimeError(f"the batch was broken off by {type(error).__name__}") from error
            finally:
                self._at = 0

    def set_executor(self, way: str) -> None:
        """Set the executor of the next batches: "spark", "process" or "auto"; see StreamJoin."""
        chosen = self._make_executor(way)
        with self._turn:
            self._engine.executor = chosen

    def adjust(
        self,
        fraction: float | None = None,
        pairs: float | None = None,
        seconds: float | None = None,
        speed: float | None = None,
    ) -> None:
        """Change the budget of load shedding from the next batch on.

        Give one of the four, as for Shed.

        The budget is written to the run's folder at once and applies after a resume.

        Raises ValueError if the run sheds no load, an amount is out of range, or not exactly one is
        given. Raises RuntimeError if the run has ended.
        """
        if (shed := self.config.shed) is None:
            raise ValueError("the run sheds no load; start it with shed=, as Shed(seconds=1)")
        if fraction is pairs is seconds is speed is None:
            raise ValueError("no budget is given; it is one of fraction, pairs, seconds, speed")
        budget = Budget.from_options(fraction, pairs, seconds, speed)
        if budget.kind == "speed" and self.config.time is None:
            raise ValueError("speed needs event time, and this run has none")
        with self._turn:
            if self._over:
                raise RuntimeError("the run has ended; its budget cannot be adjusted")
            self._settings = {**self._settings, "shedding_budget": to_plain(budget)}
            self.store.create_run(self._settings)
            self._engine.amend_shedder(lambda state: shed.with_budget(state, budget))

    def estimate_results(self) -> pd.DataFrame:
        """Return estimates of the full join's results, for a run that sheds load.

        There is a row for each batch and one for the total.

        The total covers the batches whose events are retained. Columns:

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
        return make_executor(way, self.store.told.recent_events, self.config.driver_memory)

    def _publish_events(self, happened: list[Any]) -> None:
        """Count the tuples of new events, and log the events."""
        self._came += sum(sum(e.received_tuples) for e in happened if isinstance(e, BatchCommitted))
        log_events(happened)

    def _wait_and_end(self) -> None:
        """Wait for the end of the run and record it as the last event.

        The end is signalled by an event object: a thread whose join was interrupted may appear
        dead.
        """
        try:
            self._finish_run()
        finally:
            self._ended.set()

    def _finish_run(self) -> None:
        try:
            self._spark_query.awaitTermination()
            with self.store.raise_if_superseded():
                self._engine.drain(self._make_empty_batch, self._stopping.is_set)
                self._deliver_to_sink()
                self._finish_input()
                self.store.finish_commit()
        except Exception as error:
            self._error = self._error or error
        with self._turn:
            reason = (
                "stopped"
                if self._stopping.is_set()
                else "failed"
                if self.exception() is not None
                else "completed"
            )
            failure = self.exception()
            ended = RunEnded(
                self._engine.state.batch, reason, "" if failure is None else _format_error(failure)
            )
            self._over, self._reason = True, reason
            self._append_end_event(ended)
            self.store.release_run()  # last: from here on, another process may own events.jsonl
        log_events([ended])

    def _finish_input(self) -> None:
        """Wait until all input is written, unless the run was stopped."""
        if not self._stopping.is_set():
            self.store.copied.wait_until_split()

    def _append_end_event(self, ended: RunEnded) -> None:
        try:
            self.store.told.append_events([ended])
        except (OSError, FencedError) as error:
            LOGGER.error("the end of the run is not in events.jsonl: %s", error)

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most ``timeout`` seconds, and return whether the run has ended.

        Raises the error of a failed run.
        """
        ended = wait_interruptibly(self._ended, timeout)
        if ended and (error := self.exception()) is not None:
            raise error
        return ended

    def stop(self) -> None:
        """Stop within one batch.

        An unfinished batch is discarded and repeated when the run is resumed. If ``foreachBatch``
        calls this, it returns at once and the run ends after the current batch.
        """
        if not self.isActive:
            return
        self._stopping.set()
        self._gate.set()
        self.store.copied.request_stop()
        if self._at == threading.get_ident():  # called by foreachBatch, for which the batch waits
            return
        self._spark_query.stop()
        wait_interruptibly(self._ended)

    def pause(self) -> None:
        """Pause the run before its next batch."""
        self._gate.clear()

    def unpause(self) -> None:
        """Continue a paused run."""
        self._gate.set()

    def __repr__(self) -> str:
        s = self.status
        batches = f"{s['batch']} of {s['batches']}" if s["batches"] is not None else s["batch"]
        return (
            f"{type(self).__name__}({' ⋈ '.join(self.config.streams)}: {s['state']}, "
            f"batch {batches}, {s['tuples']:,} tuples{self._count_irregular()}, "
            f"in {self.store.where!r}{self._is_resumed()})"
        )

    def _is_resumed(self) -> str:
        return ", resumed with the input that it began with" if self.config.resumed else ""

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
        rows = tuple((name, str(value)) for name, value in self.status.items())
        return render_html_table(f"{type(self).__name__} in {self.store.where}", rows)

    @property
    def isActive(self) -> bool:
        """Whether the run has not ended."""
        return not self._ended.is_set()

    @property
    def isPaused(self) -> bool:
        """Whether the run is paused before its next batch."""
        return self.isActive and not self._gate.is_set()

    def exception(self) -> BaseException | None:
        """Return the error of a failed run, with its cause; None: the run has not failed."""
        if self._stopping.is_set():
            return None
        return self._error or self._spark_query.exception()

    def health(self) -> RunHealth:
        """Return the health of the run.

        It prints as a line, and converts to JSON or Prometheus's text.

        ``braid health`` returns the same to other processes.
        """
        return read_health(self.store.path)

    @property
    def status(self) -> dict[str, Any]:
        """The status of the run.

        - "state": "running", "paused", or the outcome.
        - "batch", "batches": committed micro-batches, and their total (None: unknown).
        - "tuples", "tuples_per_second": tuples received.
        - "seconds_left": estimate; None: unknown.
        - "late", "untimed", "ahead": irregular tuples by stream, if any (see
          ``core.stream_clocks.IrregularCounts``).
        - "shedding": in a run that sheds load, see ``shedding_options.shedding_status``.
        """
        done, seconds = self._engine.state.epoch + 1, clock.monotonic() - self._began
        here, total = done - self._done_before, self._settings["batches"]
        going = "running" if self._gate.is_set() else "paused"
        return {
            "state": self._reason or going,
            "batch": done,
            "batches": total,
            "tuples": sum(self._engine.state.received),
            "tuples_per_second": self._came / seconds if seconds else 0.0,
            "seconds_left": seconds / here * (total - done)
            if total is not None and here > 0
            else None,
            **self._engine.state.irregular.count_by_stream(list(self.config.streams)),
        } | (
            {}
            if self.config.shed is None
            else {"shedding": shed_status(self.store.told.recent_events())}
        )

    def events(self, since: int = 0) -> list[Any]:
        """Return the events from event number ``since`` on, in order.

        The last thousand are in memory; all retained ones are in the run's folder. One
        ``EventsTrimmed`` replaces the trimmed ones (see ``keep``). It occupies several numbers;
        ``core.events.count_event_numbers`` counts them.
        """
        return self.store.told.read_since(since)

    def metrics(self, by: str = "host") -> pd.DataFrame:
        """Return the metrics of the retained batches, one row per batch and host.

        Columns: tuples received, stored, moved, discarded and compared, results, bytes and seconds.

        With ``by="batch"``, one row per batch: tuples received, results, tuples stored and compared
        on all hosts, the executor, seconds by phase (see ``core.batch_history``), and
        ``previous_commit_seconds``, the duration of the previous commit.

        Raises ValueError for another ``by``.
        """
        return metrics_table(self.store.told.events_of_type(BatchCommitted), by)


def _format_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {summarize_error(error)}"
