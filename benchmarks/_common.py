"""What the side-by-side programs share: input, a scratch folder, the time of each micro-batch, a
table.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pandas as pd
from braid.join import JoinRun
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery


def arguments(about: str, **defaults: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about)
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"default {value}")
    return parser.parse_args()


@contextmanager
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="braid-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def events(spark: SparkSession, rows: int, seed: int, keys: int, seconds: float) -> DataFrame:
    """``rows`` tuples (k, ts, v, x), evenly spread over ``seconds`` of event time, with one of
    ``keys`` values of k each.
    """
    step = int(seconds * 1e6 / rows)
    return spark.range(rows).select(
        F.pmod(F.xxhash64(F.lit(seed), "id"), F.lit(keys)).alias("k"),
        F.timestamp_micros(F.col("id") * F.lit(step)).alias("ts"),
        F.col("id").alias("v"),
        F.rand(seed).alias("x"),
    )


def files(frame: DataFrame, folder: Path, batches: int, rows: int) -> None:
    """One Parquet file per micro-batch, in the order in which Spark's file source will read
    them.
    """
    folder.mkdir(parents=True)
    for k in range(batches):
        part = frame.filter(
            F.col("v").between(k * rows // batches, (k + 1) * rows // batches - 1)
        ).coalesce(1)
        part.write.parquet(str(folder / ".part"), mode="overwrite")
        file = next((folder / ".part").glob("*.parquet")).rename(folder / f"{k:04d}.parquet")
        os.utime(file, (1e9 + k, 1e9 + k))
    shutil.rmtree(folder / ".part")


def both(spark: SparkSession, folder: Path, args: argparse.Namespace) -> None:
    """Two streams, "a" and "b", as files under ``folder``: ten minutes of event time, each key
    about three times.
    """
    for seed, name in enumerate("ab"):
        files(
            events(spark, args.rows, seed, args.rows * 3 // 10, 600),
            folder / name,
            args.batches,
            args.rows,
        )


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


STORES = {
    "Spark, in "
    "memory": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "Spark, RocksDB": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}


def builtin(
    spark: SparkSession, joined: DataFrame, store: str, out: Path
) -> tuple[list[float], int]:
    """Seconds per batch and the number of results of a streaming query of Spark's own, with one of
    its state stores.
    """
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", STORES[store])
    spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
    writer = joined.writeStream.format("parquet").option(
        "checkpointLocation", str(out / "checkpoint")
    )
    query = writer.trigger(availableNow=True).start(str(out / "results"))
    query.awaitTermination()
    return seconds(query), spark.read.parquet(str(out / "results")).count()


def seconds(query: StreamingQuery | JoinRun) -> list[float]:
    """Wall-clock seconds of each micro-batch that held tuples, as Spark reports them (the whole
    trigger, sources and logs too).
    """
    spark_query = query.query if isinstance(query, JoinRun) else query
    return [
        p.durationMs["triggerExecution"] / 1000
        for p in spark_query.recentProgress
        if p.numInputRows > 0
    ]


def steady(times: list[float]) -> float:
    """The median batch, without the first, in which everything is compiled."""
    return median(times[1:])


def show(title: str, table: pd.DataFrame) -> None:
    print(f"\n{title}\n{table.to_string(index=False)}", flush=True)
