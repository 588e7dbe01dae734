"""Hubs answer joins of every kind right while queries come and go, tuples come late, and drivers die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from braid.errors import QueryError
from braid.hub.hub import HubRun, QueryHub
from braid.storage.manifest_log import ManifestLog
from hub_cases import BATCHES, SECOND, SteppedHub, query_rows
from hub_kind_runs import SIDES, KindQuery, KindScenario, answer_query, check_all_plans, make_tables

pytestmark = pytest.mark.unit
START = 10**12
HOWS = ("left", "right", "full", "semi", "anti")


@pytest.mark.parametrize("seed", range(5))
def test_a_random_hub_answers_as_the_model_does(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_all_plans(monkeypatch)
    assert not [*KindScenario(seed).run(tmp_path)]


def make_rows(*rows: tuple[int, int, int | None]) -> list[dict[str, Any]]:
    """Return rows of batch, seconds and key."""
    return [
        {"id": n, "num": k, "flight": k, "x": 0, "ts": START + t * SECOND, "batch": b}
        for n, (b, t, k) in enumerate(rows)
    ]


DATA = {
    "flights": make_rows((0, 1, 1), (0, 2, 2), (1, 10, 3), (3, 31, 4), (4, 60, 5), (5, 61, None)),
    "checkins": make_rows((0, 3, 1), (1, 11, 9), (2, 20, 9), (3, 32, 4), (4, 60, 9), (5, 62, 5)),
}


def make_query(how: str, first: int = 0, window: int | None = 10) -> KindQuery:
    return KindQuery(how, (window, window), (None, None), (None, None), False, False, first, None)


def start_hub(folder: Path, *queries: KindQuery, **more: Any) -> HubRun:
    hub = QueryHub(make_tables(DATA), "ts")
    named = {f"{q.how}{q.first}": q.sql for q in queries}
    return hub.start(folder, batches="batch", queries=named, **more)


@pytest.mark.parametrize("window", [10, None])
def test_rows_are_delivered_in_the_batch_in_which_they_are_final(
    window: int | None, tmp_path: Path
) -> None:
    delivered: list[tuple[int, int, Any]] = []

    def take(answers: dict[int, pa.Table], batch: int) -> None:
        for id, rows in answers.items():
            columns = (rows.column(n).to_pylist() for n in range(rows.num_columns))
            delivered.extend((id, batch, row) for row in zip(*columns, strict=True))

    queries = [make_query(how, window=window) for how in HOWS]
    run = start_hub(tmp_path, *queries, foreachBatch=take)
    assert run.awaitTermination()
    expected = Counter(
        (id, batch, ids)
        for id, query in enumerate(queries)
        for batch, ids in answer_query(query, DATA, (0, 0), dict.fromkeys(SIDES)).rows
    )
    assert Counter(delivered) == expected
    for id, query in enumerate(queries):
        rows = Counter(row for i, _, row in delivered if i == id)
        assert query_rows(run, f"{query.how}0") == rows


def test_equal_queries_share_an_operator_and_others_do_not(tmp_path: Path) -> None:
    hub = SteppedHub(tmp_path, make_tables(DATA))
    left = make_query("left").sql
    assert [hub.submit(left).reuse_kind for _ in range(2)] == ["new", "holds"]
    assert hub.submit(make_query("left", window=9).sql).reuse_kind == "new"
    assert hub.submit(make_query("inner").sql).reuse_kind == "new"
    assert hub.submit(make_query("inner", window=11).sql).reuse_kind == "relaxed"
    assert hub.submit(make_query("full").sql).reuse_kind == "new"
    swapped = "SELECT f.id FROM checkins [RANGE 10 SECONDS] c RIGHT JOIN flights [RANGE 10 SECONDS] f ON c.flight = f.num"
    assert hub.submit(swapped).reuse_kind == "holds"
    assert [hub.submit(ASOF).reuse_kind for _ in range(2)] == ["new", "holds"]
    assert hub.submit(ASOF.replace("LEFT", "")).reuse_kind == "new"
    assert hub.submit(ASOF.replace(">=", ">")).reuse_kind == "new"
    assert len(hub.registry.current_deployment.operators) == 7


ASOF = (
    "SELECT f.id, c.id AS c, f.ts FROM flights [RANGE 10 SECONDS] f ASOF LEFT JOIN "
    "checkins [RANGE 10 SECONDS] c ON f.num = c.flight AND f.ts >= c.ts"
)


NEARBY = {
    "flights": DATA["flights"],
    "checkins": [
        *DATA["checkins"],
        {**DATA["checkins"][3], "id": 6, "ts": START + 30 * SECOND},
        {**DATA["flights"][4], "id": 7},
    ],
}
"""The same with a partner of flight 3 that is earlier, and one of flight 4 at the same time."""


@pytest.mark.parametrize(
    ("match", "pairs"), [(">=", {(3, 6), (4, 7)}), ("<", {(0, 0), (3, 3), (4, 5)})]
)
def test_an_as_of_query_that_comes_late_answers_the_tuples_that_are_not_final(
    match: str, pairs: set[tuple[int, int]], tmp_path: Path
) -> None:
    """It has the rows that the same query from the start has of these tuples.

    One hub is never stopped. The drivers of the other die at each commit of three batches.
    """
    sql = ASOF.replace(">=", match)
    whole = SteppedHub(tmp_path / "first", make_tables(NEARBY))
    hub = SteppedHub(tmp_path / "second", make_tables(NEARBY))
    whole.submit(sql, "early")
    hub.submit(make_query("left").sql, "other")
    hub.submit(sql, "early")
    for batch in range(BATCHES):
        if batch == 4:
            hub.submit(sql + " AND f.id >= 0", "late")
        whole.step()
        if batch in (1, 4, BATCHES - 1):
            hub = step_through_deaths(tmp_path / "second")
        else:
            hub.step()
    since = hub.registry.last_query("late").complete_since["flights"]
    assert since is not None
    rows = whole.answered("early")
    assert {row[:2] for row in rows if row[1] is not None} == pairs
    expected = {r: n for r, n in rows.items() if r[2].timestamp() * SECOND >= since}
    assert expected and hub.answered("late") == expected
    assert hub.answered("early") == rows


def step_through_deaths(folder: Path) -> SteppedHub:
    """Run a batch of a hub whose driver dies before the first, the second, ... commit of it."""
    for survived in range(10):
        hub = SteppedHub(folder, make_tables(NEARBY))
        try:
            with dying_after(survived):
                hub.step()
        except OSError as error:
            assert str(error) == "killed"
        else:
            assert survived > 1
            return hub
    raise AssertionError("the batch has more commits than operators")


@contextmanager
def dying_after(commits: int) -> Iterator[None]:
    """Fail with "killed" before the commit of an operator or the hub that follows these."""
    left, append = count(commits, -1), ManifestLog.append_entry

    def commit_or_die(*given: Any, **named: Any) -> Any:
        if next(left) == 0:
            raise OSError("killed")
        return append(*given, **named)

    with patch.object(ManifestLog, "append_entry", commit_or_die):
        yield


def test_a_query_that_comes_late_answers_the_tuples_that_are_not_final(tmp_path: Path) -> None:
    """The buffer has the partners of all of them, so a match before the query is known."""
    hub = SteppedHub(tmp_path, make_tables(DATA))
    hub.submit(make_query("left").sql, "early")
    for batch in range(BATCHES):
        if batch == 4:
            hub.submit(make_query("anti").sql, "late")
        hub.step()
    late = hub.registry.last_query("late")
    assert late.complete_since == {"flights": START + 22 * SECOND + 1, "checkins": None}
    assert hub.answered("late") == Counter({(5,): 1})
    assert hub.answered("early")[2, None] == 1


def test_a_network_and_endless_streams_refuse_what_they_cannot_answer(tmp_path: Path) -> None:
    from hub_cases import AT, NETWORK, make_hub_tables

    hub = SteppedHub(tmp_path, make_hub_tables(1), NETWORK, AT)
    sql = "SELECT f.id FROM flights [RANGE 10 SECONDS] f ANTI JOIN checkins [RANGE 10 SECONDS] c ON f.num = c.flight"
    with pytest.raises(QueryError, match="this hub is on a network, where operators are inner"):
        hub.submit(sql, at="S1")
    alone = SteppedHub(tmp_path / "alone", make_tables(DATA))
    alone.registry.reader.last_batches = {}
    with pytest.raises(QueryError, match="its window is unbounded and checkins does not end"):
        alone.submit(make_query("left", window=None).sql)
    assert alone.submit(make_query("left").sql).reuse_kind == "new"


def test_what_a_row_without_partner_fails_on_ends_the_query(tmp_path: Path) -> None:
    hub = SteppedHub(tmp_path, make_tables(DATA))
    flights, checkins = "flights [RANGE 10 SECONDS] f", "checkins [RANGE 10 SECONDS] c"
    on = f"FROM {flights} LEFT JOIN {checkins} ON f.num = c.flight"
    hub.submit(
        f"SELECT f.id, coalesce(cast(c.id AS bigint) * 0, 5) * 5000000000000000000 AS x {on}",
        "fails",
    )
    hub.submit(f"SELECT f.id, c.id AS c {on}", "stays")
    for _ in range(BATCHES):
        hub.step()
    assert "failed in batch" in hub.registry.last_query("fails").end_reason
    expected = answer_query(make_query("left"), DATA, (0, 0), dict.fromkeys(SIDES))
    assert hub.answered("stays") == Counter(ids for _, ids in expected.rows)
