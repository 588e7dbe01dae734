"""A placement of one screen: every micro-batch is stored whole on the next host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from braid.core.facts import Facts
from braid.core.placement import Placement, check_hosts
from braid.core.plan import Block, Hop, Path, Plan, Route


@dataclass(frozen=True)
class InTurn(Placement):
    """Placement of batch b on host b mod J; new tuples visit the other hosts, stream after stream.

    Serves any condition and any number of streams. Raises ValueError for hosts < 1.
    """

    label = "In turn (a batch a host)"

    hosts: int

    def __post_init__(self) -> None:
        check_hosts(self.hosts)

    def plan_batch(self, facts: Facts, state: None) -> Plan:
        stored = list(facts.blocks)
        routes = []
        for stream in range(len(facts.streams)):
            where = (facts.batch % self.hosts,)
            block = Block(
                facts.next_id + stream, stream, (0, self.key_space_size), facts.batch, where
            )
            routes.append(Route(block, _list_paths(block, stored, len(facts.streams))))
            stored.append(block)  # fresh blocks of later streams meet it, and it does not meet them
        return Plan(tuple(routes))


def _list_paths(block: Block, stored: Sequence[Block], streams: int) -> tuple[Path, ...]:
    """Return one path: a hop for each other stream, with its blocks by their host."""
    hops = []
    for other in range(streams):
        probes: dict[int, tuple[int, ...]] = {}
        for b in stored:
            if b.stream == other:
                probes[b.hosts[0]] = (*probes.get(b.hosts[0], ()), b.id)
        if other != block.stream:
            hops.append(Hop(other, probes))
    return (tuple(hops),) if all(hop.blocks_by_host for hop in hops) else ()
