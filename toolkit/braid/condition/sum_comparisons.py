"""Comparisons between sums over two streams, from which index conditions are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor

from sqlglot import exp

from braid.condition.access_paths import OverflowGuard
from braid.condition.key_equalities import End
from braid.condition.overflow_guards import (
    GuardedSum,
    describe_failure,
    refuse_constant,
    scale_limits,
)
from braid.condition.term_normalizer import (
    Term,
    TermSum,
    constant_value,
    negate_terms,
    sum_constants,
)

MIRRORED: dict[type, type] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
"""The comparison of the same sides in the other order."""


MOST_EDITS = 4
"""Maximum edits between texts that an index of segments finds."""


def mirror_comparison(node: exp.Expr) -> exp.Expr:
    """Return a comparison with > or >= from its other side; any other node as it is."""
    if not isinstance(node, (exp.GT, exp.GTE)):
        return node
    mirrored: exp.Expr = MIRRORED[type(node)](this=node.expression, expression=node.this)
    return mirrored


def read_most_edits(comparison: exp.LT | exp.LTE) -> int | None:
    """Return how many edits a bound on an edit distance allows; None: too many, or no constant."""
    bound = constant_value(comparison.expression)
    if bound is None:
        return None
    edits = ceil(bound) - 1 if isinstance(comparison, exp.LT) else floor(bound)
    return edits if 0 <= edits <= MOST_EDITS else None


@dataclass(frozen=True)
class SumComparison:
    """The comparison ``A - B + free op 0``; A and B are sums over one stream each.

    - ``source``: the conjunct that it follows from.
    - ``sums``: the sums of the conjunct that it takes apart.
    - ``nan``: whether sides that sum to NaN may satisfy it; None: the order of keys decides.
    """

    op: type
    a: TermSum
    b: TermSum
    free: list[Term]
    source: exp.Expr
    sums: Sequence[GuardedSum]
    nan: bool | None

    def negate(self) -> SumComparison:
        """Return the same comparison with all signs reversed."""
        a, b = (TermSum(side.stream, negate_terms(side.terms)) for side in (self.a, self.b))
        op = MIRRORED.get(self.op, self.op)
        return replace(self, op=op, a=a, b=b, free=negate_terms(self.free))


def make_guards(
    sums: Sequence[GuardedSum],
    kind: str,
    scale: int,
    link: tuple[End, End],
    add_key: Callable[[TermSum], End],
    is_ansi: bool,
) -> Iterator[OverflowGuard]:
    """Yield the guards for the sums that the index condition between two keys took apart.

    ``add_key`` returns the key of a sum over one stream.
    """
    unit = 10**scale if kind == "decimal" else 1
    for each in sums:
        factors: dict[End, int] = {}
        moved = sum_constants(kind, [(sign, t) for sign, t, owner in each.terms if not owner])
        for sign, term, owner in each.terms:
            if owner:
                key = add_key(TermSum(min(owner), [(1, term)]))
                factors[key] = factors.get(key, 0) + sign
        low, high = each.find_limits(kind)
        if moved is None or not factors:
            if moved is not None and not low <= moved <= high:
                refuse_constant(each.display_text)
            continue
        ends = tuple((*end, factor) for end, factor in factors.items())
        text = describe_failure(each.display_text, ansi=is_ansi)
        yield OverflowGuard(ends, *scale_limits(low, high, moved, unit), text, link)
