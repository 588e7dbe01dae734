"""Access paths: how a probe finds candidate pairs without comparing all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from braid.condition.residual_predicate import ResidualPredicate
from braid.core.reserved_columns import TIME


@dataclass(frozen=True)
class IndexCondition:
    """The condition ``lower <= left - right <= upper`` between key columns of two streams.

    - ``left``, ``right``: (stream index, key column); the left stream comes first.
    - ``lower``, ``upper``: bounds; infinite: unbounded.
    - ``open_bounds``: whether each bound is open. Floats only; bounds of integers are closed.
    - ``is_exact``: whether it admits matches only. If not (text by its hash, rounded floats), it
      finds a superset, and a residual decides.
    """

    left: tuple[int, str]
    right: tuple[int, str]
    lower: float
    upper: float
    open_bounds: tuple[bool, bool] = (False, False)
    is_exact: bool = True

    @property
    def ends(self) -> tuple[tuple[int, str], tuple[int, str]]:
        """Its two key columns."""
        return self.left, self.right

    @property
    def cost_rank(self) -> int:
        """0 for an equality, 1 for a band or a window, 2 for one open side."""
        return (
            0
            if self.lower == self.upper and self.left[1] != TIME
            else 1
            if -inf < self.lower and self.upper < inf
            else 2
        )

    def find_key(self, stream: int) -> str | None:
        """Return the key column of this stream; None: the condition does not name it."""
        return dict(self.ends).get(stream)

    def find_bounded_sides(self, stream: int) -> tuple[bool, bool]:
        """Return whether it bounds the key of this stream from below, and from above."""
        is_bounded = self.lower > -inf, self.upper < inf
        return is_bounded if stream == self.left[0] else is_bounded[::-1]


@dataclass(frozen=True)
class CommonElements:
    """The condition that sets of two streams share at least ``min_elements`` elements.

    - ``left``, ``right``: (stream, column).
    - ``equivalent_residual``: the residual that this condition is equivalent to; None: a residual
      decides in addition.
    """

    left: tuple[int, str]
    right: tuple[int, str]
    min_elements: int
    equivalent_residual: ResidualPredicate | None = None


@dataclass(frozen=True)
class OverflowGuard:
    """Limits of a sum of keys, given by the type in which Spark computes it.

    A pair whose sum is below ``lower_limit`` or above ``upper_limit`` fails the run with
    ``sentence``.

    - ``weighted_columns``: (stream, key column, factor).
    - ``link``: ends of the index condition that was made from the comparison with the sum.
    """

    weighted_columns: tuple[tuple[int, str, int], ...]
    lower_limit: int
    upper_limit: int
    sentence: str
    link: tuple[tuple[int, str], tuple[int, str]]

    @property
    def guarded_streams(self) -> set[int]:
        """The streams of the pairs for which Spark computes the sum."""
        return {self.link[0][0], self.link[1][0]}


@dataclass(frozen=True)
class Disjunction:
    """The condition that one of several index conditions between two streams holds: an OR.

    Their key columns may be NULL; such a row has no partner by that branch.

    - ``branches``: each finds all pairs that satisfy its branch of the OR.
    - ``residual``: the whole OR.
    - ``is_exact``: whether the branches admit matches only, so that the residual is not needed.
    - ``guards``: limits of sums that the branches took apart. The residual fails for pairs beyond
      them.
    """

    branches: tuple[IndexCondition, ...]
    residual: ResidualPredicate
    is_exact: bool
    guards: tuple[OverflowGuard, ...] = ()

    @property
    def cost_rank(self) -> int:
        """The cost rank of its most expensive branch."""
        return max(branch.cost_rank for branch in self.branches)


@dataclass(frozen=True)
class Order:
    """How the rows of a stream's blocks are ordered, to be searched.

    - ``column``: the column that sorts them.
    - ``within``: the column that sorts rows of equal ``column``; None: there is none.
    - ``ranked``: the column by whose ranks a tree over this order searches; None: there is none.
    """

    column: str
    within: str | None = None
    ranked: str | None = None

    @property
    def named_columns(self) -> tuple[str, ...]:
        """The columns, without None."""
        return tuple(c for c in (self.column, self.within, self.ranked) if c is not None)

    @property
    def name(self) -> str:
        """The name of the order, from which those of its stored columns are made."""
        within = "" if self.within is None else f",{self.within}"
        return self.column + within + ("" if self.ranked is None else f";{self.ranked}")

    def replaces_order(self, other: Order) -> bool:
        """Return whether rows in this order can be searched as if they were in the other."""
        return self.column == other.column and (
            self == other
            or other.named_columns == (self.column,)
            or other == replace(self, ranked=None)
        )


@dataclass(frozen=True)
class OrderSearch:
    """Several index conditions that one order of the stored rows finds pairs by.

    Rows are searched by ``Order.column`` with ``column_conditions``: an equality, or ranges that
    are intersected. ``within_conditions`` and ``ranked_conditions`` are ranges of the order's other
    columns.
    """

    order: Order
    column_conditions: tuple[IndexCondition, ...]
    within_conditions: tuple[IndexCondition, ...] = ()
    ranked_conditions: tuple[IndexCondition, ...] = ()

    @property
    def all_conditions(self) -> tuple[IndexCondition, ...]:
        """All conditions of the search."""
        return self.column_conditions + self.within_conditions + self.ranked_conditions

    def drop_condition(self, ends: tuple[tuple[int, str], tuple[int, str]]) -> OrderSearch | None:
        """Return the search without the conditions on these two keys; None: nothing is left."""
        groups = [
            tuple(c for c in group if c.ends != ends)
            for group in (self.column_conditions, self.within_conditions, self.ranked_conditions)
        ]
        return OrderSearch(self.order, *groups) if groups[0] else None


AccessPath = IndexCondition | OrderSearch | CommonElements | Disjunction
"""What finds candidate pairs."""


def list_searched_conditions(path: AccessPath | None) -> tuple[IndexCondition, ...]:
    """Return the index conditions that an access path finds pairs by, without those of an OR."""
    if isinstance(path, OrderSearch):
        return path.all_conditions
    return (path,) if isinstance(path, IndexCondition) else ()
