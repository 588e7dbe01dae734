"""EmptyBatchRun: a running join that also runs batches without tuples, which answer what waits."""

from __future__ import annotations

from abc import abstractmethod
from math import inf
from threading import get_ident
from typing import ClassVar

from braid.batch_sink import BatchSink
from braid.run_lifecycle import RunLifecycle
from braid.util.clock_and_threads import current_environment, current_workers
from braid.util.error_summary import with_cause


class EmptyBatchRun(RunLifecycle):
    """A run whose source may be silent while answers wait, and that can be closed.

    The attributes are set before batches start.
    """

    silence_seconds: ClassVar[float] = 10.0
    """Seconds without a batch after which waiting answers get a batch without tuples."""

    _sink: BatchSink | None
    _last_arrival: tuple[int, float] = (-1, 0.0)
    """The last batch, and when it was first seen; infinite: it has no successor without tuples."""

    @abstractmethod
    def _waits_for_silence(self) -> bool:
        """Return whether answers may wait for a source that is silent."""

    @abstractmethod
    def _has_due_answers(self) -> bool:
        """Return whether a batch without tuples would answer some tuples that wait."""

    @abstractmethod
    def _run_empty_batch(self) -> None:
        """Run and commit a batch without tuples."""

    @property
    @abstractmethod
    def _is_closed(self) -> bool:
        """Whether all streams have ended for good."""

    @abstractmethod
    def _take_over(self) -> None:
        """Take over the run again."""

    @abstractmethod
    def _end_streams(self) -> None:
        """End all streams, and answer what waits."""

    def _note_sink_seconds(self, seconds: float) -> None:
        """Take the duration of the last delivery to the sink, for the next commit."""

    def _deliver_to_sink(self) -> None:
        """Deliver committed batches to the sink, if there is one."""
        if self._sink is None:
            return
        with self.store.raise_if_superseded():
            last = self._measure_progress().last_batch
            self._sink.deliver_until(last, self._stopping.is_set)
        self._note_sink_seconds(self._sink.seconds)

    def _start_watch(self) -> None:
        """Watch for silence of the source, if answers may wait meanwhile."""
        if self._waits_for_silence():
            current_workers().start_thread("braid-silence", self._answer_during_silence)

    def _answer_during_silence(self) -> None:
        """Run a batch without tuples while the source is silent and answers wait for the next one.

        The clock of the driver decides when it runs, never what it does.
        """
        while not self._ended.wait(self.silence_seconds):
            try:
                with self._turn:
                    self._answer_if_silent()
            except Exception as error:
                self._error = with_cause(error, "a batch without tuples failed")
            if self._error is not None or self._stopping.is_set():
                self._driver.stop()
                return

    def _answer_if_silent(self) -> None:
        batch, now = self._measure_progress().last_batch, current_environment().read_clock()
        last, since = self._last_arrival
        if last != batch:  # the batch came after the last look
            self._last_arrival = batch, now
        elif now - since >= self.silence_seconds and self._can_answer():
            self._batch_thread = get_ident()
            try:
                self._run_empty_batch()
                self._last_arrival = self._measure_progress().last_batch, inf
                self._deliver_to_sink()
            finally:
                self._batch_thread = 0

    def _can_answer(self) -> bool:
        """Return whether a batch may run now, and would answer some tuples."""
        can_run = self._gate.is_set() and not self._stopping.is_set() and not self._ended.is_set()
        return can_run and not self._outcome and self._has_due_answers()

    def close(self) -> None:
        """End all streams for good: no more tuples come, so all that waits is answered.

        One more batch, without tuples, is run and delivered. A closed join cannot be resumed; a
        closed hub can be started again to read its answers. If ``foreachBatch`` fails on that
        batch, ``close`` raises its error, and delivers the batch if it is called again. It has no
        effect on a run that is closed and delivered.

        Raises RuntimeError while batches run and if the run has failed, FencedError if another
        process has continued it.
        """
        if self.isActive:
            raise RuntimeError(
                f"batches of the {self._kind} are running; stop it before it is closed"
            )
        if self._error is not None and not self._stopping.is_set():
            raise RuntimeError(
                f"the {self._kind} has failed, so its input is incomplete; resume it first"
            )
        with self._turn:
            if not self._is_closed or self._has_undelivered_batches():
                self._reopen_and_close()

    def _has_undelivered_batches(self) -> bool:
        last = self._measure_progress().last_batch
        return self._sink is not None and self._sink.next_batch <= last

    def _reopen_and_close(self) -> None:
        """Take over the run again, and run the closing batch."""
        store = self.store
        store.acquire_run()
        try:
            with store.raise_if_superseded():
                self._take_over()
                if not self._is_closed:
                    self._end_streams()
                self._stopping.clear()
                self._error = None  # of a call of foreachBatch during stop(); it is repeated
                self._deliver_to_sink()
                store.finish_commit()
                self._outcome = "completed"
                self._append_end_event(self._make_end_event())
        finally:
            store.release_run()
