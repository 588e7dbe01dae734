"""Join by kind: what as-of joins cost beside the inner join in the same range and merge_asof.

Trades and quotes of 1,000 symbols come in ten batches. The latest quote of each trade within a
tolerance is found, and the inner join makes all pairs within it, about ten for each trade. pandas'
merge_asof gets the whole, sorted input at once: it reads two Parquet files and writes one, as Braid
copies its input and writes its results. Its merge alone, in memory, is reported beside it. The
least CPU time of some rounds after a warm-up counts: that of this process with all its threads.

The held tuples are the most after any batch of a minute, without a tolerance.
"""

from __future__ import annotations

import pandas as pd
from _asof_cases import list_asof_measures, measure_asof, measure_held
from _common import arguments, leave, scratch


def main() -> None:
    args = arguments(
        __doc__ or "",
        {"trades": 50_000, "rounds": 1, "hours": 1},
        trades=1_000_000,
        batches=10,
        rounds=3,
        hours=24,
    )
    with scratch() as folder:
        asof = measure_asof(args.trades, args.batches, args.rounds, folder)
        held = measure_held(args.hours, folder)
    tables = {
        f"As-of: {args.trades:,} trades and quotes in {args.batches} batches": pd.DataFrame(
            asof
        ).round(3),
        "As-of: quotes held without a tolerance": pd.DataFrame([held]).round(3),
    }
    leave(args, tables, list_asof_measures(asof, held))


if __name__ == "__main__":
    main()
