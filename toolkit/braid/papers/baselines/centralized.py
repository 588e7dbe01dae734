"""The baseline without distribution: everything on one host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from braid.core.facts import Facts
from braid.core.placement import Placement
from braid.core.plan import Plan
from braid.papers.common.route_builders import local_routes


@dataclass(frozen=True)
class Centralized(Placement):
    """One host stores and joins every tuple. Supports any condition and any number of streams."""

    label = "Centralized (one host)"

    @property
    def hosts(self) -> int:
        """Always 1."""
        return 1

    def plan_batch(self, facts: Facts, state: Any) -> Plan:
        return Plan(tuple(local_routes(facts, [((0, 1), 0)])))
