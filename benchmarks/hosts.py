"""Measure what a batch costs on many hosts, which are logical: they share this machine.

Tables are joined by an equality in this process, with full history, on one thread. A hash and a
grid take turns on each number of hosts, after a warm-up, and must find the same results. CPU
seconds are those of the whole process from the start of the first batch to the end of the run.

A second measure is the time of a batch of ten rows on one host, and beside it that of a loop
written by hand: DuckDB statements that join, store and commit each batch in durable files. Both
take turns, and must find the same results. The CPU seconds of larger batches are compared in the
same way. A third measure compares two threads with one on one host, by the seconds of batches. At
the end of another run, the bytes of its folder are counted, but for results: input, blocks, states,
log and events.
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
from _common import Measure, make_scratch_folder, parse_arguments, write_figures
from _loop_by_hand import join_by_hand
from braid import HashPartition, StaticGrid
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.execution.thread_executor import ThreadExecutor
from braid.stream_join import StreamJoin

HOSTS = {"hash": (1, 16, 64, 256), "grid": (1, 16, 64, 256)}
REQUIRED = {("hash", 16): 1.3, ("hash", 64): 1.8, ("hash", 256): 3.0, ("grid", 256): 1.8}


UNMERGED_BATCHES = 8
"""Batches of a run whose last two states name the same merged blocks."""


class RunCost(NamedTuple):
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


def make_tables(rows: int, batches: int) -> dict[str, pa.Table]:
    return {alias: make_table(seed, rows, batches) for seed, alias in enumerate("ab")}


def join_tables(placement: Placement, rows: int, batches: int, threads: int = 1) -> RunCost:
    tables = make_tables(rows, batches)
    make = partial(ThreadExecutor, threads)
    with make_scratch_folder() as folder, patch("braid.arrow_join.make_executor", lambda _: make()):
        join = StreamJoin(tables, "a.k = b.k", placement, None, "ts")
        run = join.start(folder / "run", batches="batch")
        began = time.process_time()
        run.awaitTermination()
        worked = time.process_time() - began
        done = [e for e in run.events() if isinstance(e, BatchCommitted)]
        size = sum_file_bytes(folder / "run")
    seconds = [e.seconds_by_phase["total"] for e in done]
    return RunCost(worked, seconds, sum(e.results for e in done), size)


def sum_file_bytes(folder: Path) -> int:
    """Return the bytes of a run's folder without results."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return sum(f.stat().st_size for f in files if f.parent.name not in ("results", "staging"))


class LoopComparison(NamedTuple):
    """Medians of rounds of Braid and of the loop by hand: ms of the batches, CPU of a run."""

    p50: float
    p99: float
    loop_p50: float
    cpu: float
    loop_cpu: float


def compare_with_loop(rows: int, batches: int, rounds: int) -> LoopComparison:
    """Return what Braid on one host and the loop by hand take, in turns after a warm-up.

    Raises AssertionError if their numbers of results differ.
    """
    took: list[list[float]] = []
    for _ in range(rounds + 1):
        braid = join_tables(HashPartition(1), rows, batches)
        with make_scratch_folder() as folder:
            loop = join_by_hand(make_tables(rows, batches), folder)
        assert braid.results == loop.results, f"{braid.results} results, by hand {loop.results}"
        p50, p99 = (1000 * float(np.percentile(braid.seconds[1:], at)) for at in (50, 99))
        took.append([p50, p99, 1000 * median(loop.seconds[1:]), braid.cpu, loop.cpu])
    return LoopComparison(*map(median, zip(*took[1:], strict=True)))


def main() -> None:
    args = parse_arguments(
        __doc__ or "",
        {"rows": 2_000, "large": 20_000, "middle": 4_000, "tiny": 20, "rounds": 1},
        rows=20_000,
        batches=10,
        tiny=200,
        middle=200_000,
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
    tiny = compare_with_loop(5 * args.tiny, args.tiny, args.rounds)
    middle = compare_with_loop(args.middle, args.batches, args.rounds)
    by_hand = pd.DataFrame(
        [
            (f"2 x {5 * args.tiny:,}", args.tiny, *tiny),
            (f"2 x {args.middle:,}", args.batches, *middle),
        ],
        columns=["rows", "batches", "p50 ms", "p99 ms", "loop, p50 ms", "CPU s", "loop, CPU s"],
    )
    cpu_ratio = middle.cpu / middle.loop_cpu
    measures += [
        Measure("ms of a batch of 10 rows, one host, p50", tiny.p50, 6, most=True),
        Measure("ms of a batch of 10 rows, one host, p99", tiny.p99, 14, most=True),
        Measure("a batch of 10 rows / a loop by hand", tiny.p50 / tiny.loop_p50, 1.2, most=True),
        Measure(f"2 x {args.middle:,} rows / a loop by hand, CPU", cpu_ratio, 1.5, most=True),
    ]
    shared = defaultdict[int, list[float]](list)
    for turn in range(args.rounds + 1):
        for threads in (1, 2)[:: 1 if turn % 2 else -1]:
            seconds = join_tables(HashPartition(1), args.large, 5, threads).seconds
            shared[threads] += [sum(seconds)] if turn else []
    gain = median(shared[1]) / median(shared[2])
    measures.append(Measure(f"2 x {args.large:,} rows, one host, one thread / two", gain, 1.5))
    some = args.large // 5
    stored = join_tables(HashPartition(1), some, UNMERGED_BATCHES).disk_bytes / 2 / some
    measures.append(Measure("disk bytes a row of 24, without results", stored, 48, most=True))
    each = args.rows // args.batches
    title = "Braid on one host, and a loop of DuckDB statements by hand"
    tables = {f"{each:,} + {each:,} rows a batch": table, title: by_hand}
    write_figures(args, {name: each.round(3) for name, each in tables.items()}, measures)


if __name__ == "__main__":
    main()
