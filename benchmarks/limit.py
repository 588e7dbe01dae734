"""How far the full join is from the cost of moving its rows: the same rows read, routed to the same
hosts, and discarded.

Both are Structured Streaming queries over the same files; the peer's ``mapInArrow`` throws away
what the joiners would get.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from _common import arguments, both, scratch, seconds, show, steady, stream
from braid.spark_session import session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_builtin import braid


def routed_only(spark: SparkSession, folder: Path, hosts: int) -> list[float]:
    """Seconds per batch of reading the two streams, routing each tuple to its host and discarding
    it there.
    """
    cores = spark.sparkContext.defaultParallelism
    parts = [
        stream(spark, folder / s).withColumn(
            "host", F.pmod(F.xxhash64("k"), F.lit(hosts)).cast("int")
        )
        for s in "ab"
    ]
    whole = parts[0].unionByName(parts[1])

    def discard(batches):  # type: ignore[no-untyped-def]
        for _ in batches:
            pass
        return iter(())

    def turn(frame: DataFrame, number: int) -> None:
        frame.repartitionById(cores, F.col("host") % cores).mapInArrow(
            discard, "nothing int"
        ).collect()

    writer = whole.writeStream.foreachBatch(turn).option(
        "checkpointLocation", str(folder / "limit")
    )
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return seconds(query)


def main() -> None:
    args = arguments(__doc__ or "", rows=1_000_000, batches=10, window=60, hosts=2)
    spark = session("benchmark")
    with scratch() as folder:
        both(spark, folder, args)
        limit = steady(routed_only(spark, folder, args.hosts))
        ours = steady(braid(spark, folder, args.window, args.hosts)[0])
        rows = [("rows read, routed, discarded", limit, 1.0), ("the full join", ours, ours / limit)]
        table = pd.DataFrame(rows, columns=["program", "median s/batch", "times the limit"])
        show(
            f"{args.rows:,} + {args.rows:,} rows, {args.batches} batches (aim: 1.5)", table.round(2)
        )


if __name__ == "__main__":
    main()
