"""Late, untimed and early tuples are rows: once, intact, and kept as long as results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from braid.core.run_events import BatchCommitted
from braid.errors import DamagedRunError
from braid.papers.baselines.hash_partition import HashPartition
from braid.storage.integrity import check_run, repair_run
from braid.storage.irregular_files import IrregularFiles
from braid.storage.log_entries import FileRef
from braid.storage.manifest_log import ManifestLog
from braid.storage.result_compactor import ResultCompactor
from braid.storage.run_store import RunStore
from braid.stream_join import JoinRun, StreamJoin
from oracle import killed_before

BATCHES = 9


def make_stream() -> pa.Table:
    """Return a stream in whose batches one tuple is late, one untimed and one far ahead.

    A batch is a minute after the one before. Ids of late tuples end with 1, of untimed ones with 2,
    of early ones with 3.
    """
    rows = []
    for n in range(BATCHES):
        now = 60_000_000 * (n + 1)
        times = [now, now - 90_000_000 if n > 1 else now, None, now, now]
        if n == 3:
            times[3] = 10**13
        rows += [(10 * n + i, i % 2, n, time) for i, time in enumerate(times)]
    id, k, batch, ts = zip(*rows, strict=True)
    return pa.table(
        {
            "id": pa.array(id, pa.int64()),
            "k": pa.array(k, pa.int64()),
            "batch": pa.array(batch, pa.int32()),
            "ts": pa.array(ts, pa.timestamp("us", tz="UTC")),
        }
    )


STREAM = make_stream()
REASONS = {1: "late", 2: "untimed", 3: "ahead"}


NEAR = "a.k = b.k AND b.ts > a.ts - INTERVAL 20 SECONDS AND b.ts < a.ts + INTERVAL 20 SECONDS"


def start(place: Any, on: str = "a.k = b.k", how: str = "inner", **more: Any) -> JoinRun:
    streams = {"a": STREAM, "b": STREAM}
    windows = None if on == NEAR else "20 seconds"
    join = StreamJoin(streams, on, HashPartition(4), windows, "ts", check=True, how=how)
    return join.start(place, batches="batch", **{"durability": "process", **more})


def list_rows(run: JoinRun) -> Counter[Any]:
    """Return batch, stream, reason and id of the irregular rows."""
    rows = run.late().to_pylist()
    return Counter(
        (r["batch"], r["stream"], r["reason"], r["row"][r["stream"]]["id"]) for r in rows
    )


def find_expected(first: int = 0) -> Counter[Any]:
    """Return the same of the batches from ``first`` on."""
    found = [(n, "untimed", 10 * n + 2) for n in range(BATCHES)]
    found += [(n, "late", 10 * n + 1) for n in range(2, BATCHES)] + [(3, "ahead", 33)]
    return Counter((n, alias, why, id) for n, why, id in found for alias in "ab" if n >= first)


def list_files(folder: Path) -> set[str]:
    return {path.name for path in (folder / "late").iterdir()}


def test_rows_have_stream_reason_and_how_far_behind(tmp_path: Path) -> None:
    run = start(tmp_path)
    assert run.awaitTermination() and list_rows(run) == find_expected()
    assert run.late().schema.names == ["stream", "reason", "behind", "batch", "row"]
    late = [r for r in run.late().to_pylist() if r["reason"] == "late"]
    assert {r["behind"] for r in late} == {timedelta(seconds=30)}
    assert all((r["row"]["a"] is None) == (r["stream"] == "b") for r in late)
    assert {r["behind"] for r in run.late().to_pylist() if r["reason"] != "late"} == {None}
    counts = Counter((stream, why) for _, stream, why, _ in find_expected().elements())
    for why in REASONS.values():
        assert run.status[why] == {alias: counts[alias, why] for alias in "ab"}


@pytest.mark.parametrize("how", ["inner", "left", "full"])
def test_rows_are_those_of_windows_if_the_condition_bounds_event_time(
    tmp_path: Path, how: str
) -> None:
    run = start(tmp_path, NEAR, how)
    assert run.awaitTermination() and list_rows(run) == find_expected()


def test_tuples_without_event_time_are_joined_where_none_is_needed_and_move_no_clock(
    tmp_path: Path,
) -> None:
    """Of the first batch only one tuple has an event time."""
    is_gone = pc.and_(pc.equal(STREAM["batch"], 0), pc.greater(STREAM["id"], 0))
    times = pc.if_else(is_gone, None, STREAM["ts"])
    rows = STREAM.set_column(STREAM.column_names.index("ts"), "ts", times)
    join = StreamJoin({"a": rows, "b": rows}, "a.k = b.k", HashPartition(4), None, "ts", check=True)
    run = join.start(tmp_path / "run", batches="batch", durability="process")
    run.awaitTermination()
    assert run.results().num_rows == (3 * BATCHES) ** 2 + (2 * BATCHES) ** 2
    assert run.status["untimed"] == {"a": BATCHES + 3, "b": BATCHES + 3}
    reasons = Counter(row["reason"] for row in run.late().to_pylist())
    assert reasons == {"untimed": 2 * (BATCHES + 3), "ahead": 2}
    clocks = [e.clocks for e in run.events() if isinstance(e, BatchCommitted)]
    assert clocks == [(60_000_000 * (n + 1),) * 2 for n in range(BATCHES)]


def test_a_run_without_irregular_rows_has_no_folder(tmp_path: Path) -> None:
    ids = [id for id in STREAM["id"].to_pylist() if id % 10 in (0, 4)]
    rows = STREAM.filter(pa.array([id in ids for id in STREAM["id"].to_pylist()]))
    join = StreamJoin({"a": rows, "b": rows}, "a.k = b.k", windows="20 seconds", time="ts")
    run = join.start(tmp_path, batches="batch")
    assert run.awaitTermination() and run.late().num_rows == 0
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize("batch", [0, 3, 5])
def test_a_batch_that_is_repeated_has_its_rows_once(tmp_path: Path, batch: int) -> None:
    """Files that the killed driver left are removed."""
    with killed_before(batch), pytest.raises(OSError, match="killed"):
        start(tmp_path).awaitTermination()
    left = list_files(tmp_path)
    assert any(name.startswith(f"{batch:06d}") for name in left)
    run = start(tmp_path)
    assert run.awaitTermination() and list_rows(run) == find_expected()
    assert {file.name for file in run.store.irregular.list_committed()} == list_files(tmp_path)
    assert check_run(tmp_path)[0] == []


@pytest.mark.usefixtures("often")
def test_rows_are_kept_as_long_as_results(tmp_path: Path) -> None:
    run = start(tmp_path, keep="1 B")
    assert run.awaitTermination() and (since := run.first_retained_batch) == 3
    assert list_rows(run) == find_expected(since)
    assert min(list_files(tmp_path)) >= f"{since:06d}"
    again = start(tmp_path)
    assert again.awaitTermination() and list_rows(again) == find_expected(since)


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [Path.unlink, cut_off])
def test_damage_is_said(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    run = start(tmp_path)
    assert run.awaitTermination()
    file = min((tmp_path / "late").iterdir())
    damage(file)
    with pytest.raises(DamagedRunError, match=file.name):
        run.late()
    assert any(file.name in fault for fault in check_run(tmp_path)[0])
    (said,) = repair_run(tmp_path)
    assert f"late/{file.name}, which cannot be rebuilt: run.late() leaves out its rows" in said
    assert check_run(tmp_path)[0] == []
    left = list_rows(start(tmp_path))
    assert left < find_expected() and {n for n, *_ in find_expected() - left} == {
        int(file.name[:6])
    }
    with pytest.raises(ValueError, match="no file of the run in .* is to be rebuilt"):
        repair_run(tmp_path)


def test_rows_of_a_run_in_a_bucket(url: str) -> None:
    with killed_before(4), pytest.raises(OSError, match="killed"):
        start(url).awaitTermination()
    run = start(url)
    assert run.awaitTermination() and list_rows(run) == find_expected()
    assert check_run(url)[0] == []


def test_a_commit_forces_the_folder_of_the_rows_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from braid.storage import durable_files

    forced: list[Path] = []
    force = durable_files.fsync_path
    monkeypatch.setattr(durable_files, "fsync_path", lambda p: (forced.append(Path(p)), force(p)))
    assert start(tmp_path, durability="power").awaitTermination()
    assert forced.count(tmp_path / "late") >= BATCHES


def test_a_repaired_run_has_no_rows_of_later_batches(tmp_path: Path) -> None:
    assert start(tmp_path).awaitTermination()
    repair_run(tmp_path, BATCHES - 2)
    store = RunStore(tmp_path)
    batches = {int(file.name[:6]) for file in store.irregular.list_committed()}
    assert max(batches) == BATCHES - 2
    run = start(tmp_path)
    assert run.awaitTermination() and list_rows(run) == find_expected()


@pytest.mark.usefixtures("often")
def test_files_of_batches_that_a_checkpoint_covers_are_merged(tmp_path: Path) -> None:
    """The originals of the last group stay, in case the checkpoint before has to replace it."""
    run = start(tmp_path)
    assert run.awaitTermination() and list_rows(run) == find_expected()
    groups = run.store.log.merged
    assert len(groups) >= 2 and groups[-1].end_batch < BATCHES
    names = [file.name for group in groups for file in group.irregular]
    assert names == [
        f"{g.first_batch:06d}-{g.end_batch - 1:06d}-{stream}.parquet"
        for g in groups
        for stream in (0, 1)
    ]
    originals = {int(name[:6]) for name in list_files(tmp_path) - {*names}}
    assert originals == {*range(groups[-1].first_batch, BATCHES)}
    assert check_run(tmp_path)[0] == []
    latest = max((tmp_path / "commits").glob("checkpoint-*.json"))
    latest.write_bytes(latest.read_bytes()[:-1])
    again = start(tmp_path)
    assert again.awaitTermination() and list_rows(again) == find_expected()


@pytest.mark.usefixtures("often")
def test_damaged_files_are_not_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    merge = IrregularFiles.merge_files

    def damage_and_merge(files: IrregularFiles, first: int, end: int) -> tuple[FileRef, ...]:
        if not first:
            cut_off(min(files.folder.glob("000001-*-1.parquet")))
        return merge(files, first, end)

    monkeypatch.setattr(IrregularFiles, "merge_files", damage_and_merge)
    run = start(tmp_path)
    assert run.awaitTermination()
    with pytest.raises(DamagedRunError, match=r"late/000001-.*-1\.parquet"):
        run.late()
    repair_run(tmp_path)
    rows = list_rows(start(tmp_path))
    assert {(n, alias) for n, alias, *_ in find_expected() - rows} == {(1, "b")}


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("step", ["write_checkpoint", "publish_compacted"])
def test_a_run_killed_while_files_are_merged_has_its_rows_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    owner: Any = ManifestLog if step == "write_checkpoint" else ResultCompactor

    def die(*given: Any) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="killed"):
        patched.setattr(owner, step, die)
        start(tmp_path).awaitTermination()
    run = start(tmp_path)
    assert run.awaitTermination() and list_rows(run) == find_expected()
    assert list_files(tmp_path) <= run.store.irregular.list_names()
    assert check_run(tmp_path)[0] == []
