"""Columns of a batch that are taken as they are, so that no statement of SQL computes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from braid.condition.residual_evaluation import duckdb_cursor

_KEPT_BY_DUCKDB = (pa.float32(), pa.float64(), pa.string(), pa.date32(), pa.timestamp("us"))


@dataclass(frozen=True)
class PlainColumns:
    """The computed columns of a stream that need no SQL.

    - ``references``: columns of the input, by the name of the computed column.
    - ``constants``: the value of every row, by the name of the computed column.
    - ``null_tested``: columns of the input. All rows pass the filter if none of them has a NULL;
      None: the filter asks for more.
    """

    references: Mapping[str, pa.Field]
    constants: Mapping[str, pa.Scalar]
    null_tested: frozenset[str] | None

    def do_all_pass(self, rows: pa.Table) -> bool:
        """Return whether all rows pass the filter, as far as is known without SQL."""
        tested = self.null_tested
        return tested is not None and not any(rows[name].null_count for name in tested)

    def take_columns(self, rows: pa.Table) -> dict[str, pa.ChunkedArray | pa.Array]:
        """Return the columns that need no SQL, for all rows."""
        taken = {n: rows[source.name].cast(source.type) for n, source in self.references.items()}
        constants = {n: pa.repeat(value, rows.num_rows) for n, value in self.constants.items()}
        return taken | constants


def find_plain_columns(
    columns: Mapping[str, str], conditions: Sequence[str], schema: pa.Schema
) -> PlainColumns:
    """Return the columns that need no SQL.

    ``columns``: DuckDB SQL by name. ``conditions``: DuckDB SQL of the filter, without the test of
    the event time, which only lets more rows pass. ``schema``: types of the input's columns.
    """
    trees = {name: sqlglot.parse_one(sql, dialect="duckdb") for name, sql in columns.items()}
    found = {name: _find_reference(tree, schema) for name, tree in trees.items()}
    references = {name: field for name, field in found.items() if field is not None}
    constants = {
        name: _evaluate_constant(columns[name]) for name, tree in trees.items() if _is_number(tree)
    }
    return PlainColumns(references, constants, _find_null_tested(conditions, schema))


def _find_column(tree: exp.Expr, schema: pa.Schema) -> pa.Field | None:
    """Return the column that an expression is, with its type, also as a wider integer."""
    is_widened = isinstance(tree, exp.Cast) and tree.is_type("bigint")
    column = tree.this if is_widened else tree
    if not isinstance(column, exp.Column) or column.name not in schema.names:
        return None
    field = schema.field(column.name)
    if is_widened:
        return field.with_type(pa.int64()) if pa.types.is_signed_integer(field.type) else None
    return field


def _find_reference(tree: exp.Expr, schema: pa.Schema) -> pa.Field | None:
    """Return the column that an expression is, if DuckDB returns one of its type as it came."""
    field = _find_column(tree, schema)
    if field is None or pa.types.is_integer(field.type) or field.type in _KEPT_BY_DUCKDB:
        return field
    return None


def _is_number(tree: exp.Expr) -> bool:
    """Return whether an expression is a number, in any number of casts."""
    while isinstance(tree, exp.Cast):
        tree = tree.this
    return isinstance(tree, exp.Literal) and not tree.is_string


@cache
def _evaluate_constant(sql: str) -> pa.Scalar:
    with duckdb_cursor() as db:
        return db.sql(f"SELECT {sql} AS value").to_arrow_table()["value"][0]


def _find_null_tested(conditions: Sequence[str], schema: pa.Schema) -> frozenset[str] | None:
    """Return the columns that must not be NULL for all conditions to be true; None: not enough."""
    text = " AND ".join(f"({condition})" for condition in conditions) or "true"
    tree = sqlglot.parse_one(text, dialect="duckdb")
    names: set[str] = set()

    def replace_null_test(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Is) or not isinstance(node.expression, exp.Null):
            return node
        tested = node.this.unnest()
        if (field := _find_column(tested, schema)) is not None:
            names.add(field.name)
        elif not _is_number(tested):
            return node
        return exp.false()

    without_nulls = tree.transform(replace_null_test)
    if without_nulls.find(exp.Column):
        return None
    return frozenset(names) if simplify(without_nulls) == exp.true() else None
