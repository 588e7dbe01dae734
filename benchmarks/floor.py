"""Compare the join with its lower bound: Spark reading the same rows into Arrow and nothing else.

Both are Structured Streaming queries over the same files and run in turns: on a tenth of the rows,
then on all rows to compile everything, then on all rows in the measured rounds. The medians of all
their batches are compared. A third query, which reads rows, routes them by a hash to two Python
tasks and discards them, measures the cost of Spark's own tasks.
"""

from __future__ import annotations

import shutil
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pandas as pd
from _common import (
    Measure,
    make_scratch_folder,
    parse_arguments,
    read_batch_seconds,
    read_stream,
    write_figures,
    write_two_streams,
)
from braid.spark_session import session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_builtin import run_braid

BatchHandler = Callable[[DataFrame, int], None]


def run_query(spark: SparkSession, folder: Path, name: str, handler: BatchHandler) -> list[float]:
    """Return seconds per batch of a query that runs ``handler`` with the rows of both streams."""
    a, b = (read_stream(spark, folder / s) for s in "ab")
    writer = a.unionByName(b).writeStream.foreachBatch(handler)
    running = (
        writer.option("checkpointLocation", str(folder / name)).trigger(availableNow=True).start()
    )
    running.awaitTermination()
    return read_batch_seconds(running)


def read_into_arrow(frame: DataFrame, number: int) -> None:
    """Read the rows and do nothing else."""
    frame.toArrow()


def route_rows(frame: DataFrame, number: int) -> None:
    """Route each row to one of two Python tasks and discard it there."""
    cores = frame.sparkSession.sparkContext.defaultParallelism

    def discard_rows(batches):  # type: ignore[no-untyped-def]
        for _ in batches:
            pass
        return iter(())

    place = F.pmod(F.xxhash64("k"), F.lit(cores)).cast("int")
    frame.repartitionById(cores, place).mapInArrow(discard_rows, "nothing int").collect()


def main() -> None:
    args = parse_arguments(
        __doc__ or "",
        {"rows": 100_000, "rounds": 1},
        rows=1_000_000,
        batches=10,
        window=60,
        hosts=2,
        rounds=7,
    )
    spark = session("benchmark")
    small = Namespace(**vars(args) | {"rows": args.rows // 10})
    programs: dict[str, Callable[[Path], list[float]]] = {
        "rows read into Arrow": lambda folder: run_query(spark, folder, "arrow", read_into_arrow),
        "the join": lambda folder: run_braid(spark, folder, args.window, args.hosts)[0],
        "rows read, routed to Python tasks, discarded": lambda folder: run_query(
            spark, folder, "routed", route_rows
        ),
    }
    took: dict[str, list[float]] = {name: [] for name in programs}
    with make_scratch_folder() as folder:
        for n, size in enumerate([small, args, *[args] * args.rounds]):
            here = folder / str(n)
            here.mkdir()
            write_two_streams(spark, here, size)
            for name, program in programs.items():
                times = program(here)[1:]  # the first batch includes compilation
                took[name] += times if n > 1 else []
            shutil.rmtree(here)
    medians = {name: median(times) for name, times in took.items()}
    least, join_seconds, _ = medians.values()
    rows = [(name, middle, middle / least) for name, middle in medians.items()]
    table = pd.DataFrame(rows, columns=["program", "median s/batch", "times the least"])
    write_figures(
        args,
        {f"{args.rows:,} + {args.rows:,} rows, {args.batches} batches": table.round(3)},
        [
            Measure(
                "our join / reading the rows into Arrow", join_seconds / least, 1.3, 1.2, most=True
            )
        ],
    )


if __name__ == "__main__":
    main()
