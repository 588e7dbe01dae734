"""Events of the shedder. Source: Gedik 2007."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from braid.core.run_events import Event, EventContext


class ShedItem(NamedTuple):
    """An item of a harvest: tuples of ``stream`` against a basic window of ``window``.

    - ``pairs``: expected number of pairs.
    - ``expected_matches``: the learned o_{i,j}, expected matches for each pair.
    - ``shares``: fraction of the item that is processed, by type.
    """

    stream: int
    window: int
    basic_window: int
    pairs: float
    expected_matches: float
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SheddingPlanned(Event):
    """How much of a batch is to be processed, and what. Source: Gedik 2007, sections 4 and 5.

    - ``method``: see ``Shed``.
    - ``budget``, ``budget_amount``: the budget ("seconds", say) and its amount.
    - ``fraction``: r, the fraction of all pairs.
    - ``allowed_seconds``: seconds that the batch may take; None: no clock decides.
    - ``is_enough``: whether shedding suffices; if not, the batch exceeds its seconds even without
      probing.
    - ``basic_window_lengths``: by stream, in microseconds; None: they double.
    - ``items``, ``basic_window_by_block``, ``types``, ``expected_tuples``, ``keep_shares``: as in
      the plan's harvest.
    """

    batch: int
    method: str
    budget: str
    budget_amount: float
    fraction: float
    allowed_seconds: float | None
    is_enough: bool
    basic_window_lengths: tuple[int | None, ...]
    items: tuple[ShedItem, ...]
    basic_window_by_block: Mapping[int, int]
    types: tuple[tuple[int, ...], ...] = ()
    expected_tuples: Mapping[int, float] = field(default_factory=dict)
    keep_shares: tuple[float, ...] = ()

    @property
    def kept_pair_share(self) -> float:
        """Share of the pairs that is left of two streams after tuples are skipped at arrival."""
        return self.keep_shares[0] ** 2 if self.keep_shares else 1.0

    def describe_decision(self, moment: EventContext) -> str:
        if self.fraction >= 1:
            return "all pairs are processed: nothing is shed"
        clock = (
            "" if self.allowed_seconds is None else f"; {self.allowed_seconds:,.2f} s are allowed"
        )
        late = "" if self.is_enough else "; even without probing it takes longer"
        share = "<1%" if self.fraction < 0.01 else f"{self.fraction:.0%}"
        budget = _BUDGETS[self.budget].format(self.budget_amount)
        return f"{share} of all pairs are processed ({self.method}, {budget}{clock}){late}"


_BUDGETS = {
    "fraction": "as set",
    "pairs": "for {:,.0f} pairs a batch",
    "seconds": "for {:g} s a batch",
    "speed": "for event time at {:g} times the clock's speed",
}
"""Description of a budget, by its kind."""
