"""Each statement of a hub is answered right, or refused: none is answered as another kind."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import hub_cases
import pytest
from braid.condition.column_names import parse_condition
from braid.errors import PredicateError, QueryError
from braid.hub import query_parser
from braid.hub.query_kinds import join_subqueries
from braid.hub.query_parser import parse_stream_query
from hub_cases import SCHEMAS
from hub_kind_runs import check_all_plans

pytestmark = pytest.mark.unit
F, C, B = (
    "flights [RANGE 90 SECONDS] f",
    "checkins [RANGE 60 SECONDS] c",
    "baggage [RANGE 1 HOUR] b",
)
ON = "f.num = c.flight"

ANSWERED = {
    f"SELECT f.id, c.id AS c FROM {F} JOIN {C} ON {ON}": f"{ON}",
    f"SELECT f.id, c.id AS c FROM {F} INNER JOIN {C} ON {ON} AND f.terminal = 'A'": f"{ON} AND f.terminal = 'A'",
    f"SELECT f.id, c.id AS c FROM {F}, {C} WHERE {ON} AND c.seats < 3": f"{ON} AND c.seats < 3",
    f"SELECT f.id, c.id AS c FROM {F} CROSS JOIN {C} WHERE {ON}": f"{ON}",
    f"SELECT f.id, c.id AS c FROM {F} JOIN {C} ON {ON} WHERE c.seats IS NULL": f"{ON} AND c.seats IS NULL",
    f"SELECT f.id, c.id AS c FROM {F} JOIN {C} ON {ON} WHERE c.flight IS NULL": f"{ON} AND c.flight IS NULL",
    f"SELECT f.id, c.id AS c FROM {F} JOIN {C} ON NOT ({ON}) AND f.id = c.id": f"NOT ({ON}) AND f.id = c.id",
    f"SELECT f.id, c.id AS c FROM {F} JOIN {C} ON {ON} AND f.num NOT IN (1, 2)": f"{ON} AND f.num NOT IN (1, 2)",
    f"SELECT f.id, c.id AS c FROM {F} JOIN {C} ON f.num <=> c.flight": "f.num IS NOT DISTINCT FROM c.flight",
    "SELECT `left`.id, c.id AS c FROM flights [RANGE 90 SECONDS] AS `left` JOIN checkins [RANGE 60 SECONDS] c ON `left`.num = c.flight": f"{ON}",
    "SELECT `ANY`.id, c.id AS c FROM flights [RANGE 90 SECONDS] `ANY` JOIN checkins [RANGE 60 SECONDS] c ON `ANY`.num = c.flight": f"{ON}",
}
"""Statements and their conditions in DuckDB."""

WINDOW = (
    "greatest(f.ts, c.ts) - f.ts < INTERVAL 90 SECONDS "
    "AND greatest(f.ts, c.ts) - c.ts < INTERVAL 60 SECONDS"
)
MET = f"{ON} AND {WINDOW}"
FC = "flights f {} JOIN checkins c ON " + MET
ONE = "SELECT f.id FROM "
BOTH = "SELECT f.id, c.id AS c, c.status FROM "
ANTI = "flights f WHERE NOT EXISTS (SELECT 1 FROM checkins c WHERE " + MET
SEMI = "flights f WHERE EXISTS (SELECT 1 FROM checkins c WHERE " + MET

KINDS = {
    **{
        f"{BOTH}{F} {side} JOIN {C} ON {ON}": BOTH + FC.format(side)
        for side in ("LEFT", "LEFT OUTER", "RIGHT", "RIGHT OUTER", "FULL", "FULL OUTER")
    },
    **{
        f"{ONE}{F} {word} JOIN {C} ON {ON}": ONE + FC.format(word.split()[-1])
        for word in ("SEMI", "LEFT SEMI", "ANTI", "LEFT ANTI")
    },
    f"SELECT * FROM {F} SEMI JOIN {C} ON {ON}": "SELECT f.* FROM " + FC.format("SEMI"),
    f"SELECT id, f.* FROM {F} ANTI JOIN {C} ON {ON}": "SELECT f.id, f.* FROM " + FC.format("ANTI"),
    f"SELECT c.*, f.num + 1 FROM {F} FULL JOIN {C} ON {ON}": "SELECT c.*, f.num + 1 FROM "
    + FC.format("FULL"),
    f"{BOTH}{C} LEFT JOIN {F} ON {ON}": BOTH + FC.format("RIGHT"),
    f"{BOTH}{C} RIGHT JOIN {F} ON {ON}": BOTH + FC.format("LEFT"),
    f"{BOTH}{F} LEFT JOIN {C} ON {ON} AND f.terminal = 'A'": BOTH
    + FC.format("LEFT")
    + " AND f.terminal = 'A'",
    f"{BOTH}{F} LEFT JOIN {C} ON {ON} AND c.seats < 2": BOTH
    + FC.format("LEFT")
    + " AND c.seats < 2",
    f"{BOTH}{F} LEFT JOIN {C} ON {ON} AND f.id > c.id AND f.num <> 3": BOTH
    + FC.format("LEFT")
    + " AND f.id > c.id AND f.num <> 3",
    f"{BOTH}{F} LEFT JOIN {C} ON {ON} AND 1 = 0": BOTH + FC.format("LEFT") + " AND 1 = 0",
    f"{BOTH}{F} FULL JOIN {C} ON {ON} AND 1 = 0": BOTH + FC.format("FULL") + " AND 1 = 0",
    f"{BOTH}{F} RIGHT JOIN {C} ON {ON} WHERE 1 = 0": BOTH + FC.format("RIGHT") + " WHERE 1 = 0",
    f"{BOTH}{F} FULL JOIN {C} ON {ON} AND f.terminal = 'A' AND c.seats < 2": BOTH
    + FC.format("FULL")
    + " AND f.terminal = 'A' AND c.seats < 2",
    f"{BOTH}{F} LEFT JOIN {C} ON {ON} WHERE f.terminal = 'A'": BOTH
    + FC.format("LEFT")
    + " WHERE f.terminal = 'A'",
    f"{BOTH}{F} RIGHT JOIN {C} ON {ON} AND c.seats > 0 WHERE c.status = 'A'": BOTH
    + FC.format("RIGHT")
    + " AND c.seats > 0 WHERE c.status = 'A'",
    f"{BOTH}{F} LEFT JOIN {C} ON {ON} WHERE c.flight IS NULL": BOTH
    + FC.format("LEFT")
    + " WHERE c.flight IS NULL",
    f"SELECT * FROM {F} LEFT JOIN {C} ON {ON} WHERE c.flight IS NULL AND f.num > 2": "SELECT f.*, c.* FROM "
    + FC.format("LEFT")
    + " WHERE c.flight IS NULL AND f.num > 2",
    f"{BOTH}{F} LEFT JOIN {C} ON f.num <=> c.flight": BOTH
    + FC.format("LEFT").replace("f.num = c.flight", "f.num IS NOT DISTINCT FROM c.flight"),
    f"{BOTH}{F} FULL JOIN {C} ON {ON} OR f.id = c.id": BOTH
    + f"flights f FULL JOIN checkins c ON ({ON} OR f.id = c.id) AND {WINDOW}",
    f"{BOTH}flights f LEFT JOIN checkins c ON {ON} AND c.ts BETWEEN f.ts - INTERVAL 20 SECONDS AND f.ts + INTERVAL 30 SECONDS": BOTH
    + f"flights f LEFT JOIN checkins c ON {ON} AND c.ts BETWEEN f.ts - INTERVAL 20 SECONDS AND f.ts + INTERVAL 30 SECONDS",
    f"{ONE}{F} WHERE EXISTS (SELECT 1 FROM {C} WHERE {ON})": f"{ONE}{SEMI})",
    f"{ONE}{F} WHERE EXISTS (SELECT * FROM {C} WHERE num = flight) AND terminal = 'A'": f"{ONE}{SEMI}) AND terminal = 'A'",
    f"{ONE}{F} WHERE NOT EXISTS (SELECT 1 FROM {C} WHERE {ON} AND c.ts > f.ts)": f"{ONE}{ANTI} AND c.ts > f.ts)",
    f"{ONE}{F} WHERE NOT EXISTS (SELECT 1 FROM {C} WHERE {ON} AND f.terminal = 'B') AND f.id > 3": f"{ONE}{ANTI} AND f.terminal = 'B') AND f.id > 3",
    f"{ONE}{F} WHERE f.num IN (SELECT c.flight FROM {C})": f"{ONE}{SEMI})",
    f"{ONE}{F} WHERE num IN (SELECT flight FROM {C} WHERE c.seats < 3) AND f.id > 1": f"{ONE}{SEMI} AND c.seats < 3) AND f.id > 1",
}
"""Statements of other kinds than inner, and the same in DuckDB."""

BEST = "QUALIFY row_number() OVER (PARTITION BY f.id ORDER BY "
TIES = ", ".join(f"c.{name} DESC NULLS LAST" for name in SCHEMAS["checkins"])
LATEST, FIRST = f"{BEST}c.ts DESC, {TIES}) = 1", f"{BEST}c.ts ASC, {TIES}) = 1"
PAIR = "SELECT f.id, c.id AS c FROM "
WITHIN = "flights f {} JOIN checkins c ON f.ts - c.ts < INTERVAL 60 SECONDS AND "
AFTER = "flights f JOIN checkins c ON c.ts - f.ts < INTERVAL 90 SECONDS AND "
ASOF = {
    f"{PAIR}{F} ASOF JOIN {C} ON {ON} AND f.ts >= c.ts": PAIR
    + WITHIN.format("")
    + f"{ON} AND f.ts >= c.ts {LATEST}",
    f"{PAIR}{F} ASOF LEFT JOIN {C} ON {ON} AND c.ts <= f.ts": PAIR
    + WITHIN.format("LEFT")
    + f"{ON} AND f.ts >= c.ts {LATEST}",
    f"{PAIR}{F} ASOF LEFT JOIN {C} ON {ON} AND f.ts > c.ts WHERE f.terminal = 'A'": PAIR
    + WITHIN.format("LEFT")
    + f"{ON} AND f.ts > c.ts WHERE f.terminal = 'A' {LATEST}",
    f"{PAIR}{F} ASOF LEFT JOIN {C} ON {ON} AND f.terminal = 'A' AND c.seats > 1 AND f.ts >= c.ts": PAIR
    + WITHIN.format("LEFT")
    + f"{ON} AND f.terminal = 'A' AND c.seats > 1 AND f.ts >= c.ts {LATEST}",
    f"{PAIR}{F} ASOF JOIN {C} ON {ON} AND f.ts < c.ts": PAIR
    + AFTER
    + f"{ON} AND f.ts < c.ts {FIRST}",
    f"{PAIR}{F} ASOF JOIN {C} ON f.ts <= c.ts AND f.id <> c.id": PAIR
    + AFTER
    + f"f.ts <= c.ts AND f.id <> c.id {FIRST}",
    f"{PAIR}{F} ASOF LEFT JOIN {C} ON f.ts <= c.ts": PAIR
    + AFTER.replace("JOIN", "LEFT JOIN")
    + f"f.ts <= c.ts {FIRST}",
    f"{PAIR}flights f ASOF LEFT JOIN checkins c ON {ON} AND f.ts >= c.ts AND c.ts >= f.ts - INTERVAL 5 SECONDS": PAIR
    + f"flights f LEFT JOIN checkins c ON {ON} AND f.ts >= c.ts AND c.ts >= f.ts - INTERVAL 5 SECONDS {LATEST}",
}
"""As-of joins, and the same in DuckDB without its ASOF JOIN, which ignores residuals."""

REFUSED = {
    f"{F} NATURAL JOIN {C}": "a NATURAL JOIN is asked for",
    f"{F} NATURAL LEFT JOIN {C}": "a NATURAL JOIN is asked for",
    f"{F} ASOF JOIN {C} MATCH_CONDITION (f.ts >= c.ts) ON {ON}": "MATCH_CONDITION is asked for",
    f"{F} POSITIONAL JOIN {C} ON num = flight": "not valid Spark SQL",
    "flights [RANGE 90 SECONDS] POSITIONAL JOIN checkins [RANGE 60 SECONDS] c ON num = flight": "POSITIONAL after flights",
    "flights [RANGE 90 SECONDS] ANY JOIN checkins [RANGE 60 SECONDS] c ON num = flight": "ANY after flights",
    "flights [RANGE 90 SECONDS] OUTER JOIN checkins [RANGE 60 SECONDS] c ON num = flight": "OUTER",
    "flights [RANGE 90 SECONDS] HASH JOIN checkins [RANGE 60 SECONDS] c ON num = flight": "HASH after flights",
    f"{F} RIGHT SEMI JOIN {C} ON {ON}": "a RIGHT SEMI JOIN is asked for",
    f"{F} CROSS APPLY {C}": "not valid Spark SQL",
    f"{F} OUTER APPLY {C}": "not valid Spark SQL",
    f"{F} CROSS APPLY checkins": "FROM takes streams by name",
    f"{F}, LATERAL (SELECT * FROM checkins c WHERE {ON}) x": "FROM takes streams by name",
    f"{F} JOIN LATERAL (SELECT * FROM checkins) c ON {ON}": "FROM takes streams by name",
    f"{F} LATERAL VIEW explode(array(1)) x AS e": "LATERAL VIEW is not supported",
    f"{F} STRAIGHT_JOIN {C} ON {ON}": "a STRAIGHT_JOIN JOIN is asked for",
    f"{F}, {C} WHERE f.num = c.flight(+)": "not valid Spark SQL",
    f"{F} LEFT JOIN {C} ON {ON} WHERE c.seats > 1": "reads c, which is NULL in the unmatched rows",
    f"{F} LEFT JOIN {C} ON {ON} WHERE c.seats IS NULL": "reads c, which is NULL",
    f"{F} LEFT JOIN {C} ON {ON} WHERE c.flight IS NOT NULL": "reads c, which is NULL",
    f"{F} LEFT JOIN {C} ON {ON} WHERE coalesce(c.seats, 0) = 0": "reads c, which is NULL",
    f"{F} LEFT JOIN {C} ON {ON} WHERE f.id > c.id": "reads c, which is NULL",
    f"{F} RIGHT JOIN {C} ON {ON} WHERE f.terminal = 'A'": "reads f, which is NULL",
    f"{F} RIGHT JOIN {C} ON {ON} WHERE f.num IS NULL": "reads f, which is NULL",
    f"{F} FULL JOIN {C} ON {ON} WHERE f.num > 1": "reads f, which is NULL",
    f"{F} ASOF LEFT JOIN {C} ON {ON} AND f.ts >= c.ts WHERE c.seats > 1": "whose row an ASOF LEFT JOIN chooses before WHERE",
    f"{F} ASOF JOIN {C} ON {ON} AND f.ts >= c.ts WHERE c.seats > 1": "whose row an ASOF JOIN chooses before WHERE",
    f"flights f ASOF JOIN checkins c ON {ON} AND f.ts >= c.ts": "stream 'c' has no window",
    f"flights [RANGE 90 SECONDS SLIDE 30 SECONDS] f ASOF JOIN {C} ON {ON} AND f.ts >= c.ts": "an ASOF JOIN is asked for with a SLIDE",
    f"{F} LEFT JOIN {C} ON {ON} LEFT JOIN {B} ON f.num = b.flight": "a LEFT JOIN stands beside another join",
    f"{F} JOIN {C} ON {ON} LEFT JOIN {B} ON f.num = b.flight": "a LEFT JOIN stands beside another join",
    f"{F} LEFT JOIN {C} ON {ON} JOIN {B} ON f.num = b.flight": "a LEFT JOIN stands beside another join",
    f"{F} JOIN {C} ON {ON} WHERE EXISTS (SELECT 1 FROM {B} WHERE f.num = b.flight)": "stands beside a join",
    f"{F} WHERE EXISTS (SELECT 1 FROM {C} WHERE {ON}) AND EXISTS (SELECT 1 FROM {B} WHERE f.num = b.flight)": "WHERE has two queries",
    f"{F} WHERE f.num NOT IN (SELECT c.flight FROM {C})": "which a single NULL in the query makes empty; write NOT EXISTS",
    f"{F} WHERE NOT (f.num IN (SELECT c.flight FROM {C}))": "which a single NULL in the query makes empty; write NOT EXISTS",
    f"{F} WHERE f.num > 3 OR EXISTS (SELECT 1 FROM {C} WHERE {ON})": "is not by itself a condition of WHERE",
    f"{F} WHERE f.num = (SELECT max(c.flight) FROM {C})": "a subquery or a window function",
    f"{F} WHERE f.num = ANY (SELECT c.flight FROM {C})": "not valid Spark SQL",
    f"{F} WHERE f.num IN (SELECT c.flight, c.id FROM {C})": "gives no single column",
    f"{F} WHERE f.num IN (SELECT max(c.flight) FROM {C})": "which may be an aggregate",
    f"{F} WHERE f.num IN (SELECT first(c.flight) FROM {C})": "which may be an aggregate",
    f"{F} WHERE EXISTS (SELECT c.id FROM {C} WHERE {ON} LIMIT 1)": "a query that is more than SELECT|LIMIT",
    f"{F} WHERE EXISTS (SELECT count(*) FROM {C} WHERE {ON} GROUP BY c.id)": "a query that is more than",
    f"{F} WHERE EXISTS (SELECT 1 FROM {C}, {B} WHERE {ON})": "a query that is more than",
    f"{F} WHERE EXISTS (SELECT max(c.id) FROM {C} WHERE {ON})": "which may be an aggregate",
    f"{F} ASOF JOIN {C} ON {ON}": "has 0 comparisons",
    f"{F} ASOF JOIN {C} ON {ON} AND f.ts >= c.ts AND f.ts <= c.ts": "has 2 comparisons",
    f"{F} ASOF RIGHT JOIN {C} ON {ON} AND f.ts >= c.ts": "an ASOF RIGHT JOIN is asked for",
    f"{F} JOIN ({C} LEFT JOIN {B} ON c.flight = b.flight) ON {ON}": "a join in parentheses",
    f"{F} SEMI JOIN {C} ON {ON} WHERE c.seats > 1": "reads c, but a SEMI JOIN gives no column of it",
    f"{F} ANTI JOIN {C} ON {ON} WHERE c.flight IS NULL": "but an ANTI JOIN gives no column of it",
    f"{F} LEFT JOIN {C} ON f.num = 3": "not all joined with each other",
    f"{F} WHERE EXISTS (SELECT 1 FROM {C})": "not all joined with each other",
    f"flights [RANGE 90 SECONDS SLIDE 30 SECONDS] f LEFT JOIN {C} ON {ON}": "a LEFT JOIN is asked for with a SLIDE",
    f"{F} ANTI JOIN {C} ON {ON} GROUP BY f.id": "an ANTI JOIN is asked for with groups",
}
"""Statements that are refused for a reason of their own."""

REFUSED_COLUMNS = {
    f"SELECT c.id FROM {F} SEMI JOIN {C} ON {ON}": "alias 'c' in the query is unknown",
    f"SELECT c.* FROM {F} ANTI JOIN {C} ON {ON}": r"c.\* is asked for; the streams with columns are f",
    f"SELECT count(*) FROM {F} LEFT JOIN {C} ON {ON}": "a LEFT JOIN is asked for with groups",
}


def test_the_table_has_sixty_statements() -> None:
    assert len(ANSWERED) + len(KINDS) + len(ASOF) + len(REFUSED) >= 60


@pytest.mark.parametrize("sql", ANSWERED)
def test_an_inner_join_is_answered_as_one(sql: str) -> None:
    """The parsed parts, joined by DuckDB, are the join of the statement's condition."""
    query = parse_stream_query(sql, SCHEMAS, "ts")
    tables = hub_cases.make_hub_tables(3)
    with duckdb.connect() as db:
        for name in ("flights", "checkins"):
            db.register(name, tables[name])
        parts = [query.on, *query.filters.values()]
        spark = " AND ".join(parts).replace("<=>", "IS NOT DISTINCT FROM").replace("`", '"')
        found = db.execute(f"SELECT flights.id, checkins.id FROM flights, checkins WHERE {spark}")
        expected = f"SELECT f.id, c.id FROM flights f JOIN checkins c ON {ANSWERED[sql]}"
        assert Counter(found.fetchall()) == Counter(db.execute(expected).fetchall())


def test_a_join_of_any_kind_has_the_rows_of_its_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_all_plans(monkeypatch)
    data = hub_cases.make_hub_tables(3)
    hub = hub_cases.SteppedHub(tmp_path, data)
    statements = {**KINDS, **ASOF}
    for number, sql in enumerate(statements):
        hub.submit(sql, f"q{number}")
    for _ in range(hub_cases.BATCHES):
        hub.step()
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for name, rows in data.items():
            db.register(name, rows.drop_columns(["batch"]))
        for number, (sql, duck) in enumerate(statements.items()):
            expected = Counter(db.execute(duck).fetchall())
            assert count_plain_rows(hub.answered(f"q{number}")) == count_plain_rows(expected), sql


def count_plain_rows(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Return the rows with times as seconds, as their zones may be written in other ways."""
    plain: Counter[tuple[Any, ...]] = Counter()
    for row, count in rows.items():
        plain[tuple(v.timestamp() if isinstance(v, datetime) else v for v in row)] += count
    return plain


@pytest.mark.parametrize("sql", REFUSED_COLUMNS)
def test_columns_that_a_kind_does_not_have_are_refused(sql: str) -> None:
    with pytest.raises(QueryError, match=REFUSED_COLUMNS[sql]):
        parse_stream_query(sql, SCHEMAS, "ts")


@pytest.mark.parametrize("source", REFUSED)
def test_a_join_that_no_kind_describes_is_refused(source: str) -> None:
    with pytest.raises(QueryError, match=REFUSED[source]) as refused:
        parse_stream_query(f"SELECT f.id FROM {source}", SCHEMAS, "ts")
    assert "\n" not in str(refused.value)


def test_a_subquery_has_the_names_of_its_own_stream_first() -> None:
    """``id`` in the subquery is that of checkins, and outside of flights."""
    sql = f"SELECT id FROM {F} WHERE EXISTS (SELECT 1 FROM {C} WHERE num = flight AND id > 2) AND id < 5"
    tree = join_subqueries(query_parser.parse_query(sql), SCHEMAS)
    text = tree.sql(dialect="spark")
    assert "ON f.num = `c`.flight" in text.replace("`f`", "f") and "`c`.id > 2" in text
    assert "`f`.id < 5" in text and text.startswith("SELECT `f`.id FROM")
    assert "SEMI JOIN checkins" in text


def test_the_condition_of_a_stream_join_takes_no_query() -> None:
    for on in ("EXISTS (SELECT 1 FROM c WHERE a.k = c.k)", "a.k IN (SELECT k FROM c)"):
        with pytest.raises(PredicateError, match="holds a query"):
            parse_condition(f"a.k = b.k AND {on}")
