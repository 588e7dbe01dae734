"""A placement of one screen: every micro-batch is stored whole on the next host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from braid.core.facts import Facts
from braid.core.placement import Placement, check_hosts
from braid.core.plan import Block, Hop, Path, Plan, Route


@dataclass(frozen=True)
class InTurn(Placement):
    """Batch b lies on host b mod J; new tuples visit what lies elsewhere, stream after stream.

    Serves any condition and any number of streams. Raises ValueError for hosts < 1.
    """

    label = "In turn (a batch a host)"

    hosts: int

    def __post_init__(self) -> None:
        check_hosts(self.hosts)

    def plan_batch(self, facts: Facts, state: None) -> Plan:
        known = list(facts.blocks)
        routes = []
        for stream in range(len(facts.streams)):
            where = (facts.batch % self.hosts,)
            block = Block(
                facts.next_id + stream, stream, (0, self.key_space_size), facts.batch, where
            )
            routes.append(Route(block, _paths(block, known, len(facts.streams))))
            known.append(block)  # fresh blocks of later streams meet it, and it does not meet them
        return Plan(tuple(routes))


def _paths(block: Block, known: Sequence[Block], streams: int) -> tuple[Path, ...]:
    """One path: a hop for each other stream, with its blocks by the host that they lie on."""
    hops = []
    for other in range(streams):
        probes: dict[int, tuple[int, ...]] = {}
        for b in known:
            if b.stream == other:
                probes[b.hosts[0]] = (*probes.get(b.hosts[0], ()), b.id)
        if other != block.stream:
            hops.append(Hop(other, probes))
    return (tuple(hops),) if all(hop.blocks_by_host for hop in hops) else ()
