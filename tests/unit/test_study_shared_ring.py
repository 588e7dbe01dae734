"""The study of the shared ring: its counts are the engine's, and its answers DuckDB's."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid.core.query import Query
from braid.core.run_events import BatchCommitted
from braid_lab.shared_ring import cost
from braid_lab.shared_ring import experiments as study
from braid_lab.workloads.base import Workload
from braid_lab.workloads.dashboards import SharedWorkload
from unit.test_bitmaps import Counted, make_queries, some_batches

START = datetime(2024, 1, 1, tzinfo=UTC)
QUERIES = (
    Query.parse("short", "ab", {"a": "3 seconds", "b": "5 seconds"}),
    Query.parse("long", "ab", {"a": "9 seconds", "b": "4 seconds"}, {"a": "a.v >= 6"}),
)


def streams() -> dict[str, Any]:
    """Return two small streams, a tuple a second, three in a batch."""
    tables = {}
    for n, alias in enumerate("ab"):
        draw = np.random.default_rng(n)
        ts = [START + timedelta(seconds=int(k)) for k in range(30)]
        columns = {
            "id": range(30),
            "ts": ts,
            "k": draw.integers(0, 2, 30),
            "v": draw.integers(0, 10, 30),
        }
        tables[alias] = pa.table(
            {**columns, "batch": pa.array([k // 3 for k in range(30)], pa.int32())}
        )
    return tables


@pytest.fixture(scope="module")
def oracle() -> study.DuckDBOracle:
    frames = {
        alias: SimpleNamespace(toArrow=lambda t=table: t) for alias, table in streams().items()
    }
    return study.DuckDBOracle(SharedWorkload(Workload("small", frames, "a.k = b.k", "ts"), QUERIES))  # type: ignore[arg-type]


def chosen(q: Query) -> list[list[dict[str, Any]]]:
    rows = {alias: table.to_pylist() for alias, table in streams().items()}
    return [
        [r for r in rows[a] if q.selections["ab".index(a)] is None or r["v"] >= 6] for a in "ab"
    ]


def age(now: datetime, row: dict[str, Any]) -> float:
    return (now - row["ts"]).total_seconds()


def reach(q: Query, alias: str) -> int:
    return q.windows["ab".index(alias)] // 1_000_000


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.name)
def test_the_truth_is_the_definition_of_a_windowed_join(oracle: study.DuckDBOracle, query: Query):
    wanted: Counter[tuple[int, ...]] = Counter()
    for a, b in product(*chosen(query)):
        now = max(a["ts"], b["ts"])
        if a["k"] == b["k"] and age(now, a) < reach(query, "a") and age(now, b) < reach(query, "b"):
            wanted[a["id"], b["id"]] += 1
    assert oracle.expected_results(query) == wanted and wanted


def test_of_use_is_what_some_query_has_in_its_window_as_a_batch_ends(oracle: study.DuckDBOracle):
    found = oracle.needed_tuples(QUERIES)
    for batch in range(10):
        now = START + timedelta(seconds=3 * batch + 2)
        use = set()
        for q in QUERIES:
            for alias, rows in zip("ab", chosen(q), strict=True):
                use |= {
                    (alias, r["id"])
                    for r in rows
                    if r["batch"] <= batch and age(now, r) < reach(q, alias)
                }
        assert found[batch] == len(use)


def test_balance_and_shares_add_up_to_what_is_stored(tmp_path: Path):
    run = Counted(tmp_path / "run", make_queries((8, 8), (24, 24)), 3, streams=2).fed(
        some_batches(20, streams=2)
    )
    commits = [e for e in run.events if isinstance(e, BatchCommitted)]
    by_batch = study.balance_by_batch(run.events)
    assert by_batch["held"].tolist() == [e.total_host_metrics.stored_tuples for e in commits]
    assert by_batch["ratio"].between(1, 3).all() and set(by_batch["deployment"]) == {1}
    places = study.ring_shares(run.events, {"last": range(19, 20)})
    assert places["held"].sum() == commits[-1].total_host_metrics.stored_tuples and len(places) == 6
    assert study.count_totals(run.events)["held_most"] == max(sum(e.live_tuples) for e in commits)


def test_a_ring_with_selections_pushed_in_does_less_at_every_length():
    work = cost.length_table(range(1, 25), (0.0001,)).pivot(
        index="nodes", columns="selections", values="work_modelled"
    )
    assert (work["pushed in"] < work["pulled up"]).all() and work.diff().dropna().gt(
        0
    ).all().all(), "and sends more, the longer"


def test_modelled_tuples_of_stretches_add_up_to_those_of_the_windows():
    edges = np.linspace(0, 32, 9)
    assert sum(
        study._compute_held_seconds(a, b) for a, b in zip(edges, edges[1:], strict=False)
    ) == pytest.approx(12 + 0.2 * 20)


def test_equal_stretches_of_age_put_more_on_one_host_than_the_run_does(tmp_path: Path):
    """Many young tuples are held, and few old ones.

    A block of a batch is as old as its batch, one second each.
    """
    selective = make_queries((12, 12), (32, 32), where=((None, None), ("v = 9", "v = 9")))
    run = Counted(tmp_path / "run", selective, 3, streams=2).fed(some_batches(48, streams=2))
    even, counted = study.even_balance(run.events), study.balance_by_batch(run.events)
    assert even["batch"].tolist() == counted["batch"].tolist() and even["ratio"].between(1, 3).all()
    assert (
        counted["deployment"].max() > 1
        and even["ratio"].iloc[-8:].mean() > counted["ratio"].iloc[-8:].mean()
    )
