"""A driver or reader starts while another driver continues the run, as after a lost lock."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from braid.core.run_state import FileChecksum
from braid.errors import DamagedRunError, FencedError
from braid.sources.arrow_replay import ArrowReplay
from braid.storage import durable_files, log_checkpointer
from braid.storage.manifest_log import ManifestLog
from braid.storage.published_results import PublishedResults
from braid.storage.run_medium import LocalMedium
from braid.storage.run_store import RunStore
from braid.storage.static_input_copy import InputSnapshot
from braid.stream_join import StreamJoin
from input_splitting import stage_streams
from oracle import compute_expected, describe_difference, make_tables, result_ids
from scatter import Scatter

STREAMS = make_tables("ab", 60, seed=91, batches=4)


def test_entries_that_come_while_the_log_is_read_are_not_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two entries are added after a reader has found no further one, and before it lists them
    all.
    """
    (tmp_path / "commits").mkdir()
    driver, reader = (
        ManifestLog(LocalMedium(tmp_path, "process")),
        ManifestLog(LocalMedium(tmp_path, "process")),
    )
    driver.append_entry()
    real = ManifestLog._list_entries

    def entries(log: ManifestLog) -> list[int]:
        if log is reader and not driver.entry_path(2).exists():
            driver.append_entry()
            driver.append_entry()
        return real(log)

    monkeypatch.setattr(ManifestLog, "_list_entries", entries)
    reader.read_new_entries()
    assert reader.next_entry == 3
    driver.entry_path(1).unlink()
    with pytest.raises(DamagedRunError, match=r"000001\.json is missing, but later ones are there"):
        ManifestLog(LocalMedium(tmp_path, "process")).read_new_entries()


def test_input_that_another_driver_cuts_meanwhile_is_not_missing(tmp_path: Path) -> None:
    mine = written(tmp_path)
    mine.check_files()
    InputSnapshot(tmp_path).split_all(force=False)
    assert not [*tmp_path.glob("*.arrow")]
    mine.check_files(deep=True)
    (tmp_path / "a" / "000001.parquet").unlink()
    with pytest.raises(DamagedRunError, match=r"000001\.parquet is missing"):
        mine.check_files()


def test_who_takes_over_after_all_input_was_cut_does_not_cut_it_again(tmp_path: Path) -> None:
    store = RunStore(tmp_path, "process")
    store.acquire_run()
    store.create_run({})
    written(store.input.folder)
    store.input.check_files()
    InputSnapshot(store.input.folder).split_all(force=False)
    store.take_over()
    store.input.split_all(force=False)
    store.input.check_files(deep=True)


def test_a_driver_that_lost_the_run_leaves_files_that_its_successor_writes(tmp_path: Path) -> None:
    before = written(tmp_path / "input")

    def check() -> None:
        raise FencedError("another driver has the run")

    before.check_driver = check
    (tmp_path / "input" / "a").mkdir(exist_ok=True)
    left = durable_files.name_temporary(tmp_path / "input" / "a" / "000002.parquet")
    left.touch()
    with pytest.raises(FencedError):
        before.start_splitting(0, force=False)
    assert left.exists()


def test_a_result_that_another_driver_moves_meanwhile_is_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is in staging/ when a new driver looks there, and later in results/."""
    join = StreamJoin(STREAMS, "a.k = b.k", Scatter())
    assert join.start(tmp_path, batches="batch").awaitTermination()
    moved = next((tmp_path / "results").glob("*.parquet"))
    moved.rename(tmp_path / "staging" / moved.name)
    real = PublishedResults.committed_path

    def path(output: PublishedResults, name: str) -> str:
        found = real(output, name)
        if found == str(tmp_path / "staging" / moved.name):
            Path(found).rename(moved)
        return found

    monkeypatch.setattr(PublishedResults, "committed_path", path)
    run = join.start(tmp_path, batches="batch")
    assert run.awaitTermination()
    assert (
        describe_difference(result_ids(run.results()), compute_expected(STREAMS, "a.k = b.k")) == ""
    )


def test_what_is_rolled_up_before_a_driver_takes_over_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new driver has read the log and does not know of merged results."""
    join = StreamJoin(STREAMS, "a.k = b.k", Scatter())
    assert join.start(tmp_path, batches="batch").awaitTermination()
    store, before = RunStore(tmp_path, "process"), RunStore(tmp_path, "process")
    store.acquire_run()
    store.verify_files()
    monkeypatch.setattr(log_checkpointer, "_EVERY", 2)
    before.log_opening_events()
    before.checkpointer.write_checkpoint()
    merged = {*(tmp_path / "compacted").iterdir()}
    store.take_over()
    store.remove_unnamed_files()
    assert merged and {*(tmp_path / "compacted").iterdir()} == merged
    RunStore(tmp_path, "process").verify_files()


def test_a_run_that_another_driver_makes_ready_meanwhile_keeps_its_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver has seen that it is not ready, and takes it over later."""
    join = StreamJoin(STREAMS, "a.k = b.k", Scatter())
    real = RunStore.take_over

    def take_over(store: RunStore) -> None:
        monkeypatch.setattr(RunStore, "take_over", real)
        store.release_run()
        assert join.start(tmp_path, batches="batch").awaitTermination()
        store.acquire_run()
        before.update({f: f.read_bytes() for f in tmp_path.glob("input/*")})
        monkeypatch.setattr(ArrowReplay, "write_input", None)
        real(store)

    before = dict[Path, bytes]()
    monkeypatch.setattr(RunStore, "take_over", take_over)
    run = join.start(tmp_path, batches="batch")
    assert run.awaitTermination()
    assert len(before) == 3 and {f: f.read_bytes() for f in before} == before
    assert (
        describe_difference(result_ids(run.results()), compute_expected(STREAMS, "a.k = b.k")) == ""
    )


def test_columns_are_not_read_from_a_file_that_is_damaged(tmp_path: Path) -> None:
    copied = written(tmp_path)
    copied.split_all(force=False)
    file = tmp_path / "a" / "000000.parquet"
    body = bytearray(file.read_bytes())
    body[-40] ^= 1
    file.write_bytes(body)
    with pytest.raises(DamagedRunError, match=r"a/000000\.parquet is damaged"):
        InputSnapshot(tmp_path).stream_schema("a")


def test_a_file_that_goes_while_it_is_looked_at_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its length was asked for, and then another driver removed it."""
    file = tmp_path / "file"
    file.write_bytes(b"some")
    seal, real = durable_files.checksum_file(file, force=False), durable_files.checksum_file

    def sealed(path: Path, force: bool) -> FileChecksum:
        path.unlink()
        return real(path, force)

    monkeypatch.setattr(durable_files, "checksum_file", sealed)
    with pytest.raises(DamagedRunError, match="file is missing"):
        durable_files.check_file(file, seal)


def written(folder: Path) -> InputSnapshot:
    """Return the input of a run before it is split."""
    stage_streams(folder, STREAMS)
    copied = InputSnapshot(folder)
    copied.write_checksums(force=False)
    return copied


def test_a_driver_that_wakes_while_it_begins_takes_no_input_of_its_successor(
    tmp_path: Path,
) -> None:
    """Both write the same input; the first one removes what an earlier start left."""
    replay = ArrowReplay(STREAMS, {}, "batch")
    (tmp_path / "a").mkdir()
    for left in ("a/000003.parquet", "a/000009.parquet", ".a.arrow.0123abcd"):
        (tmp_path / left).touch()
    calls, written_by_successor = count(1), list[bytes]()

    def check() -> None:
        """Let the successor write before the third check, that of the removal."""
        if next(calls) == 3:
            assert replay.write_input(tmp_path).batches == 4
            written_by_successor.append((tmp_path / "a.arrow").read_bytes())

    assert replay.write_input(tmp_path, check).batches == 4
    assert (tmp_path / "a.arrow").read_bytes() == written_by_successor[0]
    there = {str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*") if f.is_file()}
    assert there == {"a.arrow", "b.arrow", "a/000003.parquet"}
    copied = InputSnapshot(tmp_path)
    copied.write_checksums(force=False, streams="ab")
    copied.check_files(deep=True)


def test_a_stream_that_another_driver_removes_is_missed_before_the_run_is_ready(
    tmp_path: Path,
) -> None:
    ArrowReplay(STREAMS, {}, "batch").write_input(tmp_path)
    (tmp_path / "a.arrow").unlink()
    with pytest.raises(DamagedRunError, match=r"a\.arrow is missing; start again"):
        InputSnapshot(tmp_path).write_checksums(force=False, streams="ab")
