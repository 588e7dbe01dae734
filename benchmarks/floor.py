"""How far the join is from the least that it can cost: Spark reading the same rows into Arrow, and
nothing else.

Both are Structured Streaming queries over the same files and run in turns: first on a tenth of the
rows, then on all, so that everything is compiled, and on all again, which is the round that counts.
A third query, rows read, routed by a hash to two Python tasks and discarded, is what Spark's own
tasks cost before they join anything.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from _common import Measure, arguments, both, leave, scratch, seconds, steady, stream
from braid.spark_session import session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_builtin import braid

Turn = Callable[[DataFrame, int], None]


def query(spark: SparkSession, folder: Path, name: str, turn: Turn) -> list[float]:
    """Seconds per batch of a query that does this with the rows of both streams."""
    a, b = (stream(spark, folder / s) for s in "ab")
    writer = a.unionByName(b).writeStream.foreachBatch(turn)
    running = (
        writer.option("checkpointLocation", str(folder / name)).trigger(availableNow=True).start()
    )
    running.awaitTermination()
    return seconds(running)


def into_arrow(frame: DataFrame, number: int) -> None:
    """Read the rows, and nothing else."""
    frame.toArrow()


def routed(frame: DataFrame, number: int) -> None:
    """Route each row to one of two Python tasks and discard it there."""
    cores = frame.sparkSession.sparkContext.defaultParallelism

    def discard(batches):  # type: ignore[no-untyped-def]
        for _ in batches:
            pass
        return iter(())

    place = F.pmod(F.xxhash64("k"), F.lit(cores)).cast("int")
    frame.repartitionById(cores, place).mapInArrow(discard, "nothing int").collect()


def main() -> None:
    args = arguments(
        __doc__ or "", {"rows": 100_000}, rows=1_000_000, batches=10, window=60, hosts=2
    )
    spark = session("benchmark")
    with scratch() as folder:
        small = Namespace(**vars(args) | {"rows": args.rows // 10})
        for part, size in (("few", small), ("warm", args), ("all", args)):
            (folder / part).mkdir()
            both(spark, folder / part, size)
            least = query(spark, folder / part, "arrow", into_arrow)
            ours = braid(spark, folder / part, args.window, args.hosts)[0]
            moved = query(spark, folder / part, "routed", routed)
    rows = [
        (name, steady(times), steady(times) / steady(least))
        for name, times in (
            ("rows read into Arrow", least),
            ("the join", ours),
            ("rows read, routed to Python tasks, discarded", moved),
        )
    ]
    table = pd.DataFrame(rows, columns=["program", "median s/batch", "times the least"])
    ratio = steady(ours) / steady(least)
    leave(
        args,
        {f"{args.rows:,} + {args.rows:,} rows, {args.batches} batches": table.round(3)},
        [Measure("our join / reading the rows into Arrow", ratio, 1.5, 1.2, most=True)],
    )


if __name__ == "__main__":
    main()
