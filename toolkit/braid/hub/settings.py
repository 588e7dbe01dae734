"""What stays the same while a hub runs."""

from __future__ import annotations

from dataclasses import dataclass

from braid.papers.reuse.network import Network
from braid.papers.reuse.planner import Reuse
from braid.papers.reuse.rates import Rates


@dataclass(frozen=True)
class Settings:
    """What stays the same while a hub runs; ``slack`` (lateness) and ``history`` in microseconds.
    ``network`` None: one site.
    """

    time: str
    slack: int
    reuse: Reuse
    history: int
    network: Network | None
    at: dict[str, str]
    rates: Rates | None
