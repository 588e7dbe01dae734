"""The maps of shared slices: a chain on one host, a ring on several."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from braid.core.events import RunStarted
from braid.papers.slices.events import ChainSet

from braid_widgets.base.fold import Scene
from braid_widgets.base.maps import Map
from braid_widgets.slices import chain, shared_ring
from braid_widgets.slices.chain import ChainFrame
from braid_widgets.slices.shared_ring import SharedFrame
from braid_widgets.slices.shared_scene import SharedScene


class ChainMap(Map):
    """For runs whose slices are a chain on one host."""

    name = "chain"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.own = chain.ChainScene()

    @classmethod
    def suits(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return ChainSet in kinds and start.hosts == 1

    def apply(self, event: Any) -> None:
        self.own.apply(event)

    def frame(self) -> ChainFrame:
        """The picture after the last commit."""
        return chain.frame(self.own)


class SharedRingMap(Map):
    """For runs whose slices are shared by several hosts."""

    name = "shared_ring"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.own = SharedScene()

    @classmethod
    def suits(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return ChainSet in kinds and start.hosts > 1

    def apply(self, event: Any) -> None:
        self.own.apply(event)

    def frame(self) -> SharedFrame:
        """The picture after the last commit."""
        return shared_ring.frame(self.own)
