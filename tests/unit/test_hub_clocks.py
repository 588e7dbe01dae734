"""A hub's clocks: lateness by stream, and the count of late tuples."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.core.clock_events import ClockJumped
from braid.core.irregular_rows import IrregularRowsWritten
from braid.core.stream_clocks import find_other_times
from braid.errors import DamagedRunError, QueryError
from braid.health import read_health
from braid.hub.hub import HubRun, QueryHub
from braid.hub.hub_log import HubLog
from braid.papers.reuse.hub_events import HubBatchCommitted
from braid.storage.block_files import read_parquet
from braid.storage.integrity import check_run, repair_run
from hub_cases import SteppedHub, query_rows

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


SILENT = {
    "f": table([(0, 100, 0), (1, 110, 0), (2, 111, 4)]),
    "c": table([(0, 100, 0), (1, 150, 1), (2, 230, 2), (3, 240, 3), (4, 250, 4)]),
}
"""Stream ``f`` is silent from batch 1 to 3."""
ALONE = "SELECT c.id FROM c [RANGE 20 SECONDS] ANTI JOIN f [RANGE 20 SECONDS] ON f.k = c.k"


@pytest.mark.parametrize("idle", [None, "1 minute"])
def test_nothing_waits_for_a_stream_that_is_idle(tmp_path: Path, idle: Any) -> None:
    delivered: list[tuple[int, list[int]]] = []

    def take(answers: dict[int, pa.Table], batch: int) -> None:
        delivered.extend((batch, rows["id"].to_pylist()) for rows in answers.values())

    run = QueryHub(SILENT, "ts", idle=idle).start(tmp_path, "batch", [ALONE], foreachBatch=take)
    assert run.awaitTermination()
    assert delivered == ([(3, [1]), (5, [2, 3, 4])] if idle else [(5, [1, 2, 3, 4])])
    assert run.state.irregular_counts.late == ((0, 1) if idle else (0, 0))
    passed = [e.passed_times for e in run.events() if isinstance(e, HubBatchCommitted)]
    last = (FIRST + (170 if idle else 110)) * 1_000_000
    assert passed[2] == {"f": last, "c": (FIRST + 230) * 1_000_000}


def test_the_watermark_is_what_the_other_streams_have_passed(tmp_path: Path) -> None:
    hub = SteppedHub(tmp_path, {"flights": SILENT["f"], "checkins": SILENT["c"]})
    hub.registry.reader.last_batches = {}
    hub.step()
    (committed,) = [
        e for e in hub.registry.log.store.events.recent_events() if isinstance(e, HubBatchCommitted)
    ]
    second = 1_000_000
    assert find_other_times(committed.passed_times) == {
        "flights": (FIRST + 100) * second,
        "checkins": (FIRST + 110) * second,
    }
    run = run_hub(tmp_path / "ended", lateness="5 seconds")
    end = datetime.max.replace(tzinfo=UTC)
    assert run.watermark == run.status["watermark"] == {"f": end, "c": end}
    assert read_health(tmp_path / "ended").watermark_seconds.keys() == {"f", "c"}


def test_a_stream_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    """Stream ``flights`` has its last tuple in batch 0, and ``checkins`` does not end."""
    data = {"flights": SILENT["f"].slice(0, 2), "checkins": SILENT["c"]}
    hub = SteppedHub(tmp_path, data)
    hub.registry.reader.last_batches = {"flights": 0}
    f, c = "flights [RANGE UNBOUNDED] f", "checkins [RANGE UNBOUNDED] c"
    on = "ON f.k = c.k AND f.id = c.id"
    with pytest.raises(QueryError, match="its window is unbounded and checkins does not end"):
        hub.submit(f"SELECT f.id FROM {f} ANTI JOIN {c} {on}")
    hub.submit(f"SELECT c.id FROM {c} ANTI JOIN {f} {on}", "alone")
    answered = []
    for _ in range(4):
        hub.step()
        answered.append(hub.answered("alone").total())
    assert answered == [0, 0, 0, 1], "those of a batch are answered with the next one"
    assert hub.registry.event_time_progress(["flights", "checkins"]) == (FIRST + 240) * 1_000_000


@pytest.mark.parametrize("stops", [False, True])
def test_late_untimed_and_early_tuples_of_a_hub_are_rows(
    tmp_path: Path, stops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the hub dies between a batch's files and its commit."""
    f = [*F, (4, None, 1), (5, FAR, 1), (6, None, 2), (7, 120, 2)]
    if stops:
        append = HubLog.append_state

        def fail_once(log: HubLog, state: Any, happened: Any) -> None:
            if any(isinstance(e, IrregularRowsWritten) for e in happened):
                monkeypatch.setattr(HubLog, "append_state", append)
                raise OSError("the disk is full")
            append(log, state, happened)

        monkeypatch.setattr(HubLog, "append_state", fail_once)
        with pytest.raises(OSError, match="the disk is full"):
            run_hub(tmp_path, f, lateness={"f": "10 seconds"})
        assert len([*(tmp_path / "late").iterdir()]) == 1
    rows = run_hub(tmp_path, f, lateness={"f": "10 seconds"}).late().to_pylist()
    found = sorted((r["batch"], r["reason"], r["row"]["f"]["id"], r["behind"]) for r in rows)
    assert [each[:3] for each in found] == [
        (1, "ahead", 5), (1, "untimed", 4), (2, "late", 2), (2, "late", 7), (2, "untimed", 6)
    ]  # fmt: skip
    assert [each[3] for each in found if each[1] == "late"] == [
        timedelta(seconds=40), timedelta(seconds=70)
    ]  # fmt: skip
    assert {r["stream"] for r in rows} == {"f"} and all(r["row"]["c"] is None for r in rows)
    reordered = QueryHub({"c": table(C), "f": table(f)}, "ts", lateness={"f": "10 seconds"})
    assert reordered.start(tmp_path, "batch").late().to_pylist() == rows
    (damaged, _) = sorted((tmp_path / "late").iterdir())
    faults, _ = check_run(tmp_path)
    assert not faults
    damaged.write_bytes(b"PAR1")
    faults, _ = check_run(tmp_path)
    assert "late/" in faults[0] and len(faults) == 1
    again = run_hub(tmp_path, f, lateness={"f": "10 seconds"})
    with pytest.raises(DamagedRunError, match="late/"):
        again.late()
    repair_run(tmp_path)
    assert again.late().num_rows == 3


@pytest.mark.usefixtures("often")
def test_rows_of_a_hub_stay_when_its_log_is_rolled_up(tmp_path: Path) -> None:
    """Changes of queries are commits, so that the log has more batches than the streams."""
    data = dict.fromkeys("fc", table([(n, None, n) for n in range(8)]))
    hub = SteppedHub(tmp_path, data)
    for name in "pqrs":
        hub.submit(ASKED["near"], name)
    irregular = hub.registry.log.store.irregular
    for number in range(8):
        hub.step()
        paths = filter(None, map(irregular.find_file, irregular.list_committed()))
        batches = Counter(n for path in paths for n in read_parquet(path)["batch"].to_pylist())
        assert batches == {n: 2 for n in range(number + 1)}
    assert len(hub.registry.log.store.log.merged) > 2
