"""Drivers of a run in a bucket that are killed, or that are two."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import clouded
import pytest
from braid import StreamJoin
from braid.engine.bucket import Bucket, bucket
from braid.engine.durable import Damaged
from braid.engine.log import Superseded
from braid.engine.mirror import Mirror, opened
from braid.run import JoinRun
from buckets import ends_equal, nothing_left, opened_files, sound, start
from clouded import STREAMS, join
from oracle import until
from world.machine import URL, Machine, kill_before


def broken_off(machine: Machine, at: int) -> int:
    """Have a driver killed when it asks for the ``at``-th time; the last batch that was seen."""
    seen, real = [-1], JoinRun._publish

    def publish(run: JoinRun, happened: list[Any]) -> None:
        seen.extend(e.batch for e in happened)
        real(run, happened)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JoinRun, "_publish", publish)
        kill_before(machine, lambda: start(URL).awaitTermination(), at)
    return max(seen)


def test_wherever_a_driver_is_killed_nothing_is_lost_or_doubled() -> None:
    """Before each thing that it asks of the store in a batch, and every third of the rest: another
    one goes on, on another machine.
    """
    machine = Machine()
    with machine.simulated():
        ends_equal(start(URL))
    asked = machine.requests
    one, two = (asked.index(f"put commits/00000{entry}.json") for entry in (3, 4))
    assert two - one >= 6
    lasts = set()
    for at in sorted({*range(0, len(asked) + 1, 3), *range(one, two + 1)}):
        killed = Machine()
        lasts.add(last := broken_off(killed, at))
        with Machine(stores=killed.stores).simulated():
            sound(URL)
            found = opened(URL)
            assert last < 0 or (found.query() is not None and found.committed()[-1] >= last)
            ends_equal(start(URL))
            nothing_left(URL)
    assert lasts == {-1, 0, 1, 2, 3}


@pytest.mark.parametrize("batch", [0, 2])
def test_of_two_drivers_the_later_goes_on_and_the_other_stops(
    url: str, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """The first is held between what its batch is made of and the manifest, and wakes after the
    second has begun, or has ended.
    """
    held, go = threading.Event(), threading.Event()
    real, first = Mirror.commit, list[Mirror]()

    def commit(mirror: Mirror, number: int, *given: Any) -> None:
        if mirror is first[0] and number == batch:
            held.set()
            go.wait(60)
        real(mirror, number, *given)

    monkeypatch.setattr(Mirror, "commit", commit)
    monkeypatch.setattr(
        Mirror, "acquire", lambda m, real=Mirror.acquire: (first.append(m), real(m))
    )
    one = start(url)
    assert held.wait(60)
    two = StreamJoin.resume(url, STREAMS)
    if batch:
        two.awaitTermination()
    go.set()
    with pytest.raises(Superseded, match=f"has taken over the run in {url}; this driver stops"):
        one.awaitTermination()
    ends_equal(two)
    sound(url)
    ends_equal(StreamJoin.resume(url, STREAMS))
    nothing_left(url)


@pytest.mark.parametrize("others", [0, 1])
def test_one_that_misses_a_block_says_who_has_the_run_if_another_has(
    url: str, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    """Whoever takes over removes what its own last states do not name."""
    held, go, first = threading.Event(), threading.Event(), list[Mirror]()
    real = Mirror.present

    def present(mirror: Mirror, outcome: Any) -> None:
        first.append(mirror)
        if first.count(first[0]) == 3 and mirror is first[0]:
            held.set()
            go.wait(60)
            raise Damaged("a block is missing")
        real(mirror, outcome)

    monkeypatch.setattr(Mirror, "present", present)
    one = start(url)
    assert held.wait(60)
    for _ in range(others):
        ends_equal(StreamJoin.resume(url, STREAMS))
    go.set()
    with pytest.raises(Superseded if others else Damaged, match="taken over" if others else "miss"):
        one.awaitTermination()


def test_a_driver_takes_over_from_one_that_goes_on_committing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch is committed between what it has read of the log and its own entry."""
    one = start(url, pace=0.2)
    one.pause()
    real, left = Mirror._pull, [3]

    def pull(mirror: Mirror) -> None:
        real(mirror)
        left[0] -= 1
        if left[0] > 0:
            before = one.status["batch"]
            one.unpause()
            until(lambda: one.status["batch"] > before, "a batch")
            one.pause()

    monkeypatch.setattr(Mirror, "_pull", pull)
    two = StreamJoin.resume(url, STREAMS)
    ends_equal(two)
    one.unpause()
    if one.status["batch"] < 4:
        with pytest.raises(Superseded):
            one.awaitTermination()
    sound(url)


def test_one_that_was_taken_over_while_it_cleaned_removes_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has listed what there is, and wakes when another driver has committed."""
    ends_equal(start(url))
    before, stray = bucket(url).names(), "blocks/000009-0-0000dead-0.arrow"
    bucket(url).put(stray, b"")
    slow = Mirror(url)
    slow.query()
    slow.take_over()
    real = Bucket.names

    def names(there: Bucket, folder: str = "") -> dict[str, int]:
        found = real(there, folder)
        monkeypatch.setattr(Bucket, "names", real)
        quick = Mirror(url)
        quick.query()
        quick.take_over()
        return found

    monkeypatch.setattr(Bucket, "names", names)
    with pytest.raises(Superseded):
        slow.clean()
    assert stray in bucket(url).names()
    ends_equal(StreamJoin.resume(url, STREAMS))
    assert stray not in bucket(url).names() and before.keys() < bucket(url).names().keys()


def test_of_two_drivers_that_begin_a_run_one_does(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other has read that there is no run, and cuts the same streams in other micro-batches."""
    real = Mirror.create

    def create(mirror: Mirror, query: dict[str, Any]) -> None:
        if query["ready"]:
            monkeypatch.setattr(Mirror, "create", real)
            ends_equal(start(url))
        real(mirror, query)

    monkeypatch.setattr(Mirror, "create", create)
    with pytest.raises(RuntimeError, match="another driver has begun the run in memory:///"):
        join().start(url, batches=3)
    ends_equal(start(url))
    assert len({n.split("/")[1] for n in bucket(url).names("input")}) == 1


@pytest.mark.parametrize("begin", ["commits/", "run.json", "probe-"])
def test_a_lost_answer_is_no_other_driver(
    begin: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has put the object, its answer got lost, and the client tries again."""
    real = Bucket.put

    def put(there: Bucket, name: str, body: Any, new: bool = False) -> None:
        real(there, name, body, new)
        if new and name.startswith(begin):
            real(there, name, body, new)

    monkeypatch.setattr(Bucket, "put", put)
    ends_equal(start(url))


def test_a_driver_is_killed_and_another_machine_goes_on(seaweed: str, tmp_path: Path) -> None:
    """kill -9 right before a commit, on SeaweedFS; then two race for the rest."""
    url, held = f"{seaweed}/{uuid.uuid4().hex}", tmp_path / "held"
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, clouded.__file__, url, str(held), "2"],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=log,
            stderr=log,
        )
        try:
            until(lambda: held.exists() or process.poll() is not None, "the third batch")
        finally:
            process.kill()
            process.wait()
    assert held.exists(), (tmp_path / "log").read_text()
    sound(url)
    one = StreamJoin.resume(url, STREAMS)
    two = StreamJoin.resume(url, STREAMS)
    for run in (one, two):
        try:
            run.awaitTermination()
        except Superseded as lost:
            assert "has taken over the run in" in str(lost)
    ends_equal(two)
    assert opened_files(url) == [(f"results/{n}", s) for n, s in _named(two)]
    sound(url)


def _named(run: JoinRun) -> list[Any]:
    return [f for kept in run.store.log.commits for f in kept.results]
