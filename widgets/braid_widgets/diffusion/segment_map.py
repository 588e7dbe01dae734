"""The state map of segments: which host has which segment of a stream, and the path of a new row.

Aligned routing has segments of one master stream; coordinated routing has segments of all streams,
and a path of hops for each. Source: Gu 2007, sections 3 and 4, Fig. 3 and 5.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple, TypedDict

from braid.core.plan import Route
from braid.core.run_events import BatchCommitted, BatchPlanned
from braid.papers.diffusion.run_events import PathChosen, SegmentPlaced

from braid_widgets.base.columnar import Columns
from braid_widgets.base.run_view import HISTORY, RunView
from braid_widgets.base.state_maps import StateMap

SPAN = 24
"""Number of latest batches shown."""
_PLACED = -1
"""Key of the segments that the placement reports, in order; others are by stream."""


class Segment(NamedTuple):
    """A segment of a stream on a host.

    - ``first``, ``last``: its batches, from 1; the last one so far if it goes on.
    - ``copied``: rows of the other streams that were copied there when it began.
    """

    stream: int
    host: int
    first: int
    last: int
    copied: int


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


class SegmentsFrame(TypedDict):
    """Segments by host after a batch.

    - ``first``, ``last``: the batches shown, from 1.
    - ``received``, ``sent``: rows of this batch, and copies of them that were sent to hosts.
    - ``hops``, ``orders``: under coordinated routing, the newest path of each stream.
    - ``latest``: the stream whose path was chosen last; -1 without paths.
    - ``scale_max``: rows of a full bar. Frames shown together use the maximum.
    """

    streams: list[str]
    first: int
    last: int
    segments: Columns[Segment]
    stored: list[int]
    received: int
    sent: int
    hops: Columns[PathHop]
    orders: Columns[PathOrder]
    latest: int
    scale_max: int


class _Stored(NamedTuple):
    """Hosts that store a stream's rows of some batches, from 1, as a segment does."""

    stream: int
    hosts: tuple[int, ...]
    first: int
    last: int
    copied: int = 0


class SegmentMap(StateMap):
    """The state map of runs that place segments of streams.

    If the placement does not report its segments, they are made of the routes: a segment goes on
    while its stream's rows are stored on the same hosts by the same path.
    """

    name = "segments"
    shown_kinds = (SegmentPlaced, PathChosen)
    is_copying = True

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self._segments: dict[int, list[_Stored]] = defaultdict(list)
        self._chosen: list[PathChosen] = []
        self._hops: dict[int, list[PathHop]] = {}
        self._orders: dict[int, list[PathOrder]] = {}
        self._latest = -1

    def apply_event(self, event: Any) -> None:
        if isinstance(event, SegmentPlaced):
            self._place_segment(event)
        elif isinstance(event, PathChosen):
            self._chosen.append(event)
        elif isinstance(event, BatchCommitted):
            plan = self.scene.find_latest(BatchPlanned)
            if plan is not None and plan.batch == event.batch:
                self._apply_plan(plan)

    def _place_segment(self, event: SegmentPlaced) -> None:
        """Add a segment of the master; the one before ends here at the latest."""
        placed, last = self._segments[_PLACED], event.batch + event.batches
        placed[-1:] = [s._replace(last=min(s.last, event.batch)) for s in placed[-1:]]
        placed.append(
            _Stored(event.master_stream, (event.host,), event.batch + 1, last, event.copied_tuples)
        )
        del placed[:-HISTORY]

    def _apply_plan(self, plan: BatchPlanned) -> None:
        """Add the paths that were chosen for a committed batch, and its segments."""
        routes = {route.block.id: route for route in plan.routes if route.is_fresh}
        chosen = {e.block: e for e in self._chosen if e.block in routes}
        for id, event in sorted(chosen.items()):
            self._hops[event.stream] = _list_path_hops(event.stream, routes[id])
            self._orders[event.stream] = self._list_join_orders(event)
            self._latest = event.stream
        self._chosen = []
        for block in (route.block for route in routes.values() if _PLACED not in self._segments):
            before, batch = self._segments[block.stream], block.batch + 1
            if before and before[-1].hosts == block.hosts and block.id not in chosen:
                before[-1] = before[-1]._replace(last=batch)
            else:
                before.append(_Stored(block.stream, block.hosts, batch, batch))
            del before[:-HISTORY]

    def make_frame(self) -> SegmentsFrame:
        last, stored = self.last.batch + 1, self.list_by_host("stored_tuples")
        hops = [hop for _, hops in sorted(self._hops.items()) for hop in hops]
        orders = [order for _, orders in sorted(self._orders.items()) for order in orders]
        return {
            "streams": list(self.scene.stream_aliases),
            "first": max(1, last - SPAN + 1),
            "last": last,
            "segments": Columns.from_records(Segment, self._list_segments(last)),
            "stored": stored,
            "received": sum(self.last.received_tuples),
            "sent": sum(self.list_by_host("received_tuples")),
            "hops": Columns.from_records(PathHop, hops),
            "orders": Columns.from_records(PathOrder, orders),
            "latest": self._latest,
            "scale_max": max(stored, default=0),
        }

    def _list_segments(self, last: int) -> list[Segment]:
        """Return the segments that the last ``SPAN`` batches touch, one for each of their hosts."""
        return [
            Segment(each.stream, host, each.first, min(each.last, last), each.copied)
            for _, stored in sorted(self._segments.items())
            for each in stored
            if min(each.last, last) > last - SPAN
            for host in sorted(each.hosts)
        ]

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
