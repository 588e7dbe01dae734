"""Braid: stream joins you can watch, on Apache Spark."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "StreamJoin": "join",
    "JoinRun": "run",
    "SharedJoin": "sharing.join",
    "SharedRun": "sharing.run",
    "session": "session",
    "AdaptiveGrid": "papers.theta.grid",
    "StaticGrid": "papers.theta.grid",
    "StaticOpt": "papers.theta.grid",
    "Aligned": "papers.diffusion.aligned",
    "Coordinated": "papers.diffusion.coordinated",
    "SemanticsUnaware": "papers.diffusion.unaware",
    "Ring": "papers.psp.ring",
    "Chain": "papers.slices.chain",
    "HashPartition": "papers.baselines.hashing",
    "JoinBiclique": "papers.baselines.biclique",
    "Centralized": "papers.baselines.centralized",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """What people use, imported when it is first asked for: a policy needs no Spark."""
    if name not in _HOME:
        raise AttributeError(f"module 'braid' has no attribute {name!r}")
    return getattr(import_module(f"braid.{_HOME[name]}"), name)
