"""A static DataFrame replayed as a stream: one Parquet file for each micro-batch, in order."""

from __future__ import annotations

import os
import shutil
import time as clock
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema


def prepare(frames: Mapping[str, DataFrame], folder: Path, time: str | None, batches: int | str) -> int:
    """Write the frames under ``folder``/ALIAS, one file per micro-batch, and return the number of micro-batches.

    ``batches`` is how many there shall be: cut at quantiles of event time over all frames, so that the streams advance
    together (without a time column, tuples are spread by a hash). Or it names an integer column that gives the number of
    each tuple's micro-batch, counted from 0; that column is then no part of the stream.
    """
    shutil.rmtree(folder, ignore_errors=True)
    number = _numbers(frames, time, batches)
    count = batches if isinstance(batches, int) else 1 + max(_last(f, number) for f in frames.values())
    for alias, frame in frames.items():
        target = folder / alias
        numbered = frame.withColumn("__batch", number)
        if isinstance(batches, str):
            numbered = numbered.drop(batches)
        written = folder / f".{alias}"
        numbered.repartition(F.col("__batch")).write.partitionBy("__batch").parquet(str(written))
        target.mkdir()
        _arrange(written, target, count, to_arrow_schema(numbered.drop("__batch").schema, timezone="UTC"))
        shutil.rmtree(written)
    return count


def _numbers(frames: Mapping[str, DataFrame], time: str | None, batches: int | str) -> Column:
    if isinstance(batches, str):
        return F.col(batches).cast("int")
    if time is None:
        return F.pmod(F.xxhash64("*"), F.lit(batches)).cast("int")
    times: DataFrame | None = None
    for frame in frames.values():
        mine = frame.select(F.col(time).cast("timestamp").alias("t"))
        times = mine if times is None else times.unionAll(mine)
    assert times is not None
    shares = [k / batches for k in range(1, batches)]
    row = times.select(F.percentile_approx(F.unix_micros("t"), F.array(*map(F.lit, shares)), 10_000)).first() if shares else None
    cuts = sorted(set(row[0])) if row is not None and row[0] is not None else []
    micros = F.unix_micros(F.col(time).cast("timestamp"))
    return F.coalesce(sum((F.when(micros >= c, 1).otherwise(0) for c in cuts), F.lit(0)), F.lit(0)).cast("int")


def _last(frame: DataFrame, number: Column) -> int:
    row = frame.agg(F.max(number), F.min(number)).first()
    assert row is not None
    if row[1] is not None and row[1] < 0:
        raise ValueError(f"the column that numbers the micro-batches holds {row[1]}; it must count from 0")
    return -1 if row[0] is None else int(row[0])


def _arrange(written: Path, target: Path, count: int, schema: pa.Schema) -> None:
    """One file per micro-batch, empty where there is nothing; Spark reads files in the order of their modification times."""
    began = clock.time() - count
    for k in range(count):
        file = target / f"{k:06d}.parquet"
        parts = list((written / f"__batch={k}").glob("*.parquet"))
        if parts:
            parts[0].rename(file)
        else:
            pq.write_table(schema.empty_table(), file)
        os.utime(file, (began + k, began + k))
