"""Input of runs: tables in one file each, and staged streams that are split while a run goes on.

Nothing is lost, whatever happens to the run or the writer of the files.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid.errors import DamagedRunError
from braid.sources.arrow_replay import ArrowReplay
from braid.storage.integrity import check_run
from braid.storage.run_store import RunStore
from braid.storage.static_input_copy import InputSnapshot
from braid.stream_join import StreamJoin
from input_splitting import (
    SplitterGate,
    fail_at,
    hooked_splitter,
    list_input,
    list_threads,
    stage_streams,
)
from oracle import (
    compute_expected,
    describe_difference,
    killed_before,
    make_tables,
    result_ids,
    wait_until,
)
from scatter import Scatter

ON, LAST = "a.k = b.k", 4
STREAMS = make_tables("ab", 60, seed=17, batches=LAST + 1)
ALL = {"whole": [], "cut": {a: [*range(LAST + 1)] for a in "ab"}}


def copied_tables(folder: Path, streams: dict[str, pa.Table], batches: int | str) -> InputSnapshot:
    ArrowReplay(streams, {}, batches).write_input(folder)
    copied = InputSnapshot(folder)
    copied.write_checksums(force=False, streams=streams)
    return copied


@pytest.mark.parametrize("rows", [0, 3, 60, 20_000])
def test_micro_batches_of_tables_are_read_as_they_were(rows: int, tmp_path: Path) -> None:
    """Some are empty; large ones are compressed. Columns are of many types, some of them NULL."""
    draw = np.random.default_rng(rows)
    numbers = draw.integers(0, 7, rows)
    words = pa.array([None if n % 3 else f"word {n}" for n in numbers], pa.string())
    table = pa.table(
        {
            "n": pa.array(np.arange(rows)),
            "text": words,
            "again": words.dictionary_encode(),
            "list": pa.array([[n] * (n % 3) for n in numbers.tolist()], pa.list_(pa.int64())),
            "time": pa.array(numbers, pa.timestamp("s")),
            "number": pa.array(numbers, pa.int32()),
        }
    )
    copied = copied_tables(tmp_path, {"a": table}, "number")
    copied.check_files(deep=True)
    batches = 1 + int(numbers.max(initial=0))
    read = [copied.read_table_batch("a", n) for n in range(batches)]
    for number, part in enumerate(read):
        wanted = table.filter(pa.array(numbers == number)).drop_columns(["number"])
        assert part.schema == copied.stream_schema("a")
        assert part.cast(wanted.schema).to_pylist() == wanted.to_pylist()
    assert (tmp_path / "a.arrow").stat().st_size < 4_000 + 60 * rows
    assert sum(part.num_rows for part in read) == rows


def test_a_run_of_tables_keeps_its_input_in_the_files_that_it_began_with(tmp_path: Path) -> None:
    """Also if it is killed, and resumed."""
    join = StreamJoin(STREAMS, ON, Scatter(), check=True)
    with killed_before(2), pytest.raises(OSError, match="killed"):
        join.start(tmp_path, batches="batch", durability="process").awaitTermination()
    before = {f.name: (f.stat().st_ino, f.read_bytes()) for f in tmp_path.glob("input/**/*")}
    assert before.keys() == {"a.arrow", "b.arrow", "files.json"}
    run = StreamJoin.resume(tmp_path, STREAMS, durability="process")
    assert run.awaitTermination() and list_threads() == []
    assert describe_difference(result_ids(run.results()), compute_expected(STREAMS, ON)) == ""
    assert before == {
        f.name: (f.stat().st_ino, f.read_bytes()) for f in tmp_path.glob("input/**/*")
    }


def test_each_byte_of_a_table_has_a_checksum_and_a_micro_batch_its_own(tmp_path: Path) -> None:
    """The others are read although one is damaged."""
    file = tmp_path / "a.arrow"
    sound = copied_tables(tmp_path, STREAMS, "batch")
    wanted = [
        sound.read_table_batch("a", n).drop_columns(["f"]) for n in range(LAST + 1)
    ]  # has NaN
    body = file.read_bytes()
    outcomes = Counter[int]()
    for at in range(0, len(body), 97):
        file.write_bytes(body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :])
        copied = InputSnapshot(tmp_path)
        with pytest.raises(DamagedRunError, match=r"a\.arrow is damaged: its checksum"):
            copied.check_files(deep=True)
        damaged = 0
        for number, rows in enumerate(wanted):
            try:
                assert copied.read_table_batch("a", number).drop_columns(["f"]).equals(rows)
            except DamagedRunError:
                damaged += 1
        outcomes[damaged] += 1
    assert outcomes.keys() == {0, 1, LAST + 1}, "the footer, a micro-batch, the head"
    for wrong in (body[:-1], body + b" "):
        file.write_bytes(wrong)
        with pytest.raises(DamagedRunError, match=f"it has {len(wrong)} bytes, {len(body)} were"):
            InputSnapshot(tmp_path).check_files()


def staged(folder: Path) -> InputSnapshot:
    """Return staged streams that are not split yet, in a folder of input."""
    stage_streams(folder / "input", STREAMS)
    copied = InputSnapshot(folder / "input")
    copied.write_checksums(force=False)
    return copied


def split_rest(folder: Path) -> None:
    """Check that what is left of splitting is done."""
    copied = InputSnapshot(folder / "input")
    copied.split_all(force=False)
    copied.check_files(deep=True)
    assert list_input(folder) == ALL


def test_a_micro_batch_is_there_before_those_after_it_are_split(tmp_path: Path) -> None:
    hold, copied = SplitterGate(1), staged(tmp_path)
    with hold.on():
        copied.start_splitting(0, force=False)
        copied.wait_for_batch(0)
        assert list_input(tmp_path) == {"whole": ["a", "b"], "cut": {"a": [0], "b": [0]}}
        copied.check_files(0, deep=True)
        hold.gone.set()
        copied.wait_until_split()
    copied.stop()
    assert list_input(tmp_path) == ALL and list_threads() == []


def test_splitting_that_is_killed_at_any_moment_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is copied before each micro-batch is split, after all are split and before this is
    recorded, and after it is recorded while the whole streams still exist. Files that are split
    after a kill are those of an undisturbed run.
    """
    copies, real = list[Path](), InputSnapshot._write_file_list

    def copy(*_: Any) -> None:
        copies.append(tmp_path / f"copy{len(copies)}")
        shutil.copytree(tmp_path / "run", copies[-1])

    def note(copied: InputSnapshot, noted: Any, force: bool) -> None:
        copy()
        real(copied, noted, force)
        copy()

    copied = staged(tmp_path / "run")
    monkeypatch.setattr(InputSnapshot, "_write_file_list", note)
    with hooked_splitter(copy):
        copied.split_all(force=False)
    monkeypatch.undo()
    assert [len(list_input(c)["cut"]["a"]) for c in copies] == [
        *range(LAST + 1),
        LAST + 1,
        LAST + 1,
    ]
    assert all(list_input(c)["whole"] == ["a", "b"] for c in copies)
    undisturbed = (tmp_path / "run" / "input" / "files.json").read_bytes()
    for folder in copies[1:-1]:
        (folder / "input" / "a" / ".000001.parquet.0000dead").write_bytes(b"half")
    for folder in copies:
        split_rest(folder)
        assert (folder / "input" / "files.json").read_bytes() == undisturbed
        assert not [*folder.glob("input/a/.*")]


def test_splitting_is_stopped(tmp_path: Path) -> None:
    hold, copied = SplitterGate(2), staged(tmp_path)
    with hold.on():
        copied.start_splitting(0, force=False)
        wait_until(hold.reached.is_set, "third micro-batch")
        copied.request_stop()
        copied.stop()
    assert list_threads() == [] and list_input(tmp_path)["whole"] == ["a", "b"]
    assert list_input(tmp_path)["cut"]["b"] in ([0, 1], [0, 1, 2]), (
        "it ends with the file that is due"
    )
    split_rest(tmp_path)


def test_input_that_cannot_be_split_is_an_error(tmp_path: Path) -> None:
    copied = staged(tmp_path)
    said = r"^the run's input could not be written: \[Errno 28\] No space left on device$"
    with hooked_splitter(fail_at(2)):
        copied.start_splitting(0, force=False)
        with pytest.raises(RuntimeError, match=said):
            copied.wait_until_split()
        with pytest.raises(RuntimeError, match=said):
            copied.check_files(3)
    copied.stop()
    split_rest(tmp_path)


def test_a_whole_stream_that_is_damaged_is_named(tmp_path: Path) -> None:
    staged(tmp_path)
    whole = tmp_path / "input" / "b.arrow"
    body = bytearray(whole.read_bytes())
    body[len(body) // 2] ^= 1
    whole.write_bytes(body)
    with pytest.raises(DamagedRunError, match=f"^{whole} is damaged: its checksum is"):
        InputSnapshot(tmp_path / "input").check_files()


def test_damaged_input_is_found_by_a_check_and_ends_the_run(tmp_path: Path) -> None:
    join = StreamJoin(STREAMS, ON, Scatter())
    with killed_before(2), pytest.raises(OSError, match="killed"):
        join.start(tmp_path, batches="batch", durability="process").awaitTermination()
    file = tmp_path / "input" / "a.arrow"
    body = bytearray(file.read_bytes())
    sizes = [size for size, _ in InputSnapshot(file.parent)._noted.tables["a"]]
    body[sum(sizes[:4]) + 100] ^= 1
    file.write_bytes(body)
    assert any(f"{file} is damaged" in fault for fault in check_run(tmp_path)[0])
    with pytest.raises(DamagedRunError, match=f"^{file} is damaged: its checksum of batch 4"):
        StreamJoin.resume(tmp_path, STREAMS).awaitTermination()
    assert RunStore(tmp_path).log.committed_batches() == [0, 1, 2]
