"""Oracles that determine the right answer.

They are Spark's own evaluation of a condition over the cross join, and DuckDB's evaluation of the
SQL made by Braid's compiler (which only finds faults of the engine). ``brute_force`` is the third
one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa
from braid.condition.arrow_type_checker import ArrowAnalyzer
from braid.condition.column_names import parse_condition, resolve_columns
from braid.condition.duckdb_compiler import DuckDBCompiler
from braid.condition.sql_types import BOOLEAN, sql_type_of_arrow
from braid.errors import UnsupportedExpressionError
from duck import connect_duckdb
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from fuzz.brute_force import combine_truths
from fuzz.cases import Case, Stream, table
from fuzz.guarded import guard_expressions, parse_expression
from fuzz.outcomes import UNKNOWN, Truth
from fuzz.spark_values import EvaluationError

Outcome = bool | EvaluationError | None
FROM_JAVA = (PySparkException, Py4JJavaError)
"""Spark's exceptions as Python receives them."""
Keys = list[tuple[int, ...]]
"""The rows of the streams in each row of the cross join."""
_CONSTANT = re.compile(r"\b(true|false|null)\b", re.IGNORECASE)


def cross_join(streams: dict[str, Stream]) -> tuple[pa.Table, Keys]:
    """Return the cross join, with a struct column per stream."""
    keys = list(product(*(range(len(s.rows)) for s in streams.values())))
    made = {}
    for place, (alias, stream) in enumerate(streams.items()):
        rows = table(stream).take(pa.array([k[place] for k in keys], pa.int64()))
        made[alias] = pa.StructArray.from_arrays(
            [c.combine_chunks() for c in rows.columns], rows.column_names
        )
    return pa.table(made), keys


class SparkOracle:
    """Spark's answers.

    Conditions are evaluated by the optimizer over a local relation, which takes milliseconds; a
    query takes a tenth of a second. ``prepare`` evaluates all its conditions at once; others are
    evaluated on request. ``by_query`` runs a query.
    """

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self._relation = lru_cache(64)(self._make_relation)
        self._cross = lru_cache(8)(lambda held: cross_join(held.streams))
        self._found: dict[tuple[_Held, str], list[Outcome] | None] = {}

    def prepare(self, streams: dict[str, Stream], conditions: Iterable[str]) -> None:
        """Evaluate conditions over the same streams together."""
        self._found.clear()
        self._evaluate(streams, list(dict.fromkeys(conditions)))

    def truth(self, case: Case) -> Truth:
        """Return Spark's results, with separate conjuncts if one of them fails."""
        found = self.quick_truth(case)
        return found if isinstance(found, Truth) else self.with_errors(case)

    def quick_truth(self, case: Case) -> Truth | EvaluationError:
        """Return Spark's results of the original condition, or the error that it raises."""
        if (found := self._evaluated(case)) is None:
            return UNKNOWN
        errors = (value for value in found if isinstance(value, EvaluationError))
        if (error := next(errors, None)) is not None:
            return error
        return self._combine_columns([found], case)

    def with_errors(self, case: Case) -> Truth:
        """Return the truth from each conjunct on each row. Some of them raise an error.

        A query decides about a condition with a constant part: Spark's optimizer folds
        ``x AND false`` before it evaluates x.
        """
        if self._evaluated(case) is None:
            return UNKNOWN
        conjuncts = self._conjuncts(self._parsed(case.on))
        columns = self._columns(_Held(case.streams), conjuncts)
        known = [column for column in columns if column is not None]
        if len(known) < len(columns):
            return UNKNOWN
        found = self._combine_columns(known, case)
        if not found.must_fail or not _CONSTANT.search(case.on):
            return found
        folded = self.by_query(case)
        return found if folded.may_fail else replace(folded, may_fail=True)

    def _combine_columns(self, columns: list[list[Outcome]], case: Case) -> Truth:
        rows = [list(values) for values in zip(*columns, strict=True)]
        return combine_truths(rows, self._cross(_Held(case.streams))[1])

    def _evaluated(self, case: Case) -> list[Outcome] | None:
        """Return the value of a condition on each row; None if Spark's analyzer rejects it."""
        key = (_Held(case.streams), case.on)
        if key not in self._found:
            self._evaluate(case.streams, [case.on])
        return self._found[key]

    def _evaluate(self, streams: dict[str, Stream], conditions: Sequence[str]) -> None:
        held = _Held(streams)
        trees = {on: tree for on in conditions if (tree := self._parsed(on)) is not None}
        found = dict(zip(trees, self._columns(held, list(trees.values())), strict=True))
        self._found |= {(held, on): found.get(on) for on in conditions}

    def _parsed(self, on: str) -> Any:
        """Return Spark's syntax tree; None for a text that its parser rejects."""
        try:
            return parse_expression(self.spark, on)
        except FROM_JAVA:  # its parser also raises exceptions that are not its own
            return None

    def _columns(self, held: _Held, trees: Sequence[Any]) -> list[list[Outcome] | None]:
        """Return the values of boolean expressions on each row; None for those that Spark rejects.

        It uses one plan, or one for each half if an expression is rejected.
        """
        if not trees:
            return []
        made = self._evaluate_trees(held, trees)
        if made is not None:
            return made
        if len(trees) == 1:
            return [None]
        middle = len(trees) // 2
        return [*self._columns(held, trees[:middle]), *self._columns(held, trees[middle:])]

    def _evaluate_trees(
        self, held: _Held, trees: Sequence[Any]
    ) -> list[list[Outcome] | None] | None:
        """Return the values of expressions by one plan; None if Spark rejects them together."""
        try:
            frame = self._relation(held)._jdf.select(guard_expressions(self.spark, trees))
            plan = frame.queryExecution()
            fields = json.loads(frame.schema().json())["fields"]
        except FROM_JAVA:  # its analyzer also raises exceptions that are not its own
            return None
        if any(f["type"]["fields"][0]["type"] != "boolean" for f in fields):
            return None
        try:
            optimised = plan.optimizedPlan()
        except FROM_JAVA as error:  # for a constant, which is evaluated before all rows
            count = len(self._cross(held)[1])
            return [[EvaluationError(str(error))] * count] if len(trees) == 1 else None
        assert optimised.getClass().getSimpleName() == "LocalRelation", optimised
        rows = [_OUTCOME.findall(row[1:-1]) for row in optimised.data().mkString("\n").splitlines()]
        return [[_OUTCOMES[value] for value in column] for column in zip(*rows, strict=True)]

    def _conjuncts(self, tree: Any) -> list[Any]:
        found, waiting = [], [tree]
        while waiting:
            node = waiting.pop()
            if node.getClass().getSimpleName() == "And":
                waiting += [node.right(), node.left()]
            else:
                found.append(node)
        return found

    def _make_relation(self, held: _Held) -> Any:
        return self.spark.createDataFrame(self._cross(held)[0])

    def by_query(self, case: Case) -> Truth:
        """Return the results of Spark's own plan of the cross join."""
        from pyspark.errors import AnalysisException, ParseException
        from pyspark.sql import functions as F

        joined = None
        for alias, stream in case.streams.items():
            frame = self.spark.createDataFrame(table(stream)).alias(alias)
            joined = frame if joined is None else joined.crossJoin(frame)
        assert joined is not None
        ids = [F.col(f"{a}.id").alias(f"id_{a}") for a in case.streams]
        try:
            found = joined.filter(case.on).select(*ids)
        except (AnalysisException, ParseException):
            return UNKNOWN
        try:
            return Truth(Counter(tuple(row) for row in found.collect()))
        except Exception:
            return Truth(Counter(), may_fail=True)


class _Held:
    """Streams as the key of a cache, compared by identity."""

    def __init__(self, streams: dict[str, Stream]) -> None:
        self.streams = streams
        self._key = tuple(map(id, streams.values()))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self._key == other._key


_OUTCOME = re.compile(r"\[true\]|\[false\]|\[null\]|null")
_OUTCOMES: dict[str, Outcome] = {
    "[true]": True,
    "[false]": False,
    "[null]": None,
    "null": EvaluationError("Spark raises an error"),
}


def compiled_truth(case: Case) -> Truth:
    """Return DuckDB's results of the compiler's SQL for the whole condition.

    They are evaluated row by row of the cross join.
    """
    tables = {alias: table(stream) for alias, stream in case.streams.items()}
    columns = {(a, f.name): sql_type_of_arrow(f.type) for a, t in tables.items() for f in t.schema}
    try:
        tree = resolve_columns(parse_condition(case.on), ArrowAnalyzer(tables).names)
        sql, kind = DuckDBCompiler(columns, by_zero="error('DIVIDE_BY_ZERO')").compile_expression(
            tree
        )
    except (UnsupportedExpressionError, ValueError):
        return UNKNOWN
    if kind != BOOLEAN:
        return UNKNOWN
    ids = ", ".join(f"{a}.id" for a in tables)
    with connect_duckdb() as db:
        for alias, rows in tables.items():
            db.register(alias, rows)
        try:
            found = db.execute(f"SELECT {ids} FROM {', '.join(tables)} WHERE {sql}").fetchall()
        except duckdb.Error:
            return UNKNOWN
    return Truth(Counter(found), may_fail=True)
