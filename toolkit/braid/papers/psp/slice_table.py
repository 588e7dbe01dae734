"""The state slice table of one stream on a PSP ring: the nodes of each age, and moves on changes.

Times are in microseconds. A slice boundary falls on a block boundary: a block belongs to the slice
that contains the middle of its event times.

Source: Wang 2008, chapter 12 and 14, Fig. 12.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile

from braid.core.plan import Block


def insertion_points(nodes: int, added: int) -> tuple[int, ...]:
    """Return, for each of the M new nodes, the number k of the old node (1 = head) before it.

    k is the least with M k / N >= j. The book prints >, which has no solution for j = M, not even
    in its own example. Source: section 14.2.
    """
    return tuple(-(-j * nodes // added) for j in range(1, added + 1))


@dataclass(frozen=True, slots=True)
class SliceTable:
    """The nodes of a stream's ring from head to tail, and the window length of each.

    ``lengths`` are Delta W; None: full history. The head's slice began at event time ``head_start``
    (microseconds), when ``head_tuples`` tuples of the stream had arrived. ``tail`` is the host with
    the oldest block.
    """

    nodes: tuple[int, ...]
    lengths: tuple[int | None, ...]
    head_start: int | None = None
    head_tuples: int = 0
    tail: int | None = None

    def slice_ends(self) -> tuple[int, ...]:
        """Return the known ages (microseconds) at which slices end, youngest first."""
        bounded = takewhile(lambda length: length is not None, self.lengths)
        return tuple(accumulate(length or 0 for length in bounded))

    def resize(self, wanted: int, added: tuple[int, ...], aggressive: bool) -> SliceTable:
        """Return the ring without hosts from ``wanted`` on, and with the ``added`` ones (14.2).

        Aggressive: new nodes go in between, where the state that is shifted toward the tail fills
        them (Eq. 14.1). Passive: they go next to the tail, where the head goes next.
        """
        table = [(n, w) for n, w in zip(self.nodes, self.lengths, strict=True) if n < wanted]
        places = (
            insertion_points(len(table), len(added)) if aggressive else (len(table),) * len(added)
        )
        for k, n in reversed([*zip(places, added, strict=True)]):
            table.insert(k, (n, 0))
        return replace(self, nodes=tuple(n for n, _ in table), lengths=tuple(w for _, w in table))


@dataclass(frozen=True, slots=True)
class BlockMove:
    """The move of a block from one node to another."""

    block: Block
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class StreamState:
    """The facts about one stream.

    - ``blocks``: live blocks, newest first.
    - ``window``: in microseconds; None: full history.
    - ``latest``: latest event time.
    - ``clock``: the event time that purges it; None: nothing is purged yet.
    - ``received``: tuples so far; ``last_batch_tuples``: tuples of the last batch.
    - ``is_counted``: slices are cut by tuples.
    """

    blocks: tuple[Block, ...]
    window: int | None
    latest: int | None
    clock: int | None
    received: int
    last_batch_tuples: int
    is_counted: bool

    def slice_length(self, nodes: int) -> int | None:
        """Return W / N."""
        return None if self.window is None else self.window // nodes

    def slice_width(self, nodes: int) -> int:
        """Return the size of a slice: W / N or, if slices are cut by tuples, the bound C of 14.1.

        C is the number of tuples in W / N at the mean rate of the live tuples.
        """
        if self.window is not None and not self.is_counted:
            return max(1, self.window // nodes)
        rows = sum(b.rows for b in self.blocks)
        share = (
            1.0
            if self.window is None
            else self.window / (event_time_extent(self.blocks) or self.window)
        )
        return max(1, int(rows * share / nodes))

    def ring_positions(self, now: int | None) -> list[float]:
        """Return, by block, the position of its middle along the ring: newer tuples, or age."""
        if self.is_counted:
            ends = accumulate(b.rows for b in self.blocks)
            return [end - b.rows / 2 for b, end in zip(self.blocks, ends, strict=True)]
        return [
            0.0
            if now is None or b.event_time_range is None
            else max(0.0, now - sum(b.event_time_range) / 2)
            for b in self.blocks
        ]

    def head_fill(self, slices: SliceTable) -> int:
        """Return how much of its slice the head has received: tuples, or time."""
        if self.is_counted:
            return self.received - slices.head_tuples
        return (
            0
            if self.latest is None or slices.head_start is None
            else self.latest + 1 - slices.head_start
        )


def plan_purges(slices: SliceTable, state: StreamState) -> tuple[SliceTable, list[BlockMove]]:
    """Return the table and the blocks to purge toward the tail, for slices that stay (12.2).

    A block that has aged past several slices in one batch skips those between.
    """
    nodes = slices.nodes
    place = {n: k for k, n in enumerate(nodes)}
    width = state.slice_width(len(nodes))
    held: list[list[Block]] = [[] for _ in nodes]
    moves = []
    for b, measure in zip(state.blocks, state.ring_positions(state.clock), strict=True):
        target = min(int(measure // width), len(nodes) - 1)
        held[target].append(b)
        if target > place.get(b.hosts[0], -1):
            moves.append(BlockMove(b, b.hosts[0], nodes[target]))
    lengths = (
        [event_time_extent(blocks) for blocks in held]
        if state.is_counted
        else [state.slice_length(len(nodes))] * len(nodes)
    )
    return replace(slices, lengths=tuple(lengths)), moves


def rotate_head(slices: SliceTable, state: StreamState) -> SliceTable:
    """Return the table with the head moved if its slice is full (12.5).

    It moves one node against the direction of the ring, which is onto the tail. By counts, a slice
    is full if another batch like the last one would leave it farther from the bound. In full
    history nothing empties the tail, and the head moves with every batch that had tuples.
    """
    if slices.head_start is None and state.latest is not None:
        slices = replace(
            slices,
            head_start=min(
                (b.event_time_range[0] for b in state.blocks if b.event_time_range),
                default=state.latest,
            ),
        )
    nodes = slices.nodes
    length = state.slice_length(len(nodes))
    slices = replace(slices, lengths=(length, *slices.lengths[1:]))
    width = 1 if state.window is None else state.slice_width(len(nodes))
    reach = state.head_fill(slices) + (state.last_batch_tuples // 2 if state.is_counted else 0)
    if len(nodes) == 1 or not state.head_fill(slices) or reach < width:
        return slices
    since, latest, lengths = slices.head_start, state.latest, slices.lengths
    if since is not None and latest is not None:
        end = latest + 1 if state.is_counted else since + state.head_fill(slices) // width * width
        lengths, since = (None if length is None else end - since, *lengths[1:]), end
    return replace(
        slices,
        nodes=(nodes[-1], *nodes[:-1]),
        lengths=(length, *lengths[:-1]),
        head_start=since,
        head_tuples=state.received,
    )


def plan_relocation(slices: SliceTable, state: StreamState) -> tuple[SliceTable, list[BlockMove]]:
    """Return the table and the moves of aggressive relocation (14.2) under a moving head.

    Every block goes to the node of its age. The head keeps what it has received, up to one new
    slice. Each node after it gets one slice. Older tuples are in the slice that the tail shares
    with the head.
    """
    n = len(slices.nodes)
    width = state.slice_width(n)
    head = min(state.head_fill(slices), width)
    moves = []
    for b, measure in zip(state.blocks, state.ring_positions(state.latest), strict=True):
        place = 0 if measure < head else 1 + int((measure - head) // width)
        target = slices.nodes[min(place, n) % n]
        if target != b.hosts[0]:
            moves.append(BlockMove(b, b.hosts[0], target))
    if state.is_counted:
        slices = replace(slices, head_tuples=state.received - head)
    elif state.latest is not None:
        slices = replace(slices, head_start=state.latest + 1 - head)
    return replace(slices, lengths=(state.slice_length(n),) * n), moves


def newest_first_key(block: Block) -> tuple[int, int]:
    """Return a sort key that puts blocks of a stream in order of their latest tuples."""
    return (block.event_time_range[1] if block.event_time_range else block.batch), block.id


def oldest_first_key(block: Block) -> tuple[int, int]:
    """Return a sort key that puts blocks of a stream in order of their earliest tuples."""
    return (block.event_time_range[0] if block.event_time_range else block.batch), block.id


def event_time_extent(blocks: Sequence[Block]) -> int | None:
    """Return the event time that blocks cover; None if that of some block is unknown."""
    spans = [b.event_time_range for b in blocks if b.event_time_range]
    if len(spans) < len(blocks):
        return None
    return max(t for _, t in spans) + 1 - min(t for t, _ in spans) if spans else 0
