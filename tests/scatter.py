"""A placement for tests only: a hash assigns blocks to hosts, so every path hops between hosts."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from braid.core.coverage import may_join
from braid.core.facts import Facts
from braid.core.placement import Placement
from braid.core.plan import Block, Hop, Plan, Route, apply_derivations_and_drops


@dataclass(frozen=True)
class Scatter(Placement):
    """A placement that stores each fresh block on one host, drawn by a seeded generator.

    Paths visit the other streams in a drawn order.
    """

    hosts: int = 5
    pieces: int = 3
    seed: int = 0

    @property
    def key_space_size(self) -> int:
        return self.pieces

    def plan_batch(self, facts: Facts, state: Any) -> Plan:
        draw = random.Random(self.seed * 1_000_003 + facts.batch)
        live = apply_derivations_and_drops(facts.blocks, Plan())
        fresh, routes = [], []
        for stream in range(len(facts.streams)):
            mine = []
            for piece in range(self.pieces):
                id = facts.next_id + stream * self.pieces + piece
                block = Block(
                    id, stream, (piece, piece + 1), facts.batch, (draw.randrange(self.hosts),)
                )
                mine.append(block)
                routes.append(
                    Route(block, self._draw_paths(block, [*live, *fresh], len(facts.streams), draw))
                )
            fresh += mine
        return Plan(routes=tuple(routes), state=state)

    def _draw_paths(
        self, block: Block, known: list[Block], streams: int, draw: random.Random
    ) -> Any:
        others = [s for s in range(streams) if s != block.stream]
        draw.shuffle(others)
        path = []
        for s in others:
            probes: dict[int, list[int]] = {}
            for b in known:
                if b.stream == s and may_join(block, b, self.routing_key_source):
                    probes.setdefault(draw.choice(b.hosts), []).append(b.id)
            path.append(Hop(s, {h: tuple(ids) for h, ids in probes.items()}))
        return (tuple(path),) if all(hop.blocks_by_host for hop in path) else ()


@dataclass(frozen=True)
class ScatterByValue(Scatter):
    """The same for joins on an equality: blocks of different values never meet."""

    routing_key_source = "join"
