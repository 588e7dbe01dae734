"""What the shedder has to tell: Gedik 2007."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from braid.core.events import Event, EventContext


class ShedItem(NamedTuple):
    """An item of a harvest: tuples of ``stream`` against basic window ``basic`` of ``window``.

    ``volume`` are the pairs that it is expected to have, ``output`` the learned o_{i,j}: matches
    that a pair is expected to give; ``shares`` of it are processed, by type.
    """

    stream: int
    window: int
    basic_window: int
    pairs: float
    expected_matches: float
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SheddingPlanned(Event):
    """How much of a batch is to be processed, and what: Gedik 2007, sections 4 and 5.

    ``fraction`` is r, of all pairs, under the ``budget`` ("seconds", say) of ``amount``;
    ``allowance`` the seconds that the batch may take, None where no clock decides. ``enough`` is
    False when even without probing it would take longer. ``lengths`` are, by stream, those of basic
    windows in microseconds, None where they double. ``items``, ``basic``, ``types``, ``expected``
    and ``keep`` are those of the plan's Harvest.
    """

    batch: int
    method: str
    budget: str
    budget_amount: float
    fraction: float
    allowed_seconds: float | None
    is_full_join: bool
    basic_window_lengths: tuple[int | None, ...]
    items: tuple[ShedItem, ...]
    basic_window_by_block: Mapping[int, int]
    types: tuple[tuple[int, ...], ...] = ()
    expected_tuples: Mapping[int, float] = field(default_factory=dict)
    keep_shares: tuple[float, ...] = ()

    def describe_decision(self, moment: EventContext) -> str:
        if self.fraction >= 1:
            return "all pairs are processed: nothing is shed"
        clock = (
            "" if self.allowed_seconds is None else f", {self.allowed_seconds:,.2f} s are allowed"
        )
        late = "" if self.is_full_join else "; even without probing it takes longer"
        return (
            f"{self.fraction:.0%} of all pairs are processed ({self.method}; budget "
            f"{self.budget_amount:g} {self.budget}{clock}){late}"
        )
