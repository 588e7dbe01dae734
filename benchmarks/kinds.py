"""Join by kind: what outer and as-of joins cost beside the inner join and merge_asof.

Left and full joins take tables in ten batches within twenty seconds of event time. A share of the
rows of each stream has no partner, the others have about five. A left join must have the inner
join's results, and a row for each tuple of its first stream that is in none of them. A full join
must have such rows of both streams. The kinds run in turns. The stored bytes are those of the block
files and the manifest after the batch in which most rows are held, without windows.

Trades and quotes of 1,000 symbols come in ten batches. The latest quote of each trade within a
tolerance is found, and the inner join makes all pairs within it, about ten for each trade. pandas'
merge_asof gets the whole, sorted input at once: it reads two Parquet files and writes one, as Braid
copies its input and writes its results. Its merge alone, in memory, is reported beside it. The
least CPU time of some rounds after a warm-up counts: that of this process with all its threads.

The held tuples are the most after any batch of a minute, without a tolerance.

Braid's left join of two streams of Spark is compared with Spark's own (``_spark_left_join``).
"""

from __future__ import annotations

import pandas as pd
from _asof_cases import list_asof_measures, measure_asof, measure_held
from _common import make_scratch_folder, parse_arguments, write_figures
from _outer_cases import list_outer_measures, measure_bytes, measure_cases
from _spark_left_join import list_left_measures, measure_left


def main() -> None:
    args = parse_arguments(
        __doc__ or "",
        {"rows": 20_000, "trades": 50_000, "rounds": 1, "hours": 1, "streamed": 100_000},
        rows=200_000,
        trades=1_000_000,
        batches=10,
        rounds=3,
        hours=24,
        streamed=1_000_000,
    )
    with make_scratch_folder() as folder:
        outer = measure_cases(args.rows, args.batches, args.rounds, folder)
        stored = measure_bytes(args.rows, args.batches, folder)
        asof = measure_asof(args.trades, args.batches, args.rounds, folder)
        held = measure_held(args.hours, folder)
        left = measure_left(args.streamed, args.batches, folder)
    rows = f"{args.rows:,} + {args.rows:,} rows in {args.batches} batches"
    tables = {
        f"Outer: {rows}": pd.DataFrame(outer).round(3),
        f"Outer: {rows}, stored": pd.DataFrame(stored).round(3),
        f"As-of: {args.trades:,} trades and quotes in {args.batches} batches": pd.DataFrame(
            asof
        ).round(3),
        "As-of: quotes held without a tolerance": pd.DataFrame([held]).round(3),
        "Left: streams of Spark, within a minute": pd.DataFrame([left]).round(3),
    }
    measures = [*list_outer_measures(outer, stored), *list_asof_measures(asof, held)]
    measures += list_left_measures(left)
    write_figures(args, tables, measures)


if __name__ == "__main__":
    main()
