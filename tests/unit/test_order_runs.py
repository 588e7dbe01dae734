"""Runs of tables that search several ranges at once have the results that DuckDB has."""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from braid import Centralized, Shed, StaticGrid
from braid.condition.access_paths import OrderSearch
from braid.stream_join import StreamJoin
from oracle import PLACEMENTS, compute_expected, make_tables, result_ids

BATCHES = 12
STREAMS = make_tables("ab", {"a": 300, "b": 400}, seed=3, batches=BATCHES)
THREE = make_tables("abc", 90, seed=4, batches=4)
TWO = {
    name: placement
    for name, placement in PLACEMENTS.items()
    if placement.supports_streams(2) and placement.routing_key_source == "tuple"
}
CONDITIONS = (
    "a.flag = b.flag AND a.n BETWEEN b.n - 9 AND b.n + 20",
    "a.flag = b.flag AND a.f < b.f AND a.n >= b.n",
    "a.n <= b.n + 40 AND b.n <= a.n + 30 AND a.m < b.m",
    "a.f < b.f AND a.m > b.m + 20 AND a.k + 10 >= b.k",
    "a.k % 2 = b.k % 2 AND a.d <= b.d + INTERVAL 2 DAYS AND b.m - 1 < a.m AND a.n >= b.n",
    "a.k <= b.n AND b.n <= a.n",
)


def run_join(join: StreamJoin, folder: Path) -> Counter[tuple[int, ...]]:
    run = join.start(folder, batches="batch")
    assert run.awaitTermination()
    return result_ids(run.results())


@pytest.mark.parametrize(("on", "name"), [*zip(CONDITIONS * 2, cycle(TWO), strict=False)])
def test_every_placement_finds_what_duckdb_finds(on: str, name: str, tmp_path: Path) -> None:
    join = StreamJoin(STREAMS, on, TWO[name], check=True)
    assert isinstance(join.predicate.next_step(frozenset({0}), 1).access_path, OrderSearch)
    assert run_join(join, tmp_path) == compute_expected(STREAMS, on)


@pytest.mark.parametrize("on", CONDITIONS[:3])
def test_windows_and_ranges_find_what_duckdb_finds(on: str, tmp_path: Path) -> None:
    windows = {"a": 90, "b": 150}
    join = StreamJoin(
        STREAMS, on, StaticGrid(4), {a: f"{w} seconds" for a, w in windows.items()}, "ts"
    )
    assert run_join(join, tmp_path) == compute_expected(STREAMS, on, windows)


@pytest.mark.parametrize(
    "on",
    [
        "a.flag = b.flag AND b.k = c.k AND a.n BETWEEN c.n - 60 AND c.n + 60",
        "a.n <= b.n AND b.n <= a.n + 90 AND c.m < b.m AND c.f > a.f",
    ],
)
def test_hops_of_three_streams_find_what_duckdb_finds(on: str, tmp_path: Path) -> None:
    assert run_join(StreamJoin(THREE, on, Centralized()), tmp_path) == compute_expected(THREE, on)


def test_a_run_that_sheds_load_samples_the_same_pairs(tmp_path: Path) -> None:
    on = CONDITIONS[0]
    join = StreamJoin(
        STREAMS,
        on,
        Centralized(),
        {"a": "90 seconds", "b": "150 seconds"},
        "ts",
        shed=Shed(fraction=0.5),
    )
    full, shed = compute_expected(STREAMS, on, {"a": 90, "b": 150}), run_join(join, tmp_path)
    assert set(shed) < set(full) and max(shed.values()) == 1
    assert len(shed) > len(full) / 4


@pytest.mark.parametrize(
    "on",
    [
        "b.n + 20 >= a.n AND b.flag = a.flag AND NOT (a.n < b.n - 9)",
        f"{CONDITIONS[0]} AND true AND a.n <= b.n + 25",
        f"{CONDITIONS[0]} AND a.flag = b.flag AND a.f = a.f",
        f"a.k <= b.k + 1000 AND {CONDITIONS[0]}",
    ],
)
def test_conditions_that_mean_the_same_compare_as_many_pairs(on: str, tmp_path: Path) -> None:
    """Conjuncts are permuted, turned round, implied, repeated or useless."""
    results, compared = [], []
    for n, condition in enumerate((CONDITIONS[0], on)):
        run = StreamJoin(STREAMS, condition, Centralized()).start(
            tmp_path / f"{n}", batches="batch"
        )
        assert run.awaitTermination()
        results.append(result_ids(run.results()))
        compared.append(int(run.metrics(by="batch")["compared_pairs"].sum()))
    if "a.f = a.f" not in on and "a.k" not in on:  # both drop rows with NULL
        assert results[0] == results[1]
    assert results[1] == compute_expected(STREAMS, on)
    assert compared[1] <= 3 * compared[0]


def test_of_three_ranges_the_two_that_together_admit_few_are_searched(tmp_path: Path) -> None:
    """Each range admits a large share of the rows; those of the intervals hardly any together."""
    draw, size = np.random.default_rng(3), 4000
    start = draw.integers(0, 100_000, (2, size))
    times = pa.array(np.arange(size) * 1000, pa.timestamp("us"))
    streams = {
        alias: pa.table({"id": np.arange(size), "p": start[n], "q": start[n] + 20, "ts": times})
        for n, alias in enumerate("ab")
    }
    on = "a.p <= b.q AND b.p <= a.q AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts"
    run = StreamJoin(streams, on, Centralized(), time="ts").start(tmp_path / "run", batches=2)
    run.awaitTermination()
    results = run.results().num_rows
    assert results > 500
    assert int(run.metrics(by="batch")["compared_pairs"].sum()) < 8 * results
    number = np.arange(size)
    apart = number[:, None] - number
    overlap = abs(start[0][:, None] - start[1]) <= 20
    assert results == np.count_nonzero(overlap & (apart >= 0) & (apart <= 1000))
