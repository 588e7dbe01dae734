"""As-of joins on the fuzzer's conditions: the best of the pairs that the inner join makes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from braid import PredicateError, StreamJoin
from braid.core.match_rules import MATCHES
from fuzz.cases import Case
from fuzz.grammar import random_case, random_streams
from fuzz.outcomes import Ids
from fuzz.routes import table_kernels, timed
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import PLACEMENTS


def choose_best(pairs: Ids, times: Mapping[str, list[int]], match: str) -> dict[int, int]:
    """Return the best partner of each left row, by the ids of both."""
    a, b = times.values()
    best: dict[int, tuple[int, int, int]] = {}
    for left, right in pairs:
        apart = b[right] - a[left]
        if (match == "latest" and apart > 0) or (match == "first" and apart < 0):
            continue
        rank = (-abs(apart), apart, right)
        best[left] = max(best.get(left, rank), rank)
    return {left: rank[2] for left, rank in best.items()}


def passes_if_it_runs(case: Case, match: str, placement: Any) -> bool:
    """Check an as-of join with the condition of a case; return whether it is one that runs."""
    inner = table_kernels(case)
    if inner.kind != "rows":
        return False
    times = {alias: stream.event_times() for alias, stream in case.streams.items()}
    tables = {alias: timed(case, alias) for alias in case.streams}
    given: dict[str, Any] = {"lateness": "3650000 days", "time": "ts", "ties": "id"}
    try:
        join = StreamJoin(tables, case.on, placement, match=match, check=True, **given)
    except (PredicateError, ValueError) as refused:
        assert "no rows can satisfy" in str(refused) or "has no equality" in str(refused), refused
        return False
    with TemporaryDirectory() as folder:
        run = join.start(Path(folder) / "run", batches="batch", durability="process")
        run.awaitTermination()
        found = [(row["a"]["id"], row["b"]["id"]) for row in run.results().to_pylist()]
    assert len(found) == len(dict(found)), case.on
    assert dict(found) == choose_best(inner.rows, times, match), case.on
    return True


@settings(max_examples=3)
@given(st.integers(0, 1 << 32))
def test_any_condition_has_the_best_of_its_pairs(seed: int) -> None:
    draw = Random(seed)
    streams = random_streams(draw, rows=30)
    placement = PLACEMENTS[draw.choice(["Centralized()", "StaticGrid(hosts=5)"])]
    for _ in range(4):
        passes_if_it_runs(random_case(draw, streams), draw.choice(MATCHES), placement)
