"""The map of a ring of slices."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from braid.core.events import RunStarted
from braid.papers.psp.events import SlicesSet

from braid_widgets.base.fold import Scene
from braid_widgets.base.maps import Map
from braid_widgets.psp import ring
from braid_widgets.psp.ring import RingFrame


class RingMap(Map):
    """For runs whose slices lie on a ring."""

    name = "ring"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.own = ring.RingScene()

    @classmethod
    def suits(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return SlicesSet in kinds

    def apply(self, event: Any) -> None:
        self.own.apply(event)

    def frame(self) -> RingFrame:
        """The picture after the last commit."""
        return ring.frame(self.own)
