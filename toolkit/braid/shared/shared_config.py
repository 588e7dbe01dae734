"""Settings of a shared join, and checks of its queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from sqlglot import exp

from braid.condition.column_names import parse_condition
from braid.condition.parser import parse_predicate
from braid.condition.spark_analyzer import SparkAnalyzer
from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import Analyzer
from braid.condition.term_normalizer import split_conjuncts
from braid.core.query import Query
from braid.core.reserved_columns import MARK
from braid.errors import PredicateError
from braid.join_config import JoinConfig
from braid.kernels.join_spec import StreamLayout
from braid.util.durations import Span


@dataclass(frozen=True)
class SharedJoinConfig(JoinConfig):
    """Settings of a SharedJoin. The routing key of a tuple is derived from its query bitmap."""

    shares_queries = True

    def make_query(
        self,
        name: str,
        windows: Span | Mapping[str, Span],
        where: Mapping[str, str] | None = None,
        on: str | None = None,
        streams: Sequence[str] | None = None,
        judges: Mapping[str, Analyzer] | None = None,
    ) -> Query:
        """Return a query for this join.

        ``judges``: analyzers by stream, as ``selection_analyzers`` returns them; None: create them
        as needed.

        Raises ValueError if this join cannot serve the query.
        """
        if streams is not None and set(streams) != set(self.streams):
            raise ValueError(
                f"query {name!r} joins {', '.join(streams)}; this join is of "
                f"{', '.join(self.streams)}"
            )
        if on is not None and _normalize_conjuncts(on) != _normalize_conjuncts(self.on):
            raise ValueError(
                f"query {name!r} joins on {on!r}; this join is on {self.on!r}; selections go in "
                "where"
            )
        query = Query.parse(name, tuple(self.streams), windows, where)
        by = judges or {}
        each = zip(self.streams, query.selections, strict=True)
        return replace(
            query,
            selections=tuple(self._check_selection(a, sql, name, by.get(a)) for a, sql in each),
        )

    def selection_analyzers(self, asked: Sequence[Mapping[str, Any]]) -> dict[str, Analyzer]:
        """Return one analyzer per stream, which has checked all selections of these queries.

        Checking all selections of a stream at once takes as long as checking one. ``asked``:
        arguments of ``make_query``.
        """
        wheres = [w for each in asked if isinstance(w := each.get("where"), Mapping)]
        analyzers = dict[str, Analyzer]()
        for alias, stream in self.streams.items():
            if texts := {w[alias] for w in wheres if isinstance(w.get(alias), str)}:
                analyzers[alias] = analyser = SparkAnalyzer({alias: stream})
                analyser.check_all(sorted(texts))
        return analyzers

    def _check_selection(
        self, alias: str, sql: str | None, name: str, judge: Analyzer | None
    ) -> str | None:
        """Return a query's selection, checked against the columns of its stream."""
        if sql is None:
            return None
        try:
            return parse_predicate(sql, {alias: self.streams[alias]}, [None], judge).filters[0]
        except PredicateError as error:
            place = f"in the selection of {name!r} on {alias}"
            raise PredicateError(str(error).replace("in the join condition", place)) from None

    def union_streams(
        self, sources: Mapping[str, DataFrame]
    ) -> tuple[DataFrame, tuple[StreamLayout, ...]]:
        frame, where = super().union_streams(sources)
        return frame, tuple(
            replace(layout, column_slots=(*layout.column_slots, (MARK, MARK))) for layout in where
        )

    def _routing_key(self, i: int, frame: DataFrame) -> str:
        return "0"  # computed from bitmaps on arrival


def _normalize_conjuncts(on: str) -> set[str]:
    """Return the conjuncts of a condition as a set. The order of sides does not matter."""
    tree, conjuncts = parse_condition(on), set()
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("this", identifier.name.lower())
    for c in split_conjuncts(tree):
        sides = (
            sorted(side.sql(dialect=SparkSql) for side in c.iter_expressions())
            if isinstance(c, exp.EQ)
            else []
        )
        conjuncts.add(" = ".join(sides) or c.sql(dialect=SparkSql))
    return conjuncts
