"""Events of segment placements. Source: Gu 2007."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from logging import INFO
from typing import NamedTuple

from braid.core.plan_sentences import format_count
from braid.core.run_events import Event, EventContext


class JoinOrder(NamedTuple):
    """A join order with two estimates of the tuples and intermediate results sent for one tuple.

    ``streams`` are the streams of the hops. One copy of the tuple is not counted. If two
    consecutive hops share a host, ``estimated_overhead_eq3`` (Eq. 3) counts nothing for it, and
    ``estimated_overhead`` counts what that host lacks.
    """

    streams: tuple[int, ...]
    estimated_overhead: float
    estimated_overhead_eq3: float


@dataclass(frozen=True, slots=True)
class SegmentPlaced(Event):
    """A segment of the master stream begins on ``host``. Source: Gu 2007, section 3.

    - ``batches``: its length.
    - ``is_planned``: the host was chosen earlier, so that slave tuples could be sent there when
      they arrived.
    - ``copied_tuples``: slave tuples that had to be copied there nevertheless.
    """

    batch: int
    master_stream: int
    host: int
    batches: int
    is_planned: bool
    copied_tuples: int

    def describe_decision(self, moment: EventContext) -> str:
        how = "as was chosen ahead" if self.is_planned else "chosen now"
        rows = format_count(self.copied_tuples, "row")
        copied = f", {rows} copied there" if self.copied_tuples else ""
        lasts = f"{self.batches} batch{'es' if self.batches > 1 else ''}"
        name = moment.streams[self.master_stream]
        return f"master {name}: its segment of {lasts} goes to host {self.host}, {how}{copied}"


@dataclass(frozen=True, slots=True)
class MasterSwitched(Event):
    """A new stream is the master from this batch, t_s, on. Source: Gu 2007, section 3.

    ``host`` has the last segment of the old master. ``costs`` are the overheads (Eq. 2) in tuples
    per batch with the old and with the new master.
    """

    level = INFO
    retention_key = ()

    batch: int
    previous_master: int
    master: int
    host: int
    costs: tuple[float, float]

    def describe_decision(self, moment: EventContext) -> str:
        old, new = (moment.streams[s] for s in (self.previous_master, self.master))
        before, after = self.costs
        return (
            f"master {new} takes the place of {old}, as rows of overhead a batch (Eq. 2) go from "
            f"{before:,.0f} to {after:,.0f}"
        )


@dataclass(frozen=True, slots=True)
class SegmentLengthTuned(Event):
    """Segments planned from now on have another length, in batches. Source: Gu 2007, section 3.

    ``sampled_cost`` was measured with the old length: the load of the busiest host for each tuple.
    It is higher if hosts shed work.
    """

    level = INFO
    retention_key = ()

    batch: int
    previous_batches: int
    batches: int
    sampled_cost: float

    def describe_decision(self, moment: EventContext) -> str:
        lasts = f"{self.batches} batch{'es' if self.batches > 1 else ''}"
        return (
            f"segments of {lasts} in place of {self.previous_batches}: with "
            f"{self.previous_batches} the busiest "
            f"host had a load of {self.sampled_cost:,.3g} a row"
        )


@dataclass(frozen=True, slots=True)
class PathChosen(Event):
    """The routing path of a new segment was chosen. Source: Gu 2007, section 4.

    ``block`` is the first block of the segment. ``join_orders`` are the compared orders, the chosen
    one first. ``host_loads`` are the weights w_i (Eq. 1) of the hosts on the path.
    """

    batch: int
    block: int
    stream: int
    join_orders: tuple[JoinOrder, ...]
    host_loads: Mapping[int, float]

    def describe_decision(self, moment: EventContext) -> str:
        best, *others = self.join_orders
        name, visited = moment.streams[self.stream], _format_join_order(best, moment.streams)
        sent = f"{best.estimated_overhead:,.3g} sent for each"
        if not others:
            return f"rows of {name} visit {visited}: {sent}"
        next_best = min(others, key=lambda order: order.estimated_overhead)
        return (
            f"rows of {name} visit {visited}: {sent}, by way of "
            f"{_format_join_order(next_best, moment.streams)} {next_best.estimated_overhead:,.3g}"
        )


def _format_join_order(order: JoinOrder, streams: tuple[str, ...]) -> str:
    return ", then ".join(streams[s] for s in order.streams)
