"""Make index conditions of comparisons between sums over two streams."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from sqlglot import exp

from braid.condition.access_paths import IndexCondition, OverflowGuard
from braid.condition.key_equalities import End, add_key_column
from braid.condition.overflow_guards import GuardedSum, find_sums
from braid.condition.residuals import ResidualBuilder
from braid.condition.sql_types import REAL, TIMESTAMP, Analyzer, SqlType
from braid.condition.sum_comparisons import SumComparison, make_guards
from braid.condition.term_normalizer import (
    TermSum,
    comparison_domain,
    hash_type,
    interval_microseconds,
    key_sql,
    nan_may_satisfy,
    negate_terms,
    null_safe_key_sql,
    offset_interval,
    split_summands,
    strip_alias,
    sum_constants,
    sum_type,
)
from braid.util.durations import UNITS


class ComparisonIndexer:
    """Index conditions, their keys, and the residuals that decide beside inexact ones.

    - ``keys``: by stream, Spark SQL of key columns by name.
    - ``parts``: the expressions over one stream that keys and filters are computed from.
    - ``equal``: pairs of keys that the condition requires to be equal.
    - ``is_branch``: whether it is a branch of an OR, which Spark may not evaluate for every pair.
    """

    def __init__(self, analyser: Analyzer, is_branch: bool = False) -> None:
        self.analyser, self.is_branch = analyser, is_branch
        self.aliases = tuple(analyser.names)
        self.keys: tuple[dict[str, str], ...] = tuple({} for _ in self.aliases)
        self.links: list[IndexCondition] = []
        self.residuals = ResidualBuilder(analyser)
        self.equal: list[tuple[End, End]] = []
        self.guards: list[OverflowGuard] = []
        self.parts: list[tuple[int, exp.Expr]] = []

    def _find_streams(self, node: exp.Expr) -> set[int]:
        return {self.aliases.index(c.table) for c in node.find_all(exp.Column)}

    def _try_add_comparison_link(
        self,
        op: type,
        left: exp.Expr,
        right: exp.Expr,
        source: exp.Expr,
        sums: list[GuardedSum],
        capped: bool = False,
    ) -> bool:
        """Add ``left op right`` as an index condition.

        ``sums`` are the sums that it takes apart. ``capped``: another comparison bounds ``left``
        from above.
        """
        terms = [
            *split_summands(left, 1, self._find_streams),
            *split_summands(right, -1, self._find_streams),
        ]
        streams = sorted(set().union(*(owner for _, _, owner in terms)))
        if len(streams) != 2 or any(len(owner) == 2 for _, _, owner in terms):
            return False
        a, b = (
            TermSum(s, [(g, term) for g, term, owner in terms if owner == {s}]) for s in streams
        )
        free = [(sign, term) for sign, term, owner in terms if not owner]
        named = [self._find_streams(side) for side in (left, right)]
        if self.analyser.has_time_zone and self._infer_side_type(a) == TIMESTAMP:
            if any(len(each) == 2 for each in named):
                return False  # the difference of two times depends on the zone
            spans = (abs(interval_microseconds(term) or Fraction(0)) for _, term in free)
            stays_whole = sum(spans) >= UNITS["day"]  # a local day can have 23 hours
        else:  # sides of one stream each stay whole, so that they fail if Spark's do
            is_value = op is exp.EQ and not self.is_branch  # to partition by
            is_split = bool(sums) and (is_value or not self._is_exact(a, b))
            stays_whole = is_split and all(len(each) == 1 for each in named)
        if stays_whole:
            (a, b), free, sums = self._make_unsplit_sides(left, right), [], []
        nan = nan_may_satisfy(op, len(named[0]), len(named[1]), capped)
        b = TermSum(b.stream, negate_terms(b.terms))
        comparison = SumComparison(op, a, b, free, source, sums, nan)
        if named[0] == {b.stream}:  # NaN is the largest value of an original side
            comparison = comparison.negate()
        return self._try_add_key_bound(comparison)

    def _is_exact(self, *sides: TermSum) -> bool:
        """Return whether no side is a float."""
        kinds = [self._infer_side_type(side) for side in sides]
        return all(kind is not None and kind.name not in REAL for kind in kinds)

    def _is_real_sum(self, node: exp.Expr) -> bool:
        """Return whether a term of a sum over the streams is a float."""
        terms = [
            TermSum(min(o), [(g, t)])
            for g, t, o in split_summands(node, 1, self._find_streams)
            if len(o) == 1
        ]
        return any(not self._is_exact(term) for term in terms)

    def _find_sums(self, node: exp.Expr, is_absolute: bool = False) -> list[GuardedSum]:
        return find_sums(node, self._find_streams, self._find_type, is_absolute)

    def _find_type(self, node: exp.Expr, owners: set[int]) -> SqlType | None:
        alias = self.aliases[min(owners, default=0)]
        return self.analyser.infer_type(alias, f"({strip_alias(node)})")

    def _make_unsplit_sides(self, left: exp.Expr, right: exp.Expr) -> tuple[TermSum, TermSum]:
        """Return each side whole, as terms on the left of the comparison.

        The first stream's side comes first. Spark computes the sides.
        """
        sides = (TermSum(min(self._find_streams(s)), [(g, s)]) for g, s in ((1, left), (-1, right)))
        a, b = sorted(sides, key=lambda side: side.stream)
        return a, b

    def _try_add_key_bound(self, c: SumComparison) -> bool:
        """Add a comparison as an index condition between keys."""
        ta, tb = self._infer_side_type(c.a), self._infer_side_type(c.b)
        if ta is None or tb is None:
            return False
        kind = comparison_domain(ta, tb)
        if kind == "float" and (c.nan or len(c.a.terms) > 1 or len(c.b.terms) > 1):
            return False
        turned = c.a.terms[0][0] < 0 and c.b.terms[0][0] < 0  # both sides negated
        if turned and (kind != "float" or c.nan is not None):  # -NaN is the largest value, too
            c = c.negate()
        plain = c.a.is_plain and c.b.is_plain
        if plain and self._try_add_text_equality(c, hash_type(ta, tb)):
            return True
        if kind is None or (kind not in ("int", "decimal", "float") and not plain):
            return False
        if (constant := sum_constants(kind, c.free)) is None:
            return False
        offset = -constant
        if kind == "int":
            offset += c.b.complement_negated_bits(tb) - c.a.complement_negated_bits(ta)
        scale = max(ta.scale, tb.scale)
        unit = 10**scale if kind == "decimal" else 1
        left, right = (self._add_numeric_key(side, kind, scale) for side in (c.a, c.b))
        lo, hi, strict = offset_interval(c.op, offset * unit, kind == "float")
        exact = kind != "float" or (not c.free and c.nan is None)
        self.links.append(IndexCondition(left, right, lo, hi, strict, exact))
        if not exact:
            self.residuals.add_conjunct(c.source)
        add = partial(self._add_numeric_key, kind=kind, scale=scale)
        all_guards = make_guards(c.sums, kind, scale, (left, right), add, self.analyser.is_ansi)
        guards = [] if kind == "float" else [*all_guards]
        self.guards += guards
        if c.op is exp.EQ and offset == 0 and exact and not guards:
            self.equal.append((left, right))
        return True

    def _try_add_text_equality(self, c: SumComparison, common: str | None) -> bool:
        """Add an equality of text, binary or wide decimals, which are hashed as type ``common``.

        It becomes an index condition on hashes, and a residual on the values. A hash of NULL is
        NULL.
        """
        if c.op is not exp.EQ or c.free or common is None:
            return False
        left, right = (
            self._add_key(side, f"if(({sql}) is null, null, xxhash64(cast({sql} as {common})))")
            for side in (c.a, c.b)
            for sql in (side.to_sql(),)
        )
        self.links.append(IndexCondition(left, right, 0, 0, is_exact=False))
        self.residuals.add_conjunct(c.source)
        self.equal.append((left, right))
        return True

    def _try_add_null_safe_equality(self, conjunct: exp.Expr) -> bool:
        """Add ``left <=> right`` as an index condition on hashes, and a residual on the values.

        The hash of NULL is a number like others.
        """
        if not isinstance(conjunct, exp.NullSafeEQ):
            return False
        nodes = (conjunct.this, conjunct.expression)
        owners = [self._find_streams(node) for node in nodes]
        if [*map(len, owners)] != [1, 1] or owners[0] == owners[1]:
            return False
        sides = [TermSum(min(each), [(1, n)]) for each, n in zip(owners, nodes, strict=True)]
        one, other = map(self._infer_side_type, sides)
        if one is None or other is None:
            return False
        keys = [(s, key) for s in sides if (key := null_safe_key_sql(one, other, s.to_sql()))]
        if not keys:
            return False
        left, right = sorted(self._add_key(side, key) for side, key in keys)
        self.links.append(IndexCondition(left, right, 0, 0, is_exact=False))
        self.residuals.add_conjunct(conjunct)
        self.equal.append((left, right))
        return True

    def _infer_side_type(self, side: TermSum) -> SqlType | None:
        alias = self.aliases[side.stream]
        kinds = [
            self.analyser.infer_type(alias, f"({strip_alias(term)})") for _, term in side.terms
        ]
        return sum_type([k for k in kinds if k is not None]) if all(kinds) else None

    def _add_numeric_key(self, side: TermSum, kind: str, scale: int) -> End:
        """Return the key column of a side for comparisons of this kind, adding it if needed."""
        return self._add_key(side, key_sql(kind, side.to_sql(kind, scale), scale))

    def _add_key(self, side: TermSum, sql: str) -> End:
        """Return the key column with this SQL, adding it if needed."""
        self.parts += [(side.stream, term) for _, term in side.terms]
        return side.stream, add_key_column(self.keys[side.stream], "__k", sql)
