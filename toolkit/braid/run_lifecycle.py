"""The lifecycle of a run: batches, pause, stop, end, status and events."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from braid.core.event_jsonl import LOGGER, log_events
from braid.core.run_events import RunEnded
from braid.errors import FencedError
from braid.health import RunHealth, read_health
from braid.sources.batch_drivers import BatchDriver
from braid.storage.event_log import EventLog
from braid.storage.run_store import RunStore
from braid.util.batch_numbers import display_batch
from braid.util.cancellation import wait_interruptibly
from braid.util.clock_and_threads import current_environment, current_workers
from braid.util.error_summary import summarize_error, with_cause


class RunProgress(NamedTuple):
    """Progress of a run, as of its last commit.

    - ``last_batch``: number of the last committed batch; -1: none.
    - ``micro_batches``: committed micro-batches.
    - ``total_micro_batches``: None: unknown.
    - ``tuples``: tuples received.
    - ``irregular``: irregular tuples by kind and stream.
    """

    last_batch: int
    micro_batches: int
    total_micro_batches: int | None
    tuples: int
    irregular: dict[str, dict[str, int]]


class RunLifecycle(ABC):
    """The lifecycle of a running or ended run, independent of what its batches do.

    A batch driver passes batches to ``_run_next_batch``. All methods are thread-safe.
    """

    _kind: ClassVar[str] = "run"
    """The word for this run in sentences."""

    def __init__(self, store: RunStore, pace: float) -> None:
        """``pace``: minimum seconds from the start of one batch to the start of the next."""
        self.store = store
        self._pace, self._next_turn = pace, 0.0
        self._turn, self._gate = threading.RLock(), threading.Event()
        self._gate.set()
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._outcome, self._batch_thread = "", 0

    def _start_batches(self, driver: BatchDriver) -> None:
        """Start the batches, and a thread that waits for their end."""
        self._driver = driver
        self._first_progress = self._measure_progress()
        self._began = current_environment().read_clock()
        driver.start(self._run_next_batch)
        current_workers().start_thread(f"braid-{self._kind}", self._wait_and_end)

    @property
    @abstractmethod
    def _event_log(self) -> EventLog:
        """The log of events."""

    @abstractmethod
    def _measure_progress(self) -> RunProgress:
        """Return the progress as of the last commit."""

    @abstractmethod
    def _run_batch(self, source: Any, number: int) -> None:
        """Run and commit a batch, unless it is committed already."""

    def _run_next_batch(self, source: Any, number: int) -> None:
        """Run a micro-batch as soon as it is due; called by the driver.

        An exception must reach the driver. Otherwise Spark would regard the batch as done.
        """
        self._gate.wait()
        self._stopping.wait(max(0.0, self._next_turn - current_environment().read_clock()))
        self._next_turn = current_environment().read_clock() + self._pace
        with self._turn:
            if self._stopping.is_set():
                raise RuntimeError(f"the {self._kind} was stopped before this batch")
            self._batch_thread = threading.get_ident()
            try:
                self._run_batch(source, number)
            except Exception as error:
                failed = self._measure_progress().last_batch + 1
                self._error = with_cause(error, f"batch {display_batch(failed)} failed")
                raise
            except BaseException as error:  # an interrupt: only an Exception reaches Spark
                self._error = error
                raise RuntimeError(f"the batch was broken off by {type(error).__name__}") from error
            finally:
                self._batch_thread = 0

    def _wait_and_end(self) -> None:
        """Wait for the end of the run and record it as the last event.

        The end is signaled by an event object: a thread whose join was interrupted may appear
        dead.
        """
        try:
            self._finish_run()
        finally:
            self._ended.set()

    def _finish_run(self) -> None:
        try:
            self._finish_batches()
        except Exception as error:
            self._record_error(error)
        with self._turn:
            try:
                ended = self._make_end_event()
                self._outcome = ended.outcome
                self._append_end_event(ended)
            finally:  # last: from here on, another process may own the folder
                self.store.release_run()
        log_events([ended], self.store.where)

    def _finish_batches(self) -> None:
        """Wait for the last batch. Raises the error of the batch that failed."""
        self._driver.wait()

    def _record_error(self, error: BaseException) -> None:
        """Record the error that ended the run, unless another one is recorded."""
        self._error = self._error or error

    def _make_end_event(self) -> RunEnded:
        failure = self.exception()
        outcome = "stopped" if self._stopping.is_set() else "failed" if failure else "completed"
        cause = "" if failure is None else f"{type(failure).__name__}: {summarize_error(failure)}"
        return RunEnded(self._measure_progress().last_batch, outcome, cause)

    def _append_end_event(self, ended: RunEnded) -> None:
        try:
            self._event_log.append_events([ended])
        except (OSError, FencedError) as error:
            LOGGER.error("the end of the %s is not in events.jsonl: %s", self._kind, error)

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most ``timeout`` seconds, and return whether it has come.

        ``timeout``: default: no limit. Raises the error of a failed run.
        """
        wait_interruptibly(self._ended, timeout)
        ended = self._ended.is_set()
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
        self._driver.expect_stop()
        self._stopping.set()
        self._gate.set()
        self.store.input.request_stop()
        if self._batch_thread == threading.get_ident():  # the batch waits for its caller
            return
        self._driver.stop()
        wait_interruptibly(self._ended)

    def pause(self) -> None:
        """Pause before the next batch."""
        self._gate.clear()

    def unpause(self) -> None:
        """Continue after a pause."""
        self._gate.set()

    @property
    def isActive(self) -> bool:
        """Whether the run has not ended."""
        return not self._ended.is_set()

    @property
    def isPaused(self) -> bool:
        """Whether the run is paused before its next batch."""
        return self.isActive and not self._gate.is_set()

    def exception(self) -> BaseException | None:
        """Return the error of a failed run, with its cause; None: it has not failed."""
        return None if self._stopping.is_set() else self._error

    @property
    def spark_query(self) -> Any:
        """Spark's handle of the streaming query; for tables, the thread that runs the batches."""
        return self._driver.handle

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
        - "watermark": of a join, see ``EngineRun.watermark``.
        - "waiting": of a join that is not inner, preserved tuples that are not answered yet; in a
          shared join and a hub by query.
        - "shedding": in a run that sheds load, see ``shedding_options.shedding_status``.
        """
        now, first = self._measure_progress(), self._first_progress
        seconds = current_environment().read_clock() - self._began
        done, total = now.micro_batches, now.total_micro_batches
        here, going = done - first.micro_batches, "running" if self._gate.is_set() else "paused"
        return {
            "state": self._outcome or going,
            "batch": done,
            "batches": total,
            "tuples": now.tuples,
            "tuples_per_second": (now.tuples - first.tuples) / seconds if seconds else 0.0,
            "seconds_left": self._estimate_seconds_left(seconds, here, total - done)
            if total is not None
            else None,
            **now.irregular,
        }

    def _estimate_seconds_left(self, seconds: float, here: int, left: int) -> float | None:
        """Return the seconds that some batches take; None: no batch has run here.

        A completed run needs none, even if it was closed before its input ended.
        """
        if self._outcome == "completed":
            return 0.0
        return seconds / here * left if here > 0 else None

    def events(self, since: int = 0) -> list[Any]:
        """Return the events from event number ``since`` on, in order.

        The last thousand are in memory; all retained ones are in the run's folder. One
        ``EventsTrimmed`` replaces the trimmed ones (see ``keep``). It occupies several numbers;
        ``core.run_events.count_event_numbers`` counts them.
        """
        return self._event_log.read_since(since)
