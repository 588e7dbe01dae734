"""The state map of segments: which host has which segment of a stream, and the path of a new row.

Aligned routing has segments of one master stream; coordinated routing has segments of all streams,
and a path of hops for each. Source: Gu 2007, sections 3 and 4, Fig. 3 and 5.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict

from braid.papers.diffusion.run_events import PathChosen, SegmentPlaced

from braid_widgets.base.columnar import Columns
from braid_widgets.base.run_view import RunView
from braid_widgets.base.state_maps import StateMap
from braid_widgets.diffusion.segment_view_state import PathHop, PathOrder, SegmentViewState

SPAN = 24
"""Number of latest batches shown."""


class Segment(NamedTuple):
    """A segment of a stream on a host.

    - ``first``, ``last``: its batches, from 1; the last one so far if it goes on.
    - ``held``: the last batch after which rows of it were there.
    - ``copied``: rows of the other streams that were copied there when it began.
    """

    stream: int
    host: int
    first: int
    last: int
    held: int
    copied: int


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


class SegmentMap(StateMap):
    """The state map of runs that place segments of streams."""

    name = "segments"
    shown_kinds = (SegmentPlaced, PathChosen)
    is_copying = True

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self.state = SegmentViewState(scene)

    def apply_event(self, event: Any) -> None:
        self.state.apply_event(event)

    def make_frame(self) -> SegmentsFrame:
        last, stored = self.last.batch + 1, self.list_by_host("stored_tuples")
        hops = [hop for _, hops in sorted(self.state.hops.items()) for hop in hops]
        orders = [order for _, orders in sorted(self.state.orders.items()) for order in orders]
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
            "latest": self.state.latest_stream,
            "scale_max": max(stored, default=0),
        }

    def _list_segments(self, last: int) -> list[Segment]:
        """Return the segments that the last ``SPAN`` batches touch, one for each of their hosts."""
        return [
            Segment(each.stream, host, each.first, min(each.last, last), each.held, each.copied)
            for _, stored in sorted(self.state.segments.items())
            for each in stored
            if max(each.held, min(each.last, last)) > last - SPAN
            for host in sorted(each.hosts)
        ]
