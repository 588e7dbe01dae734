"""Braid: stream joins you can watch, on Apache Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from braid.condition.sets import inner_product as inner_product
    from braid.engine.durable import DamagedRunError as DamagedRunError
    from braid.hub.hub import QueryHub as QueryHub
    from braid.hub.run import HubRun as HubRun
    from braid.join import StreamJoin as StreamJoin
    from braid.model.auto import Auto as Auto
    from braid.papers.baselines.biclique import JoinBiclique as JoinBiclique
    from braid.papers.baselines.centralized import Centralized as Centralized
    from braid.papers.baselines.hashing import HashPartition as HashPartition
    from braid.papers.diffusion.aligned import Aligned as Aligned
    from braid.papers.diffusion.coordinated import Coordinated as Coordinated
    from braid.papers.diffusion.unaware import SemanticsUnaware as SemanticsUnaware
    from braid.papers.psp.ring import Ring as Ring
    from braid.papers.reuse.network import Network as Network
    from braid.papers.reuse.topologies import make_figure_1 as make_figure_1
    from braid.papers.reuse.topologies import transit_stub as transit_stub
    from braid.papers.shedding.shed import Shed as Shed
    from braid.papers.slices.chain import Chain as Chain
    from braid.papers.theta.grid import AdaptiveGrid as AdaptiveGrid
    from braid.papers.theta.grid import StaticGrid as StaticGrid
    from braid.papers.theta.grid import StaticOpt as StaticOpt
    from braid.run import JoinRun as JoinRun
    from braid.sharing.join import SharedJoin as SharedJoin
    from braid.sharing.run import SharedRun as SharedRun
    from braid.spark_session import session as session
    from braid.watching import watch as watch

__version__ = "0.1.0"

_HOME = {
    "StreamJoin": "join",
    "JoinRun": "run",
    "SharedJoin": "sharing.join",
    "SharedRun": "sharing.run",
    "QueryHub": "hub.hub",
    "HubRun": "hub.run",
    "session": "spark_session",
    "AdaptiveGrid": "papers.theta.grid",
    "StaticGrid": "papers.theta.grid",
    "StaticOpt": "papers.theta.grid",
    "Aligned": "papers.diffusion.aligned",
    "Coordinated": "papers.diffusion.coordinated",
    "SemanticsUnaware": "papers.diffusion.unaware",
    "Ring": "papers.psp.ring",
    "Shed": "papers.shedding.shed",
    "inner_product": "condition.sets",
    "Chain": "papers.slices.chain",
    "Network": "papers.reuse.network",
    "figure1": "papers.reuse.topologies",
    "transit_stub": "papers.reuse.topologies",
    "Auto": "model.auto",
    "HashPartition": "papers.baselines.hashing",
    "JoinBiclique": "papers.baselines.biclique",
    "Centralized": "papers.baselines.centralized",
    "watch": "watching",
    "Damaged": "engine.durable",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """What people use, imported when it is first asked for: a policy needs no Spark."""
    if name not in _HOME:
        raise AttributeError(f"module 'braid' has no attribute {name!r}")
    return getattr(import_module(f"braid.{_HOME[name]}"), name)
