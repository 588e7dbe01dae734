"""Compare Braid with Spark's own stream-stream join on the same windowed equi-join.

All read the same files, write every result to Parquet and keep durable state; the results must be
equal. Spark runs in a process of its own, in a plain session. It has two shuffle partitions, the
best number for two cores, and each of its state stores in its best setting. In memory that is
version 2 of the join's state. RocksDB has version 4, changelog checkpoints, and does not count rows
(``rocksdb.trackTotalNumberOfRows``). Each run's log of offsets confirms the version. All run in
turns, round by round: on a tenth of the rows, on all (RocksDB on two batches of them) to compile
everything, and on all again. Only the last round counts. The figures are seconds per micro-batch
and their ratio.
"""

from __future__ import annotations

from argparse import Namespace
from decimal import Decimal
from pathlib import Path

import pandas as pd
from _common import (
    STORE_NAMES,
    Measure,
    find_warm_median,
    make_scratch_folder,
    parse_arguments,
    read_batch_seconds,
    read_stream,
    write_figures,
    write_two_streams,
)
from _plain_spark import PlainSpark
from braid import HashPartition
from braid.spark_session import session
from braid.stream_join import StreamJoin
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

RATIO_LIMITS = {
    10**6: {"Spark, in memory": (4, 8), "Spark, RocksDB": (7, 12)},
}
"""Required ratio and aimed ratio, by rows of a stream. The ratios of other numbers are reported."""


def join_two_streams(spark: SparkSession, folder: Path, window: int) -> DataFrame:
    """Return Spark's own stream-stream join."""
    a, b = (read_stream(spark, folder / s).withWatermark("ts", "0 seconds").alias(s) for s in "ab")
    near = (
        f"a.k = b.k AND a.ts > b.ts - INTERVAL {window} SECONDS AND a.ts < b.ts + INTERVAL "
        f"{window} SECONDS"
    )
    return a.join(b, F.expr(near)).select(F.struct("a.*").alias("a"), F.struct("b.*").alias("b"))


def run_braid(
    spark: SparkSession,
    folder: Path,
    window: int,
    hosts: int,
    name: str = "braid",
    executor: str = "auto",
) -> tuple[list[float], int]:
    join = StreamJoin(
        {s: read_stream(spark, folder / s) for s in "ab"},
        "a.k = b.k",
        HashPartition(hosts),
        time="ts",
        windows=dict.fromkeys("ab", f"{window} seconds"),
        executor=executor,
    )
    run = join.start(folder / name, availableNow=True)
    run.awaitTermination()
    return read_batch_seconds(run), run.results().count()


def run_engines(
    spark: SparkSession, rival: PlainSpark, folder: Path, args: Namespace, limits: dict[str, int]
) -> dict[str, tuple[list[float], int]]:
    """Return seconds per batch and the number of results, by engine.

    ``limits`` is the number of batches of an engine. Raises AssertionError if Braid has other
    results for the same batches.
    """
    outcomes = {"Braid": run_braid(spark, folder, args.window, args.hosts)}
    for name in STORE_NAMES:
        source = (
            folder if limits[name] >= args.batches else shorten_input(folder, name, limits[name])
        )
        if source != folder:
            run_braid(spark, source, args.window, args.hosts)
        outcomes[name] = rival.run_join(
            "spark_builtin.join_two_streams", source, args.window, name, folder / name
        )
        spark_digest, braid_digest = (
            digest_results(spark, at / "results") for at in (folder / name, source / "braid")
        )
        assert spark_digest == braid_digest, (
            f"{name} finds {spark_digest} (results, sum of hashes), Braid {braid_digest}"
        )
    return outcomes


def digest_results(spark: SparkSession, results: Path) -> tuple[int, Decimal]:
    """Return the number of results and the sum of their hashes, which are equal for equal
    multisets.
    """
    hashes = F.sum(F.xxhash64("a.v", "b.v").cast("decimal(38, 0)"))
    row = spark.read.parquet(str(results)).agg(F.count("*"), hashes).first()
    assert row is not None
    return row[0], row[1]


def shorten_input(folder: Path, name: str, batches: int) -> Path:
    """Return the same input cut off after some batches, as links to its files."""
    short = folder / f"input of {name}"
    for s in "ab":
        (short / s).mkdir(parents=True)
        for file in sorted((folder / s).glob("*.parquet"))[:batches]:
            (short / s / file.name).hardlink_to(file)
    return short


def compare_engines(args: Namespace, limits: dict[str, int], memory: str, warm: int = 1) -> None:
    """Measure all engines after ``warm`` more rounds, and write the table and the ratios."""
    spark = session("benchmark", spark_driver_memory=memory)
    few = limits | {"Spark, RocksDB": 2}
    small = Namespace(**vars(args) | {"rows": args.rows // 10})
    rounds = [(small, limits), *[(args, few)] * warm, (args, limits)]
    with make_scratch_folder() as folder, PlainSpark(memory) as rival:
        for number, (size, limited) in enumerate(rounds):
            part = folder / f"round {number}"
            part.mkdir()
            write_two_streams(spark, part, size)
            outcomes = run_engines(spark, rival, part, size, limited)
    braid_seconds = outcomes["Braid"][0]
    rows, measures = [], []
    for name, (times, results) in outcomes.items():
        ratio = find_warm_median(times) / find_warm_median(braid_seconds[: len(times)])
        rows.append((name, len(times), results, find_warm_median(times), ratio))
        if name in STORE_NAMES:
            required, aim = RATIO_LIMITS.get(args.rows, {}).get(name, (None, None))
            what = f"{args.rows:,} + {args.rows:,} rows, window equi-join: {name} / Braid"
            measures.append(Measure(what, ratio, required, aim))
    columns = ["engine", "batches", "results", "median s/batch", "times Braid"]
    title = f"{args.rows:,} + {args.rows:,} rows in {args.batches} batches, {args.window} s windows"
    write_figures(args, {title: pd.DataFrame(rows, columns=columns).round(3)}, measures)


def main() -> None:
    args = parse_arguments(
        __doc__ or "", {"rows": 100_000}, rows=1_000_000, batches=10, window=60, hosts=2
    )
    compare_engines(args, dict.fromkeys(STORE_NAMES, args.batches), "4g")


if __name__ == "__main__":
    main()
