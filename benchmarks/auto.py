"""Compare the choice of ``auto`` with each placement that can run the join.

A mix of joins of tables runs in this process, in turns, on as many hosts as there are cores, after
a warm-up on a tenth of the rows. Each is measured in wall-clock seconds and in CPU seconds of all
threads of this process. CPU seconds vary less on a busy machine, but do not show that hosts work in
parallel.

One half of the rounds determines the best and the worst placement; the other half measures the
distance of the choice from them, and vice versa. This avoids a bias: of nine placements that are
equally fast, the fastest in some rounds was lucky in them. Times are medians of the half.

Required: the choice takes at most 1.1 times the best (the median of the joins' ratios), and is the
worst in no join. A join whose placements differ by less than a tenth has no worst one. The choice
runs as it does for users: it is made once, before the first batch. Without an index every pair of
two streams of 6,000 rows is compared. With 2,000 rows a batch took 0.03 s, most of it common to all
placements, and the worst one was determined by chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean, median
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from _common import Measure, make_scratch_folder, parse_arguments, write_figures
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.stream_join import StreamJoin
from braid.util.machine import available_cores

TIE_SHARE = 0.1
"""Placements that differ by less are considered equal."""


@dataclass(frozen=True)
class MixedJoin:
    """A join of the mix.

    - ``on``: its condition.
    - ``parts``: rows of each stream, in units of ``rows``.
    - ``values``: number of values of the key, in units of a stream's rows.
    - ``share``: share of a stream with the most frequent value.
    - ``window``: seconds; None: full history.
    """

    on: str
    parts: tuple[float, ...] = (1.0, 1.0)
    values: float = 1.0
    share: float = 0.0
    window: int | None = None


JOINS = {
    "equality": MixedJoin("a.k = b.k"),
    "equality, one value has 1 in 50": MixedJoin("a.k = b.k AND a.v % 97 = b.v % 89", share=0.02),
    "equality, three streams": MixedJoin(
        "a.k = b.k AND b.k = c.k", (1.0, 1.0, 1.0), 1.0, window=60
    ),
    "band": MixedJoin("abs(a.k - b.k) <= 1", values=4.0),
    "band, one stream is 20 times the other": MixedJoin("abs(a.k - b.k) <= 1", (0.1, 2.0), 4.0),
    "band, window": MixedJoin("abs(a.k - b.k) <= 1", values=4.0, window=60),
    "bands, three streams": MixedJoin(
        "abs(a.k - b.k) <= 1 AND abs(b.k - c.k) <= 1", (0.3, 0.3, 0.3), 4.0, window=60
    ),
    "no index": MixedJoin("(a.k + b.k) % 9973 = 0", (0.3, 0.3)),
}
"""The joins of the mix, each over ten minutes of event time."""


def make_tables(join: MixedJoin, rows: int, batches: int) -> dict[str, pa.Table]:
    draw = np.random.default_rng(11)
    parts = dict(zip("abc", join.parts, strict=False))
    return {a: _make_table(draw, join, round(rows * part), batches) for a, part in parts.items()}


def _make_table(draw: np.random.Generator, join: MixedJoin, rows: int, batches: int) -> pa.Table:
    keys = draw.integers(0, max(1, round(join.values * rows)), rows)
    keys[draw.random(rows) < join.share] = 0
    at = np.sort(draw.integers(0, 600 * 10**6, rows))
    columns = {
        "k": keys,
        "v": np.arange(rows),
        "ts": pa.array(at, pa.timestamp("us", "UTC")),
        "batch": at * batches // (600 * 10**6),
    }
    return pa.table(columns)


def run_join(
    streams: dict[str, pa.Table], join: MixedJoin, placement: Placement
) -> tuple[float, float, int]:
    """Return seconds of all batches but the first, CPU seconds of all batches, and the results."""
    windows = None if join.window is None else f"{join.window} seconds"
    with make_scratch_folder() as folder:
        began = process_time()
        run = StreamJoin(streams, join.on, placement, windows, "ts").start(folder, batches="batch")
        run.awaitTermination()
        worked = process_time() - began
        done = [e for e in run.events() if isinstance(e, BatchCommitted)]
    took = sum(e.seconds_by_phase["total"] for e in done[1:])
    return took, worked, sum(e.results for e in done)


def _make_placement(name: str) -> Placement:
    kind = Placement.class_by_name(name)
    return kind.from_settings(
        {"hosts": available_cores()} if "hosts" in kind.setting_names() else {}
    )


def compare_placements(name: str, join: MixedJoin, args: Any) -> Iterator[dict[str, Any]]:
    """Yield a row for each placement that could run the join."""
    streams = make_tables(join, args.rows, args.batches)
    windows = None if join.window is None else f"{join.window} seconds"
    setup = StreamJoin(streams, join.on, windows=windows, time="ts").config
    assert setup.chosen is not None and setup.placement is not None
    chosen = type(setup.placement).__name__
    placements = {name: _make_placement(name) for name in setup.chosen.relative_costs} | {
        chosen: setup.placement
    }
    took: dict[str, list[tuple[float, float]]] = {c: [] for c in placements}
    result_counts = set()
    few = make_tables(join, args.rows // 10, args.batches)
    for placement in placements.values():
        run_join(few, join, placement)
    for turn in range(args.rounds):
        for c in [*placements][:: 1 if turn % 2 else -1]:
            *seconds, results = run_join(streams, join, placements[c])
            took[c].append((seconds[0], seconds[1]))
            result_counts.add(results)
    assert len(result_counts) == 1, f"{name}: {result_counts}"
    mid = {c: [median(each) for each in zip(*seconds, strict=True)] for c, seconds in took.items()}
    wall, cpu = (_rate_placements({c: [s[n] for s in took[c]] for c in took}) for n in (0, 1))
    for c, (seconds, worked) in mid.items():
        yield {
            "join": name,
            "placement": c,
            "chosen": "yes" if c == chosen else "",
            "seconds": seconds,
            "times the best": wall[c],
            "CPU seconds": worked,
            "CPU, times the least": cpu[c],
            "modelled, times the choice": setup.chosen.relative_costs.get(c, 1.0),
            "results": results,
        }


def _rate_placements(took: dict[str, list[float]]) -> dict[str, float]:
    """Return the time of each placement divided by that of the best.

    Some rounds determine the best, the others the times. Rounds go in pairs, there and back.
    """
    halves = [
        {
            c: median(t for turn, t in enumerate(each) if turn // 2 % 2 == half)
            for c, each in took.items()
        }
        for half in (0, 1)
    ]
    ways = [(halves[0], halves[1]), (halves[1], halves[0])]
    return {
        c: mean(other[c] / other[min(one, key=one.__getitem__)] for one, other in ways)
        for c in took
    }


def main() -> None:
    args = parse_arguments(__doc__ or "", {"rows": 2_000}, rows=20_000, batches=5, rounds=8)
    if args.rounds < 4:
        raise SystemExit(
            f"--rounds is {args.rounds}; it takes 4 or more, two halves there and back"
        )
    rows = pd.DataFrame([r for name, j in JOINS.items() for r in compare_placements(name, j, args)])
    chosen = rows[rows["chosen"] == "yes"].set_index("join")
    chosen_ratios, worked = chosen["times the best"], chosen["CPU, times the least"].median()
    most = rows.groupby("join")["times the best"].max().reindex(chosen_ratios.index)
    worst = sum((most > 1 + TIE_SHARE) & (chosen_ratios >= most))
    measures = [
        Measure(
            "the choice / the best, median of the mix",
            float(chosen_ratios.median()),
            1.1,
            most=True,
        ),
        Measure(
            "the choice / the best, the worst of the mix", float(chosen_ratios.max()), most=True
        ),
        Measure("joins in which the choice is the worst", float(worst), 0.0, most=True),
        Measure("CPU of the choice / the least, median of the mix", float(worked), most=True),
    ]
    write_figures(args, {"Every placement that could run the join": rows.round(3)}, measures)


if __name__ == "__main__":
    main()
