"""The state maps of shared slices: a chain on one host, a ring on several."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from braid.core.run_events import RunStarted
from braid.papers.slices.run_events import ChainChanged

from braid_widgets.base.run_view import RunView
from braid_widgets.base.state_maps import StateMap
from braid_widgets.slices import chain, shared_ring
from braid_widgets.slices.chain_records import ChainFrame
from braid_widgets.slices.shared_ring import SharedFrame
from braid_widgets.slices.shared_view_state import SharedViewState


class ChainMap(StateMap):
    """The state map of runs whose slices form a chain on one host."""

    name = "chain"

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self.own = chain.ChainViewState()

    @classmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return ChainChanged in kinds and start.hosts == 1

    def apply_event(self, event: Any) -> None:
        self.own.apply_event(event)

    def make_frame(self) -> ChainFrame:
        """Return the frame after the last commit."""
        return chain.make_frame(self.own)


class SharedRingMap(StateMap):
    """The state map of runs whose slices are shared by several hosts."""

    name = "shared_ring"

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self.own = SharedViewState()

    @classmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return ChainChanged in kinds and start.hosts > 1

    def apply_event(self, event: Any) -> None:
        self.own.apply_event(event)

    def make_frame(self) -> SharedFrame:
        """Return the frame after the last commit."""
        return shared_ring.make_frame(self.own)
