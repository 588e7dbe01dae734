"""What stays the same while a hub runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from braid.papers.reuse.network import Network
from braid.papers.reuse.planner import Reuse
from braid.papers.reuse.stream_rates import Rates


@dataclass(frozen=True)
class HubSettings:
    """The settings of a hub; ``slack`` (lateness, by stream), ``ahead`` and ``history`` are in
    microseconds. ``network`` None: one site.
    """

    time: str
    lateness: Mapping[str, int]
    ahead: int
    reuse: Reuse
    history: int
    network: Network | None
    stream_nodes: dict[str, str]
    rates: Rates | None
