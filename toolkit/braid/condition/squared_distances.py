"""Bounds on each difference that follow from a bound on the sum of their squares.

In ``(a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) <= c`` each square is at most c, so the
points lie in a box: ``abs(a.x - b.x) <= sqrt(c)`` and likewise for y. A square is also written as
``power(a.x - b.x, 2)``, and the whole sum below ``sqrt``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import sqrt
from typing import NamedTuple

from sqlglot import exp

from braid.condition.sum_comparisons import mirror_comparison
from braid.condition.term_normalizer import real_value

_MOST = 1e300
"""Largest bound that is read, so that it is a finite double."""
_ROUNDING = 1e-9
"""Widening of a radius, relative to it, so that rounding loses no pair."""
_UNDERFLOW = 1e-18
"""Differences below this have a square that is 0 or rounded more, as a FLOAT."""


class SquaredDistance(NamedTuple):
    """A condition that bounds a sum of squares.

    - ``bases``: the squared expressions, each with whether the square is a product.
    - ``radius``: the largest absolute value that one of them may have.
    """

    bases: list[tuple[exp.Expr, bool]]
    radius: float


def find_squared_distance(conjunct: exp.Expr) -> SquaredDistance | None:
    """Return the sum of squares that a conjunct bounds by a constant; None: it is another one."""
    conjunct = mirror_comparison(conjunct)
    if not isinstance(conjunct, (exp.LT, exp.LTE)):
        return None
    total, bound = conjunct.this.unnest(), _read_bound(conjunct.expression)
    if bound is None or not 0 <= bound <= _MOST:
        return None
    is_root = isinstance(total, exp.Sqrt)
    squares = [_find_base(square) for square in _split_sum(total.this if is_root else total)]
    bases = [square for square in squares if square is not None]
    if len(bases) < len(squares):
        return None
    radius = float(bound) if is_root else sqrt(bound)
    return SquaredDistance(bases, radius * (1 + _ROUNDING) + _UNDERFLOW)


def _read_bound(node: exp.Expr) -> Fraction | None:
    """Return a constant, or the product of two, as of a radius with itself; None: it is another."""
    node = node.unnest()
    if not isinstance(node, exp.Mul):
        return real_value(node)
    factors = real_value(node.this), real_value(node.expression)
    return None if factors[0] is None or factors[1] is None else factors[0] * factors[1]


def _split_sum(node: exp.Expr) -> Iterator[exp.Expr]:
    node = node.unnest()
    if isinstance(node, exp.Add):
        yield from _split_sum(node.this)
        yield from _split_sum(node.expression)
    else:
        yield node


def _find_base(node: exp.Expr) -> tuple[exp.Expr, bool] | None:
    """Return the squared expression, and whether the square is a product; None: no square."""
    if isinstance(node, exp.Mul) and node.this.unnest() == node.expression.unnest():
        return node.this.unnest(), True
    is_square = isinstance(node, exp.Pow) and real_value(node.expression) == 2
    return (node.this.unnest(), False) if is_square else None
