"""Spark's frames joined in a run that lives in an object store."""

from __future__ import annotations

import uuid

import clouded
import pytest
from braid import SharedJoin, StreamJoin
from braid.engine.bucket import bucket
from oracle import differ, found, frames, until
from pyspark.sql import SparkSession
from scatter import Scatter


def test_static_streams_go_on_from_a_bucket(spark: SparkSession, seaweed: str) -> None:
    """Stopped, and resumed from an empty mirror, by the other executor: Spark begins its own
    micro-batches anew, and those that are committed are skipped.
    """
    url, streams = f"{seaweed}/{uuid.uuid4().hex}", frames(spark, clouded.STREAMS)
    join = StreamJoin(streams, clouded.ON, Scatter(), check=True, executor="spark")
    run = join.start(url, batches="batch", pace=0.2)
    until(lambda: run.status["batch"] >= 2, "two batches", 120)
    run.stop()
    with pytest.raises(ValueError, match=f"^the run in {url} has no stream of results"):
        run.results_stream()
    done = run.status["batch"]
    assert len([n for n in bucket(url).names("commits") if "state" not in n]) == done + 1
    again = StreamJoin.resume(url, streams, executor="process")
    again.awaitTermination()
    assert again.status["batch"] == 4 and differ(found(again), clouded.WANTED) == ""
    assert [e.executor for e in again.store.history() if hasattr(e, "executor")] == (
        ["spark"] * done + ["process"] * (4 - done)
    )


def test_what_spark_cannot_run_in_a_bucket_is_refused(spark: SparkSession) -> None:
    url = f"memory:///{uuid.uuid4().hex}"
    streams = frames(spark, clouded.STREAMS)
    with pytest.raises(ValueError, match="in the memory of this process, which Spark's workers"):
        StreamJoin(streams, clouded.ON, Scatter()).start(url)
    endless = spark.readStream.format("rate").load().withColumnsRenamed({"value": "k"})
    with pytest.raises(ValueError, match=f"stream b does not end, .* cannot be in {url}"):
        StreamJoin({**streams, "b": endless}, clouded.ON, Scatter()).start(url)
    assert bucket(url).names() == {}
    shared = SharedJoin(streams, clouded.ON, "ts")
    shared.add("q", "60 seconds")
    with pytest.raises(ValueError, match="is no folder of this machine"):
        shared.start(url)
