"""The base class of shedders, which decide what share of tuples probes if a join cannot keep up.

A placement decides where tuples meet; a *shedder* decides how many of them probe. It adds a
``SheddingPlan`` to a plan and leaves routes and the cover rule unchanged. Source: Gedik 2007.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from braid.core.facts import Facts
from braid.core.plan import Plan
from braid.core.shedding_plan import SheddingOutcome


class Shedder(ABC):
    """A load shedding policy: settings (the fields of a frozen dataclass) and pure functions.

    The functions read no clock and no tuple.
    """

    State: ClassVar[type] = type(None)
    """Type of the state that ``initial_state`` and ``plan_shedding`` return: a frozen dataclass."""

    @abstractmethod
    def initial_state(self, streams: int) -> Any:
        """Return the state before the first batch."""

    @abstractmethod
    def plan_shedding(
        self, facts: Facts, plan: Plan, state: Any, last: SheddingOutcome | None
    ) -> tuple[Plan, Any]:
        """Return the plan with a shedding plan, and the next state.

        ``last`` is the outcome of the last batch; None: there is none.
        """

    def merge_boundaries(self, windows: Sequence[int | None]) -> tuple[tuple[int, ...], ...]:
        """Return, by stream, the ages across which blocks must not be merged.

        Ages are in microseconds, ascending.
        """
        return ()
