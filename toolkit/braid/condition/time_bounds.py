"""Bounds of the differences between event times that a join condition implies.

The result is a difference bound matrix D: in each result, ``t_j - t_i <= D[i][j]``, where t_i
is the event time of its tuple of stream i in microseconds. Event times are most numbers, so
``t_j - t_i < c`` is ``t_j - t_i <= c - 1``. The bounds of a conjunction are closed by shortest
paths. The bound of a disjunction is the greatest of its branches.

Source: Dill, Timing assumptions and verification of finite-state concurrent systems (1989).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, inf
from typing import NamedTuple

from sqlglot import exp

from braid.condition.event_time_offsets import (
    ElapsedUnits,
    TimeColumn,
    TimeReader,
    TimeReading,
    read_integer,
    subtract_readings,
)
from braid.condition.spark_dialect import SparkSql
from braid.condition.term_normalizer import split_conjuncts
from braid.core.horizon import Reach, TimeBounds
from braid.errors import ContradictionError, PredicateError
from braid.util.durations import LONGEST

_OPPOSITE: Mapping[type, type] = {
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.NEQ: exp.EQ,
}
_TURNED: Mapping[type, type] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}
_ORDER = (exp.EQ, *_TURNED)


class TimeBound(NamedTuple):
    """The bound ``t_end - t_start <= most``, and the conjunct that it follows from.

    ``skips_null``: whether the conjunct can hold for a tuple without event time.
    """

    start: int
    end: int
    most: int
    conjunct: str
    skips_null: bool = False


@dataclass(frozen=True)
class _Conjunction:
    """Bounds that hold together, and disjunctions, each with its text and branches."""

    bounds: list[TimeBound] = field(default_factory=list)
    choices: list[tuple[str, list[_Conjunction]]] = field(default_factory=list)


class _BoundMatrix:
    """A closed difference bound matrix over ``streams`` streams.

    ``dropped`` has each disjunction with a branch that contradicts the rest, once.
    """

    def __init__(self, streams: int, bounds: Iterable[TimeBound] = ()) -> None:
        self._most: list[list[float]] = [[inf] * streams for _ in range(streams)]
        self._why: list[list[tuple[str, ...]]] = [[()] * streams for _ in range(streams)]
        self.dropped: tuple[str, ...] = ()
        for i in range(streams):
            self._most[i][i] = 0
        for bound in bounds:
            self._tighten(bound.start, bound.end, bound.most, (bound.conjunct,))
        self._close()

    def to_reach(self) -> Reach:
        """Return the matrix: by stream i and j, the greatest t_j - t_i; None: unbounded."""
        return tuple(tuple(None if c >= LONGEST else int(c) for c in row) for row in self._most)

    def _tighten(self, i: int, j: int, most: float, why: tuple[str, ...]) -> None:
        if most < self._most[i][j]:
            self._most[i][j], self._why[i][j] = most, why

    def _close(self) -> None:
        """Close the matrix by shortest paths (Floyd, 1962).

        Raises ContradictionError for a negative cycle.
        """
        streams = range(len(self._most))
        for k in streams:
            for i in streams:
                for j in streams:
                    why = tuple(dict.fromkeys((*self._why[i][k], *self._why[k][j])))
                    self._tighten(i, j, self._most[i][k] + self._most[k][j], why)
            for i in streams:
                if self._most[i][i] < 0:
                    raise ContradictionError(self._why[i][i])

    def add_disjunction(self, text: str, branches: Sequence[_BoundMatrix]) -> None:
        """Add the bounds of a disjunction: the greatest of its branches."""
        stated = {conjunct for row in self._why for why in row for conjunct in why}
        for i, row in enumerate(self._most):
            for j, _ in enumerate(row):
                reasons = [w for b in branches for w in b._why[i][j] if w in stated]
                why = tuple(dict.fromkeys((*reasons, text)))
                self._tighten(i, j, max(b._most[i][j] for b in branches), why)
        self.dropped += tuple(d for branch in branches for d in branch.dropped)
        self._close()


def find_time_bounds(
    tree: exp.Expr, streams: int, columns: Mapping[tuple[str, str], TimeColumn], zone_spread: int
) -> TimeBounds:
    """Return the bounds of event times that a condition implies.

    Parameters
    ----------
    tree
        The condition, with resolved columns and folded constants.
    streams
        Number of streams.
    columns
        Event-time columns by alias and name.
    zone_spread
        Greatest less least offset of the session's time zone, in microseconds.

    Raises PredicateError if no rows can satisfy the condition, and names its conjuncts.
    """
    parser = _BoundsParser(TimeReader(columns, zone_spread))
    conjunction = parser.parse_conjunction([tree.copy()])
    try:
        closed = _close_conjunction(conjunction, streams, ())
    except ContradictionError as contradiction:
        conjuncts = sorted(contradiction.conjuncts, key=parser.texts.index)
        raise PredicateError(_describe_contradiction(conjuncts)) from None
    return TimeBounds(closed.to_reach(), closed.dropped)


def _describe_contradiction(conjuncts: Sequence[str]) -> str:
    quoted = [f"`{text}`" for text in conjuncts]
    if len(quoted) == 1:
        listed = quoted[0]
    elif len(quoted) == 2:
        listed = f"both {quoted[0]} and {quoted[1]}"
    else:
        listed = f"all of {', '.join(quoted[:-1])} and {quoted[-1]}"
    return f"no rows can satisfy {listed}, so no rows would match"


def _close_conjunction(
    conjunction: _Conjunction, streams: int, outer: Sequence[TimeBound]
) -> _BoundMatrix:
    """Return the closed bounds of a conjunction together with ``outer`` bounds."""
    every = [*outer, *conjunction.bounds]
    timed = {s for b in every if not b.skips_null for s in (b.start, b.end)}
    usable = [b for b in every if not b.skips_null or {b.start, b.end} <= timed]
    closed = _BoundMatrix(streams, usable)
    for text, branches in conjunction.choices:
        possible, why = [], [text]
        for branch in branches:
            try:
                possible.append(_close_conjunction(branch, streams, usable))
            except ContradictionError as contradiction:
                why += contradiction.conjuncts
        if not possible:
            stated = {text, *(bound.conjunct for bound in usable)}
            raise ContradictionError([w for w in dict.fromkeys(why) if w in stated])
        closed.add_disjunction(text, possible)
        closed.dropped += (text,) * (len(branches) - len(possible))
    return closed


class _BoundsParser:
    """Reads comparisons of event times from a condition. ``texts`` has the conjuncts, in order."""

    def __init__(self, reader: TimeReader) -> None:
        self.reader = reader
        self.texts: list[str] = []

    def parse_conjunction(self, trees: Iterable[exp.Expr]) -> _Conjunction:
        """Return the bounds of conditions that hold together."""
        result = _Conjunction()
        for tree in trees:
            for conjunct in _flatten(tree, exp.And):
                if self._names_event_time(conjunct):
                    self.texts.append(_to_text(conjunct))
                    self._add_condition(result, conjunct, self.texts[-1])
        return result

    def _names_event_time(self, tree: exp.Expr) -> bool:
        columns = self.reader.columns
        return any((c.table, c.name) in columns for c in tree.find_all(exp.Column))

    def _add_condition(self, conjunction: _Conjunction, tree: exp.Expr, text: str) -> None:
        """Add what follows from a condition. ``text``: the conjunct that it is a part of."""
        tree = tree.unnest()
        if isinstance(tree, (exp.And, exp.Between)):
            for side in split_conjuncts(tree):
                self._add_condition(conjunction, side, text)
        elif (inner := _find_asserted(tree)) is not None:
            self._add_condition(conjunction, inner, text)
        elif (branches := _list_branches(tree)) is not None:
            self._add_choice(conjunction, branches, text)
        elif isinstance(tree, exp.Not):
            self._add_negation(conjunction, tree.this.unnest(), text)
        elif isinstance(tree, _ORDER):
            conjunction.bounds.extend(
                self._list_bounds(type(tree), tree.this, tree.expression, text)
            )

    def _add_choice(
        self, conjunction: _Conjunction, branches: Sequence[Iterable[exp.Expr]], text: str
    ) -> None:
        """Add a disjunction, unless a branch bounds nothing."""
        each = [self.parse_conjunction(branch) for branch in branches]
        if all(branch.bounds or branch.choices for branch in each):
            conjunction.choices.append((text, each))

    def _add_negation(self, conjunction: _Conjunction, tree: exp.Expr, text: str) -> None:
        """Add what follows from a condition that is false."""
        if isinstance(tree, exp.Not):
            self._add_condition(conjunction, tree.this, text)
        elif isinstance(tree, exp.Or):
            for side in _flatten(tree, exp.Or):
                self._add_negation(conjunction, side, text)
        elif isinstance(tree, (exp.And, exp.Between)):
            sides = split_conjuncts(tree)
            self._add_choice(conjunction, [[exp.Not(this=exp.paren(side))] for side in sides], text)
        elif (opposite := _OPPOSITE.get(type(tree))) is not None:
            turned = opposite(this=tree.this.copy(), expression=tree.expression.copy())
            self._add_condition(conjunction, turned, text)

    def _list_bounds(
        self, op: type, left: exp.Expr, right: exp.Expr, text: str
    ) -> Iterator[TimeBound]:
        """Yield the bounds of the comparison ``left op right``."""
        left, right = left.unnest(), right.unnest()
        if isinstance(right, (exp.Abs, exp.Greatest, exp.Least)) and op in _TURNED:
            left, right, op = right, left, _TURNED[op]
        is_upper = op in (exp.LT, exp.LTE)
        if isinstance(left, exp.Abs) and is_upper:
            yield from self._list_bounds(op, left.this, right, text)
            low = exp.Neg(this=exp.paren(right))
            yield from self._list_bounds(_TURNED[op], left.this, low, text)
        elif isinstance(left, (exp.Greatest, exp.Least)):
            if isinstance(left, exp.Greatest) == is_upper and op is not exp.EQ:
                for each in (left.this, *left.expressions):
                    for bound in self._list_bounds(op, each, right, text):
                        yield bound._replace(skips_null=True)
        elif (elapsed := self.reader.read_elapsed(left)) is not None:
            yield from _bound_elapsed(op, elapsed, read_integer(right), text)
        elif (elapsed := self.reader.read_elapsed(right)) is not None:
            yield from _bound_elapsed(_TURNED.get(op, op), elapsed, read_integer(left), text)
        else:
            yield from self._bound_difference(op, left, right, text)

    def _bound_difference(
        self, op: type, left: exp.Expr, right: exp.Expr, text: str
    ) -> Iterator[TimeBound]:
        a, b = self.reader.read_expression(left), self.reader.read_expression(right)
        if a is None or b is None or (difference := subtract_readings(a, b)) is None:
            return
        if op is not exp.GT and op is not exp.GTE:
            yield from _bound_from_above(difference, op is exp.LT, text)
        if op is not exp.LT and op is not exp.LTE:
            yield from _bound_from_above(difference.negate_reading(), op is exp.GT, text)


def _bound_from_above(difference: TimeReading, strict: bool, text: str) -> Iterator[TimeBound]:
    """Yield the bound of a difference that is at most 0, or below 0.

    It is a whole number of units, so below 0 it is at most -1. Its constant may be part of a unit.
    """
    most = ceil(-difference.constant) - (difference.unit or 1) * strict
    yield from _bound_terms(difference.terms, most - difference.low, text)


def _bound_terms(terms: Mapping[int, int], most: int, text: str) -> Iterator[TimeBound]:
    """Yield the bound of a sum of event times if it is the difference of two."""
    if sorted(terms.values()) == [-1, 1]:
        start, end = sorted(terms, key=terms.__getitem__)
        yield TimeBound(start, end, most, text)


def _bound_elapsed(
    op: type, elapsed: ElapsedUnits, count: int | None, text: str
) -> Iterator[TimeBound]:
    """Yield the bounds of ``elapsed op count``. Elapsed units are rounded toward zero."""
    if count is None:
        return
    span, unit = elapsed.span, elapsed.unit
    if op in (exp.LT, exp.LTE, exp.EQ):
        last = count - 1 if op is exp.LT else count
        most = (last + 1) * unit.longest - 1 if last >= 0 else last * unit.shortest
        yield from _bound_terms(span.terms, floor(most - span.constant) - span.low, text)
    if op in (exp.GT, exp.GTE, exp.EQ):
        first = count + 1 if op is exp.GT else count
        least = (first - 1) * unit.longest + 1 if first <= 0 else first * unit.shortest
        negated = span.negate_reading()
        yield from _bound_terms(negated.terms, floor(-least + span.constant) - negated.low, text)


def _find_asserted(tree: exp.Expr) -> exp.Expr | None:
    """Return the condition that holds if another does, such as p for ``coalesce(p, false)``."""
    inner: exp.Expr | None = None
    if isinstance(tree, (exp.Is, exp.EQ)) and _is_true(tree.expression):
        inner = tree.this
    elif isinstance(tree, exp.EQ) and _is_true(tree.this):
        inner = tree.expression
    elif isinstance(tree, exp.Coalesce) and all(map(_is_false, tree.expressions)):
        inner = tree.this
    return inner


def _list_branches(tree: exp.Expr) -> list[list[exp.Expr]] | None:
    """Return the branches of a condition, each a list of conditions that hold together."""
    if isinstance(tree, exp.Or):
        return [[side] for side in _flatten(tree, exp.Or)]
    if isinstance(tree, exp.In) and tree.expressions:
        return [[exp.EQ(this=tree.this.copy(), expression=e.copy())] for e in tree.expressions]
    if isinstance(tree, exp.If) or (isinstance(tree, exp.Case) and tree.this is None):
        cases = [tree] if isinstance(tree, exp.If) else tree.args["ifs"]
        branches = [[case.this, case.args["true"]] for case in cases]
        default = tree.args.get("false" if isinstance(tree, exp.If) else "default")
        branches += [] if default is None else [[default]]
        return [b for b in branches if not any(map(_is_false, b))] or None
    return None


def _flatten(tree: exp.Expr, operator: type[exp.Connector]) -> list[exp.Expr]:
    """Return the operands of a chain of AND or OR, in order."""
    operands, rest = [], [tree]
    while rest:
        node = rest.pop().unnest()
        if isinstance(node, operator):
            rest += [node.expression, node.this]
        else:
            operands.append(node)
    return operands


def _is_true(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.Boolean) and bool(node.unnest().this)


def _is_false(node: exp.Expr) -> bool:
    inner = node.unnest()
    return isinstance(inner, exp.Null) or (isinstance(inner, exp.Boolean) and not inner.this)


def _to_text(node: exp.Expr) -> str:
    return node.sql(dialect=SparkSql).replace("`", "")
