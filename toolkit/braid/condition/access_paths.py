"""Access paths: how a probe finds candidate pairs without comparing all of them."""

from __future__ import annotations

from collections.abc import Iterable
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


def find_search_rank(conditions: Iterable[IndexCondition]) -> int:
    """Return the cost rank of a search by all of these conditions; 3: there is none.

    Two open sides of different keys, such as those of an overlap, find as few pairs as a band. A
    window counts as one open side: stored rows are mostly within it.
    """
    searched = [*conditions]
    rank = min((2 if k.left[1] == TIME else k.cost_rank for k in searched), default=3)
    open_sides = {k.ends for k in searched if k.left[1] != TIME}
    return 1 if rank == 2 and len(open_sides) > 1 else rank


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
class Branch:
    """Index conditions between two streams that all hold if a branch of an OR does.

    Their keys may be NULL; such a row has no partner by the branch.
    """

    conditions: tuple[IndexCondition, ...]

    @property
    def cost_rank(self) -> int:
        """The cost rank of a search by all its conditions."""
        return find_search_rank(self.conditions)

    def list_keys(self, stream: int) -> tuple[str, ...]:
        """Return the key columns of one of the streams."""
        keys = (condition.find_key(stream) for condition in self.conditions)
        return tuple(dict.fromkeys(key for key in keys if key is not None))


@dataclass(frozen=True)
class Disjunction:
    """The condition that one of several branches between two streams holds: an OR.

    - ``branches``: each finds all pairs that satisfy its branch of the OR.
    - ``residual``: the whole OR.
    - ``is_exact``: whether the branches admit matches only, so that the residual is not needed.
    - ``guards``: limits of sums that the branches took apart. The residual fails for pairs beyond
      them.
    - ``is_narrower``: whether each branch also has the other index conditions of the two streams.
    """

    branches: tuple[Branch, ...]
    residual: ResidualPredicate
    is_exact: bool
    guards: tuple[OverflowGuard, ...] = ()
    is_narrower: bool = False

    @property
    def cost_rank(self) -> int:
        """The cost rank of its most expensive branch."""
        return max(branch.cost_rank for branch in self.branches)


@dataclass(frozen=True)
class UnindexedResidual:
    """A residual between two streams that no index finds, with the reason as a clause."""

    residual: ResidualPredicate
    reason: str


@dataclass(frozen=True)
class Order:
    """How the rows of a stream's blocks are ordered, to be searched.

    - ``column``: the key that sorts them.
    - ``within``: the key that sorts rows of equal ``column``; None: there is none.
    """

    column: str
    within: str | None = None

    @property
    def name(self) -> str:
        """The name of the order, from which those of its stored columns are made."""
        return self.column if self.within is None else f"{self.column},{self.within}"


@dataclass(frozen=True)
class RangeSearch:
    """Index conditions on one key of a stream: a search of rows in an order that sorts by it.

    - ``order``: sorts by the key, or by that of an equality first.
    - ``conditions``: a row fulfills all of them.
    """

    order: Order
    conditions: tuple[IndexCondition, ...]


@dataclass(frozen=True)
class OrderSearch:
    """A search by an equality, if there is one, and by ranges of several keys of a stream.

    The narrowest two of its ranges find the pairs; further ones are checked.
    """

    equality: IndexCondition | None
    ranges: tuple[RangeSearch, ...]

    @property
    def all_conditions(self) -> tuple[IndexCondition, ...]:
        """All conditions of the search."""
        ranges = tuple(c for each in self.ranges for c in each.conditions)
        return ranges if self.equality is None else (self.equality, *ranges)

    def drop_condition(self, ends: tuple[tuple[int, str], tuple[int, str]]) -> OrderSearch | None:
        """Return the search without the conditions on these two keys; None: nothing is left."""
        if self.equality is not None and self.equality.ends == ends:
            return None
        others = (
            replace(each, conditions=tuple(c for c in each.conditions if c.ends != ends))
            for each in self.ranges
        )
        search = OrderSearch(self.equality, tuple(each for each in others if each.conditions))
        return search if search.all_conditions else None


@dataclass(frozen=True)
class TextPrefix:
    """The condition that a text begins with a text of another stream. The residual decides.

    - ``text``, ``prefix``: (stream, column).
    - ``is_pattern``: whether the prefix is a pattern of LIKE, which may contain wildcards.
    """

    text: tuple[int, str]
    prefix: tuple[int, str]
    residual: ResidualPredicate
    is_pattern: bool = False


@dataclass(frozen=True)
class EditDistance:
    """The condition that texts of two streams are within a few edits. The residual decides.

    ``left``, ``right``: (stream, column).
    """

    left: tuple[int, str]
    right: tuple[int, str]
    residual: ResidualPredicate
    most_edits: int


TextMatch = TextPrefix | EditDistance
"""A condition on texts of two streams that finds pairs."""

AccessPath = IndexCondition | OrderSearch | CommonElements | Disjunction | TextMatch
"""A condition, or a search by several, that finds candidate pairs."""


def list_searched_conditions(path: AccessPath | None) -> tuple[IndexCondition, ...]:
    """Return the index conditions that an access path finds pairs by, without those of an OR."""
    if isinstance(path, OrderSearch):
        return path.all_conditions
    return (path,) if isinstance(path, IndexCondition) else ()
