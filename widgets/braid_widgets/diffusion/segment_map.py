"""The state map of segments: which host has which segment of a stream, and the path of a new row.

Aligned routing has segments of one master stream; coordinated routing has segments of all streams,
and a path of hops for each. Source: Gu 2007, sections 3 and 4, Fig. 3 and 5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any, NamedTuple, TypedDict

from braid.core.plan import Route
from braid.core.run_events import BatchCommitted, BatchPlanned, RunStarted
from braid.papers.diffusion.run_events import PathChosen, SegmentPlaced

from braid_widgets.base.columnar import Columns
from braid_widgets.base.key_figures import KeyFigure
from braid_widgets.base.run_view import HISTORY, RunView
from braid_widgets.base.state_maps import StateMap, make_copies_figure

SPAN = 24
"""Number of latest batches shown."""


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


class _Path(NamedTuple):
    """A chosen path, and the route of the first block of its segment."""

    chosen: PathChosen
    route: Route


class _Stored(NamedTuple):
    """Hosts that store a stream's rows of some batches, from 1."""

    hosts: tuple[int, ...]
    first: int
    last: int


class SegmentMap(StateMap):
    """The state map of runs that place segments of streams."""

    name = "segments"

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self._placed: list[SegmentPlaced] = []
        self._chosen: list[PathChosen] = []
        self._planned: BatchPlanned | None = None
        self._paths: dict[int, _Path] = {}
        self._routed: dict[int, list[_Stored]] = defaultdict(list)

    @classmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return SegmentPlaced in kinds or PathChosen in kinds

    def apply_event(self, event: Any) -> None:
        if isinstance(event, SegmentPlaced):
            self._placed = [*self._placed, event][-HISTORY:]
        elif isinstance(event, PathChosen):
            self._chosen.append(event)
        elif isinstance(event, BatchPlanned):
            self._planned = event
        elif isinstance(event, BatchCommitted):
            self._add_batch_paths()

    def _add_batch_paths(self) -> None:
        """Add the segments and the paths of this batch.

        A segment goes on while its stream's rows are stored on the same hosts by the same path.
        """
        routes = (
            {r.block.id: r for r in self._planned.routes if r.is_fresh} if self._planned else {}
        )
        chosen = {e.block: _Path(e, routes[e.block]) for e in self._chosen if e.block in routes}
        self._paths |= {path.chosen.stream: path for path in chosen.values()}
        for block in (route.block for route in routes.values()):
            before = self._routed[block.stream]
            goes_on = before and before[-1].hosts == block.hosts and block.id not in chosen
            first = before.pop().first if goes_on else block.batch + 1
            before.append(_Stored(block.hosts, first, block.batch + 1))
            del before[:-HISTORY]
        self._chosen, self._planned = [], None

    def make_key_figure(self) -> KeyFigure | None:
        """Return the copies that were sent for one row of the last batch."""
        return make_copies_figure(self.scene)

    def make_frame(self) -> SegmentsFrame:
        """Return the frame after the last commit."""
        commit = self.scene.last
        metrics = commit.host_metrics if commit else ()
        last = commit.batch + 1 if commit else 1
        stored = [host.stored_tuples for host in metrics]
        newest = [path for _, path in sorted(self._paths.items())]
        segments = (
            self._list_placed_segments(last) if self._placed else self._list_routed_segments(last)
        )
        return {
            "streams": list(self.scene.stream_aliases),
            "first": max(1, last - SPAN + 1),
            "last": last,
            "segments": Columns.from_records(Segment, segments),
            "stored": stored,
            "received": sum(commit.received_tuples) if commit else 0,
            "sent": sum(host.received_tuples for host in metrics),
            "hops": Columns.from_records(
                PathHop, [h for path in newest for h in _list_path_hops(path)]
            ),
            "orders": Columns.from_records(
                PathOrder, [o for path in newest for o in self._list_join_orders(path.chosen)]
            ),
            "latest": max(
                (path.chosen.batch, path.chosen.block, path.chosen.stream) for path in newest
            )[2]
            if newest
            else -1,
            "scale_max": max(stored, default=0),
        }

    def _list_placed_segments(self, last: int) -> list[Segment]:
        """Return the master's segments that the last ``SPAN`` batches touch, in order.

        A segment ends with its length, or earlier where the next one begins.
        """
        begins = [event.batch for event in self._placed[1:]]
        segments = []
        for event, end in zip(self._placed, [*begins, last], strict=False):
            latest = min(event.batch + event.batches, end, last)
            copied = event.copied_tuples
            segments.append(
                Segment(event.master_stream, event.host, event.batch + 1, latest, copied)
            )
        return [segment for segment in segments if segment.last > last - SPAN]

    def _list_routed_segments(self, last: int) -> list[Segment]:
        """Return the segments of all streams that the last ``SPAN`` batches touch.

        A segment may be on several hosts.
        """
        return [
            Segment(stream, host, each.first, each.last, 0)
            for stream, stored in sorted(self._routed.items())
            for each in stored
            if each.last > last - SPAN
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


def _list_path_hops(path: _Path) -> list[PathHop]:
    return [
        PathHop(path.chosen.stream, p, k, hop.stream, host, len(ids))
        for p, hops in enumerate(path.route.paths)
        for k, hop in enumerate(hops)
        for host, ids in hop.blocks_by_host.items()
    ]
