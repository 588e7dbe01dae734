"""A three-way windowed join on 16 hosts: Braid's placements, and what a Spark user would write, a
chain of two built-in joins.

The same files, results in Parquet and durable state for all. The condition is an equality, as the
built-in join needs one; each round runs all contenders in turns and the last round counts. Spark's
chain may miss a result or two at the very edge of a window (its watermarks are milliseconds, event
times microseconds); the placements may not differ at all.

Where the condition has no equality, a Spark user can only join in batches, at night: a second table
sets the sum of all our batches on bands of numbers against one such join of the same files.

Below: what a hop between hosts costs (the ring's two against the single host's none), and the
three-way batch in terms of the two-way batch of the same placement (required: under m - 1 = 2).
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pandas as pd
from _common import (
    STORES,
    arguments,
    builtin,
    events,
    files,
    scratch,
    seconds,
    show,
    steady,
    stream,
)
from braid import Aligned, Centralized, Coordinated, Ring
from braid.core.events import BatchCommitted
from braid.core.placement import Placement
from braid.join import StreamJoin
from braid.spark_session import session
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

BANDS = "abs(a.k - b.k) <= 1 AND abs(b.k - c.k) <= 1"
ON = {2: "a.k = b.k", 3: "a.k = b.k AND b.k = c.k"}


def near(one: str, other: str, window: int) -> str:
    return (
        f"{one}.ts > {other}.ts - INTERVAL {window} SECONDS AND {one}.ts < {other}.ts + "
        f"INTERVAL {window} SECONDS"
    )


def chain(spark: SparkSession, folder: Path, window: int) -> DataFrame:
    """a with b, then c with both: two stateful joins, one after the other."""
    a, b, c = (stream(spark, folder / s).withWatermark("ts", "0 seconds") for s in "abc")
    flat = [
        frame.select(*[F.col(n).alias(f"{s}_{n}") for n in frame.columns])
        for s, frame in zip("abc", (a, b, c), strict=True)
    ]

    def pair(one: str, other: str) -> str:
        return near(one, other, window).replace(".", "_")

    def plain(*names: str) -> dict[str, Column]:
        """These event times without their watermarks: Spark lets the next operator see one."""
        return {f"{s}_ts": F.timestamp_micros(F.unix_micros(f"{s}_ts")) for s in names}

    two = flat[0].join(flat[1], F.expr(f"a_k = b_k AND {pair('a', 'b')}")).withColumns(plain("a"))
    three = two.join(flat[2], F.expr(f"b_k = c_k AND {pair('c', 'a')} AND {pair('c', 'b')}"))
    return three.withColumns(plain("b", "c"))


def braid(
    spark: SparkSession, folder: Path, under: Placement, on: str, window: int, out: Path
) -> tuple[list[float], int, int]:
    """Seconds per batch, results, and intermediate results that went to another host."""
    streams = {s: stream(spark, folder / s) for s in "abc" if f"{s}." in on}
    join = StreamJoin(streams, on, under, dict.fromkeys(streams, f"{window} seconds"), time="ts")
    run = join.start(out, availableNow=True)
    run.awaitTermination()
    commits = [e for e in run.events() if isinstance(e, BatchCommitted)]
    return seconds(run), sum(e.results for e in commits), sum(e.all_hosts.sent for e in commits)


def nightly(spark: SparkSession, folder: Path, window: int, out: Path) -> tuple[float, int]:
    """Seconds and results of one batch join of everything that came, on bands of numbers."""
    whole = {s: spark.read.parquet(str(folder / s)) for s in "abc"}
    a, b, c = (
        frame.select(*[F.col(n).alias(f"{s}_{n}") for n in frame.columns])
        for s, frame in whole.items()
    )
    spans = " AND ".join(
        near(one, other, window).replace(".", "_")
        for one, other in (("a", "b"), ("b", "c"), ("c", "a"))
    )
    began, on = time.perf_counter(), re.sub(r"\b([abc])\.", r"\1_", BANDS)
    a.crossJoin(b).crossJoin(c).where(F.expr(f"{on} AND {spans}")).write.parquet(str(out))
    return time.perf_counter() - began, spark.read.parquet(str(out)).count()


def compare_nightly(
    spark: SparkSession, contenders: dict[str, Placement], rows: int, batches: int, window: int
) -> None:
    with scratch() as folder:
        for seed, name in enumerate("abc"):
            files(events(spark, rows, seed, rows * 3 // 10, 600), folder / name, batches, rows)
        found, lines = {}, []
        for name, under in contenders.items():
            times, found[name], _ = braid(spark, folder, under, BANDS, window, folder / name)
            lines.append({"engine": name, "all batches, s": sum(times), "results": found[name]})
        seconds, found["Spark, at night"] = nightly(spark, folder, window, folder / "night")
        assert len(set(found.values())) == 1, f"results differ: {found}"
        night = {
            "engine": "Spark, at night",
            "all batches, s": seconds,
            "results": found["Spark, at night"],
        }
        table = pd.DataFrame([*lines, night])
        table["Spark, at night: times"] = seconds / table["all batches, s"]
        show(f"3 x {rows:,} rows, no equality: {BANDS}", table.round(2))


def main() -> None:
    args = arguments(
        __doc__ or "", rows=600_000, batches=10, window=60, hosts=16, rounds=2, nightly=20_000
    )
    spark = session("benchmark")
    contenders: dict[str, Placement] = {
        "Centralized": Centralized(),
        "Aligned (ATR)": Aligned(args.hosts),
        "Coordinated (CTR)": Coordinated(args.hosts),
        "Ring (PSP)": Ring(args.hosts),
    }
    with scratch() as folder:
        for seed, name in enumerate("abc"):
            files(
                events(spark, args.rows, seed, args.rows * 3 // 10, 600),
                folder / name,
                args.batches,
                args.rows,
            )
        for round in range(args.rounds):
            rows, two_way = [], {}
            for name, under in contenders.items():
                two_way[name] = steady(
                    braid(spark, folder, under, ON[2], args.window, folder / f"{name} 2 {round}")[0]
                )
                print(f"round {round}: {name}", flush=True)
                times, count, sent = braid(
                    spark, folder, under, ON[3], args.window, folder / f"{name} 3 {round}"
                )
                rows.append(
                    {
                        "engine": name,
                        "s/batch": steady(times),
                        "results": count,
                        "sent between hosts": sent,
                        "times its two-way batch": steady(times) / two_way[name],
                    }
                )
            for name in STORES:
                print(f"round {round}: {name}", flush=True)
                times, count = builtin(
                    spark, chain(spark, folder, args.window), name, folder / f"{name} {round}"
                )
                rows.append({"engine": name, "s/batch": steady(times), "results": count})
        found = {r["engine"]: r["results"] for r in rows}
        exact = {found[name] for name in contenders}
        assert len(exact) == 1, f"the placements differ: {found}"
        assert all(0 <= min(exact) - found[name] <= 1e-4 * min(exact) for name in STORES), (
            f"Spark's results differ: {found}"
        )
        table = pd.DataFrame(rows).set_index("engine")
        for name in STORES:
            table[f"{name}: times"] = table.loc[name, "s/batch"] / table["s/batch"]
        show(
            f"3 x {args.rows:,} rows, {args.batches} batches, {args.window} s windows, "
            f"{args.hosts} hosts",
            table.round(2).reset_index(),
        )
        hop = (table.loc["Ring (PSP)", "s/batch"] - table.loc["Centralized", "s/batch"]) / 2
        compare_nightly(spark, contenders, args.nightly, args.batches, args.window)
        print(
            f"a hop between hosts costs about {hop:.2f} s per batch (ring less single host, over "
            "two hops)"
        )


if __name__ == "__main__":
    main()
