"""Compare HotKeys with a hash and a grid for two streams whose join values have Zipf skew z.

Tables are joined in this process with windows of a third of the run. Work is modelled from counts:
1.5 microseconds for a tuple that a host receives and 0.1 for a pair that it compares. Busiest over
mean is that of the work of each host, summed over the last half of the batches; if the frequent
values are exchanged for others half-way, over the last quarter. All placements must find the same
number of results. From z = 1.5 on, one pair of 50 with equal values is a result, so that results
do not fill the disk. CPU seconds are those of this process, of equal runs in turns, after a
warm-up; results of z = 1.2 are counted in full.

In a further table the second stream is rare: it has one row for 50 of the first. All hosts of a
frequent value then store its rare tuples, and a tuple of the first stream is sent to one host.
"""

from __future__ import annotations

import time
from dataclasses import replace
from statistics import median

import pandas as pd
from _common import Measure, parse_arguments, write_figures
from braid import HashPartition, HotKeys
from braid.core.placement import Placement
from braid_lab.hotkeys.experiments import (
    SkewSetting,
    compare_forms,
    compare_placements,
    run_skewed_join,
    with_shifts,
)

SKEWS = (0.0, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0)
RARE = 50
"""Rows of a stream for each row of the rare one."""
FEW_RESULTS = 1.5
"""z from which few pairs are results."""
CPU_LIMITS = {0.0: 1.05, 1.2: 1.3}
SHORT_RUN_FACTOR = 4
"""Factor on the number of rounds at z = 0, where runs are short and the limit is narrow."""


def main() -> None:
    args = parse_arguments(
        __doc__ or "",
        {"rows": 4000, "batches": 8, "rounds": 1},
        rows=20_000,
        batches=20,
        hosts=16,
        rounds=5,
    )
    base = SkewSetting(rows=args.rows, batches=args.batches, hosts=args.hosts)
    settings = [replace(base, skew=z, kept_share=50 if z >= FEW_RESULTS else 1) for z in SKEWS]
    table = compare_placements(with_shifts(settings))
    hot = table[table["placement"] == "HotKeys"]
    rare = compare_forms(with_shifts(replace(s, rarity=RARE) for s in settings if s.skew))
    copied = rare[rare["placement"] == "HotKeys"]
    costs = measure_cpu(base, args.rounds)
    measures = [
        Measure(
            f"hot keys, busiest / mean of work, z = 0 to 2{'; shift' if shift else ''}",
            float(rows["work"].max()),
            1.2,
            most=True,
        )
        for shift, rows in hot.groupby("shift")
    ]
    stored = float(hot["stored_over_hash"].max())
    measures.append(Measure("hot keys, tuples stored / a hash's", stored, 1.05, most=True))
    measures += [
        Measure(f"hot keys, a rare stream, {name}", float(copied[column].max()), limit, most=True)
        for name, column, limit in (
            ("busiest / mean of work", "work", 1.2),
            ("tuples stored / a hash's", "stored_over_hash", 1.3),
        )
    ]
    measures += [
        Measure(f"hot keys, CPU / a hash's, z = {z:g}", ratio, CPU_LIMITS[z], most=True)
        for z, ratio in zip(costs["z"], costs["ratio"], strict=True)
    ]
    title = f"2 x {args.rows:,} rows, {args.batches} batches, {args.hosts} hosts"
    tables = {
        title: table.round(3),
        f"{args.rows:,} rows and one for {RARE} of them": rare.round(3),
        "CPU seconds of a run": costs.round(3),
    }
    write_figures(args, tables, measures)


def measure_cpu(base: SkewSetting, rounds: int) -> pd.DataFrame:
    """Return CPU seconds of runs by HashPartition and HotKeys in turns, and their ratio."""
    rows = []
    for z in CPU_LIMITS:
        setting = replace(base, skew=z)
        streams = setting.make_streams()
        taken: dict[str, list[float]] = {"HashPartition": [], "HotKeys": []}
        for turn in range(rounds * (1 if z else SHORT_RUN_FACTOR) + 1):
            for kind in (HashPartition, HotKeys)[:: 1 if turn % 2 else -1]:
                placement: Placement = kind(base.hosts)
                began = time.process_time()
                run_skewed_join(placement, setting, streams)
                if turn or rounds == 0:  # the first turn is the warm-up
                    taken[kind.__name__].append(time.process_time() - began)
        hashed, hot = (median(taken[kind.__name__]) for kind in (HashPartition, HotKeys))
        each = {"HotKeys, range": f"{min(taken['HotKeys']):.2f} to {max(taken['HotKeys']):.2f}"}
        rows.append({"z": z, "HashPartition": hashed, "HotKeys": hot, "ratio": hot / hashed} | each)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
