"""Cases of outer joins for ``kinds``: conditions, placements and shares of rows without partner."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from _common import Measure
from braid import HashPartition, StaticGrid
from braid.core.placement import Placement
from braid.stream_join import StreamJoin

Tables = dict[str, pa.Table]
KINDS = ("inner", "left", "full")
SHARES = (0.1, 0.9)
"""Shares of the rows that have no partner."""
_BATCH_SECONDS, _WINDOW_SECONDS, _PARTNERS = 10, 20, 5
_MOST_RATIO, _MOST_BYTES = 1.3, 4.2


class Case(NamedTuple):
    """A condition over whole numbers ``p`` and ``q``, and the names of placements that serve it."""

    name: str
    on: str
    placements: tuple[str, ...]


CASES = (
    Case("equality", "a.p = b.p", ("hash", "grid")),
    Case("band", "b.p BETWEEN a.p - 2 AND a.p + 2", ("grid",)),
    Case("theta", "a.p <= b.q AND b.p <= a.q", ("grid",)),
)
PLACEMENTS: dict[str, Callable[[], Placement]] = {
    "hash": lambda: HashPartition(4),
    "grid": lambda: StaticGrid(4),
}


class Outcome(NamedTuple):
    """CPU seconds of a run, the number of its results, and the ids of each stream in them."""

    seconds: float
    results: int
    partners: tuple[int, ...]


def make_tables(case: Case, rows: int, batches: int, share: float) -> Tables:
    """Return two streams. A ``share`` of their rows has a negative ``p``, which nothing matches."""
    random, tables = np.random.default_rng(7), {}
    live = rows // batches * (1 + 2 * _WINDOW_SECONDS // _BATCH_SECONDS)
    spread = max(1, round(live * (1 - share) / _PARTNERS))
    for number, alias in enumerate("ab"):
        lonely = random.random(rows) < share
        points = random.integers(0, spread, rows)
        if case.name == "band":
            points = random.integers(0, spread * 5, rows)
        length = random.integers(0, 3, rows) if case.name == "theta" else np.zeros(rows, int)
        if case.name == "theta":
            points *= 3
        alone = -10 * (1 + 2 * np.arange(rows) + number)  # a's and b's are ten apart
        p = np.where(lonely, alone, points)
        seconds = (np.arange(rows) + 1) * _BATCH_SECONDS * batches / rows
        tables[alias] = pa.table(
            {
                "id": np.arange(rows),
                "p": p,
                "q": p + np.where(lonely, 0, length),
                "ts": pa.array((seconds * 1e6).astype("datetime64[us]")),
                "batch": np.arange(rows) * batches // rows,
            }
        )
    return tables


def run_kind(case: Case, how: str, placement: Placement, tables: Tables, folder: Path) -> Outcome:
    """Run a join of a kind within the windows, from its statement to its end."""
    began = time.process_time()
    windows = f"{_WINDOW_SECONDS} seconds"
    join = StreamJoin(tables, case.on, placement, time="ts", windows=windows, how=how)
    run = join.start(folder, batches="batch")
    run.awaitTermination()
    seconds = time.process_time() - began
    counts = "SELECT count(*), count(DISTINCT a.id), count(DISTINCT b.id) FROM "
    with duckdb.connect() as db:
        row = db.execute(f"{counts} '{folder}/results/*.parquet'").fetchone() or (0, 0, 0)
    shutil.rmtree(folder)
    return Outcome(seconds, row[0], row[1:])


def check_results(outcomes: dict[str, Outcome], rows: int) -> None:
    """Raise AssertionError unless each unmatched row comes once beside the inner results."""
    results, (of_a, of_b) = outcomes["inner"].results, outcomes["inner"].partners
    expected = {"left": results + rows - of_a, "full": results + 2 * rows - of_a - of_b}
    for how, number in expected.items():
        assert outcomes[how].results == number, f"{how}: {outcomes[how].results}, not {number}"


def measure_case(
    case: Case, name: str, share: float, rows: int, batches: int, rounds: int, folder: Path
) -> dict[str, Any]:
    """Return the line of a case: CPU seconds by kind and their ratios to the inner join's."""
    tables, best = make_tables(case, rows, batches, share), dict[str, Outcome]()
    for number in range(rounds + 1):  # the first is the warm-up
        turn = {
            how: run_kind(case, how, PLACEMENTS[name](), tables, folder / "run") for how in KINDS
        }
        check_results(turn, rows)
        if number:
            best = {
                h: min(best.get(h, o), o, key=lambda each: each.seconds) for h, o in turn.items()
            }
    inner = best["inner"]
    return {
        "condition": case.name,
        "placement": name,
        "rows a side": rows,
        "without partner": f"{share:.0%}",
        "pairs": inner.results,
        "unmatched of a": rows - inner.partners[0],
        **{f"{how}, CPU s": outcome.seconds for how, outcome in best.items()},
        **{f"{how} / inner": best[how].seconds / inner.seconds for how in KINDS[1:]},
    }


def count_stored_bytes(tables: Tables, how: str, folder: Path) -> tuple[int, int]:
    """Return the bytes of the state with most rows, and its rows of the first stream."""
    sizes: list[tuple[int, int]] = []

    def note_size(results: Any, batch: int) -> None:
        state = run.store.last_state()
        assert state is not None
        blocks = sum(checksum.size_bytes for checksum in state.block_files.values())
        manifest = max((folder / "commits").glob("*.json")).stat().st_size
        rows = sum(block.rows for block in state.blocks.values() if block.stream == 0)
        sizes.append((blocks + manifest, rows))

    join = StreamJoin(tables, CASES[0].on, HashPartition(4), how=how)
    run = join.start(folder, batches="batch", foreachBatch=note_size)
    run.awaitTermination()
    shutil.rmtree(folder)
    return max(sizes, key=lambda each: each[1])


def measure_bytes(rows: int, batches: int, folder: Path) -> list[dict[str, Any]]:
    """Return the lines of the stored bytes by kind."""
    tables = make_tables(CASES[0], rows, batches, 0.5)
    stored = {how: count_stored_bytes(tables, how, folder / "run") for how in KINDS}
    size, held = stored["inner"]
    preserved = {"inner": 0, "left": held, "full": 2 * held}
    return [
        {
            "kind": how,
            "held rows of a stream": held,
            "stored bytes": there[0],
            "extra bytes a preserved row": (there[0] - size) / max(1, preserved[how]),
        }
        for how, there in stored.items()
    ]


def measure_cases(rows: int, batches: int, rounds: int, folder: Path) -> list[dict[str, Any]]:
    """Return a line for each condition, placement and share."""
    return [
        measure_case(case, name, share, rows, batches, rounds, folder)
        for case in CASES
        for name, share in product(case.placements, SHARES)
    ]


def list_outer_measures(lines: list[dict[str, Any]], stored: list[dict[str, Any]]) -> list[Measure]:
    """Return the measures: each of the case that does worst."""
    measures = [
        Measure(
            f"{how} / inner, CPU: the worst of all conditions",
            max(line[f"{how} / inner"] for line in lines),
            _MOST_RATIO,
            most=True,
        )
        for how in KINDS[1:]
    ]
    extra = max(line["extra bytes a preserved row"] for line in stored)
    return [*measures, Measure("extra bytes a preserved row", extra, _MOST_BYTES, most=True)]
