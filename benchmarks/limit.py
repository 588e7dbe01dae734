"""How far the full join is from the cost of moving its rows: the same rows read, routed to the same hosts, and discarded.

Both are Structured Streaming queries over the same files; the peer's ``mapInArrow`` throws away what the joiners would get.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from _common import arguments, events, files, scratch, seconds, show, steady, stream
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from toolkit.join import StreamJoin
from toolkit.placement import HashPartition
from toolkit.session import session


def routed_only(spark: SparkSession, folder: Path, hosts: int) -> list[float]:
    """Seconds per batch of reading the two streams, routing each tuple to its host and discarding it there."""
    cores = spark.sparkContext.defaultParallelism
    parts = [
        stream(spark, folder / s).withColumn("host", F.pmod(F.xxhash64("k"), F.lit(hosts)).cast("int")) for s in "ab"
    ]
    whole = parts[0].unionByName(parts[1])

    def discard(batches):  # type: ignore[no-untyped-def]
        for _ in batches:
            pass
        return iter(())

    def turn(frame: DataFrame, number: int) -> None:
        frame.repartitionById(cores, F.col("host") % cores).mapInArrow(discard, "nothing int").collect()

    writer = whole.writeStream.foreachBatch(turn).option("checkpointLocation", str(folder / "limit"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return seconds(query)


def main() -> None:
    args = arguments(__doc__ or "", rows=1_000_000, batches=10, window=60, hosts=2)
    spark = session("benchmark")
    with scratch() as folder:
        for seed, name in enumerate("ab"):
            files(events(spark, args.rows, seed, args.rows * 3 // 10, 600), folder / name, args.batches, args.rows)
        limit = steady(routed_only(spark, folder, args.hosts))
        join = StreamJoin(
            {s: stream(spark, folder / s) for s in "ab"}, "a.k = b.k", HashPartition(args.hosts), time="ts",
            windows=dict.fromkeys("ab", f"{args.window} seconds"),
        )  # fmt: skip
        run = join.start(folder / "braid", availableNow=True)
        run.awaitTermination()
        ours = steady(seconds(run))
        rows = [("rows read, routed, discarded", limit, 1.0), ("the full join", ours, ours / limit)]
        table = pd.DataFrame(rows, columns=["program", "median s/batch", "times the limit"])
        show(f"{args.rows:,} + {args.rows:,} rows, {args.batches} batches (aim: 1.5)", table.round(2))


if __name__ == "__main__":
    main()
