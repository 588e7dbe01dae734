"""The state map of a join of two streams: the join matrix and the hosts that join it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict

from braid.core.run_events import RunStarted

from braid_widgets.base.state_maps import StateMap
from braid_widgets.theta import grid, matrix
from braid_widgets.theta.grid import HostsFrame
from braid_widgets.theta.matrix import MatrixFrame


class GridFrame(TypedDict):
    """The join matrix and the hosts' grid after a batch."""

    matrix: MatrixFrame
    hosts: HostsFrame


class GridMap(StateMap):
    """The state map of two streams: every pair of their tuples is in the matrix once."""

    name = "grid"
    rank = 1

    @classmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return len(start.streams) == 2

    def make_frame(self) -> GridFrame:
        """Return the frame after the last commit."""
        return {"matrix": matrix.matrix_frame(self.scene), "hosts": grid.hosts_frame(self.scene)}
