"""The results of many batches in few files: whoever reads them sees each result once, and whatever is
killed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid.core.events import EventsDropped
from braid.core.state import Seal, State
from braid.engine import check as checking
from braid.engine import durable, merging, sink_log
from braid.engine import store as module
from braid.engine.check import check, repair
from braid.engine.durable import Damaged
from braid.engine.keeping import Keep, dropped
from braid.engine.log import Merged, in_order
from braid.engine.remaking import remakable
from braid.engine.store import Store
from braid.join import JoinRun, StreamJoin
from braid.reports.cli import main
from oracle import Ids, differ, expected, ids, killed_before, tables
from scatter import Scatter
from unit.test_durability import Disk

ON = "a.k = b.k"
STREAMS = tables("ab", 60, seed=97, batches=12)
WANTED = expected(STREAMS, ON)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three batches are merged at once."""
    monkeypatch.setattr(module, "_EVERY", 3)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of twelve batches, of which nine are merged."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_EVERY", 3)
        join = StreamJoin(STREAMS, ON, Scatter(pieces=2), check=True)
        assert join.start(folder, batches="batch", durability="process").awaitTermination()
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def read(files: list[str]) -> Ids:
    return sum((ids(pq.read_table(file)) for file in files), Ids())


def of_batches(run: Path, first: int, end: int) -> list[str]:
    """The files as tasks wrote them."""
    names = [f for f in sorted(run.glob("results/*.parquet")) if first <= int(f.name[:6]) < end]
    return [str(f) for f in names]


def merged(run: Path) -> list[str]:
    return sorted(f.name for f in (run / "merged").iterdir())


def test_merged_results_are_those_of_their_batches(run: Path) -> None:
    assert merged(run) == [f"{n:06d}-{n + 2:06d}.parquet" for n in (0, 3, 6)]
    store = Store(run)
    assert len(store.result_files()) < len(of_batches(run, 0, 12))
    for first in range(12):
        for end in range(first, 13):
            wanted = read(of_batches(run, first, end))
            assert read(store.result_files(first, end)) == wanted
            one_by_one = store.result_files(first, end, merged=False)
            assert one_by_one == of_batches(run, first, end) and read(one_by_one) == wanted
    for n in (0, 3, 6):
        rows = pa.concat_tables([pq.read_table(f) for f in of_batches(run, n, n + 3)])
        found = pq.read_table(run / "merged" / f"{n:06d}-{n + 2:06d}.parquet")
        assert repr(found.to_pylist()) == repr(rows.to_pylist()), "batch after batch"
    resumed = StreamJoin.resume(run, STREAMS)
    assert differ(ids(resumed.results()), WANTED) == ""
    assert check(run)[0] == [] and resumed.awaitTermination()


def test_others_read_either_folder(run: Path) -> None:
    with duckdb.connect() as db:
        for folder, wanted in (("results", WANTED), ("merged", read(of_batches(run, 0, 9)))):
            found = db.execute(f"SELECT a.id, b.id FROM '{run}/{folder}/*.parquet'").fetchall()
            assert differ(Counter(found), wanted) == ""
            assert differ(ids(pq.read_table(run / folder)), wanted) == ""


def test_names_of_merged_files_are_not_kept(run: Path) -> None:
    """Neither in memory nor in roll-ups: they would grow with the run."""
    store = Store(run)
    assert store.committed() == [*range(12)]
    assert [kept.batch for kept in store.log.commits] == [9, 10, 11]
    rolled = sorted(run.glob("commits/rolled-*"))[-1].read_text()
    assert not [name for name in of_batches(run, 0, 9) if Path(name).name in rolled]


def rewritten(run: Path) -> dict[str, int]:
    return {f: (run / "merged" / f).stat().st_nlink for f in merged(run)}


@pytest.mark.parametrize("why", ["large", "other columns"])
def test_what_is_large_or_of_other_columns_is_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    store = Store(tmp_path / "run")
    store.create({})
    store.begin()
    if why == "large":
        monkeypatch.setattr(merging, "_LARGE", 100)
    for batch in range(5):
        name = f"{batch:06d}-0-0000cafe.parquet"
        kind = pa.int32() if batch == 1 and why != "large" else pa.int64()
        pq.write_table(pa.table({"batch": pa.array([batch], kind)}), store.output.new / name)
        snapshot = store.snapshot(State(batch))
        seals = {name: durable.seal(store.output.new / name, False)}
        store.commit(batch, snapshot, seals, [])
        store.tell([])
    assert merged(store.path) == [f"{n:06d}-0-0000cafe.parquet" for n in range(3)]
    assert set(rewritten(store.path).values()) == {2}
    found = [pq.read_table(f)["batch"][0].as_py() for f in Store(store.path).result_files()]
    assert found == [*range(5)]
    assert not [*store.output.new.iterdir()]
    again = Store(store.path)
    again.clean()
    assert merged(store.path) == [f"{n:06d}-0-0000cafe.parquet" for n in range(3)]


class Killed(OSError):
    """Where the process ends."""


@contextmanager
def killed_at(step: int) -> Iterator[list[str]]:
    """All file operations from number ``step`` on fail, once a roll-up has begun."""
    done = list[str]()

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*given: Any, **named: Any) -> Any:
            if done or name == "merge":
                done.append(name)
                if len(done) > step:
                    raise Killed("killed")
            return real(*given, **named)

        return operation

    with pytest.MonkeyPatch.context() as patch:
        real = merging.Merging.merge
        patch.setattr(merging.Merging, "merge", counted("merge", real))
        for name in ("link", "replace", "fsync", "mkdir"):
            patch.setattr(os, name, counted(name, getattr(os, name)))
        patch.setattr(Path, "unlink", counted("unlink", Path.unlink))
        patch.setattr(
            pq.ParquetWriter, "write_table", counted("write", pq.ParquetWriter.write_table)
        )
        yield done


def before(folder: Path, batch: int, **more: Any) -> dict[str, pa.Table]:
    """A run of two batches more that was killed before the commit of one; its streams."""
    streams = tables("ab", 40, seed=98, batches=batch + 2)
    with killed_before(batch):
        run = StreamJoin(streams, ON, Scatter()).start(folder, batches="batch", **more)
        with pytest.raises(OSError, match="killed"):
            run.awaitTermination()
    return streams


def test_killed_at_any_step_of_merging_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """In the run that is killed there is never more under merged/ than its roll-up will say; resumed,
    it ends as if nothing had been.
    """
    streams = before(tmp_path / "before", 4)
    wanted, done, step = expected(streams, ON), list[str](), 0
    while "link" not in done[:step]:  # the commit after the roll-up
        folder = Path(shutil.copytree(tmp_path / "before", tmp_path / str(step)))
        with killed_at(step) as done, pytest.raises(Killed):
            StreamJoin.resume(folder, streams).awaitTermination()
        seen = [*folder.glob("merged/*.parquet")]
        assert [f.name for f in seen] in ([], ["000000-000002.parquet"])
        assert not seen or read([*map(str, seen)]) == read(of_batches(folder, 0, 3))
        last = Store(folder).committed()[-1]
        assert read(Store(folder).result_files(0, last)) == read(of_batches(folder, 0, last))
        again = StreamJoin.resume(folder, streams, durability="process")
        assert again.awaitTermination()
        assert differ(ids(again.results()), wanted) == ""
        assert merged(folder) == ["000000-000002.parquet"]
        assert differ(read(of_batches(folder, 0, 6)), wanted) == ""
        assert not [*folder.glob("new/*")]
        step += 1
    assert step > 10 and {"write", "replace", "fsync", "mkdir"} < set(done)


def test_a_roll_up_that_is_damaged_makes_the_same_files_again(run: Path) -> None:
    before = {name: (run / "merged" / name).read_bytes() for name in merged(run)}
    rolled = sorted(run.glob("commits/rolled-*"))
    rolled[-1].write_bytes(b"")
    store = Store(run)
    store.clean()
    assert merged(run) == sorted(before)[:2]
    store.begin()
    store._roll(store.log.unrolled()[-3].entry)
    assert {name: (run / "merged" / name).read_bytes() for name in merged(run)} == before


@pytest.mark.parametrize("gone", ["merged", "results"])
def test_damage_in_merged_results_is_found(run: Path, gone: str) -> None:
    file = run / "merged" / merged(run)[1] if gone == "merged" else Path(of_batches(run, 3, 6)[0])
    body = bytearray(file.read_bytes())
    body[len(body) // 3] ^= 1
    file.write_bytes(body)
    assert str(file) in check(run)[0][0] and "is damaged" in check(run)[0][0]
    file.unlink()
    if gone == "results":
        (run / "merged" / merged(run)[1]).unlink()
    sentence = f"{file} is missing" if gone == "merged" else f"{merged(run)[0][:3]}.* is missing"
    with pytest.raises(Damaged, match=sentence):
        StreamJoin.resume(run, STREAMS)


@pytest.mark.parametrize("lost", [slice(1), slice(1, 2), slice(-1, None), slice(None)], ids=str)
def test_a_file_that_is_lost_has_its_rows_in_merged(
    run: Path, lost: slice, caplog: pytest.LogCaptureFixture
) -> None:
    """The run goes on, a repair brings the file back, and Spark's log has its size."""
    files = of_batches(run, 3, 6)
    rows = [ids(pq.read_table(file)) for file in files]
    gone = [Path(file) for file in files[lost]]
    for file in gone:
        file.unlink()
    caplog.set_level("WARNING", "braid")
    again = StreamJoin.resume(run, STREAMS)
    assert differ(ids(again.results()), WANTED) == "" and again.awaitTermination()
    told = f"results lacks {len(gone)} files of the batches 3 to 5, as {gone[0].name}; merged/ has"
    assert [told in message for message in caplog.messages] == [True]
    assert log_of(run) == sorted(f.name for f in [*run.glob("results/*.parquet"), *gone])
    with pytest.raises(Damaged, match=f"{gone[0].name} is missing; merged/ has its rows, and `br"):
        again.results_since(int(gone[0].name[:6]))
    assert check(run)[0] == [f"{file} is missing" for file in gone]
    (made,) = repair(run)
    assert made.startswith(f"results/{gone[0].name}") and "from merged/000003-000005.parq" in made
    assert check(run)[0] == []
    for batch in range(3, 6):
        ours = [k for k, file in enumerate(files) if int(Path(file).name[:6]) == batch]
        wanted = sum((rows[k] for k in ours), Ids())
        found = Store(run).result_files(batch, batch + 1, merged=False)
        assert found == [files[k] for k in ours] and read(found) == wanted
    sizes = {f.name: f.stat().st_size for f in run.glob("results/*.parquet")}
    for log in run.glob("results/_spark_metadata/[0-9]*"):
        for line in map(json.loads, sink_log._read(log)):
            assert line["size"] == sizes[Path(line["path"]).name]
    caplog.clear()
    last = StreamJoin.resume(run, STREAMS)
    assert last.awaitTermination() and not caplog.messages
    assert differ(ids(last.results()), WANTED) == ""


def test_a_file_that_is_linked_comes_back(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "_LARGE", 100)
    store = Store(run)
    rolled = sorted(run.glob("commits/rolled-*"))
    rolled[-1].write_bytes(b"")
    store.clean()
    store.begin()
    store._roll(store.log.unrolled()[-3].entry)
    file = Path(of_batches(run, 6, 9)[1])
    body, batch = file.read_bytes(), int(file.name[:6])
    rows = read(of_batches(run, batch, batch + 1))
    file.unlink()
    assert read(Store(run).result_files(batch, batch + 1, merged=False)) == rows
    assert differ(ids(StreamJoin.resume(run, STREAMS).results()), WANTED) == ""
    assert repair(run) == [f"results/{file.name}, from merged/, where it is too"]
    assert file.read_bytes() == body and check(run)[0] == []


def test_a_file_that_is_lost_while_results_are_read_is_named(run: Path) -> None:
    store = Store(run)
    file = Path(of_batches(run, 3, 6)[0])
    batch = int(file.name[:6])
    assert str(file) in store.result_files(batch, batch + 1, merged=False)
    file.unlink()
    with pytest.raises(Damaged, match=f"{file.name} is missing; merged/ has its rows, and `braid"):
        store.result_files(batch, batch + 1, merged=False)


def test_a_file_that_goes_while_it_is_looked_at_is_named(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may drop results just then."""
    store, real = Store(run), Store.check_other
    file = Path(of_batches(run, 3, 6)[0])
    batch = int(file.name[:6])

    def going(store: Store, name: str, deep: bool = False) -> None:
        file.unlink(missing_ok=True)
        real(store, name, deep)

    monkeypatch.setattr(Store, "check_other", going)
    with pytest.raises(Damaged, match=f"{file.name} is missing; merged/ has its rows, and `braid"):
        store.result_files(batch, batch + 1, merged=False)
    with pytest.raises(Damaged, match=f"{file.name} is missing$"):
        real(store, file.name)


def add(store: Store, batch: int) -> None:
    """Commit a batch with one result file."""
    name = f"{batch:06d}-0-0000cafe.parquet"
    pq.write_table(pa.table({"batch": [batch]}), store.output.new / name)
    seals = {name: durable.seal(store.output.new / name, False)}
    store.commit(batch, store.snapshot(State(batch)), seals, [])
    store.tell([])


def test_what_another_process_has_dropped_is_not_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A reader that has not heard of it gives no advice to repair."""
    store, readers = Store(tmp_path / "run"), list[Store]()
    store.create({})
    store.begin()
    for batch in range(9):
        add(store, batch)
        if batch == 4:
            readers += [Store(store.path), Store(store.path)]
            for reader in readers:
                reader.log.refresh()
            assert len(readers[0].result_files(0, 1, merged=False)) == 1
            store.keep = Keep(bytes=1)
    assert store.log.since == 3 and [reader.log.since for reader in readers] == [0, 0]
    assert readers[1].merged_files() == [[], [], []] and not caplog.messages
    for reader in readers:
        with pytest.raises(ValueError, match="of batch 0 are no longer kept; those from batch 3"):
            reader.result_files(0, 1, merged=False)


def written_otherwise(file: Path, found: Any) -> bool:
    """As another version of pyarrow may."""
    pq.write_table(pa.concat_tables(found), file, compression="snappy", write_page_checksum=True)
    return True


def test_a_repair_that_is_killed_has_told_sizes_first(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark loses rows of a file that is larger than its log says, so no such one is shown. A line
    of the log that is damaged names no file, and stops no repair.
    """
    file = Path(of_batches(run, 3, 6)[1])
    file.unlink()
    compact = run / "results" / "_spark_metadata" / "9.compact"
    compact.write_text(compact.read_text() + '\n{"path":')
    monkeypatch.setattr(merging, "_written", written_otherwise)
    real = os.replace

    def replace(source: Any, target: Any) -> None:
        if Path(target) == file:
            raise Killed("killed")
        real(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with pytest.raises(Killed):
            repair(run)
    assert not file.exists()
    for line in sink_log._read(compact)[:-1]:
        if json.loads(line)["path"].endswith(file.name):
            assert json.loads(line)["size"] == (run / "new" / file.name).stat().st_size
    made, logged = repair(run)
    assert made.startswith(f"results/{file.name}") and check(run)[0] == []
    assert logged.startswith("results/_spark_metadata/9.compact, from the names of the files in")


def damage(compact: Path, number: int) -> None:
    """Cut a line of Spark's log."""
    lines = compact.read_text().split("\n")
    lines[number] = lines[number][: len(lines[number]) // 2]
    compact.write_text("\n".join(lines))


def test_a_damaged_line_of_sparks_log_is_told_and_repaired(run: Path) -> None:
    """The other lines still say how large their files are."""
    compact, file = run / "results/_spark_metadata/9.compact", Path(of_batches(run, 3, 6)[1])
    before = compact.read_text()
    damage(compact, 2)
    (fault,) = check(run)[0]
    assert fault.startswith(f"{compact} is damaged: it has a line that is none of Spark's log; `br")
    body = file.read_bytes()
    pq.write_table(pa.concat_tables([pq.read_table(file)] * 9), file, write_page_checksum=True)
    assert check(run)[0][0].startswith(f"{file} is damaged: it has {file.stat().st_size} bytes, ")
    file.write_bytes(body)
    (made,) = repair(run)
    assert made.startswith("results/_spark_metadata/9.compact, from the names of the files in resu")
    assert check(run)[0] == [] and log_of(run) == [f.name for f in sorted(run.glob("results/*.p*"))]
    assert sizes_of(compact.read_text()) == sizes_of(before)


def sizes_of(log: str) -> dict[str, int]:
    return {Path(each["path"]).name: each["size"] for each in map(json.loads, log.split("\n")[1:])}


@pytest.mark.parametrize("same_name", [True, False])
def test_a_log_that_is_written_anew_names_no_foreign_file(run: Path, same_name: bool) -> None:
    """In the place of a result: its size and its name are as the lines have it that are whole."""
    damage(run / "results/_spark_metadata/9.compact", 2)
    (run / "results/_spark_metadata/10").unlink()
    file = Path(of_batches(run, 3, 6)[1])
    batch, size, rows = int(file.name[:6]), file.stat().st_size, pq.read_table(file)
    other = file if same_name else file.with_name(f"{file.name[:9]}0badcafe.parquet")
    file.unlink()
    pq.write_table(pa.concat_tables([rows] * 9), other, write_page_checksum=True)
    Store(run).clean()
    assert Store(run).output.sizes()[file.name] == size and other.exists() == same_name
    with pytest.raises(Damaged, match=f"{file} is "):
        Store(run).result_files(batch, batch + 1, merged=False)
    (made,) = repair(run)
    assert made.startswith(f"results/{file.name}") and check(run)[0] == []
    assert ids(pq.read_table(file)) == ids(rows)


@pytest.mark.parametrize("keep", [None, Keep(bytes=1)])
def test_a_damaged_line_of_sparks_log_ends_no_run(
    tmp_path: Path, keep: Keep | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether all lines are written again, or those of batches that are dropped taken out."""
    store = Store(tmp_path / "run", "process")
    store.create({})
    store.begin()
    for batch in range(22):
        add(store, batch)
        if batch == 12:
            damage(store.output.log / "9.compact", 4)
            store.keep = keep
    assert [("9.compact is damaged" in m, "done now" in m) for m in caplog.messages] == [(1, 1)]
    assert (store.log.since > 12) == (keep is not None)
    assert log_of(store.path) == [f.name for f in sorted(store.results.glob("*.parquet"))]
    assert len(log_of(store.path)) == 22 - store.log.since and not store.output.damages()


@pytest.mark.parametrize("same_name", [True, False])
def test_a_foreign_file_is_taken_for_no_result(run: Path, same_name: bool) -> None:
    """In the place of one of a batch that is merged: who asks for that batch is told, and a repair
    brings back what was there. Results as a whole are read from merged/.
    """
    file = Path(of_batches(run, 3, 6)[1])
    batch, rows = int(file.name[:6]), pq.read_table(file)
    other = file if same_name else file.with_name(f"{file.name[:9]}0badcafe.parquet")
    file.unlink()
    pq.write_table(pa.concat_tables([rows] * 9), other, write_page_checksum=True)
    store = Store(run)
    assert differ(ids(pq.read_table(store.result_files())), WANTED) == ""
    said = (
        f"{file} is damaged: it has {other.stat().st_size} bytes"
        if same_name
        else (f"{file} is missing; merged/ has its rows, and `braid repair")
    )
    with pytest.raises(Damaged, match=said):
        store.result_files(batch, batch + 1, merged=False)
    (fault,) = check(run)[0]
    assert fault.startswith(f"{file} is ")
    (made,) = repair(run)
    assert made.startswith(f"results/{file.name}") and check(run)[0] == []
    assert ids(pq.read_table(file)) == ids(rows)
    again = StreamJoin.resume(run, STREAMS)
    assert again.awaitTermination() and differ(ids(again.results()), WANTED) == ""
    assert other.exists() == same_name and log_of(run) == [
        f.name for f in sorted(run.glob("results/*.parquet"))
    ]


def test_a_cut_of_the_power_leaves_no_file_that_its_log_says_to_be_smaller(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Spark's log says is on disk before the file that is brought back is."""
    file = Path(of_batches(run, 3, 6)[1])
    file.unlink()
    monkeypatch.setattr(merging, "_written", written_otherwise)
    disk, log = Disk(run), "run/results/_spark_metadata"
    with disk.recorded():
        repair(run)
    told = disk.done.index(("replace", f"{log}/9.compact"))
    shown = disk.done.index(("replace", f"run/results/{file.name}"))
    assert ("fsync", f"{log}/.9.compact.tmp") in disk.done[:told]
    assert ("fsync", log) in disk.done[told:shown]


@pytest.mark.parametrize("way", ["gone", "flipped", "written otherwise"])
def test_a_merged_file_is_made_anew(
    run: Path, way: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the same rows in results/; no batch is given up."""
    file = run / "merged" / "000003-000005.parquet"
    body = bytearray(file.read_bytes())
    rows = repr(pq.read_table(file).to_pylist())
    file.unlink()
    if way == "flipped":
        body[len(body) // 3] ^= 1
        file.write_bytes(body)
        body[len(body) // 3] ^= 1
    else:
        with pytest.raises(Damaged) as raised:
            StreamJoin.resume(run, STREAMS)
        assert str(raised.value) == (
            f"{file} is missing; `braid repair {run}` makes anew {file.name}, from the files of "
            "its batches in results/"
        )
    assert main(["check", str(run)]) == 1
    assert f": `braid repair {run}` makes anew {file.name}, from" in capsys.readouterr().out
    if way == "written otherwise":
        monkeypatch.setattr(merging, "_written", written_otherwise)
    assert main(["repair", str(run)]) == 0
    assert "made anew: 000003-000005.parquet, from" in capsys.readouterr().out
    assert (file.read_bytes() == body) == (way != "written otherwise")
    assert repr(pq.read_table(file).to_pylist()) == rows
    assert check(run)[0] == [] and main(["repair", str(run)]) == 2
    assert "is to be made anew; `braid check` says" in capsys.readouterr().err
    sorted(run.glob("commits/rolled-*"))[-1].write_bytes(b"")
    assert Store(run).committed() == [*range(12)] and check(run)[0] == []
    again = StreamJoin.resume(run, STREAMS)
    assert differ(ids(again.results()), WANTED) == ""
    assert again.awaitTermination()


def test_a_merged_file_whose_rows_are_gone_is_not(run: Path) -> None:
    (run / "merged" / "000003-000005.parquet").unlink()
    file = Path(of_batches(run, 3, 6)[0])
    body = bytearray(file.read_bytes())
    body[len(body) // 3] ^= 1
    file.write_bytes(body)
    with pytest.raises(Damaged, match="begin anew with `braid repair .* --to-batch -1`"):
        StreamJoin.resume(run, STREAMS)
    with pytest.raises(ValueError, match="nothing of the run .* is to be made anew"):
        repair(run)


def test_a_repair_that_cannot_be_changes_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that can does both: makes anew what came before, and goes back."""
    (run / "merged" / "000003-000005.parquet").unlink()
    before = {f: f.read_bytes() for f in run.rglob("*") if f.is_file()}
    with pytest.raises(ValueError, match="cannot go back to batch 5; it can to -1, 10, 11"):
        repair(run, 5)
    assert {f: f.read_bytes() for f in run.rglob("*") if f.is_file()} == before
    monkeypatch.setattr(merging, "_written", written_otherwise)
    (made,) = repair(run, 10)
    assert made.startswith("000003-000005.parquet, from")
    assert Store(run).committed() == [*range(11)] and check(run)[0] == []
    again = StreamJoin.resume(run, STREAMS)
    assert again.awaitTermination() and differ(ids(again.results()), WANTED) == ""


def test_advice_looks_once_for_what_can_be_made_anew(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "merged" / "000003-000005.parquet").unlink()
    asked, real = list[Store](), checking.remakable
    monkeypatch.setattr(checking, "remakable", lambda s: (asked.append(s), real(s))[1])
    assert "makes anew 000003-000005.parquet" in checking.advice(Store(run))
    assert len(asked) == 1


def test_what_is_made_anew_has_the_order_of_many_tasks(tmp_path: Path) -> None:
    """By their numbers: "10" stands before "2" as a name."""
    store = Store(tmp_path / "run")
    store.create({})
    store.begin()
    for batch in range(5):
        seals = {}
        for task in reversed(range(12)):
            name = f"{batch:06d}-{task}-0000cafe.parquet"
            rows = pa.table({"batch": [batch], "task": [task]})
            pq.write_table(rows, store.output.new / name, write_page_checksum=True)
            seals[name] = durable.seal(store.output.new / name, False)
        store.commit(batch, store.snapshot(State(batch)), seals, [])
        store.tell([])
    (file,) = store.path.glob("merged/*")
    body = file.read_bytes()
    rows = [(row["batch"], row["task"]) for row in pq.read_table(file).to_pylist()]
    assert rows == [(batch, task) for batch in range(3) for task in range(12)]
    listed = [Path(f).name for f in store.result_files(0, 1, merged=False)]
    assert listed == [f"000000-{task}-0000cafe.parquet" for task in range(12)]
    file.unlink()
    (anew,) = remakable(Store(store.path))
    anew.make()
    assert file.read_bytes() == body


def test_names_without_a_number_of_a_task_come_first() -> None:
    names = [f"000003-{part}.parquet" for part in ("12345678", "2-0000cafe", "10-0000beef")]
    assert sorted(names[::-1], key=in_order) == names


def test_where_results_were_dropped_the_roll_up_before_stands_in(tmp_path: Path) -> None:
    how: dict[str, Any] = {"keep": "1 B", "durability": "process"}
    run = StreamJoin(STREAMS, ON, Scatter()).start(tmp_path, batches="batch", **how)
    assert run.awaitTermination() and run.results_from == 6
    wanted = ids(run.results())
    rolled = sorted(tmp_path.glob("commits/rolled-*"))
    rolled[-1].write_bytes(b"")
    again = StreamJoin.resume(tmp_path, STREAMS, **how)
    assert again.awaitTermination() and again.results_from == 6
    assert differ(ids(again.results()), wanted) == ""
    kept_from(tmp_path, 6)
    assert not rolled[-1].exists()


def test_a_result_file_is_held_against_its_seal_before_it_is_merged(tmp_path: Path) -> None:
    """So that damage is not sealed anew."""
    made = merging.Merging(tmp_path)
    for folder in (made.new, made.results):
        folder.mkdir()
    kept = []
    for batch in range(2):
        name = f"{batch:06d}-0-0000cafe.parquet"
        pq.write_table(pa.table({"x": [1]}), made.results / name)
        named = module.Named(name, Seal(*durable.seal(made.results / name, False)))
        kept.append(module.Kept(batch, batch, None, (named,)))
    (made.results / kept[1].results[0].name).write_bytes(b"PAR1")
    with pytest.raises(Damaged, match=r"000001-0-0000cafe.parquet is damaged: it has 4 bytes"):
        made.merge(kept, False, 0)


def log_of(run: Path) -> list[str]:
    """What Spark's log names, as Spark reads it."""
    logs = {int(f.name.partition(".")[0]): f for f in run.glob("results/_spark_metadata/[0-9]*")}
    last = max((n for n, f in logs.items() if f.suffix), default=0)
    lines = [line for n in sorted(logs) if n >= last for line in sink_log._read(logs[n])]
    return sorted(Path(json.loads(line)["path"]).name for line in lines)


def kept_from(run: Path, first: int) -> None:
    """Whoever reads sees the batches from one on, and all of them."""
    names = sorted(f.name for f in run.glob("results/*.parquet"))
    assert names and min(int(name[:6]) for name in names) >= first
    wanted = read(of_batches(run, first, 99))
    assert log_of(run) == names
    assert differ(read(Store(run).result_files()), wanted) == ""
    with duckdb.connect() as db:
        found = db.execute(f"SELECT a.id, b.id FROM '{run}/results/*.parquet'").fetchall()
        assert differ(Counter(found), wanted) == ""
    assert all(int(name[:6]) >= first for name in merged(run))
    assert check(run)[0] == []


def in_batches(found: pa.Table, run: JoinRun) -> int:
    counts = run.metrics(by="batch").set_index("batch")["results"]
    gone = sum(e.results for e in run.events() if isinstance(e, EventsDropped))
    assert int(counts.sum()) + gone == WANTED.total(), "counts stay, if only as a sum"
    return int(counts[counts.index >= run.results_from].sum()) - found.num_rows


def test_results_are_kept_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch a day: at the end of twelve, the third roll-up is of the eleventh day, on which those
    of the first six batches are more than two days old, merged on the fifth and the eighth.
    """
    day, now = 86_400 * 10**6, [0]
    real = Store.commit

    def commit(store: Store, batch: int, *given: Any) -> None:
        now[0] = (batch + 1) * day
        real(store, batch, *given)

    monkeypatch.setattr(Store, "commit", commit)
    monkeypatch.setattr(module, "_now", lambda: now[0])
    run = StreamJoin(STREAMS, ON, Scatter()).start(tmp_path, batches="batch", keep="2 days")
    assert run.awaitTermination()
    assert run.results_from == 6
    kept_from(tmp_path, 6)
    assert in_batches(run.results(), run) == 0
    assert run.results_since(6)[0].num_rows == run.results().num_rows
    with pytest.raises(ValueError, match="batches before 6 are no longer kept; ask from 6 on"):
        run.results_since(5)
    again = StreamJoin.resume(tmp_path, STREAMS)
    assert again.awaitTermination() and again.results_from == 6
    kept_from(tmp_path, 6)
    assert in_batches(again.results(), again) == 0


@pytest.mark.parametrize("keep", ["1 B", "300 days", "1 GB"])
def test_results_are_kept_up_to_a_size(tmp_path: Path, keep: str) -> None:
    """At least the last group, and what is not merged."""
    run = StreamJoin(STREAMS, ON, Scatter()).start(
        tmp_path, batches="batch", keep=keep, durability="process"
    )
    assert run.awaitTermination()
    assert run.results_from == (6 if keep == "1 B" else 0)
    kept_from(tmp_path, run.results_from)


def test_what_a_sink_has_not_had_is_kept(tmp_path: Path) -> None:
    join, given = StreamJoin(STREAMS, ON, Scatter()), list[int]()
    run = join.start(tmp_path, batches="batch", foreachBatch=lambda t, n: given.append(n))
    run.awaitTermination()
    store = Store(tmp_path)
    store.keep = Keep(bytes=1)
    store.log.refresh()
    assert store._old(store.log.merged) == 2
    for last, groups in ((5, 2), (4, 1), (2, 1), (1, 0), (-1, 0)):
        store.delivered.note(last)
        assert store._old(store.log.merged) == groups


@pytest.mark.parametrize(
    ("keep", "now", "later", "gone"),
    [
        (Keep(age=10), 20, 0, 0),
        (Keep(age=10), 21, 0, 1),
        (Keep(age=10), 31, 0, 2),
        (Keep(age=10), 999, 0, 3),
        (Keep(bytes=4100), 0, 100, 0),
        (Keep(bytes=4099), 0, 100, 1),
        (Keep(bytes=3000), 0, 100, 2),
        (Keep(bytes=1), 0, 100, 3),
    ],
)
def test_the_oldest_go_first(keep: Keep, now: int, later: int, gone: int) -> None:
    groups = [Merged(3 * n, 3 * n + 3, 3, (), 1000, 10 * (n + 1)) for n in range(4)]
    assert dropped(keep, groups, later, now, 99) == gone
    assert dropped(keep, groups, later, now, 5) == min(gone, 1)
    assert dropped(keep, [], later, now, 99) == 0


def test_killed_at_any_step_of_dropping_the_rest_is_whole(tmp_path: Path) -> None:
    how: dict[str, Any] = {"keep": "1 B", "durability": "process"}
    streams = before(tmp_path / "before", 7, **how)
    done, step = list[str](), 0
    while "link" not in done[:step]:
        folder = Path(shutil.copytree(tmp_path / "before", tmp_path / str(step)))
        with killed_at(step) as done, pytest.raises(Killed):
            StreamJoin.resume(folder, streams, **how).awaitTermination()
        store = Store(folder)
        store.log.refresh()
        assert store.log.since in (0, 3)
        last = store.committed()[-1]
        found = read(store.result_files(None, last))
        assert found == read(of_batches(folder, store.log.since, last))
        named = {*log_of(folder)}
        assert named <= {f.name for f in folder.glob("results/*")}, "none that is gone"
        again = StreamJoin.resume(folder, streams, durability="process")
        assert again.awaitTermination()
        kept_from(folder, again.results_from)
        assert again.results_from == store.log.since
        step += 1
    assert step > 8 and {"replace", "unlink"} < set(done)


@pytest.mark.parametrize("keep", ["", "soon", 3, "0 days", "-1 GB", True])
def test_what_is_no_time_and_no_size_is_refused(tmp_path: Path, keep: Any) -> None:
    with pytest.raises(ValueError, match="it must be a span as '30 days', or a size as '10 GB'"):
        StreamJoin(STREAMS, ON, Scatter()).start(tmp_path / "run", keep=keep)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match="is a bucket; leave it out there"):
        StreamJoin(STREAMS, ON, Scatter()).start("memory:///x", keep="1 day")


def test_a_sink_that_comes_too_late_is_refused(tmp_path: Path) -> None:
    """It would be given batches without the results that they had."""
    run = StreamJoin(STREAMS, ON, Scatter()).start(
        tmp_path, batches="batch", keep="1 B", durability="process"
    )
    run.awaitTermination()
    assert run.results_from == 6
    with pytest.raises(
        ValueError, match="begin with batch 0, and results are kept from batch 6 on"
    ):
        StreamJoin.resume(tmp_path, STREAMS, foreachBatch=lambda table, number: None)
    with pytest.raises(
        ValueError, match="results of batch 5 are no longer kept; those from batch 6"
    ):
        Store(tmp_path).result_files(5, 7)


def test_a_roll_up_that_cannot_be_written_doubles_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its groups are not those of the log before it is there."""
    store, real = Store(run), durable.put
    store.log.refresh()
    before = [*store.log.merged]

    def full(path: Path, *given: Any, **more: Any) -> None:
        if path.name.startswith("rolled-"):
            raise OSError("no space left")
        real(path, *given, **more)

    monkeypatch.setattr(durable, "put", full)
    with pytest.raises(OSError, match="no space left"):
        store.log.roll(store.log.rolled.archive, 0, before[:1], False)  # type: ignore[union-attr]
    assert store.log.merged == before
