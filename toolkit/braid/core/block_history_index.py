"""An index of a run's events: its blocks, their sources, their meetings, and pending pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from braid.core.coverage import may_join
from braid.core.key_boxes import KeyBoxes
from braid.core.placement import Placement
from braid.core.plan import Block, Route
from braid.core.run_events import (
    BatchCommitted,
    BatchPlanned,
    EventsTrimmed,
    RunStarted,
)
from braid.util.batch_numbers import display_batch


@dataclass(frozen=True, slots=True)
class BlockMeeting:
    """One probe of a plan: the route of ``block`` probed ``other`` on a host.

    ``hop`` counts from 1.
    """

    batch: int
    block: int
    other: int
    host: int
    hop: int
    is_fresh: bool


@dataclass
class EventIndex:
    """An index of a run's events. Batches count from 0.

    - ``plans_by_batch``, ``commits_by_batch``: plan and commit of each batch.
    - ``blocks``: all blocks ever, in their latest form.
    - ``created_in``, ``dropped_in``: by block, the batch in which it was made or arrived, and the
      one in which it was dropped.
    - ``sources``: by merged or cut block, the blocks it was made from.
    - ``meetings``: all probes.
    - ``deferred``: by pair (fresh block, other), the batch that deferred it.
    """

    events: Sequence[Any]
    start: RunStarted
    plans_by_batch: dict[int, BatchPlanned] = field(default_factory=dict)
    commits_by_batch: dict[int, BatchCommitted] = field(default_factory=dict)
    blocks: dict[int, Block] = field(default_factory=dict)
    created_in: dict[int, int] = field(default_factory=dict)
    dropped_in: dict[int, int] = field(default_factory=dict)
    sources: dict[int, tuple[int, ...]] = field(default_factory=dict)
    meetings: list[BlockMeeting] = field(default_factory=list)
    deferred: dict[tuple[int, int], int] = field(default_factory=dict)
    dropped: EventsTrimmed | None = None
    """The placeholder of trimmed events; None: no event is trimmed."""

    @classmethod
    def from_events(cls, happened: Iterable[Any]) -> EventIndex:
        """Return the index of some events. Raises ValueError if none of them is a RunStarted."""
        happened = tuple(happened)
        start = next((e for e in happened if isinstance(e, RunStarted)), None)
        if start is None:
            raise ValueError("there is no RunStarted among the events, so nothing has been joined")
        run = cls(happened, start)
        for event in happened:
            if isinstance(event, BatchPlanned):
                run._record_plan(event)
            elif isinstance(event, BatchCommitted):
                run._record_commit(event)
            elif isinstance(event, EventsTrimmed):
                run.dropped = event
                run.created_in |= {b.id: b.batch for b in event.live_blocks}
                run.blocks |= {b.id: b for b in event.live_blocks}
        return run

    def _record_plan(self, event: BatchPlanned) -> None:
        self.plans_by_batch[event.batch] = event
        for d in event.derivations:
            if d.source_blocks != (d.block.id,):
                self.sources[d.block.id] = d.source_blocks
            self._record_block(d.block, event.batch)
        for route in event.routes:
            self._record_block(route.block, event.batch)
            self.meetings += route_meetings(event.batch, route)
            self.deferred |= {
                (route.block.id, other): event.batch for other in route.deferred_blocks
            }

        for release in event.releases:
            for host, others in release.partners.blocks_by_host.items():
                met = (event.batch, release.block.id)
                self.meetings += [BlockMeeting(*met, other, host, 1, True) for other in others]

    def _record_commit(self, event: BatchCommitted) -> None:
        self.commits_by_batch[event.batch] = event
        for block in event.changed_blocks:
            self._record_block(block, event.batch)
        self.dropped_in |= dict.fromkeys(event.dropped_block_ids, event.batch)

    def _record_block(self, block: Block, batch: int) -> None:
        self.blocks[block.id] = block
        self.created_in.setdefault(block.id, batch)

    def list_fresh_blocks(
        self, batch: int | None, stream: int, key: int | None = None
    ) -> list[int]:
        """Return the blocks in which the tuples of a stream came in a batch; None: unknown.

        ``key``: that of a tuple, which leaves one block; None: all tuples are meant.
        """
        plan = None if batch is None else self.plans_by_batch.get(batch)
        routes = () if plan is None else plan.routes
        fresh = [r.block.id for r in routes if r.is_fresh and r.block.stream == stream]
        fresh = [id for id in fresh if key is None or self._has_key(id, key)]
        return [id for id in fresh if self.blocks[id].rows] or fresh

    def find_routing_key(self, batch: int | None, stream: int, number: int) -> int:
        """Return the routing key of a tuple that arrived with a number (see ``KeySpace``)."""
        fresh = [self.blocks[id] for id in self.list_fresh_blocks(batch, stream)]
        boxes = self.find_boxes(*fresh) if fresh else None
        return number if boxes is None else int(boxes.routing_keys(number, stream))

    def list_blocks_with_key(self, block: int, key: int | None) -> list[int]:
        """Return a block and those that were made from it, as far as they may have a tuple of it.

        ``key``: the tuple's routing key; None: unknown.
        """
        heirs: dict[int, list[int]] = {}
        for heir, sources in self.sources.items():
            for source in sources:
                heirs.setdefault(source, []).append(heir)
        blocks = [block]
        for each in blocks:  # it grows meanwhile
            more = (heir for heir in heirs.get(each, ()) if heir not in blocks)
            blocks += [heir for heir in more if key is None or self._has_key(heir, key)]
        return blocks

    def _has_key(self, id: int, key: int) -> bool:
        low, high = self.blocks[id].key_range
        return low <= key < high

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The names of the streams."""
        return self.start.streams

    def may_join(self, a: Block, b: Block) -> bool:
        """Return whether the routing keys of two streams' blocks allow their tuples to join.

        The keys of an unknown placement decide nothing.
        """
        try:
            keying = Placement.class_by_name(self.start.placement).routing_key_source
        except ValueError:
            return True
        if keying != "equalities":
            return may_join(a, b, keying, keys_per_value=self.keys_per_value)
        boxes = self.find_boxes(a, b)
        return boxes is None or may_join(a, b, keying, boxes=boxes)

    @property
    def keys_per_value(self) -> int:
        """The number of routing keys of a join value."""
        kind = Placement.class_by_name(self.start.placement)
        if kind.keys_per_value is Placement.keys_per_value:
            return 1
        return kind.from_settings(self.start.placement_settings).keys_per_value

    def find_boxes(self, *blocks: Block) -> KeyBoxes | None:
        """Return the meaning of blocks' routing keys; None: they are numbers, or it is unknown."""
        kind = Placement.class_by_name(self.start.placement)
        if kind.routing_key_source != "equalities":
            return None
        placement = kind.from_settings(self.start.placement_settings)
        batch = max(self.created_in.get(b.id, b.batch) for b in blocks)
        boxes = placement.find_recorded_boxes(len(self.stream_names), self.events, batch)
        if boxes is None:
            return None
        layouts = {boxes.find_layout(b.key_range) for b in blocks}
        is_recorded = all(n < len(boxes.layouts) and boxes.layouts[n] for n in layouts)
        return boxes if is_recorded else None

    @property
    def first_retained_batch(self) -> int:
        """The first batch whose events are retained."""
        return 0 if self.dropped is None else self.dropped.batch + 1

    @property
    def describe_retention(self) -> str:
        """A phrase that names the first retained batch; empty if no event is trimmed."""
        return (
            f"events are kept from batch {display_batch(self.first_retained_batch)} on"
            if self.first_retained_batch
            else ""
        )

    @property
    def last_batch(self) -> int:
        """The last committed batch; -1 before the first."""
        return max(self.commits_by_batch, default=-1)

    def live_blocks(self) -> list[Block]:
        """Return the blocks with tuples after the last commit."""
        return [b for id, b in self.blocks.items() if id not in self.dropped_in and b.rows]

    def pending_pairs(self) -> list[tuple[int, int]]:
        """Return the pairs that were deferred and are not settled."""
        settled = {(m.other, m.block) for m in self.meetings if not m.is_fresh}
        return [p for p in self.deferred if not settled & {p, p[::-1]}]

    def find_block(self, id: int) -> Block:
        """Return a block. Raises ValueError for an unknown id."""
        if id not in self.blocks:
            raise ValueError(
                f"there is no block {id}; this run has had {len(self.blocks):,} blocks, "
                f"{min(self.blocks, default=0)} to {max(self.blocks, default=0)}"
                + (self.describe_retention and f"; {self.describe_retention}")
            )
        return self.blocks[id]

    def find_ancestors(self, id: int) -> set[int]:
        """Return the blocks that a block was made from, directly or not, by merges and cuts."""
        ancestors: set[int] = set()
        waiting = list(self.sources.get(id, ()))
        while waiting:
            if (source := waiting.pop()) not in ancestors:
                ancestors.add(source)
                waiting += self.sources.get(source, ())
        return ancestors

    def descendants(self, id: int) -> list[int]:
        """Return the blocks that were made from a block, by a merge or cuts."""
        return [heir for heir, sources in self.sources.items() if id in sources]


def route_meetings(batch: int, route: Route) -> Iterator[BlockMeeting]:
    """Yield all probes of a route."""
    for path in route.paths:
        for n, hop in enumerate(path, 1):
            for host, ids in hop.blocks_by_host.items():
                for other in ids:
                    yield BlockMeeting(batch, route.block.id, other, host, n, route.is_fresh)
