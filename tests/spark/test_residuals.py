"""Random conditions over two streams: DuckDB's evaluation on candidate pairs against Spark's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from braid.condition.arrow_type_checker import ArrowAnalyzer
from braid.condition.column_names import parse_condition, resolve_columns
from braid.condition.duckdb_compiler import DuckDBCompiler
from braid.condition.residual_evaluation import duckdb_cursor, evaluate_residual
from braid.condition.residuals import ResidualBuilder
from braid.condition.spark_type_checker import SparkAnalyzer
from braid.condition.sql_types import INT
from braid.errors import PredicateError
from oracle import make_tables
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

CASES = 12 if os.environ.get("BRAID_QUICK") else 16
ROWS = {"a": 30, "b": 33}
NUMBERS = ("y", "k", "n", "g", "f", "m")
BY_HAND = """
a.g > b.m OR a.g = b.f
a.n IN (b.n, b.k, b.y) OR a.k NOT IN (b.k, 3)
sqrt(a.f - b.f) < 1 OR ln(a.f * b.f) > 0.5 OR asin(a.f - b.f) <=> acos(b.f + a.f)
b.n = 0 OR a.n / b.n > 2
a.k <> 0 AND (b.y = 0 OR a.k % b.y = 1 OR a.n div b.y < -30)
round(a.f * b.f, 1) = 1.5D OR round(a.f - b.f) = 2
ceil(a.f * b.f) > 3 OR floor(a.m + b.m) = -2 OR ceil(a.f / 0.3D + b.f) < -5
a.m * b.m - a.m > 100.5 OR a.m + b.k * 0.1 < -20
isnan(a.f + b.f) OR NOT isnan(a.f * b.f) AND a.n < b.n
a.s ILIKE b.s OR a.s LIKE concat('_', b.s) OR a.s LIKE b.s || '\\\\_%'
a.s NOT ILIKE b.s AND a.s NOT LIKE concat('_', b.s) OR a.s NOT LIKE b.s || '/_%' ESCAPE '/'
array_contains(a.list, b.k) <=> true OR NOT array_contains(b.list, a.k)
a.list = b.list OR a.raw < b.raw OR a.pair <=> b.pair
a.ts - b.ts > INTERVAL 2 MINUTES OR a.d - b.d = INTERVAL 3 DAYS OR datediff(b.d, a.d) = 7
levenshtein(a.s, b.s) < 2 OR levenshtein(concat(a.s, b.s, 'Zoë 日本'), b.s) = 7
substring(a.s || b.s, b.k - 5, a.k) = 'a' OR left(a.s, b.k - 9) = 'ab' OR right(a.s, b.y) = 'b'
lower(a.s || 'ÀB') = lower(b.s || 'àb') OR upper(a.s || 'ß') = upper(b.s || 'Ss')
trim('  ' || a.s) = b.s OR trim(a.s || ' ') < lower(b.s)
date_trunc('hour', a.ts) = date_trunc('HOUR', b.ts) AND date_trunc('week', a.d) = b.d
replace(a.s || b.s, b.s, 'x') = 'x' OR replace(a.s, b.s, a.s) = 'abb' OR sign(a.f - b.f) < -0.5D
CASE a.k WHEN b.k THEN a.flag WHEN 3 THEN b.flag END OR nullif(a.n, b.k) IS NULL
(a.flag = b.flag) IS TRUE OR (a.k & b.k) = 4 OR (a.k ^ b.n) = 5 OR (a.y | b.k) = 7
""".strip().splitlines()


class Draw:
    """Draws conditions in Spark SQL whose values stay in the range of their types."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def condition(self) -> str:
        """Return a condition that names both streams at the top, so that no stream decides it
        alone.
        """
        return f"({self.truth(2)}) {self.random.choice(('AND', 'OR'))} {self.across()}"

    def across(self) -> str:
        how = self.random.choice(("=", "<", ">=", "<>", "<=>"))
        return f"{self.number(1, 'a')} {how} {self.number(1, 'b')}"

    def column(self, names: tuple[str, ...], alias: str = "") -> str:
        return f"{alias or self.random.choice('ab')}.{self.random.choice(names)}"

    def number(self, depth: int, alias: str = "") -> str:
        r = self.random
        if depth == 0:
            constant = r.choice(("2", "-3", "0.5", "1.25", "0.1D"))
            return constant if not alias and r.random() < 0.2 else self.column(NUMBERS, alias)
        x, y, z = (self.number(depth - 1, alias) for _ in range(3))
        return r.choice(
            (
                f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"abs({x})", f"(-{x})",
                f"greatest({x}, {y})", f"least({x}, {y}, {z})", f"coalesce({x}, {y})",
                f"if({x} < {y}, {z}, {x})", f"sqrt({x})", f"ceil({x})", f"floor({x})",
                f"nullif({x}, {y})", f"cast({x} AS double) / 4", f"if({y} = 0D, 1D, {x} / cast({y} AS double))",
                f"power({x}, 2)", f"round(cast({x} AS double), 1)", f"CASE WHEN {x} > {y} THEN {z} END",
            )
        )  # fmt: skip

    def truth(self, depth: int) -> str:
        r, (x, y, z) = self.random, (self.number(1) for _ in range(3))
        if depth and r.random() < 0.6:
            one, two = self.truth(depth - 1), self.truth(depth - 1)
            return r.choice((f"({one} AND {two})", f"({one} OR {two})", f"NOT ({one})"))
        texts, days, times = ((self.column((n,)), self.column((n,))) for n in ("s", "d", "ts"))
        return r.choice(
            (
                f"{x} < {y}", f"{x} = {y}", f"{x} <=> {y}", f"{x} >= {z}", f"{x} <> {z}",
                f"{x} IN ({y}, {z}, 3)", f"{x} BETWEEN {y} AND {z}", f"{x} IS NULL", f"isnan({x})",
                f"{texts[0]} < {texts[1]}", f"{texts[0]} LIKE concat({texts[1]}, '%')",
                f"instr({texts[0]}, {texts[1]}) > 1", f"contains({texts[0]}, {texts[1]})",
                f"{days[0]} < {days[1]}", f"{times[0]} >= {days[1]}", f"{self.column(('flag',))}",
            )
        )  # fmt: skip


@pytest.fixture(scope="module")
def streams() -> Mapping[str, pa.Table]:
    """Return streams with a tinyint, a float, bytes, an array and a struct beside the usual
    columns.
    """
    found = {}
    for k, (alias, rows) in enumerate(make_tables("ab", ROWS, seed=17).items()):
        draw = np.random.default_rng(k)
        lists = [[int(x), None][: 1 + i % 2] for i, x in enumerate(draw.integers(0, 9, len(rows)))]
        more = {
            "y": pa.array(draw.integers(-2, 3, len(rows)), pa.int8()),
            "g": pa.array(draw.choice([0.1, -1.5, 2.7, None], len(rows)), pa.float32()),
            "raw": pa.array([b"", b"\x00", b"\xff", None] * 9, pa.binary()).slice(0, len(rows)),
            "list": pa.array([None, *lists[1:]], pa.list_(pa.int32())),
            "pair": pa.array([{"x": i % 3 or None, "s": "ab"[i % 2]} for i in range(len(rows))]),
        }
        for name, column in more.items():
            rows = rows.append_column(name, column)
        found[alias] = rows
    return found


@pytest.fixture(scope="module")
def given(spark: SparkSession, streams: Mapping[str, pa.Table]) -> dict[str, DataFrame]:
    return {alias: spark.createDataFrame(rows) for alias, rows in streams.items()}


def test_two_streams_are_evaluated_as_by_spark(given: dict[str, DataFrame]) -> None:
    """Mixed floats, decimals and small integers, and edge cases of functions."""
    draw, analyser = Draw(5), SparkAnalyzer(given)
    residuals, texts, refused = ResidualBuilder(analyser), [], []
    for on in [*BY_HAND, *(draw.condition() for _ in range(CASES))]:
        try:
            residuals.add_conjunct(resolve_columns(parse_condition(on), analyser.names))
            texts.append(on)
        except PredicateError as error:
            assert "digits" in str(error) or "type decimal" in str(error), str(error)
            refused.append(on)
    assert texts[: len(BY_HAND)] == BY_HAND and len(refused) < CASES / 3
    assert len(residuals.predicates) == len(texts)
    agree(given, residuals, texts)


def agree(given: dict[str, DataFrame], residuals: ResidualBuilder, texts: list[str]) -> None:
    """Check that Spark gives the same answer for all pairs."""
    pairs = given["a"].alias("a").crossJoin(given["b"].alias("b"))
    asked = [F.expr(f"coalesce({on}, false)").alias(str(i)) for i, on in enumerate(texts)]
    truth = pairs.select(F.col("a.id").alias("a"), F.col("b.id").alias("b"), *asked).toArrow()
    at = [truth.column(alias).to_numpy() for alias in "ab"]
    columns = {
        (s, name): rows.column(name).take(pa.array(at[s]))
        for s, alias in enumerate("ab")
        for rows in [_with(given[alias], residuals.computed[s])]
        for name in rows.column_names
    }
    for i, (on, residual) in enumerate(zip(texts, residuals.predicates, strict=True)):
        mine = evaluate_residual(residual, "ab", {c: columns[c] for c in residual.columns})
        theirs = truth.column(str(i)).to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(mine != theirs)
        row = {c: columns[c][int(wrong[0])] for c in residual.columns} if len(wrong) else ()
        assert not len(wrong), f"{on}\n{residual.sql}\n{row}: Spark says {theirs[wrong[0]]}"


def _with(frame: DataFrame, computed: Mapping[str, str]) -> pa.Table:
    """Return the rows by id, with the values that Spark computes for each."""
    more = [F.expr(sql).alias(name) for name, sql in computed.items()]
    return frame.select("*", *more).toArrow().sort_by("id")


def test_a_division_by_what_is_0_fails_as_in_spark(
    given: dict[str, DataFrame], streams: Mapping[str, pa.Table]
) -> None:
    analyser = SparkAnalyzer(given)
    for on in ("a.n / b.y > 1", "a.k % b.y = 1", "a.n div b.y = 1", "a.f % b.y > 0"):
        residuals = ResidualBuilder(analyser)
        residuals.add_conjunct(
            resolve_columns(parse_condition(f"{on} OR a.n > b.n"), analyser.names)
        )
        (residual,) = residuals.predicates
        names = {n for _, n in residual.columns}
        zero = {n: pa.array([0], streams["a"].schema.field(n).type) for n in names}
        columns = {c: zero[c[1]] for c in residual.columns}
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            evaluate_residual(residual, "ab", columns)


def test_what_is_compared_with_nothing_is_computed_neither_by_spark_nor_by_duckdb(
    spark: SparkSession,
) -> None:
    rows = spark.range(1).selectExpr(
        "cast(if(id < 0, 1, null) AS int) AS n", "cast(2000000000 + id AS int) AS k"
    )
    compiler = DuckDBCompiler({("", "n"): INT, ("", "k"): INT})
    for sql in ("n < k + k", "n = k + k", "n IN (k + k)", "n BETWEEN k + k AND 9"):
        assert rows.selectExpr(f"({sql}) AS told").toArrow()["told"].to_pylist() == [None]
        with duckdb_cursor() as db:
            db.register("rows", rows.toArrow())
            assert db.sql(f"SELECT {compiler.compile_text(sql)[0]} FROM rows").fetchall() == [
                (None,)
            ]
    for sql in ("k + k > n", "n <=> k + k"):
        with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
            rows.selectExpr(sql).toArrow()


def test_a_division_by_0_is_null_where_spark_is_set_so(
    spark: SparkSession, given: dict[str, DataFrame]
) -> None:
    texts = [
        f"{on} OR a.id = b.id"
        for on in ("a.n / b.y > 1", "a.k % b.y = 1", "(a.n div b.y) IS NULL", "a.f % b.y > 0")
    ]
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        analyser = SparkAnalyzer(given)
        residuals = ResidualBuilder(analyser)
        for on in texts:
            residuals.add_conjunct(resolve_columns(parse_condition(on), analyser.names))
        agree(given, residuals, texts)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_letters_are_converted_as_spark_does_or_refused(spark: SparkSession) -> None:
    """All letters, alone and inside a word: no text of a table has another lower or upper case."""
    points = [c for c in range(1, 0x30000) if not 0xD800 <= c < 0xE000]
    letters = pa.table({"s": [f"A{chr(c)}b" for c in points]})
    for function in ("lower", "upper"):
        expected = spark.createDataFrame(letters).selectExpr(f"{function}(s) AS s").toArrow()["s"]
        sql, _ = ArrowAnalyzer({"a": letters}).compile_expression("a", f"{function}(s)")
        with duckdb.connect() as database:
            found = database.execute(
                f"SELECT {sql.replace('error(', 'concat(NULL, ')} AS s FROM letters"
            ).to_arrow_table()["s"]
        differing = pc.and_(pc.not_equal(found, ""), pc.not_equal(found, expected))
        wrong = [
            hex(c)
            for c, each, differs in zip(
                points, found.to_pylist(), differing.to_pylist(), strict=True
            )
            if differs and "is not known" not in each
        ]
        assert not wrong and pc.sum(pc.equal(found, expected)).as_py() > len(points) - 400
