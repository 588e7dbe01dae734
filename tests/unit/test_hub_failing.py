"""Queries of a hub that fail on a tuple: each ends by itself, with a sentence, if Spark would fail.

Queries that cannot fail are distinguished from those that can.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from braid.condition.sql_types import SqlType
from braid.errors import QueryError
from braid.hub.delivery import DeliveryRule
from braid.hub.expression_properties import depends_on_time_zone, may_fail
from braid.hub.query_answers import answer_query
from braid.hub.query_requests import QueryReader
from braid.papers.reuse.hub_events import OperatorBuilt, QueryEnded
from hub_cases import (
    ARRIVES,
    AT,
    BATCHES,
    GROUPED,
    NETWORK,
    THREE,
    TICKED,
    TYPES,
    WIDE,
    SteppedHub,
    end_of_ticks,
    expect_rows,
    make_hub_tables,
)

pytestmark = pytest.mark.unit

MEETS = WIDE + " AND (f.num + c.seats) * 500000000 > c.seats"
"""A query that fails on pairs."""
SELECTS = WIDE.replace("SELECT ", "SELECT unix_micros(f.ts) * 50000000000 AS large, ")
"""A query that fails as ARRIVES does, in its select list."""


@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("reuse", ["relaxed", "separate"])
def test_a_query_that_fails_on_a_tuple_ends_and_the_others_go_on(
    reuse: Any, network: bool, tmp_path: Path
) -> None:
    data, at = make_hub_tables(6), ("S1" if network else None)
    where = (NETWORK, AT) if network else (None, None)
    hub = SteppedHub(tmp_path / "hub", data, *where, reuse)
    asked = dict(wide=WIDE, arrives=ARRIVES, meets=MEETS, three=THREE, selects=SELECTS)
    for name, sql in asked.items():
        hub.submit(sql, name, at)
    while hub.registry.ledger.epoch < BATCHES - 1:
        hub.step()
    assert hub.answered("wide") == expect_rows(data, WIDE)
    assert hub.answered("three") == expect_rows(data, THREE)
    arrives, meets, selects = map(hub.registry.last_query, ("arrives", "meets", "selects"))
    assert arrives.end_epoch == 3 and re.match(
        r"it failed in batch 4: .*[Oo]verflow", arrives.end_reason
    )
    assert meets.end_epoch == 0 and meets.end_reason.startswith("it failed in batch 1: ")
    assert selects.end_epoch == 3 and re.match(
        r"it failed in batch 4: .*[Oo]verflow", selects.end_reason
    )
    assert [q.name for q in hub.registry.ledger.serving_queries] == ["wide", "three"]
    ended = {
        e.name: e.reason
        for e in hub.registry.log.store.events.read_since(0)
        if isinstance(e, QueryEnded)
    }
    assert ended == {q.name: q.end_reason for q in (arrives, meets, selects)}
    early = {k: t.filter(pc.less(t["batch"], 3)) for k, t in data.items()}
    for name in ("arrives", "selects"):
        assert hub.answered(name) == expect_rows(early, asked[name], 0, 3), name
    if network or reuse == "separate":  # otherwise an existing operator would answer it
        with pytest.raises(
            QueryError, match="the query fails on tuples received so far: .*verflow"
        ):
            hub.submit(WIDE + " AND unix_micros(c.ts) * 40000000000 > 5", "again", at)
    last = sorted(f.name for f in (tmp_path / "hub" / "operators").iterdir())[-1]
    assert {
        e.operator
        for e in hub.registry.log.store.events.read_since(0)
        if isinstance(e, OperatorBuilt)
    } == {*range(1 + int(last[:4]))}, "nothing is left of what was refused"


def test_windows_without_end_and_columns_of_one_name_are_told_as_duckdb_tells_them(
    tmp_path: Path,
) -> None:
    data = make_hub_tables(6)
    ever = WIDE.replace("90 SECONDS", "UNBOUNDED")
    alike = WIDE.replace("c.id AS c", "c.id, f.carrier, 1 AS id")
    every = WIDE.replace("f.id, c.id AS c", "*")
    first = TICKED.replace("c.id AS c", "c.id")
    hub = SteppedHub(tmp_path / "hub", data)
    for name, sql in dict(ever=ever, alike=alike, first=first, every=every).items():
        hub.submit(sql, name)
    for _ in range(BATCHES):
        hub.step()
    for name, sql in dict(ever=ever, alike=alike).items():
        assert hub.answered(name) == expect_rows(data, sql), name
    assert hub.answered("first") == expect_rows(data, first, until=end_of_ticks(data, first))
    reported = {
        n: answer_query(hub.registry, hub.registry.last_query(n))
        for n in ("alike", "first", "every")
    }
    assert reported["alike"].column_names == ["id", "id", "carrier", "id"]
    assert reported["first"].column_names == ["tick", "id", "id"]
    assert reported["every"].column_names == [*TYPES["flights"], *TYPES["checkins"]]
    assert reported["every"].num_rows == expect_rows(data, WIDE).total()


def test_what_fails_when_it_is_read_says_so_in_a_sentence(tmp_path: Path) -> None:
    hub = SteppedHub(tmp_path / "hub", make_hub_tables(6))
    large = GROUPED.replace("max(c.seats)", "2000000000 * max(c.seats)")
    hub.submit(large, "large")
    hub.submit(TICKED, "ticked")
    hub.step()
    hub.step()
    with pytest.raises(QueryError, match="^the answer to 'large' fails: .*verflow"):
        hub.answered("large")
    assert hub.answered("ticked") and len(hub.registry.ledger.serving_queries) == 2


@pytest.mark.parametrize("network", [False, True])
def test_a_query_with_a_slide_that_fails_on_a_match_ends_in_its_batch(
    network: bool, tmp_path: Path
) -> None:
    data, at = make_hub_tables(6), ("S1" if network else None)
    hub = SteppedHub(tmp_path / "hub", data, *((NETWORK, AT) if network else (None, None)))
    large = "unix_micros(f.ts) * 50000000000"
    asked = {
        "selects": TICKED.replace("SELECT ", f"SELECT {large} AS large, "),
        "groups": GROUPED.replace("max(c.seats)", f"max({large})"),
        "has": GROUPED.replace("count(*) > 2", f"max({large}) > 2"),
    }
    never = asked["selects"].replace("SLIDE 20 SECONDS", "SLIDE 1000 SECONDS")
    for name, sql in {**asked, "ticked": TICKED, "never": never}.items():
        hub.submit(sql, name, at)
    while hub.registry.ledger.epoch < BATCHES - 1:
        hub.step()
    for name, sql in asked.items():
        query = hub.registry.last_query(name)
        assert query.end_epoch == 3 and re.match(
            r"it failed in batch 4: .*[Oo]verflow", query.end_reason
        )
        early = {k: t.filter(pc.less(t["batch"], 3)) for k, t in data.items()}
        assert hub.answered(name) == expect_rows(early, sql, until=query.end_time), name
        assert hub.answered(name).total() > 10
    assert [q.name for q in hub.registry.ledger.serving_queries] == ["ticked", "never"]
    assert hub.answered("never") == Counter(), "no match of it holds at a tick"


def test_what_the_left_side_decides_does_not_fail_for_the_right_one(tmp_path: Path) -> None:
    data, large = make_hub_tables(6), "(f.num + c.seats) * 500000000 > 1"
    few = f"f.num + c.seats < 3 AND {large}"
    many = f"f.num + c.seats >= 3 OR {large}"
    hub = SteppedHub(tmp_path / "hub", data)
    chosen = f"SELECT f.num + c.seats AS n, {few} AS few, {many} AS many, "
    hub.submit(WIDE.replace("SELECT ", chosen), "told")
    hub.submit(f"{WIDE} AND ({many})", "passes")
    for _ in range(BATCHES):
        hub.step()
    found = hub.answered("told")
    assert {(n, few, many) for n, few, many, *_ in found} >= {(9, False, True), (2, True, True)}
    assert {(few, many) for n, few, many, *_ in found} == {(n in (1, 2), n > 0) for n in range(11)}
    assert all((few, many) == (n in (1, 2), n > 0) for n, few, many, *_ in found)
    ids = Counter({row[3:]: times for row, times in found.items()})
    assert ids == expect_rows(data, WIDE)
    assert hub.answered("passes") == Counter({r[3:]: t for r, t in found.items() if r[2]})


def test_where_spark_does_not_fail_nothing_is_looked_at(tmp_path: Path) -> None:
    hub = SteppedHub(tmp_path / "hub", make_hub_tables(6))
    for ansi, found in ((True, True), (False, False)):
        hub.registry.reader.ansi = ansi
        asking = QueryReader(hub.registry.reader, True)
        assert asking.may_fail(DeliveryRule("q", 0, 0, "`flights__num` + 1 > 2", ())) is found
        known = {"flights__num": ("flights", "num")}, {"found": "`flights__num` + 1"}
        rows = pa.table({"flights__num": pa.array([1], pa.int32())})
        if ansi:
            assert hub.registry.reader.compute_columns(rows, *known)["found"].to_pylist() == [2]
        else:
            hub.registry.reader._compiled.clear()
            with pytest.raises(AssertionError, match="not known to DuckDB"):
                hub.registry.reader.compute_columns(rows, *known)


@pytest.mark.parametrize(
    ("sql", "fails"),
    [
        ("a.n > 3 AND a.t LIKE 'x%' OR a.n IS NULL", False),
        ("a.n = 2.5 AND (a.r < a.n OR a.b)", False),
        ("upper(a.t) = 'X' AND coalesce(a.t, 'y') IN ('x', 'z')", False),
        ("greatest(unix_micros(a.at), unix_micros(a.at)) - unix_micros(a.at) < 7", False),
        ("CASE WHEN a.b THEN a.n ELSE 0 END", False),
        ("unix_micros(cast(a.at as timestamp)) > 7 AND cast(a.n as bigint) > 3", False),
        ("cast('2024-13-45' as date) IS NULL", True),
        ("a.t LIKE a.t", True),
        ("a.n + 1 > 3", True),
        ("greatest(a.n, a.n) - greatest(a.n, a.n) < 7", True),
        ("abs(a.n)", True),
        ("1 / a.n > 0", True),
        ("a.t = 7", True),
        ("CAST(a.t AS INT)", True),
        ("element_at(a.t, 7)", True),
    ],
)
def test_what_may_fail_on_a_tuple_is_told_from_what_cannot(sql: str, fails: bool) -> None:
    kinds = {"n": "int", "t": "string", "r": "double", "b": "boolean", "at": "timestamp"}
    assert may_fail(sql, {("a", c): SqlType(k) for c, k in kinds.items()}) is fails


@pytest.mark.parametrize(
    ("sql", "zoned"),
    [
        ("unix_micros(cast(a.at as timestamp)) % 7 = a.n", False),
        ("a.n > 3 AND a.t = '2026-01-01'", False),
        ("hour(a.at) = 5", True),
        ("unix_micros(cast(a.day as timestamp)) > 3", True),
        ("a.day = '2026-01-01'", True),
    ],
)
def test_what_a_time_zone_matters_to_is_left_to_spark_unless_it_is_utc(
    sql: str, zoned: bool
) -> None:
    kinds = {"n": "int", "t": "string", "day": "date", "at": "timestamp"}
    assert depends_on_time_zone(sql, {("a", c): SqlType(k) for c, k in kinds.items()}) is zoned


def test_a_fault_that_is_no_querys_stops_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = SteppedHub(tmp_path / "hub", make_hub_tables(6))
    hub.submit(WIDE, "wide")

    def broken(*_: Any) -> Any:
        raise duckdb.IOException("the stream is gone")

    monkeypatch.setattr(hub.registry.reader, "read_batch", broken)
    with pytest.raises(duckdb.IOException, match="the stream is gone"):
        hub.step()
    assert [q.name for q in hub.registry.ledger.serving_queries] == ["wide"]
