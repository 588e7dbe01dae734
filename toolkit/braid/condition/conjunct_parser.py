"""Sort the conjuncts of a condition into filters, index conditions and residuals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sqlglot import exp

from braid.condition.access_paths import (
    CommonElements,
    Disjunction,
    EditDistance,
    TextMatch,
    TextPrefix,
    UnindexedResidual,
)
from braid.condition.branch_indexes import DisjunctionBuilder, ParsedBranch
from braid.condition.comparison_indexer import ComparisonIndexer
from braid.condition.condition_parts import ConditionPart, add_derived_conditions
from braid.condition.disjunctions import BranchSplitter, Literals
from braid.condition.failure_guards import has_value_in_spark
from braid.condition.key_equalities import (
    End,
    combine_equalities,
    common_equality_key,
    implied_equalities,
    intersect_conditions,
    shared_equality_keys,
)
from braid.condition.predicate import Predicate
from braid.condition.residual_predicate import ResidualPredicate
from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import STRING, Analyzer
from braid.condition.squared_distances import find_squared_distance
from braid.condition.sum_comparisons import MIRRORED, mirror_comparison, read_most_edits
from braid.condition.term_normalizer import (
    split_conjuncts,
    split_parts,
    strip_alias,
)
from braid.errors import PredicateError


class ConjunctParser(ComparisonIndexer):
    """Sorts the conjuncts of a condition into filters, index conditions and residuals."""

    def __init__(self, analyser: Analyzer, is_branch: bool = False) -> None:
        super().__init__(analyser, is_branch)
        self.commons: list[CommonElements] = []
        self.texts: list[TextMatch] = []
        self.branches: dict[Literals, ParsedBranch | None] = {}
        self.splitter = BranchSplitter(self._find_streams, self._find_type)
        self.written: list[ConditionPart] = []

    def parse_predicate(self, tree: exp.Expr) -> Predicate:
        """Return the predicate of a resolved condition."""
        return self.parse_conjuncts(self._list_conjuncts(tree))

    def _list_conjuncts(self, tree: exp.Expr) -> Iterator[exp.Expr]:
        """Yield the conjuncts, and note what each part of the condition has become."""
        for number, part in enumerate(split_parts(tree)):
            links, commons = len(self.links), len(self.commons)
            residuals, equal = len(self.residuals.predicates), len(self.equal)
            for conjunct in split_conjuncts(part):
                yield from self.splitter.split_conjunct(conjunct)
            pairs = [(c.left, c.right) for c in self.links[links:]]
            pairs += [(c.left, c.right) for c in self.commons[commons:]]
            sqls = frozenset(residual.sql for residual in self.residuals.predicates[residuals:])
            text = part.sql(dialect=SparkSql).replace("`", "")
            key_pairs = frozenset([*pairs, *self.equal[equal:]])
            self.written.append(ConditionPart(number, text, key_pairs, sqls))

    def parse_conjuncts(self, conjuncts: Iterable[exp.Expr]) -> Predicate:
        """Return the predicate of these conjuncts."""
        filters: list[list[str]] = [[] for _ in self.aliases]
        residuals: list[tuple[exp.Expr, ResidualPredicate]] = []
        indexed: list[tuple[set[int], exp.Expr]] = []
        for conjunct in conjuncts:
            streams = self._find_streams(conjunct)
            if len(streams) == 1:
                stream = next(iter(streams))
                filters[stream].append(f"({strip_alias(_make_boolean(conjunct))})")
                self.parts.append((stream, conjunct))
            elif not streams:
                filters[0].append(f"({_make_boolean(conjunct).sql(dialect=SparkSql)})")
            elif self._is_linked(conjunct):
                indexed.append((streams, conjunct))
            else:
                residuals.append((conjunct, self.residuals.add_conjunct(conjunct)))
        combined, implied = (
            combine_equalities(self.equal, self.keys),
            implied_equalities(self.equal),
        )
        parts = add_derived_conditions(self.written, self.equal, [*combined, *implied])
        links = intersect_conditions([*combined, *self.links, *implied])
        builder = DisjunctionBuilder(self.keys, self.residuals.computed, self._parse_branch)
        split = ((self.splitter.find_branches(c), residual) for c, residual in residuals)
        either = [*builder.build_disjunctions(split, indexed)]
        disjunctions = tuple(each for each in either if isinstance(each, Disjunction))
        written = tuple(" AND ".join(f) or None for f in filters)
        for stream, sql in builder.make_tuple_filters(disjunctions):
            filters[stream].append(sql)
        return Predicate(
            self.aliases,
            tuple(" AND ".join(f) or None for f in filters),
            self.keys,
            self.residuals.computed,
            tuple(links),
            tuple(self.residuals.predicates),
            common_equality_key(self.equal, len(self.aliases)),
            tuple(self.commons),
            tuple(dict.fromkeys(self.guards)),
            disjunctions,
            parts=parts,
            text_matches=tuple(self.texts),
            unindexed=(
                *(each for each in either if isinstance(each, UnindexedResidual)),
                *_list_overflowing_squares(residuals),
            ),
            written_filters=written,
            equality_keys=shared_equality_keys(self.equal),
        )

    def _is_linked(self, conjunct: exp.Expr) -> bool:
        """Return whether a rule makes something that finds pairs of a conjunct."""
        return any(rule(self, conjunct) for rule in LINKING)

    def _parse_branch(self, literals: Literals) -> ParsedBranch | None:
        """Return a branch parsed as a condition of its own, once; None: it is none."""
        if literals not in self.branches:
            parser = ConjunctParser(self.analyser, is_branch=True)
            try:
                predicate = parser.parse_conjuncts(literals)
                self.branches[literals] = ParsedBranch(predicate, parser.parts)
            except PredicateError:  # such as a constant that Spark does not reach
                self.branches[literals] = None
        return self.branches[literals]

    def _try_add_common_elements(self, conjunct: exp.Expr) -> bool:
        """Add a condition such as ``size(array_intersect(left, right)) >= c``."""
        if (common := self.residuals.common_elements(conjunct)) is None:
            return False
        self.commons.append(common)
        return True

    def _try_add_edit_distance(self, conjunct: exp.Expr) -> bool:
        """Add ``levenshtein(left, right) < bound``, or its mirrored form.

        It becomes a match of texts if the bound is small, an index condition on the difference of
        lengths, and a residual.
        """
        source, conjunct = conjunct, mirror_comparison(conjunct)
        if not isinstance(conjunct, (exp.LT, exp.LTE)):
            return False
        if not isinstance(conjunct.this, exp.Levenshtein) or self._find_streams(
            conjunct.expression
        ):
            return False
        texts = (conjunct.this.this, conjunct.this.expression)
        edits, ends = read_most_edits(conjunct), self._find_text_columns(texts)
        if edits != 0 or ends is None:  # else it would be an equality, which is searched first
            left, right = (exp.Length(this=text.copy()) for text in texts)
            length_difference = exp.Abs(this=exp.Sub(this=left, expression=right))
            bound = conjunct.expression.copy()
            self._try_add_distance(type(conjunct)(this=length_difference, expression=bound))
        residual = self.residuals.add_conjunct(source)
        if edits is not None and ends is not None:
            self.texts.append(EditDistance(min(ends), max(ends), residual, edits))
        return True

    def _try_add_prefix(self, conjunct: exp.Expr) -> bool:
        """Add ``startswith(left, right)`` or ``left LIKE right``, and a residual that decides."""
        if not isinstance(conjunct, (exp.StartsWith, exp.Like)):
            return False
        ends = self._find_text_columns((conjunct.this, conjunct.expression))
        if ends is None:
            return False
        residual = self.residuals.add_conjunct(conjunct)
        self.texts.append(TextPrefix(*ends, residual, isinstance(conjunct, exp.Like)))
        return True

    def _find_text_columns(self, sides: Sequence[exp.Expr]) -> tuple[End, End] | None:
        """Return the columns of texts of two streams; None: they are others, or may fail."""
        owners = [self._find_streams(side) for side in sides]
        if [*map(len, owners)] != [1, 1] or owners[0] == owners[1]:
            return None
        kinds = {self._find_type(side, each) for side, each in zip(sides, owners, strict=True)}
        if kinds != {STRING} or not all(map(has_value_in_spark, sides)):
            return None
        left, right = (
            (min(each), self.residuals.add_computed_column(side))
            for side, each in zip(sides, owners, strict=True)
        )
        return left, right

    def _try_add_squared_distance(self, conjunct: exp.Expr) -> bool:
        """Add ``power(left - right, 2) + ... <= bound`` as a residual, and a band for each square.

        A product of numbers other than floats may overflow, where Spark fails: there is no band.
        """
        if (squared := find_squared_distance(conjunct)) is None:
            return False
        if any(is_product and not self._is_real_sum(base) for base, is_product in squared.bases):
            return False
        self.residuals.add_conjunct(conjunct)
        radius = exp.Literal.number(repr(squared.radius))
        for base, _ in squared.bases:
            sums = self._find_sums(base)
            for op, bound in ((exp.LTE, radius), (exp.GTE, exp.Neg(this=radius.copy()))):
                is_capped = op is exp.GTE
                self._try_add_comparison_link(op, base, bound, conjunct, sums, is_capped)
        return True

    def _try_add_distance(self, conjunct: exp.Expr) -> bool:
        """Add ``abs(left - right) < bound``, or its mirrored form, as two comparisons."""
        if isinstance(conjunct, (exp.GT, exp.GTE)) and isinstance(conjunct.expression, exp.Abs):
            conjunct = mirror_comparison(conjunct)
        if not isinstance(conjunct, (exp.LT, exp.LTE)) or not isinstance(conjunct.this, exp.Abs):
            return False
        kind, inner, bound = type(conjunct), conjunct.this.this, conjunct.expression
        if self._find_streams(bound):
            return False
        low = exp.Neg(this=bound)
        sums = self._find_sums(inner, is_absolute=True) + self._find_sums(bound)
        return self._try_add_comparison_link(
            kind, inner, bound, conjunct, sums
        ) and self._try_add_comparison_link(MIRRORED[kind], inner, low, conjunct, sums, capped=True)

    def _try_add_comparison(self, conjunct: exp.Expr) -> bool:
        """Add a comparison such as ``left < right``, except for distances."""
        if not isinstance(conjunct, (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE)):
            return False
        left, right = conjunct.this, conjunct.expression
        if isinstance(left, exp.Abs) and isinstance(conjunct, (exp.LT, exp.LTE)):
            return False
        if isinstance(right, exp.Abs) and isinstance(conjunct, (exp.GT, exp.GTE)):
            return False
        sums = self._find_sums(left) + self._find_sums(right)
        return self._try_add_comparison_link(
            type(conjunct), left, right, conjunct, sums, "capped" in conjunct.meta
        )


def _list_overflowing_squares(
    residuals: Iterable[tuple[exp.Expr, ResidualPredicate]],
) -> Iterator[UnindexedResidual]:
    """Yield the sums of squares that no band bounds."""
    for conjunct, residual in residuals:
        if find_squared_distance(conjunct) is not None:
            yield UnindexedResidual(
                residual, "a product of whole numbers may overflow; power(x, 2) does not"
            )


def _make_boolean(conjunct: exp.Expr) -> exp.Expr:
    """Return a conjunct as a boolean, because Spark does not filter by an untyped NULL."""
    if all(isinstance(null.parent, exp.Is) for null in conjunct.find_all(exp.Null)):
        return conjunct
    return exp.And(this=exp.paren(conjunct), expression=exp.true())


LINKING: tuple[Callable[[ConjunctParser, exp.Expr], bool], ...] = (
    ConjunctParser._try_add_edit_distance,
    ConjunctParser._try_add_prefix,
    ConjunctParser._try_add_squared_distance,
    ConjunctParser._try_add_distance,
    ConjunctParser._try_add_comparison,
    ConjunctParser._try_add_null_safe_equality,
    ConjunctParser._try_add_common_elements,
)
"""Rules that make index conditions of a conjunct over two streams. They are tried in this order
until one returns True. A conjunct that no rule accepts is a residual.
"""
