"""The hub's language: Spark SQL with windows, parsed into definitions."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest
import sqlglot
from braid.condition.sql_types import SqlType
from braid.errors import QueryError
from braid.hub.arrow_backend import ArrowStreamReader
from braid.hub.duckdb_answers import DuckDBAnswer
from braid.hub.hub_state import RegisteredQuery
from braid.hub.query_dialect import parse_query
from braid.hub.query_parser import StreamQuery, parse_stream_query
from braid.hub.query_requests import QueryReader, selected_expressions
from braid.hub.query_selections import parse_selection
from braid.papers.reuse.query_definition import UNBOUNDED
from braid.papers.reuse.selections import implies_selection
from braid.storage.static_input_copy import InputSnapshot
from braid_lab.reuse.paper_example import Q1, Q2
from reuse_cases import MINUTE, figure1_queries

pytestmark = pytest.mark.unit
INT, TEXT, TIME, REAL, DAY = (SqlType(n) for n in ("int", "string", "timestamp", "double", "date"))
SCHEMAS = {
    "flights": {
        "num": INT,
        "gate": TEXT,
        "dest": TEXT,
        "terminal": TEXT,
        "carrier_code": TEXT,
        "ts": TIME,
    },
    "checkins": {"flight": INT, "status": TEXT, "vacant_seats": INT, "ts": TIME},
    "baggage": {"flight": INT, "area": TEXT, "ts": TIME},
    "weather": {"city": TEXT, "forecast": TEXT, "ts": TIME},
}


def query(sql: str, **given) -> StreamQuery:
    return parse_stream_query(sql, SCHEMAS, "ts", **given)


def test_the_paper_s_queries_are_understood() -> None:
    q1, q2 = figure1_queries()
    assert query(Q1).definition == q1
    assert query(Q2).definition == q2
    assert query(Q1).slide == MINUTE and query(Q1).aliases["f"] == "flights"
    assert query(Q2).on == "(checkins.flight = flights.num)"


def test_array_size_stays_what_it_is() -> None:
    """For NULL, ``size`` may be -1, but ``array_size`` is NULL."""
    text = parse_query("SELECT f.x FROM f, c WHERE array_size(f.w) > 2 AND size(c.w) > 1").sql(
        "spark"
    )
    assert text.endswith("ARRAY_SIZE(f.w) > 2 AND SIZE(c.w) > 1")


SAME = [
    "SELECT f.gate FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight AND c.status = 'x'",
    "SELECT gate FROM checkins [RANGE INTERVAL 60 SECONDS] AS c JOIN flights f [RANGE '5' MINUTES] ON c.flight = num WHERE 'x' = status",
    "SELECT flights.gate FROM Flights [range 5 minutes], CHECKINS [RANGE 1 MINUTE] WHERE checkins.FLIGHT = flights.num AND NOT checkins.status <> 'x'",
]


def test_the_same_query_has_one_definition_however_it_is_written() -> None:
    first, *others = (query(sql) for sql in SAME)
    for other in others:
        assert other.definition == first.definition and other.on == first.on
    plain = "SELECT f.gate FROM flights f, checkins c WHERE f.num = c.flight AND c.status IN ('x')"
    given = query(plain, windows={"f": "5 minutes", "c": "1 minute"})
    assert given.definition == first.definition
    assert query(plain, windows="5 minutes", slide="1 minute").slide == MINUTE


def test_interval_conditions_of_spark_are_windows() -> None:
    found = query(
        "SELECT f.gate FROM flights f JOIN checkins c ON f.num = c.flight AND "
        "c.ts BETWEEN f.ts - INTERVAL 1 MINUTE AND f.ts + INTERVAL 5 MINUTES"
    )
    assert found.windows_by_stream == {"flights": 5 * MINUTE + 1, "checkins": MINUTE + 1}
    assert found.on == "(checkins.flight = flights.num)"
    strict = query(
        "SELECT f.gate FROM flights f JOIN checkins c ON f.num = c.flight AND "
        "c.ts > f.ts - INTERVAL '1' MINUTE AND f.ts + INTERVAL 5 MINUTES > c.ts"
    )
    assert strict.windows_by_stream == {"flights": 5 * MINUTE, "checkins": MINUTE}
    assert (
        query(
            "SELECT * FROM flights [RANGE UNBOUNDED] f JOIN checkins [RANGE 1 MIN] c ON num = flight"
        ).windows_by_stream["flights"]
        == UNBOUNDED
    )


def test_what_is_read_of_streams_and_told_is_known() -> None:
    found = query(
        "SELECT c.*, f.num + 1 AS next FROM flights [RANGE 5 MIN] f JOIN checkins [RANGE 1 MIN] c "
        "ON f.num = c.flight WHERE f.gate LIKE 'A%' AND f.num > c.vacant_seats"
    )
    places = dict(zip(found.definition.streams, found.definition.columns, strict=True))
    assert places == {"checkins": set(SCHEMAS["checkins"]), "flights": {"num"}}
    assert found.filters == {"flights": "(flights.gate LIKE 'A%')"}
    assert "checkins.vacant_seats < flights.num" in {j.text for j in found.definition.joins}
    grouped = query(
        "SELECT f.dest, count(*) AS n FROM flights [RANGE 5 MIN SLIDE 1 MIN] f JOIN checkins [RANGE 1 MIN] c "
        "ON f.num = c.flight GROUP BY f.dest HAVING count(*) > 2"
    )
    assert grouped.groups == ("`f`.`dest`",) and grouped.having == "COUNT(*) > 2"


BAD = [
    ("", "must be text"),
    ("SELECT", "the query has no FROM; it names two streams or more of flights, checkins"),
    ("SELEC x FROM y", "not valid Spark SQL|must be one SELECT"),
    ("SELECT 1; SELECT 2", "must be one SELECT"),
    ("SELECT * FROM flights [RANGE 5 MIN", "not closed|not valid"),
    (
        "SELECT * FROM flights [ROWS 5] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight",
        r"is \[ROWS 5\]; it must be",
    ),
    (
        "SELECT * FROM flights [RANGE 5 MIN] [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight",
        "has 2 windows",
    ),
    (
        "SELECT * FROM flights [RANGE 5 MIN SLIDE 0 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight",
        "SLIDE of flights is",
    ),
    (
        "SELECT * FROM flights [RANGE -5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight",
        "RANGE of flights is",
    ),
    (
        "SELECT * FROM flights [RANGE 5 MIN SLIDE 1 MIN] f, checkins [RANGE 1 MIN SLIDE 2 MIN] c WHERE f.num = c.flight",
        "different SLIDEs",
    ),
    (
        "SELECT * FROM planes [RANGE 5 MIN] p, checkins [RANGE 1 MIN] c",
        "stream 'planes' is unknown; the streams are flights, checkins",
    ),
    (
        "SELECT * FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.nom = c.flight",
        r"column 'f.nom' in the query is unknown; f has: num",
    ),
    (
        "SELECT x.num FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight",
        "alias 'x' in the query is unknown",
    ),
    (
        "SELECT ts FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight",
        "column 'ts' in the query is in several streams",
    ),
    ("SELECT * FROM flights [RANGE 5 MIN] f", "must join two streams"),
    (
        "SELECT * FROM flights [RANGE 5 MIN] f, flights [RANGE 5 MIN] g WHERE f.num = g.num",
        "read twice",
    ),
    (
        "SELECT * FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] f WHERE f.num = 1",
        "two streams are called 'f'",
    ),
    (
        "SELECT * FROM flights [RANGE 5 MIN] f RIGHT ANTI JOIN checkins [RANGE 1 MIN] c ON f.num = c.flight",
        "a RIGHT ANTI JOIN is asked for",
    ),
    (
        "SELECT * FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c",
        "not all joined with each other",
    ),
    ("SELECT * FROM flights f, checkins c WHERE f.num = c.flight", "stream 'f' has no window"),
    (
        "SELECT DISTINCT f.num FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight",
        "DISTINCT is not supported",
    ),
    (
        "SELECT * FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight LIMIT 3",
        "LIMIT is not supported",
    ),
    (
        "SELECT * FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight ORDER BY f.num",
        "ORDER BY is not supported",
    ),
    (
        "SELECT * FROM (SELECT * FROM flights) f, checkins [RANGE 1 MIN] c",
        "FROM takes streams by name",
    ),
    (
        "SELECT * FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num IN (SELECT 1)",
        "stands beside a join",
    ),
    (
        "SELECT count(*) FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight",
        "an aggregate needs a SLIDE",
    ),
    (
        "SELECT f.dest, stddev(f.num) FROM flights [RANGE 5 MIN SLIDE 1 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight GROUP BY f.dest",
        "is not supported; count, sum",
    ),
    (
        "SELECT f.num FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight AND rand() < 0.5",
        r"rand\(\) is not deterministic",
    ),
    (
        "SELECT x.* FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight",
        r"x\.\* is asked for",
    ),
    (
        "SELECT f.num, count(*) FROM flights [RANGE 5 MIN SLIDE 1 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight GROUP BY f.dest",
        "f.num is selected of groups of matches; it must be in GROUP BY or in an aggregate",
    ),
    (
        "SELECT c.*, count(*) FROM flights [RANGE 5 MIN SLIDE 1 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight GROUP BY c.flight",
        r"c\.\w+ is selected of groups of matches",
    ),
    (
        "SELECT f.dest FROM flights [RANGE 5 MIN SLIDE 1 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight GROUP BY f.dest HAVING f.num > 3",
        "f.num is selected of groups of matches",
    ),
    (
        "SELECT f.dest FROM flights [RANGE 5 MIN SLIDE 1 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight GROUP BY f.num + 1",
        "GROUP BY takes columns; it has",
    ),
    (
        "SELECT f.dest FROM flights [RANGE 5 MIN SLIDE 1 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight HAVING f.num > 3",
        "HAVING needs GROUP BY",
    ),
]


@pytest.mark.parametrize(("sql", "said"), BAD)
def test_what_is_no_query_of_a_hub_is_refused_in_one_sentence(sql: str, said: str) -> None:
    with pytest.raises(QueryError, match=said) as refused:
        query(sql)
    assert "\n" not in str(refused.value)


def test_a_stored_query_is_understood_though_new_ones_like_it_are_refused() -> None:
    sql = (
        "SELECT f.num, count(*) AS n FROM flights [RANGE 5 MIN SLIDE 1 MIN] f, "
        "checkins [RANGE 1 MIN] c WHERE f.num = c.flight GROUP BY f.dest"
    )
    asking = QueryReader(
        ArrowStreamReader({}, "ts", InputSnapshot(Path()), 0), stores_all_columns=False
    )
    asking.reader.schemas = SCHEMAS
    with pytest.raises(QueryError, match=r"f\.num is selected of groups"):
        asking.admit_query(sql, "q", "here")
    served = RegisteredQuery(0, "q", sql, None, None, "here", "new", [], {}, None, None)
    assert asking.restore_query(served).select == ("`f`.`num` AS num", "COUNT(*) AS n")


@pytest.mark.parametrize(
    ("reported", "looked"),
    [
        ("count(1 / f.num, 2 / f.num)", ["1 / f.num", "2 / f.num"]),
        ("count(DISTINCT f.num, 2 / f.num)", ["f.num", "2 / f.num"]),
        (
            "sum(1 / f.num) FILTER (WHERE f.num > 0)",
            ["CASE WHEN f.num > 0 THEN 1 / f.num END"],
        ),
        ("count(*) FILTER (WHERE 1 / f.num > 0)", ["1 / f.num > 0"]),
        ("count(*)", []),
    ],
)
def test_all_that_an_aggregate_is_of_is_looked_at_in_its_batch(
    reported: str, looked: list[str]
) -> None:
    found = query(
        f"SELECT {reported} AS x FROM flights [RANGE 5 MIN SLIDE 1 MIN] f, checkins [RANGE 1 MIN] c "
        "WHERE f.num = c.flight"
    )
    assert [tree.sql("spark").replace("`", "") for tree in selected_expressions(found)] == looked
    if "," in reported or "FILTER" in reported:
        with pytest.raises(QueryError, match="Spark"):
            DuckDBAnswer(found, SCHEMAS, "ts")


def test_a_window_given_twice_is_refused() -> None:
    with pytest.raises(QueryError, match="a window in the text and in windows="):
        query(SAME[0], windows="5 minutes")
    with pytest.raises(QueryError, match="windows are given for 'z'"):
        query(SAME[0], windows={"z": "5 minutes"})
    with pytest.raises(QueryError, match="SLIDE is given in the text and in slide="):
        query(Q2, slide="1 minute")


TYPES = {"x": INT, "y": REAL, "s": TEXT, "d": DAY}
ATOMS = [
    "x = 1", "x <> 2", "x > 1", "3 > x", "x IN (1, 3)", "x NOT IN (1, 2)", "x BETWEEN 1 AND 2", "x NOT BETWEEN 1 AND 2",
    "x IS NULL", "x IS NOT NULL", "x >= 1.5", "y < 2.5", "y = 1.5", "s = 'b'", "s > 'a'", "s IN ('a', 'c')", "d >= DATE '2020-01-02'",
    "d < '2020-01-02'", "length(s) = 1", "x + 1 = 2", "s LIKE 'a%'", "x = NULL", "x IN (1, NULL)", "NOT (x = 1 OR s = 'b')",
]  # fmt: skip


def random_condition(rng: random.Random, depth: int = 2) -> str:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(ATOMS)
    a, b = (random_condition(rng, depth - 1) for _ in range(2))
    return rng.choice([f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})"])


def test_implications_between_conditions_in_sql_are_true_of_every_row() -> None:
    db = duckdb.connect()
    db.sql(
        "CREATE TABLE t AS SELECT * FROM (VALUES (NULL), (0), (1), (2), (3), (4)) a(x), "
        "(VALUES (NULL), (1.5::DOUBLE), (3), ('nan'::DOUBLE)) b(y), (VALUES (NULL), ('a'), ('b'), ('c')) c(s), "
        "(VALUES (NULL), (DATE '2020-01-01'), (DATE '2020-01-03')) d(d)"
    )
    rng, found, true = random.Random(3), 0, 0
    cases = [random_condition(rng) for _ in range(60)]
    as_text = [sqlglot.transpile(c, "spark", "duckdb")[0] for c in cases]
    passing = [
        {r[0] for r in db.sql(f"SELECT rowid FROM t WHERE {sql}").fetchall()} for sql in as_text
    ]
    selections = [parse_selection(sqlglot.parse_one(c, dialect="spark"), TYPES) for c in cases]
    for i, p in enumerate(selections):
        for j, q in enumerate(selections):
            true += passing[i] <= passing[j] and i != j
            if implies_selection(p, q):
                assert passing[i] <= passing[j], (cases[i], cases[j])
                found += i != j
    assert found > 0.3 * true


@pytest.mark.parametrize(
    "kind, one, other",
    [
        ("string collate UTF8_LCASE", "x = 'abc'", "x <> 'ABC'"),
        ("date", "x = '2024-01-01'", "x <> '2023-02-30'"),
        ("float", "x >= 16777217", "x > 16777216.5"),
    ],
)
def test_nothing_is_implied_where_spark_may_compare_otherwise(
    kind: str, one: str, other: str
) -> None:
    types = {"x": SqlType.parse(kind)}
    a, b = (parse_selection(sqlglot.parse_one(c, dialect="spark"), types) for c in (one, other))
    assert implies_selection(a, a) and not implies_selection(a, b)


def test_equalities_follow_from_others_only_between_columns_of_one_kind() -> None:
    streams = "a [RANGE 1 MINUTE], b [RANGE 1 MINUTE], c [RANGE 1 MINUTE]"
    sql = f"SELECT a.l FROM {streams} WHERE a.l = b.d AND a.l = c.l"
    for middle, implied in ((SqlType("bigint"), 1), (INT, 1), (REAL, 0), (TEXT, 0)):
        long = {"l": SqlType("bigint"), "ts": TIME}
        found = parse_stream_query(
            sql, {"a": long, "b": {"d": middle, "ts": TIME}, "c": long}, "ts"
        )
        assert sum(j.is_implied for j in found.definition.joins) == implied, middle
