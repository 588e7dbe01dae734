"""Damaged, lost or foreign files of merged results are reported and made again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid.cli import main
from braid.core.run_state import RunState
from braid.errors import DamagedRunError
from braid.storage import durable_files, result_compactor, spark_sink_log
from braid.storage import integrity as checking
from braid.storage.committed_results import CommittedResults
from braid.storage.file_repair import find_repairable
from braid.storage.integrity import check_run, repair_run
from braid.storage.result_retention import RetentionPolicy
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from braid.util.file_system import FileSystem, Place, replace_file_system
from merged_runs import (
    STREAMS,
    WANTED,
    Killed,
    add_batch,
    list_batch_files,
    list_merged,
    read_ids,
    read_sink_log,
)
from oracle import Ids, describe_difference, result_ids

pytestmark = pytest.mark.usefixtures("often")


@pytest.mark.parametrize("gone", ["compacted", "results"])
def test_damage_in_merged_results_is_found(run: Path, gone: str) -> None:
    file = (
        run / "compacted" / list_merged(run)[1]
        if gone == "compacted"
        else Path(list_batch_files(run, 3, 6)[0])
    )
    body = bytearray(file.read_bytes())
    body[len(body) // 3] ^= 1
    file.write_bytes(body)
    assert str(file) in check_run(run)[0][0] and "is damaged" in check_run(run)[0][0]
    file.unlink()
    if gone == "results":
        (run / "compacted" / list_merged(run)[1]).unlink()
    sentence = (
        f"{file} is missing" if gone == "compacted" else f"{list_merged(run)[0][:3]}.* is missing"
    )
    with pytest.raises(DamagedRunError, match=sentence):
        StreamJoin.resume(run, STREAMS)


@pytest.mark.parametrize("lost", [slice(1), slice(1, 2), slice(-1, None), slice(None)], ids=str)
def test_a_file_that_is_lost_has_its_rows_in_merged(
    run: Path, lost: slice, caplog: pytest.LogCaptureFixture
) -> None:
    """The run continues, a repair restores the file, and Spark's log has its size."""
    files = list_batch_files(run, 3, 6)
    rows = [result_ids(pq.read_table(file)) for file in files]
    gone = [Path(file) for file in files[lost]]
    for file in gone:
        file.unlink()
    caplog.set_level("WARNING", "braid")
    again = StreamJoin.resume(run, STREAMS)
    assert (
        describe_difference(result_ids(again.results()), WANTED) == "" and again.awaitTermination()
    )
    reported = (
        f"results lacks {len(gone)} files of the batches 3 to 5, as {gone[0].name}; compacted/ has"
    )
    assert [reported in message for message in caplog.messages] == [True]
    assert read_sink_log(run) == sorted(f.name for f in [*run.glob("results/*.parquet"), *gone])
    with pytest.raises(
        DamagedRunError, match=f"{gone[0].name} is missing; compacted/ has its rows, and `br"
    ):
        again.results_since(int(gone[0].name[:6]))
    assert check_run(run)[0] == [f"{file} is missing" for file in gone]
    (made,) = repair_run(run)
    assert (
        made.startswith(f"results/{gone[0].name}") and "from compacted/000003-000005.parq" in made
    )
    assert check_run(run)[0] == []
    for batch in range(3, 6):
        ours = [k for k, file in enumerate(files) if int(Path(file).name[:6]) == batch]
        wanted = sum((rows[k] for k in ours), Ids())
        found = RunStore(run).results.result_files(batch, batch + 1, merged=False)
        assert found == [files[k] for k in ours] and read_ids(found) == wanted
    sizes = {f.name: f.stat().st_size for f in run.glob("results/*.parquet")}
    for log in run.glob("results/_spark_metadata/[0-9]*"):
        for line in map(json.loads, spark_sink_log._read_lines(log)):
            assert line["size"] == sizes[Path(line["path"]).name]
    caplog.clear()
    last = StreamJoin.resume(run, STREAMS)
    assert last.awaitTermination() and not caplog.messages
    assert describe_difference(result_ids(last.results()), WANTED) == ""


def test_a_file_that_is_linked_comes_back(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_compactor, "_LARGE", 100)
    store = RunStore(run)
    rolled = sorted(run.glob("commits/checkpoint-*"))
    rolled[-1].write_bytes(b"")
    store.remove_unnamed_files()
    store.log_opening_events()
    store.checkpointer.write_checkpoint()
    file = Path(list_batch_files(run, 6, 9)[1])
    body, batch = file.read_bytes(), int(file.name[:6])
    rows = read_ids(list_batch_files(run, batch, batch + 1))
    file.unlink()
    assert read_ids(RunStore(run).results.result_files(batch, batch + 1, merged=False)) == rows
    assert describe_difference(result_ids(StreamJoin.resume(run, STREAMS).results()), WANTED) == ""
    assert repair_run(run) == [f"results/{file.name}, from compacted/, where it is too"]
    assert file.read_bytes() == body and check_run(run)[0] == []


def test_a_file_that_is_lost_while_results_are_read_is_named(run: Path) -> None:
    store = RunStore(run)
    file = Path(list_batch_files(run, 3, 6)[0])
    batch = int(file.name[:6])
    assert str(file) in store.results.result_files(batch, batch + 1, merged=False)
    file.unlink()
    with pytest.raises(
        DamagedRunError, match=f"{file.name} is missing; compacted/ has its rows, and `braid"
    ):
        store.results.result_files(batch, batch + 1, merged=False)


def test_a_file_that_goes_while_it_is_looked_at_is_named(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may drop results at that moment."""
    store, real = RunStore(run), CommittedResults.check_published_file
    file = Path(list_batch_files(run, 3, 6)[0])
    batch = int(file.name[:6])

    def going(results: CommittedResults, name: str, deep: bool = False) -> None:
        file.unlink(missing_ok=True)
        real(results, name, deep)

    monkeypatch.setattr(CommittedResults, "check_published_file", going)
    with pytest.raises(
        DamagedRunError, match=f"{file.name} is missing; compacted/ has its rows, and `braid"
    ):
        store.results.result_files(batch, batch + 1, merged=False)
    with pytest.raises(DamagedRunError, match=f"{file.name} is missing$"):
        real(store.results, file.name)


def try_write_otherwise(file: Path, found: Any) -> bool:
    """Write the file as another version of pyarrow may."""
    pq.write_table(pa.concat_tables(found), file, compression="snappy", write_page_checksum=True)
    return True


def test_a_repair_that_is_killed_has_told_sizes_first(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark loses rows of a file that is larger than its log says, so no such file is shown.

    A damaged line of the log names no file, and stops no repair.
    """
    file = Path(list_batch_files(run, 3, 6)[1])
    file.unlink()
    compact = run / "results" / "_spark_metadata" / "9.compact"
    compact.write_text(compact.read_text() + '\n{"path":')
    monkeypatch.setattr(result_compactor, "_try_write_tables", try_write_otherwise)
    real = os.replace

    def replace(source: Any, target: Any) -> None:
        if Path(target) == file:
            raise Killed("killed")
        real(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with pytest.raises(Killed):
            repair_run(run)
    assert not file.exists()
    for line in spark_sink_log._read_lines(compact)[:-1]:
        if json.loads(line)["path"].endswith(file.name):
            assert json.loads(line)["size"] == (run / "staging" / file.name).stat().st_size
    made, logged = repair_run(run)
    assert made.startswith(f"results/{file.name}") and check_run(run)[0] == []
    assert logged.startswith("results/_spark_metadata/9.compact, from the names of the files in")


def damage(compact: Path, number: int) -> None:
    """Cut a line of Spark's log."""
    lines = compact.read_text().split("\n")
    lines[number] = lines[number][: len(lines[number]) // 2]
    compact.write_text("\n".join(lines))


def test_a_damaged_line_of_sparks_log_is_told_and_repaired(run: Path) -> None:
    """The other lines keep the sizes of their files."""
    compact, file = run / "results/_spark_metadata/9.compact", Path(list_batch_files(run, 3, 6)[1])
    before = compact.read_text()
    damage(compact, 2)
    (fault,) = check_run(run)[0]
    assert fault.startswith(f"{compact} is damaged: it has a line that is none of Spark's log; `br")
    body = file.read_bytes()
    pq.write_table(pa.concat_tables([pq.read_table(file)] * 9), file, write_page_checksum=True)
    assert check_run(run)[0][0].startswith(
        f"{file} is damaged: it has {file.stat().st_size} bytes, "
    )
    file.write_bytes(body)
    (made,) = repair_run(run)
    assert made.startswith("results/_spark_metadata/9.compact, from the names of the files in resu")
    assert check_run(run)[0] == [] and read_sink_log(run) == [
        f.name for f in sorted(run.glob("results/*.p*"))
    ]
    assert read_sizes(compact.read_text()) == read_sizes(before)


def test_sparks_log_is_read_once_however_many_files_are_wrong(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read again as soon as it has changed."""
    real, reads = spark_sink_log.SparkSinkLog._read_logged_entries, list[int]()
    monkeypatch.setattr(
        spark_sink_log.SparkSinkLog,
        "_read_logged_entries",
        lambda log: reads.append(1) or real(log),
    )
    wrong = list_batch_files(run, 0, 9)
    for file in wrong:
        pq.write_table(pa.concat_tables([pq.read_table(file)] * 9), file, write_page_checksum=True)
    assert len(check_run(run)[0]) == len(wrong) > 5 and len(reads) == 1
    store = RunStore(run)
    name, size = Path(wrong[0]).name, Path(wrong[0]).stat().st_size
    before = store.published.sink_log.logged_sizes()[name]
    store.published.sink_log.update_sizes({name: size})
    assert store.published.sink_log.logged_sizes()[name] == size != before and len(reads) == 3


def read_sizes(log: str) -> dict[str, int]:
    return {Path(each["path"]).name: each["size"] for each in map(json.loads, log.split("\n")[1:])}


@pytest.mark.parametrize("same_name", [True, False])
def test_a_log_that_is_written_anew_names_no_foreign_file(run: Path, same_name: bool) -> None:
    """The foreign file replaces a result, with the name and size of an intact line."""
    damage(run / "results/_spark_metadata/9.compact", 2)
    (run / "results/_spark_metadata/10").unlink()
    file = Path(list_batch_files(run, 3, 6)[1])
    batch, size, rows = int(file.name[:6]), file.stat().st_size, pq.read_table(file)
    other = file if same_name else file.with_name(f"{file.name[:9]}0badcafe.parquet")
    file.unlink()
    pq.write_table(pa.concat_tables([rows] * 9), other, write_page_checksum=True)
    RunStore(run).remove_unnamed_files()
    assert (
        RunStore(run).published.sink_log.logged_sizes()[file.name] == size
        and other.exists() == same_name
    )
    with pytest.raises(DamagedRunError, match=f"{file} is "):
        RunStore(run).results.result_files(batch, batch + 1, merged=False)
    (made,) = repair_run(run)
    assert made.startswith(f"results/{file.name}") and check_run(run)[0] == []
    assert result_ids(pq.read_table(file)) == result_ids(rows)


@pytest.mark.parametrize("keep", [None, RetentionPolicy(max_bytes=1)])
def test_a_damaged_line_of_sparks_log_ends_no_run(
    tmp_path: Path, keep: RetentionPolicy | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether all lines are rewritten, or those of dropped batches are removed."""
    store = RunStore(tmp_path / "run", "process")
    store.create_run({})
    store.log_opening_events()
    for batch in range(22):
        add_batch(store, batch)
        if batch == 12:
            damage(store.published.sink_log.folder / "9.compact", 4)
            store.checkpointer.keep = keep
    assert [("9.compact is damaged" in m, "done now" in m) for m in caplog.messages] == [(1, 1)]
    assert (store.log.first_retained_batch > 12) == (keep is not None)
    assert read_sink_log(store.path) == [
        f.name for f in sorted(store.published.results.glob("*.parquet"))
    ]
    assert (
        len(read_sink_log(store.path)) == 22 - store.log.first_retained_batch
        and not store.published.sink_log.damaged_files()
    )


@pytest.mark.parametrize("same_name", [True, False])
def test_a_foreign_file_is_taken_for_no_result(run: Path, same_name: bool) -> None:
    """The foreign file replaces one of a merged batch.

    A reader of that batch gets an error, and a repair restores the original. Results as a whole are
    read from compacted/.
    """
    file = Path(list_batch_files(run, 3, 6)[1])
    batch, rows = int(file.name[:6]), pq.read_table(file)
    other = file if same_name else file.with_name(f"{file.name[:9]}0badcafe.parquet")
    file.unlink()
    pq.write_table(pa.concat_tables([rows] * 9), other, write_page_checksum=True)
    store = RunStore(run)
    assert (
        describe_difference(result_ids(pq.read_table(store.results.result_files())), WANTED) == ""
    )
    said = (
        f"{file} is damaged: it has {other.stat().st_size} bytes"
        if same_name
        else (f"{file} is missing; compacted/ has its rows, and `braid repair")
    )
    with pytest.raises(DamagedRunError, match=said):
        store.results.result_files(batch, batch + 1, merged=False)
    (fault,) = check_run(run)[0]
    assert fault.startswith(f"{file} is ")
    (made,) = repair_run(run)
    assert made.startswith(f"results/{file.name}") and check_run(run)[0] == []
    assert result_ids(pq.read_table(file)) == result_ids(rows)
    again = StreamJoin.resume(run, STREAMS)
    assert (
        again.awaitTermination() and describe_difference(result_ids(again.results()), WANTED) == ""
    )
    assert other.exists() == same_name and read_sink_log(run) == [
        f.name for f in sorted(run.glob("results/*.parquet"))
    ]


class RecordingFileSystem(FileSystem):
    """A file system that records in ``done`` which files were synced to disk and replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[tuple[str, str]] = []

    def write_file(self, path: Place, body: bytes, force: bool = False) -> None:
        super().write_file(path, body, force)
        if force:
            self.done.append(("force", str(path)))

    def compute_checksum(self, path: Place, force: bool = False) -> tuple[int, int]:
        if force:
            self.done.append(("force", str(path)))
        return super().compute_checksum(path, force)

    def force_to_disk(self, path: Place) -> None:
        super().force_to_disk(path)
        self.done.append(("force", str(path)))

    def replace_file(self, old: Place, new: Place) -> None:
        super().replace_file(old, new)
        self.done.append(("replace", str(new)))


def test_a_cut_of_the_power_leaves_no_file_that_its_log_says_to_be_smaller(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry of Spark's log is on disk before the restored file."""
    file = Path(list_batch_files(run, 3, 6)[1])
    file.unlink()
    monkeypatch.setattr(result_compactor, "_try_write_tables", try_write_otherwise)
    disk, log = RecordingFileSystem(), f"{run}/results/_spark_metadata"
    with replace_file_system(disk):
        repair_run(run)
    logged = disk.done.index(("replace", f"{log}/9.compact"))
    published = disk.done.index(("replace", str(file)))
    forced = [name for operation, name in disk.done[:logged] if operation == "force"]
    assert any(name.startswith(f"{log}/.9.compact.") for name in forced)
    assert ("force", log) in disk.done[logged:published]


@pytest.mark.parametrize("way", ["gone", "flipped", "written otherwise"])
def test_a_merged_file_is_made_anew(
    run: Path, way: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the same rows in results/; no batch is given up."""
    file = run / "compacted" / "000003-000005.parquet"
    body = bytearray(file.read_bytes())
    rows = repr(pq.read_table(file).to_pylist())
    file.unlink()
    if way == "flipped":
        body[len(body) // 3] ^= 1
        file.write_bytes(body)
        body[len(body) // 3] ^= 1
    else:
        with pytest.raises(DamagedRunError) as raised:
            StreamJoin.resume(run, STREAMS)
        assert str(raised.value) == (
            f"{file} is missing; `braid repair {run}` rebuilds {file.name}, from the files of "
            "its batches in results/"
        )
    assert main(["check", str(run)]) == 1
    assert f": `braid repair {run}` rebuilds {file.name}, from" in capsys.readouterr().out
    if way == "written otherwise":
        monkeypatch.setattr(result_compactor, "_try_write_tables", try_write_otherwise)
    assert main(["repair", str(run)]) == 0
    assert "rebuilt: 000003-000005.parquet, from" in capsys.readouterr().out
    assert (file.read_bytes() == body) == (way != "written otherwise")
    assert repr(pq.read_table(file).to_pylist()) == rows
    assert check_run(run)[0] == [] and main(["repair", str(run)]) == 2
    assert "is to be rebuilt; `braid check` tells" in capsys.readouterr().err
    sorted(run.glob("commits/checkpoint-*"))[-1].write_bytes(b"")
    assert RunStore(run).log.committed_batches() == [*range(12)] and check_run(run)[0] == []
    again = StreamJoin.resume(run, STREAMS)
    assert describe_difference(result_ids(again.results()), WANTED) == ""
    assert again.awaitTermination()


def test_a_merged_file_whose_rows_are_gone_is_not(run: Path) -> None:
    (run / "compacted" / "000003-000005.parquet").unlink()
    file = Path(list_batch_files(run, 3, 6)[0])
    body = bytearray(file.read_bytes())
    body[len(body) // 3] ^= 1
    file.write_bytes(body)
    with pytest.raises(DamagedRunError, match="start over with `braid repair .* --to-batch 0`"):
        StreamJoin.resume(run, STREAMS)
    with pytest.raises(ValueError, match="no file of the run .* is to be rebuilt"):
        repair_run(run)


def test_a_repair_that_cannot_be_changes_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A possible one does both: it rebuilds earlier files, and goes back."""
    (run / "compacted" / "000003-000005.parquet").unlink()
    before = {f: f.read_bytes() for f in run.rglob("*") if f.is_file()}
    with pytest.raises(ValueError, match="cannot go back to batch 6; it can to 0, 11, 12"):
        repair_run(run, 5)
    assert {f: f.read_bytes() for f in run.rglob("*") if f.is_file()} == before
    monkeypatch.setattr(result_compactor, "_try_write_tables", try_write_otherwise)
    (made,) = repair_run(run, 10)
    assert made.startswith("000003-000005.parquet, from")
    assert RunStore(run).log.committed_batches() == [*range(11)] and check_run(run)[0] == []
    again = StreamJoin.resume(run, STREAMS)
    assert (
        again.awaitTermination() and describe_difference(result_ids(again.results()), WANTED) == ""
    )


def test_advice_looks_once_for_what_can_be_made_anew(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "compacted" / "000003-000005.parquet").unlink()
    asked, real = list[RunStore](), checking.find_repairable
    monkeypatch.setattr(checking, "find_repairable", lambda s: (asked.append(s), real(s))[1])
    assert "rebuilds 000003-000005.parquet" in checking.repair_hint(RunStore(run))
    assert len(asked) == 1


def test_what_is_made_anew_has_the_order_of_many_tasks(tmp_path: Path) -> None:
    """Tasks are ordered by number: as a name, "10" sorts before "2"."""
    store = RunStore(tmp_path / "run")
    store.create_run({})
    store.log_opening_events()
    for batch in range(5):
        seals = {}
        for task in reversed(range(12)):
            name = f"{batch:06d}-{task}-0000cafe.parquet"
            rows = pa.table({"batch": [batch], "task": [task]})
            pq.write_table(rows, store.published.new / name, write_page_checksum=True)
            seals[name] = durable_files.checksum_file(store.published.new / name, False)
        store.commit_batch(batch, store.states.write_state(RunState(batch)), seals, [])
        store.log_events([])
    (file,) = store.path.glob("compacted/*")
    body = file.read_bytes()
    rows = [(row["batch"], row["task"]) for row in pq.read_table(file).to_pylist()]
    assert rows == [(batch, task) for batch in range(3) for task in range(12)]
    listed = [Path(f).name for f in store.results.result_files(0, 1, merged=False)]
    assert listed == [f"000000-{task}-0000cafe.parquet" for task in range(12)]
    file.unlink()
    (anew,) = find_repairable(RunStore(store.path))
    anew.rebuild()
    assert file.read_bytes() == body
