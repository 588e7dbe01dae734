"""The settings of a shared join, and what a query that it is asked to serve must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from sqlglot import exp

from braid.condition.analyser import Analyser
from braid.condition.dialect import SparkSql
from braid.condition.names import read
from braid.condition.parse import parse
from braid.condition.predicate import PredicateError
from braid.condition.spark import SparkAnalyser
from braid.condition.terms import conjuncts
from braid.core.columns import MARK
from braid.core.query import Query
from braid.core.spans import Span
from braid.engine.wire import Layout
from braid.setup import Setup


@dataclass(frozen=True)
class SharedSetup(Setup):
    """The settings of a SharedJoin. Tuples carry marks, of which their routing key is made."""

    shared = True

    def query(
        self,
        name: str,
        windows: Span | Mapping[str, Span],
        where: Mapping[str, str] | None = None,
        on: str | None = None,
        streams: Sequence[str] | None = None,
        judges: Mapping[str, Analyser] | None = None,
    ) -> Query:
        """A query to be served; ``judges`` are by stream, see there. Raises ValueError, with one
        sentence, for one that this join cannot serve.
        """
        if streams is not None and set(streams) != set(self.streams):
            raise ValueError(
                f"query {name!r} joins {', '.join(streams)}; this join is of "
                f"{', '.join(self.streams)}"
            )
        if on is not None and _conjuncts(on) != _conjuncts(self.on):
            raise ValueError(
                f"query {name!r} joins on {on!r}; this join is on {self.on!r}; selections go in "
                "where"
            )
        asked = Query.of(name, tuple(self.streams), windows, where)
        by = judges or {}
        each = zip(self.streams, asked.where, strict=True)
        return replace(asked, where=tuple(self._own(a, sql, name, by.get(a)) for a, sql in each))

    def judges(self, asked: Sequence[Mapping[str, Any]]) -> dict[str, Analyser]:
        """By stream, what judges the selections of these queries, arguments of ``query``; it has
        looked at all of a stream at once, which takes as long as one.
        """
        wheres = [w for each in asked if isinstance(w := each.get("where"), Mapping)]
        found = dict[str, Analyser]()
        for alias, stream in self.streams.items():
            if texts := {w[alias] for w in wheres if isinstance(w.get(alias), str)}:
                found[alias] = analyser = SparkAnalyser({alias: stream})
                analyser.take(sorted(texts))
        return found

    def _own(self, alias: str, sql: str | None, name: str, judge: Analyser | None) -> str | None:
        """A selection of a query, over the stream's own columns."""
        if sql is None:
            return None
        try:
            return parse(sql, {alias: self.streams[alias]}, [None], judge).filters[0]
        except PredicateError as error:
            place = f"in the selection of {name!r} on {alias}"
            raise PredicateError(str(error).replace("in the join condition", place)) from None

    def union(self, sources: Mapping[str, DataFrame]) -> tuple[DataFrame, tuple[Layout, ...]]:
        frame, where = super().union(sources)
        return frame, tuple(
            replace(layout, slots=(*layout.slots, (MARK, MARK))) for layout in where
        )

    def _routing_key(self, i: int, frame: DataFrame) -> str:
        return "0"  # made of the marks, on arrival


def _conjuncts(on: str) -> set[str]:
    """What a condition asks for, in no order; equalities read from either side."""
    tree, found = read(on), set()
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("this", identifier.name.lower())
    for c in conjuncts(tree):
        sides = (
            sorted(side.sql(dialect=SparkSql) for side in c.iter_expressions())
            if isinstance(c, exp.EQ)
            else []
        )
        found.add(" = ".join(sides) or c.sql(dialect=SparkSql))
    return found
