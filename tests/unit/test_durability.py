"""What a commit outlives. Nobody is told of a batch before all that it is made of is on disk, so a
cut of the power takes no batch that anybody has seen.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.core.state import Seal
from braid.engine import durable
from braid.engine.checkpoint import Checkpoint
from braid.engine.copied import Copied
from braid.engine.durable import Damaged
from braid.engine.output import Output
from braid.engine.process import ProcessExecutor
from braid.engine.store import Store
from braid.engine.tables import Replay
from braid.join import StreamJoin
from braid.run import JoinRun
from oracle import differ, expected, ids, tables
from scatter import Scatter

ON = "a.k = b.k"
STREAMS = tables("ab", 60, seed=91, batches=4)
WANTED = expected(STREAMS, ON)


def start(folder: Path, **more: Any) -> JoinRun:
    return StreamJoin(STREAMS, ON, Scatter(), check=True).start(folder, batches="batch", **more)


def ends_equal(run: JoinRun) -> None:
    assert run.awaitTermination()
    assert differ(ids(run.results()), WANTED) == ""


class Disk:
    """A model of a disk: of a file it has what was there when the file was last forced to disk, of
    a folder the names that were there then.
    """

    def __init__(self, root: Path, cutting: bool = False) -> None:
        """``cutting``: what the thread that cuts a run's input does is looked at too. In a run it
        works beside the one that commits, in any order.
        """
        self.root, self.lock, self.cutting = root, threading.RLock(), cutting
        self.contents: dict[int, bytes] = {}
        self.names: dict[Path, dict[str, int]] = {}
        self.held: list[int] = []
        self.done: list[tuple[str, str]] = []
        self.before: Callable[[str, str], None] = lambda operation, name: None

    @contextmanager
    def recorded(self) -> Iterator[Disk]:
        """All that is done to files in between."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("fsync", "link", "replace"):
                patch.setattr(os, name, self._watched(getattr(os, name)))
            patch.setattr(os, "unlink", self._locked(os.unlink))
            yield self
        for at in self.held:
            os.close(at)

    def _locked(self, real: Callable[..., None]) -> Callable[..., None]:
        def locked(*given: Any, **more: Any) -> None:
            with self.lock:
                real(*given, **more)

        return locked

    def _watched(self, real: Callable[..., None]) -> Callable[..., None]:
        def watched(*given: Any) -> None:
            with self.lock:
                file = Path(
                    os.readlink(f"/proc/self/fd/{given[0]}") if len(given) == 1 else given[1]
                )
                name = str(file.relative_to(self.root.parent))
                looked = self.cutting or threading.current_thread().name != "braid-input"
                if looked:
                    self.before(real.__name__, name)
                real(*given)
                if looked:
                    self.done.append((real.__name__, name))
                if len(given) == 1:
                    self._forced(file, given[0])

        return watched

    def _forced(self, file: Path, at: int) -> None:
        if file.is_dir():
            self.names[file] = {f.name: f.stat().st_ino for f in file.iterdir()}
        else:
            self.contents[os.fstat(at).st_ino] = file.read_bytes()
            self.held.append(os.dup(at))  # so that no other file gets its number

    def left(self, target: Path, all_names: bool) -> None:
        """What a cut of the power leaves now. The names of files that were not forced to disk may be
        there or not; what is in those files is gone.
        """
        if all_names or self.root.name in self.names.get(self.root.parent, {}):
            self._left(self.root, target, all_names)

    def _left(self, folder: Path, target: Path, all_names: bool) -> None:
        target.mkdir()
        names = self.names.get(folder, {})
        if all_names:
            names = {f.name: f.stat().st_ino for f in folder.iterdir()}
        for name, number in names.items():
            if (folder / name).is_dir():
                self._left(folder / name, target / name, all_names)
            else:
                (target / name).write_bytes(self.contents.get(number, b""))


def test_nobody_is_told_before_all_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, told = Output.publish, list[tuple[set[str], int]]()

    def publish(output: Output, batch: int, names: Any) -> None:
        store = Store(tmp_path / "run")
        state, manifest = store.state(), store.manifest(batch)
        assert state is not None and manifest.state is not None
        named = {f"run/new/{name}" for name, _ in manifest.results} | {
            f"run/commits/{manifest.state.name}",
            *(f"run/blocks/{name}" for name in state.files),
        }
        told.append((named, manifest.entry))
        forced = [name for operation, name in disk.done if operation == "fsync"]
        assert named <= set(forced), "every file that the manifest names"
        link = disk.done.index(("link", f"run/commits/{manifest.entry:06d}.json"))
        last = max(max(n for n, d in enumerate(disk.done) if d[1] == name) for name in named)
        folders = {("fsync", f"run/{name}") for name in ("blocks", "new", "commits")}
        body = link - 1
        assert disk.done[body][0] == "fsync" and ".json." in disk.done[body][1], "the manifest"
        assert folders <= set(disk.done[last:link]), "then the folders"
        assert disk.done[link + 1 :] == [("fsync", "run/commits")], "then the manifest's folder"
        real(output, batch, names)

    monkeypatch.setattr(Output, "publish", publish)
    disk = Disk(tmp_path / "run")
    with disk.recorded():
        ends_equal(start(tmp_path / "run"))
    assert len(told) == 4


def test_a_commit_that_outlives_the_process_alone_waits_for_no_disk(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "run")
    with disk.recorded():
        ends_equal(start(tmp_path / "run", durability="process"))
    assert [d for d in disk.done if d[0] == "fsync"] == []
    with pytest.raises(ValueError, match="durability is 'disk'; it must be one of power, process"):
        start(tmp_path / "other", durability="disk")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("all_names", [True, False])
def test_a_cut_of_the_power_takes_no_batch_that_was_seen(tmp_path: Path, all_names: bool) -> None:
    """At every operation from the second commit to the third."""
    disk, seen = Disk(tmp_path / "run"), list[int]()
    cuts: dict[tuple[Any, ...], tuple[Path, int]] = {}

    def before(operation: str, name: str) -> None:
        if max(seen, default=-1) != 1:
            return
        folder = tmp_path / f"{len(cuts)}-{operation}"
        disk.left(folder, all_names)
        found = tuple(
            sorted((str(f.relative_to(folder)), f.stat().st_size) for f in folder.rglob("*"))
        )
        if found in cuts:
            shutil.rmtree(folder)
        cuts.setdefault(found, (folder, max(seen)))

    disk.before = before
    with disk.recorded(), pytest.MonkeyPatch.context() as patch:
        real = JoinRun._publish

        def publish(run: JoinRun, happened: list[Any]) -> None:
            seen.extend(e.batch for e in happened)
            real(run, happened)

        patch.setattr(JoinRun, "_publish", publish)
        ends_equal(start(tmp_path / "run"))
    assert len(cuts) > 4
    for folder, last in cuts.values():
        assert Store(folder).committed()[-1] >= last
        ends_equal(StreamJoin.resume(folder, STREAMS, durability="process"))


def test_a_new_run_is_there_or_not_after_a_cut_of_the_power(tmp_path: Path) -> None:
    """At every operation before its first commit."""
    disk, folders = Disk(tmp_path / "run"), list[Path]()

    def before(operation: str, name: str) -> None:
        if name.endswith("000001.json"):
            disk.before = lambda *_: None
        elif (tmp_path / "run").exists():
            folders.append(tmp_path / str(len(folders)))
            disk.left(folders[-1], False)

    disk.before = before
    with disk.recorded():
        ends_equal(start(tmp_path / "run"))
    there = [folder for folder in folders if (folder / "run.json").exists()]
    assert there and len(there) < len(folders)
    for folder in {(f.exists(), (f / "run.json").exists()): f for f in folders}.values():
        ends_equal(start(folder, durability="process"))


@pytest.mark.parametrize("all_names", [True, False])
def test_a_cut_of_the_power_takes_no_input_while_it_is_cut(tmp_path: Path, all_names: bool) -> None:
    """At every operation from when it is noted as whole, and after the last."""
    disk, folders = Disk(tmp_path / "input", cutting=True), list[Path]()

    def before(operation: str, name: str) -> None:
        folders.append(tmp_path / str(len(folders)))
        disk.left(folders[-1], all_names)

    with disk.recorded():
        Replay(STREAMS, {}, "batch").write(disk.root)
        copied = Copied(disk.root)
        copied.seal(True)
        durable.sync(tmp_path)
        disk.before = before
        copied.complete(True)
        before("", "")
    assert len(folders) > 2 * 2 * 4, "each file is forced to disk, and put into its place"
    for folder in folders:
        left = Copied(folder)
        left.check(deep=True)
        left.complete(False)
        assert files(folder) == files(disk.root)


def files(folder: Path) -> dict[str, bytes]:
    """By name what was written; not what a cut of the power has left of a file that was put."""
    found = [f for f in folder.rglob("*") if f.is_file() and not f.name.startswith(".files.json.")]
    return {str(f.relative_to(folder)): f.read_bytes() for f in found}


def test_what_spark_has_written_is_forced_to_disk_before_a_commit(tmp_path: Path) -> None:
    """Once each, with the folders. What a cut of the power has left empty is removed."""
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    for log in ("offsets", "commits", "sources/0"):
        (checkpoint.folder / log).mkdir(parents=True)
    disk = Disk(tmp_path / "checkpoint")
    with disk.recorded():
        for batch in range(2):
            (checkpoint.folder / "offsets" / str(batch)).write_text("v1")
            (checkpoint.folder / "sources" / "0" / str(batch)).write_text("v1")
            (checkpoint.folder / "offsets" / ".tmp").touch()
            del disk.done[:]
            checkpoint.sync()
            names = [f"checkpoint/{log}/{batch}" for log in ("offsets", "sources/0")]
            assert {*names, "checkpoint/offsets", "checkpoint/sources/0"} <= {
                name for _, name in disk.done
            }
            assert len(disk.done) == 4 + 3 * (batch == 0)
            assert batch or {".", "checkpoint", "checkpoint/sources"} <= {n for _, n in disk.done}
    (checkpoint.folder / "offsets" / "2").touch()
    checkpoint.sweep()
    assert checkpoint.last("offsets") == 1


def test_a_micro_batch_that_does_not_follow_is_refused(tmp_path: Path) -> None:
    """Whatever Spark's checkpoint says meanwhile; one that has been is skipped."""
    run = start(tmp_path / "run", durability="process")
    ends_equal(run)
    said = "micro-batch 5 has come, but the last that the run in .* has committed is 3; what lies"
    with pytest.raises(RuntimeError, match=said):
        run._engine.run(pa.table({}), 5)
    run._engine.run(pa.table({}), 3)
    assert Store(tmp_path / "run").committed() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["blocks", "new"])
def test_what_workers_report_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As on a cluster whose workers have a folder of the same name each."""
    real = ProcessExecutor.execute

    def elsewhere(executor: ProcessExecutor, frame: Any, batch: Any) -> Any:
        done = real(executor, frame, batch)
        if batch.number == 2:
            for file in (tmp_path / kind).glob("000002-*"):
                file.rename(tmp_path / "elsewhere")
        return done

    monkeypatch.setattr(ProcessExecutor, "execute", elsewhere)
    run = start(tmp_path)
    with pytest.raises(RuntimeError, match="is missing; all workers must share the folder") as said:
        run.awaitTermination()
    assert f"a worker on {os.uname().nodename} has written 000002-" in str(said.value)
    assert str(tmp_path) in str(said.value) and "\n" not in str(said.value)
    assert Store(tmp_path).committed() == [0, 1]
    monkeypatch.setattr(ProcessExecutor, "execute", real)
    ends_equal(StreamJoin.resume(tmp_path, STREAMS))


def test_a_file_is_there_once_its_length_is(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.create({})
    (store.blocks / "half").write_bytes(b"12")
    from braid.core.report import Outcome

    with pytest.raises(RuntimeError, match="it has 2 bytes, 4 were written"):
        store.present(Outcome(files={"half": Seal(4, 0)}, workers={"half": "there"}))


def test_the_files_of_a_micro_batch_are_those_that_spark_has_listed(tmp_path: Path) -> None:
    """Source 0 lists files in each of four micro-batches, and all of them again in a compact list;
    source 1 is none of files.
    """
    checkpoint = Checkpoint(tmp_path)
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
        told = lines[: n + 1] if n % 10 == 9 else lines[n : n + 1]
        (tmp_path / "sources" / "0" / log).write_text("\n".join(["v1", *told]))
    for batch, offset in enumerate((0, 1, 8, 9, 9, 12)):
        told = ["v1", "{}", json.dumps({"logOffset": offset}), "17"]
        (tmp_path / "offsets" / str(batch)).write_text("\n".join(told))
    found = [[f.name for f in checkpoint.files(batch)] for batch in range(7)]
    assert found[:3] == [["a 0"], ["a 1"], [f"a {n}" for n in range(2, 9)]]
    assert found[3:] == [["a 9"], [], ["a 10", "a 11", "a 12"], []]


def test_spark_and_the_run_are_of_one_mind(tmp_path: Path) -> None:
    """Spark has finished a micro-batch that the run has committed, or has yet to say so."""
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    for done, begun, fits in ((-1, -1, [-1]), (-1, 0, [-1, 0]), (4, 4, [4]), (4, 5, [4, 5])):
        shutil.rmtree(checkpoint.folder, ignore_errors=True)
        for log, last in (("commits", done), ("offsets", begun)):
            (checkpoint.folder / log).mkdir(parents=True)
            for number in range(last + 1):
                (checkpoint.folder / log / str(number)).touch()
        for epoch in range(-1, 8):
            if epoch in fits:
                checkpoint.check(epoch)
            else:
                with pytest.raises(Damaged, match=f"finished micro-batch {done} and begun {begun}"):
                    checkpoint.check(epoch)


def test_a_forked_process_works_beside_too() -> None:
    """It has none of the threads of the process that it is a copy of."""
    assert durable.beside(lambda: 3).result() == 3
    if not (child := os.fork()):
        try:
            os._exit(durable.beside(lambda: 7).result(timeout=60))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
