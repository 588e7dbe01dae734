"""Expressions that the join of tables evaluates by DuckDB have Spark's meaning."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from braid.condition.arrow_type_checker import ArrowAnalyzer
from braid.condition.sql_types import SqlType
from braid.condition.term_normalizer import key_sql
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

pytestmark = pytest.mark.usefixtures("compiled")

UTC = pa.timestamp("us", "UTC")
ROWS = pa.table(
    {
        "y": pa.array([0, 1, -7, 11, None, 5], pa.int8()),
        "i": pa.array([0, 3, -7, 2_000_000, None, 3], pa.int32()),
        "l": pa.array([0, -3, 7, 4_000_000_000, None, 3], pa.int64()),
        "g": pa.array([0.0, 0.1, nan, -inf, None, 3.0], pa.float32()),
        "f": pa.array([-0.0, 0.1, nan, inf, None, 3.0], pa.float64()),
        "m": pa.array([None if v is None else Decimal(v) for v in ("0", "0.1", "-7.25", "3", None, "3.00")], pa.decimal128(10, 2)),
        "b": pa.array([True, False, True, None, None, False]),
        "s": pa.array(["", "ab", "é%", "Zoë_x", None, "日本"], pa.string()),
        "u": pa.array(["", "AB", "é", "Zoë", None, "日"], pa.string()),
        "d": pa.array([date(1970, 1, 1), date(2024, 2, 29), date(1969, 12, 31), date(2038, 1, 19), None, date(2000, 1, 1)]),
        "n": pa.array([datetime(1970, 1, 1), datetime(2024, 3, 31, 2, 30, 0, 7), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2038, 1, 19), None, datetime(1583, 1, 1)], pa.timestamp("us")),
        "t": pa.array([datetime(1970, 1, 1), datetime(2024, 2, 29, 23, 59, 59, 999999), datetime(1969, 12, 31, 1), datetime(2038, 1, 19), None, datetime(2000, 1, 1)], UTC),
    }
)  # fmt: skip
EXPRESSIONS = (
    *(f"{a} {op} {b}" for op in ("=", "<>", "<", "<=", ">", ">=", "<=>") for a, b in (("i", "l"), ("g", "f"), ("i", "f"), ("y", "g"), ("m", "i"), ("m", "l"), ("s", "u"), ("f", "0.1"), ("m", "0.1"), ("b", "true"), ("d", "date'2000-01-01'"), ("t", "timestamp'2000-01-01 00:00:00'"))),
    *(f"{a} {op} {b}" for op in "+-*" for a, b in (("y", "y"), ("y", "i"), ("i", "5"), ("i", "l"), ("f", "g"), ("g", "g"), ("i", "f"), ("f", "0.5"))),
    "-i", "-f", "abs(i)", "abs(f)", "i / 2", "f / 0.5", "l % 3", "y % 4",
    "i in (0, 3)", "s in ('', 'ab')", "i not in (3)", "f between 0 and 1", "i between -7 and 3",
    "s is null", "i is not null", "b and i > 0", "b or i > 0", "not b",
    "case when b then i else l end", "case when i > 0 then 'x' end", "if(b, f, 0.5)",
    "coalesce(i, 0)", "coalesce(s, 'none')",
    "length(s)", "startswith(s, 'a')", "endswith(s, 'x')", "contains(s, u)", "s like 'a%'",
    "s like '_oë%'", "s || u", "s not like '%b'", "s not like 'é!%' escape '!'",
    "year(d)", "month(t)", "day(d)", "hour(t)", "minute(t)", "second(t)", "unix_date(d)",
    "unix_micros(t)", "to_date(t)", "d + 3", "d - 40", "t + interval 90 minutes",
    "t - interval 2 weeks", "d + interval 3 days",
    *(f"{a} {op} {b}" for op in ("=", "<", ">=", "<=>") for a, b in (("n", "n"), ("n", "t"), ("n", "d"), ("n", "timestamp_ntz'2000-01-01 00:00:00'"))),
    "n + interval 90 minutes", "n - interval 2 weeks", "n - t < interval 5 hours", "abs(n - t) <= interval 1 day", "-(n - d) > interval -3 days", "d - n < interval 1 second",
    "hour(n)", "minute(n)", "second(n)", "year(n)", "to_date(n)", "datediff(n, t)", "unix_micros(n)", "extract(second from n)", "extract(second from t)",
    "cast(n as timestamp)", "cast(t as timestamp_ntz)", "cast(d as timestamp_ntz)", "cast(n as date)", key_sql("timestamp_ntz", "n", 0),
    *(f"m {op} {b}" for op in "+-*" for b in ("m", "i", "y", "3", "-3", "(-(3))", "0.005", "10000000000")), "m * m * m", "l - m", "-m", "abs(m)", "m * m > 0.005",
    "~y", "~i", "~l",
    "cast(i as bigint)", "cast(i as double)", "cast(g as double)", "cast(b as int)",
    "cast(i as string)", "cast(d as timestamp)", "cast(t as date)", "cast(y as smallint)",
)  # fmt: skip


def is_same(mine: Any, theirs: Any) -> bool:
    return mine == theirs or (mine != mine and theirs != theirs)


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> dict[str, tuple[SqlType, list[Any]]]:
    """Return Spark's values of all expressions, from a single query."""
    columns = [F.expr(sql).alias(f"e{n}") for n, sql in enumerate(EXPRESSIONS)]
    rows = spark.createDataFrame(ROWS).withColumn("n", F.col("n").cast("timestamp_ntz"))
    found = rows.select(*columns)
    kinds = [SqlType.parse(f.dataType.simpleString()) for f in found.schema.fields]
    values = [c.to_pylist() for c in found.toArrow().columns]
    return dict(zip(EXPRESSIONS, zip(kinds, values, strict=True), strict=True))


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.register("rows", ROWS)
        yield db


@pytest.mark.parametrize("sql", EXPRESSIONS)
def test_an_expression_means_the_same(
    db: duckdb.DuckDBPyConnection, answers: dict[str, tuple[SqlType, list[Any]]], sql: str
) -> None:
    """Type and value are equal, including NULL, NaN and infinities."""
    text, kind = ArrowAnalyzer({"a": ROWS}).compile_expression("a", sql)
    mine = db.sql(f"SELECT {text} AS it FROM rows").to_arrow_table()["it"].to_pylist()
    theirs = answers[sql]
    assert kind == theirs[0]
    assert all(map(is_same, mine, theirs[1])), (mine, theirs[1])
