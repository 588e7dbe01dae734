"""What the events of a run say, put in order for questions: which blocks there were, what each was
made from, which met, and what is owed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from braid.core.events import (
    BatchCommitted,
    BatchPlanned,
    EventsDropped,
    PlacementChanged,
    RunStarted,
)
from braid.core.placement import Placement
from braid.core.plan import Block, Keying, Route


@dataclass(frozen=True, slots=True)
class Meeting:
    """In a batch, the route of a block had another block probed on a host, in a hop (from 1)."""

    batch: int
    block: int
    other: int
    host: int
    hop: int
    fresh: bool


@dataclass
class Recorded:
    """What the events of a run say, ordered for questions.

    ``blocks`` are all that ever were, as last known; ``born`` is the batch in which each was made
    or arrived, ``gone`` the one that it left in. ``sources`` has, for a merged or cut block, those
    it was made from. ``deferred`` is the batch in which a pair (fresh block, other) was put off.
    ``changes`` are those of the placement. Batches count from 0; ``first`` is the number by which
    the first is told, in all that is said of the run.
    """

    happened: Sequence[Any]
    start: RunStarted
    planned: dict[int, BatchPlanned] = field(default_factory=dict)
    committed: dict[int, BatchCommitted] = field(default_factory=dict)
    blocks: dict[int, Block] = field(default_factory=dict)
    born: dict[int, int] = field(default_factory=dict)
    gone: dict[int, int] = field(default_factory=dict)
    sources: dict[int, tuple[int, ...]] = field(default_factory=dict)
    meetings: list[Meeting] = field(default_factory=list)
    deferred: dict[tuple[int, int], int] = field(default_factory=dict)
    changes: list[PlacementChanged] = field(default_factory=list)
    dropped: EventsDropped | None = None
    """What stands for events that are no longer kept."""
    first: int = 0

    @classmethod
    def of(cls, happened: Iterable[Any], first: int = 0) -> Recorded:
        """Raises ValueError when no event says what is joined."""
        happened = tuple(happened)
        start = next((e for e in happened if isinstance(e, RunStarted)), None)
        if start is None:
            raise ValueError("there is no RunStarted among the events, so nothing has been joined")
        run = cls(happened, start, first=first)
        for event in happened:
            if isinstance(event, BatchPlanned):
                run._plan(event)
            elif isinstance(event, BatchCommitted):
                run._commit(event)
            elif isinstance(event, PlacementChanged):
                run.changes.append(event)
            elif isinstance(event, EventsDropped):
                run.dropped = event
                run.born |= {b.id: b.batch for b in event.blocks}
                run.blocks |= {b.id: b for b in event.blocks}
        return run

    def _plan(self, event: BatchPlanned) -> None:
        self.planned[event.batch] = event
        for d in event.derivations:
            if d.sources != (d.block.id,):
                self.sources[d.block.id] = d.sources
            self._know(d.block, event.batch)
        for route in event.routes:
            self._know(route.block, event.batch)
            self.meetings += meetings_of(event.batch, route)
            self.deferred |= {(route.block.id, other): event.batch for other in route.deferred}

    def _commit(self, event: BatchCommitted) -> None:
        self.committed[event.batch] = event
        for block in event.blocks:
            self._know(block, event.batch)
        self.gone |= dict.fromkeys(event.dropped, event.batch)

    def _know(self, block: Block, batch: int) -> None:
        self.blocks[block.id] = block
        self.born.setdefault(block.id, batch)

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams."""
        return self.start.streams

    def keying(self, a: Block, b: Block) -> Keying:
        """What the routing keys of two blocks hash. "tuple", of which nothing follows, where they
        came under different placements, or under one that is not known here.
        """
        first, later = sorted((a.batch, b.batch))
        if any(first < c.batch <= later for c in self.changes):
            return "tuple"
        try:
            return self._keying(first)
        except ValueError:
            return "tuple"

    def _keying(self, batch: int) -> Keying:
        """Of the placement at work in a batch. Raises ValueError when it is not known here."""
        names = [c.placement for c in self.changes if c.batch <= batch]
        if names:
            return Placement.by_name(names[-1]).keying
        start = self.start
        placement = Placement.by_name(start.placement)
        if placement.keying != "both":
            return placement.keying
        made = placement.of(start.settings)
        return made.keyspace(made.start(len(start.streams))).keying

    def told(self, batch: int) -> int:
        """The number by which a batch is told."""
        return batch + self.first

    @property
    def since(self) -> int:
        """The first batch whose events are kept."""
        return 0 if self.dropped is None else self.dropped.batch + 1

    @property
    def kept(self) -> str:
        """That events are kept from a batch on, if they are not kept of all; else nothing."""
        return f"events are kept from batch {self.told(self.since)} on" if self.since else ""

    @property
    def last(self) -> int:
        """The last committed batch, -1 before the first."""
        return max(self.committed, default=-1)

    def live(self) -> list[Block]:
        """The blocks that are held after the last commit: those with tuples."""
        return [b for id, b in self.blocks.items() if id not in self.gone and b.rows]

    def owed(self) -> list[tuple[int, int]]:
        """The pairs that were deferred and have not been settled."""
        settled = {(m.other, m.block) for m in self.meetings if not m.fresh}
        return [p for p in self.deferred if not settled & {p, p[::-1]}]

    def block(self, id: int) -> Block:
        """Raises ValueError for an id that no batch had."""
        if id not in self.blocks:
            raise ValueError(
                f"there is no block {id}; this run has had {len(self.blocks):,} blocks, "
                f"{min(self.blocks, default=0)} to {max(self.blocks, default=0)}"
                + (self.kept and f"; {self.kept}")
            )
        return self.blocks[id]

    def ancestors(self, id: int) -> set[int]:
        """The blocks that a block's tuples were in before, by merges and cuts; not itself."""
        found: set[int] = set()
        waiting = list(self.sources.get(id, ()))
        while waiting:
            if (source := waiting.pop()) not in found:
                found.add(source)
                waiting += self.sources.get(source, ())
        return found

    def heirs(self, id: int) -> list[int]:
        """The blocks that were made from a block, by a merge or by cuts."""
        return [heir for heir, sources in self.sources.items() if id in sources]


def meetings_of(batch: int, route: Route) -> Iterator[Meeting]:
    """All meetings that a route of a batch asks for."""
    for path in route.paths:
        for n, hop in enumerate(path, 1):
            for host, ids in hop.probes.items():
                for other in ids:
                    yield Meeting(batch, route.block.id, other, host, n, route.fresh)
