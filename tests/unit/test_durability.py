"""Durability of a commit.

A batch is reported only after all of its files are on disk, so a power failure loses no batch that
anybody has seen.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.core.run_state import FileChecksum
from braid.errors import DamagedRunError
from braid.execution.thread_executor import ThreadExecutor
from braid.join_run import JoinRun
from braid.storage import durable_files
from braid.storage.published_results import PublishedResults
from braid.storage.run_store import RunStore
from braid.storage.spark_checkpoint import SparkCheckpoint
from braid.storage.static_input_copy import InputSnapshot
from braid.stream_join import StreamJoin
from input_splitting import stage_streams
from oracle import compute_expected, describe_difference, make_tables, result_ids
from scatter import Scatter
from world.cuts import CUTS, Cuts, PowerCut
from world.machine import Machine

RUN = Path("/run")
ON = "a.k = b.k"
STREAMS = make_tables("ab", 60, seed=91, batches=4)
WANTED = compute_expected(STREAMS, ON)


def start(folder: Path, **more: Any) -> JoinRun:
    return StreamJoin(STREAMS, ON, Scatter(), check=True).start(folder, batches="batch", **more)


def ends_equal(run: JoinRun) -> None:
    assert run.awaitTermination()
    assert describe_difference(result_ids(run.results()), WANTED) == ""


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine in memory, which the engine uses."""
    made = Machine()
    with made.simulated():
        yield made


def forced_files(machine: Machine) -> list[tuple[str, str]]:
    """Return the steps that sync files and names to disk, or rename a file."""
    return [step for step in machine.steps if step[0] in ("force", "link", "replace", "sync")]


def test_nobody_is_told_before_all_is_on_disk(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, reported = PublishedResults.publish_batch, list[int]()

    def publish(output: PublishedResults, batch: int, names: Any) -> None:
        done, store = forced_files(machine), RunStore(RUN)
        state, manifest = store.last_state(), store.log.commits[batch]
        assert state is not None and manifest.state is not None
        named = {f"/run/staging/{name}" for name, _ in manifest.results} | {
            f"/run/commits/{manifest.state.name}",
            *(f"/run/blocks/{name}" for name in state.block_files),
        }
        reported.append(batch)
        forced = [name for operation, name in done if operation == "force"]
        assert named <= set(forced), "every file that the manifest names"
        link = done.index(("link", f"/run/commits/{manifest.entry:06d}.json"))
        last = max(max(n for n, d in enumerate(done) if d[1] == name) for name in named)
        folders = {("sync", f"/run/{name}") for name in ("blocks", "staging", "commits")}
        assert done[link - 1][0] == "force" and ".json." in done[link - 1][1], "the manifest"
        assert folders <= set(done[last:link]), "then the folders"
        assert done[link + 1 :] == [("sync", "/run/commits")], "then the manifest's folder"
        real(output, batch, names)

    monkeypatch.setattr(PublishedResults, "publish_batch", publish)
    ends_equal(start(RUN))
    assert reported == [0, 1, 2, 3]


def test_a_commit_that_outlives_the_process_alone_waits_for_no_disk(machine: Machine) -> None:
    ends_equal(start(RUN, durability="process"))
    assert not {"force", "sync"} & {operation for operation, _ in machine.steps}
    with pytest.raises(ValueError, match="durability is 'disk'; it must be one of power, process"):
        start(Path("/other"), durability="disk")
    assert machine.files.find("/other") is None


@pytest.mark.parametrize("how", CUTS)
def test_a_cut_of_the_power_takes_no_batch_that_was_seen(how: str) -> None:
    """Before every change from the second commit to the third."""
    machine, seen = Machine(), list[int]()
    cuts = Cuts(machine, how)

    def before(operation: str, path: str) -> None:
        if max(seen, default=-1) == 1:
            cuts.cut(operation, path)

    machine.before = before
    with machine.simulated(), noted_batches(seen):
        ends_equal(start(RUN))
    assert len(cuts.left) > 4
    for _ in cuts.machines():
        assert RunStore(RUN).log.committed_batches()[-1] >= 1
        ends_equal(StreamJoin.resume(RUN, STREAMS, durability="process"))


@contextmanager
def noted_batches(seen: list[int]) -> Iterator[None]:
    """Record the batches that an observer may know to be committed."""
    with pytest.MonkeyPatch.context() as patch:
        real = JoinRun._publish_events

        def publish(run: JoinRun, happened: list[Any]) -> None:
            seen.extend(e.batch for e in happened)
            real(run, happened)

        patch.setattr(JoinRun, "_publish_events", publish)
        yield


@pytest.mark.parametrize("how", CUTS)
def test_a_new_run_is_there_or_not_after_a_cut_of_the_power(how: str) -> None:
    """Before every change until its first commit. Some of the remaining folders are resumed."""
    machine = Machine()
    cuts = Cuts(machine, how)

    def before(operation: str, path: str) -> None:
        if operation == "link" and path.endswith("000001.json"):
            machine.before = lambda *_: None
        else:
            cuts.cut(operation, path)

    machine.before = before
    with machine.simulated():
        ends_equal(start(RUN))
    there = [files for files in cuts.left.values() if files.find("/run/run.json") is not None]
    assert there and len(there) < len(cuts.left)
    for _ in cuts.machines(most=12):
        ends_equal(start(RUN, durability="process"))


@pytest.mark.parametrize("how", CUTS)
def test_a_cut_of_the_power_takes_no_input_while_it_is_cut(machine: Machine, how: str) -> None:
    """Before every change from the record of its completeness on, and after the last."""
    folder, cuts = Path("/input"), Cuts(machine, how)
    machine.disk.make_folder(folder)
    stage_streams(folder, STREAMS)
    copied = InputSnapshot(folder)
    copied.write_checksums(True)
    durable_files.fsync_path(Path("/"))
    machine.before = cuts.cut
    copied.split_all(True)
    cuts.cut()
    machine.before = lambda *_: None
    assert len(cuts.left) >= (3 if how == "no names" else 2 * 2 * 4)
    for left in cuts.machines():
        copied = InputSnapshot(folder)
        copied.check_files(deep=True)
        copied.split_all(False)
        assert written_files(left) == written_files(machine)


def written_files(machine: Machine) -> dict[str, bytes]:
    """Return what was written, by name; not what a power failure left of a published file."""
    return {n: b for n, b in machine.content().items() if ".files.json." not in n}


def test_what_spark_has_written_is_forced_to_disk_before_a_commit(machine: Machine) -> None:
    """Once each, with the folders. Files that a power failure left empty are removed."""
    checkpoint = SparkCheckpoint(RUN / "checkpoint")
    logs = [checkpoint.folder / log for log in ("offsets", "commits", "sources/0")]
    for log in logs:
        machine.disk.make_folder(log)
    durable_files.fsync_path(Path("/"))
    for batch in range(2):
        for log in (logs[0], logs[2]):
            machine.disk.write_file(log / str(batch), b"v1")
        machine.disk.write_file(logs[0] / ".tmp", b"")
        del machine.steps[:]
        checkpoint.sync_new_files()
        forced = [path for operation, path in machine.steps if operation == "sync"]
        assert {str(file) for log in (logs[0], logs[2]) for file in (log, log / str(batch))} <= {
            *forced
        }
        assert len(forced) == 4 + 3 * (batch == 0)
        above = {str(RUN), str(checkpoint.folder), str(checkpoint.folder / "sources")}
        assert batch or above <= {*forced}
        left = machine.files.copy_after_cut(PowerCut(False))
        assert all(left.file(str(log / str(batch))).content == b"v1" for log in (logs[0], logs[2]))
    machine.disk.write_file(logs[0] / "2", b"")
    checkpoint.remove_empty_files()
    assert checkpoint.last_micro_batch("offsets") == 1


def test_a_micro_batch_that_does_not_follow_is_refused(tmp_path: Path) -> None:
    """Whatever Spark's checkpoint contains; a committed one is skipped."""
    run = start(tmp_path / "run", durability="process")
    ends_equal(run)
    said = "micro-batch 5 has arrived, but the run in .* has committed only up to 3; the ones"
    with pytest.raises(RuntimeError, match=said):
        run._engine.run_batch(pa.table({}), 5)
    run._engine.run_batch(pa.table({}), 3)
    assert RunStore(tmp_path / "run").log.committed_batches() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["blocks", "staging"])
def test_what_workers_report_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As on a cluster whose workers each have a folder of the same name."""
    real = ThreadExecutor.execute_batch

    def elsewhere(executor: ThreadExecutor, frame: Any, batch: Any) -> Any:
        done = real(executor, frame, batch)
        if batch.batch == 2:
            for file in (tmp_path / kind).glob("000002-*"):
                file.rename(tmp_path / "elsewhere")
        return done

    monkeypatch.setattr(ThreadExecutor, "execute_batch", elsewhere)
    run = start(tmp_path)
    with pytest.raises(RuntimeError, match="is missing; all workers must share /") as said:
        run.awaitTermination()
    assert f"a worker on {os.uname().nodename} has written {kind}/000002-" in str(said.value)
    assert str(tmp_path) in str(said.value) and "\n" not in str(said.value)
    assert RunStore(tmp_path).log.committed_batches() == [0, 1]
    monkeypatch.setattr(ThreadExecutor, "execute_batch", real)
    ends_equal(StreamJoin.resume(tmp_path, STREAMS))


def test_a_file_is_there_once_its_length_is(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.create_run({})
    (store.blocks.folder / "half").write_bytes(b"12")
    from braid.core.batch_report import BatchReport

    with pytest.raises(RuntimeError, match="it has 2 bytes, 4 were written"):
        store.check_reported_files(
            BatchReport(files={"half": FileChecksum(4, 0)}, workers={"half": "there"})
        )


def test_the_files_of_a_micro_batch_are_those_that_spark_has_listed(tmp_path: Path) -> None:
    """Source 0 lists files in each of four micro-batches, and all of them again in a compact list.

    Source 1 has no files.
    """
    checkpoint = SparkCheckpoint(tmp_path)
    for log in ("offsets", "sources/0"):
        (tmp_path / log).mkdir(parents=True)
    lines = [
        json.dumps(
            {"path": f"file:///in/a%20{n}", "timestamp": 1, "batchId": n}, separators=(",", ":")
        )
        for n in range(13)
    ]
    for n in range(13):
        log = f"{n}.compact" if n % 10 == 9 else str(n)
        reported = lines[: n + 1] if n % 10 == 9 else lines[n : n + 1]
        (tmp_path / "sources" / "0" / log).write_text("\n".join(["v1", *reported]))
    for batch, offset in enumerate((0, 1, 8, 9, 9, 12)):
        reported = ["v1", "{}", json.dumps({"logOffset": offset}), "17"]
        (tmp_path / "offsets" / str(batch)).write_text("\n".join(reported))
    found = [[f.name for f in checkpoint.source_files(batch)] for batch in range(7)]
    assert found[:3] == [["a 0"], ["a 1"], [f"a {n}" for n in range(2, 9)]]
    assert found[3:] == [["a 9"], [], ["a 10", "a 11", "a 12"], []]


def test_spark_and_the_run_are_of_one_mind(tmp_path: Path) -> None:
    """Spark has finished a micro-batch that the run has committed, or has not recorded it yet."""
    checkpoint = SparkCheckpoint(tmp_path / "checkpoint")
    for done, begun, fits in ((-1, -1, [-1]), (-1, 0, [-1, 0]), (4, 4, [4]), (4, 5, [4, 5])):
        shutil.rmtree(checkpoint.folder, ignore_errors=True)
        for log, last in (("commits", done), ("offsets", begun)):
            (checkpoint.folder / log).mkdir(parents=True)
            for number in range(last + 1):
                (checkpoint.folder / log / str(number)).touch()
        for epoch in range(-1, 8):
            if epoch in fits:
                checkpoint.check_epoch(epoch)
            else:
                with pytest.raises(
                    DamagedRunError, match=f"finished micro-batch {done} and begun {begun}"
                ):
                    checkpoint.check_epoch(epoch)


def test_a_forked_process_works_beside_too() -> None:
    """It has none of the threads of its parent process."""
    assert durable_files.run_in_background(lambda: 3).result() == 3
    if not (child := os.fork()):
        try:
            os._exit(durable_files.run_in_background(lambda: 7).result(timeout=60))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
