"""The state map of aligned routing: which host has which segment of the master stream.

Source: Gu 2007, section 3 and Fig. 3.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, TypedDict

from braid.core.run_events import RunStarted
from braid.papers.diffusion.run_events import SegmentPlaced

from braid_widgets.base.columnar import Columns
from braid_widgets.base.run_view import HISTORY, RunView
from braid_widgets.base.state_maps import StateMap

SPAN = 24
"""Number of latest batches shown."""


class Segment(NamedTuple):
    """A segment of a master stream on a host.

    - ``first``, ``last``: its batches, from 1; the last one so far if it goes on.
    - ``copied``: rows of the other streams that were copied there when it began.
    """

    stream: int
    host: int
    first: int
    last: int
    copied: int


class SegmentsFrame(TypedDict):
    """Segments by host after a batch.

    - ``first``, ``last``: the batches shown, from 1.
    - ``received``, ``sent``: rows of this batch, and copies of them that were sent to hosts.
    - ``scale_max``: rows of a full bar. Frames shown together use the maximum.
    """

    streams: list[str]
    first: int
    last: int
    segments: Columns[Segment]
    stored: list[int]
    received: int
    sent: int
    scale_max: int


class SegmentMap(StateMap):
    """The state map of runs that place segments of a master stream."""

    name = "segments"

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self._placed: list[SegmentPlaced] = []

    @classmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return SegmentPlaced in kinds

    def apply_event(self, event: Any) -> None:
        if isinstance(event, SegmentPlaced):
            self._placed = [*self._placed, event][-HISTORY:]

    def make_frame(self) -> SegmentsFrame:
        """Return the frame after the last commit."""
        commit = self.scene.last
        metrics = commit.host_metrics if commit else ()
        last = commit.batch + 1 if commit else 1
        stored = [host.stored_tuples for host in metrics]
        return {
            "streams": list(self.scene.stream_aliases),
            "first": max(1, last - SPAN + 1),
            "last": last,
            "segments": Columns.from_records(Segment, self._list_segments(last)),
            "stored": stored,
            "received": sum(commit.received_tuples) if commit else 0,
            "sent": sum(host.received_tuples for host in metrics),
            "scale_max": max(stored, default=0),
        }

    def _list_segments(self, last: int) -> list[Segment]:
        """Return the segments that the last ``SPAN`` batches touch, in order.

        A segment ends with its length, or earlier where the next one begins.
        """
        begins = [*(event.batch for event in self._placed[1:]), last]
        segments = []
        for event, end in zip(self._placed, begins, strict=True):
            latest = min(event.batch + event.batches, end, last)
            copied = event.copied_tuples
            segments.append(
                Segment(event.master_stream, event.host, event.batch + 1, latest, copied)
            )
        return [segment for segment in segments if segment.last > last - SPAN]
