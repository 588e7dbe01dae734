"""Drivers of a run in a bucket that are killed, or two drivers of one run."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import bucket_recipe_driver
import object_store_driver
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid import StreamJoin
from braid.errors import DamagedRunError, FencedError
from braid.join_run import JoinRun
from braid.storage.object_store import ObjectStore, open_object_store
from braid.storage.run_store import RunStore, open_store
from buckets import check_bucket, check_end, check_no_leftovers, opened_files, start_run
from object_store_driver import STREAMS, make_join
from obstore.store import from_url
from oracle import wait_until
from sink_driver import ROWS, make_streams
from world.machine import URL, Machine, kill_before


def broken_off(machine: Machine, at: int) -> int:
    """Kill a driver at its ``at``-th request; return the last visible batch."""
    seen, real = [-1], JoinRun._publish_events

    def publish(run: JoinRun, happened: list[Any]) -> None:
        seen.extend(e.batch for e in happened)
        real(run, happened)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JoinRun, "_publish_events", publish)
        kill_before(machine, lambda: start_run(URL).awaitTermination(), at)
    return max(seen)


def test_wherever_a_driver_is_killed_nothing_is_lost_or_doubled() -> None:
    """Another driver continues on another machine.

    It is tested before each request of a batch, and before every third of the rest.
    """
    machine = Machine()
    with machine.simulated():
        check_end(start_run(URL))
    asked = machine.requests
    one, two = (asked.index(f"put commits/00000{entry}.json") for entry in (3, 4))
    assert two - one >= 6
    lasts = set()
    for at in sorted({*range(0, len(asked) + 1, 3), *range(one, two + 1)}):
        killed = Machine()
        lasts.add(last := broken_off(killed, at))
        with Machine(stores=killed.stores).simulated():
            check_bucket(URL)
            found = open_store(URL)
            assert last < 0 or (
                found.read_settings() is not None and found.log.committed_batches()[-1] >= last
            )
            check_end(start_run(URL))
            check_no_leftovers(URL)
    assert lasts == {-1, 0, 1, 2, 3}


@pytest.mark.parametrize("batch", [0, 2])
def test_of_two_drivers_the_later_goes_on_and_the_other_stops(
    url: str, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """The first is held between the batch's files and the manifest.

    It wakes after the second has started, or has ended.
    """
    held, go = threading.Event(), threading.Event()
    real, first = RunStore.commit_batch, list[RunStore]()

    def commit(mirror: RunStore, number: int, *given: Any) -> None:
        if mirror is first[0] and number == batch:
            held.set()
            go.wait(60)
        real(mirror, number, *given)

    monkeypatch.setattr(RunStore, "commit_batch", commit)
    monkeypatch.setattr(
        RunStore,
        "acquire_run",
        lambda m, real=RunStore.acquire_run: (first.append(m), real(m)),
    )
    one = start_run(url)
    assert held.wait(60)
    two = StreamJoin.resume(url, STREAMS)
    if batch:
        two.awaitTermination()
    go.set()
    with pytest.raises(FencedError, match=f"has taken over the run in {url}; this driver stops"):
        one.awaitTermination()
    check_end(two)
    check_bucket(url)
    check_end(StreamJoin.resume(url, STREAMS))
    check_no_leftovers(url)


@pytest.mark.parametrize("others", [0, 1])
def test_one_that_misses_a_block_says_who_has_the_run_if_another_has(
    url: str, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    """A driver that takes over removes files that its own last states do not name."""
    held, go, first = threading.Event(), threading.Event(), list[RunStore]()
    real = RunStore.check_reported_files

    def present(mirror: RunStore, outcome: Any) -> None:
        first.append(mirror)
        if first.count(first[0]) == 3 and mirror is first[0]:
            held.set()
            go.wait(60)
            raise DamagedRunError("a block is missing")
        real(mirror, outcome)

    monkeypatch.setattr(RunStore, "check_reported_files", present)
    one = start_run(url)
    assert held.wait(60)
    for _ in range(others):
        check_end(StreamJoin.resume(url, STREAMS))
    go.set()
    with pytest.raises(
        FencedError if others else DamagedRunError, match="taken over" if others else "miss"
    ):
        one.awaitTermination()


def test_a_driver_takes_over_from_one_that_goes_on_committing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch is committed between its reading of the log and its own entry."""
    one = start_run(url, pace=0.2)
    one.pause()
    real, left = RunStore._fetch_committed, [3]

    def pull(mirror: RunStore, *given: Any) -> None:
        real(mirror, *given)
        left[0] -= 1
        if left[0] > 0:
            before = one.status["batch"]
            one.unpause()
            wait_until(lambda: one.status["batch"] > before, "a batch")
            one.pause()

    monkeypatch.setattr(RunStore, "_fetch_committed", pull)
    two = StreamJoin.resume(url, STREAMS)
    check_end(two)
    one.unpause()
    if one.status["batch"] < 4:
        with pytest.raises(FencedError):
            one.awaitTermination()
    check_bucket(url)


def test_one_that_was_taken_over_while_it_cleaned_removes_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has listed the files, and wakes when another driver has committed."""
    check_end(start_run(url))
    before, stray = open_object_store(url).list_objects(), "blocks/000009-0-0000dead-0.arrow"
    open_object_store(url).put_object(stray, b"")
    slow = open_store(url)
    slow.read_settings()
    slow.take_over()
    real = ObjectStore.list_objects

    def names(there: ObjectStore, folder: str = "") -> dict[str, int]:
        found = real(there, folder)
        monkeypatch.setattr(ObjectStore, "list_objects", real)
        quick = open_store(url)
        quick.read_settings()
        quick.take_over()
        return found

    monkeypatch.setattr(ObjectStore, "list_objects", names)
    with pytest.raises(FencedError):
        slow.remove_unnamed_files()
    assert stray in open_object_store(url).list_objects()
    check_end(StreamJoin.resume(url, STREAMS))
    assert (
        stray not in open_object_store(url).list_objects()
        and before.keys() < open_object_store(url).list_objects().keys()
    )


def test_of_two_drivers_that_begin_a_run_one_does(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other has found no run, and splits the same streams in other micro-batches."""
    real = RunStore.create_run

    def create(mirror: RunStore, query: dict[str, Any]) -> None:
        if query["ready"]:
            monkeypatch.setattr(RunStore, "create_run", real)
            check_end(start_run(url))
        real(mirror, query)

    monkeypatch.setattr(RunStore, "create_run", create)
    with pytest.raises(RuntimeError, match="another driver has begun the run in memory:///"):
        make_join().start(url, batches=3)
    check_end(start_run(url))
    assert len({n.split("/")[1] for n in open_object_store(url).list_objects("input")}) == 1


@pytest.mark.parametrize("begin", ["commits/", "run.json", "probe-"])
def test_a_lost_answer_is_no_other_driver(
    begin: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has written the object, its response is lost, and the client retries."""
    real = ObjectStore.put_object

    def put(there: ObjectStore, name: str, body: Any, new: bool = False) -> None:
        real(there, name, body, new)
        if new and name.startswith(begin):
            real(there, name, body, new)

    monkeypatch.setattr(ObjectStore, "put_object", put)
    check_end(start_run(url))


def test_a_driver_is_killed_and_another_machine_goes_on(seaweed: str, tmp_path: Path) -> None:
    """A driver on SeaweedFS is killed right before a commit; then two compete for the rest."""
    url, held = f"{seaweed}/{uuid.uuid4().hex}", tmp_path / "held"
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, object_store_driver.__file__, url, str(held), "2"],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=log,
            stderr=log,
        )
        try:
            wait_until(lambda: held.exists() or process.poll() is not None, "the third batch")
        finally:
            process.kill()
            process.wait()
    assert held.exists(), (tmp_path / "log").read_text()
    check_bucket(url)
    one = StreamJoin.resume(url, STREAMS)
    two = StreamJoin.resume(url, STREAMS)
    for run in (one, two):
        try:
            run.awaitTermination()
        except FencedError as lost:
            assert "has taken over the run in" in str(lost)
    check_end(two)
    assert opened_files(url) == [(f"results/{n}", s) for n, s in _named(two)]
    check_bucket(url)


def test_the_recipe_of_s3_has_each_row_once_after_a_kill_in_its_sink(seaweed: str) -> None:
    """Another process continues "docs/examples/in_bucket.py": it delivers batch 2 again."""
    lake = f"{seaweed}/{uuid.uuid4().hex}"
    for name, alias in (("orders", "o"), ("payments", "p")):
        for half in range(2):
            rows = make_streams()[alias].slice(half * ROWS // 2, ROWS // 2)
            pq.write_table(rows, file := pa.BufferOutputStream())
            body = file.getvalue().to_pybytes()
            obstore.put(from_url(f"{lake}/{name}"), f"{half}.parquet", body)
    driver = [sys.executable, bucket_recipe_driver.__file__, lake]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    died = subprocess.run(driver, env=environment, capture_output=True)
    assert died.returncode == 9, died.stderr.decode()
    recipe = bucket_recipe_driver.EXAMPLE
    assert 0 < recipe["read_folder"](f"{lake}/paid").num_rows < ROWS
    recipe["main"](lake)
    paid = recipe["read_folder"](f"{lake}/paid").sort_by("amount").to_pydict()
    assert paid == {"order_id": [n // 2 for n in range(ROWS)], "amount": [*range(ROWS)]}


def _named(run: JoinRun) -> list[Any]:
    return [f for kept in run.store.log.commits for f in kept.results]
