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
    arguments,
    both,
    builtin,
    leave,
    scratch,
    seconds,
    steady,
    stream,
)
from braid.core.run_events import BatchCommitted
from braid.shared.shared_join import SharedJoin
from braid.spark_session import session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

SETS = (12, 24, 36)
Asked = tuple[str, float, float | None]
"""Name, window in seconds, and maximum of a.x."""


def queries(largest: int) -> list[Asked]:
    """Return queries whose windows grow evenly to the largest one.

    A third of them select the tuples of a below one half. They are spread over short, middle and
    long windows, so that every choice of ``some`` includes some of them.
    """
    return [
        (f"q{n:02}", largest * n / SETS[-1], 0.5 if n % 3 == (n - 1) // 12 else None)
        for n in range(1, SETS[-1] + 1)
    ]


def braid(
    spark: SparkSession, folder: Path, asked: list[Asked], out: Path
) -> tuple[float, int, dict[str, int]]:
    """Return the seconds of the median batch, bytes held at the end, and results by query."""
    shared = SharedJoin({s: stream(spark, folder / s) for s in "ab"}, "a.k = b.k", time="ts")
    for name, window, most in asked:
        shared.add(
            name, f"{window} seconds", where=None if most is None else {"a": f"a.x < {most}"}
        )
    run = shared.start(out, availableNow=True)
    run.awaitTermination()
    last = [e for e in run.events() if isinstance(e, BatchCommitted)][-1]
    return (
        steady(seconds(run)),
        last.total_host_metrics.stored_bytes,
        {name: run.results(name).count() for name, _, _ in asked},
    )


def built_in(spark: SparkSession, folder: Path, asked: Asked) -> DataFrame:
    _, window, most = asked
    a, b = (stream(spark, folder / s).withWatermark("ts", "0 seconds").alias(s) for s in "ab")
    selected = a if most is None else a.where(F.col("x") < most)
    near = f"a.ts > b.ts - INTERVAL {window} SECONDS AND a.ts < b.ts + INTERVAL {window} SECONDS"
    joined = selected.join(b, F.expr(f"a.k = b.k AND {near}"))
    return joined.select(
        *[F.col(f"{s}.{c}").alias(f"{s}_{c}") for s in "ab" for c in ("k", "ts", "v", "x")]
    )


def some(every: list[Asked], count: int) -> list[Asked]:
    """Return ``count`` evenly chosen queries, including the largest."""
    return [every[(n + 1) * len(every) // count - 1] for n in range(count)]


def main() -> None:
    args = arguments(
        __doc__ or "",
        {"rows": 30_000, "apart": 2, "spark": 1},
        rows=300_000,
        batches=8,
        window=180,
        apart=6,
        spark=3,
    )
    spark = session("benchmark")
    with scratch() as folder:
        both(spark, folder, args)
        every = queries(args.window)
        braid(spark, folder, every[-1:], folder / "warm")
        alone = {q[0]: braid(spark, folder, [q], folder / q[0]) for q in some(every, args.apart)}
        theirs = []
        for q in some(every, args.spark):
            out = folder / f"spark {q[0]}"
            times, count = builtin(spark, built_in(spark, folder, q), "Spark, in memory", out)
            theirs.append(steady(times))
            if q[0] in alone:
                ours = alone[q[0]][2][q[0]]
                assert abs(count - ours) <= 1e-4 * count + 1, f"{q[0]}: {count}, Braid {ours}"
        largest, rows = alone[every[-1][0]], []
        for size in SETS:
            asked = some(every, size)
            time, held, found = braid(spark, folder, asked, folder / f"shared {size}")
            for name in alone.keys() & found.keys():
                assert found[name] == alone[name][2][name], f"{name} differs when it is shared"
            rows.append(
                {
                    "queries": len(asked),
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
    what = f"{SETS[-1]} shared queries / the largest alone"
    leave(args, {title: table}, [Measure(what, rows[-1]["times it"], 1.1, most=True)])


if __name__ == "__main__":
    main()
