"""A closed run has answered all that waited, and takes no more tuples."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import braid
import pyarrow as pa
import pytest
from braid.answer_check import check_answers
from braid.batch_sink import BatchSink
from braid.core.answer_events import TuplesAnswered
from braid.core.run_events import BatchCommitted, RunEnded, RunStarted
from braid.errors import FencedError
from braid.health import read_health
from braid.papers.baselines.hash_partition import HashPartition
from braid.storage.run_store import RunStore
from braid.stream_join import JoinRun, StreamJoin
from kind_runs import KindCase, draw_case
from models.kinds import run_join
from oracle import wait_until


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[JoinRun]:
    """The runs of the test, known before their first batch."""
    runs: list[JoinRun] = []
    begin = JoinRun._start_batches

    def begin_known(run: JoinRun, driver: Any) -> None:
        runs.append(run)
        begin(run, driver)

    monkeypatch.setattr(JoinRun, "_start_batches", begin_known)
    return runs


def stop_after(
    started: list[JoinRun], case: KindCase, folder: Path, last: int, delivered: list[Any]
) -> JoinRun:
    """Run the batches of a case up to ``last``, and stop."""

    def give(results: pa.Table, batch: int) -> None:
        delivered.append((batch, results.num_rows))
        if batch == last:
            started[-1].stop()

    join = case.make_join()
    run = join.start(folder, batches="batch", durability="process", foreachBatch=give)
    run._ended.wait()
    return run


def count_ids(run: JoinRun, how: str) -> Counter[Any]:
    """Return the results as ids of their members."""
    names = "a" if how == "anti" else "ab"
    rows = run.results().to_pylist()
    return Counter(tuple(None if row[n] is None else row[n]["id"] for n in names) for row in rows)


@pytest.mark.parametrize("seed", range(6))
def test_a_closed_run_has_answered_every_tuple_that_came(
    tmp_path: Path, started: list[JoinRun], seed: int
) -> None:
    case, delivered = draw_case(seed), []  # type: tuple[KindCase, list[Any]]
    last = max(t.batch for t in case.tuples) // 2
    run = stop_after(started, case, tmp_path / "run", last, delivered)
    assert run.status["state"] == "stopped"
    run.close()
    meets = case.condition.meets
    came = [t._replace(meets=meets[t.stream](t.values)) for t in case.tuples if t.batch <= last]
    model = run_join(came, case.make_rules())
    if not any(each.reason == "late" for each in model.irregular):
        assert count_ids(run, case.how) == Counter(ids for _, ids in model.results)
    assert run._engine.state.answers.waiting == (0, 0)
    assert [batch for batch, _ in delivered] == [*range(run._engine.state.batch + 1)]
    assert sum(rows for _, rows in delivered) == run.results().num_rows


CASE = draw_case(3, ("left",))


def test_a_closed_run_is_said_to_be_complete_and_refuses_to_go_on(
    tmp_path: Path, started: list[JoinRun]
) -> None:
    delivered: list[Any] = []
    run = stop_after(started, CASE, tmp_path / "run", 1, delivered)
    before = run.results().num_rows
    answers = [e for e in run.events() if isinstance(e, TuplesAnswered)]
    waiting = answers[-1].waiting[0]
    assert run.status["waiting"] == {"a": waiting} == run.health().waiting_tuples and waiting > 0
    run.close()
    run.close()
    assert run.status["state"] == "completed" == read_health(tmp_path / "run").state
    assert run.status["waiting"] == {"a": 0} and run.health().waiting_tuples == {}
    assert run.status["batch"] < run.status["batches"] and run.status["seconds_left"] == 0
    answers = [e for e in run.events() if isinstance(e, TuplesAnswered)]
    assert answers[-1].answered[0] >= answers[-1].unmatched[0] > 0
    assert run.exception() is None and run.results().num_rows > before
    ends = [e.outcome for e in run.events() if isinstance(e, RunEnded)]
    assert ends[-1] == "completed" and isinstance(run.events()[0], RunStarted)
    committed = [e.batch for e in run.events() if isinstance(e, BatchCommitted)]
    assert committed == [*range(len(committed))]
    state = RunStore(tmp_path / "run").last_state()
    assert state is not None and state.is_closed and state.ended == (True, True)
    assert not state.blocks
    with pytest.raises(ValueError, match="was closed after batch 3, so it takes no more tuples"):
        CASE.make_join().start(tmp_path / "run", batches="batch")


def test_a_run_is_not_closed_while_batches_run_or_after_a_failure(
    tmp_path: Path, started: list[JoinRun]
) -> None:
    def fail_later(results: Any, batch: int) -> None:
        taken.append(batch)
        if batch == 1:
            with pytest.raises(RuntimeError, match="batches of the run are running; stop it befo"):
                started[0].close()
            raise OSError("no room")

    taken: list[int] = []
    run = CASE.make_join().start(tmp_path / "run", batches="batch", foreachBatch=fail_later)
    run._ended.wait()
    assert taken == [0, 1] and isinstance(run.exception(), RuntimeError)
    with pytest.raises(RuntimeError, match="the run has failed, so its input is incomplete; res"):
        run.close()


def test_a_run_that_another_process_continued_is_not_closed(
    tmp_path: Path, started: list[JoinRun]
) -> None:
    run = stop_after(started, CASE, tmp_path / "run", 0, [])
    assert CASE.make_join().start(tmp_path / "run", batches="batch").awaitTermination()
    with pytest.raises(FencedError, match="has taken over the run in "):
        run.close()
    assert CASE.make_join().start(tmp_path / "run", batches="batch").awaitTermination()


def test_a_closing_batch_that_fails_closes_nothing(
    tmp_path: Path, started: list[JoinRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stop_after(started, CASE, tmp_path / "run", 1, [])
    commit = RunStore.commit_batch

    def fail_to_commit(*given: Any) -> None:
        monkeypatch.setattr(RunStore, "commit_batch", commit)
        raise OSError("the disk is full")

    monkeypatch.setattr(RunStore, "commit_batch", fail_to_commit)
    with pytest.raises(OSError, match="the disk is full"):
        run.close()
    assert not run._engine.state.is_closed and not RunStore(tmp_path / "run").lock.is_held()
    run.close()
    assert run._engine.state.is_closed and run.status["state"] == "completed"


def silence_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the source be silent until a batch without tuples has answered what is due."""
    monkeypatch.setattr(JoinRun, "silence_seconds", 0.03)
    monkeypatch.setattr(JoinRun, "_waits_for_silence", lambda run: True)
    run_next = JoinRun._run_next_batch

    def run_after_silence(run: JoinRun, source: Any, number: int) -> None:
        wait_until(
            lambda: run._ended.is_set() or not run._engine.has_due_answers(),
            "the batch without tuples",
            60,
        )
        run_next(run, source, number)

    monkeypatch.setattr(JoinRun, "_run_next_batch", run_after_silence)


def test_answers_do_not_wait_for_a_silent_source(
    tmp_path: Path, started: list[JoinRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batch 1 makes a tuple final, and micro-batch 2 does not come for a while."""
    silence_source(monkeypatch)
    second = 1_000_000
    times = {"a": [0, second, 92 * second], "b": [n * second for n in (1, 90, 95, 93)]}
    kinds = {alias: pa.array(each, pa.timestamp("us")) for alias, each in times.items()}
    a = pa.table({"k": [1, 2, 7], "ts": kinds["a"], "batch": [0, 1, 3]})
    b = pa.table({"k": [2, 3, 9, 7], "ts": kinds["b"], "batch": [0, 1, 2, 3]})
    delivered: list[tuple[int, int]] = []
    join = StreamJoin(
        {"a": a, "b": b}, "a.k = b.k", HashPartition(2), "20 seconds", "ts", how="left", check=True
    )
    run = join.start(
        tmp_path / "run",
        batches="batch",
        durability="process",
        foreachBatch=lambda rows, batch: delivered.append((batch, rows.num_rows)),
    )
    wait_until(lambda: len(delivered) >= 3, "the batch without tuples", 20)
    assert run.awaitTermination()
    received = [e.received_tuples for e in run.events() if isinstance(e, BatchCommitted)]
    assert received[:4] == [(1, 1), (1, 1), (0, 0), (0, 1)]
    assert delivered[:3] == [(0, 0), (1, 1), (2, 1)]
    rows = [(r["a"]["k"], r["b"] and r["b"]["k"]) for r in run.results().to_pylist()]
    assert sorted(rows, key=repr) == [(1, None), (2, 2), (7, 7)]
    made = braid.bundle(tmp_path / "run", tmp_path / "run.zip", data=True)
    report = check_answers(braid.unbundle(made.file, tmp_path / "moved"))
    assert report.is_right and report.late == 2, "7 of b came after 9, with or without 7 of a"
    (pair,) = run.why({"a": "k = 2", "b": "k = 9"}).pairs
    assert [each.batch for each in pair.tuples] == [1, 3]


def test_a_run_may_be_stopped_and_may_fail_while_its_source_is_silent(
    tmp_path: Path, started: list[JoinRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    silence_source(monkeypatch)
    real = CASE.make_join()

    def stop_in_silence(rows: Any, batch: int) -> None:
        if started[-1]._engine.state.previous_received == (0, 0):
            started[-1].stop()

    run = real.start(tmp_path / "1", batches="batch", foreachBatch=stop_in_silence)
    assert run._ended.wait(30) and run.status["state"] == "stopped"

    def fail_in_silence(rows: Any, batch: int) -> None:
        if started[-1]._engine.state.previous_received == (0, 0):
            raise OSError("no room")

    run = real.start(tmp_path / "2", batches="batch", foreachBatch=fail_in_silence)
    assert run._ended.wait(30) and run.status["state"] == "failed"
    assert "no room" in str(run.exception())


def test_closing_again_delivers_what_foreach_batch_failed_on(
    started: list[JoinRun], tmp_path: Path
) -> None:
    """The first call fails during stop(), the second one in the closing batch."""
    number = list(range(8))
    rows = pa.table({"id": number, "k": number, "batch": [n // 2 for n in number]})
    delivered: list[tuple[int, int]] = []
    failures = [1, 4]

    def give(results: pa.Table, batch: int) -> None:
        if batch == 1:
            started[-1].stop()
        if batch in failures:
            failures.remove(batch)
            raise OSError("the sink is away")
        delivered.append((batch, results.num_rows))

    other = rows.set_column(1, "k", pa.array([n + 100 for n in number]))
    join = StreamJoin({"a": rows, "b": other}, "a.k = b.k", how="left")
    run = join.start(tmp_path, batches="batch", durability="process", foreachBatch=give)
    run._ended.wait()
    last = run._engine.state.batch + 1
    failures[:] = [last]
    with pytest.raises(RuntimeError, match="the sink is away"):
        run.close()
    run.close()
    assert sum(rows for _, rows in delivered) == run.results().num_rows > 0
    assert [batch for batch, _ in delivered] == list(range(last + 1))
    assert run.exception() is None and run.status["state"] == "completed"
    assert [e.outcome for e in run.events() if isinstance(e, RunEnded)][-1] == "completed"


def test_a_process_that_dies_after_the_closing_batch_delivers_it_once_when_resumed(
    tmp_path: Path, started: list[JoinRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stop_after(started, CASE, tmp_path / "run", 1, [])

    def die(*given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(BatchSink, "deliver_until", die)
        with pytest.raises(KeyboardInterrupt):
            run.close()
    delivered: list[tuple[int, int]] = []

    def give(results: pa.Table, batch: int) -> None:
        delivered.append((batch, results.num_rows))

    def resume(**given: Any) -> JoinRun:
        return StreamJoin.resume(tmp_path / "run", CASE.list_tables(), **given)

    with pytest.raises(ValueError, match="was closed after batch 3, so it takes no more tuples"):
        resume()
    again = resume(foreachBatch=give)
    assert again.awaitTermination() and again.status["state"] == "completed"
    assert delivered == [(2, again._read_batch_results(2).num_rows)] and delivered[0][1]
    with pytest.raises(ValueError, match="was closed after batch 3, so it takes no more tuples"):
        resume(foreachBatch=give)
