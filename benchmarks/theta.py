"""Compare a theta join without an equality: DuckDB on the whole input against Braid in batches.

The input has 2 x 200,000 rows. DuckDB reads the same Parquet files, joins once and writes one file
of results. Braid joins the rows as they arrive, in ten batches, and is ready for more: as Spark
streams, and as tables without Spark.

DuckDB compares all pairs of the condition as written, which takes a minute: that runs once. Its
rival is a rewrite by hand: each row of b is repeated for the five values of k that it may meet, so
that DuckDB joins by an equality. The rewrite and Braid run some rounds in turns, and the median
round counts, without the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import duckdb
import pandas as pd
import pyarrow.parquet as pq
from _common import (
    Measure,
    make_scratch_folder,
    parse_arguments,
    read_stream,
    write_figures,
    write_two_streams,
)
from braid import AdaptiveGrid
from braid.join_run import JoinRun
from braid.spark_session import session
from braid.stream_join import StreamJoin
from pyspark.sql import SparkSession

ON = "abs(a.k - b.k) <= 2 AND a.x < b.x"
AS_WRITTEN = "FROM {a} AS a JOIN {b} AS b ON " + ON
REWRITTEN = (
    "FROM {a} AS a JOIN (SELECT b, b.k + unnest([-2, -1, 0, 1, 2]) AS near FROM {b} AS b) AS c "
    "ON a.k = c.near AND a.x < c.b.x"
)
Round = Callable[[int], tuple[float, int]]


def run_whole_join(folder: Path, statement: str) -> tuple[float, int]:
    """Return seconds and results of DuckDB; ``statement`` joins tables ``{a}`` and ``{b}``."""
    out, began = folder / "duckdb.parquet", time.perf_counter()
    with duckdb.connect() as db:
        a, b = (f"'{folder}/{alias}/*.parquet'" for alias in "ab")
        query = f"SELECT a, b {statement.format(a=a, b=b)}"
        db.execute(f"COPY ({query}) TO '{out}'")
    return time.perf_counter() - began, pq.read_metadata(out).num_rows


def await_results(run: JoinRun) -> int:
    """Return the results of a finished run."""
    run.awaitTermination()
    return int(run.metrics(by="batch")["results"].sum())


def join_streams(spark: SparkSession, folder: Path, hosts: int, number: int) -> tuple[float, int]:
    """Return seconds from start to end, including Spark's micro-batches, and results."""
    began = time.perf_counter()
    streams = {s: read_stream(spark, folder / s) for s in "ab"}
    join = StreamJoin(streams, ON, AdaptiveGrid(hosts), "unbounded")
    run = join.start(folder / f"streams {number}", availableNow=True)
    results = await_results(run)
    return time.perf_counter() - began, results


def join_tables(folder: Path, hosts: int, batches: int, number: int) -> tuple[float, int]:
    """Return seconds from reading to the end, and results, of tables without Spark."""
    began = time.perf_counter()
    tables = {s: pq.read_table(folder / s) for s in "ab"}
    join = StreamJoin(tables, ON, AdaptiveGrid(hosts), time="ts")
    results = await_results(join.start(folder / f"tables {number}", batches=batches))
    return time.perf_counter() - began, results


def main() -> None:
    args = parse_arguments(
        __doc__ or "", {"rows": 20_000}, rows=200_000, batches=10, hosts=4, rounds=3
    )
    spark = session("benchmark")
    with make_scratch_folder() as folder:
        write_two_streams(spark, folder, args)
        longest, expected = run_whole_join(folder, AS_WRITTEN)
        ways: dict[str, Round] = {
            "DuckDB at once, rewritten": lambda n: run_whole_join(folder, REWRITTEN),
            "Braid, Spark streams": lambda n: join_streams(spark, folder, args.hosts, n),
            "Braid, tables": lambda n: join_tables(folder, args.hosts, args.batches, n),
        }
        times = {name: [way(0)] for name, way in ways.items()}
        for number in range(1, args.rounds):
            for name, way in ways.items():
                times[name].append(way(number))
    counts = {results for rounds in times.values() for _, results in rounds}
    assert counts == {expected}, f"results differ: {counts}, DuckDB {expected}"
    took = {name: median(s for s, _ in rounds[1:]) for name, rounds in times.items()}
    least = took["DuckDB at once, rewritten"]
    took = {"DuckDB at once, as written": longest} | took
    rows = [(name, s, expected, least / s) for name, s in took.items()]
    table = pd.DataFrame(rows, columns=["program", "seconds in all", "results", "rewrite: times"])
    write_figures(
        args,
        {f"2 x {args.rows:,} rows, {ON}, {args.batches} batches": table.round(3)},
        [
            Measure(f"theta join, DuckDB's rewrite at once / {name}", ratio, None, 1)
            for name, _, _, ratio in rows[2:]
        ],
    )


if __name__ == "__main__":
    main()
