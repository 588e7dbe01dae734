"""Compare a theta join without an equality: DuckDB on the whole input against Braid in batches.

The input has 2 x 200,000 rows. DuckDB reads the same Parquet files, joins once and writes one file
of results. Braid joins the rows as they arrive, in ten batches, and is ready for more: as Spark
streams, and as tables without Spark. Braid runs some rounds in turns, and the median round counts,
without the first. DuckDB compares all pairs, which takes minutes and needs no warm-up: it runs
once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import duckdb
import pandas as pd
import pyarrow.parquet as pq
from _common import Measure, arguments, both, leave, scratch, stream
from braid import AdaptiveGrid
from braid.spark_session import session
from braid.stream_join import JoinRun, StreamJoin
from pyspark.sql import SparkSession

ON = "abs(a.k - b.k) <= 2 AND a.x < b.x"
Round = Callable[[int], tuple[float, int]]


def at_once(folder: Path) -> tuple[float, int]:
    """Return seconds and results of DuckDB."""
    out, began = folder / "duckdb.parquet", time.perf_counter()
    with duckdb.connect() as db:
        found = (
            f"SELECT a, b FROM '{folder}/a/*.parquet' AS a JOIN '{folder}/b/*.parquet' AS b ON {ON}"
        )
        db.execute(f"COPY ({found}) TO '{out}'")
    return time.perf_counter() - began, pq.read_metadata(out).num_rows


def ended(run: JoinRun) -> int:
    """Return the results of a finished run."""
    run.awaitTermination()
    return int(run.metrics(by="batch")["results"].sum())


def as_streams(spark: SparkSession, folder: Path, hosts: int, number: int) -> tuple[float, int]:
    """Return seconds from start to end, including Spark's micro-batches, and results."""
    began = time.perf_counter()
    streams = {s: stream(spark, folder / s) for s in "ab"}
    join = StreamJoin(streams, ON, AdaptiveGrid(hosts), "unbounded")
    run = join.start(folder / f"streams {number}", availableNow=True)
    results = ended(run)
    return time.perf_counter() - began, results


def as_tables(folder: Path, hosts: int, batches: int, number: int) -> tuple[float, int]:
    """Return seconds from reading to the end, and results, of tables without Spark."""
    began = time.perf_counter()
    tables = {s: pq.read_table(folder / s) for s in "ab"}
    join = StreamJoin(tables, ON, AdaptiveGrid(hosts), time="ts")
    results = ended(join.start(folder / f"tables {number}", batches=batches))
    return time.perf_counter() - began, results


def main() -> None:
    args = arguments(__doc__ or "", {"rows": 20_000}, rows=200_000, batches=10, hosts=4, rounds=3)
    spark = session("benchmark")
    with scratch() as folder:
        both(spark, folder, args)
        least, expected = at_once(folder)
        ways: dict[str, Round] = {
            "Braid, Spark streams": lambda n: as_streams(spark, folder, args.hosts, n),
            "Braid, tables": lambda n: as_tables(folder, args.hosts, args.batches, n),
        }
        found = {name: [way(0)] for name, way in ways.items()}
        for number in range(1, args.rounds):
            for name, way in ways.items():
                found[name].append(way(number))
    counts = {results for rounds in found.values() for _, results in rounds}
    assert counts == {expected}, f"results differ: {counts}, DuckDB {expected}"
    took = {name: median(s for s, _ in rounds[1:]) for name, rounds in found.items()}
    took = {"DuckDB, the whole input at once": least} | took
    rows = [(name, s, expected, least / s) for name, s in took.items()]
    table = pd.DataFrame(rows, columns=["program", "seconds in all", "results", "DuckDB: times"])
    leave(
        args,
        {f"2 x {args.rows:,} rows, {ON}, {args.batches} batches": table.round(3)},
        [
            Measure(f"theta join, DuckDB at once / {name}", ratio, None, 1)
            for name, _, _, ratio in rows[1:]
        ],
    )


if __name__ == "__main__":
    main()
