"""The engine against DuckDB: random streams, windows, conditions and placements, with migrations and restarts in the middle."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from oracle import PLACEMENTS, differ, expected, files, found, frames, tables, until
from pyspark.sql import SparkSession
from scatter import Scatter

from toolkit import events
from toolkit.join import JoinRun, StreamJoin
from toolkit.placement.grid import AdaptiveGrid
from toolkit.plan import Placement

NONE: dict[str, int] = {}
TWO = tables("ab", {"a": 300, "b": 400}, seed=1)
THREE = tables("abc", 120, seed=2)

CONDITIONS: list[tuple[str, dict[str, int], str]] = [
    ("a.k = b.k", {"a": 70, "b": 100}, "scatter"),
    ("a.k = b.k AND a.s = b.s", NONE, "adaptive"),
    ("a.k = b.k AND a.n < b.n AND a.n > -400 AND b.flag", NONE, "hash"),
    ("abs(a.n - b.n) <= 7", {"a": 90}, "adaptive groups"),
    ("a.n BETWEEN b.n - 3 AND b.n + 10 AND a.k <> b.k", NONE, "scatter"),
    ("a.n < b.n - 800", NONE, "biclique"),
    ("a.n - b.n > 700 AND a.ts < b.ts", {"b": 60}, "static grid"),
    ("a.n + 2 * a.k = b.n - b.k + 1", NONE, "adaptive"),
    ("a.f = b.f", NONE, "scatter by value"),
    ("a.f < b.f AND a.k = b.k", NONE, "static groups"),
    ("abs(a.f - b.f) < 0.25", NONE, "scatter"),
    ("a.f > b.k + 5 AND a.s <> b.s AND a.k = 3", NONE, "biclique"),
    ("a.s = b.s AND a.d <= b.d AND a.flag = b.flag AND a.k < 5", NONE, "hash"),
    ("a.d BETWEEN b.d - INTERVAL 1 DAY AND b.d AND a.flag", NONE, "adaptive"),
    ("abs(datediff(a.d, b.d)) <= 1 AND a.k < b.k", {"a": 120, "b": 120}, "scatter"),
    ("a.m = b.m + 1.5", NONE, "static grid"),
    ("abs(a.m - b.m) <= 0.25 OR a.k = b.k AND a.d = b.d", NONE, "scatter"),
    ("a.ts >= b.ts - INTERVAL 3 SECONDS AND a.ts < b.ts + INTERVAL 2 SECONDS", NONE, "adaptive groups"),
    ("a.s LIKE concat('%', b.s, '_') AND length(a.s) > 1 AND a.k % 4 = b.k % 4", NONE, "biclique"),
    ("hour(a.ts) = b.k OR upper(a.s) = upper(b.s) AND a.n % 7 = b.n % 7 AND a.f > 0", NONE, "centralized"),
    ("a.n IN (b.n, b.k) OR coalesce(a.k, -b.k) = -3", {"a": 200, "b": 30}, "scatter"),
    ("power(a.n - b.n, 2) + power(a.k - b.k, 2) < 30", NONE, "static groups"),
]
THREE_WAY: list[tuple[str, dict[str, int], str]] = [
    ("a.k = b.k AND b.k = c.k", NONE, "scatter by value"),
    ("a.k = b.k AND b.k = c.k", {"a": 80, "b": 100, "c": 130}, "hash"),
    ("a.k = b.k AND abs(b.n - c.n) <= 40", {"a": 90, "c": 60}, "scatter"),
    ("abs(a.k - b.k) <= 1 AND b.s = c.s AND a.n + b.n > c.n", NONE, "centralized"),
    ("a.k = b.k AND a.d < c.d AND (b.m > c.m OR a.flag)", {"b": 75}, "scatter"),
]


def spans(windows: dict[str, int]) -> dict[str, str]:
    return {a: f"{w} seconds" for a, w in windows.items()}


def make(
    spark: SparkSession, streams: dict[str, pa.Table], on: str, windows: dict[str, int], placement: Placement, **more: Any
) -> StreamJoin:
    return StreamJoin(
        frames(spark, streams), on, placement, spans(windows), time="ts", partitions=2, check=True, **more
    )


def ended(run: JoinRun) -> JoinRun:
    run.awaitTermination()
    assert run.status["state"] == "completed"
    return run


def migrations(run: JoinRun) -> list[tuple[int, str]]:
    kinds = (events.MigrationStarted, events.MigrationAdvanced, events.MigrationEnded)
    return [(e.batch, type(e).__name__.removeprefix("Migration")) for e in run.events() if isinstance(e, kinds)]


@pytest.mark.parametrize(("on", "windows", "name"), CONDITIONS, ids=[c[0] for c in CONDITIONS])
def test_two_streams(spark: SparkSession, tmp_path: Path, on: str, windows: dict[str, int], name: str) -> None:
    want = expected(TWO, on, windows)
    assert want
    run = ended(make(spark, TWO, on, windows, PLACEMENTS[name]()).start(tmp_path / "run", batches="batch"))
    assert differ(found(run), want) == ""


@pytest.mark.parametrize(("on", "windows", "name"), THREE_WAY, ids=[f"{c[0]} {c[2]}" for c in THREE_WAY])
def test_three_streams(spark: SparkSession, tmp_path: Path, on: str, windows: dict[str, int], name: str) -> None:
    want = expected(THREE, on, windows)
    assert want
    run = ended(make(spark, THREE, on, windows, PLACEMENTS[name]()).start(tmp_path / "run", batches="batch"))
    assert differ(found(run), want) == ""


def test_all_placements_give_the_same_results(spark: SparkSession, tmp_path: Path) -> None:
    on, windows = "a.k = b.k AND a.n <= b.n + 400", {"a": 150, "b": 100}
    want = expected(TWO, on, windows)
    wrong = {}
    for name, placement in PLACEMENTS.items():
        run = ended(make(spark, TWO, on, windows, placement()).start(tmp_path / name, batches="batch"))
        wrong[name] = differ(found(run), want)
        assert run.metrics().groupby("batch")["results"].sum().sum() == want.total()
    assert wrong == dict.fromkeys(PLACEMENTS, "")


FLUCTUATING = tables("ab", {"a": 900, "b": 700}, seed=5, batches=12)


def swing(streams: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Stream a comes first, then b: |R|/|S| falls all the way, and the mapping follows."""
    sizes = {"a": [300, 300, 200, 60, 20, 20] + [0] * 6, "b": [2, 2, 5, 20, 60, 100, 100, 100, 100, 100, 60, 51]}
    out = {}
    for alias, rows in streams.items():
        batch = pa.array([i for i, n in enumerate(sizes[alias]) for _ in range(n)], pa.int32())
        out[alias] = rows.set_column(rows.schema.get_field_index("batch"), "batch", batch)
    return out


@pytest.mark.parametrize(
    ("placement", "windows"),
    [
        (AdaptiveGrid(hosts=8, epsilon=0.25), NONE),
        (AdaptiveGrid(hosts=5, epsilon=0.25), NONE),
        (AdaptiveGrid(hosts=4, epsilon=0.25), {"a": 400, "b": 300}),
        (AdaptiveGrid(hosts=2, epsilon=0.5, capacity=300, max_hosts=8), NONE),
    ],
    ids=["J=8", "J=4+1", "J=4, windows", "J=2 grows to 8"],
)
def test_migrations_lose_and_double_nothing(
    spark: SparkSession, tmp_path: Path, placement: AdaptiveGrid, windows: dict[str, int]
) -> None:
    """Stopped twice on the way, once while a migration runs, and resumed."""
    streams = swing(FLUCTUATING)
    on = "abs(a.n - b.n) <= 25"
    want = expected(streams, on, windows)
    join = make(spark, streams, on, windows, placement, lateness="1 hour")
    run = join.start(tmp_path / "run", batches="batch")
    until(lambda: any(kind == "Started" for _, kind in migrations(run)), "migration")
    run.stop()
    assert run.status["state"] == "stopped"
    run = StreamJoin.resume(tmp_path / "run", join.streams)
    until(lambda: run.status["batch"] >= 9 or not run.isActive, "batch 9")
    run.stop()
    run = ended(StreamJoin.resume(tmp_path / "run", join.streams))
    assert differ(found(run), want) == ""
    kinds = [kind for _, kind in migrations(run)]
    assert kinds.count("Started") == kinds.count("Ended") > 1
    assert "Advanced" in kinds
    if placement.max_hosts > placement.hosts:
        assert max(len(e.host_stored) for e in run.events() if isinstance(e, events.BatchCommitted)) == placement.max_hosts
