"""A static DataFrame replayed as a stream: one Parquet file for each micro-batch, in order."""

from __future__ import annotations

import os
import shutil
import time as clock
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema


def prepare(
    frames: Mapping[str, DataFrame], folder: Path, times: Mapping[str, str], batches: int | str
) -> int:
    """Write the frames under ``folder``/ALIAS, one file per micro-batch, and return the number of
    micro-batches.

    ``batches`` is how many there shall be: cut at quantiles of event time over all frames, so that
    the streams advance together (without time columns, ``times`` by alias, tuples are spread by a
    hash). Or it names an integer column that gives the number of each tuple's micro-batch, counted
    from 0; that column is then no part of the stream.
    """
    shutil.rmtree(folder, ignore_errors=True)
    cuts = _cuts(frames, times, batches) if isinstance(batches, int) and times else []
    count = (
        batches if isinstance(batches, int) else 1 + max(_last(f, batches) for f in frames.values())
    )
    for alias, frame in frames.items():
        target = folder / alias
        numbered = frame.withColumn("__batch", _number(frame, times.get(alias), batches, cuts))
        if isinstance(batches, str):
            numbered = numbered.drop(batches)
        written = folder / f".{alias}"
        writer = (
            numbered.repartition(F.col("__batch"))
            .write.partitionBy("__batch")
            .option("maxRecordsPerFile", 0)
        )
        writer.parquet(str(written))
        target.mkdir()
        _arrange(
            written, target, count, to_arrow_schema(numbered.drop("__batch").schema, timezone="UTC")
        )
        shutil.rmtree(written)
    return count


def check(alias: str, frame: DataFrame, column: str) -> None:
    """Raise ValueError unless the column exists and numbers every tuple's micro-batch, from 0."""
    if column not in frame.columns:
        raise ValueError(f"stream {alias} has no column {column!r} that numbers its micro-batches")
    number = F.col(f"`{column}`")
    if not isinstance(frame.schema[column].dataType, T.IntegralType):
        raise ValueError(
            f"the column {alias}.{column} is of type "
            f"{frame.schema[column].dataType.simpleString()}; to number micro-batches it "
            "must be an integer"
        )
    wrong = frame.filter(number.isNull() | (number < 0)).select(number).first()
    if wrong is not None:
        raise ValueError(
            f"the column {alias}.{column} numbers micro-batches and holds {wrong[0]}; it must "
            "count from 0"
        )


def extent(frame: DataFrame, time: str | None) -> tuple[int, int]:
    """How many rows there are, and the microseconds from the earliest to the latest event time."""
    times = F.lit(0) if time is None else _micros(time)
    found = frame.agg(F.count(F.lit(1)), F.coalesce(F.max(times) - F.min(times), F.lit(0))).first()
    assert found is not None
    return int(found[0]), int(found[1])


def hashable(frame: DataFrame) -> list[Column]:
    """The columns that Spark can hash: all but maps, variants, and what holds them."""
    return [F.col(f"`{f.name}`") for f in frame.schema.fields if _hashable(f.dataType)]


def identity(frame: DataFrame) -> list[str]:
    """Spark SQL of what tells tuples apart by its hash. Alone, the hash of a tuple skips NULLs and
    does not know where an array ends, and there is none of a map.
    """
    return [text for f in frame.schema.fields for text in _identity(f)]


def _identity(f: T.StructField) -> list[str]:
    name = f"`{f.name}`"
    whole = [name] if _hashable(f.dataType) else []
    nested = isinstance(f.dataType, (T.ArrayType, T.StructType, T.MapType, T.VariantType))
    return [
        *whole,
        *([f"cast({name} as string)"] if nested else []),
        *([f"{name} is null"] if f.nullable else []),
    ]


def _hashable(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return all(_hashable(f.dataType) for f in kind.fields)
    return (
        _hashable(kind.elementType)
        if isinstance(kind, T.ArrayType)
        else not isinstance(kind, (T.MapType, T.VariantType))
    )


def _number(frame: DataFrame, time: str | None, batches: int | str, cuts: list[int]) -> Column:
    if isinstance(batches, str):
        return F.col(f"`{batches}`").cast("int")
    if time is None:
        return F.pmod(F.xxhash64(F.lit(0), *hashable(frame)), F.lit(batches)).cast("int")
    return cuts_below(_micros(time), cuts).cast("int")


def cuts_below(value: Column, cuts: Sequence[int], low: int = 0) -> Column:
    """How many of the ascending ``cuts`` lie below ``value``, as a balanced tree of comparisons;
    NULL counts none.
    """
    if not cuts:
        return F.lit(low)
    middle = len(cuts) // 2
    below, above = (
        cuts_below(value, cuts[:middle], low),
        cuts_below(value, cuts[middle + 1 :], low + middle + 1),
    )
    return F.when(value > cuts[middle], above).otherwise(below)


def _micros(time: str) -> Column:
    return F.unix_micros(F.col(f"`{time}`").cast("timestamp"))


def _cuts(frames: Mapping[str, DataFrame], named: Mapping[str, str], batches: int) -> list[int]:
    """Event times at which a new micro-batch begins: quantiles over all frames."""
    shares = [k / batches for k in range(1, batches)]
    if not shares:
        return []
    times = reduce(
        DataFrame.unionAll, (f.select(_micros(named[a]).alias("t")) for a, f in frames.items())
    )
    row = times.select(F.percentile_approx("t", F.array(*map(F.lit, shares)), 10_000)).first()
    return sorted(set(row[0])) if row is not None and row[0] is not None else []


def _last(frame: DataFrame, column: str) -> int:
    row = frame.agg(F.max(f"`{column}`")).first()
    return -1 if row is None or row[0] is None else int(row[0])


def _arrange(written: Path, target: Path, count: int, schema: pa.Schema) -> None:
    """One file per micro-batch, empty where there is nothing; Spark reads files in the order of
    their modification times.
    """
    began = clock.time() - count
    for k in range(count):
        file = target / f"{k:06d}.parquet"
        parts = list((written / f"__batch={k}").glob("*.parquet"))
        if parts:
            parts[0].rename(file)
        else:
            pq.write_table(schema.empty_table(), file)
        os.utime(file, (began + k, began + k))
