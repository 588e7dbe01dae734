"""Runs of tables by ORs and texts under all placements, windows, shedding, and after a restart."""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from braid import Centralized, Shed, StaticGrid
from braid.condition.access_paths import Disjunction, EditDistance, TextPrefix
from braid.errors import EvaluationFailure
from braid.stream_join import StreamJoin
from oracle import PLACEMENTS, compute_expected, killed_before, make_tables, result_ids

BATCHES = 8
STREAMS = {
    alias: rows.append_column("digits", rows["n"].cast(pa.string()))
    for alias, rows in make_tables("ab", {"a": 150, "b": 200}, seed=5, batches=BATCHES).items()
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
    assert run_join(join, tmp_path) == compute_expected(STREAMS, on)


@pytest.mark.parametrize("on", CONDITIONS[1:4])
def test_windows_find_what_duckdb_finds(on: str, tmp_path: Path) -> None:
    windows = {"a": 90, "b": 150}
    limits = {a: f"{w} seconds" for a, w in windows.items()}
    join = StreamJoin(STREAMS, on, StaticGrid(4), limits, "ts", check=True)
    assert run_join(join, tmp_path) == compute_expected(STREAMS, on, windows)


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
    assert result_ids(run.results()) == compute_expected(STREAMS, on)


def test_a_run_that_sheds_load_samples_the_same_pairs(tmp_path: Path) -> None:
    on = CONDITIONS[0]
    limits = {"a": "90 seconds", "b": "150 seconds"}
    join = StreamJoin(STREAMS, on, Centralized(), limits, "ts", shed=Shed(fraction=0.5))
    full, shed = compute_expected(STREAMS, on, {"a": 90, "b": 150}), run_join(join, tmp_path)
    assert set(shed) < set(full) and max(shed.values()) == 1
    assert len(shed) > len(full) / 4


def make_intervals(seed: int, size: int = 600) -> pa.Table:
    draw = np.random.default_rng(seed)
    start = np.sort(draw.integers(0, 10 * size, size))
    columns = {"k": draw.integers(0, 3, size), "n": draw.integers(0, size, size)}
    times = pa.array(start * 1_000_000, pa.timestamp("us"))
    end = start + draw.integers(0, 100, size)
    return pa.table({"id": np.arange(size), **columns, "p": start, "q": end, "ts": times})


@pytest.mark.parametrize(
    ("either", "others"),
    [
        ("a.n = b.n OR a.p <= b.q AND b.p <= a.q", "a.k >= b.k - 10"),
        ("a.n = b.n OR a.p <= b.q AND b.p <= a.q", "abs(a.k - b.k) <= 5"),
        ("a.n = b.n OR a.p <= b.q AND b.p <= a.q", "a.p + b.p >= -1"),
        ("a.n = b.n OR a.p = b.p", "a.p + b.p >= -1"),
        ("a.n = b.n + 1 OR a.p = b.p", "true"),
        ("a.n = b.n OR a.p <= b.q AND b.p <= a.q", "a.ts <= b.ts + INTERVAL 100 DAYS"),
    ],
)
def test_a_useless_conjunct_keeps_the_index_of_an_or(
    either: str, others: str, tmp_path: Path
) -> None:
    streams = {"a": make_intervals(1), "b": make_intervals(2)}
    for number, on in enumerate((f"({either})", f"({either}) AND {others}")):
        run = StreamJoin(streams, on, Centralized()).start(tmp_path / f"{number}", batches=3)
        assert run.awaitTermination()
        found = result_ids(run.results())
        assert found == compute_expected(streams, f"({either})")
        assert run.metrics(by="batch")["compared_pairs"].sum() <= 3 * (found.total() + 1200)


def test_windows_keep_the_index_of_an_or(tmp_path: Path) -> None:
    streams = {"a": make_intervals(1), "b": make_intervals(2)}
    on = "a.n = b.n OR a.p <= b.q AND b.p <= a.q"
    join = StreamJoin(streams, on, Centralized(), "1 hour", "ts")
    run = join.start(tmp_path, batches=3)
    assert run.awaitTermination()
    found = result_ids(run.results())
    assert found == compute_expected(streams, on, {"a": 3600, "b": 3600})
    assert run.metrics(by="batch")["compared_pairs"].sum() <= 3 * (found.total() + 1200)


@pytest.mark.parametrize("on", ["a.n = b.n + 1 OR a.k = b.k", "a.k = b.k OR a.n = b.n + 1"])
def test_an_overflow_in_a_branch_fails_the_run(on: str, tmp_path: Path) -> None:
    far = pa.table({"id": [0], "k": [7], "n": [2**63 - 1]})
    streams = {"a": make_intervals(1, 5).select(["id", "k", "n"]), "b": far}
    run = StreamJoin(streams, on, Centralized()).start(tmp_path, batches=1)
    with pytest.raises(EvaluationFailure, match=r"ARITHMETIC_OVERFLOW in b.n \+ 1"):
        run.awaitTermination()


def test_explain_says_why_whole_squares_are_compared_for_all_pairs() -> None:
    streams = {"a": make_intervals(1, 5), "b": make_intervals(2, 5)}
    squares = "(a.p - b.p) * (a.p - b.p) + (a.q - b.q) * (a.q - b.q) <= 400"
    text = str(StreamJoin(streams, squares).explain())
    assert f"none for {squares}: a product of whole numbers may overflow; power(x, 2)" in text
    powers = "power(a.p - b.p, 2) + power(a.q - b.q, 2) <= 20D * 20D"
    assert "none for" not in str(StreamJoin(streams, powers).explain())
