"""What a ring of nodes has to tell: Wang 2008, part II."""

from __future__ import annotations

from dataclasses import dataclass
from logging import INFO

from braid.core.events import Copy, Event, Moment
from braid.core.spans import text
from braid.core.words import hosts


@dataclass(frozen=True, slots=True)
class SlicesSet(Event):
    """The state slice table of a stream on a ring; Wang 2008, sections 12.5 and 14.1.

    ``nodes`` are the hosts from head to tail, in the direction of the ring; ``lengths`` the window
    length of each slice in microseconds (None: full history). ``bound`` is the number of tuples
    that a slice takes when slices are cut by counts.
    """

    lasting = ("stream",)

    batch: int
    stream: int
    nodes: tuple[int, ...]
    lengths: tuple[int | None, ...]
    bound: int | None

    def decided(self, moment: Moment) -> str:
        name, first = moment.streams[self.stream], self.lengths[0] if self.lengths else None
        cut = f"of {self.bound:,} tuples" if self.bound is not None else "of full history"
        if self.bound is None and first is not None:
            cut = f"of {text(first)} each" if len(set(self.lengths)) == 1 else "of unequal lengths"
        return f"{name} is cut in {len(self.nodes)} slices {cut} on {hosts(self.nodes)}"


@dataclass(frozen=True, slots=True)
class HeadMoved(Event):
    """New tuples of a stream are stored on host ``new`` from this batch on; Wang 2008, section
    12.5.
    """

    lasting = ("stream",)

    batch: int
    stream: int
    old: int
    new: int

    def decided(self, moment: Moment) -> str:
        name = moment.streams[self.stream]
        return f"new tuples of {name} go to host {self.new}, no longer to host {self.old}"


@dataclass(frozen=True, slots=True)
class TailMoved(Event):
    """The oldest tuples of a stream are now those of host ``new``; None when there are none."""

    lasting = ("stream",)

    batch: int
    stream: int
    old: int | None
    new: int | None


@dataclass(frozen=True, slots=True)
class Relocated(Event):
    """State moves between nodes of a ring: ``moves`` lists what goes where,
    ``tuples`` counts them.

    ``reason`` is "aged" (purged from one slice to a later one; Wang 2008, section 12.2) or
    "resized" (aggressive state relocation, section 14.2). ``kept`` says that the old node keeps its
    replica for this batch (delayed purge, section 12.4).
    """

    batch: int
    stream: int
    reason: str
    moves: tuple[Copy, ...]
    tuples: int
    kept: bool

    def decided(self, moment: Moment) -> str:
        if self.reason == "aged":
            return ""
        return f"{self.tuples:,} tuples of {moment.streams[self.stream]} move ({self.reason})"


@dataclass(frozen=True, slots=True)
class RingResized(Event):
    """The ring goes from ``old`` to ``new`` nodes; ``reason`` is "scheduled" or "load". Wang 2008,
    section 14.2.
    """

    level = INFO
    lasting = ()

    batch: int
    old: int
    new: int
    reason: str
    relocation: str

    def decided(self, moment: Moment) -> str:
        why = "as was scheduled" if self.reason == "scheduled" else f"for its {self.reason}"
        return (
            f"the ring goes from {self.old} to {self.new} nodes {why}, {self.relocation} relocation"
        )
