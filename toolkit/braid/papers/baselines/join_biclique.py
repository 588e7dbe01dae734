"""Join-biclique (BiStream).

Source: Lin, Ooi, Wang and Yu, "Scalable Distributed Stream Join Processing", SIGMOD 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import lcm
from typing import Any, Self

from braid.core.facts import Facts
from braid.core.placement import Placement, check_hosts
from braid.core.plan import Block, Hop, Plan, Route


@dataclass(frozen=True)
class JoinBiclique(Placement):
    """Two sides of hosts: a tuple is stored once, on its own side, and broadcast to the other side.

    No tuple is stored twice, for any condition, but each is sent to 1 + |other side| hosts.
    ``left`` is the number of hosts that store stream 0; None: half. Supports two streams. Raises
    ValueError for fewer than two hosts or an empty side.
    """

    label = "Join-biclique"

    hosts: int
    left: int | None = None

    def __post_init__(self) -> None:
        check_hosts(self.hosts)
        if self.hosts < 2:
            raise ValueError(
                "hosts is 1; a join-biclique needs 2 or more, at least one for each stream"
            )
        if self.left is not None and not 0 < self.left < self.hosts:
            raise ValueError(
                f"left is {self.left}; it must leave a host for each stream, so be from 1 to "
                f"{self.hosts - 1}"
            )

    @property
    def key_space_size(self) -> int:
        return lcm(*self._count_side_hosts())

    def _count_side_hosts(self) -> tuple[int, int]:
        left = self.left or self.hosts // 2
        return left, self.hosts - left

    @classmethod
    def example_instances(cls) -> tuple[Self, ...]:
        return cls(5), cls(4, left=1)

    def initial_state(self, streams: int) -> Any:
        if streams != 2:
            raise ValueError(f"JoinBiclique joins two streams, one on either side; got {streams}")
        return None

    def plan_batch(self, facts: Facts, state: Any) -> Plan:
        ids, sides = count(facts.next_id), self._count_side_hosts()
        stored = list(facts.blocks)
        routes = []
        for stream in (0, 1):
            probes: dict[int, list[int]] = {}
            for b in stored:
                if b.stream != stream:
                    probes.setdefault(b.hosts[0], []).append(b.id)
            paths = (
                ((Hop(1 - stream, {h: tuple(ids) for h, ids in probes.items()}),),)
                if probes
                else ()
            )
            width = self.key_space_size // sides[stream]
            for k in range(sides[stream]):
                block = Block(
                    next(ids),
                    stream,
                    (k * width, (k + 1) * width),
                    facts.batch,
                    (stream * sides[0] + k,),
                )
                stored.append(block)
                routes.append(Route(block, paths))
        return Plan(tuple(routes))
