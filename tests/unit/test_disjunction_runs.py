"""Runs of tables by ORs and texts under all placements, windows, shedding, and after a restart."""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pytest
from braid import Centralized, Shed, StaticGrid
from braid.condition.access_paths import Disjunction, EditDistance, TextPrefix
from braid.stream_join import StreamJoin
from oracle import PLACEMENTS, expected, killed_before, result_ids, tables

BATCHES = 8
STREAMS = {
    alias: rows.append_column("digits", rows["n"].cast(pa.string()))
    for alias, rows in tables("ab", {"a": 150, "b": 200}, seed=5, batches=BATCHES).items()
}
TWO = {
    name: placement
    for name, placement in PLACEMENTS.items()
    if placement.supports_streams(2) and placement.routing_key_source == "tuple"
}
CONDITIONS = (
    "a.n = b.n OR a.s = b.s AND a.k = b.k",
    "a.flag = b.flag AND (a.n = b.n OR a.m BETWEEN b.m - 2 AND b.m + 2)",
    "a.n IN (b.n, b.k) OR (a.d <= b.d AND b.d <= a.d + INTERVAL 1 DAY AND a.f > 2.5)",
    "levenshtein(a.digits, b.digits) <= 1 AND a.n < b.n",
    "startswith(a.s, concat(b.s, 'b'))",
)


def run_join(join: StreamJoin, folder: Path) -> Counter[tuple[int, ...]]:
    run = join.start(folder, batches="batch")
    assert run.awaitTermination()
    return result_ids(run.results())


@pytest.mark.parametrize(("on", "name"), [*zip(cycle(CONDITIONS), [*TWO][::5], strict=False)])
def test_placements_find_what_duckdb_finds(on: str, name: str, tmp_path: Path) -> None:
    join = StreamJoin(STREAMS, on, TWO[name], check=True)
    path = join.predicate.next_step(frozenset({0}), 1).access_path
    assert isinstance(path, (Disjunction, EditDistance, TextPrefix))
    assert run_join(join, tmp_path) == expected(STREAMS, on)


@pytest.mark.parametrize("on", CONDITIONS[1:4])
def test_windows_find_what_duckdb_finds(on: str, tmp_path: Path) -> None:
    windows = {"a": 90, "b": 150}
    limits = {a: f"{w} seconds" for a, w in windows.items()}
    join = StreamJoin(STREAMS, on, StaticGrid(4), limits, "ts", check=True)
    assert run_join(join, tmp_path) == expected(STREAMS, on, windows)


def test_a_resumed_run_finds_the_rest(tmp_path: Path) -> None:
    on = CONDITIONS[0]
    with killed_before(4):
        run = StreamJoin(STREAMS, on, StaticGrid(4), check=True).start(
            tmp_path / "run", batches="batch"
        )
        with pytest.raises(OSError, match="killed"):
            run.awaitTermination()
    run = StreamJoin.resume(tmp_path / "run", STREAMS)
    assert run.awaitTermination()
    assert result_ids(run.results()) == expected(STREAMS, on)


def test_a_run_that_sheds_load_samples_the_same_pairs(tmp_path: Path) -> None:
    on = CONDITIONS[0]
    limits = {"a": "90 seconds", "b": "150 seconds"}
    join = StreamJoin(STREAMS, on, Centralized(), limits, "ts", shed=Shed(fraction=0.5))
    full, shed = expected(STREAMS, on, {"a": 90, "b": 150}), run_join(join, tmp_path)
    assert set(shed) < set(full) and max(shed.values()) == 1
    assert len(shed) > len(full) / 4
