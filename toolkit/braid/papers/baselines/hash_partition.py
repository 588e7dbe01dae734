"""Hash partitioning on the join value: the parallel symmetric hash join (SHJ) that Elseidy et al.
2014 compare with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from braid.core.facts import Facts
from braid.core.placement import Placement, check_hosts
from braid.core.plan import Plan
from braid.papers.common.local_routes import local_routes


@dataclass(frozen=True)
class HashPartition(Placement):
    """SHJ: a tuple is stored and joined on the host that the hash of its join value says, and
    nowhere else.

    No tuple is sent twice, but it takes an equality that links all streams, and a frequent value
    loads one host. Serves any number of streams. Raises ValueError for hosts < 1.
    """

    routing_key_source = "join"
    label = "SHJ (hash of the join key)"

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
        return Plan(
            tuple(local_routes(facts, [((h, h + 1), h) for h in range(self.hosts)])), state=state
        )
