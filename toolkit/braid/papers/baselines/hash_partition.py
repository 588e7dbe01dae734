"""Hash partitioning on the join value: the parallel symmetric hash join (SHJ).

Source: the baseline of Elseidy et al. 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from braid.core.facts import Facts
from braid.core.placement import Placement, check_hosts
from braid.core.plan import Plan
from braid.papers.common.route_builders import local_routes


@dataclass(frozen=True)
class HashPartition(Placement):
    """SHJ: the hash of a tuple's join value selects the one host that stores and joins it.

    No tuple is sent twice. It needs an equality that connects all streams, and a frequent value
    overloads one host. Supports any number of streams. Raises ValueError for hosts < 1.
    """

    routing_key_source = "join"
    label = "SHJ (hash of the join key)"
    fixed_hosts_reason = "with others, the hash would send nearly all rows elsewhere"

    hosts: int

    def __post_init__(self) -> None:
        check_hosts(self.hosts)

    @property
    def key_space_size(self) -> int:
        return self.hosts

    @classmethod
    def example_instances(cls) -> tuple[Self, ...]:
        return cls(5), cls(3)

    def plan_batch(self, facts: Facts, state: Any) -> Plan:
        return Plan(tuple(local_routes(facts, [((h, h + 1), h) for h in range(self.hosts)])))
