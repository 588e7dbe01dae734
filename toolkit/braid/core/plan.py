"""Blocks, plans, and the one rule that makes a plan correct.

A join is a plan of blocks. A *placement* looks at the facts of the live blocks and says, for one
micro-batch, where each fresh block is stored and which other blocks it meets, on which host. A plan
is plain data: it never sees a tuple.

The *cover rule* is the whole correctness argument: over the paths of a route, every combination of
due blocks of the other streams is met exactly once. A fresh block of stream i is due to meet every
live block of the other streams, and of the blocks that are fresh in the same batch those of streams
with a smaller index; so every result group is made once, by its fresh member of highest index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from braid.core.shedding_plan import SheddingPlan

Keys = tuple[int, int]
"""Half-open range [lo, hi) of routing keys."""

Ids = tuple[int, ...]
"""Blocks, by id."""

Keying = Literal["tuple", "join", "both"]
"""What the routing key is a seeded hash of: the whole tuple, the value that an equality joins on,
or each of them in a number of its own, of which every batch takes one (see KeySpace).
"""

Coverage = Literal["exactly once", "at most once"]
"""How often plans make each result. "At most once" is for policies that leave results out."""


@dataclass(frozen=True, slots=True)
class KeySpace:
    """The routing keys of a batch's tuples: [``first``, ``end``). Blocks with smaller keys came
    under an earlier placement, whose keys tell nothing of these: they are met by all.

    Tuples come with their routing key where ``divide`` is 0; else with a number of both hashes, of
    which the batch takes ``first + number // divide % keys``.
    """

    routing_key_source: Keying
    size: int
    first: int = 0
    divisor: int = 0

    @property
    def key_end(self) -> int:
        """The first key behind it."""
        return self.first + self.size

    def routing_keys(self, number: Any) -> Any:
        """The routing key of what a tuple comes with; or the keys of an array of them."""
        return self.first + number // self.divisor % self.size if self.divisor else number


@dataclass(frozen=True, slots=True)
class Block:
    """An immutable set of tuples of one stream that share a range of routing keys.

    ``batch`` is the first micro-batch whose tuples it holds, ``hosts`` are the hosts with a replica
    (sorted), ``rows`` and ``bytes`` count one replica (0 until the engine has reported them),
    ``span`` is (earliest, latest) event time in microseconds.
    """

    id: int
    stream: int
    key_range: Keys
    batch: int
    hosts: tuple[int, ...]
    rows: int = 0
    size_bytes: int = 0
    event_time_range: tuple[int, int] | None = None

    def with_hosts(self, hosts: tuple[int, ...]) -> Block:
        """The same block on these hosts."""
        made = (
            self.id,
            self.stream,
            self.key_range,
            self.batch,
            hosts,
        )  # replace() takes many times this
        return Block(*made, self.rows, self.size_bytes, self.event_time_range)

    def with_contents(self, rows: int, size: int, span: tuple[int, int] | None) -> Block:
        """The same block with what it turned out to hold."""
        return Block(self.id, self.stream, self.key_range, self.batch, self.hosts, rows, size, span)


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a path: the blocks of ``stream`` to probe, by host. No block appears under two
    hosts.
    """

    stream: int
    blocks_by_host: Mapping[int, tuple[int, ...]]

    def probed_blocks(self) -> tuple[int, ...]:
        """All blocks that the hop probes, host by host."""
        return tuple(chain.from_iterable(self.blocks_by_host.values()))


Path = tuple[Hop, ...]
"""Hops in order, one for each other stream. What one hop finds goes to all hosts of the next."""


@dataclass(frozen=True, slots=True)
class Route:
    """What happens to one block in one batch.

    A *fresh* block is stored on ``block.hosts`` and sent to the hosts of the first hop of each
    path. A block that is not fresh is already stored (it has just arrived on a new host, say) and
    settles what it owes. ``deferred`` names the due blocks that a fresh block does not meet now; a
    later route settles each pair.
    """

    block: Block
    paths: tuple[Path, ...]
    deferred_blocks: tuple[int, ...] = ()
    is_fresh: bool = True

    def reading_hosts(self) -> set[int]:
        """Every host that needs the rows of the block: those that store it and those of each first
        hop.
        """
        store = set(self.block.hosts) if self.is_fresh else set()
        return store.union(*(path[0].blocks_by_host for path in self.paths))


@dataclass(frozen=True, slots=True)
class Derivation:
    """A block made from replicas that exist: ``reads`` maps each host that makes it to the host
    whose replicas it reads.

    A copy keeps the id of its only source and adds hosts; a cut narrows ``keys``; a merge has
    several sources. A host that reads another host's replica may name only blocks that were there
    at the last commit.
    """

    block: Block
    source_blocks: tuple[int, ...]
    source_hosts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of one micro-batch: derivations (in order), then drops, then routes.

    ``drops`` maps a block to the hosts that give up their replica. ``pinned`` blocks must not be
    merged by compaction before the next plan. ``state`` is the placement's own state, a JSON value,
    committed with the batch. ``events`` are what the placement has to tell. ``harvest`` says what
    share of the tuples that set out takes part; None: all do.
    """

    routes: tuple[Route, ...] = ()
    derivations: tuple[Derivation, ...] = ()
    drops: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    pinned_blocks: frozenset[int] = frozenset()
    state: Any = None
    events: tuple[Any, ...] = ()
    shedding: SheddingPlan | None = None


def apply_derivations_and_drops(blocks: Iterable[Block], plan: Plan) -> tuple[Block, ...]:
    """The live blocks once the derivations and drops of a plan are done, before its routes."""
    live = {b.id: b for b in blocks}
    live |= {d.block.id: d.block for d in plan.derivations}
    for id, hosts in plan.drops.items():
        left = tuple(h for h in live[id].hosts if h not in hosts)
        if left:
            live[id] = live[id].with_hosts(left)
        else:
            del live[id]
    return tuple(live.values())


def combine_plans(kept: Plan, plan: Plan) -> Plan:
    """Compaction and the placement's plan as one."""
    drops = dict(kept.drops)
    for id, hosts in plan.drops.items():
        drops[id] = tuple(sorted({*drops.get(id, ()), *hosts}))
    derivations = kept.derivations + plan.derivations
    told = plan.pinned_blocks, plan.state, plan.events, plan.shedding
    return Plan(plan.routes, derivations, drops, *told)
