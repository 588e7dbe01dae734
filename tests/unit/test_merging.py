"""Results of many batches in few files: readers see each result once, despite crashes."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid.core.run_state import FileChecksum, RunState
from braid.errors import DamagedRunError
from braid.storage import durable_files, result_compactor
from braid.storage.integrity import check_run
from braid.storage.log_entries import CommitRecord, FileRef
from braid.storage.run_files import result_file_sort_key
from braid.storage.run_medium import LocalMedium
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from duck import connect_duckdb
from merged_runs import (
    ON,
    STREAMS,
    WANTED,
    Killed,
    kill_before_commit,
    killed_at,
    list_batch_files,
    list_merged,
    read_ids,
)
from oracle import compute_expected, describe_difference, result_ids

pytestmark = pytest.mark.usefixtures("often")


def test_merged_results_are_those_of_their_batches(run: Path) -> None:
    assert list_merged(run) == [f"{n:06d}-{n + 2:06d}.parquet" for n in (0, 3, 6)]
    store = RunStore(run)
    assert len(store.results.result_files()) < len(list_batch_files(run, 0, 12))
    for first in range(12):
        for end in range(first, 13):
            wanted = read_ids(list_batch_files(run, first, end))
            assert read_ids(store.results.result_files(first, end)) == wanted
            one_by_one = store.results.result_files(first, end, merged=False)
            assert (
                one_by_one == list_batch_files(run, first, end) and read_ids(one_by_one) == wanted
            )
    for n in (0, 3, 6):
        rows = pa.concat_tables([pq.read_table(f) for f in list_batch_files(run, n, n + 3)])
        found = pq.read_table(run / "compacted" / f"{n:06d}-{n + 2:06d}.parquet")
        assert repr(found.to_pylist()) == repr(rows.to_pylist()), "batch after batch"
    resumed = StreamJoin.resume(run, STREAMS)
    assert describe_difference(result_ids(resumed.results()), WANTED) == ""
    assert check_run(run)[0] == [] and resumed.awaitTermination()


def test_others_read_either_folder(run: Path) -> None:
    with connect_duckdb() as db:
        for folder, wanted in (
            ("results", WANTED),
            ("compacted", read_ids(list_batch_files(run, 0, 9))),
        ):
            found = db.execute(f"SELECT a.id, b.id FROM '{run}/{folder}/*.parquet'").fetchall()
            assert describe_difference(Counter(found), wanted) == ""
            assert describe_difference(result_ids(pq.read_table(run / folder)), wanted) == ""


def test_names_of_merged_files_are_not_kept(run: Path) -> None:
    """Neither in memory nor in roll-ups: they would grow with the run."""
    store = RunStore(run)
    assert store.log.committed_batches() == [*range(12)]
    assert [kept.batch for kept in store.log.commits] == [9, 10, 11]
    rolled = sorted(run.glob("commits/checkpoint-*"))[-1].read_text()
    assert not [name for name in list_batch_files(run, 0, 9) if Path(name).name in rolled]


def rewritten(run: Path) -> dict[str, int]:
    return {f: (run / "compacted" / f).stat().st_nlink for f in list_merged(run)}


@pytest.mark.parametrize("why", ["large", "other columns"])
def test_what_is_large_or_of_other_columns_is_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    store = RunStore(tmp_path / "run")
    store.create_run({})
    store.log_opening_events()
    if why == "large":
        monkeypatch.setattr(result_compactor, "_LARGE", 100)
    for batch in range(5):
        name = f"{batch:06d}-0-0000cafe.parquet"
        kind = pa.int32() if batch == 1 and why != "large" else pa.int64()
        pq.write_table(pa.table({"batch": pa.array([batch], kind)}), store.published.new / name)
        snapshot = store.states.write_state(RunState(batch))
        seals = {name: durable_files.checksum_file(store.published.new / name, False)}
        store.commit_batch(batch, snapshot, seals, [])
        store.log_events([])
    assert list_merged(store.path) == [f"{n:06d}-0-0000cafe.parquet" for n in range(3)]
    assert set(rewritten(store.path).values()) == {2}
    found = [
        pq.read_table(f)["batch"][0].as_py() for f in RunStore(store.path).results.result_files()
    ]
    assert found == [*range(5)]
    store.finish_commit()
    assert not [*store.published.new.iterdir()]
    again = RunStore(store.path)
    again.remove_unnamed_files()
    assert list_merged(store.path) == [f"{n:06d}-0-0000cafe.parquet" for n in range(3)]


def test_killed_at_any_step_of_merging_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """A killed run never has more under compacted/ than its roll-up will name.

    Resumed, it ends like an undisturbed one.
    """
    streams = kill_before_commit(tmp_path / "before", 4)
    wanted, done, step = compute_expected(streams, ON), list[str](), 0
    while "commit" not in done[:step]:  # the commit after the roll-up
        folder = Path(shutil.copytree(tmp_path / "before", tmp_path / str(step)))
        with killed_at(step) as done, pytest.raises(Killed):
            StreamJoin.resume(folder, streams).awaitTermination()
        seen = [*folder.glob("compacted/*.parquet")]
        assert [f.name for f in seen] in ([], ["000000-000002.parquet"])
        assert not seen or read_ids([*map(str, seen)]) == read_ids(list_batch_files(folder, 0, 3))
        last = RunStore(folder).log.committed_batches()[-1]
        assert read_ids(RunStore(folder).results.result_files(0, last)) == read_ids(
            list_batch_files(folder, 0, last)
        )
        again = StreamJoin.resume(folder, streams, durability="process")
        assert again.awaitTermination()
        assert describe_difference(result_ids(again.results()), wanted) == ""
        assert list_merged(folder) == ["000000-000002.parquet"]
        assert describe_difference(read_ids(list_batch_files(folder, 0, 6)), wanted) == ""
        assert not [*folder.glob("staging/*")]
        step += 1
    assert step > 10 and {"write", "replace", "fsync", "mkdir"} < set(done)


def test_a_roll_up_that_is_damaged_makes_the_same_files_again(run: Path) -> None:
    before = {name: (run / "compacted" / name).read_bytes() for name in list_merged(run)}
    rolled = sorted(run.glob("commits/checkpoint-*"))
    rolled[-1].write_bytes(b"")
    store = RunStore(run)
    store.remove_unnamed_files()
    assert list_merged(run) == sorted(before)[:2]
    store.log_opening_events()
    store.checkpointer.write_checkpoint()
    assert {name: (run / "compacted" / name).read_bytes() for name in list_merged(run)} == before


def test_names_without_a_number_of_a_task_come_first() -> None:
    names = [f"000003-{part}.parquet" for part in ("12345678", "2-0000cafe", "10-0000beef")]
    assert sorted(names[::-1], key=result_file_sort_key) == names


def test_a_result_file_is_held_against_its_seal_before_it_is_merged(tmp_path: Path) -> None:
    """Damage must not get a new seal."""
    made = result_compactor.ResultCompactor(LocalMedium(tmp_path, "process"))
    for folder in (made.new, made.results):
        folder.mkdir()
    kept = []
    for batch in range(2):
        name = f"{batch:06d}-0-0000cafe.parquet"
        pq.write_table(pa.table({"x": [1]}), made.results / name)
        named = FileRef(
            name, FileChecksum(*durable_files.checksum_file(made.results / name, False))
        )
        kept.append(CommitRecord(batch, batch, None, (named,)))
    (made.results / kept[1].results[0].name).write_bytes(b"PAR1")
    with pytest.raises(
        DamagedRunError, match=r"000001-0-0000cafe.parquet is damaged: it has 4 bytes"
    ):
        made.compact(kept, 0)


def test_a_roll_up_that_cannot_be_written_doubles_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its groups are not part of the log before it exists."""
    store, real = RunStore(run), durable_files.write_atomically
    store.log.read_new_entries()
    before = [*store.log.merged]

    def full(path: Path, *given: Any, **more: Any) -> None:
        if path.name.startswith("checkpoint-"):
            raise OSError("no space left")
        real(path, *given, **more)

    monkeypatch.setattr(durable_files, "write_atomically", full)
    with pytest.raises(OSError, match="no space left"):
        store.log.write_checkpoint(store.log.checkpoint.archive, 0, before[:1])  # type: ignore[union-attr]
    assert store.log.merged == before


def test_no_group_of_rows_is_larger_than_what_arrow_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is more read at once: a result is a struct that may contain long texts."""
    tables = [pa.table({"a": pa.array([{"t": "x" * 100}] * rows)}) for rows in (30, 20, 50, 10)]
    monkeypatch.setattr(result_compactor, "_GROUP_BYTES", 4_000)
    assert result_compactor._try_write_tables(tmp_path / "some.parquet", tables)
    file = pq.ParquetFile(tmp_path / "some.parquet")
    groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert [n for n in groups if n] == [50, 50, 10]
    asked: list[int] = []
    real = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile, "read_row_group", lambda f, n: (asked.append(n), real(f, n))[1]
    )
    assert result_compactor.read_verified_pages(tmp_path / "some.parquet").equals(
        pa.concat_tables(tables)
    )
    assert asked == [*range(len(groups))]
