"""Compute a query's answer from its matches with DuckDB, for streams that are tables.

``spark_answers`` does the same with Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import sqlglot
from sqlglot import exp

from braid.condition.duckdb_compiler import DuckDBCompiler
from braid.condition.duckdb_typed_expressions import Typed
from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import BIGINT, BOOLEAN, DOUBLE, INTEGRAL, REAL, SqlType
from braid.errors import QueryError, UnsupportedExpressionError
from braid.hub.hub_backend import TickRange
from braid.hub.query_conditions import Schemas
from braid.hub.query_parser import StreamQuery

TICK = "tick"
_SUFFIXES: dict[type[exp.Expr], str] = {
    exp.Filter: "FILTER",
    exp.IgnoreNulls: "IGNORE NULLS",
    exp.RespectNulls: "RESPECT NULLS",
    exp.Window: "OVER",
    exp.WithinGroup: "WITHIN GROUP",
}
"""Words after an aggregate, by the class of the node that holds it."""


class DuckDBAnswer:
    """Answer to a query over its matches.

    The matches are in a table ``tuples`` with a struct column for each alias. Raises QueryError for
    an expression whose result without Spark is not known to be the same.
    """

    def __init__(self, query: StreamQuery, schemas: Schemas, time: str) -> None:
        self.query, self.schemas, self.time = query, schemas, time
        self.types = {
            (a, c): kind for a, s in query.aliases.items() for c, kind in schemas[s].items()
        }
        self.select = list(self._compile_select())
        self.groups = [self._compile_or_refuse(g, self.types)[0] for g in query.groups]
        self.having = None if query.having is None else self._compile_with_aggregates(query.having)
        if (
            query.where is not None
            and self._compile_or_refuse(query.where, self.types)[1] != BOOLEAN
        ):
            raise QueryError(f"the condition {query.where!r} is not boolean")

    @property
    def column_names(self) -> list[str]:
        """Names of the answer's columns. Several may be equal, as in Spark."""
        return [*([TICK] if self.query.slide is not None else []), *(n for n, _ in self.select)]

    def _compile_select(self) -> list[tuple[str, str]]:
        columns = []
        for sql in self.query.select:
            tree = sqlglot.parse_one(sql, dialect=SparkSql)
            if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
                stream = self.query.aliases[tree.table]
                columns += [
                    (
                        c,
                        self._compile_with_aggregates(
                            exp.column(c, table=tree.table).sql(SparkSql)
                        ),
                    )
                    for c in self.schemas[stream]
                ]
            else:
                columns.append(
                    (
                        tree.alias_or_name or sql,
                        self._compile_with_aggregates(tree.unalias().sql(SparkSql)),
                    )
                )
        return columns

    def _compile_or_refuse(self, sql: str, types: Mapping[tuple[str, str], SqlType]) -> Typed:
        return self._compile_tree(sqlglot.parse_one(sql, dialect=SparkSql), types)

    def _compile_tree(self, tree: exp.Expr, types: Mapping[tuple[str, str], SqlType]) -> Typed:
        try:
            return DuckDBCompiler(types).compile_expression(tree)
        except UnsupportedExpressionError as error:
            raise QueryError(
                f"{error.text!r} in the query{error.why and error.why + ' and'} is not known to "
                "mean the same without Spark; give the streams as Spark DataFrames, or write what "
                "it says into a column"
            ) from None

    def _compile_with_aggregates(self, sql: str) -> str:
        """Return DuckDB SQL for a selected expression, aggregates included."""
        tree = sqlglot.parse_one(sql, dialect=SparkSql)
        calls = _Calls(self)
        replaced = calls.replace_aggregates(tree)
        compiled = self._compile_tree(replaced, self.types | calls.types)[0]
        for name, call in calls.sql_by_name.items():
            compiled = compiled.replace(f'"{name}"', call)
        return compiled

    def make_sql(self, ticks: TickRange) -> str:
        """Return DuckDB SQL for the answer, with columns in the order of ``column_names``."""
        chosen = ", ".join(f'{sql} AS "__v{i}"' for i, (_, sql) in enumerate(self.select))
        if self.query.slide is None:
            return f"SELECT {chosen} FROM tuples"
        held = f"WITH held AS ({self._tick_expansion_sql(ticks)}) "
        at = f"make_timestamptz(__tick * {self.query.slide}) AS {TICK}"
        if not self.query.groups and not self.query.aggregates:
            return f"{held} SELECT {at}, {chosen} FROM held"
        having = "" if self.having is None else f" HAVING {self.having}"
        by = ", ".join(["__tick", *self.groups])
        grouped = f"SELECT {at}, {chosen} FROM held GROUP BY {by}{having}"
        if self.query.groups:
            return held + grouped
        numbers = ticks.tick_numbers(self.query.slide)
        end = max(numbers.start, numbers.stop)
        silent = (
            f"SELECT range AS __tick FROM range({numbers.start}, {end}) "
            "WHERE range NOT IN (SELECT __tick FROM held)"
        )
        nothing = f"SELECT {chosen} FROM held WHERE false{having}"
        names = ", ".join(f'nothing."__v{i}"' for i in range(len(self.select)))
        return (
            f"{held}{grouped} UNION ALL SELECT {at}, {names} FROM ({silent}), ({nothing}) nothing"
        )

    def _tick_expansion_sql(self, ticks: TickRange) -> str:
        every = self.query.slide
        assert every is not None
        times = {
            a: f'epoch_us(CAST("{a}"."{self.time}" AS TIMESTAMPTZ))' for a in self.query.aliases
        }
        ends = [
            f"{times[a]} + {self.query.windows_by_stream[s]}" for a, s in self.query.aliases.items()
        ]
        first = _first_tick_sql(f"greatest({', '.join(times.values())})", every)
        if ticks.since is not None:
            first = f"greatest({first}, {ticks.since // every + 1})"
        last = _first_tick_sql(f"least({', '.join(ends)})", every) + " - 1"
        last = f"least({last}, {-1 if ticks.until is None else -(-ticks.until // every) - 1})"
        return (
            f"SELECT *, unnest(generate_series({first}, {last})) AS __tick FROM tuples "
            f"WHERE {first} <= {last}"
        )


def _first_tick_sql(value: str, every: int) -> str:
    """Return SQL for the number of the first tick at or after a time."""
    over = f"((({value}) % {every} + {every}) % {every})"
    return f"((({value}) - {over}) // {every} + CAST({over} > 0 AS BIGINT))"


@dataclass
class _Calls:
    """Aggregates of an expression, each replaced by a column of its own."""

    answer: DuckDBAnswer
    sql_by_name: dict[str, str] = field(default_factory=dict)
    types: dict[tuple[str, str], SqlType] = field(default_factory=dict)

    def replace_aggregates(self, tree: exp.Expr) -> exp.Expr:
        """Return the expression with a column in place of each aggregate. Raises QueryError."""
        if (chosen := tree.find(*_SUFFIXES)) is not None:
            raise QueryError(
                f"{chosen.sql(SparkSql)} is an aggregate with {_SUFFIXES[type(chosen)]}, which "
                "needs Spark"
            )
        return tree.transform(
            lambda n: self._make_aggregate_column(n) if isinstance(n, exp.AggFunc) else n
        )

    def _make_aggregate_column(self, call: exp.AggFunc) -> exp.Expr:
        name = f"__a{len(self.sql_by_name)}"
        self.sql_by_name[name], self.types["", name] = self._compile_aggregate(call)
        return exp.column(name, quoted=True)

    def _compile_aggregate(self, call: exp.AggFunc) -> Typed:
        inner, once = call.this, ""
        if call.expressions:
            raise QueryError(f"{call.sql(SparkSql)} has several expressions, which needs Spark")
        if isinstance(inner, exp.Distinct):
            (inner, *more), once = inner.expressions, "DISTINCT "
            if more:
                raise QueryError("count(DISTINCT ...) takes one expression without Spark")
        if once and isinstance(inner, exp.Star):
            raise QueryError("count(DISTINCT *) needs Spark; name one expression")
        if isinstance(call, exp.Count):
            is_star = inner is None or isinstance(inner, exp.Star)
            counted = "*" if is_star else once + self._compile_argument(inner)[0]
            return f"count({counted})", BIGINT
        sql, kind = self._compile_argument(inner)
        if isinstance(call, (exp.Min, exp.Max)):
            return f"{type(call).__name__.lower()}({sql})", kind
        if kind.name not in (*INTEGRAL, *REAL):
            raise QueryError(f"{call.sql(SparkSql)} is of type {kind}, which needs Spark")
        if isinstance(call, exp.Avg) or kind.name in REAL:
            return f"{type(call).__name__.lower()}({once}CAST({sql} AS DOUBLE))", DOUBLE
        return f"CAST(sum({once}{sql}) AS BIGINT)", BIGINT

    def _compile_argument(self, tree: exp.Expr) -> Typed:
        return self.answer._compile_or_refuse(tree.sql(SparkSql), self.answer.types)


def nest_by_alias(
    query: StreamQuery, plain: Sequence[pa.Table], schemas: Schemas, time: str
) -> pa.Table:
    """Return matches with a struct column for each alias, from flat results."""
    columns = query.columns_read(time)
    tables = []
    for rows in plain:
        structs = {}
        for alias, stream in query.aliases.items():
            names = [c for c in schemas[stream] if c in columns[stream]]
            parts = [rows[f"{stream}__{c}"].combine_chunks() for c in names]
            structs[alias] = pa.StructArray.from_arrays(parts, names)
        tables.append(pa.table(structs))
    return pa.concat_tables(tables)
