"""What the shedder has to tell: Gedik 2007."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from braid.core.events import Event, Moment


class Reaped(NamedTuple):
    """An item of a harvest: tuples of ``stream`` against basic window ``basic`` of ``window``.

    ``volume`` are the pairs that it is expected to have, ``output`` the learned o_{i,j}: matches
    that a pair is expected to give; ``shares`` of it are processed, by type.
    """

    stream: int
    window: int
    basic: int
    volume: float
    output: float
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class HarvestPlanned(Event):
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
    amount: float
    fraction: float
    allowance: float | None
    enough: bool
    lengths: tuple[int | None, ...]
    items: tuple[Reaped, ...]
    basic: Mapping[int, int]
    types: tuple[tuple[int, ...], ...] = ()
    expected: Mapping[int, float] = field(default_factory=dict)
    keep: tuple[float, ...] = ()

    def decided(self, moment: Moment) -> str:
        if self.fraction >= 1:
            return "all pairs are processed: nothing is shed"
        clock = "" if self.allowance is None else f", {self.allowance:,.2f} s are allowed"
        late = "" if self.enough else "; even without probing it takes longer"
        return (
            f"{self.fraction:.0%} of all pairs are processed ({self.method}; budget "
            f"{self.amount:g} {self.budget}{clock}){late}"
        )
