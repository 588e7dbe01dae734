"""The first batch of a run is joined before the files of the others exist.

Nothing is lost, whatever happens to the run or the writer of the files.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from braid.core.run_events import RunEnded
from braid.join_run import JoinRun
from braid.storage.background_input_splitter import InputSplitter
from braid.storage.integrity import check_run
from braid.storage.run_store import RunStore
from braid.storage.static_input_copy import InputSnapshot
from braid.stream_join import StreamJoin
from input_splitting import SplitterGate, failing, hooked_splitter, left, threads
from oracle import describe_difference, expected, result_ids, tables, wait_until
from scatter import Scatter

ON, LAST = "a.k = b.k", 4
STREAMS = tables("ab", 60, seed=17, batches=LAST + 1)
WANTED = expected(STREAMS, ON)
ALL = {"whole": [], "cut": {a: [*range(LAST + 1)] for a in "ab"}}


def start(folder: Path) -> JoinRun:
    join = StreamJoin(STREAMS, ON, Scatter(), check=True)
    return join.start(folder, batches="batch", durability="process")


def resumed(folder: Path) -> None:
    """Check that a resumed run has the expected results and keeps all of its input."""
    run = StreamJoin.resume(folder, STREAMS, durability="process")
    assert run.awaitTermination()
    assert describe_difference(result_ids(run.results()), WANTED) == ""
    assert left(folder) == ALL and check_run(folder)[0] == []


def test_the_first_batch_is_committed_before_the_last_file_is_there(tmp_path: Path) -> None:
    """The run waits for the writer."""
    hold, store = SplitterGate(1), RunStore(tmp_path)
    with hold.on():
        run = start(tmp_path)
        wait_until(lambda: run.status["batch"] == 1, "batch")
        assert left(tmp_path) == {"whole": ["a", "b"], "cut": {"a": [0], "b": [0]}}
        assert run.isActive and check_run(tmp_path)[0] == []
        hold.gone.set()
        assert run.awaitTermination()
    assert store.log.committed_batches() == [*range(LAST + 1)]
    assert describe_difference(result_ids(run.results()), WANTED) == ""
    assert left(tmp_path) == ALL and check_run(tmp_path)[0] == [] and threads() == []


def test_a_run_killed_at_any_moment_of_the_writing_finds_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is copied while the run waits.

    Copies are taken before each micro-batch is split, after all are split and before this is
    recorded, and after it is recorded while the whole streams still exist. Files that are split
    after a kill are those of an undisturbed run.
    """
    copies, asked, real = (
        list[Path](),
        list[int](),
        (InputSplitter.wait_for_batch, InputSnapshot._write_file_list),
    )

    def wait(cut: InputSplitter, number: int) -> None:
        asked.append(number)
        real[0](cut, number)

    def copy(*_: Any) -> None:
        copies.append(tmp_path / f"copy{len(copies)}")
        shutil.copytree(tmp_path / "run", copies[-1])

    def before(folder: Path, number: int) -> None:
        wait_until(lambda: asked[-1:] == [number], "reader that waits")
        copy()

    def note(copied: InputSnapshot, noted: Any, force: bool) -> None:
        if not noted.files:
            return real[1](copied, noted, force)
        wait_until(finishing.is_set, "end of the batches")
        copy()
        real[1](copied, noted, force)
        copy()

    finishing, finish = threading.Event(), InputSnapshot.wait_until_split
    monkeypatch.setattr(InputSplitter, "wait_for_batch", wait)
    monkeypatch.setattr(InputSnapshot, "_write_file_list", note)
    monkeypatch.setattr(InputSnapshot, "wait_until_split", lambda c: (finishing.set(), finish(c)))
    with hooked_splitter(before):
        run = start(tmp_path / "run")
        assert run.awaitTermination()
    monkeypatch.undo()
    assert [len(RunStore(c).log.committed_batches()) for c in copies] == [
        *range(LAST + 1),
        LAST + 1,
        LAST + 1,
    ]
    assert [len(left(c)["cut"]["a"]) for c in copies] == [*range(LAST + 1), LAST + 1, LAST + 1]
    assert all(left(c)["whole"] == ["a", "b"] for c in copies)
    undisturbed = (tmp_path / "run" / "input" / "files.json").read_bytes()
    for folder in copies[1:-1]:
        (folder / "input" / "a" / ".000001.parquet.0000dead").write_bytes(b"half")
    for folder in copies:
        resumed(folder)
        assert (folder / "input" / "files.json").read_bytes() == undisturbed
        assert not [*folder.glob("input/a/.*")]


def test_a_run_is_stopped_while_its_input_is_written(tmp_path: Path) -> None:
    hold = SplitterGate(2)
    with hold.on():
        run = start(tmp_path)
        wait_until(lambda: run.status["batch"] == 2, "batches")
        run.stop()
    assert run.status["state"] == "stopped" and run.exception() is None
    assert threads() == [] and left(tmp_path)["whole"] == ["a", "b"]
    assert left(tmp_path)["cut"]["b"] in ([0, 1], [0, 1, 2]), "it ends with the file that is due"
    resumed(tmp_path)


def test_input_that_cannot_be_written_fails_the_run(tmp_path: Path) -> None:
    with hooked_splitter(failing(2)):
        run = start(tmp_path)
        said = r"^the run's input could not be written: \[Errno 28\] No space left on device$"
        with pytest.raises(RuntimeError, match=said):
            run.awaitTermination()
    ended = run.events()[-1]
    assert isinstance(ended, RunEnded) and ended.outcome == "failed"
    assert "input could not be written: [Errno 28] No space" in ended.error
    assert RunStore(tmp_path).log.committed_batches() == [0, 1] and threads() == []
    resumed(tmp_path)


def test_a_run_has_not_ended_well_before_its_input_is_said_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(copied: InputSnapshot, seals: Any, force: bool) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(InputSnapshot, "_finish_splitting", fail)
    run = start(tmp_path)
    with pytest.raises(RuntimeError, match="input could not be written: .*Input/output error"):
        run.awaitTermination()
    assert (
        len(RunStore(tmp_path).log.committed_batches()) == LAST + 1
        and run.status["state"] == "failed"
    )
    monkeypatch.undo()
    resumed(tmp_path)


def test_a_whole_stream_that_is_damaged_is_named(tmp_path: Path) -> None:
    with hooked_splitter(failing(2)), pytest.raises(RuntimeError):
        start(tmp_path).awaitTermination()
    whole = tmp_path / "input" / "b.arrow"
    body = bytearray(whole.read_bytes())
    body[len(body) // 2] ^= 1
    whole.write_bytes(body)
    assert any(f"{whole} is damaged: its checksum" in fault for fault in check_run(tmp_path)[0])
    with pytest.raises(ValueError, match=f"^{whole} is damaged: its checksum is"):
        StreamJoin.resume(tmp_path, STREAMS)
