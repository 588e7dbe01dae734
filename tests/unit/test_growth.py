"""State of a long run: its log is rolled up, and only the latest events are in memory."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid.core.event_jsonl import encode_event
from braid.core.irregular_rows import LATE, IrregularRowsWritten
from braid.core.run_events import BatchCommitted, BatchPlanned, RunEnded, RunStarted
from braid.core.run_state import RunState
from braid.errors import DamagedRunError
from braid.papers.theta.run_events import MigrationEnded
from braid.run_inspector import inspect_run, load_run
from braid.storage import block_files, block_readers, durable_files, log_checkpointer
from braid.storage.event_log import EventLog
from braid.storage.integrity import check_run, repair_run
from braid.storage.irregular_files import make_irregular_rows
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from braid.util.clock_and_threads import WorkerThreads, replace_workers
from hypothesis import given
from hypothesis import strategies as st
from oracle import compute_expected, describe_difference, make_tables, result_ids
from scatter import Scatter

ON = "a.k = b.k"
STREAMS = make_tables("ab", 60, seed=97, batches=12)
WANTED = compute_expected(STREAMS, ON)


def entries(folder: Path) -> list[int]:
    return sorted(int(f.stem) for f in folder.glob("commits/[0-9]*.json"))


def test_a_log_is_rolled_up(tmp_path: Path, often: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """During the run and on resume; no result or event is lost."""
    real, most = RunStore.commit_batch, []

    def commit(store: RunStore, batch: int, *given: Any) -> None:
        if batch == 7 and len(most) == 7:
            raise OSError("no more")
        most.append(len([*tmp_path.glob("commits/*")]))
        real(store, batch, *given)

    monkeypatch.setattr(RunStore, "commit_batch", commit)
    run = StreamJoin(STREAMS, ON, Scatter(), check=True).start(tmp_path, batches="batch")
    with pytest.raises(OSError, match="no more"):
        run.awaitTermination()
    most.append(0)
    assert len([*tmp_path.glob("commits/checkpoint-*")]) == 1
    chosen_events = run.events()
    run = StreamJoin.resume(tmp_path, STREAMS)
    assert run.awaitTermination()
    assert describe_difference(result_ids(run.results()), WANTED) == ""
    assert max(most) <= 2 * 3 + 2 + 2 + 2 + 3, "entries of two rolls, states, roll-ups, beginnings"
    assert len([*tmp_path.glob("commits/checkpoint-*")]) == 2 and len(entries(tmp_path)) < 12
    assert run.events()[: len(chosen_events) - 1] == chosen_events[:-1]
    committed = [e.batch for e in run.events() if isinstance(e, BatchCommitted)]
    assert committed == [*range(12)] == RunStore(tmp_path).log.committed_batches()
    history = RunStore(tmp_path).archive.committed_events()
    assert [RunStarted, *map(type, history), RunEnded] == [*map(type, run.events())]
    assert load_run(tmp_path).events == tuple(run.events()) and "batches 1 to 12" in inspect_run(
        tmp_path
    )
    for first in (0, 2, 5, 11):
        found, end = run.results_since(first)
        assert end == 12
        files = RunStore(tmp_path).results.result_files(first)
        assert found.num_rows == sum(
            e.results for e in history if isinstance(e, BatchCommitted) and e.batch >= first
        )
        assert all(int(Path(f).name[:6]) >= first for f in files)
    assert run.metrics(by="batch")["batch"].tolist() == committed
    assert check_run(tmp_path)[0] == []


@pytest.mark.parametrize("damaged", ["rolled", "events"])
def test_damage_in_what_is_rolled_up_is_found(tmp_path: Path, often: None, damaged: str) -> None:
    """Also by the previous roll-up, with the entries after it."""
    join = StreamJoin(STREAMS, ON, Scatter(), check=True)
    assert join.start(tmp_path, batches="batch", durability="process").awaitTermination()
    rolled = sorted(tmp_path.glob("commits/checkpoint-*"))
    file = rolled[-1] if damaged == "rolled" else tmp_path / "events.jsonl"
    body = bytearray(file.read_bytes())
    body[len(body) // 4] ^= 1
    file.write_bytes(body)
    if damaged == "rolled":
        assert RunStore(tmp_path).log.committed_batches() == [*range(12)]
        assert (
            describe_difference(result_ids(StreamJoin.resume(tmp_path, STREAMS).results()), WANTED)
            == ""
        )
        rolled[0].write_bytes(b"")
        with pytest.raises(DamagedRunError, match=f"{rolled[0].name} is damaged"):
            RunStore(tmp_path).log.committed_batches()
    else:
        assert "events.jsonl is damaged: its first" in check_run(tmp_path)[0][0]
        file.unlink()
        with pytest.raises(DamagedRunError, match="events.jsonl is missing or damaged: it had"):
            StreamJoin.resume(tmp_path, STREAMS)


def test_a_run_that_is_rolled_up_goes_back(tmp_path: Path, often: None) -> None:
    join = StreamJoin(STREAMS, ON, Scatter(), check=True)
    for batch in (10, -1):
        assert join.start(tmp_path, batches="batch", durability="process").awaitTermination()
        repair_run(tmp_path, batch)
        assert RunStore(tmp_path).log.committed_batches() == [*range(batch + 1)]
    run = join.start(tmp_path, batches="batch", durability="process")
    assert run.awaitTermination()
    assert describe_difference(result_ids(run.results()), WANTED) == ""


def test_a_reader_that_lags_finds_what_has_been_rolled_up(tmp_path: Path, often: None) -> None:
    store, reader = RunStore(tmp_path), RunStore(tmp_path)
    store.create_run({})
    store.log_opening_events()
    for batch in range(30):
        snapshot = store.states.write_state(RunState(batch))
        store.commit_batch(batch, snapshot, {}, [MigrationEnded(batch, 0)])
        store.remove_old_files(RunState(batch), snapshot)
        store.log_events([MigrationEnded(batch, 0)])
        if batch in (1, 25, 27):
            assert reader.log.committed_batches() == [*range(batch + 1)]
            assert reader.archive.committed_events() == [
                MigrationEnded(b, 0) for b in range(batch + 1)
            ]
    assert RunStore(tmp_path).archive.committed_events() == [
        MigrationEnded(b, 0) for b in range(30)
    ]


def calls(work: Callable[[], object]) -> int:
    """Return the number of function calls of some work."""
    made = [0]

    def count(frame: Any, event: str, arg: Any) -> None:
        made[0] += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return made[0]


def peak(work: Callable[[], object]) -> int:
    """Return the most bytes that some work holds at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class InPlace(WorkerThreads, Executor):
    """Workers that run on the caller's thread, so that their calls are counted too."""

    def share_pool(self, name: str, most: int) -> Executor:
        return self

    def submit(self, work: Any, /, *given: Any, **named: Any) -> Future[Any]:
        done = Future[Any]()
        done.set_result(work(*given, **named))
        return done


def open_again(store: RunStore) -> None:
    store.read_settings()
    store.verify_files()
    store.take_over()
    store.remove_unnamed_files()
    store.log_opening_events()


def test_neither_a_batch_nor_a_resume_takes_more_when_a_run_is_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls of a batch, of one with a checkpoint and of a resume, and memory of a checkpoint.

    The second time there are three times as many batches, with the same number not rolled up yet.
    """
    monkeypatch.setattr(log_checkpointer, "_EVERY", 50)
    store, took = RunStore(tmp_path / "run", "process"), dict[int, int]()
    store.create_run({})
    store.log_opening_events()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "file")
    seal, body = (
        durable_files.checksum_file(tmp_path / "file", False),
        (tmp_path / "file").read_bytes(),
    )
    late = make_irregular_rows(pa.record_batch({"x": [1]}), 0, LATE)

    def commit(batch: int) -> None:
        name = f"{batch:06d}-0-0000cafe.parquet"
        (store.published.new / name).write_bytes(body)
        snapshot, happened = store.states.write_state(RunState(batch)), [BatchPlanned(batch)] * 4
        if batch % 10 == 0:
            files = (store.irregular.write_rows(batch, 0, [late]),)
            happened = [*happened, IrregularRowsWritten(batch, files)]
        store.commit_batch(batch, snapshot, {name: seal}, happened)
        store.remove_old_files(RunState(batch), snapshot)
        store.log_events(happened)

    measures = {251: peak, 301: calls, 305: calls, 851: peak, 901: calls, 905: calls}
    with replace_workers(InPlace()):
        for batch in range(906):
            if batch in measures:
                took[batch] = measures[batch](partial(commit, batch))
            else:
                commit(batch)
            if batch in (205, 305, 905):  # the first time, modules are imported
                store = RunStore(tmp_path / "run", "process")
                took[batch + 1] = calls(partial(open_again, store))
    for batch, limit in {251: 1.2, 301: 1.2, 305: 1.05, 306: 1.4}.items():
        assert took[batch + 600] < limit * took[batch], took


def test_few_block_files_are_open_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many a process reads; a closed one is opened again."""
    monkeypatch.setattr(block_readers, "_MOST_OPEN", 3)
    written = block_files.BlockFileWriter(tmp_path, "000000-0-0000cafe", False)
    for stream in range(9):
        written.append_block(stream, pa.record_batch({"x": [stream]}))
    seals, readers = written.close_files(), block_readers._Readers()
    for name, seal in [*seals.items(), *seals.items()]:
        segment = readers.open_verified(str(tmp_path / name), seal).read_segment(0)
        assert f"-{segment['x'][0]}.arrow" in name and len(readers._open) <= 3


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 30), st.data())
def test_events_are_read_from_memory_and_file(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], most: int, data: st.DataObject
) -> None:
    reported, all_of_them = EventLog(tmp_path_factory.mktemp("told") / "events.jsonl", most), []
    reported.begin_log([])
    for size in sizes:
        more = [
            (BatchPlanned if n % 3 else MigrationEnded)(*((n,) if n % 3 else (n, 0)))
            for n in range(len(all_of_them), len(all_of_them) + size)
        ]
        reported.append_events(more)
        all_of_them += more
        first = data.draw(st.integers(0, len(all_of_them) + 2))
        assert reported.read_since(first) == all_of_them[first:]
        later = [e for e in all_of_them[first:] if isinstance(e, MigrationEnded)]
        assert reported.events_of_type(MigrationEnded, first=first) == later
    assert reported.events_of_type(MigrationEnded) == [
        e for e in all_of_them if isinstance(e, MigrationEnded)
    ]
    assert len(reported.recent_events()) == min(most, len(all_of_them))
    if all_of_them:
        half = len(all_of_them) // 2
        size = sum(len(line) for line in reported.path.read_bytes().splitlines(True)[:half])
        archive = reported.describe_prefix(None, half, size)
        again = EventLog(reported.path, most)
        again.open_prefix(archive, and_cut=True)
        assert again.read_since(0) == all_of_them[:half]
        again.append_encoded([encode_event(e)[:-1] for e in all_of_them[half : half + 2]])
        assert again.recent_events() == all_of_them[: half + 2][-most:]
        again.open_prefix(archive, and_cut=True)
        again.append_events(all_of_them[half:])
        assert again.read_since(half // 2) == all_of_them[half // 2 :]
        assert again.describe_prefix(
            archive, again.event_count, again.size_bytes
        ) == reported.describe_prefix(None, reported.event_count, reported.size_bytes)
