"""Event time from withWatermark, state of streaming sources, and streams that end."""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from braid import Centralized
from braid.core.run_events import BatchCommitted
from braid.execution import spark_executor
from braid.join_run import JoinRun
from braid.papers.baselines.hash_partition import HashPartition
from braid.shared.shared_join import SharedJoin
from braid.state_forecast import check_bounded
from braid.stream_join import StreamJoin
from oracle import (
    committed_ids,
    compute_expected,
    create_frames,
    describe_difference,
    make_tables,
    wait_until,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from unit.test_irregular_rows import NEAR as IRREGULAR
from unit.test_irregular_rows import STREAM, find_expected

STREAMS = make_tables("ab", {"a": 150, "b": 150}, seed=41, batches=5)
NEAR = "a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 20 SECONDS AND a.ts + INTERVAL 30 SECONDS"
MINUTE = 60_000_000


def live(spark: SparkSession, folder: Path, alias: str) -> DataFrame:
    """Return a stream of one file for each batch."""
    rows, path = STREAMS[alias], folder / alias
    path.mkdir()
    for batch in range(5):
        mine = rows.filter([b == batch for b in rows["batch"].to_pylist()])
        pq.write_table(mine, path / f"{batch}.parquet")
        os.utime(path / f"{batch}.parquet", (1_700_000_000 + batch,) * 2)
    schema = spark.createDataFrame(rows.slice(0, 0)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(path))


def test_event_time_and_lateness_are_those_of_the_watermark(
    spark: SparkSession, tmp_path: Path
) -> None:
    streams = {a: live(spark, tmp_path, a).withWatermark("ts", "1 minute") for a in "ab"}
    join = StreamJoin(streams, NEAR, Centralized(), check=True)
    assert join.time == "ts" and join.config.lateness_microseconds == (MINUTE, MINUTE)
    assert join._join.effective_windows == (30_000_001, 20_000_001)
    run = join.start(tmp_path / "run", availableNow=True)
    assert run.awaitTermination()
    assert describe_difference(committed_ids(run), compute_expected(STREAMS, NEAR)) == ""
    live_tuples = [e.live_tuples for e in run.events() if isinstance(e, BatchCommitted)]
    assert sum(live_tuples[-1]) < 300
    again = StreamJoin.resume(tmp_path / "run", streams, availableNow=True)
    assert again.awaitTermination()
    assert again.config.time == "ts" and again.config.lateness_microseconds == (MINUTE, MINUTE)


def test_arguments_precede_the_watermark(spark: SparkSession) -> None:
    plain = spark.readStream.format("rate").load().withColumn("at", F.col("timestamp"))
    marked = plain.withWatermark("timestamp", "10 seconds")
    on = "a.value = b.value AND b.at = a.at"
    join = StreamJoin({"a": marked, "b": plain}, on, time="at", lateness={"b": "5 s"})
    assert join.config.event_time_columns == {"a": "at", "b": "at"}
    assert join.config.lateness_microseconds == (0, 5_000_000)
    said = [row[2] for row in join.explain().rows if row[0] == "watermark"]
    assert said == [
        "the event time of a is at, but its frame has a watermark on timestamp, which is not used"
    ]
    part = StreamJoin({"a": marked, "b": plain}, "a.value = b.value", windows="unbounded")
    assert part.config.event_time_columns == {"a": "timestamp"}
    short = StreamJoin({"a": marked, "b": marked}, "a.timestamp = b.timestamp", lateness="1 s")
    assert [row[2] for row in short.explain().rows if row[0] == "watermark"] == [
        f"the lateness of {a} is 1 s, shorter than the 10 s of its frame's watermark, so that "
        "later tuples may miss partners"
        for a in "ab"
    ]


def test_two_watermarks_need_a_name(spark: SparkSession) -> None:
    ticks = spark.readStream.format("rate").load()
    two = ticks.withColumnRenamed("timestamp", "t").withWatermark("t", "1 second")
    two = two.selectExpr("t", "t AS u", "value")
    if len([f for f in two.schema if "spark.watermarkDelayMs" in f.metadata]) == 2:
        with pytest.raises(ValueError, match="stream a has watermarks on t and u; name its"):
            StreamJoin({"a": two, "b": ticks}, "a.value = b.value")


@pytest.mark.parametrize(
    ("on", "more", "message"),
    [
        ("a.k = b.k", {}, "every tuple of a is held for ever, as the join has no event time"),
        (
            "a.k = b.k AND b.ts >= a.ts",
            {"time": "ts"},
            "every tuple of a is held for ever, as nothing bounds how much later b.ts may be; add "
            "a bound such as b.ts <= a.ts + INTERVAL 1 HOUR, give windows=, or ask for it by "
            'windows="unbounded" (about ',
        ),
        (
            "a.k = b.k AND b.ts <= a.ts",
            {"time": "ts", "windows": {"a": "unbounded"}},
            "every tuple of b is held for ever, as nothing bounds how much later a.ts may be",
        ),
    ],
)
def test_unbounded_state_is_asked_for(
    spark: SparkSession, tmp_path: Path, on: str, more: dict[str, object], message: str
) -> None:
    join = StreamJoin({a: live(spark, tmp_path, a) for a in "ab"}, on, Centralized(), **more)  # type: ignore[arg-type]
    with pytest.raises(ValueError) as refused:
        join.start(tmp_path / "run", availableNow=True)
    assert str(refused.value).startswith(message)
    assert not (tmp_path / "run").exists()
    check_bounded(StreamJoin(create_frames(spark, STREAMS), on, Centralized(), **more)._join)  # type: ignore[arg-type]


@pytest.mark.parametrize("executor", ["process", "spark"])
def test_a_stream_is_not_held_once_the_static_one_has_ended(
    spark: SparkSession, tmp_path: Path, executor: str
) -> None:
    streams = {"a": live(spark, tmp_path, "a"), "b": create_frames(spark, STREAMS)["b"]}
    join = StreamJoin(streams, "a.k = b.k", HashPartition(2), check=True, executor=executor)
    run = join.start(tmp_path / "run", batches=2, availableNow=True)
    assert run.awaitTermination()
    assert describe_difference(committed_ids(run), compute_expected(STREAMS, "a.k = b.k")) == ""
    a, b = [e for e in run.events() if isinstance(e, BatchCommitted)][-1].live_tuples
    assert a < 100 and b == sum(k is not None for k in STREAMS["b"]["k"].to_pylist())
    assert run._engine.state.ended == (False, True)
    run.close()
    assert run._engine.state.ended == (True, True) and not run._engine.state.blocks
    assert describe_difference(committed_ids(run), compute_expected(STREAMS, "a.k = b.k")) == ""
    with pytest.raises(ValueError, match="was closed after batch .*, so it takes no more tuples"):
        join.start(tmp_path / "run", batches=2, availableNow=True)


@pytest.mark.parametrize("executor", ["process", "spark"])
def test_a_static_stream_without_event_time_comes_whole_in_the_first_batch(
    spark: SparkSession, tmp_path: Path, executor: str
) -> None:
    streams = {"a": live(spark, tmp_path, "a"), "b": create_frames(spark, STREAMS)["b"].drop("ts")}
    join = StreamJoin(streams, "a.k = b.k", HashPartition(2), time={"a": "ts"}, executor=executor)
    run = join.start(tmp_path / "run", availableNow=True)
    assert run.awaitTermination()
    assert describe_difference(committed_ids(run), compute_expected(STREAMS, "a.k = b.k")) == ""
    received = [e.received_tuples[1] for e in run.events() if isinstance(e, BatchCommitted)]
    assert received[0] > 0 and not any(received[1:])
    last = [e for e in run.events() if isinstance(e, BatchCommitted)][-1]
    assert last.live_tuples[0] == last.received_tuples[0] and run.watermark["a"] is None


def test_a_filter_of_a_stream_comes_before_the_join(spark: SparkSession, tmp_path: Path) -> None:
    """It filters a streaming and a replayed stream, and also applies after a resume."""
    streams = {"a": live(spark, tmp_path, "a"), "b": create_frames(spark, STREAMS)["b"]}
    where = {"a": "a.id % 3 = 0", "b": "k > 1"}
    join = StreamJoin(streams, "a.k = b.k", Centralized(), where=where)
    run = join.start(tmp_path / "run", batches=2, availableNow=True)
    assert run.awaitTermination()
    on = "a.k = b.k AND a.id % 3 = 0 AND b.k > 1"
    assert describe_difference(committed_ids(run), compute_expected(STREAMS, on)) == ""
    kept = sum(id % 3 == 0 for id in STREAMS["a"]["id"].to_pylist())
    assert run._engine.state.received[0] <= kept
    again = StreamJoin.resume(tmp_path / "run", streams, availableNow=True)
    assert again.awaitTermination() and again.config.where == where


def test_shared_joins_are_bounded_by_their_queries(spark: SparkSession, tmp_path: Path) -> None:
    shared = SharedJoin({a: live(spark, tmp_path, a) for a in "ab"}, "a.k = b.k", "ts")
    shared.add("q", "40 seconds")
    check_bounded(shared._join)


@pytest.mark.parametrize(
    ("way", "how"),
    [("process", "inner"), ("one task", "inner"), ("two stages", "left")],
)
def test_irregular_tuples_are_rows_whatever_the_executor(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, how: str
) -> None:
    monkeypatch.setattr(spark_executor, "_SMALL", 0 if way == "two stages" else 1 << 40)
    streams = {alias: spark.createDataFrame(STREAM.to_pandas()) for alias in "ab"}
    streams = {a: f.withColumn("ts", F.expr("ts - interval 0 seconds")) for a, f in streams.items()}
    executor = "process" if way == "process" else "spark"
    more: dict[str, Any] = {"time": "ts", "executor": executor, "partitions": 2, "how": how}
    bounds = {"windows": "20 seconds"} if way == "one task" else {}
    on = "a.k = b.k" if bounds else IRREGULAR
    join = StreamJoin(streams, on, HashPartition(4), **bounds, **more)
    run = join.start(tmp_path / "run", batches="batch", durability="process")
    assert run.awaitTermination()
    rows = run.late().selectExpr("*", "coalesce(row.a.id, row.b.id) as id").collect()
    found = Counter((r["batch"], r["stream"], r["reason"], r["id"]) for r in rows)
    assert found == find_expected()
    assert {r["behind"] for r in rows if r["reason"] == "late"} == {timedelta(seconds=30)}
    assert all((r["row"]["a"] is None) == (r["stream"] == "b") for r in rows)


def test_an_unmatched_tuple_of_a_silent_stream_is_answered(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last files bring tuples that make others final; nothing comes after them."""
    monkeypatch.setattr(JoinRun, "silence_seconds", 0.5)
    streams = {alias: live(spark, tmp_path, alias) for alias in "ab"}
    join = StreamJoin(streams, NEAR, HashPartition(2), time="ts", how="left", check=True)
    run = join.start(tmp_path / "run", processingTime="0 seconds")

    def is_answered() -> bool:
        # A slow machine may run an empty batch before the last files too.
        received = [e.received_tuples for e in run.events() if isinstance(e, BatchCommitted)]
        return len([rows for rows in received if any(rows)]) == 5 and received[-1] == (0, 0)

    wait_until(is_answered, "an empty batch after the last files", 90)
    assert not run._engine.has_due_answers() and run.isActive
    before = run.results().where("b is null").count()
    run.stop()
    run.close()
    rows = run.results()
    pairs = rows.where("b is not null").select("a.id", F.col("b.id").alias("b")).collect()
    assert describe_difference(Counter(map(tuple, pairs)), compute_expected(STREAMS, NEAR)) == ""
    assert rows.where("b is null").count() > before
    assert rows.select("a.id").distinct().count() == STREAMS["a"].num_rows
