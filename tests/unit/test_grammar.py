"""Text that is not Spark SQL is refused, even if sqlglot would parse it.

All of the project parses SQL in one place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import braid
import braid_widgets
import pyarrow as pa
import pytest
import sqlglot
from braid.condition.column_names import parse_condition
from braid.condition.parser import parse_predicate
from braid.condition.spark_dialect import _UNITS_FIRST, SparkSql, to_sql
from braid.errors import PredicateError, QueryError
from braid.hub.query_dialect import parse_query as read_statement
from grammar_cases import NOT_SPARK, SPARK

pytestmark = pytest.mark.unit
ROOTS = [Path(braid.__file__).parent, Path(braid_widgets.__file__).parent]
HOME = ROOTS[0] / "condition" / "dialect.py"
SCHEMA = pa.schema(
    {
        **{"n": pa.int32(), "m": pa.int32(), "s": pa.string(), "b": pa.bool_(), "c": pa.bool_()},
        **{"x": pa.float64(), "t": pa.timestamp("us", "UTC"), "d": pa.date32()},
        "p": pa.decimal128(9, 2),
    }
)


@pytest.mark.parametrize("on", NOT_SPARK)
def test_a_condition_that_spark_does_not_parse_is_refused(on: str) -> None:
    with pytest.raises(PredicateError):
        parse_predicate(on, {"a": SCHEMA, "b": SCHEMA}, (None, None))
    for statement in (
        f"SELECT * FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE {on}",
        f"SELECT CASE WHEN {on} THEN 1 END AS x FROM a, b",
    ):
        if not any(word in on for word in (" ORDER ", " LIMIT ", ";")):  # these end a condition
            with pytest.raises(QueryError):
                read_statement(statement)


@pytest.mark.parametrize("on", SPARK)
def test_a_condition_that_spark_parses_is_read(on: str) -> None:
    assert parse_condition(on)
    if ";" not in on and "--" not in on:
        read_statement(f"SELECT * FROM a, b WHERE {on} GROUP BY a.n HAVING count(*) > 1")


def test_statements_keep_what_is_theirs() -> None:
    for statement in (
        "SELECT *, a.*, count(*) c, count(DISTINCT a.n) AS d FROM a JOIN b ON a.n = b.n",
        "SELECT sum(a.n) FILTER (WHERE a.n > 1) FROM a GROUP BY ROLLUP (a.n, a.m)",
        "SELECT a.n, first(a.n IGNORE NULLS) FROM a GROUP BY GROUPING SETS ((a.n), ()) HAVING a.n > 1",
        "SELECT x FROM a [RANGE 5 MINUTES SLIDE 1 MINUTE] f WHERE f.x IN (1, 2)",
    ):
        read_statement(statement)


@pytest.mark.parametrize(
    "name", sorted({*SparkSql.Parser.FUNCTIONS, *SparkSql.Parser.FUNCTION_PARSERS})
)
def test_no_argument_of_a_function_is_lost(name: str) -> None:
    is_unit_a_word = name in _UNITS_FIRST.split()
    for count in range(1, 8):
        columns = [f"a.x{n}" for n in range(count)]
        try:
            tree = sqlglot.parse_one(f"{name}({', '.join(columns)})", dialect=SparkSql)
            text = to_sql(tree)
        except sqlglot.errors.SqlglotError:
            continue
        lost = [c for c in columns if c not in text]
        if name in ("FIRST", "LAST") and count == 2:  # Spark accepts only true and false
            continue
        assert lost == (["a.x0"] if is_unit_a_word and count == 3 else []), text


_DIALECTS = ("SparkSql", "CQL", "COMPILED_SQL")
"""Names of the project's dialects, and of the one in which it reads what it has compiled."""


def faults(source: str) -> Iterator[str]:
    """Yield, by line, uses of another SQL dialect than the project's."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        given = {k.arg: k.value for k in node.keywords}
        dialect = given.get("dialect", given.get("read"))
        if node.func.attr in ("parse", "parse_one", "transpile", "tokenize"):
            of_sqlglot = isinstance(node.func.value, ast.Name) and node.func.value.id == "sqlglot"
            is_own = isinstance(dialect, ast.Name) and dialect.id in _DIALECTS
            if of_sqlglot and not is_own:
                yield f"line {node.lineno}: sqlglot.{node.func.attr} in another dialect"
        values = [*node.args, *given.values()]
        if node.func.attr in ("sql", "transpile", "parse_one") and any(map(_is_spark, values)):
            yield f"line {node.lineno}: sqlglot's own Spark SQL"


def _is_spark(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in ("spark", "spark2", "databricks")


def test_all_text_is_read_in_the_dialect_of_the_project() -> None:
    files = [f for root in ROOTS for f in root.rglob("*.py") if f != HOME]
    assert len(files) > 200
    found = [f"{f.name}, {fault}" for f in files for fault in faults(f.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "sqlglot.parse_one(x, read='spark')",
        "sqlglot.parse_one(x)",
        "tree.sql('spark')",
        "tree.sql(dialect='spark')",
        "sqlglot.transpile(x, read=SparkSql, write='spark')",
    ],
)
def test_another_dialect_is_found(source: str) -> None:
    assert [*faults(source)]
