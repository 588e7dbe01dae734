"""Streaming sources: arriving files, Spark's rate source, and static streams beside them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from braid.core.run_events import BatchCommitted
from braid.errors import DamagedRunError
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.theta.grid import AdaptiveGrid
from braid.stream_join import JoinRun, StreamJoin
from oracle import committed_ids, compute_expected, describe_difference, make_tables, wait_until
from pyspark.sql import DataFrame, SparkSession
from scatter import Scatter

STREAMS = make_tables("ab", {"a": 200, "b": 300}, seed=21, batches=6)


def put(folder: Path, alias: str, first: int, last: int) -> None:
    """Write one Parquet file per batch elsewhere and move it in, as a file source expects."""
    rows = STREAMS[alias]
    (folder / alias).mkdir(parents=True, exist_ok=True)
    for batch in range(first, last):
        mine = rows.filter([b == batch for b in rows["batch"].to_pylist()])
        pq.write_table(mine, folder / f".{alias}{batch}")
        os.utime(
            folder / f".{alias}{batch}", (1_700_000_000 + batch,) * 2
        )  # files are read in this order
        (folder / f".{alias}{batch}").rename(folder / alias / f"{batch}.parquet")


def live(spark: SparkSession, folder: Path, alias: str) -> DataFrame:
    schema = spark.createDataFrame(STREAMS[alias].slice(0, 0)).schema
    return (
        spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / alias))
    )


def committed(run: JoinRun) -> list[BatchCommitted]:
    return [e for e in run.events() if isinstance(e, BatchCommitted)]


def test_files_that_come_while_the_run_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """The stream is stopped and resumed after more files arrive: nothing is read twice or left
    out.
    """
    on, windows = "abs(a.n - b.n) <= 20", {"a": 170, "b": 130}
    put(tmp_path, "a", 0, 3)
    put(tmp_path, "b", 0, 3)
    known = [
        b
        for rows in STREAMS.values()
        for b in rows.filter(rows["n"].is_valid())["batch"].to_pylist()
    ]
    streams = {alias: live(spark, tmp_path, alias) for alias in STREAMS}
    spans = {a: f"{w} seconds" for a, w in windows.items()}
    run = StreamJoin(streams, on, AdaptiveGrid(4, epsilon=0.5), spans, time="ts", check=True).start(
        tmp_path / "run"
    )
    wait_until(lambda: run.status["tuples"] == sum(b < 3 for b in known), "three files")
    run.stop()
    assert (run.status["state"], run.exception()) == ("stopped", None)
    put(tmp_path, "a", 3, 6)
    put(tmp_path, "b", 3, 6)
    again = StreamJoin.resume(tmp_path / "run", streams, availableNow=True)
    again.awaitTermination()
    assert again.status["tuples"] == len(known)
    assert len(committed(again)) >= 6
    assert describe_difference(committed_ids(again), compute_expected(STREAMS, on, windows)) == ""


def test_a_static_stream_beside_a_live_one(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "a", 0, 6)
    streams = {"a": live(spark, tmp_path, "a"), "b": spark.createDataFrame(STREAMS["b"])}
    run = StreamJoin(streams, "a.k = b.k", Scatter(), check=True).start(
        tmp_path / "run", batches=4, availableNow=True
    )
    run.awaitTermination()
    assert run.status["batches"] is None
    assert len(committed(run)) == 6
    assert describe_difference(committed_ids(run), compute_expected(STREAMS, "a.k = b.k")) == ""


def test_the_rate_source_stopped_and_resumed(spark: SparkSession, tmp_path: Path) -> None:
    """A counter is joined with itself doubled: v meets w = v / 2 once, up to each run's last
    commit.
    """
    counter = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 50).load()
    streams = {
        "a": counter.selectExpr("value AS id", "timestamp AS ts"),
        "b": counter.selectExpr("value AS id", "timestamp AS ts"),
    }
    join = StreamJoin(streams, "a.id = 2 * b.id", HashPartition(3), "unbounded", check=True)
    run = join.start(tmp_path / "run")
    for _ in range(2):
        before = run.status["batch"]
        wait_until(lambda run=run, before=before: run.status["batch"] > before + 1, "two batches")
        run.stop()
        assert (run.status["state"], run.exception()) == ("stopped", None)
        a, b = committed(run)[-1].total_received_tuples
        assert a == b == 50 * run.status["batch"]
        assert committed_ids(run) == Counter((2 * w, w) for w in range((a + 1) // 2))
        run = StreamJoin.resume(tmp_path / "run", streams)
    run.stop()


def test_the_clock_driven_rate_source(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's rate source produces a batch per second; each committed value meets itself once."""
    ticks = (
        spark.readStream.format("rate")
        .option("rowsPerSecond", 200)
        .load()
        .selectExpr("value AS id", "timestamp AS ts")
    )
    streams = {"a": ticks, "b": ticks}
    join = StreamJoin(
        streams,
        "a.id = b.id",
        AdaptiveGrid(4),
        {"a": "1 hour", "b": "1 hour"},
        time="ts",
        check=True,
    )
    run = join.start(tmp_path / "run")
    wait_until(lambda: run.status["tuples"] >= 400, "400 tuples")
    run.stop()
    again = StreamJoin.resume(tmp_path / "run", streams)
    wait_until(lambda: again.status["tuples"] > run.status["tuples"], "more tuples")
    again.stop()
    a, b = committed(again)[-1].total_received_tuples
    assert a == b
    assert committed_ids(again) == Counter((v, v) for v in range(a))


def test_a_file_that_is_gone_once_it_was_listed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would read it as empty. The run fails, unless the session allows missing files."""
    for alias in "ab":
        put(tmp_path, alias, 0, 3)
    real, gone = JoinRun._check_input, tmp_path / "b" / "1.parquet"

    def check(run: JoinRun, number: int) -> None:
        if number == 1:
            gone.unlink()
        real(run, number)

    streams = {a: live(spark, tmp_path, a) for a in "ab"}
    join = StreamJoin(streams, "a.k = b.k", HashPartition(2), "unbounded")
    with monkeypatch.context() as patch:
        patch.setattr(JoinRun, "_check_input", check)
        run = join.start(tmp_path / "run", availableNow=True)
        with pytest.raises(
            DamagedRunError, match=f"^{gone} is gone, which Spark has listed for micro-batch 1"
        ):
            run.awaitTermination()
    assert run.store.log.committed_batches() == [0]
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        run = join.start(tmp_path / "run", availableNow=True)
        run.awaitTermination()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    rows = {a: t.filter([b < 3 for b in t["batch"].to_pylist()]) for a, t in STREAMS.items()}
    rows["b"] = rows["b"].filter([b != 1 for b in rows["b"]["batch"].to_pylist()])
    assert describe_difference(committed_ids(run), compute_expected(rows, "a.k = b.k")) == ""
