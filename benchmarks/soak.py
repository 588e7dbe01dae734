"""Check for growth over a long run of small batches, in this process and on Spark tasks.

In process, the engine joins two streams in windows with one second of event time per batch, as
``executor="process"`` does on a run of tables. Tuples are generated, not read. At ten moments the
run is abandoned and resumed; the seconds of that are recorded with the resources of the process and
the size of the folder. At the end, the rows in the result files are compared with those of DuckDB.
Batch times are also reported in CPU seconds, which other work on the machine affects less.

A commit is split into the seconds of its file system calls and the rest, which is Braid's own. The
calls, the names in listed folders and the bytes written are counted. A file system may need longer
for the same calls after many files were removed, as ext4 without a journal does. Therefore the same
operations also run now and then on other files in the run's folder. Set TMPDIR to a folder on a
file system with a journal to avoid this.

On Spark (``executor="spark"``), Spark generates the tuples, and the run is stopped and resumed as
often, through the public API. The memory of the JVM and of its largest worker is reported too.
There "ms a batch" is the engine's part, and a stretch begins with the batches after a resume. Each
part runs in its own process, so that the resources of one are not attributed to the other.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import _soak_disk
import _soak_spark
import duckdb
import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from _common import Measure, make_scratch_folder, parse_arguments, write_figures
from braid import HashPartition
from braid.condition.access_paths import IndexCondition
from braid.condition.predicate import Predicate
from braid.core.horizon import reach_of_windows
from braid.core.reserved_columns import ROUTING, TIME
from braid.core.run_events import BatchCommitted
from braid.execution.engine import Engine
from braid.execution.thread_executor import ThreadExecutor
from braid.kernels.join_spec import JoinSpec
from braid.storage.run_store import RunStore
from braid.util.file_system import replace_file_system

PLACEMENT = HashPartition(4)
STRETCHES = 10
BARE_INTERVAL = 20
"""Number of batches between two measurements of a commit's file operations."""
SECOND = 1_000_000


def make_batch(number: int, rows: int) -> dict[int, list[pa.RecordBatch]]:
    """Return the tuples of a batch by stream: keys that recur for some time and then never
    again.
    """
    draw = np.random.default_rng(number)
    batches = {}
    for stream in range(2):
        k = number // 20 * 1000 + draw.integers(0, 5 * rows, rows)
        columns = {
            "id": number * rows + np.arange(rows),
            "k": k,
            TIME: number * SECOND + draw.integers(0, SECOND, rows),
            ROUTING: (k % PLACEMENT.key_space_size).astype(np.int32),
        }
        batches[stream] = [pa.record_batch(list(map(pa.array, columns.values())), list(columns))]
    return batches


def compare_results(files: Sequence[str], batches: int, rows: int, window: int) -> tuple[int, int]:
    """Return the expected number of results, and how many of them the files lack, from DuckDB."""
    streams = [
        pa.Table.from_batches([make_batch(n, rows)[s][0] for n in range(batches)]) for s in range(2)
    ]
    with duckdb.connect() as db:
        for name, stream in zip("ab", streams, strict=True):
            db.register(name, stream)
        near = f"abs(a.{TIME} - b.{TIME}) < {window * SECOND}"
        db.execute(
            "CREATE TABLE wanted AS "
            f"SELECT a.id AS a, b.id AS b FROM a JOIN b USING (k) WHERE {near}"
        )
        there = "SELECT a.id, b.id FROM read_parquet(?)"
        row = db.execute(
            "SELECT (SELECT count(*) FROM wanted), "
            f"(SELECT count(*) FROM (FROM wanted EXCEPT ALL {there}))",
            [list(files)],
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def open_engine(folder: Path, window: int, clock: Callable[[], float] | None = None) -> Engine:
    """Return an engine opened in a folder without the public API."""
    store = RunStore(folder)
    if store.read_settings() is None:
        store.create_run({"soak": True})
    store.acquire_run()
    store.verify_files()
    store.take_over()
    store.remove_unnamed_files()
    links = (IndexCondition((0, "k"), (1, "k"), 0, 0),)
    predicate = Predicate(("a", "b"), (None, None), ({}, {}), ({}, {}), links, ())
    limit = window * SECOND
    spec = JoinSpec(
        predicate, (("id", "k"),) * 2, (), reach_of_windows((limit, limit)), str(folder), 1
    )
    ignore: Callable[[Any], None] = lambda happened: None  # noqa: E731
    return Engine(spec, PLACEMENT, store, (0, 0), False, ignore, ThreadExecutor(), clock=clock)


def measure_resources(folder: Path) -> dict[str, float]:
    """Return the resources of the process and the size of the folder."""
    gc.collect()
    process = psutil.Process()
    maps = Path("/proc/self/maps").read_text().splitlines()
    folders = [f for f in ("commits", "blocks", "results", "compacted") if (folder / f).exists()]
    count = {name: len(os.listdir(folder / name)) for name in folders}
    began = time.perf_counter()
    files = RunStore(folder).results.result_files()
    listing = time.perf_counter() - began
    return {
        "RSS MB": process.memory_info().rss / 1e6,
        "open files": process.num_fds(),
        "mapped, gone": sum(str(folder) in line and "(deleted)" in line for line in maps),
        **count,
        "files of all results": len(files),
        "ms to list them": 1000 * listing,
        "log of results": len(os.listdir(folder / "results" / "_spark_metadata")),
        "MB on disk": sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6,
    }


def run_soak(folder: Path, batches: int, rows: int, window: int) -> Iterator[dict[str, float]]:
    """Yield a row for each stretch of the run."""
    disk = _soak_disk.TimedDisk()
    with replace_file_system(disk):
        yield from run_stretches(disk, folder, batches, rows, window)


def run_stretches(
    disk: _soak_disk.TimedDisk, folder: Path, batches: int, rows: int, window: int
) -> Iterator[dict[str, float]]:
    engine = open_engine(folder, window, disk.read_clock)
    for stretch in range(STRETCHES):
        seconds, commits, worked, spans, bares = [], [], [], [], list[float]()
        for number in range(batches * stretch // STRETCHES, batches * (stretch + 1) // STRETCHES):
            tuples = make_batch(number, rows)
            began, busy = time.perf_counter(), time.process_time()
            engine.run_batch(tuples, number)
            worked.append(time.process_time() - busy)
            seconds.append(time.perf_counter() - began)
            commits.append(engine.last_commit)
            spans.append(disk.read_last_span())
            if not bares or number % BARE_INTERVAL == 0:
                bares.append(_soak_disk.time_bare_commit(folder / "commits", name_count=number))
        engine.store.release_run()
        resources = measure_resources(folder)
        began, busy = time.perf_counter(), time.process_time()
        engine = open_engine(folder, window, disk.read_clock)
        resume, working = time.perf_counter() - began, time.process_time() - busy
        yield {
            "batches": engine.state.batch + 1,
            "ms a batch": 1000 * median(seconds),
            "CPU ms a batch": 1000 * median(worked),
            "slowest, ms": 1000 * max(seconds),
            **_soak_disk.summarize_commits(commits, spans, bares),
            "ms to resume": 1000 * resume,
            "CPU ms to resume": 1000 * working,
            **resources,
        }
    happened = engine.store.archive.committed_events()
    engine.store.release_run()
    results = sum(e.results for e in happened if isinstance(e, BatchCommitted))
    files = RunStore(folder).results.result_files()
    wanted, missing = compare_results(files, batches, rows, window)
    assert results == wanted, "DuckDB has other results"
    assert sum(pq.read_metadata(file).num_rows for file in files) == wanted, "and are all there"
    assert not missing, "and are the same"


def print_rows(what: str, rows: Iterable[dict[str, float]]) -> list[dict[str, float]]:
    """Return the rows, and print each as it arrives, with the elapsed and the remaining seconds."""
    printed, start = list[dict[str, float]](), time.perf_counter()
    for row in rows:
        printed.append(row)
        spent = time.perf_counter() - start
        left = spent / len(printed) * (STRETCHES - len(printed))
        line = ", ".join(f"{name} {value:,.4g}" for name, value in row.items())
        took = f"{spent:.0f} s so far, {left:.0f} s left"
        print(f"{what}: {line}; {took}", file=sys.stderr, flush=True)
    return printed


def soak_in_process(folder: Path, batches: int, rows: int, window: int) -> list[dict[str, float]]:
    return print_rows("in process", run_soak(folder, batches, rows, window))


def soak_on_spark(folder: Path, batches: int, rows: int, window: int) -> list[dict[str, float]]:
    return print_rows("on Spark", _soak_spark.run_soak(folder, batches, rows, window, STRETCHES))


def run_separately(
    part: Callable[..., list[dict[str, float]]], *args: Any
) -> list[dict[str, float]]:
    """Return the rows of a part of the soak, run in its own process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(part, *args).result()


def list_growth_measures(
    what: str, rows: Sequence[dict[str, float]], limits: Mapping[str, float]
) -> list[Measure]:
    """Return how much more the last stretch takes or holds than the second."""
    _, first, *_, last = rows
    return [
        Measure(
            f"{what}: {name}, last tenth / second tenth", last[name] / first[name], most, 1.1, True
        )
        for name, most in limits.items()
    ]


IN_PROCESS = dict.fromkeys(("ms a batch", "CPU ms a batch", "ms a commit", "RSS MB"), 1.3)
COMMIT = dict.fromkeys(
    ("ms a commit, but for its files", "file calls a commit", "names listed a commit"), 1.3
)
ON_SPARK = dict.fromkeys(("ms a batch", "ms a commit", "RSS MB", "JVM heap MB"), 1.3)
WORKERS = dict.fromkeys(("JVM open files", "most of a worker"), 1.2) | {"largest worker MB": 1.3}
FILES = {"open files": 1.2}
RESUMED = "ms to resume"


def main() -> None:
    quick = {"batches": 400, "spark_batches": 30}
    args = parse_arguments(
        __doc__ or "", quick, batches=20_000, spark_batches=2_000, rows=20, window=30
    )
    tables, measures = {}, list[Measure]()
    with make_scratch_folder() as folder:
        if args.batches:
            rows = run_separately(
                soak_in_process, folder / "run", args.batches, args.rows, args.window
            )
            tables[f"{args.batches:,} batches in process"] = rows
            measures += list_growth_measures("in process", rows, IN_PROCESS | COMMIT | FILES)
            measures.append(Measure("ms to resume, at the end", rows[-1][RESUMED], 2000, 500, True))
        if args.spark_batches:
            rows = run_separately(
                soak_on_spark, folder / "spark", args.spark_batches, args.rows, args.window
            )
            tables[f"{args.spark_batches:,} batches on Spark"] = rows
            measures += list_growth_measures("on Spark", rows, ON_SPARK | FILES | WORKERS)
            early, late = (median(r[RESUMED] for r in some) for some in (rows[1:4], rows[-3:]))
            what = f"on Spark: {RESUMED}, last three / second to fourth"
            measures.append(Measure(what, late / early, 1.3, 1.1, True))
    shown = {title: pd.DataFrame(rows).round(2) for title, rows in tables.items()}
    write_figures(args, shown, measures)


if __name__ == "__main__":
    main()
