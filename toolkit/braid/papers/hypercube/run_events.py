"""Events of the hypercube."""

from __future__ import annotations

from dataclasses import dataclass
from logging import INFO

from braid.core.plan_sentences import format_hosts
from braid.core.run_events import Event, EventContext


@dataclass(frozen=True, slots=True)
class SharesChosen(Event):
    """The shares of the dimensions change, or are chosen at the start.

    - ``dimensions``: by dimension, the streams that have it.
    - ``previous_shares``, ``shares``: by dimension, the number of parts; at the start, the previous
      ones are empty.
    - ``previous_copies``, ``copies``: hosts that receive a tuple, on average, at the measured
      rates.
    - ``idle_hosts``: hosts without a cell.
    - ``hosts``: host by cell, the last dimension fastest. Empty: not recorded.
    - ``layout``: number of the routing keys that tuples have from this batch on (see ``KeyBoxes``).
    """

    level = INFO
    retention_key = ()

    batch: int
    dimensions: tuple[tuple[int, ...], ...]
    previous_shares: tuple[int, ...]
    shares: tuple[int, ...]
    previous_copies: float
    copies: float
    idle_hosts: tuple[int, ...]
    hosts: tuple[int, ...] = ()
    layout: int = 0

    def describe_decision(self, moment: EventContext) -> str:
        columns = (" = ".join(moment.streams[s] for s in each) for each in self.dimensions)
        parts = ", ".join(
            f"{column}: {share}" for column, share in zip(columns, self.shares, strict=True)
        )
        if not self.previous_shares:
            unused = f"; {format_hosts(self.idle_hosts)} without a cell" if self.idle_hosts else ""
            return f"shares by equality {parts}{unused}"
        before = " x ".join(map(str, self.previous_shares))
        return (
            f"shares by equality {parts}, in place of {before}: {self.previous_copies:.2f} to "
            f"{self.copies:.2f} hosts receive a row"
        )
