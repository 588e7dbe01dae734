"""Measure what questions about a run cost: the doctor of a long run, and the trace that why reads.

``braid.doctor`` diagnoses a finished run of tables with many small batches, as its folder is; the
median of several calls after one that warms up. The same run of two endless streams on Spark is
started with ``trace=`` and without, in turns; the ratio is that of the median seconds of their
batches. The first round warms up.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from statistics import median

import braid
import pandas as pd
import pyarrow as pa
from _common import (
    Measure,
    find_warm_median,
    make_scratch_folder,
    parse_arguments,
    read_batch_seconds,
    read_stream,
    write_figures,
    write_two_streams,
)
from braid import HashPartition
from braid.spark_session import session
from braid.stream_join import StreamJoin
from pyspark.sql import SparkSession

CALLS = 5
"""Number of diagnoses whose median is reported."""
SECOND = 1_000_000


def run_small_batches(folder: Path, batches: int) -> None:
    """Join two tables in batches of two rows each, one second of event time apart."""
    rows = 2 * batches
    times = pa.array([n * SECOND for n in range(rows)], pa.timestamp("us"))
    batch = [n // 2 for n in range(rows)]
    table = pa.table({"k": [n // 3 for n in range(rows)], "ts": times, "batch": batch})
    join = StreamJoin(
        {"a": table, "b": table}, "a.k = b.k", HashPartition(4), windows="20 seconds", time="ts"
    )
    join.start(folder, batches="batch", durability="process").awaitTermination()


def measure_seconds(call: Callable[[], object]) -> float:
    """Return the median seconds of several calls after the first."""
    spent = []
    for _ in range(1 + CALLS):
        began = time.perf_counter()
        call()
        spent.append(time.perf_counter() - began)
    return median(spent[1:])


def run_streams(spark: SparkSession, folder: Path, out: str, trace: str | None) -> list[float]:
    """Return the seconds of each batch of a join of two endless streams."""
    streams = {alias: read_stream(spark, folder / alias) for alias in "ab"}
    windows = dict.fromkeys("ab", "60 seconds")
    join = StreamJoin(streams, "a.k = b.k", HashPartition(2), time="ts", windows=windows)
    run = join.start(folder / out, availableNow=True, trace=trace)
    run.awaitTermination()
    return read_batch_seconds(run)


def measure_traces(args: Namespace, folder: Path) -> dict[str, float]:
    """Return the median seconds of a batch with the trace and without."""
    spark = session("benchmark")
    write_two_streams(spark, folder, args)
    spent: dict[str, list[float]] = {"without trace": [], "with trace": []}
    for n in range(1 + args.rounds):
        for name, trace in (("without trace", None), ("with trace", "10 GB")):
            seconds = run_streams(spark, folder, f"{name} {n}", trace)
            spent[name] += [find_warm_median(seconds)] if n else []
    return {name: median(each) for name, each in spent.items()}


def main() -> None:
    args = parse_arguments(
        __doc__ or "",
        {"diagnosed": 500, "rows": 50_000, "rounds": 1},
        diagnosed=10_000,
        rows=500_000,
        batches=10,
        rounds=7,
    )
    with make_scratch_folder() as folder:
        run_small_batches(folder / "small", args.diagnosed)
        diagnosis = measure_seconds(lambda: braid.doctor(folder / "small"))
        spent = measure_traces(args, folder)
    ratio = spent["with trace"] / spent["without trace"]
    table = pd.DataFrame([*spent.items()], columns=["run", "s/batch"])
    rows = 2 * args.rows // args.batches
    name = f"doctor after {args.diagnosed:,} batches, seconds"
    write_figures(
        args,
        {f"{rows:,} rows a batch of two streams": table.round(4)},
        [
            Measure(name, diagnosis, 1.0, most=True),
            Measure("a batch with trace=, compared with one without", ratio, 1.1, most=True),
        ],
    )


if __name__ == "__main__":
    main()
