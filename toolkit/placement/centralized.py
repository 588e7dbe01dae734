"""All on one host: the baseline without any distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolkit.placement.routing import local_routes
from toolkit.plan import Facts, Plan, WholeBatches


@dataclass(frozen=True)
class Centralized(WholeBatches):
    """One host stores and joins every tuple. Serves any condition and any number of streams."""

    @property
    def hosts(self) -> int:
        return 1

    def start(self, streams: int) -> Any:
        return None

    def plan(self, facts: Facts, state: Any) -> Plan:
        return Plan(tuple(local_routes(facts, [((0, 1), 0)])), state=state)
