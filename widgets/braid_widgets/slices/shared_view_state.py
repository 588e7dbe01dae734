"""The visible state of a shared ring: the part of each slice that a host holds.

Source: Wang 2008, chapters 19 and 21.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from braid.core.run_events import BatchCommitted
from braid.papers.slices.run_events import ChainChanged, SliceContents

from braid_widgets.base.run_view import RunView


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
class SharedViewState(RunView):
    """The visible state of a shared ring.

    - ``chains``: by stream.
    - ``slices``: the slice of each live block.
    """

    chains: dict[int, ChainChanged] = field(default_factory=dict)
    slices: dict[int, int] = field(default_factory=dict)

    def apply_event(self, event: Any) -> None:
        super().apply_event(event)
        if isinstance(event, ChainChanged):
            self.chains[event.stream] = event
        elif isinstance(event, SliceContents):
            self.slices |= {id: k for k, ids in enumerate(event.blocks_by_slice) for id in ids}
        elif isinstance(event, BatchCommitted):
            self.slices = {id: k for id, k in self.slices.items() if id in self.blocks}

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
        stored: dict[int, dict[int, int]] = defaultdict(Counter)
        for b in (b for b in self.blocks.values() if b.stream == stream):
            stored[b.hosts[0]][self.slices.get(b.id, 0)] += b.rows
        return stored


def _shared_out(held: dict[int, int], numbers: list[int]) -> list[int]:
    """Return tuples by slice, for the slices that a host should have.

    Tuples of another slice are counted in the nearest one.
    """
    rows = dict.fromkeys(numbers, 0)
    for number, n in held.items():
        rows[min(numbers, key=lambda piece: abs(piece - number))] += n
    return [rows[number] for number in numbers]
