"""A builder for the derivations and drops of a plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from braid.core.facts import Facts
from braid.core.plan import Block, Derivation, Keys, Plan, Route, apply_derivations_and_drops


@dataclass
class PlanBuilder:
    """Derivations and drops of a plan in progress, and the ids of its new blocks."""

    facts: Facts
    derivations: list[Derivation] = field(default_factory=list)
    drops: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ids = count(self.facts.next_id)

    def live_blocks(self) -> tuple[Block, ...]:
        """Return the live blocks after the derivations and drops so far."""
        return apply_derivations_and_drops(
            self.facts.blocks, Plan(derivations=tuple(self.derivations), drops=self.drops)
        )

    def cut_block(self, block: Block, keys: Keys, hosts: tuple[int, ...]) -> Block:
        """Cut a block to a narrower range of keys, on hosts that hold it, and return the new block.

        No tuple is copied.
        """
        piece = Block(next(self.ids), block.stream, keys, block.batch, hosts)
        piece = piece.with_contents(0, 0, block.event_time_range)
        self.derivations.append(Derivation(piece, (block.id,), {h: h for h in hosts}))
        return piece

    def copy_block(self, block: Block, reads: dict[int, int]) -> Block:
        """Copy a block to more hosts and return it.

        ``reads`` maps each new host to the host it reads from.
        """
        more = block.with_hosts(tuple(sorted({*block.hosts, *reads})))
        self.derivations.append(Derivation(more, (block.id,), reads))
        return more

    def make_plan(
        self,
        routes: Iterable[Route],
        state: Any,
        events: Iterable[Any] = (),
        pinned_blocks: Iterable[int] = (),
    ) -> Plan:
        """Return the plan with these routes and the derivations and drops so far."""
        return Plan(
            tuple(routes),
            tuple(self.derivations),
            self.drops,
            frozenset(pinned_blocks),
            state,
            tuple(events),
        )

    def drop_replicas(self, block: Block, hosts: Iterable[int]) -> None:
        """Drop the replicas of a block on these hosts. Hosts without one are ignored."""
        if gone := tuple(sorted(set(hosts) & set(block.hosts))):
            self.drops[block.id] = gone
