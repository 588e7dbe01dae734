"""What a plan does before its routes, collected while it is made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from braid.core.facts import Facts
from braid.core.plan import Block, Derivation, Keys, Plan, apply_derivations_and_drops


@dataclass
class PlanBuilder:
    """Derivations and drops, and the new ids that they and the fresh blocks get."""

    facts: Facts
    derivations: list[Derivation] = field(default_factory=list)
    drops: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ids = count(self.facts.next_id)

    def live_blocks(self) -> tuple[Block, ...]:
        """The live blocks once these derivations and drops are done."""
        return apply_derivations_and_drops(
            self.facts.blocks, Plan(derivations=tuple(self.derivations), drops=self.drops)
        )

    def cut_block(self, block: Block, keys: Keys, hosts: tuple[int, ...]) -> Block:
        """The tuples of a block in a narrower range of keys, as views on hosts that have the
        block.
        """
        piece = replace(block, id=next(self.ids), key_range=keys, hosts=hosts, rows=0, size_bytes=0)
        self.derivations.append(Derivation(piece, (block.id,), {h: h for h in hosts}))
        return piece

    def copy_block(self, block: Block, reads: dict[int, int]) -> Block:
        """Replicas of a block on more hosts: ``reads`` maps each to the host it copies from."""
        more = block.with_hosts(tuple(sorted({*block.hosts, *reads})))
        self.derivations.append(Derivation(more, (block.id,), reads))
        return more

    def drop_replicas(self, block: Block, hosts: Iterable[int]) -> None:
        """Let these hosts, as far as they hold the block, give it up."""
        if gone := tuple(sorted(set(hosts) & set(block.hosts))):
            self.drops[block.id] = gone
