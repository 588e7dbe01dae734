"""A run has one driver, which can be stopped, and its end is reported in all circumstances."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from braid.core.event_jsonl import EventTail
from braid.core.run_events import RunEnded
from braid.core.run_state import RunState
from braid.errors import FencedError
from braid.join_run import JoinRun
from braid.storage.manifest_log import ManifestLog
from braid.storage.run_lock import RunLock
from braid.storage.run_medium import LocalMedium
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from oracle import compute_expected, describe_difference, make_tables, paused_after_two, result_ids
from scatter import Scatter

ON = "a.k = b.k"
STREAMS = make_tables("ab", 60, seed=95, batches=5)
WANTED = compute_expected(STREAMS, ON)


def start(folder: Path, **more: Any) -> JoinRun:
    return StreamJoin(STREAMS, ON, Scatter()).start(folder, batches="batch", **more)


def resumed(folder: Path) -> JoinRun:
    run = StreamJoin.resume(folder, STREAMS)
    assert run.awaitTermination()
    return run


@pytest.fixture(params=[True, False], ids=["as it is", "calls begin again, as with asyncio"])
def interrupts(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.siginterrupt(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_while_waiting_leaves_the_run_as_it_is(tmp_path: Path) -> None:
    """As by Jupyter's stop button."""
    run = start(tmp_path, pace=30)
    for wait in (None, 30):
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
            run.awaitTermination(wait)
        assert run.isActive and not run.awaitTermination(0.01)
        assert run.status["state"] == "running"
    with pytest.raises(RuntimeError, match="is in use by a run that has not ended"):
        StreamJoin.resume(tmp_path, STREAMS)
    run.stop()
    assert not run.isActive and run.awaitTermination(0)
    assert run.status["state"] == "stopped"
    assert describe_difference(result_ids(resumed(tmp_path).results()), WANTED) == ""


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_while_stopping_leaves_the_run_to_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, go_on = paused_after_two(lambda: start(tmp_path)), threading.Event()
    real = RunStore.release_run

    def release(store: RunStore) -> None:
        assert go_on.wait(30)
        real(store)

    monkeypatch.setattr(RunStore, "release_run", release)
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        run.stop()
    assert run.isActive
    go_on.set()
    run.stop()
    assert not run.isActive and run.status["state"] == "stopped"


def test_a_run_whose_folder_is_gone_has_failed(tmp_path: Path) -> None:
    run = paused_after_two(lambda: start(tmp_path / "run"))
    shutil.rmtree(tmp_path / "run")
    run.unpause()
    with pytest.raises(ValueError, match="is missing"):
        run.awaitTermination()
    assert run.status["state"] == "failed" and not run.isActive
    last = run.events()[-1]
    assert isinstance(last, RunEnded) and "is missing" in last.error


def test_what_cannot_be_written_has_happened_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk has no room for events.jsonl after a commit."""
    run = paused_after_two(lambda: start(tmp_path))
    done = run.status["batch"]
    (tmp_path / "events.jsonl").unlink()
    (tmp_path / "events.jsonl").mkdir()
    run.unpause()
    with pytest.raises(IsADirectoryError):
        run.awaitTermination()
    assert [e.batch for e in run.events() if type(e).__name__ == "BatchCommitted"] == [
        *range(done + 1)
    ]
    assert run.status["state"] == "failed"
    (tmp_path / "events.jsonl").rmdir()
    assert describe_difference(result_ids(resumed(tmp_path).results()), WANTED) == ""


def test_a_driver_whose_lock_is_gone_stops(tmp_path: Path) -> None:
    run = paused_after_two(lambda: start(tmp_path))
    (tmp_path / ".lock").unlink()
    run.unpause()
    with pytest.raises(RuntimeError, match="has been removed or replaced.*this one stops$"):
        run.awaitTermination()
    assert describe_difference(result_ids(resumed(tmp_path).results()), WANTED) == ""


def test_of_two_drivers_one_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is gone, as on a file system that does not support it.

    The first driver wakes after the second has finished, and reports its end only on request.
    """
    monkeypatch.setattr(
        "braid.execution.thread_executor.available_cores", lambda: 1
    )  # driver two might miss a block first
    run = paused_after_two(lambda: start(tmp_path))
    (tmp_path / ".lock").unlink()
    second = resumed(tmp_path)
    assert describe_difference(result_ids(second.results()), WANTED) == ""
    before = {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file() and f.name != ".lock"}
    run.unpause()
    with pytest.raises(FencedError, match=f"since .* has taken over .* {tmp_path}.*stops$") as said:
        run.awaitTermination()
    assert f"process {os.getpid()}" in str(said.value)
    unnamed = [*tmp_path.glob("staging/*"), *tmp_path.glob("blocks/*")]
    for file in {*before} - {*unnamed}:
        assert file.read_bytes() == before[file]
    assert describe_difference(result_ids(resumed(tmp_path).results()), WANTED) == ""


def test_two_drivers_by_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes over from the other repeatedly: each commit is by the last to take over."""
    monkeypatch.setattr(RunLock, "check_held", lambda lock: None)
    RunStore(tmp_path).create_run({})
    drivers, batch = [RunStore(tmp_path) for _ in range(2)], 0
    for turn in range(6):
        mine, other = drivers[turn % 2], drivers[1 - turn % 2]
        mine.log.reset_log()
        mine.take_over()
        for _ in range(turn % 3):
            mine.commit_batch(batch, mine.states.write_state(RunState(batch)), {}, [])
            batch += 1
        if turn:
            with pytest.raises(FencedError):
                other.commit_batch(batch, other.states.write_state(RunState(batch)), {}, [])
    assert RunStore(tmp_path).log.committed_batches() == [*range(batch)]


def test_the_end_is_told_before_another_driver_may_have_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next driver of the run rewrites events.jsonl."""
    last, real = list[Any](), RunStore.release_run

    def release(store: RunStore) -> None:
        last.append(EventTail(store.path).read_new()[-1])
        real(store)

    monkeypatch.setattr(RunStore, "release_run", release)
    assert start(tmp_path).awaitTermination()
    assert [type(e) for e in last] == [RunEnded]


def test_who_has_a_run_is_written_down(tmp_path: Path) -> None:
    run = start(tmp_path)
    run.awaitTermination()
    first = json.loads((tmp_path / "commits" / "000000.json").read_text())
    assert first["driver"]["process"] == os.getpid() and first["batch"] == -1
    resumed(tmp_path)
    assert json.loads((tmp_path / "commits" / "000006.json").read_text())["batch"] == 4


def test_an_entry_that_this_driver_puts_is_not_another_drivers(tmp_path: Path) -> None:
    """The thread that splits the input checks while a batch is committed."""
    (tmp_path / "commits").mkdir()
    log, errors, asked = (
        ManifestLog(LocalMedium(tmp_path, "process")),
        list[Exception](),
        threading.Event(),
    )
    log.append_entry()

    def check() -> None:
        try:
            log.check_fence()
        except FencedError as error:
            errors.append(error)
        asked.set()

    thread = threading.Thread(target=check)
    place = log.medium.put_new

    def placed(*args: Any) -> None:
        place(*args)
        thread.start()
        asked.wait(0.1)

    log.medium.put_new = placed  # type: ignore[method-assign]
    log.append_entry()
    thread.join()
    assert not errors


def test_what_fails_after_an_entry_was_put_is_no_other_driver(tmp_path: Path) -> None:
    """For example, if the entry's folder cannot be synced to disk: that error ends the run."""
    (tmp_path / "commits").mkdir()
    log = ManifestLog(LocalMedium(tmp_path, "process"))
    log.append_entry()
    place = log.medium.put_new

    def placed(*args: Any) -> None:
        place(*args)
        raise OSError("no space left")

    log.medium.put_new = placed  # type: ignore[method-assign]
    with pytest.raises(OSError, match="no space left"):
        log.append_entry()
    log.check_fence()
    log.entry_path(1).write_bytes(b"of another driver")
    with pytest.raises(FencedError, match="another driver has taken over"):
        log.check_fence()
