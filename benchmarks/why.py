"""Measure ``braid.why``: seconds to explain a pair of tuples of a run that holds all of them.

Two tables are joined on an equality of whole numbers, without windows, so that every tuple is held.
It explains a pair that was found and one that the condition excludes, from the folder of the run,
in turns for some rounds; the median of each counts. Both verdicts are checked.

Required: 2 seconds with 1,000,000 tuples.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import braid
import numpy as np
import pandas as pd
import pyarrow as pa
from _common import Measure, make_scratch_folder, parse_arguments, write_figures
from braid import HashPartition
from braid.stream_join import StreamJoin


def make_table(rows: int) -> pa.Table:
    """Return a table whose rows have numbers from 0 on in a random order."""
    numbers = np.random.default_rng(rows).permutation(rows)
    return pa.table({"id": numbers, "value": np.arange(rows) % 97})


def measure_explanation(path: Path, id: int, other: int, verdict: str) -> float:
    """Return the seconds in which a pair is explained."""
    began = time.perf_counter()
    answer = braid.why(path, {"a": {"id": id}, "b": {"id": other}})
    seconds = time.perf_counter() - began
    assert answer.verdict == verdict and answer.is_certain, str(answer)
    return seconds


def main() -> None:
    args = parse_arguments(
        __doc__ or "", {"rows": 20_000, "rounds": 2}, rows=500_000, batches=5, rounds=5, hosts=2
    )
    pairs = {"found": (args.rows // 2, args.rows // 2), "condition": (7, 8)}
    took: dict[str, list[float]] = {verdict: [] for verdict in pairs}
    with make_scratch_folder() as folder:
        streams = {alias: make_table(args.rows) for alias in "ab"}
        join = StreamJoin(streams, "a.id = b.id", HashPartition(args.hosts))
        join.start(folder / "run", batches=args.batches).awaitTermination()
        for _ in range(args.rounds):
            for verdict, (id, other) in pairs.items():
                took[verdict].append(measure_explanation(folder / "run", id, other, verdict))
    medians = {verdict: median(seconds) for verdict, seconds in took.items()}
    table = pd.DataFrame({"verdict": medians.keys(), "median s": medians.values()})
    tuples = f"{2 * args.rows:,} tuples held"
    name = f"why of a pair among {tuples}, in seconds"
    write_figures(
        args,
        {tuples: table.round(3)},
        [Measure(name, max(medians.values()), 2.0, most=True)],
    )


if __name__ == "__main__":
    main()
