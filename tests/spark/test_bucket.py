"""Joins of Spark frames in a run that is stored in an object store."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import braid
import object_store_driver
import pyarrow.parquet as pq
import pytest
from braid import SharedJoin, StreamJoin
from braid.errors import DamagedRunError
from braid.execution.spark_executor import SparkExecutor
from braid.sources.spark_streams import SparkStreams
from braid.storage.object_store import open_object_store
from braid.storage.remote_medium import RemoteMedium
from oracle import committed_ids, create_frames, describe_difference, wait_until
from pyspark.sql import DataFrame, SparkSession
from scatter import Scatter


def test_static_streams_go_on_from_a_bucket(spark: SparkSession, seaweed: str) -> None:
    """The run is resumed from an empty mirror by the other executor.

    Spark restarts its micro-batches, and committed ones are skipped.
    """
    url, streams = (
        f"{seaweed}/{uuid.uuid4().hex}",
        create_frames(spark, object_store_driver.STREAMS),
    )
    join = StreamJoin(streams, object_store_driver.ON, Scatter(), check=True, executor="spark")
    run = join.start(url, batches="batch", pace=0.2)
    wait_until(lambda: run.status["batch"] >= 2, "two batches", 120)
    run.stop()
    with pytest.raises(ValueError, match=f"^the run in {url} has no stream of results"):
        run.results_stream()
    done = run.status["batch"]
    assert (
        len([n for n in open_object_store(url).list_objects("commits") if "state" not in n])
        == done + 1
    )
    again = StreamJoin.resume(url, streams, executor="process")
    again.awaitTermination()
    assert (
        again.status["batch"] == 4
        and describe_difference(committed_ids(again), object_store_driver.WANTED) == ""
    )
    assert again.results().count() == object_store_driver.WANTED.total(), "as Spark reads them"
    assert [
        e.executor for e in again.store.archive.committed_events() if hasattr(e, "executor")
    ] == (["spark"] * done + ["process"] * (4 - done))


def put(folder: Path, first: int, last: int) -> None:
    """Write the files of some batches, one per stream, as a file source expects them."""
    for alias, rows in object_store_driver.STREAMS.items():
        (folder / alias).mkdir(parents=True, exist_ok=True)
        for batch in range(first, last):
            mine = rows.filter([b == batch for b in rows["batch"].to_pylist()])
            pq.write_table(mine, made := folder / f".{alias}{batch}")
            os.utime(made, (1_700_000_000 + batch,) * 2)
            made.rename(folder / alias / f"{batch}.parquet")


def live(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    schemas = {
        a: spark.createDataFrame(t.slice(0, 0)).schema
        for a, t in object_store_driver.STREAMS.items()
    }
    return {
        alias: spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / alias))
        for alias, schema in schemas.items()
    }


def test_streams_that_do_not_end_are_read_on_from_a_bucket(
    spark: SparkSession, seaweed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver dies right after publishing batch 1's manifest, so Spark repeats that batch.

    The driver that lost the run continues at the manifest. Its workers do not see its disk, as on a
    cluster.
    """
    url = f"{seaweed}/{uuid.uuid4().hex}"
    put(tmp_path, 0, 2)
    real = RemoteMedium.put_new

    def dies(medium: RemoteMedium, name: str, body: bytes) -> None:
        real(medium, name, body)
        if name == "commits/000002.json":
            raise OSError("killed")

    monkeypatch.setattr(RemoteMedium, "put_new", dies)
    join = StreamJoin(
        live(spark, tmp_path),
        object_store_driver.ON,
        Scatter(),
        "unbounded",
        check=True,
        executor="process",
    )
    with pytest.raises(OSError, match="killed"):
        join.start(url, availableNow=True, trace="1 day").awaitTermination()
    monkeypatch.setattr(RemoteMedium, "put_new", real)
    execute = SparkExecutor.execute_batch

    def elsewhere(executor: SparkExecutor, frame: Any, batch: Any) -> Any:
        spec = replace(batch.spec, folder="/on/another/machine")
        return execute(executor, frame, replace(batch, spec=spec))

    monkeypatch.setattr(SparkExecutor, "execute_batch", elsewhere)
    for last in (3, 4):
        put(tmp_path, last - 1, last)
        more = {"executor": "spark", "availableNow": True, "trace": "1 day"}
        run = StreamJoin.resume(url, live(spark, tmp_path), **more)
        run.awaitTermination()
        assert run.store.log.committed_batches() == list(range(last))
    assert describe_difference(committed_ids(run), object_store_driver.WANTED) == ""
    assert braid.why(url, {"a": "id = 100000", "b": "true"}).verdict == "never arrived"
    monkeypatch.setattr(SparkStreams, "has_remote_hosts", lambda source: True)
    with pytest.raises(ValueError, match="whose disk Spark's workers do not see"):
        run.results()
    names = open_object_store(url).list_objects()
    kept = {n.partition("/")[2] for n in names if n.startswith("checkpoint/")}
    assert kept == {n.partition("/")[2] for n in names if n.startswith("commits/state")}
    open_object_store(url).delete_objects([f"checkpoint/{max(kept)}"])
    with pytest.raises(DamagedRunError, match=f"^{url}/checkpoint/{max(kept)} is missing$"):
        StreamJoin.resume(url, live(spark, tmp_path))


def test_what_spark_cannot_run_in_a_bucket_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"memory:///{uuid.uuid4().hex}"
    streams = create_frames(spark, object_store_driver.STREAMS)
    with pytest.raises(ValueError, match="in the memory of this process, which Spark's workers"):
        StreamJoin(streams, object_store_driver.ON, Scatter()).start(url)
    endless = spark.readStream.format("rate").load().withColumnsRenamed({"value": "k"})
    with pytest.raises(
        ValueError, match=f"stream b does not end and stream a is static, .* in {url}"
    ):
        StreamJoin({**streams, "b": endless}, object_store_driver.ON, Scatter()).start(url)
    assert open_object_store(url).list_objects() == {}
    monkeypatch.setattr(SparkStreams, "has_remote_hosts", lambda source: True)
    with pytest.raises(ValueError, match=f"copy of static streams that a run in {url} has on this"):
        StreamJoin(streams, object_store_driver.ON, Scatter()).start(url)
    shared = SharedJoin(streams, object_store_driver.ON, "ts")
    shared.add("q", "60 seconds")
    with pytest.raises(ValueError, match="is not a folder on this machine"):
        shared.start(url)
