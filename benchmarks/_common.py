"""Helpers shared by the benchmarks: input, scratch folder, time per micro-batch, tables.

They also write the file of figures from which ``_page.py`` makes docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from braid.join_run import JoinRun
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

FIGURES = Path(__file__).parent / "figures"
"""Folder of the figures; each program overwrites those of its previous run."""
QUICK_FIGURES = Path(__file__).parents[1] / "runs" / "bench"
"""Folder of the figures of runs with --quick, and of what programs install."""
_START_SECONDS = time.perf_counter()
_LOAD = os.getloadavg()[0]


@dataclass(frozen=True)
class Measure:
    """One figure of a program.

    - ``value``: a ratio; larger is better unless ``most``.
    - ``required``, ``aim``: its limits, minimum ones unless ``most``; None: no limit.
    - ``most``: the limits are maxima.
    """

    name: str
    value: float
    required: float | None = None
    aim: float | None = None
    most: bool = False


def parse_arguments(
    description: str, quick: Mapping[str, int] | None = None, **defaults: int
) -> argparse.Namespace:
    """Return command-line integers by name; with --quick those of ``quick``, for a smoke test."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small, to see that it runs")
    for name, value in defaults.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, dest=name, type=int, help=f"default {value}")
    parsed = parser.parse_args()
    for name, value in (defaults | (dict(quick or {}) if parsed.quick else {})).items():
        if getattr(parsed, name) is None:
            setattr(parsed, name, value)
    return parsed


@contextmanager
def make_scratch_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="braid-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def make_events(spark: SparkSession, rows: int, seed: int, keys: int, seconds: float) -> DataFrame:
    """Return ``rows`` tuples (k, ts, v, x), evenly spread over ``seconds`` of event time.

    k has ``keys`` values. No event time is the first instant of 1970: Spark's watermark starts
    there, and its join would treat such a tuple as late.
    """
    step = int(seconds * 1e6 / rows)
    return spark.range(rows).select(
        F.pmod(F.xxhash64(F.lit(seed), "id"), F.lit(keys)).alias("k"),
        F.timestamp_micros((F.col("id") + 1) * F.lit(step)).alias("ts"),
        F.col("id").alias("v"),
        F.rand(seed).alias("x"),
    )


def write_batch_files(frame: DataFrame, folder: Path, rows: Sequence[int]) -> None:
    """Write one Parquet file of the given number of rows per micro-batch.

    Files are in the order in which Spark's file source reads them.
    """
    folder.mkdir(parents=True)
    table = frame.toArrow()
    for k, (n, end) in enumerate(zip(rows, accumulate(rows), strict=True)):
        file = folder / f"{k:04d}.parquet"
        pq.write_table(table.slice(end - n, n), file)
        os.utime(file, (1e9 + k, 1e9 + k))


def split_evenly(rows: int, batches: int) -> list[int]:
    """Return the row counts of equally sized batches."""
    return [(k + 1) * rows // batches - k * rows // batches for k in range(batches)]


def write_two_streams(spark: SparkSession, folder: Path, args: argparse.Namespace) -> None:
    """Write two streams, "a" and "b", as files under ``folder``.

    They span ten minutes of event time; each key occurs about three times.
    """
    for seed, name in enumerate("ab"):
        write_batch_files(
            make_events(spark, args.rows, seed, args.rows * 3 // 10, 600),
            folder / name,
            split_evenly(args.rows, args.batches),
        )


def read_stream(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


_STATE = "spark.sql.streaming.stateStore"
_PROVIDERS = "org.apache.spark.sql.execution.streaming.state"
STATE_STORES = {
    "Spark, in memory": {
        f"{_STATE}.providerClass": f"{_PROVIDERS}.HDFSBackedStateStoreProvider",
        "spark.sql.streaming.join.stateFormatVersion": "2",
    },
    "Spark, RocksDB": {
        f"{_STATE}.providerClass": f"{_PROVIDERS}.RocksDBStateStoreProvider",
        f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{_STATE}.rocksdb.trackTotalNumberOfRows": "false",
        "spark.sql.streaming.join.stateFormatVersion": "4",
    },
}
"""Spark's state stores, each with the settings that make its joins fastest."""
STORE_NAMES = tuple(STATE_STORES)


def run_builtin_join(
    spark: SparkSession, joined: DataFrame, store: str, out: Path
) -> tuple[list[float], int]:
    """Return seconds per batch and the number of results of Spark's own join with a state store."""
    for key, value in STATE_STORES[store].items():
        spark.conf.set(key, value)
    writer = joined.writeStream.format("parquet").option(
        "checkpointLocation", str(out / "checkpoint")
    )
    query = writer.trigger(availableNow=True).start(str(out / "results"))
    query.awaitTermination()
    return read_batch_seconds(query), spark.read.parquet(str(out / "results")).count()


def read_batch_seconds(query: StreamingQuery | JoinRun) -> list[float]:
    """Return wall-clock seconds of each micro-batch with tuples, as Spark reports them.

    They cover the whole trigger, including sources and logs.
    """
    spark_query = query.spark_query if isinstance(query, JoinRun) else query
    return [
        p.durationMs["triggerExecution"] / 1000
        for p in spark_query.recentProgress
        if p.numInputRows > 0
    ]


def find_warm_median(times: list[float]) -> float:
    """Return the median batch, without the first, which includes compilation."""
    return median(times[1:])


def print_table(title: str, table: pd.DataFrame) -> None:
    print(f"\n{title}\n{table.to_string(index=False)}", flush=True)


def write_figures(
    args: argparse.Namespace,
    tables: Mapping[str, pd.DataFrame],
    measures: list[Measure],
    notes: tuple[str, ...] = (),
) -> None:
    """Print the tables by title, and write the program's file of figures.

    The file holds the tables, the measures and the settings.
    """
    name = Path(sys.argv[0]).stem
    for title, table in tables.items():
        print_table(title, table)
    for m in measures:
        print(f"{m.name}: {m.value:.3g} (required {m.required}, aim {m.aim})", flush=True)
    for note in notes:
        print(note, flush=True)
    folder = QUICK_FIGURES if args.quick else FIGURES
    folder.mkdir(parents=True, exist_ok=True)
    figures: dict[str, Any] = {
        "name": name,
        "about": " ".join((sys.modules["__main__"].__doc__ or "").split()),
        "quick": args.quick,
        "settings": {k: v for k, v in vars(args).items() if k != "quick"},
        "measures": [asdict(m) for m in measures],
        "tables": {title: table.to_dict("split", index=False) for title, table in tables.items()},
        "notes": list(notes),
        "load": _LOAD,
        "minutes": (time.perf_counter() - _START_SECONDS) / 60,
        "machine": describe_machine(),
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }
    (folder / f"{name}.json").write_text(json.dumps(figures, indent=1, default=float))


def describe_machine() -> dict[str, str]:
    """Return a description of the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = {name: version(name) for name in ("pyspark", "pyarrow", "numpy", "duckdb")}
    return {
        "processor": f"{_read_processor_name()}, {os.cpu_count()} cores",
        "memory": f"{memory:.0f} GB",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Python": platform.python_version(),
        **packages,
    }


def _read_processor_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()
