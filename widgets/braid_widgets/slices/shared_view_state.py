"""The visible state of a shared ring: the part of each slice that a host holds.

Source: Wang 2008, chapters 19 and 21.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from braid.core.batch_history import LiveBlocks
from braid.core.run_events import (
    BatchCommitted,
    EventsTrimmed,
    QueryAdded,
    QueryRemoved,
    RunStarted,
)
from braid.papers.slices.run_events import ChainChanged, SliceContents


class SlicePiece(NamedTuple):
    """The part of a logical slice that a host holds.

    - ``first``, ``last``: ages in microseconds.
    - ``slice``: the slice's number, from the youngest.
    - ``rows``: tuples.
    """

    stream: int
    host: int
    first: int
    last: int
    slice: int
    rows: int


@dataclass
class SharedViewState:
    """The visible state of a shared ring; fold events into it in order with ``apply_event``.

    - ``chains``: by stream.
    - ``blocks``: the live blocks.
    - ``slices``: the slice of each live block.
    """

    start: RunStarted | None = None
    last: BatchCommitted | None = None
    queries: dict[str, QueryAdded] = field(default_factory=dict)
    chains: dict[int, ChainChanged] = field(default_factory=dict)
    blocks: LiveBlocks = field(default_factory=LiveBlocks)
    slices: dict[int, int] = field(default_factory=dict)

    def apply_event(self, event: Any) -> None:
        """Fold in one event; ignore kinds that change nothing visible."""
        if isinstance(event, RunStarted):
            self.start = event
        elif isinstance(event, EventsTrimmed):
            self.blocks.apply_changes(event.live_blocks)
        elif isinstance(event, QueryAdded):
            self.queries[event.name] = event
        elif isinstance(event, QueryRemoved):
            self.queries.pop(event.name, None)
        elif isinstance(event, ChainChanged):
            self.chains[event.stream] = event
        elif isinstance(event, SliceContents):
            self.slices |= {id: k for k, ids in enumerate(event.blocks_by_slice) for id in ids}
        elif isinstance(event, BatchCommitted):
            self._apply_commit(event)

    def _apply_commit(self, event: BatchCommitted) -> None:
        self.blocks.apply_commit(event)
        self.slices = {id: k for id, k in self.slices.items() if id in self.blocks}
        self.last = event

    def slice_pieces(self) -> list[SlicePiece]:
        """Return the pieces by stream and age, from the youngest.

        Tuples that wait for the next batch to move are counted at their current place.
        """
        pieces = []
        for stream, chain in sorted(self.chains.items()):
            held = self._count_stored_tuples(stream)
            for (first, _), (last, host) in pairwise([(0, -1), *chain.host_age_ranges]):
                cuts = [first, *(e for e in chain.slice_ends if first < e < last), last]
                ranges = [(a, b, sum(e <= a for e in chain.slice_ends)) for a, b in pairwise(cuts)]
                rows = _shared_out(held.get(host, {}), [number for *_, number in ranges])
                pieces += [
                    SlicePiece(stream, host, a, b, number, n)
                    for (a, b, number), n in zip(ranges, rows, strict=True)
                ]
        return pieces

    def _count_stored_tuples(self, stream: int) -> dict[int, dict[int, int]]:
        """Return tuples by host and slice."""
        stored: dict[int, dict[int, int]] = {}
        for b in (b for b in self.blocks.values() if b.stream == stream):
            at, number = stored.setdefault(b.hosts[0], {}), self.slices.get(b.id, 0)
            at[number] = at.get(number, 0) + b.rows
        return stored


def _shared_out(held: dict[int, int], numbers: list[int]) -> list[int]:
    """Return tuples by slice, for the slices that a host should have.

    Tuples of another slice are counted in the nearest one.
    """
    rows = dict.fromkeys(numbers, 0)
    for number, n in held.items():
        rows[min(numbers, key=lambda piece: abs(piece - number))] += n
    return [rows[number] for number in numbers]
