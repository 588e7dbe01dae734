"""Oracles: Spark's own evaluation of a condition over the cross join, and DuckDB's of the SQL
that Braid's compiler makes of it (which finds faults of the engine alone). ``brute_force`` is the
third.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa
from braid.condition.arrow import ArrowAnalyser
from braid.condition.compiler import Compiler
from braid.condition.names import read, resolved
from braid.condition.sqltypes import BOOLEAN, type_of
from braid.condition.typed import Unknown
from duck import duck

from fuzz.brute_force import truth_of
from fuzz.cases import Case, Stream, table
from fuzz.outcomes import UNKNOWN, Truth
from fuzz.spark_values import EvaluationError

Keys = list[tuple[int, ...]]
"""The rows of the streams that each row of the cross join is made of."""


def cross_join(streams: dict[str, Stream]) -> tuple[pa.Table, Keys]:
    """The cross join, a struct column a stream."""
    keys = list(product(*(range(len(s.rows)) for s in streams.values())))
    made = {}
    for place, (alias, stream) in enumerate(streams.items()):
        rows = table(stream).take(pa.array([k[place] for k in keys], pa.int64()))
        made[alias] = pa.StructArray.from_arrays(
            [c.combine_chunks() for c in rows.columns], rows.column_names
        )
    return pa.table(made), keys


class SparkOracle:
    """Spark's answers. A condition is evaluated by the optimiser over a local relation, which takes
    milliseconds where a query takes a tenth of a second; ``by_query`` asks a query.
    """

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self._relation = lru_cache(256)(self._make_relation)
        self._cross = lru_cache(8)(lambda held: cross_join(held.streams))

    def truth(self, case: Case) -> Truth:
        """Return Spark's results, with each conjunct on its own where one of them fails."""
        found = self.quick_truth(case)
        return found if isinstance(found, Truth) else self.with_errors(case)

    def quick_truth(self, case: Case) -> Truth | EvaluationError:
        """Return Spark's results of the condition as it is written, or the error that it raises."""
        found = self.values(case.streams, case.on)
        if found is None:
            return UNKNOWN
        if isinstance(found, EvaluationError):
            return found
        return truth_of([[v] for v in found], self._cross(_Held(case.streams))[1])

    def values(
        self, streams: dict[str, Stream], on: str, part: slice = slice(None)
    ) -> list[bool | None] | EvaluationError | None:
        """A condition on each row of (a part of) the cross join; an error if it raises on one. None
        if Spark's analyser does not take it.
        """
        relation = self._relation(_Held(streams), part.start, part.stop)
        try:
            frame = relation.selectExpr(f"({on}) AS it")
            if frame._jdf.schema().apply(0).dataType().typeName() != "boolean":
                return None
            plan = frame._jdf.queryExecution()
        except Exception:  # some that its analyser raises are not its own
            return None
        try:
            optimised = plan.optimizedPlan()
            if optimised.getClass().getSimpleName() == "LocalRelation":
                text = optimised.data().mkString(",")
                return [_BOOLEANS[b] for b in re.findall(r"\[(true|false|null)\]", text)]
            return [row[0] for row in frame.collect()]
        except Exception as error:
            return EvaluationError(str(error).splitlines()[0])

    def with_errors(self, case: Case) -> Truth:
        """Each conjunct on each row: which raise an error, and what the others say."""
        keys = self._cross(_Held(case.streams))[1]
        parts = self._conjuncts(case.on)
        columns = [self._each(case.streams, part, 0, len(keys)) for part in parts]
        if any(c is None for c in columns):
            return UNKNOWN
        return truth_of([list(values) for values in zip(*columns, strict=True)], keys)  # type: ignore[arg-type]

    def _each(self, streams: Any, on: str, start: int, stop: int) -> list[Any] | None:
        """Halve the rows until no more than the rows that raise an error are left."""
        found = self.values(streams, on, slice(start, stop))
        if found is None or not isinstance(found, EvaluationError):
            return found
        if stop - start == 1:
            return [found]
        middle = (start + stop) // 2
        halves = [self._each(streams, on, *h) for h in ((start, middle), (middle, stop))]
        return None if None in halves else [v for half in halves for v in half or ()]

    def _conjuncts(self, on: str) -> list[str]:
        parser = self.spark._jsparkSession.sessionState().sqlParser()
        found, waiting = [], [parser.parseExpression(on)]
        while waiting:
            node = waiting.pop()
            if node.getClass().getSimpleName() == "And":
                waiting += [node.right(), node.left()]
            else:
                found.append(str(node.sql()))
        return found

    def _make_relation(self, held: _Held, start: int | None, stop: int | None) -> Any:
        rows = self._cross(held)[0]
        first, last = start or 0, rows.num_rows if stop is None else stop
        return self.spark.createDataFrame(rows.slice(first, last - first))

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
    """Streams as a key of a cache: the same object is the same key."""

    def __init__(self, streams: dict[str, Stream]) -> None:
        self.streams = streams
        self._key = tuple(map(id, streams.values()))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self._key == other._key


_BOOLEANS = {"true": True, "false": False, "null": None}


def compiled_truth(case: Case) -> Truth:
    """Return the results of the compiler's SQL in DuckDB for the whole condition, row by row of the cross
    join.
    """
    tables = {alias: table(stream) for alias, stream in case.streams.items()}
    columns = {(a, f.name): type_of(f.type) for a, t in tables.items() for f in t.schema}
    try:
        tree = resolved(read(case.on), ArrowAnalyser(tables).names)
        sql, kind = Compiler(columns, by_zero="error('DIVIDE_BY_ZERO')").compile(tree)
    except (Unknown, ValueError):
        return UNKNOWN
    if kind != BOOLEAN:
        return UNKNOWN
    ids = ", ".join(f"{a}.id" for a in tables)
    with duck() as db:
        for alias, rows in tables.items():
            db.register(alias, rows)
        try:
            found = db.execute(f"SELECT {ids} FROM {', '.join(tables)} WHERE {sql}").fetchall()
        except duckdb.Error:
            return UNKNOWN
    return Truth(Counter(found), may_fail=True)
