"""Cases of as-of joins for ``kinds``: trades and quotes of 1,000 symbols."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from _common import Measure
from braid import Centralized
from braid.core.run_events import BatchCommitted
from braid.stream_join import StreamJoin

SYMBOLS, RATE = 1_000, 100
"""Symbols, and trades and quotes a second."""
TOLERANCE_SECONDS = 10 * SYMBOLS // RATE
"""Event time in which a symbol has about ten quotes."""
_DAY, _BATCH_SECONDS, _LATENESS_SECONDS, _DAY_RATE = 24 * 3600, 60, 60, 10
_SMALLEST_TIER = 4096
"""Tuples below which blocks wait for three others to be merged."""
_MOST_INNER, _MOST_MERGE = 1.5, 4


def make_stream(rows: int, seconds: int, seed: int) -> pa.Table:
    """Return rows of drawn symbols, sorted by time."""
    random = np.random.default_rng(seed)
    names = pa.array([f"S{number:04d}" for number in range(SYMBOLS)])
    times = np.sort(random.integers(0, seconds * 1_000_000, rows))
    return pa.table(
        {
            "id": np.arange(rows),
            "sym": names.take(pa.array(random.integers(0, SYMBOLS, rows))),
            "price": random.random(rows),
            "ts": pa.array(times.astype("datetime64[us]")),
        }
    )


def run_braid(
    streams: dict[str, pa.Table], on: str, batches: int, folder: Path, **given: Any
) -> int:
    """Return the number of results of a join."""
    join = StreamJoin(streams, on, Centralized(), time="ts", **given)
    run = join.start(folder / "run", batches=batches)
    run.awaitTermination()
    results = int(run.metrics(by="batch")["results"].sum())
    shutil.rmtree(folder / "run")
    return results


def run_merge(folder: Path) -> int:
    """Return the number of trades with a quote by merge_asof, from files to a file."""
    trades, quotes = (pd.read_parquet(folder / f"{alias}.parquet") for alias in "tq")
    merged = merge_frames(trades, quotes)
    merged.to_parquet(folder / "merged.parquet")
    return int(merged["id_q"].notna().sum())


def merge_frames(trades: pd.DataFrame, quotes: pd.DataFrame) -> pd.DataFrame:
    tolerance = pd.Timedelta(seconds=TOLERANCE_SECONDS)
    return pd.merge_asof(
        trades, quotes, on="ts", by="sym", tolerance=tolerance, suffixes=("", "_q")
    )


def measure_asof(rows: int, batches: int, rounds: int, folder: Path) -> list[dict[str, Any]]:
    """Return the lines of all ways: CPU seconds, and their ratios to the latest partner's."""
    streams = {alias: make_stream(rows, rows // RATE, seed) for seed, alias in enumerate("tq")}
    for alias, stream in streams.items():
        pq.write_table(stream, folder / f"{alias}.parquet")
    frames = [stream.to_pandas() for stream in streams.values()]
    span = f"INTERVAL {TOLERANCE_SECONDS} SECONDS"
    within = f"t.sym = q.sym AND q.ts BETWEEN t.ts - {span} AND t.ts"
    tolerance = f"{TOLERANCE_SECONDS} seconds"

    def join_latest(**given: Any) -> int:
        return run_braid(streams, "t.sym = q.sym", batches, folder, match="latest", **given)

    ways: dict[str, Callable[[], int]] = {
        "latest within the tolerance": lambda: join_latest(tolerance=tolerance),
        "latest": join_latest,
        "inner join in the same range": lambda: run_braid(streams, within, batches, folder),
        "merge_asof, files to file": lambda: run_merge(folder),
        "merge_asof in memory": lambda: int(merge_frames(*frames)["id_q"].notna().sum()),
    }
    best, results = dict[str, float](), dict[str, int]()
    for number in range(rounds + 1):  # the first is the warm-up
        for name, run in ways.items():
            began = time.process_time()
            results[name] = run()
            seconds = time.process_time() - began
            if number:
                best[name] = min(best.get(name, seconds), seconds)
    answers = {results["latest within the tolerance"], results["merge_asof in memory"]}
    assert answers == {results["merge_asof, files to file"]}, results
    latest_seconds = best["latest within the tolerance"]
    return [
        {
            "join": name,
            "results": results[name],
            "CPU s": best[name],
            "latest / it": latest_seconds / best[name],
        }
        for name in ways
    ]


def measure_held(hours: int, folder: Path) -> dict[str, Any]:
    """Return the line of the quotes that are held without a tolerance."""
    seconds = hours * 3600
    streams = {
        "t": make_stream(seconds, seconds, 2),
        "q": make_stream(_DAY_RATE * seconds, seconds, 3),
    }
    join = StreamJoin(
        streams,
        "t.sym = q.sym",
        Centralized(),
        time="ts",
        lateness=f"{_LATENESS_SECONDS} seconds",
        match="latest",
    )
    run = join.start(folder / "run", batches=seconds // _BATCH_SECONDS)
    run.awaitTermination()
    held = [e.live_tuples[1] for e in run.events() if isinstance(e, BatchCommitted)]
    shutil.rmtree(folder / "run")
    bound = SYMBOLS + 1.25 * _LATENESS_SECONDS * _DAY_RATE + _SMALLEST_TIER
    return {
        "hours": hours,
        "quotes": _DAY_RATE * seconds,
        "most held": max(held),
        "bound": round(bound),
        "held / bound": max(held) / bound,
    }


def list_asof_measures(lines: list[dict[str, Any]], held: dict[str, Any]) -> list[Measure]:
    """Return the figures with their limits."""
    ratios = {line["join"]: line["latest / it"] for line in lines}
    return [
        Measure(
            "latest within a tolerance / inner join in the same range, CPU",
            ratios["inner join in the same range"],
            _MOST_INNER,
            most=True,
        ),
        Measure(
            "latest within a tolerance / merge_asof of the whole, files to file, CPU",
            ratios["merge_asof, files to file"],
            _MOST_MERGE,
            most=True,
        ),
        Measure("held without a tolerance / its bound", held["held / bound"], 1.0, most=True),
    ]
