"""The engine against DuckDB: random streams, windows, conditions and placements.

Runs have migrations and restarts in the middle.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid import AdaptiveGrid, Centralized, HashPartition, StaticGrid
from braid.core import run_events
from braid.core.placement import Placement
from braid.papers.theta.run_events import MigrationAdvanced, MigrationEnded, MigrationStarted
from braid.stream_join import JoinRun, StreamJoin
from local_runs import LocalRun
from oracle import (
    EPOCH,
    PLACEMENTS,
    committed_ids,
    compute_expected,
    create_frames,
    describe_difference,
    make_tables,
    wait_until,
)
from placement_checks import describe_placement
from pyspark.sql import SparkSession
from scatter import Scatter

CHECKSUMS = "spark.sql.shuffle.orderIndependentChecksum.enabled"
NONE: dict[str, int] = {}
TWO = make_tables("ab", {"a": 300, "b": 400}, seed=1)
FEW = make_tables("ab", {"a": 150, "b": 200}, seed=1)
THREE = make_tables("abc", 120, seed=2)

# test_predicate.py tests the conditions themselves; here, one of each kind runs through the whole
# engine.
CONDITIONS: list[tuple[dict[str, pa.Table], str, dict[str, int]]] = [
    (TWO, "a.n BETWEEN b.n - 3 AND b.n + 10 AND a.k <> b.k", {"a": 90}),
    (TWO, "a.f = b.f", NONE),
    (TWO, "a.s = b.s AND a.d <= b.d AND a.flag = b.flag AND a.k < 5", NONE),
    (TWO, "a.ts >= b.ts - INTERVAL 3 SECONDS AND a.ts < b.ts + INTERVAL 2 SECONDS", NONE),
    (
        TWO,
        "a.s LIKE concat('%', b.s, '_') AND length(a.s) > 1 AND a.k % 4 = b.k % 4",
        {"a": 200, "b": 30},
    ),
    (FEW, "abs(a.m - b.m) <= 0.25 OR hour(a.ts) = b.k", NONE),
    (THREE, "a.k = b.k AND b.k = c.k", {"a": 80, "b": 100, "c": 130}),
    (THREE, "abs(a.k - b.k) <= 1 AND b.s = c.s AND a.n + b.n > c.n", NONE),
    (THREE, "a.k = b.k AND a.d < c.d AND (b.m > c.m OR a.flag)", {"b": 75}),
]
ON_SPARK = [
    (*CONDITIONS[2], HashPartition(5)),
    (*CONDITIONS[4], AdaptiveGrid(5, epsilon=0.5)),
    (*CONDITIONS[8], Scatter()),
]


def spans(windows: dict[str, int]) -> dict[str, str]:
    return {a: f"{w} seconds" for a, w in windows.items()}


def make(
    spark: SparkSession,
    streams: dict[str, pa.Table],
    on: str,
    windows: dict[str, int],
    placement: Placement,
    **more: Any,
) -> StreamJoin:
    return StreamJoin(
        create_frames(spark, streams),
        on,
        placement,
        spans(windows),
        time="ts",
        partitions=2,
        check=True,
        **more,
    )


def ended(run: JoinRun) -> JoinRun:
    run.awaitTermination()
    assert run.status["state"] == "completed"
    return run


def migrations(happened: list[Any]) -> list[tuple[int, str]]:
    kinds = (
        MigrationStarted,
        MigrationAdvanced,
        MigrationEnded,
    )
    return [
        (e.batch, type(e).__name__.removeprefix("Migration"))
        for e in happened
        if isinstance(e, kinds)
    ]


@pytest.mark.parametrize(
    ("streams", "on", "windows", "placement"),
    ON_SPARK,
    ids=[describe_placement(c[-1]) for c in ON_SPARK],
)
def test_streams(
    spark: SparkSession,
    tmp_path: Path,
    streams: dict[str, pa.Table],
    on: str,
    windows: dict[str, int],
    placement: Placement,
) -> None:
    run = ended(
        make(spark, streams, on, windows, placement).start(tmp_path / "run", batches="batch")
    )
    want = compute_expected(streams, on, windows)
    assert describe_difference(committed_ids(run), want) == ""
    assert run.metrics().groupby("batch")["results"].sum().sum() == want.total()


def by_turns(number: int) -> dict[str, Placement]:
    """Return every second placement of each class, or its only one."""
    kinds: dict[type, list[str]] = {}
    for name, placement in PLACEMENTS.items():
        kinds.setdefault(type(placement), []).append(name)
    chosen = [n for names in kinds.values() for n in names[number % min(2, len(names)) :: 2]]
    return {name: PLACEMENTS[name] for name in chosen}


@pytest.mark.parametrize("number", range(len(CONDITIONS)), ids=[c[1] for c in CONDITIONS])
def test_all_placements_give_the_same_results(
    spark: SparkSession, tmp_path: Path, number: int
) -> None:
    """Test every placement class on every condition that it supports.

    Every placement runs on about every second condition, with and without windows. Another driver
    continues from the third batch on.
    """
    streams, on, windows = CONDITIONS[number]
    want = compute_expected(streams, on, windows)
    join = make(spark, streams, on, windows, Centralized())
    run = LocalRun(join)
    wrong = {}
    for name, placement in by_turns(number + number // 4).items():
        if placement.supports_streams(len(streams)) and (
            placement.routing_key_source == "tuple"
            or (
                placement.routing_key_source != "equalities" and join.predicate.equality is not None
            )
        ):
            got, happened = run.run(placement, tmp_path / name, stops=(1,))
            wrong[name] = describe_difference(got, want)
            assert (
                sum(e.results for e in happened if isinstance(e, run_events.BatchCommitted))
                == want.total()
                > 0
            )
    assert len(wrong) >= (12 if len(streams) == 2 else 5) and not any(wrong.values()), wrong


FLUCTUATING = make_tables("ab", {"a": 900, "b": 700}, seed=5, batches=12)


def swing(streams: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Return streams whose ratio |R|/|S| falls, because a comes first and b later.

    The mapping follows the ratio. A batch covers a minute.
    """
    sizes = {
        "a": [300, 300, 200, 60, 20, 20] + [0] * 6,
        "b": [2, 2, 5, 20, 60, 100, 100, 100, 100, 100, 60, 51],
    }
    out = {}
    for alias, rows in streams.items():
        batch = pa.array([i for i, n in enumerate(sizes[alias]) for _ in range(n)], pa.int32())
        seconds = [60 * i + n % 60 for n, i in enumerate(batch.to_pylist())]
        ts = pa.array([EPOCH + timedelta(seconds=t) for t in seconds], rows.schema.field("ts").type)
        for name, column in (("batch", batch), ("ts", ts)):
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
        out[alias] = rows
    return out


@pytest.mark.parametrize(
    ("placement", "windows"),
    [
        (AdaptiveGrid(hosts=8, epsilon=0.25), NONE),
        (AdaptiveGrid(hosts=5, epsilon=0.25), NONE),
        (AdaptiveGrid(hosts=4, epsilon=0.25), {"a": 420, "b": 200}),
        (AdaptiveGrid(hosts=2, epsilon=0.5, max_tuples_per_host=300, max_hosts=8), NONE),
    ],
    ids=["J=8", "J=4+1", "J=4, windows", "J=2 grows to 8"],
)
def test_migrations_lose_and_double_nothing(
    spark: SparkSession, tmp_path: Path, placement: AdaptiveGrid, windows: dict[str, int]
) -> None:
    """Another driver continues after every second batch, and so in the middle of migrations too."""
    streams = swing(FLUCTUATING)
    on = "abs(a.n - b.n) <= 25"
    got, happened = LocalRun(make(spark, streams, on, windows, placement)).run(
        placement, tmp_path / "run", tuple(range(0, 12, 2))
    )
    assert describe_difference(got, compute_expected(streams, on, windows)) == ""
    kinds = [kind for _, kind in migrations(happened)]
    assert kinds.count("Started") == kinds.count("Ended") > 1
    assert "Advanced" in kinds
    if placement.max_hosts > placement.hosts:
        assert (
            max(len(e.host_metrics) for e in happened if isinstance(e, run_events.BatchCommitted))
            == placement.max_hosts
        )


def test_a_migration_that_is_stopped_and_resumed(spark: SparkSession, tmp_path: Path) -> None:
    """The run is stopped twice, once during a migration."""
    streams, on, windows = swing(FLUCTUATING), "abs(a.n - b.n) <= 25", {"a": 420, "b": 200}
    join = make(spark, streams, on, windows, AdaptiveGrid(hosts=4, epsilon=0.25))
    run = join.start(tmp_path / "run", batches="batch")
    wait_until(lambda: any(kind == "Started" for _, kind in migrations(run.events())), "migration")
    run.stop()
    assert run.status["state"] == "stopped"
    run = StreamJoin.resume(tmp_path / "run", join.streams)
    wait_until(lambda: run.status["batch"] >= 9 or not run.isActive, "batch 9")
    run.stop()
    run = ended(StreamJoin.resume(tmp_path / "run", join.streams))
    assert describe_difference(committed_ids(run), compute_expected(streams, on, windows)) == ""
    kinds = [kind for _, kind in migrations(run.events())]
    assert kinds.count("Started") == kinds.count("Ended") > 1
    settings = [
        r.conf.get(CHECKSUMS, "true") for r in (run._make_empty_batch().sparkSession, spark)
    ]
    assert settings[0] == "false" != settings[1]  # the user's own session stays unchanged


def test_late_tuples(spark: SparkSession, tmp_path: Path) -> None:
    """Some tuples are up to three minutes late.

    Within the allowed lateness none is missed. Beyond it they are counted, and all placements miss
    the same results, except for pairs that a migration settles later without a check of lateness.
    """
    streams, on, windows = {}, "a.k = b.k", {"a": 70, "b": 100}
    for alias, rows in TWO.items():
        batch = pa.array(
            [b + 3 * (i % 10 == 0) for i, b in enumerate(rows["batch"].to_pylist())], pa.int32()
        )
        streams[alias] = rows.set_column(rows.schema.get_field_index("batch"), "batch", batch)
    want = compute_expected(streams, on, windows)
    results, late = {}, {}
    for name, placement, lateness in (
        ("scatter", Scatter(), "4 minutes"),
        ("static grid", StaticGrid(8), "0 seconds"),
        ("adaptive", AdaptiveGrid(8, epsilon=0.25), "0 seconds"),
    ):
        run = LocalRun(make(spark, streams, on, windows, Centralized(), lateness=lateness))
        results[name], happened = run.run(placement, tmp_path / name)
        late[name] = sum(
            sum(e.late_tuples) for e in happened if isinstance(e, run_events.BatchCommitted)
        )
    assert late["scatter"] == 0
    assert describe_difference(results["scatter"], want) == ""
    assert late["static grid"] == late["adaptive"] > 0
    assert results["static grid"] <= results["adaptive"] < want
    assert results["static grid"].total() > 0.99 * results["adaptive"].total()
