"""A long run of small batches, in this process: does anything grow?

The engine joins two streams in windows, a batch a second of event time, as ``executor="process"``
does on a run of tables; tuples are made, not read. At ten moments the run is given up and resumed,
and the seconds of that are taken, with what the process and the folder hold, and told as it goes
on. At the end the number of results is held against DuckDB's, and so are the rows of the result
files. What a batch takes is also told in seconds of processors, which other work on the machine
changes less.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import duckdb
import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from _common import Measure, arguments, leave, scratch
from braid import HashPartition
from braid.condition.predicate import Link, Predicate
from braid.core.columns import ROUTING, TIME
from braid.core.events import BatchCommitted
from braid.engine.engine import Engine
from braid.engine.process import ProcessExecutor
from braid.engine.store import Store
from braid.engine.wire import JoinSpec

HOSTS = HashPartition(4)
MOMENTS = 10
MICRO = 1_000_000


def batch(number: int, rows: int) -> dict[int, list[pa.RecordBatch]]:
    """The tuples of a batch by stream: keys that recur for some time and then never again."""
    draw = np.random.default_rng(number)
    found = {}
    for stream in range(2):
        k = number // 20 * 1000 + draw.integers(0, 5 * rows, rows)
        columns = {
            "id": number * rows + np.arange(rows),
            "k": k,
            TIME: number * MICRO + draw.integers(0, MICRO, rows),
            ROUTING: (k % HOSTS.keys).astype(np.int32),
        }
        found[stream] = [pa.record_batch(list(map(pa.array, columns.values())), list(columns))]
    return found


def due(batches: int, rows: int, window: int) -> int:
    """The number of results, by DuckDB."""
    streams = [
        pa.Table.from_batches([batch(n, rows)[s][0] for n in range(batches)]) for s in range(2)
    ]
    with duckdb.connect() as db:
        for name, stream in zip("ab", streams, strict=True):
            db.register(name, stream)
        near = f"abs(a.{TIME} - b.{TIME}) < {window * MICRO}"
        found = db.execute(f"SELECT count(*) FROM a JOIN b USING (k) WHERE {near}").fetchone()
    assert found is not None
    return int(found[0])


def opened(folder: Path, window: int) -> Engine:
    """What a start does in a folder, but for the front door."""
    store = Store(folder)
    if store.query() is None:
        store.create({"soak": True})
    store.acquire()
    store.verify()
    store.take_over()
    store.clean()
    links = (Link((0, "k"), (1, "k"), 0, 0),)
    predicate = Predicate(("a", "b"), (None, None), ({}, {}), ({}, {}), links, ())
    limit = window * MICRO
    spec = JoinSpec(predicate, (("id", "k"),) * 2, (), (limit, limit), str(folder), 1)
    return Engine(spec, HOSTS, store, 0, False, lambda happened: None, ProcessExecutor())


def holds(folder: Path) -> dict[str, float]:
    """What the process and the folder hold."""
    gc.collect()
    process = psutil.Process()
    maps = Path("/proc/self/maps").read_text().splitlines()
    folders = [f for f in ("commits", "blocks", "results", "merged") if (folder / f).exists()]
    count = {name: len(os.listdir(folder / name)) for name in folders}
    began = time.perf_counter()
    files = Store(folder).result_files()
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


def soak(folder: Path, batches: int, rows: int, window: int) -> Iterator[dict[str, float]]:
    """A row for each stretch of the run."""
    engine, start = opened(folder, window), time.perf_counter()
    for stretch in range(MOMENTS):
        seconds, commits, worked = [], [], []
        for number in range(batches * stretch // MOMENTS, batches * (stretch + 1) // MOMENTS):
            tuples = batch(number, rows)
            began, busy = time.perf_counter(), time.process_time()
            engine.run(tuples, number)
            worked.append(time.process_time() - busy)
            seconds.append(time.perf_counter() - began)
            commits.append(engine.last_commit)
        engine.store.release()
        held = holds(folder)
        began, busy = time.perf_counter(), time.process_time()
        engine = opened(folder, window)
        resume, working = time.perf_counter() - began, time.process_time() - busy
        row = {
            "batches": engine.state.batch + 1,
            "ms a batch": 1000 * median(seconds),
            "CPU ms a batch": 1000 * median(worked),
            "slowest, ms": 1000 * max(seconds),
            "ms a commit": 1000 * median(commits),
            "ms to resume": 1000 * resume,
            "CPU ms to resume": 1000 * working,
            **held,
        }
        spent = time.perf_counter() - start
        left = spent / (stretch + 1) * (MOMENTS - stretch - 1)
        told = ", ".join(f"{name} {value:,.4g}" for name, value in row.items())
        print(f"{told}; {spent:.0f} s so far, {left:.0f} s left", file=sys.stderr, flush=True)
        yield row
    told = engine.store.history()
    engine.store.release()
    found = sum(e.results for e in told if isinstance(e, BatchCommitted))
    wanted = due(batches, rows, window)
    assert found == wanted, "the results are those of DuckDB"
    files = Store(folder).result_files()
    assert sum(pq.read_metadata(file).num_rows for file in files) == wanted, "and are all there"


def main() -> None:
    quick = {"batches": 400}
    args = arguments(__doc__ or "", quick, batches=20_000, rows=20, window=30)
    with scratch() as folder:
        rows = list(soak(folder / "run", args.batches, args.rows, args.window))
    table, (_, first, *_, last) = pd.DataFrame(rows).round(2), rows
    times = dict.fromkeys(("ms a batch", "CPU ms a batch", "ms a commit"), 1.3)
    asked = {**times, "RSS MB": 1.3, "open files": 1.2}
    measures = [
        Measure(f"{what}, last tenth / second tenth", last[what] / first[what], most, 1.1, True)
        for what, most in asked.items()
    ]
    resumed = Measure("ms to resume, at the end", last["ms to resume"], 2000, 500, True)
    leave(args, {f"{args.batches:,} batches": table}, [*measures, resumed])


if __name__ == "__main__":
    main()
