"""Conditions of a query: its join condition and the selections on each stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sqlglot import exp

from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import INTEGRAL, SqlType
from braid.errors import QueryError
from braid.hub.query_selections import parse_selection
from braid.papers.reuse.query_definition import Column, JoinCondition
from braid.papers.reuse.selections import EVERYTHING, Selection, intersect_selections

Schemas = Mapping[str, Mapping[str, SqlType]]
"""Types of columns by stream and name."""

_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
}


def to_sql(tree: exp.Expr) -> str:
    """Return the Spark SQL of a tree."""
    return tree.sql(dialect=SparkSql, normalize_functions=False)


def referenced_aliases(tree: exp.Expr) -> set[str]:
    """Return the aliases whose columns a tree reads."""
    return {c.table for c in tree.find_all(exp.Column)}


def reads_only(part: exp.Expr, aliases: Sequence[str]) -> bool:
    """Return whether a conjunct reads at most one stream, and that is one of these."""
    read = referenced_aliases(part)
    return len(read) < 2 and read <= {*aliases}


@dataclass(frozen=True)
class QueryConditions:
    """Conjuncts of a query.

    - ``parts``: those that join streams or select tuples.
    - ``streams``: stream by alias.
    - ``match_parts``: of a join that is not inner, those over one stream or none that decide
      whether tuples have partners, and drop none.
    - ``preserved``: aliases of the streams whose tuples a constant in ``parts`` selects. Default:
      the first.
    """

    parts: Sequence[exp.Expr]
    streams: Mapping[str, str]
    schemas: Schemas
    match_parts: Sequence[exp.Expr] = ()
    preserved: Sequence[str] = ()

    @property
    def where_sql(self) -> str | None:
        """The whole condition, over ``alias.column``; None: there is none."""
        parts = (*self.parts, *self.match_parts)
        return " AND ".join(f"({to_sql(p)})" for p in parts) or None

    @property
    def join_condition(self) -> str:
        """Join condition over the streams' names."""
        return " AND ".join(f"({self.canonical_text(p)})" for p in self._join_parts)

    @property
    def _join_parts(self) -> list[exp.Expr]:
        return [*filter(_has_several_aliases, self.parts), *self.match_parts]

    @property
    def join_conjuncts(self) -> frozenset[JoinCondition]:
        """Conjuncts of the join condition, with those that follow from equalities."""
        stated = [
            JoinCondition(self.canonical_text(p), frozenset(self.referenced_columns(p)))
            for p in self._join_parts
        ]
        return _close_equalities(stated, self.schemas)

    def referenced_columns(self, tree: exp.Expr) -> Iterator[Column]:
        """Yield the columns that a tree reads."""
        for column in tree.find_all(exp.Column):
            stream = self.streams[column.table]
            if isinstance(column.this, exp.Star):
                yield from ((stream, name) for name in self.schemas[stream])
            else:
                yield stream, column.name

    def read_columns(self, trees: Iterable[exp.Expr]) -> dict[str, set[str]]:
        """Return, by stream, the columns that trees read."""
        columns: dict[str, set[str]] = {}
        for tree in trees:
            for stream, column in self.referenced_columns(tree):
                columns.setdefault(stream, set()).add(column)
        return columns

    def canonical_text(self, part: exp.Expr) -> str:
        """Return the canonical text of a condition: streams by name, sides in order."""
        tree = part.copy().unnest()
        for column in tree.find_all(exp.Column):
            column.set("table", exp.to_identifier(self.streams[column.table]))
            column.set("this", exp.to_identifier(column.name))
        if isinstance(tree, exp.EQ) or type(tree) in _FLIPPED:
            left, right = to_sql(tree.this), to_sql(tree.expression)
            if right < left:
                kind = _FLIPPED.get(type(tree), type(tree))
                tree = kind(this=tree.expression, expression=tree.this)
        return to_sql(tree)

    def _single_stream_conjuncts(self) -> Iterator[tuple[str, exp.Expr]]:
        selecting = self.preserved or [*self.streams][:1]
        for part in self.parts:
            aliases = referenced_aliases(part)
            if len(aliases) < 2:
                yield from ((alias, part) for alias in aliases or selecting)

    @property
    def stream_selections(self) -> dict[str, Selection]:
        """Selection on each stream. Raises QueryError if it has too many alternatives."""
        selections: dict[str, Selection] = {}
        for alias, part in self._single_stream_conjuncts():
            stream, tree = self.streams[alias], part.copy()
            for column in tree.find_all(exp.Column):
                column.set("table", None)
            one = parse_selection(tree, self.schemas[stream])
            selection = intersect_selections(selections.get(stream, EVERYTHING), one)
            if selection is None:
                raise QueryError(
                    f"the condition on {alias!r} has too many alternatives; simplify it"
                )
            selections[stream] = selection
        return selections

    @property
    def filter_texts(self) -> dict[str, str]:
        """Selection on each stream as Spark SQL over the streams' names."""
        filters: dict[str, list[str]] = {}
        for alias, part in self._single_stream_conjuncts():
            filters.setdefault(self.streams[alias], []).append(f"({self.canonical_text(part)})")
        return {stream: " AND ".join(texts) for stream, texts in filters.items()}


def _has_several_aliases(part: exp.Expr) -> bool:
    return len(referenced_aliases(part)) > 1


def _close_equalities(
    joins: Sequence[JoinCondition], schemas: Mapping[str, Mapping[str, SqlType]]
) -> frozenset[JoinCondition]:
    """Return conjuncts with the equalities of columns that follow from others.

    Nothing follows between columns of different types: Spark may round or parse a value to compare
    it.
    """
    pairs = [j for j in joins if _is_equality(j)]
    classes: list[set[Column]] = []
    for join in pairs:
        touched = [c for c in classes if c & join.columns]
        classes = [c for c in classes if c not in touched] + [set(join.columns).union(*touched)]
    stated = {j.text for j in joins}
    closed = set(joins)
    for same in classes:
        types = {schemas[stream][name] for stream, name in same}
        if len(types) > 1 and any(t.name not in INTEGRAL for t in types):
            continue
        for a, b in combinations(sorted(same), 2):
            text = f"{a[0]}.{a[1]} = {b[0]}.{b[1]}"
            if a[0] != b[0] and text not in stated:
                closed.add(JoinCondition(text, frozenset((a, b)), is_implied=True))
    return frozenset(closed)


def _is_equality(join: JoinCondition) -> bool:
    if len(join.columns) != 2:
        return False
    a, b = sorted(join.columns)
    return join.text == f"{a[0]}.{a[1]} = {b[0]}.{b[1]}"
