"""Files of a stopped run are damaged, exchanged or lost.

Either nothing is missing, or one sentence names what is; the run can go back to its last intact
batch.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from braid.cli import main
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.integrity import check_run, repair_run
from braid.storage.log_entries import Manifest
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from oracle import compute_expected, describe_difference, killed_before, make_tables, result_ids
from scatter import Scatter

ON = "a.k = b.k"
STREAMS = make_tables("ab", 40, seed=93, batches=4)
WANTED = compute_expected(STREAMS, ON)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run stopped after the third of four batches: entries 1 to 3 of its log, and all of its
    input.
    """
    folder = tmp_path_factory.mktemp("stopped") / "run"
    with killed_before(3):
        join = StreamJoin(STREAMS, ON, Scatter(pieces=2), check=True)
        run = join.start(folder, batches="batch", durability="process")
        with pytest.raises(OSError, match="killed"):
            run.awaitTermination()
    return folder


@pytest.fixture
def run(stopped: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stopped, tmp_path / "run"))


def resumed(folder: Path) -> str:
    """Return how the results of a resumed run differ from the expected ones, or why it fails."""
    try:
        again = StreamJoin.resume(folder, STREAMS, durability="process")
        assert again.awaitTermination()
        return describe_difference(result_ids(again.results()), WANTED)
    except ValueError as error:
        assert "\n" not in str(error)
        return str(error)


def half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def gone(file: Path) -> None:
    file.unlink()


def flipped(file: Path) -> None:
    """Flip one bit in the middle; in input, of the last micro-batch."""
    body = bytearray(file.read_bytes())
    at = len(body) // 2
    if file.suffix == ".arrow" and file.parent.name == "input":
        *earlier, last, footer = json.loads((file.parent / "files.json").read_text())["tables"]["a"]
        at = len(body) - footer[0] - last[0] // 2
    body[at] ^= 1
    file.write_bytes(body)


def exchanged(file: Path) -> None:
    """Replace a file by another of its kind, cut or filled to the same length."""
    kind = re.sub(r"\d", "?", re.sub(r"-.*(?=\.)", "-*", file.name))
    kind = "*.arrow" if file.parent.name == "input" else kind
    other = next(f for f in sorted(file.parent.glob(kind)) if f != file)
    file.write_bytes(other.read_bytes()[: file.stat().st_size].ljust(file.stat().st_size, b" "))


FILES: dict[str, Callable[[Path], Path]] = {
    "the query": lambda run: run / "run.json",
    "the first entry": lambda run: run / "commits" / "000000.json",
    "an entry": lambda run: run / "commits" / "000002.json",
    "the last entry": lambda run: run / "commits" / "000003.json",
    "the last state": lambda run: next(run.glob("commits/state-000002-*")),
    "a block": lambda run: next(run.glob("blocks/000000-*")),
    "a result": lambda run: next(run.glob("results/000001-*")),
    "the last result": lambda run: next(run.glob("results/000002-*")),
    "input to come": lambda run: run / "input" / "a.arrow",
    "the seals of the input": lambda run: run / "input" / "files.json",
}
WAYS = (half, empty, gone, flipped, exchanged)


@pytest.mark.parametrize(
    ("file", "way"),
    [
        pytest.param(file, way, id=f"{file}-{way.__name__}")
        for file in FILES
        for way in WAYS
        if way is not exchanged or file not in ("the query", "the seals of the input")
    ],
)
def test_a_damaged_file_is_named_in_one_sentence(
    run: Path, file: str, way: Callable[[Path], None]
) -> None:
    damaged = FILES[file](run)
    before = damaged.read_bytes()
    (run / "staging" / damaged.name).unlink(missing_ok=True)  # the last results have two names
    way(damaged)
    assert not damaged.exists() or damaged.read_bytes() != before
    if file != "the query" and (way is not gone or file != "the last entry"):
        faults, _ = check_run(run)
        assert any(str(damaged) in fault for fault in faults), "braid check finds it"
    said = resumed(run)
    if way is gone and file == "the last entry":
        assert said == ""  # then its batch does not exist
        return
    if way is gone and file == "the query":
        assert "holds no run" in said or "holds files but no run of Braid" in said
        return
    assert str(damaged) in said
    assert "is missing" in said or "is damaged" in said or "does not follow" in said


@pytest.mark.parametrize("file", ["the last entry", "the last state", "the last result"])
@pytest.mark.parametrize("way", [half, flipped])
def test_a_run_goes_back_to_where_it_was_whole(
    run: Path, file: str, way: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    way(FILES[file](run))
    assert main(["check", str(run)]) == 1
    output = capsys.readouterr().out
    assert f"batches 1 to 2 are intact: `braid repair {run} --to-batch 2` goes back there" in output
    assert main(["repair", str(run), "--to-batch", "1"]) == 2
    assert "cannot go back to batch 1; it can to 0, 2" in capsys.readouterr().err
    assert main(["repair", str(run), "--to-batch", "2"]) == 0
    assert RunStore(run).log.committed_batches() == [0, 1]
    assert resumed(run) == ""
    assert check_run(run)[0] == []


@pytest.mark.parametrize("way", [half, gone, flipped])
def test_an_older_state_is_not_needed(run: Path, way: Callable[[Path], None]) -> None:
    """The run continues from the last one; it only cannot go back."""
    way(next(run.glob("commits/state-000001-*")))
    with pytest.raises(ValueError, match="cannot go back to batch 2; it can to 0, 3"):
        repair_run(run, 1)
    assert resumed(run) == ""
    assert check_run(run)[0] == []


def test_a_run_of_which_no_state_is_left_begins_anew(run: Path) -> None:
    half(FILES["an entry"](run))
    assert "--to-batch 0`" in resumed(run)
    repair_run(run, -1)
    assert RunStore(run).log.committed_batches() == []
    assert resumed(run) == ""


def test_a_whole_run_is_said_to_be_whole(
    run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["check", str(run)]) == 0
    store = RunStore(run)
    assert store.log.committed_batches() == [0, 1, 2]
    files = len(store.results.named_files())
    reported = rf"^3 batches, {files} result files, \d+ block files, .*: all whole$"
    assert files >= 3 and re.search(reported, capsys.readouterr().out)
    assert main(["check", str(tmp_path)]) == 2
    assert "holds files but no run of Braid" in capsys.readouterr().err
    assert resumed(run) == ""
    assert check_run(run)[0] == []


def test_a_run_that_goes_on_is_not_repaired(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = RunStore(run)
    store.acquire_run()
    assert main(["repair", str(run), "--to-batch", "2"]) == 2
    assert "is in use" in capsys.readouterr().err
    store.release_run()


@pytest.mark.parametrize("entry", [1, 2])
def test_an_entry_that_was_written_anew_does_not_follow(run: Path, entry: int) -> None:
    """Its own checksum is right, but the next entry has the checksum of the original."""
    file = run / "commits" / f"{entry:06d}.json"
    manifest = msgspec.json.decode(file.read_bytes(), type=Manifest)
    assert manifest.results
    file.write_bytes(
        durable_files.encode_checksummed(msgspec.structs.replace(manifest, results=()))
    )
    assert f"{entry + 1:06d}.json does not follow the entry before it" in resumed(run)


def test_a_manifest_names_no_file_elsewhere(run: Path) -> None:
    file = run / "commits" / "000003.json"
    manifest = msgspec.json.decode(file.read_bytes(), type=Manifest)
    (_, seal), *rest = manifest.results
    named = (("../../000002-0-0000dead.parquet", seal), *rest)
    file.write_bytes(
        durable_files.encode_checksummed(msgspec.structs.replace(manifest, results=named))
    )
    assert "is not entry 3 of a log that Braid wrote" in resumed(run)


def test_all_that_can_be_made_again_is(run: Path) -> None:
    """Files that only other readers need."""
    (run / "events.jsonl").write_text('{"format_version":')
    shutil.rmtree(run / "results" / "_spark_metadata")
    shutil.rmtree(run / "staging")
    assert resumed(run) == ""


def test_a_result_that_is_damaged_under_a_run_is_not_read(run: Path) -> None:
    again = StreamJoin.resume(run, STREAMS)
    assert again.awaitTermination()
    result = FILES["a result"](run)
    flipped(result)
    with pytest.raises(DamagedRunError, match=f"^{result} is damaged: its checksum is"):
        again.results()
    result.unlink()
    with pytest.raises(DamagedRunError, match=f"^{result} is missing$"):
        again.results()


@pytest.mark.parametrize("kind", [pa.float64(), pa.int64()])
def test_a_source_of_other_types_is_refused(run: Path, kind: pa.DataType) -> None:
    """The copy is joined, but the condition would be parsed for other types."""
    rows = STREAMS["a"]
    at = rows.column_names.index("k")
    other = {**STREAMS, "a": rows.set_column(at, "k", rows["k"].cast(kind))}
    before = {f: f.stat().st_mtime_ns for f in run.rglob("*")}
    with pytest.raises(ValueError, match="whose stream a has the columns .*k: int32") as said:
        StreamJoin.resume(run, other)
    assert f"k: {kind}" in str(said.value) and "stream b" not in str(said.value)
    assert {f: f.stat().st_mtime_ns for f in run.rglob("*")} == before


def test_other_cores_make_no_other_run(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("braid.sources.arrow_streams.available_cores", lambda: 7)
    assert resumed(run) == ""
