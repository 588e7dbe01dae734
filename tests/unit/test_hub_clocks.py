"""A hub's clocks: lateness by stream, and the count of late tuples."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.core.clock_events import ClockJumped
from braid.health import read_health
from braid.hub.hub import HubRun, QueryHub
from braid.papers.reuse.hub_events import HubBatchCommitted
from hub_cases import query_rows

pytestmark = pytest.mark.unit

FIRST = 1_700_000_000
FAR = int(datetime(2999, 1, 1, tzinfo=UTC).timestamp()) - FIRST
ASKED = {
    "near": "SELECT f.id, c.id AS c FROM f [RANGE 30 SECONDS] f, c [RANGE 30 SECONDS] c WHERE f.k = c.k"
}
F = [(0, 100, 0), (1, 200, 1), (2, 150, 2), (3, 202, 2)]
"""Rows by id, seconds and batch. Number 2 arrives 50 seconds late."""
C = [(0, 100, 0), (1, 145, 0), (2, 200, 1), (3, 202, 2)]
ON_TIME = {(0, 0): 1, (1, 2): 1, (1, 3): 1, (3, 2): 1, (3, 3): 1}


def table(rows: list[tuple[int, int | None, int]]) -> pa.Table:
    times = [None if t is None else (FIRST + t) * 1_000_000 for _, t, _ in rows]
    return pa.table(
        {
            "id": pa.array([id for id, _, _ in rows], pa.int64()),
            "k": pa.array([1] * len(rows), pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "batch": pa.array([batch for _, _, batch in rows], pa.int64()),
        }
    )


def run_hub(folder: Path, f: list[Any] = F, **more: Any) -> HubRun:
    run = QueryHub({"f": table(f), "c": table(C)}, "ts", **more).start(folder, "batch", ASKED)
    run.awaitTermination()
    return run


@pytest.mark.parametrize(
    "lateness", ["60 seconds", {"f": "60 seconds"}, {"f": "1 minute", "c": "0 seconds"}]
)
def test_partners_wait_for_late_tuples_of_the_streams_that_have_some(
    tmp_path: Path, lateness: Any
) -> None:
    run = run_hub(tmp_path / "hub", lateness=lateness)
    assert query_rows(run, "near") == ON_TIME | {(2, 1): 1}
    assert run.state.irregular_counts.late == (0, 0) and "of f late" not in repr(run)


def test_lateness_of_one_stream_is_not_that_of_another(tmp_path: Path) -> None:
    run = run_hub(tmp_path / "hub", lateness={"c": "60 seconds"})
    assert query_rows(run, "near") == ON_TIME
    assert "3 batches (1 of f late), in" in repr(run)


def test_lateness_of_an_unknown_stream_and_another_lateness_than_before_are_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(ValueError, match=r"lateness is given for \['g'\]; the streams are f, c"):
        run_hub(tmp_path / "hub", lateness={"g": "1 second"})
    run_hub(tmp_path / "hub", lateness={"f": "1 second"})
    run_hub(tmp_path / "hub", lateness={"f": "1 second"})
    with pytest.raises(
        ValueError, match="lateness is {'f': '1 s', 'c': '0 s'} there and '1 s' here"
    ):
        run_hub(tmp_path / "hub", lateness="1 second")


def test_late_untimed_and_early_tuples_are_counted_in_each_batch_and_said(tmp_path: Path) -> None:
    f = [*F, (4, None, 1), (5, FAR, 1), (6, None, 2)]
    run = run_hub(tmp_path / "hub", f)
    each = [(e.late, e.untimed, e.ahead) for e in run.events() if isinstance(e, HubBatchCommitted)]
    assert each == [((0, 0),) * 3, ((0, 0), (0, 1), (0, 1)), ((0, 1), (0, 1), (0, 0))]
    said = "1 of f late, 2 of f untimed, 1 of f ahead"
    assert f"3 batches ({said}), in" in repr(run)
    found = read_health(tmp_path / "hub")
    assert (found.late_tuples, found.untimed_tuples, found.ahead_tuples) == (
        {"f": 1},
        {"f": 2},
        {"f": 1},
    )
    assert found.irregular_counts == said and str(found).endswith(said)
    assert query_rows(run, "near") == ON_TIME, "the early tuple has moved no clock"


def test_a_jump_of_a_clock_is_counted_also_after_a_restart(tmp_path: Path) -> None:
    f = [*F, *((10 + n, FAR + n, 1) for n in range(8))]
    run = run_hub(tmp_path / "hub", f)
    (jump,) = [e for e in run.events() if isinstance(e, ClockJumped)]
    assert (jump.stream, jump.support, jump.batch) == ("f", 8, 1)
    again = run_hub(tmp_path / "hub", f)
    assert again.state.irregular_counts == run.state.irregular_counts
    assert "the clock of f has jumped once, to 2999-01-01" in repr(again)
    assert again.state.irregular_counts.late[1] == 2, "what comes after a jump is late"
