"""Every run has the same lifecycle, whatever drives its batches and whatever they do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from braid.arrow_join import ArrowJoinRun
from braid.core.run_events import Event, RunEnded
from braid.hub.hub_run import HubRun
from braid.join_run import JoinRun
from braid.run_lifecycle import RunLifecycle, RunProgress
from braid.shared.shared_run import SharedRun
from braid.sources.batch_drivers import BatchThread
from braid.storage.event_log import EventLog
from braid.storage.run_store import RunStore

SHARED = (
    "pause",
    "unpause",
    "stop",
    "awaitTermination",
    "isActive",
    "isPaused",
    "exception",
    "spark_query",
    "events",
    "health",
)


class CountingRun(RunLifecycle):
    """A run of ``total`` batches. Each batch calls ``act`` with its number."""

    def __init__(self, folder: Path, total: int, act: Callable[[CountingRun, int], None]) -> None:
        store = RunStore(folder)
        store.acquire_run()
        super().__init__(store, 0.0)
        self.done, self.total, self._act = list[int](), total, act
        self._events = EventLog(folder / "events.jsonl")
        self._events.begin_log([])
        self._start_batches(BatchThread(range(total), self._stopping.is_set))

    @property
    def _event_log(self) -> EventLog:
        return self._events

    def _measure_progress(self) -> RunProgress:
        done = len(self.done)
        return RunProgress(done - 1, done, self.total, 10 * done, {})

    def _run_batch(self, source: Any, number: int) -> None:
        self._act(self, number)
        self.done.append(number)


def end_event(run: RunLifecycle) -> Event:
    (event,) = run.events()
    return event


def test_a_run_completes_and_says_so(tmp_path: Path) -> None:
    run = CountingRun(tmp_path / "run", 3, lambda run, number: None)
    assert run.awaitTermination(60)
    assert (run.isActive, run.exception(), run.done) == (False, None, [0, 1, 2])
    assert end_event(run) == RunEnded(2, "completed")
    status = run.status
    assert (status["state"], status["batch"], status["batches"]) == ("completed", 3, 3)
    assert (status["tuples"], status["seconds_left"]) == (30, 0)
    assert not run.store.lock.is_held()


def test_a_paused_run_waits_before_its_next_batch(tmp_path: Path) -> None:
    paused = threading.Event()

    def pause_once(run: CountingRun, number: int) -> None:
        if number == 0:
            run.pause()
            paused.set()

    run = CountingRun(tmp_path / "run", 2, pause_once)
    assert paused.wait(60) and not run.awaitTermination(0.05)
    assert (run.isPaused, run.status["state"], run.done) == (True, "paused", [0])
    run.unpause()
    assert run.awaitTermination(60) and run.done == [0, 1]


def test_a_paused_run_can_be_stopped(tmp_path: Path) -> None:
    run = CountingRun(tmp_path / "run", 9, lambda run, number: run.pause())
    while not run.done:
        threading.Event().wait(0.001)
    run.stop()
    assert (run.isActive, run.isPaused, run.exception()) == (False, False, None)
    assert (run.done, end_event(run)) == ([0], RunEnded(0, "stopped"))


def test_a_batch_can_stop_its_own_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = list[bool]()

    def expect_stop(driver: BatchThread) -> None:
        expected.append(driver._is_stopped())

    monkeypatch.setattr(BatchThread, "expect_stop", expect_stop)
    run = CountingRun(tmp_path / "run", 9, lambda run, number: run.stop())
    assert run.awaitTermination(60)
    assert expected == [False], "the driver knows it before a batch can end for it"
    assert (run.done, end_event(run)) == ([0], RunEnded(0, "stopped"))


def test_the_error_of_a_batch_fails_the_run(tmp_path: Path) -> None:
    def fail(run: CountingRun, number: int) -> None:
        if number:
            raise OSError("the disk is full")

    run = CountingRun(tmp_path / "run", 3, fail)
    with pytest.raises(OSError, match="the disk is full"):
        run.awaitTermination(60)
    assert end_event(run) == RunEnded(0, "failed", "OSError: the disk is full")
    assert run.status["state"] == "failed" and not run.store.lock.is_held()


def test_the_error_of_a_driver_fails_the_run(tmp_path: Path) -> None:
    """A source may fail between two batches, or after the last one."""

    class FailingRun(CountingRun):
        def _finish_batches(self) -> None:
            super()._finish_batches()
            raise OSError("the source is gone")

    run = FailingRun(tmp_path / "run", 1, lambda run, number: None)
    with pytest.raises(OSError, match="the source is gone"):
        run.awaitTermination(60)
    assert end_event(run) == RunEnded(0, "failed", "OSError: the source is gone")


def test_an_interrupted_batch_fails_the_run(tmp_path: Path) -> None:
    def interrupt(run: CountingRun, number: int) -> None:
        raise KeyboardInterrupt

    run = CountingRun(tmp_path / "run", 1, interrupt)
    with pytest.raises(KeyboardInterrupt):
        run.awaitTermination(60)
    assert run.status["state"] == "failed"


def test_a_run_that_cannot_record_its_end_is_released(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def break_log(run: CountingRun, number: int) -> None:
        run._events.append_events = fail_to_append  # type: ignore[method-assign]

    def fail_to_append(events: Any) -> None:
        raise OSError("the disk is full")

    run = CountingRun(tmp_path / "run", 1, break_log)
    assert run.awaitTermination(60) and not run.store.lock.is_held()
    assert "the end of the run is not in events.jsonl: the disk is full" in caplog.text


@pytest.mark.parametrize("kind", [JoinRun, ArrowJoinRun, SharedRun, HubRun])
def test_every_kind_of_run_has_this_lifecycle(kind: type[RunLifecycle]) -> None:
    assert issubclass(kind, RunLifecycle)
    changed = [n for n in SHARED for c in kind.__mro__[:-1] if n in vars(c) and c != RunLifecycle]
    assert not changed
