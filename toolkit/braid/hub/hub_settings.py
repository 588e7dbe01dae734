"""Constant settings of a running hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from braid.papers.reuse.network import Network
from braid.papers.reuse.planner import Reuse
from braid.papers.reuse.result_rates import Rates


@dataclass(frozen=True)
class HubSettings:
    """Settings of a hub.

    - ``time``: event-time column of all streams.
    - ``lateness``: maximum delay by stream, in microseconds.
    - ``ahead``, ``history``: microseconds; see QueryHub.
    - ``network``: None: one site.
    """

    time: str
    lateness: Mapping[str, int]
    ahead: int
    reuse: Reuse
    history: int
    network: Network | None
    stream_nodes: dict[str, str]
    rates: Rates | None
