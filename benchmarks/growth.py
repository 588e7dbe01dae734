"""A full-history band join: seconds per batch early on, and with ten times as many rows stored.

The number of matches per batch grows with the history whatever the engine does, so the band is
narrow enough that the work of entering the stored blocks dominates.
"""

from __future__ import annotations

from statistics import median

import pandas as pd
from _common import arguments, events, files, scratch, seconds, show, stream
from braid import AdaptiveGrid
from braid.join import StreamJoin
from braid.spark_session import session


def main() -> None:
    args = arguments(__doc__ or "", rows=1_280_000, batches=64, hosts=4)
    spark = session("benchmark")
    with scratch() as folder:
        for seed, name in enumerate("ab"):
            files(
                events(spark, args.rows, seed, args.rows * 1000, 600),
                folder / name,
                args.batches,
                args.rows,
            )
        join = StreamJoin(
            {s: stream(spark, folder / s) for s in "ab"},
            "abs(a.k - b.k) <= 1",
            AdaptiveGrid(args.hosts),
        )
        run = join.start(folder / "braid", availableNow=True)
        run.awaitTermination()
        times = seconds(run)
        eighth = args.batches // 8
        spans = [
            (eighth // 2, eighth),
            (args.batches - eighth, args.batches),
        ]  # their middles are a factor of ten apart
        rows = []
        for first, last in spans:
            stored = 2 * args.rows * (first + last) // 2 // args.batches
            rows.append(
                {
                    "batches": f"{first}..{last - 1}",
                    "rows stored": stored,
                    "median s/batch": median(times[first:last]),
                }
            )
        table = pd.DataFrame(rows)
        table["times the first"] = table["median s/batch"] / table["median s/batch"][0]
        show(
            f"full history, {args.rows:,} + {args.rows:,} rows, {args.batches} batches (required: "
            "1.3)",
            table.round(2),
        )


if __name__ == "__main__":
    main()
