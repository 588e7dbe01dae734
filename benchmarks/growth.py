"""A full-history band join: seconds per batch with few rows stored, with ten times and with a
hundred times as many.

The number of matches per batch grows with the history whatever the engine does, so the band is
narrow enough that the work of entering the stored blocks dominates. Between the measured stretches
the history grows by batches that are eight times as many rows as lack.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pandas as pd
from _common import Measure, arguments, events, files, leave, scratch, seconds, stream
from braid import AdaptiveGrid
from braid.spark_session import session
from braid.stream_join import StreamJoin
from pyspark.sql import SparkSession

FACTORS = (1, 10, 100)
FILLED = 8
"""Batches in which the history grows to the next factor."""
_WARM = 2
"""Measured batches of a stretch that do not count."""


def sizes(first: int, rows: int, batches: int) -> list[tuple[int, int]]:
    """Rows of a stream in each batch, and the factor that it is measured at (0: not measured). The
    batches that count have ``first`` times the factor stored before them in the median.
    """
    amid = (batches + _WARM - 1) / 2
    found: list[tuple[int, int]] = []
    for factor in FACTORS:
        lack = first * factor - int(amid * rows) - sum(n for n, _ in found)
        found += [(lack // FILLED, 0)] * FILLED + [(rows, factor)] * batches
    return found


def write(spark: SparkSession, folder: Path, plan: list[tuple[int, int]]) -> None:
    """One file for each batch of each stream."""
    whole = sum(n for n, _ in plan)
    for seed, name in enumerate("ab"):
        files(events(spark, whole, seed, whole * 1000, 600), folder / name, [n for n, _ in plan])


def main() -> None:
    args = arguments(
        __doc__ or "",
        {"first": 10_000, "rows": 500},
        first=100_000,
        rows=10_000,
        batches=12,
        hosts=4,
    )
    spark = session("benchmark")
    plan = sizes(args.first, args.rows, args.batches)
    with scratch() as folder:
        write(spark, folder, plan)
        join = StreamJoin(
            {s: stream(spark, folder / s) for s in "ab"},
            "abs(a.k - b.k) <= 1",
            AdaptiveGrid(args.hosts),
        )
        run = join.start(folder / "braid", availableNow=True)
        run.awaitTermination()
        took = seconds(run)
    rows = []
    for factor in FACTORS:
        at = [n for n, (_, measured) in enumerate(plan) if measured == factor]
        stored = median(2 * sum(n for n, _ in plan[:k]) for k in at[_WARM:])
        times = median(took[n] for n in at[_WARM:])
        rows.append((stored, times, times / (rows[0][1] if rows else times)))
    table = pd.DataFrame(rows, columns=["rows stored", "median s/batch", "times the first"])
    asked = (1.2, 1.5)
    leave(
        args,
        {f"full history, {args.rows:,} + {args.rows:,} rows a batch": table.round(3)},
        [
            Measure(f"band join, batch at {factor}x the stored rows", row[2], most, most=True)
            for factor, row, most in zip(FACTORS[1:], rows[1:], asked, strict=True)
        ],
    )


if __name__ == "__main__":
    main()
