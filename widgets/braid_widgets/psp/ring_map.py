"""The state map of a ring: the rows of each stream on each node, in ring order, and what moves.

Source: Wang 2008, part II, chapters 12 and 14.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple, TypedDict

from braid.papers.psp.run_events import SliceTableChanged, StateRelocated, TailMoved
from braid.util.durations import format_duration

from braid_widgets.base.columnar import Columns
from braid_widgets.base.run_view import RunView
from braid_widgets.base.state_maps import StateMap


class RingSlice(NamedTuple):
    """A node's slice of a stream.

    - ``place``: its place in the stream's ring, counted from the head (0); -1 if it has left it.
    - ``retention``: the slice's length, in words; empty if unknown.
    """

    stream: int
    node: int
    rows: int
    place: int
    retention: str


class RingMove(NamedTuple):
    """Rows that move from node to node; ``reason`` is "aged" or "resized"."""

    stream: int
    source: int
    target: int
    rows: int
    reason: str


class RingFrame(TypedDict):
    """The ring after a batch.

    - ``nodes``: the nodes in ring order, then those that have left the ring and still hold rows.
    - ``rows``, ``received``, ``heads``, ``tails``: by stream; a head or tail of -1 is unknown.
    - ``scale_max``: rows of a full slice. Frames shown together use the maximum.
    """

    streams: list[str]
    nodes: list[int]
    rows: list[int]
    received: list[int]
    heads: list[int]
    tails: list[int]
    slices: Columns[RingSlice]
    moves: Columns[RingMove]
    scale_max: int


class RingMap(StateMap):
    """The state map of runs whose slices form a ring."""

    name = "ring"
    shown_kinds = (SliceTableChanged,)

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self._tables: dict[int, SliceTableChanged] = {}
        self._tails: dict[int, int] = {}
        self._moves: list[StateRelocated] = []

    def apply_event(self, event: Any) -> None:
        if isinstance(event, SliceTableChanged):
            self._tables[event.stream] = event
        elif isinstance(event, TailMoved):
            self._tails[event.stream] = -1 if event.host is None else event.host
        elif isinstance(event, StateRelocated):
            self._moves = [move for move in self._moves if move.batch == event.batch] + [event]

    def make_frame(self) -> RingFrame:
        slices = self._list_ring_slices()
        streams = range(len(self.scene.stream_aliases))
        return {
            "streams": list(self.scene.stream_aliases),
            "nodes": self._list_ring_nodes(slices),
            "rows": list(self.last.live_tuples),
            "received": list(self.last.received_tuples),
            "heads": [self._tables[s].nodes[0] if s in self._tables else -1 for s in streams],
            "tails": [self._tails.get(s, -1) for s in streams],
            "slices": Columns.from_records(RingSlice, slices),
            "moves": Columns.from_records(RingMove, self._list_ring_moves()),
            "scale_max": max((piece.rows for piece in slices), default=0),
        }

    def _list_ring_nodes(self, slices: list[RingSlice]) -> list[int]:
        """Return the nodes in the order of the first stream's ring, from the lowest number on."""
        ring = list(self._tables[min(self._tables)].nodes)
        start = ring.index(min(ring))
        return [*ring[start:], *ring[:start], *sorted({piece.node for piece in slices} - {*ring})]

    def _list_ring_slices(self) -> list[RingSlice]:
        rows: Counter[tuple[int, int]] = Counter()
        for stream, table in self._tables.items():
            rows.update({(stream, node): 0 for node in table.nodes})
        for block in self.scene.blocks.values():
            rows.update({(block.stream, host): block.rows for host in block.hosts})
        return [RingSlice(s, n, held, *self._describe_place(s, n)) for (s, n), held in rows.items()]

    def _describe_place(self, stream: int, node: int) -> tuple[int, str]:
        table = self._tables.get(stream)
        if table is None or node not in table.nodes:
            return -1, ""
        place = table.nodes.index(node)
        length = table.slice_lengths[place]
        return place, "" if length is None else format_duration(length)

    def _list_ring_moves(self) -> list[RingMove]:
        """Return the moves of the last batch: one for each stream, pair of nodes and reason."""
        moves: Counter[tuple[int, int, int, str]] = Counter()
        for event in (e for e in self._moves if e.batch == self.last.batch):
            for block, source, target in event.moves:
                rows = self.scene.blocks[block].rows if block in self.scene.blocks else 0
                moves[event.stream, source, target, event.reason] += rows
        return [RingMove(s, a, b, rows, why) for (s, a, b, why), rows in sorted(moves.items())]
