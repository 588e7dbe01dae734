"""The state map of a ring of slices."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from braid.core.run_events import RunStarted
from braid.papers.psp.run_events import SliceTableChanged

from braid_widgets.base.run_view import RunView
from braid_widgets.base.state_maps import StateMap
from braid_widgets.psp import ring
from braid_widgets.psp.ring import RingFrame


class RingMap(StateMap):
    """The state map of runs whose slices form a ring."""

    name = "ring"

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self.own = ring.RingViewState()

    @classmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return SliceTableChanged in kinds

    def apply_event(self, event: Any) -> None:
        self.own.apply_event(event)

    def make_frame(self) -> RingFrame:
        """Return the frame after the last commit."""
        return ring.make_frame(self.own)
