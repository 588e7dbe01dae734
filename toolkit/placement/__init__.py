"""Placement policies: each looks at facts of blocks and plans one micro-batch. None sees a tuple; none knows Spark."""

from toolkit.placement.biclique import JoinBiclique
from toolkit.placement.centralized import Centralized
from toolkit.placement.grid import AdaptiveGrid, StaticGrid, StaticOpt
from toolkit.placement.hashing import HashPartition

__all__ = ["AdaptiveGrid", "Centralized", "HashPartition", "JoinBiclique", "StaticGrid", "StaticOpt"]
