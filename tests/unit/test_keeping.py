"""Results that are kept for a time, or up to a size."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.core.run_events import EventsTrimmed
from braid.storage import log_checkpointer
from braid.storage.integrity import check_run
from braid.storage.log_entries import CompactedResults
from braid.storage.result_retention import RetentionPolicy, count_expired_groups
from braid.storage.run_store import RunStore
from braid.stream_join import JoinRun, StreamJoin
from duck import connect_duckdb
from merged_runs import (
    ON,
    STREAMS,
    WANTED,
    Killed,
    add_batch,
    kill_before_commit,
    killed_at,
    list_batch_files,
    list_merged,
    read_ids,
    read_sink_log,
)
from oracle import describe_difference, result_ids
from scatter import Scatter

pytestmark = pytest.mark.usefixtures("often")


def test_what_another_process_has_dropped_is_not_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A reader that does not know of it does not advise a repair."""
    store, readers = RunStore(tmp_path / "run"), list[RunStore]()
    store.create_run({})
    store.log_opening_events()
    for batch in range(9):
        add_batch(store, batch)
        if batch == 4:
            readers += [RunStore(store.path), RunStore(store.path)]
            for reader in readers:
                reader.log.read_new_entries()
            assert len(readers[0].results.result_files(0, 1, merged=False)) == 1
            store.checkpointer.keep = RetentionPolicy(max_bytes=1)
    assert store.log.first_retained_batch == 3 and [
        reader.log.first_retained_batch for reader in readers
    ] == [0, 0]
    assert readers[1].results.compacted_files() == [[], [], []] and not caplog.messages
    for reader in readers:
        with pytest.raises(ValueError, match="of batch 0 are no longer kept; those from batch 3"):
            reader.results.result_files(0, 1, merged=False)


def test_where_results_were_dropped_the_roll_up_before_stands_in(tmp_path: Path) -> None:
    how: dict[str, Any] = {"keep": "1 B", "durability": "process"}
    run = StreamJoin(STREAMS, ON, Scatter()).start(tmp_path, batches="batch", **how)
    assert run.awaitTermination() and run.first_retained_batch == 6
    wanted = result_ids(run.results())
    rolled = sorted(tmp_path.glob("commits/checkpoint-*"))
    rolled[-1].write_bytes(b"")
    again = StreamJoin.resume(tmp_path, STREAMS, **how)
    assert again.awaitTermination() and again.first_retained_batch == 6
    assert describe_difference(result_ids(again.results()), wanted) == ""
    kept_from(tmp_path, 6)
    assert not rolled[-1].exists()


def test_a_roll_up_counts_where_the_entries_after_it_are_there(tmp_path: Path) -> None:
    """The last one is gone, and the removal of entries was interrupted before the first one."""
    store = RunStore(tmp_path)
    store.create_run({})
    store.log_opening_events()
    first = b""
    for batch in range(12):
        add_batch(store, batch)
        if len(files := sorted(tmp_path.glob("commits/checkpoint-*"))) == 1:
            name, first = files[0], files[0].read_bytes()
    assert len(files) == 2 and name not in files
    name.write_bytes(first)
    files[-1].unlink()
    assert RunStore(tmp_path).log.committed_batches() == [*range(12)]
    name.unlink()
    log = RunStore(tmp_path).log
    log.truncate(int(files[0].stem.partition("-")[2]))  # no entry and no other roll-up remains
    assert RunStore(tmp_path).log.committed_batches() == [*range(6)]


def kept_from(run: Path, first: int) -> None:
    """Check that readers see the batches from one on, and all of them."""
    names = sorted(f.name for f in run.glob("results/*.parquet"))
    assert names and min(int(name[:6]) for name in names) >= first
    wanted = read_ids(list_batch_files(run, first, 99))
    assert read_sink_log(run) == names
    assert describe_difference(read_ids(RunStore(run).results.result_files()), wanted) == ""
    with connect_duckdb() as db:
        found = db.execute(f"SELECT a.id, b.id FROM '{run}/results/*.parquet'").fetchall()
        assert describe_difference(Counter(found), wanted) == ""
    assert all(int(name[:6]) >= first for name in list_merged(run))
    assert check_run(run)[0] == []


def in_batches(found: pa.Table, run: JoinRun) -> int:
    counts = run.metrics(by="batch").set_index("batch")["results"]
    gone = sum(e.results for e in run.events() if isinstance(e, EventsTrimmed))
    assert int(counts.sum()) + gone == WANTED.total(), "counts stay, if only as a sum"
    return int(counts[counts.index >= run.first_retained_batch].sum()) - found.num_rows


def test_results_are_kept_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch a day; after twelve, the third roll-up is of the eleventh day.

    The first six batches are then more than two days old; they were merged on the fifth and the
    eighth day.
    """
    day, now = 86_400 * 10**6, [0]
    real = RunStore.commit_batch

    def commit(store: RunStore, batch: int, *given: Any) -> None:
        now[0] = (batch + 1) * day
        real(store, batch, *given)

    monkeypatch.setattr(RunStore, "commit_batch", commit)
    monkeypatch.setattr(log_checkpointer, "_current_microseconds", lambda: now[0])
    run = StreamJoin(STREAMS, ON, Scatter()).start(tmp_path, batches="batch", keep="2 days")
    assert run.awaitTermination()
    assert run.first_retained_batch == 6
    kept_from(tmp_path, 6)
    assert in_batches(run.results(), run) == 0
    assert run.results_since(6)[0].num_rows == run.results().num_rows
    with pytest.raises(ValueError, match="batches before 6 are no longer kept; ask from 6 on"):
        run.results_since(5)
    again = StreamJoin.resume(tmp_path, STREAMS)
    assert again.awaitTermination() and again.first_retained_batch == 6
    kept_from(tmp_path, 6)
    assert in_batches(again.results(), again) == 0


@pytest.mark.parametrize("keep", ["1 B", "300 days", "1 GB"])
def test_results_are_kept_up_to_a_size(tmp_path: Path, keep: str) -> None:
    """At least the last group, and results that are not merged."""
    run = StreamJoin(STREAMS, ON, Scatter()).start(
        tmp_path, batches="batch", keep=keep, durability="process"
    )
    assert run.awaitTermination()
    assert run.first_retained_batch == (6 if keep == "1 B" else 0)
    kept_from(tmp_path, run.first_retained_batch)


def test_what_a_sink_has_not_had_is_kept(tmp_path: Path) -> None:
    join, given = StreamJoin(STREAMS, ON, Scatter()), list[int]()
    run = join.start(tmp_path, batches="batch", foreachBatch=lambda t, n: given.append(n))
    run.awaitTermination()
    store = RunStore(tmp_path)
    store.checkpointer.keep = RetentionPolicy(max_bytes=1)
    store.log.read_new_entries()
    assert store.checkpointer._count_expired_groups(store.log.merged) == 2
    for last, groups in ((5, 2), (4, 1), (2, 1), (1, 0), (-1, 0)):
        store.sink_progress.mark_delivered(last)
        assert store.checkpointer._count_expired_groups(store.log.merged) == groups


@pytest.mark.parametrize(
    ("keep", "now", "later", "gone"),
    [
        (RetentionPolicy(max_age=10), 20, 0, 0),
        (RetentionPolicy(max_age=10), 21, 0, 1),
        (RetentionPolicy(max_age=10), 31, 0, 2),
        (RetentionPolicy(max_age=10), 999, 0, 3),
        (RetentionPolicy(max_bytes=4100), 0, 100, 0),
        (RetentionPolicy(max_bytes=4099), 0, 100, 1),
        (RetentionPolicy(max_bytes=3000), 0, 100, 2),
        (RetentionPolicy(max_bytes=1), 0, 100, 3),
    ],
)
def test_the_oldest_go_first(keep: RetentionPolicy, now: int, later: int, gone: int) -> None:
    groups = [CompactedResults(3 * n, 3 * n + 3, 3, (), 1000, 10 * (n + 1)) for n in range(4)]
    assert count_expired_groups(keep, groups, later, now, 99) == gone
    assert count_expired_groups(keep, groups, later, now, 5) == min(gone, 1)
    assert count_expired_groups(keep, [], later, now, 99) == 0


def test_killed_at_any_step_of_dropping_the_rest_is_whole(tmp_path: Path) -> None:
    how: dict[str, Any] = {"keep": "1 B", "durability": "process"}
    streams = kill_before_commit(tmp_path / "before", 7, **how)
    done, step = list[str](), 0
    while "commit" not in done[:step]:
        folder = Path(shutil.copytree(tmp_path / "before", tmp_path / str(step)))
        with killed_at(step) as done, pytest.raises(Killed):
            StreamJoin.resume(folder, streams, **how).awaitTermination()
        store = RunStore(folder)
        store.log.read_new_entries()
        assert store.log.first_retained_batch in (0, 3)
        last = store.log.committed_batches()[-1]
        found = read_ids(store.results.result_files(None, last))
        assert found == read_ids(list_batch_files(folder, store.log.first_retained_batch, last))
        named = {*read_sink_log(folder)}
        assert named <= {f.name for f in folder.glob("results/*")}, "none that is gone"
        again = StreamJoin.resume(folder, streams, durability="process")
        assert again.awaitTermination()
        kept_from(folder, again.first_retained_batch)
        assert again.first_retained_batch == store.log.first_retained_batch
        step += 1
    assert step > 8 and {"replace", "unlink"} < set(done)


@pytest.mark.parametrize("keep", ["", "soon", 3, "0 days", "-1 GB", True])
def test_what_is_no_time_and_no_size_is_refused(tmp_path: Path, keep: Any) -> None:
    with pytest.raises(ValueError, match="it must be a span as '30 days', or a size as '10 GB'"):
        StreamJoin(STREAMS, ON, Scatter()).start(tmp_path / "run", keep=keep)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match="is a bucket; leave it out there"):
        StreamJoin(STREAMS, ON, Scatter()).start("memory:///x", keep="1 day")
    with pytest.raises(ValueError, match="trace is 'soon'; it must be a span as '30 days', or a"):
        StreamJoin(STREAMS, ON, Scatter()).start(tmp_path / "run", trace="soon")


def test_a_sink_that_comes_too_late_is_refused(tmp_path: Path) -> None:
    """It would receive batches without their dropped results."""
    run = StreamJoin(STREAMS, ON, Scatter()).start(
        tmp_path, batches="batch", keep="1 B", durability="process"
    )
    run.awaitTermination()
    assert run.first_retained_batch == 6
    with pytest.raises(
        ValueError, match="begin with batch 0, and results are kept from batch 6 on"
    ):
        StreamJoin.resume(tmp_path, STREAMS, foreachBatch=lambda table, number: None)
    with pytest.raises(
        ValueError, match="results of batch 5 are no longer kept; those from batch 6"
    ):
        RunStore(tmp_path).results.result_files(5, 7)
