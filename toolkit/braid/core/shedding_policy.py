"""Who decides what share of the tuples that set out takes part, when a join cannot keep up.

A placement says where tuples meet, a *shedder* how many of them set out. It edits a plan: it adds a
``Harvest`` to it, and leaves routes and the cover rule as they are. Source: Gedik 2007.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from braid.core.facts import Facts
from braid.core.plan import Plan
from braid.core.shedding_plan import SheddingOutcome


class Shedder(ABC):
    """What decides about harvests: settings (the fields of a frozen dataclass) and pure functions,
    which see no clock and no tuple.
    """

    State: ClassVar[type] = type(None)
    """What ``start`` and ``plan`` return: a frozen dataclass."""

    @abstractmethod
    def initial_state(self, streams: int) -> Any:
        """The first state."""

    @abstractmethod
    def plan_shedding(
        self, facts: Facts, plan: Plan, state: Any, last: SheddingOutcome | None
    ) -> tuple[Plan, Any]:
        """The plan with a harvest, and the next state. ``last`` is what came of the last batch."""

    def merge_boundaries(self, windows: Sequence[int | None]) -> tuple[tuple[int, ...], ...]:
        """By stream the ages (microseconds, rising) across which blocks must not be merged."""
        return ()
