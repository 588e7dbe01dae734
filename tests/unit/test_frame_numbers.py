"""The numbers of a frame equal a query over the event file, written apart from the fold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from braid import AdaptiveGrid
from braid.core.event_jsonl import read_events
from braid.core.run_events import BatchCommitted
from braid.simulation.simulator import simulate
from braid_widgets.base.track_records import make_series
from braid_widgets.cockpit.frames import FrameCollector
from braid_widgets.cockpit.page import recorded_page

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"
GRID = RECORDINGS / "fluct.jsonl"


@pytest.fixture(scope="module")
def page() -> Any:
    return recorded_page(read_events(GRID))


@pytest.fixture(scope="module")
def events() -> Any:
    connection = duckdb.connect()
    lines = f"read_csv('{GRID}', delim='\x01', quote='', escape='', header=false, columns={{'l': 'JSON'}})"
    connection.execute(f"create table events as select l->>'type' as kind, l from {lines}")
    return connection


def query(events: Any, select: str, kind: str) -> list[Any]:
    return events.execute(
        f"select {select} from events where kind = '{kind}' order by (l->>'batch')::int"
    ).fetchall()


def test_rows_results_and_seconds_of_each_batch_are_those_of_the_events(
    page: Any, events: Any
) -> None:
    counted = query(
        events,
        "(l->>'batch')::int + 1, l->'live_tuples', (l->>'results')::int,"
        " (l->'seconds_by_phase'->>'total')::double",
        "BatchCommitted",
    )
    seconds = page["timeline"]["tracks"][0]["series"]
    assert page["timeline"]["tracks"][0]["unit"] == "s"
    for k, (frame, (batch, live, results, total)) in enumerate(
        zip(page["frames"], counted, strict=True)
    ):
        assert frame["batch"] == batch and frame["flow"]["results"] == results
        assert str(frame["state_map"]["grid"]["rows"]).replace(" ", "") == live.replace(" ", "")
        assert sum(each["values"][k] for each in seconds) == pytest.approx(total, abs=1e-3)


def test_rows_on_each_host_are_those_of_the_events(page: Any, events: Any) -> None:
    held = query(
        events,
        "json_extract(l, '$.host_metrics[*].stored_tuples')::int[]",
        "BatchCommitted",
    )
    stored = page["hosts"]["names"].index("rows held")
    fullest = page["timeline"]["tracks"][1]["series"][0]["values"]
    for k, (frame, (rows,)) in enumerate(zip(page["frames"], held, strict=True)):
        assert frame["state_map"]["grid"]["stored"] == rows == page["hosts"]["values"][k][stored]
        assert fullest[k] == pytest.approx(max(rows), rel=1e-4)


def test_each_measure_of_a_host_is_that_of_the_events(page: Any, events: Any) -> None:
    fields = {
        "rows received": "received_tuples",
        "pairs compared": "compared_pairs",
        "rows moved here": "migrated_tuples",
        "results": "results",
        "seconds of work": "seconds",
    }
    names = page["hosts"]["names"]
    for measure, field in fields.items():
        held = query(
            events,
            f"list_transform((l->'host_metrics')::json[], lambda h: coalesce((h->>'{field}')::double, 0))",
            "BatchCommitted",
        )
        for values, (expected,) in zip(page["hosts"]["values"], held, strict=True):
            assert values[names.index(measure)] == pytest.approx(expected, abs=1e-4)
            if measure == "seconds of work":
                idle = [max(expected) - one for one in expected]
                assert values[names.index("seconds of waiting")] == pytest.approx(idle, abs=1e-4)
        assert any(any(expected) for (expected,) in held), measure


def test_copies_of_each_batch_are_those_of_the_events(page: Any, events: Any) -> None:
    moved = dict(
        query(
            events,
            "(l->>'batch')::int + 1, json_array_length(l->'copies')::int",
            "MigrationAdvanced",
        )
    )
    for frame in page["frames"]:
        assert frame["state_map"]["grid"]["moved_blocks"] == moved.get(frame["batch"], 0)


def test_the_grid_and_its_flags_are_those_of_the_events(page: Any, events: Any) -> None:
    changes = query(
        events,
        "(l->>'batch')::int + 1, (l->'mapping'->>0)::int, (l->'mapping'->>1)::int,"
        " (l->'previous_mapping'->>0)::int, (l->'previous_mapping'->>1)::int",
        "MappingChanged",
    )
    flags = {flag["batch"]: flag for flag in page["annotations"] if flag["short"]}
    assert {b: f"{i}×{j} → {n}×{m}" for b, n, m, i, j in changes if (i, j) != (n, m)} == {
        batch: flag["short"] for batch, flag in flags.items()
    }
    for frame in page["frames"]:
        _, n, m, i, j = [c for c in changes if c[0] <= frame["batch"]][-1]
        view = frame["state_map"]["grid"]
        r, s = view["rows"]
        assert (view["n"], view["m"]) == (n, m)
        assert view["load"] == pytest.approx(r / n + s / m, abs=0.1)
        if view["before"]:
            assert view["load_before"] == pytest.approx(r / i + s / j, abs=0.1)


def test_a_flag_lasts_as_long_as_its_migration(page: Any, events: Any) -> None:
    began = [b for (b,) in query(events, "(l->>'batch')::int + 1", "MigrationStarted")]
    ended = [b for (b,) in query(events, "(l->>'batch')::int + 1", "MigrationEnded")]
    spans = {f["batch"]: f["end"] for f in page["annotations"] if f["rows"]}
    assert set(spans) == set(began) and all(end in ended for end in spans.values() if end)


def test_the_scale_of_a_track_never_shrinks() -> None:
    happened = read_events(GRID)
    tops = [
        [track["top"] for track in recorded_page(happened[:end])["timeline"]["tracks"]]
        for end in range(20, len(happened), 30)
    ]
    assert all(
        a <= b
        for one, two in zip(tops, tops[1:], strict=False)
        for a, b in zip(one, two, strict=True)
    )


def test_each_row_of_a_left_join_waits_until_it_is_answered() -> None:
    batches, streams = [(30 + k, 60) for k in range(9)], dict(windows=(3.0,) * 2, seed=1)
    run = simulate(AdaptiveGrid(4), batches, selectivity=1e-3, how="left", **streams)  # type: ignore[arg-type]
    page = recorded_page(run)
    commits = [e for e in run if isinstance(e, BatchCommitted)]
    came = answered = unmatched = 0
    for frame, commit in zip(page["frames"], commits, strict=True):
        (flow,) = frame["answers"]
        came, answered = came + commit.received_tuples[0], answered + flow["answered"]
        unmatched += flow["unmatched"]
        assert (flow["stream"], flow["held"]) == (0, commit.live_tuples[0])
        assert (flow["total_answered"], flow["total_unmatched"]) == (answered, unmatched)
        assert came == answered + flow["waiting"], "a row waits or is answered"
    assert answered == sum(r for r, _ in batches) > unmatched > 0 == flow["waiting"]
    waits = next(t for t in page["timeline"]["tracks"] if t["name"] == "rows that wait")
    assert waits["series"][0]["values"] == [f["answers"][0]["waiting"] for f in page["frames"]]
    assert recorded_page(simulate(AdaptiveGrid(4), batches))["frames"][-1]["answers"] == []


def test_a_scale_never_shrinks() -> None:
    fold = FrameCollector()
    fold.apply_events(simulate(AdaptiveGrid(4), [(9, 9)] * 3))
    fold.baselines = [make_series("another grid", "baseline", [1], [1e6])]
    tops = []
    for _ in range(2):
        tops.append([track["top"] for track in fold.make_page("live")["timeline"]["tracks"]])
        fold.baselines = []
    assert tops[0] == tops[1] and max(tops[0]) == 1e6
