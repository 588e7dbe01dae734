"""Compare Braid's placements on a three-way windowed join with a chain of two Spark joins.

Spark's joins run in a process of their own, in a plain session with two shuffle partitions. They
use the faster of its state stores, in memory with version 2 of the join's state. Braid's placements
have 16 hosts. All have the same files, results in Parquet and durable state. The condition is an
equality, because the built-in join needs one. All contenders run in turns: first on a tenth of the
rows, to compile everything, then on all rows. Spark's chain may miss a few results at the very edge
of a window, because its watermarks are in milliseconds and event times in microseconds. The
placements must agree exactly. With --rocksdb 1 the chain also runs on RocksDB, with version 4 of
the state, changelog checkpoints, and without row counting.

For a condition without an equality, a Spark user can only run a batch join, for example every
night. A second table compares the sum of all Braid batches on bands of numbers with one such join
of the same files.
"""

from __future__ import annotations

import re
import time
from argparse import Namespace
from pathlib import Path

import pandas as pd
from _common import (
    STORE_NAMES,
    Measure,
    find_warm_median,
    make_events,
    make_scratch_folder,
    parse_arguments,
    read_batch_seconds,
    read_stream,
    split_evenly,
    write_batch_files,
    write_figures,
)
from _plain_spark import PlainSpark
from braid import Aligned, Centralized, Coordinated, Ring
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.spark_session import session
from braid.stream_join import StreamJoin
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

BANDS = "abs(a.k - b.k) <= 1 AND abs(b.k - c.k) <= 1"
CONDITIONS = {2: "a.k = b.k", 3: "a.k = b.k AND b.k = c.k"}


def format_window(one: str, other: str, window: int) -> str:
    return (
        f"{one}.ts > {other}.ts - INTERVAL {window} SECONDS AND {one}.ts < {other}.ts + "
        f"INTERVAL {window} SECONDS"
    )


def join_chain(spark: SparkSession, folder: Path, window: int) -> DataFrame:
    """Return a joined with b, then with c: two stateful joins in sequence."""
    a, b, c = (read_stream(spark, folder / s).withWatermark("ts", "0 seconds") for s in "abc")
    flat = [
        frame.select(*[F.col(n).alias(f"{s}_{n}") for n in frame.columns])
        for s, frame in zip("abc", (a, b, c), strict=True)
    ]

    def format_pair(one: str, other: str) -> str:
        return format_window(one, other, window).replace(".", "_")

    def strip_watermarks(*names: str) -> dict[str, Column]:
        """Return these event times without watermarks; the next operator accepts only one."""
        return {f"{s}_ts": F.timestamp_micros(F.unix_micros(f"{s}_ts")) for s in names}

    two = (
        flat[0]
        .join(flat[1], F.expr(f"a_k = b_k AND {format_pair('a', 'b')}"))
        .withColumns(strip_watermarks("a"))
    )
    three = two.join(
        flat[2], F.expr(f"b_k = c_k AND {format_pair('c', 'a')} AND {format_pair('c', 'b')}")
    )
    return three.withColumns(strip_watermarks("b", "c"))


def run_braid(
    spark: SparkSession, folder: Path, placement: Placement, on: str, window: int, out: Path
) -> tuple[list[float], int, int]:
    """Return seconds per batch, results, and intermediate results sent to another host."""
    streams = {s: read_stream(spark, folder / s) for s in "abc" if f"{s}." in on}
    join = StreamJoin(
        streams, on, placement, dict.fromkeys(streams, f"{window} seconds"), time="ts"
    )
    run = join.start(out, availableNow=True)
    run.awaitTermination()
    commits = [e for e in run.events() if isinstance(e, BatchCommitted)]
    return (
        read_batch_seconds(run),
        sum(e.results for e in commits),
        sum(e.total_host_metrics.sent_partials for e in commits),
    )


def run_nightly_join(
    spark: SparkSession, folder: Path, window: int, out: Path
) -> tuple[float, int]:
    """Return seconds and results of one batch join of all input on bands of numbers."""
    frames = {s: spark.read.parquet(str(folder / s)) for s in "abc"}
    a, b, c = (
        frame.select(*[F.col(n).alias(f"{s}_{n}") for n in frame.columns])
        for s, frame in frames.items()
    )
    spans = " AND ".join(
        format_window(one, other, window).replace(".", "_")
        for one, other in (("a", "b"), ("b", "c"), ("c", "a"))
    )
    began, on = time.perf_counter(), re.sub(r"\b([abc])\.", r"\1_", BANDS)
    a.crossJoin(b).crossJoin(c).where(F.expr(f"{on} AND {spans}")).write.parquet(str(out))
    return time.perf_counter() - began, spark.read.parquet(str(out)).count()


def compare_nightly(
    spark: SparkSession, contenders: dict[str, Placement], rows: int, batches: int, window: int
) -> pd.DataFrame:
    with make_scratch_folder() as folder:
        for seed, name in enumerate("abc"):
            write_batch_files(
                make_events(spark, rows, seed, rows * 3 // 10, 600),
                folder / name,
                split_evenly(rows, batches),
            )
        counts, lines = {}, []
        for name, placement in contenders.items():
            times, counts[name], _ = run_braid(
                spark, folder, placement, BANDS, window, folder / name
            )
            lines.append({"engine": name, "all batches, s": sum(times), "results": counts[name]})
        seconds, counts["Spark, at night"] = run_nightly_join(
            spark, folder, window, folder / "night"
        )
        assert len(set(counts.values())) == 1, f"results differ: {counts}"
        night = {
            "engine": "Spark, at night",
            "all batches, s": seconds,
            "results": counts["Spark, at night"],
        }
        table = pd.DataFrame([*lines, night])
        table["Spark, at night: times"] = seconds / table["all batches, s"]
        return table


def run_engines(
    spark: SparkSession,
    rival: PlainSpark,
    contenders: dict[str, Placement],
    args: Namespace,
    rows: int,
    folder: Path,
) -> pd.DataFrame:
    """Run all three-way joins and the placements' two-way joins of ``rows`` rows per stream."""
    for seed, name in enumerate("abc"):
        write_batch_files(
            make_events(spark, rows, seed, rows * 3 // 10, 600),
            folder / name,
            split_evenly(rows, args.batches),
        )
    measured: list[tuple[str, float, int, float | None, float | None]] = []
    for name, placement in contenders.items():
        two, _, _ = run_braid(
            spark, folder, placement, CONDITIONS[2], args.window, folder / f"{name} 2"
        )
        three, count, sent = run_braid(
            spark, folder, placement, CONDITIONS[3], args.window, folder / f"{name} 3"
        )
        seconds = find_warm_median(three)
        measured.append((name, seconds, count, sent, seconds / find_warm_median(two)))
    for name in STORE_NAMES if args.rocksdb else STORE_NAMES[:1]:
        out = folder / name
        times, count = rival.run_join("multiway.join_chain", folder, args.window, name, out)
        measured.append((name, find_warm_median(times), count, None, None))
    columns = ["engine", "s/batch", "results", "sent between hosts", "times its two-way batch"]
    return pd.DataFrame(measured, columns=columns).set_index("engine")


def check_results(table: pd.DataFrame, contenders: dict[str, Placement]) -> None:
    """Raise AssertionError if results differ, except for Spark's at the very edge of a window."""
    counts = table["results"].to_dict()
    exact = {counts[name] for name in contenders}
    assert len(exact) == 1, f"the placements differ: {counts}"
    most = max(exact)
    assert all(0 <= most - n <= 1e-4 * most + 1 for n in counts.values()), f"they differ: {counts}"


def main() -> None:
    args = parse_arguments(
        __doc__ or "",
        {"rows": 30_000, "nightly": 5_000},
        rows=600_000,
        batches=8,
        window=60,
        hosts=16,
        rocksdb=0,
        nightly=20_000,
    )
    spark = session("benchmark")
    contenders: dict[str, Placement] = {
        "Centralized": Centralized(),
        "Aligned (ATR)": Aligned(args.hosts),
        "Coordinated (CTR)": Coordinated(args.hosts),
        "Ring (PSP)": Ring(args.hosts),
    }
    with make_scratch_folder() as folder, PlainSpark() as rival:
        for part, rows in (("warm", args.rows // 10), ("all", args.rows)):
            (folder / part).mkdir()
            table = run_engines(spark, rival, contenders, args, rows, folder / part)
            check_results(table, contenders)
    theirs = table.loc["Spark, in memory", "s/batch"]
    table["Spark, in memory: times"] = theirs / table["s/batch"]
    hop = (table.loc["Ring (PSP)", "s/batch"] - table.loc["Centralized", "s/batch"]) / 2
    bands = compare_nightly(spark, contenders, args.nightly, args.batches, args.window)
    first = f"3 x {args.rows:,} rows, {args.batches} batches, {args.hosts} hosts"
    write_figures(
        args,
        {
            f"{first}, {args.window} s windows": table.round(2).reset_index(),
            f"3 x {args.nightly:,} rows, no equality: {BANDS}": bands.round(2),
        },
        [
            Measure(f"three-way, {args.hosts} hosts: chain of built-ins in memory / {name}", *n)
            for name in contenders
            if (n := (table.loc[name, "Spark, in memory: times"], 5.5, 8))
        ],
        # A difference of 0 or less is noise.
        (f"A hop costs about {hop:.2f} s a batch: half of the ring less a single host.",)
        if round(hop, 2) > 0
        else (),
    )


if __name__ == "__main__":
    main()
