"""Windows that the condition implies: the results of full history, with little of it held."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from braid import Centralized
from braid.core.run_events import BatchCommitted, RunStarted
from braid.join_run import JoinRun
from braid.stream_join import StreamJoin
from oracle import EPOCH, PLACEMENTS, Ids, compute_expected, killed_before, result_ids

BATCHES, LATENESS = 8, 4
TWO = "a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '3' SECOND AND a.ts + INTERVAL '6' SECOND"
THREE = f"{TWO} AND c.k = b.k AND c.ts BETWEEN b.ts AND b.ts + INTERVAL '5' SECOND"
FOUR = f"{THREE} AND abs(unix_micros(d.ts) - unix_micros(a.ts)) < 4000000 AND d.k <= a.k"
CHOICE = (
    "a.k = b.k AND (b.ts BETWEEN a.ts AND a.ts + INTERVAL '2' SECOND "
    "OR (a.v = b.v AND b.ts BETWEEN a.ts - INTERVAL '7' SECOND AND a.ts))"
)
ONE_SIDED = "a.k = b.k AND b.ts >= a.ts AND c.k = b.k AND c.ts = a.ts"
NO_EQUALITY = "b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' SECOND AND a.v < b.v"
CONDITIONS = {"ab": (TWO, CHOICE, NO_EQUALITY), "abc": (THREE, ONE_SIDED), "abcd": (FOUR,)}


def make_streams(aliases: str, seed: int, rows: int = 12) -> dict[str, pa.Table]:
    """Return streams out of order within LATENESS seconds. Each has its own lag."""
    random = Random(seed)
    return {alias: make_stream(random, rows, random.choice([0, 0, 2, 9])) for alias in aliases}


def make_stream(random: Random, rows: int, lag: int) -> pa.Table:
    lines, latest = [], None
    for batch in range(BATCHES):
        count = random.choice([0, rows // 2, rows])
        first = 5 * batch - lag if latest is None else max(5 * batch - lag - 4, latest - LATENESS)
        times = [random.randint(first, first + 8) for _ in range(count)]
        latest = max([latest, *times] if latest is not None else times, default=latest)
        lines += [(batch, t) for t in times]
    return pa.table(
        {
            "id": pa.array(range(len(lines)), pa.int64()),
            "batch": pa.array([batch for batch, _ in lines], pa.int32()),
            "ts": pa.array(
                [EPOCH + timedelta(seconds=t) for _, t in lines], pa.timestamp("us", "UTC")
            ),
            "k": pa.array([random.randint(0, 3) for _ in lines], pa.int64()),
            "v": pa.array([random.randint(0, 2) for _ in lines], pa.int64()),
        }
    )


def make_join(streams: Mapping[str, pa.Table], on: str, **more: Any) -> StreamJoin:
    more = {"placement": Centralized(), "check": True} | more
    return StreamJoin(streams, on, time="ts", lateness=f"{LATENESS} seconds", **more)


def finish(run: JoinRun) -> Ids:
    assert run.awaitTermination()
    return result_ids(run.results())


def count_held(run: JoinRun) -> list[int]:
    """Return the most tuples that were live after a batch, by stream."""
    live = [e.live_tuples for e in run.events() if isinstance(e, BatchCommitted)]
    return [max(counts) for counts in zip(*live, strict=True)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("aliases", "on"), [(a, on) for a, each in CONDITIONS.items() for on in each]
)
def test_results_are_those_of_full_history(
    aliases: str, on: str, seed: int, tmp_path: Path
) -> None:
    streams = make_streams(aliases, seed)
    run = make_join(streams, on).start(tmp_path / "run", "batch", durability="process")
    assert finish(run) == compute_expected(streams, on)


@pytest.mark.parametrize("name", [n for n, p in PLACEMENTS.items() if p.supports_streams(2)])
def test_every_placement_takes_a_window_of_a_microsecond(name: str, tmp_path: Path) -> None:
    """b is never before a, so that b waits for no time."""
    streams = make_streams("ab", 12)
    on = "a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND"
    join = make_join(streams, on, placement=PLACEMENTS[name])
    run = join.start(tmp_path / "run", "batch", durability="process")
    assert finish(run) == compute_expected(streams, on)


@pytest.mark.parametrize("name", PLACEMENTS)
def test_every_placement_has_them_also_after_a_restart(name: str, tmp_path: Path) -> None:
    placement = PLACEMENTS[name]
    aliases = "abc" if placement.supports_streams(3) else "ab"
    on = THREE if len(aliases) == 3 else TWO
    streams, folder = make_streams(aliases, 11), tmp_path / "run"
    with killed_before(5):
        run = make_join(streams, on, placement=placement).start(
            folder, "batch", durability="process"
        )
        with pytest.raises(OSError, match="killed"):
            run.awaitTermination()
    run = StreamJoin.resume(folder, streams, durability="process")
    assert finish(run) == compute_expected(streams, on)
    assert any(
        count < table.num_rows
        for count, table in zip(count_held(run), streams.values(), strict=True)
    )


def test_what_is_held_is_bounded(tmp_path: Path) -> None:
    """A tuple of a waits 2 minutes for b, one of b 1 minute for a; a batch has 10 seconds."""
    step, span = 10, 600
    times = [EPOCH + timedelta(seconds=s) for s in range(span)]
    table = pa.table(
        {
            "id": pa.array(range(span), pa.int64()),
            "batch": pa.array([s // step for s in range(span)], pa.int32()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )
    on = "b.ts BETWEEN a.ts - INTERVAL 1 MINUTE AND a.ts + INTERVAL 2 MINUTES"
    join = StreamJoin({"a": table, "b": table}, on, Centralized(), time="ts")
    run = join.start(tmp_path / "run", "batch", durability="process")
    assert run.awaitTermination()
    assert sum(count_held(run)) <= 1.3 * (120 + 60 + 2 * step)
    (started,) = [e for e in run.events() if isinstance(e, RunStarted)]
    assert started.windows == {"a": "2 min", "b": "1 min"}


def test_an_unbounded_stream_keeps_its_full_history(tmp_path: Path) -> None:
    streams = make_streams("ab", 3)
    join = make_join(streams, TWO, windows={"a": "unbounded"})
    run = join.start(tmp_path / "run", "batch", durability="process")
    assert finish(run) == compute_expected(streams, TWO)
    assert count_held(run)[0] == streams["a"].num_rows
    assert count_held(run)[1] < streams["b"].num_rows
    again = StreamJoin.resume(tmp_path / "run", streams)
    assert again.config.unbounded_streams == ("a",)
    again.stop()


def test_windows_and_condition_bound_together(tmp_path: Path) -> None:
    streams = make_streams("ab", 5)
    join = make_join(streams, "a.k = b.k AND b.ts >= a.ts", windows={"a": "4 s"})
    assert join._join.expiry_bounds == ((0, 3_999_999), (0, 0))
    run = join.start(tmp_path / "run", "batch", durability="process")
    assert finish(run) == compute_expected(streams, join.on, {"a": 4})


def test_windows_that_the_condition_excludes_are_refused() -> None:
    streams = make_streams("ab", 5)
    on = "b.ts >= a.ts + INTERVAL '1' HOUR"
    with pytest.raises(
        ValueError, match="no rows can satisfy .* within the windows a 4 s, so no rows"
    ):
        make_join(streams, on, windows={"a": "4 s"})


def test_a_tuple_without_event_time_has_no_result_and_is_counted(tmp_path: Path) -> None:
    streams = make_streams("ab", 6)
    ts = streams["a"]["ts"].to_pylist()
    streams["a"] = streams["a"].set_column(
        2, "ts", pa.array([None, *ts[1:]], pa.timestamp("us", "UTC"))
    )
    on = "a.k = b.k AND coalesce(b.ts = a.ts, false)"
    run = make_join(streams, on).start(tmp_path / "run", "batch", durability="process")
    assert finish(run) == compute_expected(streams, on)
