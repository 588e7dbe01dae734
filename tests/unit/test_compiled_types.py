"""DuckDB computes each expression in the type that the compiler names, in which Spark computes it:
in a wider one, sums and products that overflow in Spark would have a value.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest
from braid.condition.column_names import parse_condition, resolve_columns
from braid.condition.duckdb_compiler import DuckDBCompiler
from braid.condition.residual_evaluation import duckdb_cursor
from braid.condition.sql_types import (
    BIGINT,
    INTERVAL,
    VOID,
    SqlType,
    duckdb_type_name,
    sql_type_of_arrow,
)
from braid.errors import PredicateError, UnsupportedExpressionError
from fuzz.cases import Tree, table
from fuzz.grammar import ExpressionMaker, random_schemas, random_streams, write_tree
from fuzz.operators import ANY_CLASSES, FUNCTIONS, NUMBERS, OPERATORS

pytestmark = pytest.mark.unit
KINDS = tuple(k for k in ANY_CLASSES if k != "bool")


def texts(draw: random.Random) -> Iterator[tuple[str, str]]:
    """Yield operators and functions, and a text of each over random columns and literals."""
    maker = ExpressionMaker(draw, random_schemas(draw, 1))
    for name in [name for name in (*OPERATORS, *FUNCTIONS) for _ in range(20)]:
        shared = draw.choice(KINDS)
        if name in OPERATORS:
            tree: Tree = [name]
            takes = OPERATORS[name].takes
        else:
            tree = ["call", ["lit", name]]
            takes = tuple(draw.choices((*KINDS, *NUMBERS, "ints"), k=draw.randint(1, 2)))
        yield name, write_tree([*tree, *(maker.operand(what, shared, 0, ["a"]) for what in takes)])


def name_type(kind: SqlType) -> str:
    """DuckDB's name of a type, as DESCRIBE prints it."""
    if kind.name.startswith("array<"):
        return f"{name_type(SqlType.parse(kind.name[6:-1]))}[]"
    return duckdb_type_name(BIGINT if kind == INTERVAL else kind).replace(" ", "")


def described(db: duckdb.DuckDBPyConnection, sql: str) -> str:
    """Return the type that DuckDB infers for an expression over the table a."""
    name = str(db.execute(f"DESCRIBE SELECT {sql} FROM a").fetchall()[0][1])
    return name.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ").replace(" ", "")


def test_duckdb_computes_every_operator_in_the_type_that_the_compiler_names() -> None:
    draw = random.Random(1)
    a = table(random_streams(draw)["a"])
    types = {("a", f.name): sql_type_of_arrow(f.type) for f in a.schema}
    compiler, names = DuckDBCompiler(types, by_zero="NULL"), {"a": a.column_names}
    compared, wrong = set[str](), dict[tuple[str, str, str], str]()
    with duckdb_cursor() as db:
        db.register("a", a)
        for name, text in texts(draw):
            try:
                tree = resolve_columns(parse_condition(text), names)
                sql, kind = compiler.compile_expression(tree)
            except (PredicateError, UnsupportedExpressionError):
                continue
            compared.add(name)
            if kind != VOID and (found := described(db, sql)) != name_type(kind):
                wrong[name, name_type(kind), found] = text
    assert not wrong
    assert len(compared) > 100, "operators and functions that the compiler takes"
