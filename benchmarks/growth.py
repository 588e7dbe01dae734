"""Measure seconds per batch of a full-history band join as its state grows tenfold and hundredfold.

The number of matches per batch grows with the history in any engine, so the band is narrow enough
that probing the stored blocks dominates. Between the measured stretches the history grows by
batches eight times as large.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pandas as pd
from _common import (
    Measure,
    make_events,
    make_scratch_folder,
    parse_arguments,
    read_batch_seconds,
    read_stream,
    write_batch_files,
    write_figures,
)
from braid import AdaptiveGrid
from braid.spark_session import session
from braid.stream_join import StreamJoin
from pyspark.sql import SparkSession

FACTORS = (1, 10, 100)
FILL_BATCHES = 8
"""Number of batches in which the history grows to the next factor."""
_WARM = 2
"""Number of warm-up batches of a stretch."""


def plan_batches(first: int, rows: int, batches: int) -> list[tuple[int, int]]:
    """Return, per batch, the rows of a stream and the factor measured (0: not measured).

    At the median of the measured batches, ``first`` times the factor rows are stored.
    """
    amid = (batches + _WARM - 1) / 2
    planned: list[tuple[int, int]] = []
    for factor in FACTORS:
        lack = first * factor - int(amid * rows) - sum(n for n, _ in planned)
        planned += [(lack // FILL_BATCHES, 0)] * FILL_BATCHES + [(rows, factor)] * batches
    return planned


def write_streams(spark: SparkSession, folder: Path, plan: list[tuple[int, int]]) -> None:
    """Write one file per batch and stream."""
    total = sum(n for n, _ in plan)
    for seed, name in enumerate("ab"):
        write_batch_files(
            make_events(spark, total, seed, total * 1000, 600), folder / name, [n for n, _ in plan]
        )


def main() -> None:
    args = parse_arguments(
        __doc__ or "",
        {"first": 10_000, "rows": 500},
        first=100_000,
        rows=10_000,
        batches=12,
        hosts=4,
    )
    spark = session("benchmark")
    plan = plan_batches(args.first, args.rows, args.batches)
    with make_scratch_folder() as folder:
        write_streams(spark, folder, plan)
        join = StreamJoin(
            {s: read_stream(spark, folder / s) for s in "ab"},
            "abs(a.k - b.k) <= 1",
            AdaptiveGrid(args.hosts),
            "unbounded",
        )
        run = join.start(folder / "braid", availableNow=True)
        run.awaitTermination()
        took = read_batch_seconds(run)
    rows: list[tuple[float, float, float]] = []
    for factor in FACTORS:
        at = [n for n, (_, measured) in enumerate(plan) if measured == factor]
        stored = median(2 * sum(n for n, _ in plan[:k]) for k in at[_WARM:])
        times = median(took[n] for n in at[_WARM:])
        rows.append((stored, times, times / (rows[0][1] if rows else times)))
    table = pd.DataFrame(rows, columns=["rows stored", "median s/batch", "times the first"])
    limits = (1.2, 1.5)
    write_figures(
        args,
        {f"full history, {args.rows:,} + {args.rows:,} rows a batch": table.round(3)},
        [
            Measure(f"band join, batch at {factor}x the stored rows", row[2], most, most=True)
            for factor, row, most in zip(FACTORS[1:], rows[1:], limits, strict=True)
        ],
    )


if __name__ == "__main__":
    main()
