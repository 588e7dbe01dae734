"""Measure what a batch costs on many hosts, which are logical: they share this machine.

Tables are joined by an equality in this process, with full history, on one thread. A hash and a
grid take turns on each number of hosts, after a warm-up, and must find the same results. CPU
seconds are those of the whole process from the start of the first batch to the end of the run.

A second measure is the time of a batch of ten rows on one host. A third compares two threads with
one on one host, by the seconds of batches. At the end of another run, the bytes of its folder are
counted, but for results: input, blocks, states, log and events.
"""

from __future__ import annotations

import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
from _common import Measure, arguments, leave, scratch
from braid import HashPartition, StaticGrid
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.execution.thread_executor import ThreadExecutor
from braid.stream_join import StreamJoin

HOSTS = {"hash": (1, 16, 64, 256), "grid": (1, 16, 64, 256)}
REQUIRED = {("hash", 16): 1.3, ("hash", 64): 1.8, ("hash", 256): 3.0, ("grid", 256): 1.8}


UNMERGED = 8
"""Batches of a run whose last two states name the same merged blocks."""


class Took(NamedTuple):
    """CPU seconds of a run, seconds of its batches, its number of results, and its disk bytes."""

    cpu: float
    seconds: list[float]
    results: int
    disk_bytes: int


def make_placement(kind: str, hosts: int) -> Placement:
    side = round(hosts**0.5)
    return HashPartition(hosts) if kind == "hash" else StaticGrid(hosts, n=side, m=side)


def make_table(seed: int, rows: int, batches: int) -> pa.Table:
    """Return a table in which each key occurs once on average, with 24 bytes in a row."""
    draw = np.random.default_rng(seed)
    times = np.sort(draw.integers(0, 10**9, rows)).astype("datetime64[us]")
    number = np.arange(rows) * batches // rows
    keys, values = draw.integers(0, rows, rows), draw.random(rows)
    return pa.table({"k": keys, "ts": times, "v": values, "batch": number})


def join_tables(placement: Placement, rows: int, batches: int, threads: int = 1) -> Took:
    tables = {alias: make_table(seed, rows, batches) for seed, alias in enumerate("ab")}
    make = partial(ThreadExecutor, threads)
    with scratch() as folder, patch("braid.arrow_join.make_executor", lambda _: make()):
        join = StreamJoin(tables, "a.k = b.k", placement, None, "ts")
        run = join.start(folder / "run", batches="batch")
        began = time.process_time()
        run.awaitTermination()
        worked = time.process_time() - began
        done = [e for e in run.events() if isinstance(e, BatchCommitted)]
        size = sum_file_bytes(folder / "run")
    seconds = [e.seconds_by_phase["total"] for e in done]
    return Took(worked, seconds, sum(e.results for e in done), size)


def sum_file_bytes(folder: Path) -> int:
    """Return the bytes of a run's folder without results."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return sum(f.stat().st_size for f in files if f.parent.name not in ("results", "staging"))


def main() -> None:
    args = arguments(
        __doc__ or "",
        {"rows": 2_000, "large": 20_000, "tiny": 20, "rounds": 1},
        rows=20_000,
        batches=10,
        tiny=200,
        large=1_000_000,
        rounds=5,
    )
    cpu, results = defaultdict[tuple[str, int], list[float]](list), set[int]()
    cases = [(kind, hosts) for kind, several in HOSTS.items() for hosts in several]
    for turn in range(args.rounds + 1):
        for case in cases[:: 1 if turn % 2 else -1]:
            took = join_tables(make_placement(*case), args.rows, args.batches)
            results.add(took.results)
            cpu[case] += [took.cpu / args.batches] if turn else []
    assert len(results) == 1, f"placements find other results: {results}"
    ms = {case: 1000 * median(seconds) for case, seconds in cpu.items()}
    table = pd.DataFrame(
        [(kind, h, ms[kind, h], ms[kind, h] / ms[kind, 1]) for kind, h in cases],
        columns=["placement", "hosts", "CPU ms/batch", "times one host"],
    )
    measures = [
        Measure(f"{kind}, {hosts} hosts / 1, CPU", ms[kind, hosts] / ms[kind, 1], most, most=True)
        for (kind, hosts), most in REQUIRED.items()
    ]
    tiny = join_tables(HashPartition(1), 5 * args.tiny, args.tiny).seconds[1:]
    p50, p99 = (1000 * float(np.percentile(tiny, at)) for at in (50, 99))
    measures += [
        Measure("ms of a batch of 10 rows, one host, p50", p50, 6, most=True),
        Measure("ms of a batch of 10 rows, one host, p99", p99, 14, most=True),
    ]
    shared = defaultdict[int, list[float]](list)
    for turn in range(args.rounds + 1):
        for threads in (1, 2)[:: 1 if turn % 2 else -1]:
            seconds = join_tables(HashPartition(1), args.large, 5, threads).seconds
            shared[threads] += [sum(seconds)] if turn else []
    gain = median(shared[1]) / median(shared[2])
    measures.append(Measure(f"2 x {args.large:,} rows, one host, one thread / two", gain, 1.5))
    some = args.large // 5
    stored = join_tables(HashPartition(1), some, UNMERGED).disk_bytes / 2 / some
    measures.append(Measure("disk bytes a row of 24, without results", stored, 48, most=True))
    each = args.rows // args.batches
    leave(args, {f"{each:,} + {each:,} rows a batch": table.round(2)}, measures)


if __name__ == "__main__":
    main()
