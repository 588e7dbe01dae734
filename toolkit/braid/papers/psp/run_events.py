"""Events of the PSP ring. Source: Wang 2008, part II."""

from __future__ import annotations

from dataclasses import dataclass
from logging import INFO

from braid.core.plan import ReplicaCopy
from braid.core.plan_sentences import format_count
from braid.core.run_events import Event, EventContext
from braid.util.durations import format_duration

_LISTED = 8
"""Most nodes that a sentence lists."""


@dataclass(frozen=True, slots=True)
class SliceTableChanged(Event):
    """The state slice table of a stream on a ring. Source: Wang 2008, sections 12.5 and 14.1.

    - ``nodes``: the hosts from head to tail, in the direction of the ring.
    - ``slice_lengths``: window length of each slice in microseconds; None: full history.
    - ``slice_bound_tuples``: tuples that a slice takes if slices are cut by counts.
    """

    retention_key = ("stream",)

    batch: int
    stream: int
    nodes: tuple[int, ...]
    slice_lengths: tuple[int | None, ...]
    slice_bound_tuples: int | None

    def describe_decision(self, moment: EventContext) -> str:
        name, first = (
            moment.streams[self.stream],
            self.slice_lengths[0] if self.slice_lengths else None,
        )
        cut = (
            f"of {format_count(self.slice_bound_tuples, 'row')}"
            if self.slice_bound_tuples is not None
            else "of full history"
        )
        if self.slice_bound_tuples is None and first is not None:
            cut = (
                f"of {format_duration(first)} each"
                if len(set(self.slice_lengths)) == 1
                else "of unequal lengths"
            )
        slices = format_count(len(self.nodes), "slice")
        nodes = ", ".join(map(str, self.nodes[:_LISTED])) + ", …" * (len(self.nodes) > _LISTED)
        on = f"on node{'s' * (len(self.nodes) > 1)} {nodes}"
        return f"the rows of {name} are in {slices} {cut}, {on}"


@dataclass(frozen=True, slots=True)
class HeadMoved(Event):
    """New tuples of a stream are stored on another host from this batch on.

    Source: Wang 2008, section 12.5.
    """

    retention_key = ("stream",)

    batch: int
    stream: int
    previous_host: int
    host: int

    def describe_decision(self, moment: EventContext) -> str:
        name = moment.streams[self.stream]
        return f"new rows of {name} go to node {self.host}, no longer to node {self.previous_host}"


@dataclass(frozen=True, slots=True)
class TailMoved(Event):
    """The oldest tuples of a stream are now those of another host; None: there are none."""

    retention_key = ("stream",)

    batch: int
    stream: int
    previous_host: int | None
    host: int | None


@dataclass(frozen=True, slots=True)
class StateRelocated(Event):
    """State moves between nodes of a ring; ``moves`` are the copies, ``moved_tuples`` their size.

    ``reason`` is "aged" (purged from one slice to a later one; Wang 2008, section 12.2) or
    "resized" (aggressive state relocation, section 14.2). ``keeps_source``: the old node keeps its
    replica for this batch (delayed purge, section 12.4).
    """

    batch: int
    stream: int
    reason: str
    moves: tuple[ReplicaCopy, ...]
    moved_tuples: int
    keeps_source: bool

    def describe_decision(self, moment: EventContext) -> str:
        if self.reason == "aged":
            return ""
        rows = format_count(self.moved_tuples, "row")
        return f"{rows} of {moment.streams[self.stream]} to move ({self.reason})"


@dataclass(frozen=True, slots=True)
class RingResized(Event):
    """The ring changes its number of nodes; ``reason`` is "scheduled" or "load".

    Source: Wang 2008, section 14.2.
    """

    level = INFO
    retention_key = ()

    batch: int
    previous_nodes: int
    nodes: int
    reason: str
    relocation: str

    def describe_decision(self, moment: EventContext) -> str:
        why = "as was scheduled" if self.reason == "scheduled" else f"for its {self.reason}"
        return (
            f"the ring goes from {self.previous_nodes} to {format_count(self.nodes, 'node')} "
            f"{why}, {self.relocation} relocation"
        )
