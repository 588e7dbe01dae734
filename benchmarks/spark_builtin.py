"""The same windowed equi-join by Spark's own stream-stream join and by Braid: seconds per
micro-batch, and their ratio.

Both read the same files, write every result to Parquet and keep their state durable. Spark runs
with two shuffle partitions (the best for two cores) and each of its state stores in turn; RocksDB
with changelog checkpoints, its faster mode. All run ``rounds`` times, in turns, and the last round
counts: by then everything is compiled.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from _common import STORES, arguments, both, builtin, scratch, seconds, show, steady, stream
from braid import HashPartition
from braid.join import StreamJoin
from braid.spark_session import session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def join_of_two(spark: SparkSession, folder: Path, window: int) -> DataFrame:
    """Spark's own stream-stream join."""
    a, b = (stream(spark, folder / s).withWatermark("ts", "0 seconds").alias(s) for s in "ab")
    near = (
        f"a.k = b.k AND a.ts > b.ts - INTERVAL {window} SECONDS AND a.ts < b.ts + INTERVAL "
        f"{window} SECONDS"
    )
    return a.join(b, F.expr(near)).select(F.struct("a.*").alias("a"), F.struct("b.*").alias("b"))


def braid(
    spark: SparkSession, folder: Path, window: int, hosts: int, round: int = 0
) -> tuple[list[float], int]:
    join = StreamJoin(
        {s: stream(spark, folder / s) for s in "ab"},
        "a.k = b.k",
        HashPartition(hosts),
        time="ts",
        windows=dict.fromkeys("ab", f"{window} seconds"),
    )
    run = join.start(folder / f"braid {round}", availableNow=True)
    run.awaitTermination()
    return seconds(run), run.results().count()


def main() -> None:
    args = arguments(__doc__ or "", rows=1_000_000, batches=10, window=60, hosts=2, rounds=2)
    spark = session("benchmark")
    with scratch() as folder:
        both(spark, folder, args)
        for round in range(args.rounds):
            ours, count = braid(spark, folder, args.window, args.hosts, round)
            rows = [
                {
                    "engine": "Braid",
                    "median s/batch": steady(ours),
                    "results": count,
                    "times Braid": 1.0,
                }
            ]
            for name in STORES:
                times, found = builtin(
                    spark, join_of_two(spark, folder, args.window), name, folder / f"{name} {round}"
                )
                assert found == count, f"{name} finds {found} results, Braid {count}"
                rows.append(
                    {
                        "engine": name,
                        "median s/batch": steady(times),
                        "results": found,
                        "times Braid": steady(times) / steady(ours),
                    }
                )
        show(
            f"{args.rows:,} + {args.rows:,} rows, {args.batches} batches, {args.window} s windows",
            pd.DataFrame(rows).round(2),
        )


if __name__ == "__main__":
    main()
