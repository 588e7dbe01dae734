"""Braid's left join beside Spark's own left outer join, for ``kinds``.

Both read the same files, write every result to Parquet and keep durable state. Spark's join runs in
a process of its own, in a plain session, with two shuffle partitions and its fastest durable store:
RocksDB with changelog checkpoints, without row counting, and version 4 of the join's state. At the
end of the input Spark runs one more batch without rows, and reports the rows that are unmatched by
then. The pairs of both must therefore be equal, and each unmatched row of Braid's must be one of
Spark's.
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
from _common import (
    Measure,
    find_warm_median,
    read_batch_seconds,
    read_stream,
    run_builtin_join,
    write_two_streams,
)
from _plain_spark import make_plain_session
from braid import HashPartition
from braid.spark_session import session
from braid.stream_join import StreamJoin
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

STORE = "Spark, RocksDB"
WINDOW = 60
"""Seconds that two joined tuples may be apart."""
_NEAR = (
    f"a.k = b.k AND a.ts > b.ts - INTERVAL {WINDOW} SECONDS "
    f"AND a.ts < b.ts + INTERVAL {WINDOW} SECONDS"
)


def run_spark(folders: Sequence[Path]) -> list[float]:
    """Run Spark's own left outer join in another process, once for each folder.

    Return the seconds of the batches of the last.
    """
    command = [sys.executable, __file__, *map(str, folders)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    batch_seconds: list[float] = json.loads(done.stdout.splitlines()[-1])
    return batch_seconds


def join_with_spark(spark: SparkSession, folder: Path) -> list[float]:
    """Run Spark's own left outer join, and return the seconds of its batches."""
    a, b = (read_stream(spark, folder / s).withWatermark("ts", "0 seconds").alias(s) for s in "ab")
    joined = a.join(b, F.expr(_NEAR), "leftOuter")
    missing = F.when(F.col("b.k").isNotNull(), F.struct("b.*"))
    rows = joined.select(F.struct("a.*").alias("a"), missing.alias("b"))
    return run_builtin_join(spark, rows, STORE, folder / "spark")[0]


def run_braid(spark: SparkSession, folder: Path) -> list[float]:
    """Run Braid's left join, and return the seconds of its batches."""
    streams = {s: read_stream(spark, folder / s) for s in "ab"}
    join = StreamJoin(streams, _NEAR, HashPartition(2), time="ts", how="left")
    run = join.start(folder / "braid", availableNow=True)
    run.awaitTermination()
    return read_batch_seconds(run)


def compare_results(folder: Path) -> tuple[int, int, int]:
    """Return the number of pairs, and of the unmatched rows of Spark's and of Braid's join.

    Raises AssertionError if their pairs differ, or if Braid has an unmatched row that Spark lacks.
    """
    with duckdb.connect() as database:
        for name in ("spark", "braid"):
            files = folder / name / "results" / "*.parquet"
            database.execute(f"CREATE TABLE {name} AS SELECT a.v AS a, b.v AS b FROM '{files}'")
        pairs = "SELECT a, b FROM {} WHERE b IS NOT NULL"
        alone = "SELECT a FROM {} WHERE b IS NULL"
        for one, other, rows in (
            ("spark", "braid", pairs),
            ("braid", "spark", pairs),
            ("braid", "spark", alone),
        ):
            query = f"{rows.format(one)} EXCEPT ALL {rows.format(other)}"
            assert not database.sql(query).fetchall(), f"{one} has rows that {other} has not"
        counts = [
            database.sql(f"SELECT count(*) FROM ({rows})").fetchall()[0][0]
            for rows in (pairs.format("braid"), alone.format("spark"), alone.format("braid"))
        ]
    return counts[0], counts[1], counts[2]


def measure_left(rows: int, batches: int, folder: Path) -> dict[str, Any]:
    """Return the line of both joins, from the second of two rounds; the first compiles."""
    spark = session("benchmark", spark_driver_memory="4g")
    parts = [folder / f"round {number}" for number in (1, 2)]
    for part, size in zip(parts, (rows // 10, rows), strict=True):
        part.mkdir()
        write_two_streams(spark, part, Namespace(rows=size, batches=batches))
        braid_seconds = run_braid(spark, part)
    spark.stop()
    spark_seconds = run_spark(parts)
    pairs, spark_alone, braid_alone = [compare_results(part) for part in parts][-1]
    return {
        "rows a side": rows,
        "pairs": pairs,
        "unmatched, Spark": spark_alone,
        "unmatched, Braid": braid_alone,
        "Braid, s/batch": find_warm_median(braid_seconds),
        "Spark, s/batch": find_warm_median(spark_seconds),
    }


def list_left_measures(line: dict[str, Any]) -> list[Measure]:
    """Return the ratio of the seconds of a batch."""
    ratio = line["Braid, s/batch"] / line["Spark, s/batch"]
    return [Measure("left: Braid / Spark's left outer, RocksDB", ratio, 0.5, most=True)]


if __name__ == "__main__":
    plain = make_plain_session()
    print(json.dumps([join_with_spark(plain, Path(folder)) for folder in sys.argv[1:]][-1]))
    plain.stop()
