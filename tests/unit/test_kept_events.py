"""With keep=, events are trimmed with the results of their batches.

A placeholder tells readers the first batch with events.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid.core.batch_history import LiveBlocks
from braid.core.batch_report import HostMetrics
from braid.core.event_jsonl import EventTail, encode_event
from braid.core.plan import Block
from braid.core.run_events import (
    BatchCommitted,
    BatchPlanned,
    EventsTrimmed,
    QueryAdded,
    QueryRemoved,
    RunEnded,
    RunStarted,
    count_event_numbers,
)
from braid.core.run_state import RunState
from braid.errors import DamagedRunError
from braid.health import read_health
from braid.papers.theta.grid import AdaptiveGrid
from braid.papers.theta.run_events import MappingChanged
from braid.run_inspector import inspect_run, load_run
from braid.shared.shared_run import SharedRun
from braid.simulation.simulator import simulate
from braid.storage import durable_files, log_checkpointer
from braid.storage.event_log import EventLog
from braid.storage.integrity import check_run
from braid.storage.result_retention import RetentionPolicy
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from braid_widgets.base.run_view import fold_events
from braid_widgets.cockpit.block_details import host_details
from braid_widgets.cockpit.page import recorded_page
from hypothesis import given
from hypothesis import strategies as st
from merged_runs import Killed, kill_before_commit, killed_at
from msgspec import structs
from oracle import make_tables
from scatter import Scatter
from unit.scripted import collect_decisions

ON = "a.k = b.k"
STREAMS = make_tables("ab", 60, seed=97, batches=12)
HOW: dict[str, Any] = {"keep": "1 B", "durability": "process"}
START = RunStarted(("a", "b"), ON, {}, "Scatter", {}, 2, 8, None)

pytestmark = pytest.mark.usefixtures("often")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same run of twelve batches twice: one keeps everything, one the minimum."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_checkpointer, "_EVERY", 3)
        for name, how in (("all", {"durability": "process"}), ("some", HOW)):
            run = StreamJoin(STREAMS, ON, Scatter()).start(folder / name, batches="batch", **how)
            assert run.awaitTermination()
    return folder / "all", folder / "some"


def read_folder_events(folder: Path) -> list[Any]:
    return EventTail(folder).read_new()


def committed(happened: list[Any]) -> list[int]:
    return [e.batch for e in happened if isinstance(e, BatchCommitted)]


def assert_summed(dropped: EventsTrimmed, gone: list[Any]) -> None:
    """Check the sums over hosts in the trimmed batches, except seconds, which differ between
    runs.
    """
    commits = [e for e in gone if isinstance(e, BatchCommitted)]
    assert sum(dropped.late_tuples) == sum(sum(e.late_tuples) for e in commits)
    whole = HostMetrics()
    for e in commits:
        whole.add_counts(e.total_host_metrics)
    counted = msgspec.structs.replace(whole, stored_tuples=0, stored_bytes=0, seconds=0.0)
    assert msgspec.structs.replace(dropped.total_host_metrics, seconds=0.0) == counted


def test_events_go_with_the_results_of_their_batches(pair: tuple[Path, Path]) -> None:
    whole, some = map(read_folder_events, pair)
    start, dropped, *rest = some
    assert isinstance(start, RunStarted) and isinstance(dropped, EventsTrimmed)
    assert isinstance(rest[-1], RunEnded) and committed(rest) == [*range(dropped.batch + 1, 12)]
    assert 0 < dropped.batch < RunStore(pair[1]).log.first_retained_batch or dropped.batch == 5
    assert count_event_numbers(some) == len(whole), "numbers stay"
    assert [type(e) for e in rest] == [type(e) for e in whole[-len(rest) :]]
    gone = whole[1 : 1 + dropped.trimmed_events]
    assert dropped.results == sum(e.results for e in gone if isinstance(e, BatchCommitted))
    assert Counter(dropped.event_counts) == Counter(type(e).__name__ for e in gone)
    assert_summed(dropped, gone)
    blocks = LiveBlocks()
    for event in gone:
        if isinstance(event, BatchCommitted):
            blocks.apply_commit(event)
    assert {b.id: structs.replace(b, size_bytes=0) for b in dropped.live_blocks} == {
        id: structs.replace(b, size_bytes=0) for id, b in blocks.items()
    }
    sizes = [(folder / "events.jsonl").stat().st_size for folder in pair]
    assert sizes[1] < 0.75 * sizes[0]
    assert check_run(pair[1])[0] == []


def test_a_run_that_goes_on_tells_what_is_kept(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Events keep their numbers, for a reader that has followed the run and for others."""
    whole = read_folder_events(pair[0])
    run = StreamJoin.resume(Path(shutil.copytree(pair[1], tmp_path / "run")), STREAMS)
    assert run.awaitTermination()
    start, dropped, *rest = run.events()
    assert count_event_numbers(run.events()) == len(whole)
    first = len(whole) - len(rest)
    for since in range(len(whole) + 1):
        asked = run.events(since)
        assert count_event_numbers(asked) == len(whole) - since
        if since >= first:
            assert asked == rest[since - first :]
        elif since:
            assert asked[0] == replace(dropped, trimmed_events=first - since) and asked[1:] == rest
    assert run.metrics(by="batch")["batch"].tolist() == committed(rest)
    found, wanted = fold_events(run.events()).totals, fold_events(whole).totals
    assert replace(found, ratio_max=0) == replace(wanted, ratio_max=0)


def test_a_log_that_was_not_opened_is_not_read(tmp_path: Path) -> None:
    """It would have no events, whatever the file holds."""
    EventLog(tmp_path / "events.jsonl").begin_log([START])
    closed = EventLog(tmp_path / "events.jsonl")
    uses: list[Callable[[], Any]] = [
        closed.recent_events,
        lambda: closed.read_since(0),
        lambda: closed.events_of_type(BatchCommitted),
        lambda: closed.event_count,
        lambda: closed.append_events([START]),
        lambda: closed.try_trim(1, False),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match=r"events\.jsonl is used before it was opened"):
            use()


def test_totals_are_of_all_batches_whatever_is_kept(tmp_path: Path) -> None:
    """Also of a grid that has migrated and continues to; only the ratio covers retained batches."""
    many = [90 * 6 ** (n // 8) for n in range(40)]
    sizes = [(m, 10) if n // 8 % 2 else (10, m) for n, m in enumerate(many)]
    everything = list(simulate(AdaptiveGrid(4, warmup_tuples=20), sizes, streams=("r", "s")))
    whole = fold_events(everything).totals
    assert whole.migrations > 2 and whole.moved > 0
    some = EventLog(tmp_path / "events.jsonl")
    some.begin_log(everything[:1])
    some.append_events(everything[1:])
    for batch in (20, 33):
        assert some.try_trim(batch, False)
        found = fold_events(some.read_since(0)).totals
        assert replace(found, ratio_max=whole.ratio_max) == whole
        (gone,) = some.events_of_type(EventsTrimmed)
        assert gone.event_counts["MigrationStarted"] > 0


def _without_seconds(text: str) -> str:
    return re.sub(r" *\d+\.\d\d$", "", text, flags=re.MULTILINE)


def test_readers_say_from_which_batch_on_there_are_events(pair: tuple[Path, Path]) -> None:
    since = read_folder_events(pair[1])[1].batch + 1
    says = f"events are kept from batch {since + 1} on"
    assert says in inspect_run(pair[1]) and says not in inspect_run(pair[0])
    assert inspect_run(pair[1]).splitlines()[2] == inspect_run(pair[0]).splitlines()[2], (
        "all results"
    )
    first, second = (inspect_run(each, batch=since) for each in pair)
    assert _without_seconds(first) == _without_seconds(second)
    with pytest.raises(ValueError, match=f"of batch 3 no events are kept: {says}"):
        inspect_run(pair[1], batch=2)
    old = min(b.id for b in load_run(pair[1]).dropped.live_blocks)  # type: ignore[union-attr]
    assert f"  {says}; it was there then" in inspect_run(pair[1], block=old)
    shown = recorded_page(read_folder_events(pair[1]))
    assert f"events are kept from batch {since + 1} on" in shown["note"]
    last, same = shown["frames"][-1], recorded_page(read_folder_events(pair[0]))["frames"][-1]
    assert (last["title"], last["state_map"]) == (same["title"], same["state_map"])
    assert len(shown["frames"]) == 12 - since
    assert host_details(read_folder_events(pair[1]), 0, 12) == host_details(
        read_folder_events(pair[0]), 0, 12
    )
    with pytest.raises(ValueError, match=f"events are kept from batch {since + 1} on, not of ba"):
        host_details(read_folder_events(pair[1]), 0, 1)
    assert (
        read_health(pair[1]).committed_batches == 12 and read_health(pair[1]).state == "completed"
    )


def test_what_was_decided_before_is_not_told_again() -> None:
    changed = MappingChanged(3, 0, (1, 2), (2, 1), (), (1, 2))
    gone = EventsTrimmed(8, 40, 1, 0, 0, 0, 0, (), (), HostMetrics(), {})
    kept = [BatchPlanned(9), commit(9)]
    assert len(collect_decisions([START, changed, *kept])) == 1
    assert collect_decisions([START, gone, changed, *kept]) == []


def test_killed_at_any_step_events_are_whole(tmp_path: Path) -> None:
    """Readers see the old or the new file, and the run continues from either."""
    streams = kill_before_commit(tmp_path / "before", 10, **HOW)
    done, step, seen = list[str](), 0, set[int]()
    while "commit" not in done[:step]:
        folder = Path(shutil.copytree(tmp_path / "before", tmp_path / str(step)))
        with killed_at(step) as done, pytest.raises(Killed):
            StreamJoin.resume(folder, streams, **HOW).awaitTermination()
        if "commit" in done[:step]:
            break  # old files were removed later this time: batch 11 is still there
        batches = committed(read_folder_events(folder))
        assert batches == [*range(batches[0], batches[-1] + 1)] and batches[-1] in (9, 10)
        seen.add(batches[0])
        assert committed(RunStore(folder).archive.committed_events()) == batches
        again = StreamJoin.resume(folder, streams, durability="process")
        assert again.awaitTermination() and check_run(folder)[0] == []
        kept = committed(again.events())
        assert kept == committed(read_folder_events(folder)) == [*range(kept[0], 12)]
        assert batches[0] <= kept[0] <= again.first_retained_batch, "none that is needed goes"
        step += 1
    assert seen == {3, 6}


def test_the_roll_up_before_stands_in(pair: tuple[Path, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(pair[1], tmp_path / "run"))
    sorted(folder.glob("commits/checkpoint-*"))[-1].write_bytes(b"")
    assert (
        RunStore(folder).archive.committed_events() == RunStore(pair[1]).archive.committed_events()
    )
    run = StreamJoin.resume(folder, STREAMS, **HOW)
    assert run.awaitTermination() and run.events()[1:-1] == read_folder_events(pair[1])[1:-1]


@pytest.mark.parametrize("line", [0, 1])
def test_damage_of_what_stands_there_is_found(
    pair: tuple[Path, Path], tmp_path: Path, line: int
) -> None:
    folder = Path(shutil.copytree(pair[1], tmp_path / "run"))
    lines = (folder / "events.jsonl").read_bytes().splitlines(True)
    lines[line] = lines[line].replace(b'"batch":', b'"butch":').replace(b"Scatter", b"Skatter")
    (folder / "events.jsonl").write_bytes(b"".join(lines))
    assert "events.jsonl is damaged: " in check_run(folder)[0][0]
    with pytest.raises(DamagedRunError, match="events.jsonl is damaged: "):
        StreamJoin.resume(folder, STREAMS)


def test_a_tail_begins_anew_where_the_file_is_another(pair: tuple[Path, Path]) -> None:
    folder = pair[0].parent / "both"
    folder.mkdir()
    shutil.copy(pair[0] / "events.jsonl", folder)
    tail = EventTail(folder)
    assert committed(tail.read_new()) == [*range(12)]
    body = (pair[1] / "events.jsonl").read_bytes() + encode_event(BatchPlanned(0)) * 900
    (folder / "new").write_bytes(body)
    os.replace(folder / "new", folder / "events.jsonl")
    again = tail.read_new()
    assert isinstance(again[0], RunStarted) and isinstance(again[1], EventsTrimmed)


def commit(
    batch: int, blocks: tuple[Block, ...] = (), gone: tuple[int, ...] = ()
) -> BatchCommitted:
    return BatchCommitted(batch, (1,), (1,), (1,), batch, {"total": 1.0}, blocks, gone, ())


def test_the_file_stays_small_however_long_a_run_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_checkpointer, "_EVERY", 10)
    store, sizes = RunStore(tmp_path / "run", "process"), list[int]()
    store.create_run({})
    store.checkpointer.keep = RetentionPolicy(max_age=0)
    store.log_opening_events([START])
    for batch in range(300):
        snapshot, happened = (
            store.states.write_state(RunState(batch)),
            [*[BatchPlanned(batch)] * 4, commit(batch)],
        )
        store.commit_batch(batch, snapshot, {}, happened)
        store.remove_old_files(RunState(batch), snapshot)
        store.log_events(happened)
        sizes.append(store.events.path.stat().st_size)
    assert max(sizes[150:]) < 1.1 * max(sizes[50:150]) < 0.5 * store.events.size_bytes
    kept = committed(read_folder_events(store.path))
    assert kept == [*range(kept[0], 300)] and 0 < kept[0] <= store.log.first_retained_batch
    assert (
        count_event_numbers(store.events.read_since(0)) == store.events.event_count == 1 + 5 * 300
    )
    again = RunStore(store.path, "process")
    again.log_opening_events()
    assert (
        again.events.read_since(0) == store.events.read_since(0) and check_run(store.path)[0] == []
    )


def test_queries_that_are_gone_leave_no_lines(tmp_path: Path) -> None:
    """However many come and go, each active query has one line.

    So has each query that was served from the beginning and is not any more.
    """
    begin = [START, QueryAdded(-1, "first", 0, {}, {}, {}), QueryAdded(-1, "stays", 1, {}, {}, {})]
    some, sizes = EventLog(tmp_path / "events.jsonl"), list[int]()
    some.begin_log(begin)
    for n in range(200):
        name = f"q{n % 3}"  # a name may be reused
        happened: list[Any] = [QueryAdded(n, name, 2, {}, {}, {}), QueryRemoved(n, name)]
        happened += [QueryRemoved(n, "first")] if n == 2 else []
        happened += [QueryAdded(n, "late", 3, {}, {}, {})] if n == 5 else []
        some.append_events([*happened, BatchPlanned(n), commit(n)])
        if n % 10 == 9 and some.try_trim(n - 1, False):
            sizes.append(some.path.stat().st_size)
    assert len(sizes) > 5 and max(sizes) < 1.1 * min(sizes[1:])
    (gone,) = some.events_of_type(EventsTrimmed)
    run = shared(
        SimpleNamespace(events=some, log=SimpleNamespace(first_retained_batch=gone.batch + 1))
    )
    name = f"q{gone.batch % 3}"
    said = f"{name!r}; there are: first, stays, late.*; of those removed before batch "
    with pytest.raises(ValueError, match=said + f"{gone.batch + 1} nothing is retained"):
        run.results(name)
    assert [e for e in some.read_since(0)[4:] if e.batch <= gone.batch] == [
        QueryRemoved(2, "first"),
        QueryAdded(5, "late", 3, {}, {}, {}),
    ]


def shared(store: Any) -> SharedRun:
    """A shared run with only its results requested."""
    run = SharedRun.__new__(SharedRun)
    run.store = store
    return run


def test_a_shared_run_gives_what_is_kept_of_a_query(tmp_path: Path) -> None:
    """Whenever it was added, and if it was removed and added again."""
    store = RunStore(tmp_path / "run")
    store.create_run({})
    store.checkpointer.keep = RetentionPolicy(max_bytes=1)
    store.log_opening_events(
        [START, *(QueryAdded(-1, q, n, {}, {}, {}) for n, q in enumerate("abc"))]
    )
    changes: dict[int, list[Any]] = {
        2: [QueryRemoved(2, "b"), QueryRemoved(2, "c")],
        8: [QueryAdded(8, "c", 2, {}, {}, {})],
    }
    for batch in range(12):
        name = f"{batch:06d}-0-0000cafe.parquet"
        pq.write_table(pa.table({"batch": [batch]}), store.published.new / name)
        seals = {name: durable_files.checksum_file(store.published.new / name, False)}
        happened = [*changes.get(batch, []), commit(batch)]
        store.commit_batch(batch, store.states.write_state(RunState(batch)), seals, happened)
        store.log_events(happened)
    run = shared(store)

    def list_batches(name: str, **more: Any) -> list[tuple[int, list[int]]]:
        found = run._list_query_files(name, **more)
        return [(bit, pq.read_table(files)["batch"].to_pylist()) for bit, files in found]

    kept = run.first_retained_batch
    assert kept == 6
    for merged in (True, False):
        assert list_batches("a", merged=merged) == [(0, [*range(kept, 12)])]
        assert list_batches("c", merged=merged) == [(2, [9, 10, 11])]
    assert list_batches("a", since=7, end=9) == [(0, [7, 8])]
    with pytest.raises(
        ValueError, match=r"'b' was served only before batch 6; none of its results"
    ):
        run.results("b")
    with pytest.raises(ValueError, match="no query is named 'd'; there are: a, b, c"):
        run.results("d")


def batches(count: int, each: int) -> Iterator[list[Any]]:
    """Return events by batch: each batch adds a block, and every third drops one.

    A query is added now and then.
    """
    for n in range(count):
        more = [QueryAdded(n, f"q{n}", n, {}, {}, {})] if n % 4 == 1 else []
        block = Block(n, 0, (0, 8), n, (0,), 1)
        yield [
            *more,
            *[BatchPlanned(n)] * each,
            commit(n, (block,), (n - 2,) if n % 3 == 2 else ()),
        ]


@given(st.integers(0, 3), st.integers(1, 60), st.integers(1, 40), st.integers(1, 700), st.data())
def test_numbers_stay_whatever_is_dropped(
    tmp_path_factory: pytest.TempPathFactory,
    opening: int,
    count: int,
    each: int,
    most: int,
    data: st.DataObject,
) -> None:
    first = [START, *(QueryAdded(-1, f"p{n}", n, {}, {}, {}) for n in range(opening))]
    some, everything = EventLog(tmp_path_factory.mktemp("told") / "events.jsonl", most), [*first]
    some.begin_log(first)
    ends, kept, last = list[tuple[int, int]](), 0, None
    for n, happened in enumerate(batches(count, each)):
        some.append_events(happened)
        everything += happened
        ends.append((some.event_count, some.size_bytes))
        if data.draw(st.integers(0, 9)) == 0:
            before = some.describe_prefix(last, *ends[n])
            asked = data.draw(st.integers(0, n))
            kept = asked if some.try_trim(asked, False) else kept
            again = EventLog(some.path, most, len(first))
            again.open_prefix(before)
            again.check_prefix(before)
            kept_there = some.read_since(0)
            assert again.read_since(0) == kept_there
            assert again.recent_events() == kept_there[-len(again.recent_events()) :]
            assert again.read_since(0) == kept_there, "numbers do not depend on what has been asked"
            last = before
    assert count_event_numbers(some.read_since(0)) == len(everything) == some.event_count
    assert some.events_of_type(QueryAdded) == [e for e in everything if isinstance(e, QueryAdded)]
    assert [e.batch for e in some.events_of_type(BatchCommitted)] == [*range(kept, count)]
    after = data.draw(st.integers(0, count - 1))
    later = some.events_of_type(BatchCommitted, first=ends[after][0])
    assert [e.batch for e in later] == [*range(max(kept, after + 1), count)]
    at = 0
    if kept:
        (gone,) = some.events_of_type(EventsTrimmed)
        past = [e for e in everything if isinstance(e, BatchCommitted)][:kept]
        assert gone.batch == kept - 1 and gone.results == sum(range(kept))
        live = LiveBlocks()
        for event in past:
            live.apply_commit(event)
        assert gone.live_blocks == tuple(live.values())
        at = everything.index(past[-1]) + 1
        assert_summed(gone, everything[:at])
        were = {repr(e): e for e in everything[len(first) : at]}  # to find events that may be equal
        lasting = [e for e in some.read_since(0)[len(first) + 1 :] if were.get(repr(e)) == e]
        stood_for = Counter(type(e).__name__ for e in everything[len(first) : at])
        assert Counter(gone.event_counts) == stood_for - Counter(type(e).__name__ for e in lasting)
    for since in (0, 1, at, *data.draw(st.lists(st.integers(0, some.event_count), max_size=5))):
        asked_for = some.read_since(since)
        assert count_event_numbers(asked_for) == some.event_count - since
        assert asked_for[-(some.event_count - max(at, since)) :] == everything[max(at, since) :]
