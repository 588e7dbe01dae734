"""The visible state of a run that places segments of streams, and the paths of new rows.

Source: Gu 2007, sections 3 and 4.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from braid.core.plan import Route
from braid.core.run_events import BatchCommitted, BatchPlanned
from braid.papers.diffusion.run_events import PathChosen, SegmentPlaced

from braid_widgets.base.run_view import HISTORY, RunView

_PLACED = -1
"""Key of the segments that the placement reports, in order; others are by stream."""


class PathHop(NamedTuple):
    """A host that new rows of ``stream`` visit.

    - ``path``, ``hop``: numbers of the path and of its hop, from 0.
    - ``partner``: the stream that is met there; ``blocks`` is the number of its blocks.
    """

    stream: int
    path: int
    hop: int
    partner: int
    host: int
    blocks: int


class PathOrder(NamedTuple):
    """A join order that was compared; the chosen one is the first of its stream.

    - ``order``: the streams of its hops, in words.
    - ``overhead``: estimated rows sent for one row of ``stream``.
    """

    stream: int
    order: str
    overhead: float


class StoredSegment(NamedTuple):
    """Hosts that store a stream's rows of some batches, from 1, as a segment does.

    ``held``: the last batch after which such rows were still in the stream's window.
    """

    stream: int
    hosts: tuple[int, ...]
    first: int
    last: int
    copied: int = 0
    held: int = 0


class SegmentViewState:
    """Segments, and the newest path of each stream.

    If the placement does not report its segments, they are made of the routes: a segment goes on
    while its stream's rows are stored on the same hosts by the same path.

    - ``latest_stream``: the stream whose path was chosen last; -1 without paths.
    """

    def __init__(self, scene: RunView) -> None:
        self.scene = scene
        self.segments: dict[int, list[StoredSegment]] = defaultdict(list)
        self.hops: dict[int, list[PathHop]] = {}
        self.orders: dict[int, list[PathOrder]] = {}
        self.latest_stream = -1
        self._chosen: list[PathChosen] = []

    def apply_event(self, event: Any) -> None:
        """Fold in one event; ignore kinds that place nothing."""
        if isinstance(event, SegmentPlaced):
            self._place_segment(event)
        elif isinstance(event, PathChosen):
            self._chosen.append(event)
        elif isinstance(event, BatchCommitted):
            plan = self.scene.find_latest(BatchPlanned)
            if plan is not None and plan.batch == event.batch:
                self._apply_plan(plan)
            self._extend_segments(event.batch)

    def _extend_segments(self, batch: int) -> None:
        """Note the segments whose rows are still held; windows lose their oldest rows first."""
        oldest: dict[int, int] = {}
        for block in self.scene.blocks.values():
            oldest[block.stream] = min(block.batch, oldest.get(block.stream, batch))
        for key, segments in self.segments.items():
            self.segments[key] = [
                s._replace(held=batch + 1) if s.last > oldest.get(s.stream, batch) else s
                for s in segments
            ]

    def _place_segment(self, event: SegmentPlaced) -> None:
        """Add a segment of the master; the one before ends here at the latest."""
        placed, last = self.segments[_PLACED], event.batch + event.batches
        placed[-1:] = [s._replace(last=min(s.last, event.batch)) for s in placed[-1:]]
        placed.append(
            StoredSegment(
                event.master_stream, (event.host,), event.batch + 1, last, event.copied_tuples
            )
        )
        del placed[:-HISTORY]

    def _apply_plan(self, plan: BatchPlanned) -> None:
        """Add the paths that were chosen for a committed batch, and its segments."""
        routes = {route.block.id: route for route in plan.routes if route.is_fresh}
        chosen = {e.block: e for e in self._chosen if e.block in routes}
        for id, event in sorted(chosen.items()):
            self.hops[event.stream] = _list_path_hops(event.stream, routes[id])
            self.orders[event.stream] = self._list_join_orders(event)
            self.latest_stream = event.stream
        self._chosen = []
        for block in (route.block for route in routes.values() if _PLACED not in self.segments):
            before, batch = self.segments[block.stream], block.batch + 1
            if before and before[-1].hosts == block.hosts and block.id not in chosen:
                before[-1] = before[-1]._replace(last=batch)
            else:
                before.append(StoredSegment(block.stream, block.hosts, batch, batch))
            del before[:-HISTORY]

    def _list_join_orders(self, chosen: PathChosen) -> list[PathOrder]:
        names = self.scene.stream_aliases
        return [
            PathOrder(
                chosen.stream,
                ", then ".join(names[s] for s in order.streams),
                float(f"{order.estimated_overhead:.4g}"),
            )
            for order in chosen.join_orders
        ]


def _list_path_hops(stream: int, route: Route) -> list[PathHop]:
    return [
        PathHop(stream, p, k, hop.stream, host, len(ids))
        for p, hops in enumerate(route.paths)
        for k, hop in enumerate(hops)
        for host, ids in hop.blocks_by_host.items()
    ]
