"""The part of the soak that runs on Spark: two streams from Spark, joined by Spark tasks.

It runs with ``executor="spark"``, one batch after another.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import _soak_disk
import duckdb
import psutil
from braid import HashPartition
from braid.core.run_events import BatchCommitted
from braid.join_run import JoinRun
from braid.spark_session import session
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

POLL_SECONDS = 0.05
"""Seconds between two polls of the run."""
SPARK_FILES = 2
"""Number of files that Spark's checkpoint writes and syncs in each batch."""
KEY_EXPRESSION = "v // {recur} * 1000 + (v * {prime} + v // 7 * 31) % {range}"
"""Keys that recur for twenty batches and then never again, as an expression over ``v``."""
TIME_EXPRESSION = "v // {rows} * 1000 + (v * 263) % 1000"
"""Event time in milliseconds."""


def format_columns(rows: int) -> dict[str, dict[str, str]]:
    """Return, by stream, the columns of a tuple as DuckDB expressions over its number ``v``."""
    numbers = {"a": 7919, "b": 104_729}
    values = {"rows": rows, "recur": 20 * rows, "range": 5 * rows}
    return {
        stream: {
            "k": KEY_EXPRESSION.format(prime=prime, **values),
            "ms": TIME_EXPRESSION.format(rows=rows),
        }
        for stream, prime in numbers.items()
    }


def make_streams(spark: SparkSession, rows: int) -> dict[str, DataFrame]:
    """Return the two streams: ``rows`` tuples a batch, each batch one second of event time."""
    source = spark.readStream.format("rate-micro-batch").options(
        rowsPerBatch=str(rows), numPartitions="1", advanceMillisPerBatch="1000"
    )
    frames = {}
    for stream, columns in format_columns(rows).items():
        k, ms = (F.expr(columns[name].replace("//", "div")) for name in ("k", "ms"))
        frame = source.load().withColumn("v", F.col("value"))
        frames[stream] = frame.select("v", k.alias("k"), F.timestamp_millis(ms).alias("ts"))
    return frames


def count_expected_results(batches: int, rows: int, window: int) -> int:
    """Return the expected number of results, from DuckDB."""
    tables = [
        f"(SELECT {c['k']} AS k, {c['ms']} AS ms FROM range({batches * rows}) t(v)) {s}"
        for s, c in format_columns(rows).items()
    ]
    near = f"abs(a.ms - b.ms) < {1000 * window}"
    query = f"SELECT count(*) FROM {tables[0]} JOIN {tables[1]} USING (k) WHERE {near}"
    with duckdb.connect() as db:
        row = db.execute(query).fetchone()
    assert row is not None
    return int(row[0])


@dataclass(frozen=True)
class ProcessResources:
    """Resources of a child process of the driver.

    ``deleted_maps`` counts mapped files that are deleted.
    """

    name: str
    rss: float
    open_files: int
    deleted_maps: int


def count_open_files(process: psutil.Process) -> int:
    """Return the number of open files of a process without sockets.

    For every query that it ever started, py4j keeps a socket, with or without Braid.
    """
    number = 0
    for entry in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            number += not os.readlink(entry).startswith("socket:")
    return number


def iterate_child_processes(folder: Path) -> Iterator[ProcessResources]:
    """Yield the child processes of this one, without those that end meanwhile."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            maps = Path(f"/proc/{process.pid}/maps").read_text().splitlines()
            deleted_maps = sum(str(folder) in line and "(deleted)" in line for line in maps)
            rss = process.memory_info().rss / 1e6
            if process.status() != psutil.STATUS_ZOMBIE:
                yield ProcessResources(process.name(), rss, count_open_files(process), deleted_maps)


def measure_resources(spark: SparkSession, folder: Path) -> dict[str, float]:
    """Return the resources of the driver, its JVM and its workers, and the size of the folder."""
    gc.collect()
    java: Any = spark._jvm
    java.java.lang.System.gc()
    runtime = java.java.lang.Runtime.getRuntime()
    driver, children = psutil.Process(), list(iterate_child_processes(folder))
    jvm = [p for p in children if "java" in p.name]
    workers = [p for p in children if "python" in p.name]
    return {
        "RSS MB": driver.memory_info().rss / 1e6,
        "JVM heap MB": (runtime.totalMemory() - runtime.freeMemory()) / 1e6,
        "JVM RSS MB": sum(p.rss for p in jvm),
        "largest worker MB": max((p.rss for p in workers), default=0),
        "open files": count_open_files(driver),
        "JVM open files": sum(p.open_files for p in jvm),
        "most of a worker": max((p.open_files for p in workers), default=0),
        "sockets": driver.num_fds() - count_open_files(driver),
        "mapped, gone": sum(p.deleted_maps for p in workers),
        "files of all results": len(RunStore(folder).results.result_files()),
        "checkpoint": sum(len(names) for _, _, names in os.walk(folder / "checkpoint")),
    }


def wait_for_batches(run: JoinRun, batches: int) -> None:
    """Wait until this number of batches is committed. Raises the run's error."""
    while run.status["batch"] < batches:
        if run.awaitTermination(POLL_SECONDS):
            raise RuntimeError("the run has ended before its time")


def run_soak(
    folder: Path, batches: int, rows: int, window: int, moments: int
) -> Iterator[dict[str, float]]:
    """Yield a row for each stretch of the run; the run is stopped and resumed after each."""
    spark = session("soak")
    join = StreamJoin(
        make_streams(spark, rows),
        "a.k = b.k",
        HashPartition(4),
        f"{window} seconds",
        "ts",
        executor="spark",
        partitions=1,
    )
    run = join.start(folder)
    for stretch in range(1, moments + 1):
        before, events = run.status["batch"], run.store.events.event_count
        wait_for_batches(run, max(batches * stretch // moments, before + 1))
        resources = measure_resources(spark, folder)
        run.stop()
        bare_seconds = median(
            _soak_disk.time_bare_commit(folder / "commits", SPARK_FILES) for _ in range(100)
        )
        committed = [e for e in run.events(since=events) if isinstance(e, BatchCommitted)]
        commits = [e.previous_commit_seconds for e in committed]
        began = time.perf_counter()
        run = join.start(folder)
        resume = time.perf_counter() - began
        wait_for_batches(run, committed[-1].batch + 2)
        first = time.perf_counter() - began
        yield {
            "batches": committed[-1].batch + 1,
            "ms a batch": 1000 * median(e.seconds_by_phase["total"] for e in committed),
            "slowest, ms": 1000 * max(e.seconds_by_phase["total"] for e in committed),
            **_soak_disk.split_commit_time(commits, [(median(commits), bare_seconds)]),
            "ms to resume": 1000 * resume,
            "ms to its first batch": 1000 * first,
            **resources,
        }
    run.stop()
    check_results(RunStore(folder), rows, window)
    spark.stop()


def check_results(store: RunStore, rows: int, window: int) -> None:
    """Check the results of the committed batches against DuckDB."""
    done = [e for e in store.archive.committed_events() if isinstance(e, BatchCommitted)]
    results, expected = (
        sum(e.results for e in done),
        count_expected_results(len(done), rows, window),
    )
    assert results == expected, f"the results are those of DuckDB: {results}, {expected}"
