"""From Spark SQL to a predicate: Spark's own analyser judges the condition, sqlglot splits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa
from sqlglot import exp

from braid.condition.analyser import Analyser
from braid.condition.arrow import ArrowAnalyser
from braid.condition.links import End, composite, equality, implied, merged, named
from braid.condition.names import quoted, read, resolved, shallow
from braid.condition.pairs import Residuals
from braid.condition.predicate import Common, Link, Predicate, PredicateError, windowed
from braid.condition.sqltypes import SqlType
from braid.condition.terms import (
    conjuncts,
    days_of,
    hashed_as,
    interval_of,
    kind_of,
    literal,
    micros_of,
    nan_may_hold,
    normal_key,
    own,
    summands,
)


def parse(
    on: str,
    frames: Mapping[str, Any],
    windows: Sequence[int | None],
    analyser: Analyser | None = None,
) -> Predicate:
    """Take the condition apart for streams of these schemas (only the schemas are looked at) and
    windows (microseconds). ``analyser`` is what judges it, where there is one already.

    Raises PredicateError for an unknown column, alias or function, and for a condition that is not
    boolean.
    """
    if not isinstance(on, str) or not on.strip():
        raise PredicateError(
            f"the join condition is {quoted(on)}; it must be Spark SQL text such as 'a.x = b.x'"
        )
    with shallow(on):
        analyser = analyser or analyser_of(frames)
        tree = resolved(read(on), analyser.names)
        analyser.judge(tree, on)
        return windowed(_Parser(analyser).parse(tree), windows)


def analyser_of(streams: Mapping[str, Any]) -> Analyser:
    """What judges expressions over these streams: Spark, or rules for tables."""
    if all(isinstance(s, (pa.Table, pa.Schema)) for s in streams.values()):
        return ArrowAnalyser(streams)
    from braid.condition.spark import SparkAnalyser

    return SparkAnalyser(streams)


@dataclass
class _Side:
    """The part of a comparison that belongs to one stream: a sum of signed terms."""

    stream: int
    terms: list[tuple[int, exp.Expr]] = field(default_factory=list)


class _Parser:
    def __init__(self, analyser: Analyser) -> None:
        self.analyser = analyser
        self.aliases = tuple(analyser.names)
        self.keys: tuple[dict[str, str], ...] = tuple({} for _ in self.aliases)
        self.links: list[Link] = []
        self.residuals = Residuals(analyser)
        self.equal: list[tuple[End, End]] = []
        self.commons: list[Common] = []

    def parse(self, tree: exp.Expr) -> Predicate:
        filters: list[list[str]] = [[] for _ in self.aliases]
        for conjunct in conjuncts(tree):
            streams = self._streams(conjunct)
            if len(streams) == 1:
                filters[next(iter(streams))].append(f"({own(conjunct)})")
            elif not streams:
                filters[0].append(f"({conjunct.sql(dialect='spark')})")
            elif not any(rule(self, conjunct) for rule in LINKING):
                self.residuals.add(conjunct)
        links = [*composite(self.equal, self.keys), *self.links, *implied(self.equal)]
        return Predicate(
            self.aliases,
            tuple(" AND ".join(f) or None for f in filters),
            self.keys,
            self.residuals.computed,
            tuple(merged(links)),
            tuple(self.residuals.found),
            equality(self.equal, len(self.aliases)),
            tuple(self.commons),
        )

    def _sharing(self, conjunct: exp.Expr) -> bool:
        """``size(array_intersect(left, right)) >= c``, and what else needs common elements."""
        if (common := self.residuals.common(conjunct)) is None:
            return False
        self.commons.append(common)
        return True

    def _streams(self, node: exp.Expr) -> set[int]:
        return {self.aliases.index(c.table) for c in node.find_all(exp.Column)}

    def _fuzzy(self, conjunct: exp.Expr) -> bool:
        """``levenshtein(left, right) < bound``: texts whose lengths differ by less, and no others
        are compared.
        """
        if not isinstance(conjunct, (exp.LT, exp.LTE)):
            return False
        if not isinstance(conjunct.this, exp.Levenshtein) or self._streams(conjunct.expression):
            return False
        texts = (conjunct.this.this, conjunct.this.expression)
        left, right = (exp.Length(this=text.copy()) for text in texts)
        apart = exp.Abs(this=exp.Sub(this=left, expression=right))
        self._distance(type(conjunct)(this=apart, expression=conjunct.expression.copy()))
        self.residuals.add(conjunct)
        return True

    def _distance(self, conjunct: exp.Expr) -> bool:
        """``abs(left - right) < bound``: two comparisons."""
        if not isinstance(conjunct, (exp.LT, exp.LTE)) or not isinstance(conjunct.this, exp.Abs):
            return False
        kind, inner, bound = type(conjunct), conjunct.this.this, conjunct.expression
        mirrored = exp.GT if kind is exp.LT else exp.GTE
        if self._streams(bound):
            return False
        low = exp.Neg(this=bound)
        return self._compare(kind, inner, bound, conjunct) and self._compare(
            mirrored, inner, low, conjunct, capped=True
        )

    def _bounding(self, conjunct: exp.Expr) -> bool:
        """``bound > abs(left - right)``: the same from the other side."""
        if not isinstance(conjunct, (exp.GT, exp.GTE)):
            return False
        if not isinstance(conjunct.expression, exp.Abs):
            return False
        kind = exp.LT if isinstance(conjunct, exp.GT) else exp.LTE
        return self._distance(kind(this=conjunct.expression, expression=conjunct.this))

    def _comparison(self, conjunct: exp.Expr) -> bool:
        """``left < right``, and the like, but for distances."""
        if not isinstance(conjunct, (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE)):
            return False
        left, right = conjunct.this, conjunct.expression
        if isinstance(left, exp.Abs) and isinstance(conjunct, (exp.LT, exp.LTE)):
            return False
        if isinstance(right, exp.Abs) and isinstance(conjunct, (exp.GT, exp.GTE)):
            return False
        return self._compare(type(conjunct), left, right, conjunct, "capped" in conjunct.meta)

    def _compare(
        self,
        op: type,
        left: exp.Expr,
        right: exp.Expr,
        source: exp.Expr,
        capped: bool = False,
    ) -> bool:
        """Note ``left op right`` as a link. ``capped`` says that another comparison bounds ``left``
        from above.
        """
        terms = [*summands(left, 1), *summands(right, -1)]
        streams = sorted(set().union(*(self._streams(t) for _, t in terms)))
        if len(streams) != 2 or any(len(self._streams(t)) == 2 for _, t in terms):
            return False
        a, b = _Side(streams[0]), _Side(streams[1])
        free: list[tuple[int, exp.Expr]] = []
        for sign, term in terms:
            owner = self._streams(term)
            (free if not owner else a.terms if owner == {a.stream} else b.terms).append(
                (sign, term)
            )
        nan = nan_may_hold(op, len(self._streams(left)), len(self._streams(right)), capped)
        return self._bound(op, a, _Side(b.stream, [(-s, t) for s, t in b.terms]), free, source, nan)

    def _bound(
        self,
        op: type,
        a: _Side,
        b: _Side,
        free: list[tuple[int, exp.Expr]],
        source: exp.Expr,
        nan: bool | None,
    ) -> bool:
        """Note ``A - B + free op 0`` as a link between keys, where A and B are sums over one stream
        each.
        """
        if a.terms[0][0] < 0 and b.terms[0][0] < 0:  # both sides negated: turn the comparison round
            flip: dict[type, type] = {
                exp.LT: exp.GT,
                exp.LTE: exp.GTE,
                exp.GT: exp.LT,
                exp.GTE: exp.LTE,
            }
            op = flip.get(op, op)
            a, b = (_Side(s.stream, [(-g, t) for g, t in s.terms]) for s in (a, b))
            free = [(-g, t) for g, t in free]
        ta, tb = self._type(a), self._type(b)
        if ta is None or tb is None:
            return False
        if self._text(op, ta, tb, a, b, free, source):
            return True
        kind = kind_of(ta, tb)
        unit = {"date": days_of, "timestamp": micros_of, "timestamp_ntz": micros_of}.get(
            kind or "", literal
        )
        constants = [unit(t) for _, t in free]
        single = len(a.terms) == len(b.terms) == 1
        if kind == "float" and nan:
            return False
        if (
            kind is None
            or None in constants
            or (kind in ("date", "timestamp", "timestamp_ntz", "bool") and not single)
        ):
            return False
        offset = -sum(
            (g * c for (g, _), c in zip(free, constants, strict=True) if c is not None), Fraction(0)
        )
        scale = max(ta.scale, tb.scale)
        left, right = (self._key(s, normal_key(kind, self._sum(s), scale)) for s in (a, b))
        lo, hi, strict = interval_of(
            op, offset * 10**scale if kind == "decimal" else offset, kind == "float"
        )
        exact = kind != "float" or (single and not free and nan is None)
        self.links.append(Link((a.stream, left), (b.stream, right), lo, hi, strict, exact))
        if not exact:
            self.residuals.add(source)
        if op is exp.EQ and offset == 0 and (kind != "float" or (not free and nan is None)):
            self.equal.append(((a.stream, left), (b.stream, right)))
        return True

    def _text(
        self,
        op: type,
        ta: Any,
        tb: Any,
        a: _Side,
        b: _Side,
        free: list[Any],
        source: exp.Expr,
    ) -> bool:
        """Equality of text, binary and wide decimals: by their hash, then by themselves."""
        if op is not exp.EQ or free or len(a.terms) != 1 or len(b.terms) != 1:
            return False
        if (common := hashed_as(ta, tb)) is None:
            return False
        left, right = (
            self._key(s, f"xxhash64(cast({self._sum(s)} as {common}))", null=self._sum(s))
            for s in (a, b)
        )
        self.links.append(Link((a.stream, left), (b.stream, right), 0, 0, exact=False))
        self.residuals.add(source)
        self.equal.append(((a.stream, left), (b.stream, right)))
        return True

    def _sum(self, side: _Side) -> str:
        text = ""
        for sign, term in side.terms:
            text += (" + " if sign > 0 else " - ") + f"({own(term)})"
        return text.removeprefix(" + ").strip()

    def _type(self, side: _Side) -> SqlType | None:
        return self.analyser.type_of(self.aliases[side.stream], self._sum(side))

    def _key(self, side: _Side, sql: str, null: str | None = None) -> str:
        """The name of the key column with this text; a hash of NULL is NULL."""
        if null is not None:
            sql = f"if(({null}) is null, null, {sql})"
        return named(self.keys[side.stream], "__k", sql)


LINKING: tuple[Callable[[_Parser, exp.Expr], bool], ...] = (
    _Parser._fuzzy,
    _Parser._distance,
    _Parser._bounding,
    _Parser._comparison,
    _Parser._sharing,
)
"""The rules by which a conjunct over two streams becomes links, tried in this order until one says
that it was one; what none takes is a residual.
"""
