"""The settings of a shared join, and what a query that it is asked to serve must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sqlglot
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from braid.condition.parse import parse
from braid.condition.predicate import PredicateError
from braid.condition.terms import conjuncts
from braid.core.columns import MARK
from braid.core.query import Query
from braid.core.spans import Span, micros
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
        where: Mapping[str, str] | None,
        on: str | None,
        streams: Sequence[str] | None,
    ) -> Query:
        """A query to be served. Raises ValueError, with one sentence, for one that this join cannot
        serve.
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
        spans = (
            dict(windows) if isinstance(windows, Mapping) else dict.fromkeys(self.streams, windows)
        )
        if set(spans) != set(self.streams):
            given, wanted = ", ".join(spans) or "no stream", ", ".join(self.streams)
            raise ValueError(
                f"query {name!r} has windows for {given}; it needs one for each of {wanted}"
            )
        lengths = tuple(micros(spans[a], f"window of {name!r} on {a}") for a in self.streams)
        return Query(name, lengths, self._selections(name, where or {}))

    def _selections(self, name: str, where: Mapping[str, str]) -> tuple[str | None, ...]:
        """By stream, the selection as Spark SQL over the stream's own columns."""
        if unknown := set(where) - set(self.streams):
            raise ValueError(
                f"query {name!r} selects on {', '.join(sorted(unknown))}; the streams are "
                f"{', '.join(self.streams)}"
            )
        found: list[str | None] = []
        for alias, frame in self.streams.items():
            try:
                found.append(
                    parse(where[alias], {alias: frame}, [None]).filters[0]
                    if alias in where
                    else None
                )
            except PredicateError as error:
                place = f"in the selection of {name!r} on {alias}"
                raise PredicateError(str(error).replace("in the join condition", place)) from None
        return tuple(found)

    def union(self, sources: Mapping[str, DataFrame]) -> tuple[DataFrame, tuple[Layout, ...]]:
        frame, where = super().union(sources)
        return frame, tuple(
            replace(layout, slots=(*layout.slots, (MARK, MARK))) for layout in where
        )

    def _routing_key(self, i: int, frame: DataFrame) -> Column:
        return F.lit(0)  # made of the marks, on arrival


def _conjuncts(on: str) -> set[str]:
    """What a condition asks for, in no order; equalities read from either side."""
    tree, found = sqlglot.parse_one(on, read="spark"), set()
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("this", identifier.name.lower())
    assert isinstance(tree, exp.Expression)
    for c in conjuncts(tree):
        sides = (
            sorted(side.sql(dialect="spark") for side in c.iter_expressions())
            if isinstance(c, exp.EQ)
            else []
        )
        found.add(" = ".join(sides) or c.sql(dialect="spark"))
    return found
