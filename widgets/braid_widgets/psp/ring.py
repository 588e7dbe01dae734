"""The ring of a PSP run: slices by stream and node, head and tail, tuples in flight, moved state.

It is a function of events alone: ``make_frames`` folds them, and ``RingPlayer`` shows them, live or
recorded, and as static HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

from braid.core.batch_history import LiveBlocks
from braid.core.run_events import BatchCommitted, EventsTrimmed, RunStarted
from braid.papers.psp.run_events import RingResized, SliceTableChanged, StateRelocated, TailMoved
from braid.util.durations import format_duration

from braid_widgets.base.columnar import Columns
from braid_widgets.base.player import MOST, Player, collect_frames, read_bundle
from braid_widgets.base.text import data_origin


class RingSlice(NamedTuple):
    """A node's slice of a stream.

    - ``share``: its tuples divided by those of the fullest slice.
    - ``retention``: the slice's length, in words.
    """

    stream: int
    node: int
    rows: int
    share: float
    retention: str


class RingMove(TypedDict):
    """State that moves from node to node because of its age or because the ring was resized."""

    stream: int
    source: int
    target: int
    rows: int
    reason: str


class RingEnds(TypedDict):
    """The nodes of a stream's head and tail."""

    head: int | None
    tail: int | None


class RingFrame(TypedDict):
    """The ring after a batch.

    - ``ends``, ``probes``, ``live``, ``lengths`` (windows in words): by stream.
    - ``loads``: by node, for the nodes in ``loaded``.
    """

    title: str
    note: str
    batch: str
    nodes: int
    streams: list[str]
    slices: Columns[RingSlice]
    ends: list[RingEnds]
    probes: list[int]
    partial: int
    moves: list[RingMove]
    stored: int
    sent: int
    live: list[int]
    lengths: list[str]
    measure: str
    loaded: list[int]
    loads: list[int]


@dataclass
class RingViewState:
    """The visible state of a ring; fold events into it in order with ``apply_event``.

    - ``blocks``: the live blocks.
    - ``nodes``, ``lengths`` (microseconds), ``tails``: by stream, as in the events.
    - ``moves``: the moves of the batch.
    """

    start: RunStarted | None = None
    last: BatchCommitted | None = None
    nodes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    lengths: dict[int, tuple[int | None, ...]] = field(default_factory=dict)
    tails: dict[int, int | None] = field(default_factory=dict)
    blocks: LiveBlocks = field(default_factory=LiveBlocks)
    moves: list[StateRelocated] = field(default_factory=list)
    resized: RingResized | None = None

    def apply_event(self, event: Any) -> None:
        """Fold in one event; ignore kinds that change nothing visible."""
        if isinstance(event, RunStarted):
            self.start = event
        elif isinstance(event, EventsTrimmed):
            self.blocks.apply_changes(event.live_blocks)
        elif isinstance(event, SliceTableChanged):
            self.nodes[event.stream], self.lengths[event.stream] = event.nodes, event.slice_lengths
        elif isinstance(event, TailMoved):
            self.tails[event.stream] = event.host
        elif isinstance(event, StateRelocated):
            self.moves.append(event)
        elif isinstance(event, RingResized):
            self.resized = event
        elif isinstance(event, BatchCommitted):
            self._apply_commit(event)

    def _apply_commit(self, event: BatchCommitted) -> None:
        self.blocks.apply_commit(event)
        self.moves = [m for m in self.moves if m.batch == event.batch]
        self.resized = self.resized if self.resized and self.resized.batch == event.batch else None
        self.last = event

    def count_stored_tuples(self) -> dict[tuple[int, int], int]:
        """Return tuples stored, by stream and node."""
        stored: dict[tuple[int, int], int] = {}
        for b in self.blocks.values():
            for host in b.hosts:
                stored[b.stream, host] = stored.get((b.stream, host), 0) + b.rows
        return stored


def make_frame(scene: RingViewState) -> RingFrame:
    """Return one frame. Raises ValueError if the events are not a ring's with a committed batch."""
    if scene.start is None or scene.last is None or not scene.nodes:
        raise ValueError(
            "these events tell of no ring; the ring view needs a run of the placement Ring, with a "
            "batch or more"
        )
    start, last, rows = scene.start, scene.last, scene.count_stored_tuples()
    streams, modelled = list(start.streams), start.time_source == "modelled"
    used = {n for nodes in scene.nodes.values() for n in nodes} | {n for _, n in rows}
    most = max(rows.values(), default=1)
    slices = [
        RingSlice(s, n, k, round(k / most, 3), _format_slice_length(scene, s, n))
        for (s, n), k in sorted(rows.items())
    ]
    loads = [
        last.host_metrics[n].compared_pairs if n < len(last.host_metrics) else 0
        for n in sorted(used)
    ]
    return {
        "title": _format_title(scene),
        "note": _format_note(scene),
        "batch": f"batch {last.batch + 1}",
        "nodes": max(used) + 1,
        "streams": streams,
        "slices": Columns.from_records(RingSlice, slices),
        "ends": [
            {"head": scene.nodes[s][0] if s in scene.nodes else None, "tail": scene.tails.get(s)}
            for s in range(len(streams))
        ],
        "probes": list(last.received_tuples),
        "partial": last.total_host_metrics.received_partials,
        "moves": _summarize_moves(scene),
        "stored": last.total_host_metrics.stored_tuples,
        "sent": last.total_host_metrics.received_tuples + last.total_host_metrics.received_partials,
        "live": list(last.live_tuples),
        "lengths": [start.windows.get(name, "full history") for name in streams],
        "measure": f"Pairs compared in this batch ({'modelled' if modelled else 'counted'})",
        "loaded": sorted(used),
        "loads": loads,
    }


def _format_title(scene: RingViewState) -> str:
    assert scene.start is not None and scene.last is not None
    form = scene.start.placement_settings.get("form", "")
    return (
        f"batch {scene.last.batch + 1} of {scene.start.planned_batches or '?'} · PSP ring, "
        f"{form} · "
        f"{' ⋈ '.join(scene.start.streams)}"
    )


def _format_note(scene: RingViewState) -> str:
    assert scene.start is not None and scene.last is not None
    run = data_origin(scene.start)
    if scene.resized is not None:
        r = scene.resized
        return (
            f"{run} · the ring goes from {r.previous_nodes} to {r.nodes} nodes ({r.reason}, "
            f"{r.relocation} "
            "relocation)"
        )
    moved = sum(m.moved_tuples for m in scene.moves)
    return (
        f"{run} · in this batch: {scene.last.results:,} results, {moved:,} tuples of state moved"
        if moved
        else f"{run} · in this batch: {scene.last.results:,} results, no state moved"
    )


def _format_slice_length(scene: RingViewState, stream: int, node: int) -> str:
    """Return the event time that a slice spans, in words; empty if unknown."""
    nodes = scene.nodes.get(stream, ())
    length = scene.lengths[stream][nodes.index(node)] if node in nodes else None
    return "" if length is None else format_duration(length)


def _summarize_moves(scene: RingViewState) -> list[RingMove]:
    """Return one move per stream, pair of nodes and reason."""
    moves: dict[tuple[int, int, int, str], int] = {}
    for event in scene.moves:
        for block, source, target in event.moves:
            key = (event.stream, source, target, event.reason)
            rows = scene.blocks[block].rows if block in scene.blocks else 0
            moves[key] = moves.get(key, 0) + rows
    return [
        {"stream": s, "source": a, "target": b, "rows": rows, "reason": why}
        for (s, a, b, why), rows in sorted(moves.items())
    ]


def make_frames(events: Iterable[Any], most: int = MOST) -> list[RingFrame]:
    """Return a frame per committed batch, thinned to ``most``; the last is always included."""
    return collect_frames(events, RingViewState(), make_frame, most)


class RingPlayer(Player):
    """The ring of a run, with Back, Forward, Play and a slider; it opens on the last batch.

    Raises ValueError if the events are not those of a ring with a committed batch.
    """

    _name, _esm = "ring", read_bundle("ring")

    def __init__(self, events: Iterable[Any]) -> None:
        super().__init__(make_frames(events))

    def load_events(self, events: Iterable[Any]) -> None:
        """Show another run, or new frames of the same run; see ``Player.refresh``."""
        self.refresh(make_frames(events))

    def held_tuples(self, frame: Mapping[str, Any]) -> dict[str, dict[str, float]]:
        """Return the held tuples by stream and node."""
        slices = frame["slices"]
        tuples: dict[str, dict[str, float]] = {name: {} for name in frame["streams"]}
        for s, node, rows in zip(slices["stream"], slices["node"], slices["rows"], strict=True):
            tuples[frame["streams"][s]][f"node {node}"] = rows
        return tuples
