"""Braid: stream joins you can watch, on Apache Spark."""

from __future__ import annotations

from importlib import import_module

from braid.core.plugin_provider import set_provider
from braid.plugins import PLACEMENTS, Plugins

TYPE_CHECKING = False  # see braid.core.plugin_provider
if TYPE_CHECKING:
    from typing import Any

    from braid.batch_spans import spans as spans
    from braid.condition.set_similarity import inner_product as inner_product
    from braid.errors import BraidError as BraidError
    from braid.errors import DamagedRunError as DamagedRunError
    from braid.errors import FencedError as FencedError
    from braid.errors import PredicateError as PredicateError
    from braid.errors import QueryError as QueryError
    from braid.hub.hub import QueryHub as QueryHub
    from braid.hub.hub_run import HubRun as HubRun
    from braid.join_run import JoinRun as JoinRun
    from braid.json_logs import logs as logs
    from braid.openlineage_events import lineage as lineage
    from braid.papers.baselines.centralized import Centralized as Centralized
    from braid.papers.baselines.hash_partition import HashPartition as HashPartition
    from braid.papers.baselines.join_biclique import JoinBiclique as JoinBiclique
    from braid.papers.diffusion.aligned import Aligned as Aligned
    from braid.papers.diffusion.coordinated import Coordinated as Coordinated
    from braid.papers.diffusion.semantics_unaware import SemanticsUnaware as SemanticsUnaware
    from braid.papers.hotkeys.hot_keys import HotKeys as HotKeys
    from braid.papers.hypercube.hypercube import HyperCube as HyperCube
    from braid.papers.psp.ring import Ring as Ring
    from braid.papers.reuse.network import Network as Network
    from braid.papers.shedding.shed import Shed as Shed
    from braid.papers.slices.chain import Chain as Chain
    from braid.papers.theta.grid import AdaptiveGrid as AdaptiveGrid
    from braid.papers.theta.grid import StaticGrid as StaticGrid
    from braid.papers.theta.grid import StaticOpt as StaticOpt
    from braid.row_origin import with_origin as with_origin
    from braid.run_bundle import bundle as bundle
    from braid.run_bundle import unbundle as unbundle
    from braid.run_doctor import doctor as doctor
    from braid.run_notifications import notify as notify
    from braid.run_views import watch as watch
    from braid.shared.shared_join import SharedJoin as SharedJoin
    from braid.shared.shared_run import SharedRun as SharedRun
    from braid.spark_session import session as session
    from braid.storage.generated_stream import GeneratedStream as GeneratedStream
    from braid.stream_join import StreamJoin as StreamJoin
    from braid.tuple_explanation import why as why

__version__ = "0.1.0"

_MODULES = {
    **PLACEMENTS,
    "BraidError": "braid.errors",
    "DamagedRunError": "braid.errors",
    "FencedError": "braid.errors",
    "GeneratedStream": "braid.storage.generated_stream",
    "HubRun": "braid.hub.hub_run",
    "JoinRun": "braid.join_run",
    "Network": "braid.papers.reuse.network",
    "PredicateError": "braid.errors",
    "QueryError": "braid.errors",
    "QueryHub": "braid.hub.hub",
    "SharedJoin": "braid.shared.shared_join",
    "SharedRun": "braid.shared.shared_run",
    "Shed": "braid.papers.shedding.shed",
    "StreamJoin": "braid.stream_join",
    "bundle": "braid.run_bundle",
    "doctor": "braid.run_doctor",
    "inner_product": "braid.condition.set_similarity",
    "lineage": "braid.openlineage_events",
    "logs": "braid.json_logs",
    "notify": "braid.run_notifications",
    "session": "braid.spark_session",
    "spans": "braid.batch_spans",
    "unbundle": "braid.run_bundle",
    "watch": "braid.run_views",
    "why": "braid.tuple_explanation",
    "with_origin": "braid.row_origin",
}
"""The module of each public name."""

__all__ = sorted(_MODULES)
_SPARK = ("py4j", "pyspark")
"""Packages of the extra for Spark that modules import."""

set_provider(Plugins())


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that a placement can be used without Spark."""
    if name not in _MODULES:
        raise AttributeError(f"module 'braid' has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _SPARK:
            raise
        from braid.util.optional_imports import missing_dependency_message

        message = missing_dependency_message("pyspark", "spark")
        raise ModuleNotFoundError(message, name=error.name) from None
