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
from braid.spark_session import session
from braid.storage.run_store import RunStore
from braid.stream_join import JoinRun, StreamJoin
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

LOOK = 0.05
"""Seconds between two polls of the run."""
SPARKS = 2
"""Number of files that Spark's checkpoint writes and syncs in each batch."""
KEY = "v // {recur} * 1000 + (v * {prime} + v // 7 * 31) % {range}"
"""Keys that recur for twenty batches and then never again, as an expression over ``v``."""
TIME = "v // {rows} * 1000 + (v * 263) % 1000"
"""Event time in milliseconds."""


def formulas(rows: int) -> dict[str, dict[str, str]]:
    """Return, by stream, the columns of a tuple as DuckDB expressions over its number ``v``."""
    numbers = {"a": 7919, "b": 104_729}
    values = {"rows": rows, "recur": 20 * rows, "range": 5 * rows}
    return {
        stream: {"k": KEY.format(prime=prime, **values), "ms": TIME.format(rows=rows)}
        for stream, prime in numbers.items()
    }


def streams(spark: SparkSession, rows: int) -> dict[str, DataFrame]:
    """Return the two streams: ``rows`` tuples a batch, each batch one second of event time."""
    source = spark.readStream.format("rate-micro-batch").options(
        rowsPerBatch=str(rows), numPartitions="1", advanceMillisPerBatch="1000"
    )
    found = {}
    for stream, columns in formulas(rows).items():
        k, ms = (F.expr(columns[name].replace("//", "div")) for name in ("k", "ms"))
        frame = source.load().withColumn("v", F.col("value"))
        found[stream] = frame.select("v", k.alias("k"), F.timestamp_millis(ms).alias("ts"))
    return found


def due(batches: int, rows: int, window: int) -> int:
    """Return the expected number of results, from DuckDB."""
    made = [
        f"(SELECT {c['k']} AS k, {c['ms']} AS ms FROM range({batches * rows}) t(v)) {s}"
        for s, c in formulas(rows).items()
    ]
    near = f"abs(a.ms - b.ms) < {1000 * window}"
    query = f"SELECT count(*) FROM {made[0]} JOIN {made[1]} USING (k) WHERE {near}"
    with duckdb.connect() as db:
        found = db.execute(query).fetchone()
    assert found is not None
    return int(found[0])


@dataclass(frozen=True)
class Held:
    """Resources of a child process of the driver.

    ``gone`` counts mapped files that are deleted.
    """

    name: str
    rss: float
    files: int
    gone: int


def files(process: psutil.Process) -> int:
    """Return the number of open files of a process without sockets.

    For every query that it ever started, py4j keeps a socket, with or without Braid.
    """
    found = 0
    for entry in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found += not os.readlink(entry).startswith("socket:")
    return found


def below(folder: Path) -> Iterator[Held]:
    """Yield the child processes of this one, without those that end meanwhile."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            maps = Path(f"/proc/{process.pid}/maps").read_text().splitlines()
            gone = sum(str(folder) in line and "(deleted)" in line for line in maps)
            rss = process.memory_info().rss / 1e6
            if process.status() != psutil.STATUS_ZOMBIE:
                yield Held(process.name(), rss, files(process), gone)


def holds(spark: SparkSession, folder: Path) -> dict[str, float]:
    """Return the resources of the driver, its JVM and its workers, and the size of the folder."""
    gc.collect()
    java: Any = spark._jvm
    java.java.lang.System.gc()
    runtime = java.java.lang.Runtime.getRuntime()
    me, found = psutil.Process(), list(below(folder))
    jvm = [p for p in found if "java" in p.name]
    workers = [p for p in found if "python" in p.name]
    return {
        "RSS MB": me.memory_info().rss / 1e6,
        "JVM heap MB": (runtime.totalMemory() - runtime.freeMemory()) / 1e6,
        "JVM RSS MB": sum(p.rss for p in jvm),
        "largest worker MB": max((p.rss for p in workers), default=0),
        "open files": files(me),
        "JVM open files": sum(p.files for p in jvm),
        "most of a worker": max((p.files for p in workers), default=0),
        "sockets": me.num_fds() - files(me),
        "mapped, gone": sum(p.gone for p in workers),
        "files of all results": len(RunStore(folder).results.result_files()),
        "checkpoint": sum(len(names) for _, _, names in os.walk(folder / "checkpoint")),
    }


def until(run: JoinRun, batches: int) -> None:
    """Wait until this number of batches is committed. Raises the run's error."""
    while run.status["batch"] < batches:
        if run.awaitTermination(LOOK):
            raise RuntimeError("the run has ended before its time")


def soak(
    folder: Path, batches: int, rows: int, window: int, moments: int
) -> Iterator[dict[str, float]]:
    """Yield a row for each stretch of the run; the run is stopped and resumed after each."""
    spark = session("soak")
    join = StreamJoin(
        streams(spark, rows),
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
        until(run, max(batches * stretch // moments, before + 1))
        held = holds(spark, folder)
        run.stop()
        bare = median(_soak_disk.bare(folder / "commits", SPARKS) for _ in range(100))
        told = [e for e in run.events(since=events) if isinstance(e, BatchCommitted)]
        commits = [e.previous_commit_seconds for e in told]
        began = time.perf_counter()
        run = join.start(folder)
        resume = time.perf_counter() - began
        until(run, told[-1].batch + 2)
        first = time.perf_counter() - began
        yield {
            "batches": told[-1].batch + 1,
            "ms a batch": 1000 * median(e.seconds_by_phase["total"] for e in told),
            "slowest, ms": 1000 * max(e.seconds_by_phase["total"] for e in told),
            **_soak_disk.shares(commits, [(median(commits), bare)]),
            "ms to resume": 1000 * resume,
            "ms to its first batch": 1000 * first,
            **held,
        }
    run.stop()
    check(RunStore(folder), rows, window)
    spark.stop()


def check(store: RunStore, rows: int, window: int) -> None:
    """Check the results of the committed batches against DuckDB."""
    done = [e for e in store.archive.committed_events() if isinstance(e, BatchCommitted)]
    found, wanted = sum(e.results for e in done), due(len(done), rows, window)
    assert found == wanted, f"the results are those of DuckDB: {found}, {wanted}"
