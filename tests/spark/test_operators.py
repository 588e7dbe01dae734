"""DuckDB SQL of every operator and function that the compiler takes, on edges of its types, against
Spark's values.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from braid.condition.column_names import parse_condition, resolve_columns
from braid.condition.duckdb_compiler import DuckDBCompiler
from braid.condition.residual_evaluation import duckdb_cursor
from braid.condition.sql_types import sql_type_of_arrow
from braid.errors import PredicateError, UnsupportedExpressionError
from fuzz.cases import table
from fuzz.grammar import ExpressionMaker, random_schemas, random_stream, write_tree
from fuzz.guarded import guard_expressions, parse_expression
from fuzz.operators import ANY_CLASSES, NUMBERS, OPERATORS
from fuzz.oracles import FROM_JAVA
from pyspark.sql import DataFrame, SparkSession

CALLS = (
    *("asin", "acos", "atan", "atan2", "sin", "cos", "tan", "sqrt", "ln", "exp", "power", "sign"),
    *("round", "floor", "ceil", "char_length", "dayofmonth", "month", "hour", "minute", "second"),
)
ERROR = "error"
"""The value where evaluation fails."""


def texts(draw: random.Random, maker: ExpressionMaker) -> Iterator[str]:
    """Yield texts of each operator and function over columns and literals of random types."""
    kinds = [kind for kind in ANY_CLASSES if kind != "bool"]
    for name in [name for name in (*OPERATORS, *CALLS) for _ in range(4)]:
        shared, tree, takes = draw.choice(kinds), [name], ("real",) * draw.randint(1, 2)
        if name in OPERATORS:
            takes = OPERATORS[name].takes
        else:
            tree = ["call", ["lit", name]]
            takes = tuple(draw.choices((*NUMBERS, "instant", "text"), k=draw.randint(1, 2)))
        yield write_tree([*tree, *(maker.operand(w, shared, 1, ["a"]) for w in takes)])


def by_spark(spark: SparkSession, rows: DataFrame, asked: Sequence[str]) -> list[list[Any] | None]:
    """The values of expressions on each row, None for those that Spark refuses."""
    try:
        trees = [parse_expression(spark, text) for text in asked]
        made: Any = DataFrame(rows._jdf.select(guard_expressions(spark, trees)), spark)
        found = pa.Table.from_batches(made._collect_as_arrow())
    except FROM_JAVA:
        half = len(asked) // 2
        if not half:
            return [None]
        return [*by_spark(spark, rows, asked[:half]), *by_spark(spark, rows, asked[half:])]
    return [
        [v if ok else ERROR for v, ok in zip(plain(it.field("it")), it.is_valid(), strict=True)]
        for it in (column.combine_chunks() for column in found.columns)
    ]


def by_duckdb(db: duckdb.DuckDBPyConnection, sql: str, rows: int) -> list[Any]:
    """The value of an expression on each row."""
    query = f"SELECT {sql} AS it FROM a"
    try:
        found = db.sql(f"{query} ORDER BY id").to_arrow_table()
        return plain(found["it"].combine_chunks())
    except duckdb.Error:
        return [by_duckdb_on(db, f"{query} WHERE id = {row}") for row in range(rows)]


def by_duckdb_on(db: duckdb.DuckDBPyConnection, query: str) -> Any:
    try:
        return plain(db.sql(query).to_arrow_table()["it"].combine_chunks())[0]
    except duckdb.Error:
        return ERROR


def plain(column: pa.Array) -> list[Any]:
    """The values, times as numbers: some are beyond Python's calendar."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int64() if column.type.bit_width == 64 else pa.int32())
    return column.to_pylist()  # type: ignore[no-any-return]


def is_same(mine: Any, theirs: Any) -> bool:
    """Whether DuckDB says what Spark says; it may fail where Spark does not look."""
    if isinstance(mine, float) and isinstance(theirs, float):
        both_nan = math.isnan(mine) and math.isnan(theirs)
        return both_nan or math.isclose(mine, theirs, rel_tol=1e-12)
    return bool(mine == theirs) or (mine == ERROR and theirs is None)


@pytest.mark.parametrize("seed", [4, 6])
def test_every_operator_has_sparks_values_on_edges(spark: SparkSession, seed: int) -> None:
    draw = random.Random(seed)
    columns = random_schemas(draw, 1)["a"]
    rows = table(random_stream(draw, columns, 30, 1))
    types = {("a", field.name): sql_type_of_arrow(field.type) for field in rows.schema}
    compiler = DuckDBCompiler(types, by_zero="error('DIVIDE_BY_ZERO')")
    compiled: dict[str, str] = {}
    for text in texts(draw, ExpressionMaker(draw, {"a": columns})):
        try:
            tree = resolve_columns(parse_condition(text), {"a": rows.column_names})
            compiled[text] = compiler.compile_expression(tree)[0]
        except (PredicateError, UnsupportedExpressionError):
            continue
    asked = [*compiled]
    frame = spark.createDataFrame(rows).alias("a")
    theirs = [
        values
        for k in range(0, len(asked), 16)
        for values in by_spark(spark, frame, asked[k : k + 16])
    ]
    wrong, compared = dict[str, Any](), 0
    with duckdb_cursor() as db:
        db.register("a", rows)
        for text, values in zip(asked, theirs, strict=True):
            if values is None:
                continue
            compared += 1
            mine = by_duckdb(db, compiled[text], rows.num_rows)
            pairs = [pair for pair in zip(mine, values, strict=True) if not is_same(*pair)]
            wrong |= {text: pairs} if pairs else {}
    assert not wrong
    assert compared > 250


EDGES = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 1e300, 1e-300)
COUNTS = (-(2**31), -3, -1, 0, 1, 2, 5, 2**31 - 1)
OF_TWO = (
    *(
        "power(a.f, a.g)",
        "atan2(a.f, a.g)",
        "power(nullif(a.f, a.f), a.g)",
        "greatest(a.f, a.g)",
        "least(a.f, a.g)",
    ),
    *(
        f"{name}(a.f)"
        for name in ("sin", "cos", "tan", "asin", "acos", "atan", "exp", "ln", "sqrt")
    ),
    *("substring(a.s, a.i, a.j)", "left(a.s, a.i)", "right(a.s, a.i)", "substring('abc', a.i, 2)"),
)


def test_functions_of_two_numbers_have_sparks_values_on_all_edges(spark: SparkSession) -> None:
    reals, counts = list(product(EDGES, EDGES)), list(product(COUNTS, COUNTS))
    counts = [counts[n % len(counts)] for n in range(len(reals))]
    columns = {"f": pa.float64(), "g": pa.float64(), "i": pa.int32(), "j": pa.int32()}
    values = [[*a, *b] for a, b in zip(reals, counts, strict=True)]
    made = [
        pa.array(v, k) for v, k in zip(zip(*values, strict=True), columns.values(), strict=True)
    ]
    rows = pa.table([range(len(reals)), *made, ["aé💡"] * len(reals)], ["id", *columns, "s"])
    types = {("a", field.name): sql_type_of_arrow(field.type) for field in rows.schema}
    compiler = DuckDBCompiler(types)
    theirs = by_spark(spark, spark.createDataFrame(rows).alias("a"), OF_TWO)
    with duckdb_cursor() as db:
        db.register("a", rows)
        for text, expected in zip(OF_TWO, theirs, strict=True):
            mine = by_duckdb(db, compiler.compile_text(text)[0], rows.num_rows)
            assert expected is not None
            wrong = [
                (values[n], pair)
                for n, pair in enumerate(zip(mine, expected, strict=True))
                if not is_same(*pair)
            ]
            assert not wrong, (text, wrong[:5])
