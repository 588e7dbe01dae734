"""Garbage that refers to itself is collected between the steps of a batch, not during them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread

import pytest
from braid import Centralized
from braid.core import batch_step
from braid.stream_join import StreamJoin
from braid.util.garbage_collection import pause_garbage_collection
from oracle import make_tables


@pytest.fixture(autouse=True)
def _enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_a_pause_ends_with_the_last_of_several_even_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), pause_garbage_collection():
        with pause_garbage_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
        1 / 0  # noqa: B018
    assert gc.isenabled()


def test_a_collector_that_the_user_disabled_stays_so() -> None:
    gc.disable()
    with pause_garbage_collection():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_pauses_of_threads_overlap_in_any_order() -> None:
    begun, ended = Barrier(2), Barrier(2)

    def pause() -> None:
        with pause_garbage_collection():
            begun.wait()
            ended.wait()

    thread = Thread(target=pause)
    thread.start()
    begun.wait()
    with pause_garbage_collection():
        pass
    assert not gc.isenabled()
    ended.wait()
    thread.join()
    assert gc.isenabled()


def test_a_run_plans_and_commits_in_a_pause_and_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = set()
    for name in ("plan_compaction", "make_commit_event"):
        real = getattr(batch_step, name)

        def watch(*given: object, real: object = real, name: str = name) -> object:
            states.add((name, gc.isenabled()))
            return real(*given)  # type: ignore[operator]

        monkeypatch.setattr(batch_step, name, watch)
    run = StreamJoin(make_tables("ab", 20, 2), "a.k = b.k", Centralized()).start(tmp_path / "run")
    run.awaitTermination()
    assert states == {("plan_compaction", False), ("make_commit_event", False)}
    assert gc.isenabled()
