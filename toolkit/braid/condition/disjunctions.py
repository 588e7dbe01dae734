"""Bring a conjunct with OR and NOT to branches, each a conjunction of literals.

A pair that satisfies the conjunct satisfies all literals of a branch, and the other way round, also
with NULL: pushing a negation to comparisons and distributing AND over OR keep three-valued logic.
Spark's optimizer does the same (BooleanSimplification), and like it, literals that all branches
share become conjuncts of their own.

- A part over one stream is one literal, so that a long list of constants stays together.
- ``x IN (y, z)`` is ``x = y OR x = z`` if all have one type.
- ``x = y OR (x IS NULL AND y IS NULL)`` is ``x <=> y``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from sqlglot import exp

from braid.condition.overflow_guards import Streams, TypeOf
from braid.condition.sql_types import INTEGRAL
from braid.condition.term_normalizer import split_conjuncts

MOST_BRANCHES = 8
"""Maximum branches of a conjunct that an index may find."""
MOST_LITERALS = 64
"""Maximum literals of all branches together."""

Literals = tuple[exp.Expr, ...]
"""A branch: literals that AND combines."""

_OPPOSITES: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.NEQ: exp.EQ,
    exp.NullSafeNEQ: exp.NullSafeEQ,
}


class BranchSplitter:
    """A splitter of conjuncts into branches.

    - ``find_streams``: returns the streams that an expression names.
    - ``find_type``: returns the type of an expression over at most one stream; None: unknown.
    """

    def __init__(self, find_streams: Streams, find_type: TypeOf) -> None:
        self.find_streams, self.find_type = find_streams, find_type

    def split_conjunct(self, node: exp.Expr) -> list[exp.Expr]:
        """Return conjuncts that together are equivalent to a conjunct.

        They are itself, unless negations or literals that all branches share can be taken out.
        """
        branches = self.find_branches(node)
        if not branches:
            return [node]
        if len(branches) == 1:
            return [*branches[0]]
        shared = [e for e in branches[0] if all(e in branch for branch in branches[1:])]
        if not shared:
            return [node]
        rests = [[e for e in branch if e not in shared] for branch in branches]
        return [*shared, *([_join_branches_by_or(rests)] if all(rests) else [])]

    def find_branches(self, node: exp.Expr, is_negated: bool = False) -> list[Literals]:
        """Return the branches of a condition or of its negation; empty: there are too many."""
        node = node.unnest()
        if len(self.find_streams(node)) < 2:
            return [(_negate_condition(node) if is_negated else node,)]
        if isinstance(node, exp.Not):
            return self.find_branches(node.this, not is_negated)
        if isinstance(node, exp.Is) and node.expression == exp.true() and not is_negated:
            return self.find_branches(node.this)
        if not (parts := self._list_combined_conditions(node)):
            return [(_negate_condition(node) if is_negated else node,)]
        sides = [self.find_branches(part, is_negated) for part in parts]
        is_conjunction = isinstance(node, (exp.And, exp.Between)) != is_negated
        combine = _intersect_branches if is_conjunction else _unite_branches
        return reduce(combine, sides)

    def _list_combined_conditions(self, node: exp.Expr) -> list[exp.Expr]:
        """Return the conditions that a node combines; empty: it is a literal."""
        if isinstance(node, (exp.And, exp.Or)):
            return [*node.flatten()]  # however many, without recursion
        if isinstance(node, exp.Between):
            parts = split_conjuncts(node)
            return parts if len(parts) > 1 else []
        if isinstance(node, exp.In) and self._has_one_type([node.this, *node.expressions]):
            return [exp.EQ(this=node.this.copy(), expression=e.copy()) for e in node.expressions]
        return []

    def _has_one_type(self, nodes: Sequence[exp.Expr]) -> bool:
        """Return whether expressions are compared in one type, whichever of them are."""
        owners = [self.find_streams(node) for node in nodes]
        if any(len(each) > 1 for each in owners):
            return False
        kinds = {self.find_type(n, each) for n, each in zip(nodes, owners, strict=True)}
        are_integers = {kind.name for kind in kinds if kind is not None} <= {*INTEGRAL}
        return None not in kinds and (are_integers or len(kinds) == 1)


def _negate_condition(node: exp.Expr) -> exp.Expr:
    opposite = _OPPOSITES.get(type(node))
    if opposite is None:
        return exp.Not(this=exp.paren(node.copy()))
    return opposite(this=node.this.copy(), expression=node.expression.copy())


def _unite_branches(left: list[Literals], right: list[Literals]) -> list[Literals]:
    if not left or not right:
        return []
    branches = [*dict.fromkeys([*left, *right])]
    for equality in [b[0] for b in branches if len(b) == 1 and isinstance(b[0], exp.EQ)]:
        both_null = {_make_null_test(equality.this), _make_null_test(equality.expression)}
        if nulls := next((b for b in branches if len(b) == 2 and {*b} == both_null), None):
            branches.remove(nulls)
            same = exp.NullSafeEQ(this=equality.this.copy(), expression=equality.expression.copy())
            branches[branches.index((equality,))] = (same,)
    return _limit_branches(branches)


def _make_null_test(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=node.copy(), expression=exp.Null())


def _intersect_branches(left: list[Literals], right: list[Literals]) -> list[Literals]:
    both = (tuple(dict.fromkeys([*a, *b])) for a in left for b in right)
    return _limit_branches([*dict.fromkeys(both)])


def _limit_branches(branches: list[Literals]) -> list[Literals]:
    is_within = len(branches) <= MOST_BRANCHES and sum(map(len, branches)) <= MOST_LITERALS
    return branches if is_within else []


def _join_branches_by_or(branches: Iterable[Sequence[exp.Expr]]) -> exp.Expr:
    sides: list[exp.Expr] = [exp.paren(reduce(_join_by_and, branch)) for branch in branches]
    return reduce(lambda a, b: exp.Or(this=a, expression=b), sides)


def _join_by_and(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    sides = [e if isinstance(e, exp.And) and e is left else exp.paren(e) for e in (left, right)]
    return exp.And(this=sides[0], expression=sides[1])
