"""Access paths: how a probe finds candidate pairs without comparing all of them."""

from __future__ import annotations

from dataclasses import dataclass
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
    def cost_rank(self) -> int:
        """0 for an equality, 1 for a band or a window, 2 for one open side."""
        return (
            0
            if self.lower == self.upper and self.left[1] != TIME
            else 1
            if -inf < self.lower and self.upper < inf
            else 2
        )


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


AccessPath = IndexCondition | CommonElements
"""A condition that finds candidate pairs."""
