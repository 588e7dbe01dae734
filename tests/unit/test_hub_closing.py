"""A closed hub has answered all that waited. Answers do not wait for a source that is silent."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.batch_sink import BatchSink
from braid.core.run_events import RunEnded
from braid.errors import FencedError
from braid.health import read_health
from braid.hub.hub import HubRun, QueryHub
from braid.hub.hub_log import HubLog
from braid.papers.reuse.hub_events import HubBatchCommitted
from hub_cases import BATCHES, GROUPED, count_rows, make_hub_tables, query_rows
from oracle import wait_until

pytestmark = pytest.mark.unit

SIDES = "flights [RANGE 90 SECONDS] f", "checkins [RANGE 60 SECONDS] c"
ON = "ON f.num = c.flight AND f.terminal = c.status AND c.seats > 1"
ASKED = {
    "left": f"SELECT f.id, c.id AS c FROM {SIDES[0]} LEFT JOIN {SIDES[1]} {ON}",
    "semi": f"SELECT f.id FROM {SIDES[0]} SEMI JOIN {SIDES[1]} {ON}",
    "full": f"SELECT f.id, c.id AS c FROM {SIDES[0]} FULL JOIN {SIDES[1]} {ON} AND f.carrier <> c.status",
    "ticks": GROUPED,
}
DATA = make_hub_tables(11)
LAST = 2


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[HubRun]:
    """The hubs of the test, known before their first batch."""
    runs: list[HubRun] = []
    begin = HubRun._start_batches

    def begin_known(run: HubRun, driver: Any) -> None:
        runs.append(run)
        begin(run, driver)

    monkeypatch.setattr(HubRun, "_start_batches", begin_known)
    return runs


class Deliveries:
    """Rows that ``foreachBatch`` received, by query; it stops the hub after batch ``LAST``."""

    def __init__(self, started: list[HubRun]) -> None:
        self.started, self.batches = started, list[int]()
        self.rows: dict[int, Counter[Any]] = {}

    def take(self, answers: dict[int, pa.Table], batch: int) -> None:
        self.batches.append(batch)
        for id, rows in answers.items():
            self.rows[id] = self.rows.get(id, Counter()) + count_rows(rows)
        if batch == LAST and len(self.started) == 1:
            self.started[0].stop()


def stop_early(folder: Path, delivered: Deliveries) -> HubRun:
    """Run the batches up to ``LAST``, and stop."""
    run = QueryHub(DATA, "ts").start(folder, "batch", ASKED, foreachBatch=delivered.take)
    run._ended.wait()
    assert run.status["state"] == "stopped" and run.state.epoch == LAST
    waiting = run.status["waiting"]
    assert set(waiting) == {"left", "semi", "full"} and set(waiting["full"]) == {
        "flights",
        "checkins",
    }
    assert waiting == run.health().waiting_by_query and waiting["left"]["flights"]
    return run


def find_answers(folder: Path, last: int) -> dict[str, Counter[Any]]:
    """Return the answers of a hub whose streams end with a batch."""
    data = {s: rows.filter(pa.compute.less_equal(rows["batch"], last)) for s, rows in DATA.items()}
    run = QueryHub(data, "ts").start(folder, "batch", ASKED)
    assert run.awaitTermination()
    return {name: query_rows(run, name) for name in ASKED}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> HubRun:
    """A hub whose streams have ended."""
    run = QueryHub(DATA, "ts").start(tmp_path_factory.mktemp("hub"), "batch", ASKED)
    assert run.awaitTermination()
    return run


def test_a_closed_hub_has_answered_every_query_as_if_its_streams_had_ended(
    tmp_path: Path, started: list[HubRun]
) -> None:
    run = stop_early(tmp_path / "hub", delivered := Deliveries(started))
    before = {name: query_rows(run, name) for name in ASKED}
    run.close()
    run.close()
    expected = find_answers(tmp_path / "ended", LAST)
    assert {name: query_rows(run, name) for name in ASKED} == expected
    assert [n for n in ASKED if expected[n] - before[n]] == ["left", "semi", "full", "ticks"]
    assert [delivered.rows[n] for n, _ in enumerate(ASKED)] == [*expected.values()]
    assert delivered.batches == [*range(LAST + 2)]
    assert run.status["state"] == "completed" == read_health(tmp_path / "hub").state
    assert not any(any(each.values()) for each in run.status["waiting"].values())
    assert run.status["batch"] == LAST + 1 and len({*run.watermark.values()}) == 1
    assert [e.outcome for e in run.events() if isinstance(e, RunEnded)][-1] == "completed"
    assert not any(b for i in run._registry.works.instances.values() for b in i.engine.state.blocks)
    check_closed(tmp_path / "hub", run)


def check_closed(folder: Path, run: HubRun) -> None:
    """Check that a closed hub takes no more, and can be read."""
    again = QueryHub(DATA, "ts").start(folder, "batch", ASKED)
    with pytest.raises(RuntimeError, match="the hub was closed, so what it answers stays as it is"):
        again.submit(ASKED["left"], "more")
    assert again.awaitTermination() and again.status["state"] == "completed"
    assert again.state.epoch == LAST + 1
    assert all(query_rows(again, name) == query_rows(run, name) for name in ASKED)
    with pytest.raises(FencedError, match="has taken over the run in "):
        run._reopen_and_close()


def test_a_hub_that_dies_before_its_closing_batch_is_committed_goes_on(
    tmp_path: Path, started: list[HubRun], whole: HubRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stop_early(tmp_path / "hub", Deliveries(started))

    def fail(*given: Any) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(HubLog, "append_state", fail)
        with pytest.raises(OSError, match="the disk is full"):
            run.close()
    closed = [i.engine.state.is_closed for i in run._registry.works.instances.values()]
    assert all(closed) and not run.state.is_closed and not run.store.lock.is_held()
    again = QueryHub(DATA, "ts").start(tmp_path / "hub", "batch", ASKED)
    assert again.awaitTermination() and again.state.micro_batch == BATCHES - 1
    for name in ASKED:
        assert query_rows(again, name) == query_rows(whole, name), name


def test_a_hub_that_dies_after_its_closing_batch_delivers_it_when_it_is_started(
    tmp_path: Path, started: list[HubRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stop_early(tmp_path, delivered := Deliveries(started))

    def die(*given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(BatchSink, "deliver_until", die)
        with pytest.raises(KeyboardInterrupt):
            run.close()
    again = QueryHub(DATA, "ts").start(tmp_path, "batch", ASKED, foreachBatch=delivered.take)
    assert again.awaitTermination() and delivered.batches == [*range(LAST + 2)]
    assert all(delivered.rows[n] == query_rows(again, name) for n, name in enumerate(ASKED))


def test_a_hub_whose_streams_have_ended_is_closed_already(whole: HubRun) -> None:
    run = whole
    before = {name: query_rows(run, name) for name in ASKED}
    run.close()
    assert run.state.micro_batch == BATCHES - 1 and not run.state.is_closed
    assert {name: query_rows(run, name) for name in ASKED} == before


def test_answers_of_a_hub_do_not_wait_for_a_silent_source(
    tmp_path: Path, started: list[HubRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batch 1 makes tuples of batch 0 final, and batch 2 does not come for a while."""
    monkeypatch.setattr(HubRun, "silence_seconds", 0.03)
    monkeypatch.setattr(HubRun, "_waits_for_silence", lambda run: True)
    run_next = HubRun._run_next_batch

    def run_after_silence(run: HubRun, source: Any, number: int) -> None:
        if number == 2:
            wait_until(lambda: run.state.epoch == 2, "the batch without tuples", 60)
        run_next(run, source, number)

    monkeypatch.setattr(HubRun, "_run_next_batch", run_after_silence)
    second = 1_000_000
    times = {"f": [0, second, second], "c": [second, 90 * second, 95 * second]}
    data = {
        s: pa.table({"k": keys, "ts": pa.array(times[s], pa.timestamp("us")), "batch": batches})
        for s, keys, batches in (("f", [1, 2, 5], [0, 1, 2]), ("c", [2, 3, 9], [0, 1, 2]))
    }
    asked = {
        "left": "SELECT f.k, c.k AS c FROM f [RANGE 20 SECONDS] LEFT JOIN c [RANGE 20 SECONDS] ON f.k = c.k",
        "semi": "SELECT f.k FROM f [RANGE 20 SECONDS] SEMI JOIN c [RANGE 20 SECONDS] ON f.k = c.k",
    }
    delivered: list[tuple[int, int, Any]] = []

    def take(answers: dict[int, pa.Table], batch: int) -> None:
        delivered.extend(
            (batch, id, row) for id, rows in answers.items() for row in count_rows(rows)
        )

    run = QueryHub(data, "ts").start(tmp_path, "batch", asked, foreachBatch=take)
    assert run.awaitTermination()
    received = [e.received_tuples["f"] for e in run.events() if isinstance(e, HubBatchCommitted)]
    assert received == [1, 1, 0, 1, 0]
    assert {*delivered} == {(1, 0, (2, 2)), (2, 0, (1, None)), (2, 1, (2,)), (4, 0, (5, None))}
    again = QueryHub(data, "ts").start(tmp_path, "batch", asked)
    assert again.awaitTermination()
    assert query_rows(again, "left") == Counter({(2, 2): 1, (1, None): 1, (5, None): 1})
