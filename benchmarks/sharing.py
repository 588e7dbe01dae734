"""Compare one chain of state slices for many queries with a separate join per query.

Separate joins run on Braid and on Spark's built-in join, with the same files, results in Parquet
and durable state. Queries differ in their window; a third of every set select tuples too. A smaller
set is an evenly spaced subset of the largest. Some evenly chosen queries run alone, and a separate
set costs their mean times the number of queries. Time is that of the median batch; memory is the
state held at the end.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pandas as pd
from _common import (
    Measure,
    find_warm_median,
    make_scratch_folder,
    parse_arguments,
    read_batch_seconds,
    read_stream,
    run_builtin_join,
    write_figures,
    write_two_streams,
)
from braid.core.run_events import BatchCommitted
from braid.shared.shared_join import SharedJoin
from braid.spark_session import session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

SET_SIZES = (12, 24, 36)
WindowQuery = tuple[str, float, float | None]
"""Name, window in seconds, and maximum of a.x."""


def list_queries(largest: int) -> list[WindowQuery]:
    """Return queries whose windows grow evenly to the largest one.

    A third of them select the tuples of a below one half. They are spread over short, middle and
    long windows, so that every choice of ``some`` includes some of them.
    """
    return [
        (f"q{n:02}", largest * n / SET_SIZES[-1], 0.5 if n % 3 == (n - 1) // 12 else None)
        for n in range(1, SET_SIZES[-1] + 1)
    ]


def run_shared_join(
    spark: SparkSession, folder: Path, queries: list[WindowQuery], out: Path
) -> tuple[float, int, dict[str, int]]:
    """Return the seconds of the median batch, bytes held at the end, and results by query."""
    shared = SharedJoin({s: read_stream(spark, folder / s) for s in "ab"}, "a.k = b.k", time="ts")
    for name, window, most in queries:
        shared.add(
            name, f"{window} seconds", where=None if most is None else {"a": f"a.x < {most}"}
        )
    run = shared.start(out, availableNow=True)
    run.awaitTermination()
    last = [e for e in run.events() if isinstance(e, BatchCommitted)][-1]
    return (
        find_warm_median(read_batch_seconds(run)),
        last.total_host_metrics.stored_bytes,
        {name: run.results(name).count() for name, _, _ in queries},
    )


def join_with_spark(spark: SparkSession, folder: Path, query: WindowQuery) -> DataFrame:
    _, window, most = query
    a, b = (read_stream(spark, folder / s).withWatermark("ts", "0 seconds").alias(s) for s in "ab")
    selected = a if most is None else a.where(F.col("x") < most)
    near = f"a.ts > b.ts - INTERVAL {window} SECONDS AND a.ts < b.ts + INTERVAL {window} SECONDS"
    joined = selected.join(b, F.expr(f"a.k = b.k AND {near}"))
    return joined.select(
        *[F.col(f"{s}.{c}").alias(f"{s}_{c}") for s in "ab" for c in ("k", "ts", "v", "x")]
    )


def select_evenly(every: list[WindowQuery], count: int) -> list[WindowQuery]:
    """Return ``count`` evenly chosen queries, including the largest."""
    return [every[(n + 1) * len(every) // count - 1] for n in range(count)]


def main() -> None:
    args = parse_arguments(
        __doc__ or "",
        {"rows": 30_000, "apart": 2, "spark": 1},
        rows=300_000,
        batches=8,
        window=180,
        apart=6,
        spark=3,
    )
    spark = session("benchmark")
    with make_scratch_folder() as folder:
        write_two_streams(spark, folder, args)
        every = list_queries(args.window)
        run_shared_join(spark, folder, every[-1:], folder / "warm")
        alone = {
            q[0]: run_shared_join(spark, folder, [q], folder / q[0])
            for q in select_evenly(every, args.apart)
        }
        theirs = []
        for q in select_evenly(every, args.spark):
            out = folder / f"spark {q[0]}"
            times, count = run_builtin_join(
                spark, join_with_spark(spark, folder, q), "Spark, in memory", out
            )
            theirs.append(find_warm_median(times))
            if q[0] in alone:
                braid_count = alone[q[0]][2][q[0]]
                assert abs(count - braid_count) <= 1e-4 * count + 1, (
                    f"{q[0]}: {count}, Braid {braid_count}"
                )
        largest, rows = alone[every[-1][0]], []
        for size in SET_SIZES:
            chosen = select_evenly(every, size)
            time, held, result_counts = run_shared_join(
                spark, folder, chosen, folder / f"shared {size}"
            )
            for name in alone.keys() & result_counts.keys():
                assert result_counts[name] == alone[name][2][name], (
                    f"{name} differs when it is shared"
                )
            rows.append(
                {
                    "queries": len(chosen),
                    "shared s/batch": time,
                    "largest alone": largest[0],
                    "times it": time / largest[0],
                    "held MB": held / 1e6,
                    "largest holds MB": largest[1] / 1e6,
                    "times that": held / largest[1],
                    "times less than apart": size * mean(a[0] for a in alone.values()) / time,
                    "times less than Spark apart": size * mean(theirs) / time,
                }
            )
    title = f"2 x {args.rows:,} rows, {args.batches} batches, windows to {args.window} s"
    table = pd.DataFrame(rows).round(2).T.reset_index(names="").rename(columns=str)
    what = f"{SET_SIZES[-1]} shared queries / the largest alone"
    write_figures(args, {title: table}, [Measure(what, rows[-1]["times it"], 1.1, most=True)])


if __name__ == "__main__":
    main()
