"""HubBatchLoop: the batches of a running hub, with and without tuples, and its event time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from braid.core.irregular_rows import IrregularRowsWritten
from braid.core.stream_clocks import find_other_times
from braid.empty_batch_run import EmptyBatchRun
from braid.hub.hub_batches import answer_rest, run_batch, run_empty_batch
from braid.hub.hub_state import HubState
from braid.hub.query_registry import QueryRegistry
from braid.run_lifecycle import RunProgress
from braid.storage.block_readers import close_block_files
from braid.storage.event_log import EventLog
from braid.storage.run_store import RunStore
from braid.util.clock_and_threads import current_environment
from braid.util.durations import to_datetime


class HubBatchLoop(EmptyBatchRun):
    """A hub that runs batches and answers what waits, whatever its queries are."""

    _kind = "hub"

    def __init__(self, store: RunStore, pace: float, registry: QueryRegistry) -> None:
        super().__init__(store, pace)
        self._registry = registry
        self.seconds: list[float] = []
        """Wall-clock seconds of each batch since this start: reading, all operators and the commit.
        """

    @property
    def state(self) -> HubState:
        """State of the hub, as of its last commit."""
        return self._registry.ledger

    @property
    def _event_log(self) -> EventLog:
        return self.store.events

    def _waits_for_silence(self) -> bool:
        return self._registry.reader.last_batch is None

    def _has_due_answers(self) -> bool:
        return self._registry.works.has_due_answers()

    def _run_empty_batch(self) -> None:
        with self.store.raise_if_superseded():
            run_empty_batch(self._registry)

    @property
    def _has_ended(self) -> bool:
        """Whether all streams have ended."""
        last = self._registry.reader.last_batch
        return self.state.is_closed or (last is not None and self.state.micro_batch >= last)

    @property
    def _is_closed(self) -> bool:
        return self._has_ended and not self._registry.works.needs_closing_batch()

    def _take_over(self) -> None:
        self.store.take_over()
        self.store.log_opening_events()

    def _end_streams(self) -> None:
        if not self._has_ended:
            run_empty_batch(self._registry, is_last=True)
        answer_rest(self._registry)
        self._close_operators()

    @property
    def watermark(self) -> dict[str, datetime | None]:
        """The earliest event time still expected of the other streams, by stream, in UTC.

        None: one of them has sent nothing. The last microsecond of the year 9999: they have ended.
        """
        passed = {s: self.state.passed_times.get(s) for s in self._registry.reader.schemas}
        times = find_other_times(passed).items()
        return {stream: None if t is None else to_datetime(t) for stream, t in times}

    @property
    def status(self) -> dict[str, Any]:
        """The status of the hub, as ``RunLifecycle.status`` has it, with "watermark" and "waiting".

        "waiting" has, by query that is not an inner join, the tuples by stream that are not final.
        """
        waiting = self._registry.count_waiting(self.state.serving_queries)
        return super().status | {"watermark": self.watermark, "waiting": waiting}

    def _measure_progress(self) -> RunProgress:
        state, last = self.state, self._registry.reader.last_batch
        return RunProgress(
            state.epoch,
            state.micro_batch + 1,
            None if last is None else last + 1,
            sum(tuples for tuples, _ in state.received_counts.values()),
            state.irregular_counts.count_by_stream(sorted(state.clocks)),
        )

    def _run_batch(self, source: Any, number: int) -> None:
        began = current_environment().read_clock()
        self.store.checkpoint.start_sync()
        self.store.input.check_files(number)
        with self.store.raise_if_superseded():
            self._deliver_to_sink()
            self._join_batch(source, number)
            self._deliver_to_sink()
        self.seconds.append(current_environment().read_clock() - began)

    def _join_batch(self, source: Any, number: int) -> None:
        run_batch(self._registry, source, number)

    def _finish_batches(self) -> None:
        """Wait for the last batch, then until dropped block files are removed."""
        try:
            super()._finish_batches()
            with self._turn, self.store.raise_if_superseded():
                if self._has_ended and not self._stopping.is_set():
                    answer_rest(self._registry)
                self._deliver_to_sink()
        except Exception as error:
            self._record_error(error)
        self._close_operators()

    def _close_operators(self) -> None:
        for instance in [*self._registry.works.instances.values()]:
            try:
                instance.store.blocks.wait_for_removals()
            except Exception as error:
                self._record_error(error)
            close_block_files(instance.store.blocks.folder)

    def late(self) -> Any:
        """Return the late, untimed and early tuples of all committed batches.

        See ``JoinRun.late``. ``row`` has a struct for each stream. "late": behind what its stream
        has passed, so that it may miss partners; ``behind`` says how far. "untimed": without event
        time, so that no query joined it. Raises DamagedRunError if a file is missing or damaged.
        """
        reader, irregular = self._registry.reader, self.store.irregular
        written = self.store.events.events_of_type(IrregularRowsWritten)
        return reader.read_irregular_rows(irregular.find_paths(written, [*reader.schemas], True))
