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
from braid.condition.dialect import SparkSql
from braid.condition.guards import Sum, exact_limits, find_sums, overflow, refuse_constant
from braid.condition.links import End, composite, equality, implied, merged, named
from braid.condition.names import quoted, read, resolved, shallow
from braid.condition.pairs import Residuals
from braid.condition.predicate import Common, Guard, Link, Predicate, PredicateError, windowed
from braid.condition.sqltypes import BIGINT, REAL, TIMESTAMP, SqlType
from braid.condition.terms import (
    Term,
    conjuncts,
    constant,
    hashed_as,
    interval_of,
    kind_of,
    micros_of,
    nan_may_hold,
    negated,
    normal_key,
    own,
    summands,
    summed,
    total,
)
from braid.core.spans import UNITS

_TURNED: dict[type, type] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


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
    terms: list[Term] = field(default_factory=list)

    @property
    def plain(self) -> bool:
        """Whether it is one term, as it is written."""
        return len(self.terms) == 1 and self.terms[0][0] > 0

    def sql(self, kind: str = "", scale: int = 0) -> str:
        """Spark SQL of it; what is not plain is added up in the numbers of a kind."""
        return f"({own(self.terms[0][1])})" if self.plain else total(self.terms, kind, scale)

    def unsigned(self, of: SqlType) -> int:
        """Turn the bits of a BIGINT that is negated: -x may be none, ~x is -x - 1. Returns what is
        missing then.
        """
        if of != BIGINT or self.plain or len(self.terms) > 1:
            return 0
        self.terms = [(1, exp.BitwiseNot(this=exp.paren(self.terms[0][1])))]
        return 1


def _turn_round(
    op: type, a: _Side, b: _Side, free: list[Term]
) -> tuple[type, _Side, _Side, list[Term]]:
    """Return ``A - B + free op 0`` with all signs turned: the one place where it is done."""
    a, b = (_Side(side.stream, negated(side.terms)) for side in (a, b))
    return _TURNED.get(op, op), a, b, negated(free)


class _Parser:
    def __init__(self, analyser: Analyser) -> None:
        self.analyser = analyser
        self.aliases = tuple(analyser.names)
        self.keys: tuple[dict[str, str], ...] = tuple({} for _ in self.aliases)
        self.links: list[Link] = []
        self.residuals = Residuals(analyser)
        self.equal: list[tuple[End, End]] = []
        self.commons: list[Common] = []
        self.guards: list[Guard] = []

    def parse(self, tree: exp.Expr) -> Predicate:
        filters: list[list[str]] = [[] for _ in self.aliases]
        for conjunct in conjuncts(tree):
            streams = self._streams(conjunct)
            if len(streams) == 1:
                filters[next(iter(streams))].append(f"({own(_make_boolean(conjunct))})")
            elif not streams:
                filters[0].append(f"({_make_boolean(conjunct).sql(dialect=SparkSql)})")
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
            tuple(dict.fromkeys(self.guards)),
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
        sums = self._sums(inner, is_absolute=True) + self._sums(bound)
        return self._compare(kind, inner, bound, conjunct, sums) and self._compare(
            mirrored, inner, low, conjunct, sums, capped=True
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
        sums = self._sums(left) + self._sums(right)
        return self._compare(type(conjunct), left, right, conjunct, sums, "capped" in conjunct.meta)

    def _compare(
        self,
        op: type,
        left: exp.Expr,
        right: exp.Expr,
        source: exp.Expr,
        sums: list[Sum],
        capped: bool = False,
    ) -> bool:
        """Note ``left op right`` as a link. ``sums`` are those that it takes apart; ``capped`` says
        that another comparison bounds ``left`` from above.
        """
        terms = [*summands(left, 1, self._streams), *summands(right, -1, self._streams)]
        streams = sorted(set().union(*(owner for _, _, owner in terms)))
        if len(streams) != 2 or any(len(owner) == 2 for _, _, owner in terms):
            return False
        a, b = _Side(streams[0]), _Side(streams[1])
        free: list[Term] = []
        for sign, term, owner in terms:
            (free if not owner else a.terms if owner == {a.stream} else b.terms).append(
                (sign, term)
            )
        if self.analyser.zoned and self._type(a) == TIMESTAMP:
            if len(self._streams(left)) == 2 or len(self._streams(right)) == 2:
                return False  # how long it is between two times goes by the zone's clocks
            if sum(abs(micros_of(term) or Fraction(0)) for _, term in free) >= UNITS["day"]:
                (a, b), free, sums = self._as_they_are(left, right), [], []
        elif (
            op is exp.EQ
            and sums
            and self._is_exact(a, b)
            and self._are_of_one_stream_each(left, right)
        ):
            (a, b), free, sums = self._as_they_are(left, right), [], []
        nan = nan_may_hold(op, len(self._streams(left)), len(self._streams(right)), capped)
        b = _Side(b.stream, negated(b.terms))
        if self._streams(left) == {b.stream}:  # NaN is the largest of a side as it is written
            op, a, b, free = _turn_round(op, a, b, free)
        return self._bound(op, a, b, free, source, nan, sums)

    def _are_of_one_stream_each(self, *sides: exp.Expr) -> bool:
        """Whether each side of an equality is of one stream. Spark computes such sides of every
        tuple, so they stay whole, and fail where Spark's do.
        """
        return all(len(self._streams(side)) == 1 for side in sides)

    def _is_exact(self, *sides: _Side) -> bool:
        """Whether no side is of floats."""
        kinds = [self._type(side) for side in sides]
        return all(kind is not None and kind.name not in REAL for kind in kinds)

    def _sums(self, node: exp.Expr, is_absolute: bool = False) -> list[Sum]:
        return find_sums(node, self._streams, self._find_type, is_absolute)

    def _find_type(self, node: exp.Expr, owners: set[int]) -> SqlType | None:
        alias = self.aliases[min(owners, default=0)]
        return self.analyser.type_of(alias, f"({own(node)})")

    def _as_they_are(self, left: exp.Expr, right: exp.Expr) -> tuple[_Side, _Side]:
        """Each side whole, of the stream that comes first and of the other, on the left of the
        comparison: a day may have 23 hours, and Spark knows which.
        """
        sides = (_Side(min(self._streams(s)), [(g, s)]) for g, s in ((1, left), (-1, right)))
        a, b = sorted(sides, key=lambda side: side.stream)
        return a, b

    def _bound(
        self,
        op: type,
        a: _Side,
        b: _Side,
        free: list[Term],
        source: exp.Expr,
        nan: bool | None,
        sums: Sequence[Sum],
    ) -> bool:
        """Note ``A - B + free op 0`` as a link between keys, where A and B are sums over one stream
        each.
        """
        ta, tb = self._type(a), self._type(b)
        if ta is None or tb is None:
            return False
        kind = kind_of(ta, tb)
        if kind == "float" and (nan or len(a.terms) > 1 or len(b.terms) > 1):
            return False
        turned = a.terms[0][0] < 0 and b.terms[0][0] < 0  # both sides negated
        if turned and (kind != "float" or nan is not None):  # NaN is the largest with either sign
            op, a, b, free = _turn_round(op, a, b, free)
        plain = a.plain and b.plain
        if plain and self._text(op, ta, tb, a, b, free, source):
            return True
        if kind is None or (kind not in ("int", "decimal", "float") and not plain):
            return False
        if (known := constant(kind, free)) is None:
            return False
        offset = -known
        if kind == "int":
            offset += b.unsigned(tb) - a.unsigned(ta)
        scale = max(ta.scale, tb.scale)
        left, right = (self._key(s, normal_key(kind, s.sql(kind, scale), scale)) for s in (a, b))
        lo, hi, strict = interval_of(
            op, offset * 10**scale if kind == "decimal" else offset, kind == "float"
        )
        exact = kind != "float" or (not free and nan is None)
        self.links.append(Link((a.stream, left), (b.stream, right), lo, hi, strict, exact))
        if not exact:
            self.residuals.add(source)
        guards = [] if kind == "float" else self._guards(sums, kind, scale, (a, left), (b, right))
        self.guards += guards
        if op is exp.EQ and offset == 0 and exact and not guards:
            self.equal.append(((a.stream, left), (b.stream, right)))
        return True

    def _guards(
        self, sums: Sequence[Sum], kind: str, scale: int, *sides: tuple[_Side, str]
    ) -> list[Guard]:
        """The guards of the sums that the link between two sides took apart."""
        (a, left), (b, right) = sides
        link = (a.stream, left), (b.stream, right)
        guards = []
        for each in sums:
            factors: dict[End, int] = {}
            moved = constant(kind, [(sign, t) for sign, t, owner in each.terms if not owner])
            for sign, term, owner in each.terms:
                if owner:
                    key = self._term_key(term, min(owner), kind, scale)
                    factors[key] = factors.get(key, 0) + sign
            low, high = each.limits(kind)
            if moved is None or not factors:
                if moved is not None and not low <= moved <= high:
                    refuse_constant(each.text)
                continue
            unit = 10**scale if kind == "decimal" else 1
            ends = tuple((*end, factor) for end, factor in factors.items())
            text = overflow(each.text, self.analyser.ansi)
            guards.append(Guard(ends, *exact_limits(low, high, moved, unit), text, link))
        return guards

    def _term_key(self, term: exp.Expr, stream: int, kind: str, scale: int) -> End:
        """The key column of a term by itself."""
        side = _Side(stream, [(1, term)])
        return stream, self._key(side, normal_key(kind, side.sql(kind, scale), scale))

    def _text(
        self,
        op: type,
        ta: SqlType,
        tb: SqlType,
        a: _Side,
        b: _Side,
        free: list[Term],
        source: exp.Expr,
    ) -> bool:
        """Equality of text, binary and wide decimals: by their hash, then by themselves."""
        if op is not exp.EQ or free or (common := hashed_as(ta, tb)) is None:
            return False
        left, right = (
            self._key(s, f"xxhash64(cast({s.sql()} as {common}))", null=s.sql()) for s in (a, b)
        )
        self.links.append(Link((a.stream, left), (b.stream, right), 0, 0, exact=False))
        self.residuals.add(source)
        self.equal.append(((a.stream, left), (b.stream, right)))
        return True

    def _type(self, side: _Side) -> SqlType | None:
        alias = self.aliases[side.stream]
        kinds = [self.analyser.type_of(alias, f"({own(term)})") for _, term in side.terms]
        return summed([k for k in kinds if k is not None]) if all(kinds) else None

    def _key(self, side: _Side, sql: str, null: str | None = None) -> str:
        """The name of the key column with this text; a hash of NULL is NULL."""
        if null is not None:
            sql = f"if(({null}) is null, null, {sql})"
        return named(self.keys[side.stream], "__k", sql)


def _make_boolean(conjunct: exp.Expr) -> exp.Expr:
    """Return a conjunct as a boolean: Spark filters by no NULL that has no type."""
    if all(isinstance(null.parent, exp.Is) for null in conjunct.find_all(exp.Null)):
        return conjunct
    return exp.And(this=exp.paren(conjunct), expression=exp.true())


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
