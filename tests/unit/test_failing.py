"""Sides of AND and OR that may fail are evaluated only if no earlier side decides.

Their values are those of SQL.
"""

from __future__ import annotations

from itertools import product

import duckdb
import pyarrow as pa
import pytest
from braid.condition.duckdb_compiler import DuckDBCompiler
from braid.condition.parser import parse_predicate
from braid.condition.residual_evaluation import duckdb_cursor
from braid.condition.sql_types import BIGINT, BOOLEAN, DOUBLE, INT, STRING

pytestmark = pytest.mark.unit

COMPILER = DuckDBCompiler(
    {("", c): BOOLEAN for c in "abc"}
    | {("", "n"): INT, ("", "k"): INT, ("", "m"): BIGINT, ("", "t"): STRING}
)
TRUTHS = [dict(zip("abc", t, strict=True)) for t in product((True, False, None), repeat=3)]


def evaluate_condition(sql: str, rows: list[dict[str, object]]) -> list[bool | None]:
    kinds = dict.fromkeys("abc", pa.bool_()) | {"n": pa.int32(), "k": pa.int32()}
    kinds |= {"m": pa.int64(), "t": pa.string()}
    tuples = pa.Table.from_pylist(rows, pa.schema(kinds.items()))
    with duckdb_cursor() as db:
        db.register("tuples", tuples)
        found = db.sql(f"SELECT {COMPILER.compile_text(sql)[0]} FROM tuples").fetchall()
    return [value for (value,) in found]


@pytest.mark.parametrize(
    "how", ["{} AND {} AND {}", "{} OR {} OR {}", "{} AND ({} OR {})", "{} OR {} AND {}"]
)
def test_what_is_looked_at_in_turn_says_what_sql_says(how: str) -> None:
    rows = [row | {"n": 1} for row in TRUTHS]
    plain = how.format("a", "b", "c")
    turned = how.format("(a AND n + 1 > 0)", "(n + 1 > 0 AND b)", "(NOT NOT c OR n + 1 < 0)")
    assert (
        "CASE" in COMPILER.compile_text(turned)[0] and "CASE" not in COMPILER.compile_text(plain)[0]
    )
    assert evaluate_condition(turned, rows) == evaluate_condition(plain, rows)


def test_what_is_decided_does_not_fail_and_what_is_not_does() -> None:
    rows = [{"n": 1, "m": 5}, {"n": 2_000_000_000, "m": None}]
    assert evaluate_condition("n < 9 AND n + n < 9", rows) == [True, False]
    assert evaluate_condition("n > 9 OR n + n > 9", rows) == [False, True]
    assert evaluate_condition("n < 9 AND m > 3 AND n + n < 9", rows) == [True, False]
    for sql in ("m > 3 AND n + n < 9", "n + n < 9 AND n < 9", "m <= 3 OR n + n < 9"):
        with pytest.raises(duckdb.Error, match="Overflow"):
            evaluate_condition(sql, rows)


MANY = [
    {"n": n, "k": k, "m": m} for n, k, m in product((1, 2, 3, None), (0, 2, None), (1, 2, None))
]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("n BETWEEN k AND n + m", "n >= k AND n <= n + m"),
        ("n BETWEEN k AND n + m - 1", "n >= k AND n <= n + m - 1"),
        ("n IN (2, k + m)", "n = 2 OR n = k + m"),
        ("n IN (k, m, k + 1)", "n = k OR n = m OR n = k + 1"),
    ],
)
@pytest.mark.parametrize("how", ["{}", "NOT {}"])
def test_between_and_in_are_looked_at_in_turn(short: str, long: str, how: str) -> None:
    assert "CASE" in COMPILER.compile_text(short)[0]
    assert evaluate_condition(how.format(f"({short})"), MANY) == evaluate_condition(
        how.format(f"({long})"), MANY
    )
    rows = [{"n": 1, "k": 0}, {"n": 2_000_000_000, "k": 2_100_000_000}]
    assert evaluate_condition(how.format("(n BETWEEN k AND n + n)"), rows) == [
        how == "{}",
        how != "{}",
    ]
    assert evaluate_condition(how.format("(n IN (2000000000, n + n))"), rows) == [
        how != "{}",
        how == "{}",
    ]
    for sql in ("n BETWEEN 1 AND n + n", "n IN (5, n + n)"):
        with pytest.raises(duckdb.Error, match="Overflow"):
            evaluate_condition(sql, rows)
    for plain in ("n BETWEEN k AND m", "n IN (1, k, m)"):
        assert "CASE" not in COMPILER.compile_text(plain)[0]


def test_what_is_compared_with_nothing_is_not_computed() -> None:
    """As in Spark: if the left side of a comparison is NULL, its right side is not evaluated."""
    rows = [{"n": None, "k": 2_000_000_000}, {"n": 5, "k": 1}]
    assert evaluate_condition("n < k + k", rows) == [None, False]
    assert evaluate_condition("NOT n >= k + k", rows) == [None, False]
    assert evaluate_condition("n IN (k + k, k + 4)", rows) == [None, True]
    assert evaluate_condition("n BETWEEN k + k AND k + 9", rows) == [None, True]
    for sql in ("k + k > n", "n <=> k + k"):
        with pytest.raises(duckdb.Error, match="Overflow"):
            evaluate_condition(sql, rows)
    for plain in ("n < k", "k + k < n", "n <=> k + k"):
        assert "CASE" not in COMPILER.compile_text(plain)[0]
    pair = DuckDBCompiler({("a", "n"): INT, ("b", "k"): INT})
    assert "CASE" not in pair.compile_text("a.n < b.k + b.k")[0], "a join stays one"


@pytest.mark.parametrize("part", ["left(t, {})", "right(t, {})", "substring(t, {}, 1)"])
def test_a_count_of_characters_may_be_too_large(part: str) -> None:
    """It is cast to INT, in Spark too; the count of a literal is exact."""
    rows = [{"m": 1, "t": "x"}, {"m": 5_000_000_000, "t": "x"}]
    assert evaluate_condition(f"m < 9 AND {part.format('m')} = 'x'", rows) == [True, False]
    for count, turned in ((1, False), ((1 << 31) - 1, False), (1 << 31, True)):
        made = COMPILER.compile_text(f"m < 9 AND {part.format(count)} = 'x'")[0]
        assert made.startswith("(CASE") == turned


@pytest.mark.parametrize(
    ("on", "is_left"),
    [
        ("a.b OR a.n + 1 > b.k", True),
        ("if(b.k = 1, a.n + 1 > 2, a.b)", True),
        ("CASE WHEN b.k = 1 THEN true WHEN a.n + 1 > 2 THEN a.b END", True),
        ("coalesce(b.k, a.n + 1) > 0", True),
        ("b.k BETWEEN a.k AND a.n + 1 OR a.b", True),
        ("a.n + 1 <> b.k OR a.b", True),
        ("CASE WHEN a.n + 1 > 2 THEN b.b END", True),
        ("a.f + 1 <> b.k OR a.b", False),
        ("b.b OR length(a.t) = b.k", False),
    ],
)
def test_what_may_fail_and_is_skipped_is_not_computed_for_every_tuple(
    on: str, is_left: bool
) -> None:
    kinds = {"n": pa.int32(), "k": pa.int32(), "b": pa.bool_(), "t": pa.string(), "f": pa.float64()}
    schema = pa.schema(kinds.items())
    predicate = parse_predicate(on, {"a": schema, "b": schema}, (None, None))
    computed = [sql for each in predicate.computed_columns for sql in each.values()]
    assert (not any("+" in sql or "length" in sql.lower() for sql in computed)) is is_left


MOST = (1 << 63) - 1


@pytest.mark.parametrize("call", ["ceil", "floor"])
@pytest.mark.parametrize(
    ("value", "nearest"),
    [("inf", MOST), ("-inf", -MOST - 1), (2.0**63, MOST), (-1e30, -MOST - 1)],
)
def test_ceil_and_floor_beyond_bigint_fail_or_without_ansi_give_the_nearest(
    call: str, value: object, nearest: int
) -> None:
    def evaluated(value: object, by_zero: str) -> object:
        sql = DuckDBCompiler({("", "x"): DOUBLE}, by_zero=by_zero).compile_text(f"{call}(x)")[0]
        with duckdb_cursor() as db:
            return db.execute(f"SELECT {sql} FROM (SELECT ?::DOUBLE AS x)", [value]).fetchall()

    for known, whole in (("nan", 0), (None, None), (-(2.0**63), -MOST - 1), (7.0, 7)):
        assert evaluated(known, "") == evaluated(known, "NULL") == [(whole,)]
    assert evaluated(value, "NULL") == [(nearest,)]
    with pytest.raises(duckdb.ConversionException):
        evaluated(value, "")


@pytest.mark.parametrize(
    "part", ["greatest('set_overlap', a.t, b.t)", "replace('vector_l2_distance', a.t, b.t)"]
)
def test_a_text_that_is_the_name_of_a_measure_is_a_text(part: str) -> None:
    schemas = {alias: pa.schema({"t": pa.string()}) for alias in "ab"}
    (residual,) = parse_predicate(f"{part} = 'x'", schemas, [None, None]).residuals
    assert not residual.measures and "'" in residual.sql


@pytest.mark.parametrize("sign", ["/", "%", "div"])
def test_only_a_number_divided_by_0_fails(sign: str) -> None:
    """As in Spark, which looks at the divisor last."""
    compiler = DuckDBCompiler({("", "n"): INT, ("", "k"): INT}, by_zero="error('DIVIDE_BY_ZERO')")
    sql = f"SELECT {compiler.compile_text(f'n {sign} k')[0]} FROM (SELECT ?::INT AS n, ?::INT AS k)"
    with duckdb_cursor() as db:
        assert db.execute(sql, [None, 0]).fetchall() == [(None,)]
        assert db.execute(sql, [None, -1]).fetchall() == [(None,)]
        assert db.execute(sql, [7, None]).fetchall() == [(None,)]
        with pytest.raises(duckdb.Error, match="DIVIDE_BY_ZERO"):
            db.execute(sql, [7, 0])
