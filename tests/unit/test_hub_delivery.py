"""A hub delivers the rows of each answer once, batch by batch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.hub.hub import HubRun, QueryHub
from hub_cases import (
    BATCHES,
    COUNTED,
    CROSS,
    ENOUGH,
    GROUPED,
    TICKED,
    WIDE,
    count_rows,
    make_hub_tables,
    query_rows,
)

DATA = make_hub_tables(31)
QUERIES = {"wide": WIDE, "ticked": TICKED, "grouped": GROUPED, "counted": COUNTED, "none": ENOUGH}


class Sink:
    """Answers by batch and query id, from deliveries that fail at some batches, once each."""

    def __init__(self, *failing: int) -> None:
        self.failing, self.delivered = {*failing}, dict[int, dict[int, pa.Table]]()

    def take_batch(self, answers: dict[int, pa.Table], batch: int) -> None:
        assert all(rows.num_rows for rows in answers.values())
        if batch in self.delivered:
            assert self.delivered[batch] == answers
        self.delivered[batch] = answers
        if batch in self.failing:
            self.failing.remove(batch)
            raise OSError("no room")

    def count_query_rows(self, id: int) -> Counter[Any]:
        tables = [each[id] for each in self.delivered.values() if id in each]
        return sum((count_rows(rows) for rows in tables), Counter())


def start(folder: Path, sink: Sink, **queries: str) -> HubRun:
    hub = QueryHub(DATA, "ts")
    return hub.start(folder, batches="batch", queries=queries, foreachBatch=sink.take_batch)


def check_answers(run: HubRun, sink: Sink, names: Any) -> None:
    assert [*sink.delivered] == [*range(BATCHES)]
    for name in names:
        rows = sink.count_query_rows(run.query(name).id)
        assert rows == query_rows(run, name) and rows.total() > 0, name


def test_matches_and_ticks_are_delivered_once(tmp_path: Path) -> None:
    sink = Sink()
    run = start(tmp_path, sink, **QUERIES)
    assert run.awaitTermination()
    check_answers(run, sink, QUERIES)
    assert len([b for b, each in sink.delivered.items() if run.query("ticked").id in each]) > 2


def test_a_delivery_that_failed_is_repeated_with_the_same_rows(tmp_path: Path) -> None:
    sink = Sink(0, 3, BATCHES - 1)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="foreachBatch failed on batch .: OSError: no room"):
            start(tmp_path, sink, **QUERIES).awaitTermination()
    run = start(tmp_path, sink)
    assert run.awaitTermination() and not sink.failing
    check_answers(run, sink, QUERIES)


def test_a_function_that_is_new_to_a_hub_receives_all_batches(tmp_path: Path) -> None:
    assert QueryHub(DATA, "ts").start(tmp_path, batches="batch", queries=QUERIES).awaitTermination()
    sink = Sink()
    run = start(tmp_path, sink)
    assert run.awaitTermination()
    check_answers(run, sink, QUERIES)


def test_queries_that_come_and_go_are_delivered_from_their_first_to_their_last_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = HubRun._join_batch

    def change(run: HubRun, source: Any, epoch: int) -> None:
        if epoch == 2 and run.state.epoch < 2:
            run.submit(CROSS, "cross")
            run.submit(TICKED.replace("20 SECONDS]", "15 SECONDS]"), "late ticks")
        if epoch == 4 and run.state.epoch < 4:
            run.withdraw("wide")
            run.withdraw("ticked")
            run.submit(CROSS.replace("f.id, c.id", "c.id AS d, f.id"), "wide")
        joined(run, source, epoch)

    monkeypatch.setattr(HubRun, "_join_batch", change)
    sink = Sink()
    run = start(tmp_path, sink, wide=WIDE, ticked=TICKED)
    first = run.state.queries[0].number
    assert run.awaitTermination()
    check_answers(run, sink, ["cross", "late ticks", "wide", "ticked"])
    assert sink.count_query_rows(first) == count_rows(run.query_results(first))
    assert run.query("wide").id != first
    assert all(first not in sink.delivered[batch] for batch in range(4, BATCHES))
