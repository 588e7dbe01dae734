"""Columns of a batch that are taken as they are, so that no statement of SQL computes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from braid.condition.residual_evaluation import duckdb_cursor

COMPILED_SQL = "duckdb"
"""Dialect of the SQL that Braid compiles. No user's text is parsed in it."""
_KEPT_BY_DUCKDB = (pa.float32(), pa.float64(), pa.string(), pa.date32(), pa.timestamp("us"))
_FAR_OFF = 2**60
"""DuckDB's calendar has the times within as many microseconds of 1970, which are 36,000 years."""


@dataclass(frozen=True)
class Reference:
    """A column of the input, taken as a computed column.

    - ``source``: its name in the input.
    - ``kind``: the type as which it is taken.
    - ``default``: the value of its NULLs; None: they stay.
    """

    source: str
    kind: pa.DataType
    default: pa.Scalar | None = None

    def take_column(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return the computed column."""
        values = rows[self.source].cast(self.kind)
        if self.default is None or not values.null_count:
            return values  # it shares the memory of its source
        return pc.fill_null(values, self.default)

    def can_take(self, rows: pa.Table) -> bool:
        """Return whether DuckDB would return the same: it has no times of far-off years."""
        if not pa.types.is_timestamp(rows[self.source].type):
            return True
        ends = pc.min_max(rows[self.source].cast(pa.int64())).as_py()
        return ends["min"] is None or -_FAR_OFF < ends["min"] <= ends["max"] < _FAR_OFF


@dataclass(frozen=True)
class PlainColumns:
    """The computed columns of a stream that need no SQL.

    - ``references``: columns of the input, by the name of the computed column.
    - ``constants``: the value of every row, by the name of the computed column.
    - ``null_tested``: columns of the input. All rows pass the filter if none of them has a NULL;
      None: the filter asks for more.
    """

    references: Mapping[str, Reference]
    constants: Mapping[str, pa.Scalar]
    null_tested: frozenset[str] | None

    def can_take(self, rows: pa.Table) -> bool:
        """Return whether all rows pass the filter and have the columns that SQL would compute."""
        return (
            self.null_tested is not None
            and not any(rows[name].null_count for name in self.null_tested)
            and all(reference.can_take(rows) for reference in self.references.values())
        )

    def take_columns(self, rows: pa.Table) -> dict[str, pa.ChunkedArray | pa.Array]:
        """Return the columns that need no SQL, for all rows."""
        columns = {name: reference.take_column(rows) for name, reference in self.references.items()}
        constants = {n: pa.repeat(value, rows.num_rows) for n, value in self.constants.items()}
        return columns | constants


def find_plain_columns(
    columns: Mapping[str, str], conditions: Sequence[str], schema: pa.Schema
) -> PlainColumns:
    """Return the columns that need no SQL.

    ``columns``: DuckDB SQL by name. ``conditions``: DuckDB SQL of the filter, without the test of
    the event time, which only lets more rows pass. ``schema``: types of the input's columns.
    """
    trees = {name: sqlglot.parse_one(sql, dialect=COMPILED_SQL) for name, sql in columns.items()}
    references = {
        name: reference
        for name, tree in trees.items()
        if (reference := _find_reference(tree, schema)) is not None
    }
    constants = {
        name: _evaluate_constant(columns[name]) for name, tree in trees.items() if _is_number(tree)
    }
    return PlainColumns(references, constants, _find_null_tested(conditions, schema))


def _find_reference(tree: exp.Expr, schema: pa.Schema) -> Reference | None:
    """Return the column that an expression is; None: it is more, or DuckDB changes its values."""
    field = _find_column(tree, schema)
    if field is not None:
        is_kept = pa.types.is_integer(field.type) or field.type in _KEPT_BY_DUCKDB
        return Reference(field.name, field.type) if is_kept else None
    if isinstance(tree, exp.Coalesce) and len(tree.expressions) == 1:
        first, default = _find_reference(tree.this, schema), tree.expressions[0]
        if first is None or not _is_number(default):
            return None
        return replace(first, default=_evaluate_constant(default.sql("duckdb")))
    return _find_microseconds(tree, schema)


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


def _find_microseconds(tree: exp.Expr, schema: pa.Schema) -> Reference | None:
    """Return the column whose microseconds since 1970, in UTC, an expression is."""
    if not isinstance(tree, exp.Anonymous) or tree.name.lower() != "epoch_us":
        return None
    time = tree.expressions[0]
    is_zoned = isinstance(time, exp.Cast) and time.is_type("timestamptz")
    field = _find_column(time.this if is_zoned else time, schema)
    is_time = field is not None and field.type in (pa.timestamp("us"), pa.timestamp("us", "UTC"))
    return Reference(field.name, pa.int64()) if field is not None and is_time else None


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
    tree = sqlglot.parse_one(text, dialect=COMPILED_SQL)
    names: set[str] = set()

    def replace_null_test(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Is) or not isinstance(node.expression, exp.Null):
            return node
        tested = node.this.unnest()
        if (field := _find_column(tested, schema)) is not None:
            names.add(field.name)
        elif (time := _find_microseconds(tested, schema)) is not None:
            names.add(time.source)
        elif not _is_number(tested):
            return node
        return exp.false()

    without_nulls = tree.transform(replace_null_test)
    if without_nulls.find(exp.Column):
        return None
    return frozenset(names) if simplify(without_nulls) == exp.true() else None
