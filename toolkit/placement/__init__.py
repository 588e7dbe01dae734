"""Placement policies: each looks at facts of blocks and plans one micro-batch. None sees a tuple; none knows Spark."""

from toolkit.placement.aligned import Aligned
from toolkit.placement.biclique import JoinBiclique
from toolkit.placement.centralized import Centralized
from toolkit.placement.coordinated import Coordinated
from toolkit.placement.grid import AdaptiveGrid, StaticGrid, StaticOpt
from toolkit.placement.hashing import HashPartition
from toolkit.placement.ring import Ring
from toolkit.placement.semantics_unaware import SemanticsUnaware

__all__ = [
    "AdaptiveGrid", "Aligned", "Centralized", "Coordinated", "HashPartition", "JoinBiclique", "Ring", "SemanticsUnaware",
    "StaticGrid", "StaticOpt",
]  # fmt: skip
