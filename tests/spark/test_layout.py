"""The receiver reconstructs from the streams' union the rows that Spark would have produced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from braid.core.reserved_columns import NO_TIME, ROUTING, TIME
from braid.execution.spark_to_arrow import collect_batch
from braid.kernels.hashing import xxhash64
from braid.kernels.join_spec import StreamLayout
from braid.papers.baselines.hash_partition import HashPartition
from braid.stream_join import StreamJoin
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

ENDS = [0, 1, -1, 7, -(2**31), 2**31, -(2**63), 2**63 - 1, 6_148_914_691_236_517_205]


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1, 2**31, 2**63 - 1])
def test_the_hash_is_that_of_spark(spark: SparkSession, seed: int) -> None:
    numbers = np.array([*ENDS, *np.random.default_rng(seed).integers(-(2**63), 2**63 - 1, 500)])
    rows = spark.createDataFrame([(n,) for n in numbers.tolist()], "n long")
    reported = rows.select(F.xxhash64(F.lit(seed), "n").alias("h")).toArrow()["h"].to_pylist()
    assert xxhash64(seed, numbers).tolist() == reported


ROWS = [(n, k, s) for n, k in enumerate([3, None, -5, 0, 3, None]) for s in (-1, None, 90_000_000)]
KINDS = {"byte": "tinyint", "int": "int", "long": "bigint"}


def union(
    spark: SparkSession, kind: str, **settings: Any
) -> tuple[DataFrame, StreamLayout, list[Any]]:
    """Return the union of two streams with one kind of key, the first one's layout, and what is
    shipped.

    Shipped are the stream's number, its key and its time.
    """
    rows = spark.createDataFrame(ROWS, "n int, k bigint, s long").select(
        "n", F.col("k").cast(kind).alias("k"), F.timestamp_micros("s").alias("ts")
    )
    windows = {"windows": "5 minutes"} if settings.pop("timed") else {}
    streams = {"a": rows, "b": rows.limit(1)}
    join = StreamJoin(streams, "a.k = b.k", HashPartition(8), time="ts", **windows, **settings)
    frame, (layout, _) = join.source.union_streams(join._join, join.streams)
    some = [(n, k, s) for n, k, s in ROWS if k is not None or (windows and s is None)]
    return frame, layout, some


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_key_are_left_out_and_the_others_are_routed(
    spark: SparkSession, kind: str, timed: bool
) -> None:
    """Rows without an event time that windows need are shipped too: their receiver counts them."""
    frame, layout, some = union(spark, kind, timed=timed, seed=5)
    assert ROUTING not in frame.columns and layout.routing is not None
    found = list[Any]()
    for rows in collect_batch(frame):
        mine = np.flatnonzero(rows.column("__stream").to_numpy() == 0)
        flat = layout.extract_rows(rows, mine)
        found += flat.select(["n", "k", TIME, ROUTING]).to_pylist()
    assert [(r["n"], r["k"], r[TIME]) for r in found] == [
        (n, k, s if timed or s is not None else NO_TIME) for n, k, s in some
    ]
    keyed = [(k,) for _, k, _ in some if k is not None]
    keys = spark.createDataFrame(keyed, "k bigint").select(
        F.pmod(F.xxhash64(F.lit(5), "k"), F.lit(8)).alias("h")
    )
    routed = [r[ROUTING] for r in found if r["k"] is not None]
    assert routed == keys.toArrow()["h"].to_pylist()
    assert len({r[ROUTING] for r in found}) > 1


def test_rows_without_a_key_do_not_come(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, 2), (None, 0)], "k int, v int")
    join = StreamJoin({"a": rows, "b": rows}, "a.k = b.k AND 10 div a.v = b.v", HashPartition(2))
    frame, _ = join.source.union_streams(join._join, join.streams)
    came = [r for r in frame.toArrow().to_pylist() if r["__stream"] == 0]
    assert len(came) == 1
