"""Blocks and plans, and the cover rule that makes a plan correct.

A *placement* reads facts about the live blocks. For one micro-batch it decides where each fresh
block is stored, and which other blocks it probes on which host. A plan is plain data; it never
contains a tuple.

The *cover rule*: the paths of a route meet every combination of due blocks of the other streams
exactly once. A fresh block of stream i must meet every live block of the other streams, and every
fresh block of a stream with a smaller index. These blocks are *due*. Each result is therefore
produced once, by its fresh member of highest index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, NamedTuple

import msgspec

from braid.core.key_boxes import KeyBoxes
from braid.core.shedding_plan import SheddingPlan

Keys = tuple[int, int]
"""Half-open range [low, high) of routing keys."""


def value_range(keys: Keys, keys_per_value: int) -> Keys:
    """Return the range of join values to which some routing keys belong.

    A value has ``keys_per_value`` consecutive keys.
    """
    return (keys[0] // keys_per_value, -(-keys[1] // keys_per_value))


Ids = tuple[int, ...]
"""Block ids."""

Keying = Literal["tuple", "join", "equalities"]
"""Input of the routing key's seeded hash.

- "tuple": the whole tuple.
- "join": the value of the equality that the streams are joined on.
- "equalities": the values of all equalities of the stream (see ``key_boxes``).
"""

Coverage = Literal["exactly once", "at most once"]
"""How often plans produce each result. "At most once" is for policies that omit results."""


@dataclass(frozen=True, slots=True)
class KeySpace:
    """The routing keys of a batch's tuples: the range [``first``, ``key_end``).

    - ``routing_key_source``: input of the hash.
    - ``size``: number of keys.
    - ``first``: first key. Default: 0.
    - ``keys_per_value``: number of keys of one join value, which tell its tuples apart. Default: 1.
    - ``boxes``: the meaning of the keys, if they are made from several values; otherwise None.
    """

    routing_key_source: Keying
    size: int
    first: int = 0
    keys_per_value: int = 1
    boxes: KeyBoxes | None = None

    @property
    def renumbers(self) -> bool:
        """Whether tuples arrive with another number than their routing key."""
        return self.boxes is not None

    @property
    def key_end(self) -> int:
        """The end of the range (exclusive)."""
        return self.first + self.size

    def routing_keys(self, number: Any, stream: int) -> Any:
        """Return the routing key for the number that a tuple of a stream arrives with.

        Accepts an array, too.
        """
        return number if self.boxes is None else self.boxes.routing_keys(number, stream)


class Block(msgspec.Struct, frozen=True, gc=False):
    """An immutable set of tuples of one stream that share a range of routing keys.

    - ``id``: number, unique in the run.
    - ``stream``: index of the stream.
    - ``key_range``: routing keys, half-open.
    - ``batch``: first micro-batch whose tuples it holds.
    - ``hosts``: hosts with a replica, sorted.
    - ``rows``, ``size_bytes``: size of one replica; 0 until the engine has reported it.
    - ``event_time_range``: (earliest, latest) event time in microseconds; None: not reported.
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
        """Return the block with these hosts."""
        copy = self.id, self.stream, self.key_range, self.batch, hosts
        return Block(*copy, self.rows, self.size_bytes, self.event_time_range)

    def with_contents(self, rows: int, size: int, span: tuple[int, int] | None) -> Block:
        """Return the block with the size and event times that were reported for it."""
        return Block(self.id, self.stream, self.key_range, self.batch, self.hosts, rows, size, span)


class Hop(msgspec.Struct, frozen=True, gc=False):
    """One step of a path: the blocks of ``stream`` to probe, by host.

    A block appears under one host only.
    """

    stream: int
    blocks_by_host: Mapping[int, tuple[int, ...]]

    def probed_blocks(self) -> tuple[int, ...]:
        """Return all blocks that the hop probes, host by host."""
        return tuple(chain.from_iterable(self.blocks_by_host.values()))


Path = tuple[Hop, ...]
"""Hops in order, one for each other stream. Matches of one hop go to every host of the next hop."""


class Route(msgspec.Struct, frozen=True, gc=False):
    """The storage and the probes of one block in one batch.

    - ``block``: the block. If fresh, it is stored on ``block.hosts`` and sent to the hosts of each
      path's first hop. If not, it is stored already (for example, it has just arrived on a new
      host) and settles pending pairs.
    - ``paths``: the probes to run.
    - ``deferred_blocks``: due blocks that a fresh block does not meet yet. A later route settles
      each pair.
    - ``is_fresh``: whether the block is new in this batch. Default: True.
    """

    block: Block
    paths: tuple[Path, ...]
    deferred_blocks: tuple[int, ...] = ()
    is_fresh: bool = True

    def reading_hosts(self) -> set[int]:
        """Return every host that needs the block's rows.

        These are the hosts that store it and those of each first hop.
        """
        hosts = set(self.block.hosts) if self.is_fresh else set()
        for path in self.paths:
            hosts.update(path[0].blocks_by_host)
        return hosts


class ReplicaCopy(NamedTuple):
    """A block copied from one host to another."""

    block: int
    source: int
    target: int


class Derivation(msgspec.Struct, frozen=True, gc=False):
    """A block made from existing replicas.

    A copy keeps the id of its only source and adds hosts. A cut narrows the key range. A merge has
    several sources.

    - ``block``: the new block.
    - ``source_blocks``: blocks that it is made from.
    - ``source_hosts``: by host that makes the block, the host whose replicas it reads. To read
      another host's replica, the source block must exist at the last commit.
    """

    block: Block
    source_blocks: tuple[int, ...]
    source_hosts: Mapping[int, int]


class Settle(NamedTuple):
    """Answers of stored tuples that became final: one host reads them and writes the unmatched.

    The tuples of a block with event times from ``since`` up to, excluding, ``until``.

    - ``block``, ``stream``: the block, as the state before the batch has it.
    - ``host``: host that reads its replica.
    - ``since``: microseconds; None: from the first tuple on.
    - ``until``: microseconds; infinite: all tuples.
    - ``query``: bit of the query that they are answered for; None: the run serves none.
    """

    block: int
    stream: int
    host: int
    since: int | None
    until: float
    query: int | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """Stored tuples that take their best partners, in an as-of join.

    They are the tuples of ``block`` with event times from ``since`` up to, excluding, ``until``.

    - ``block``: a block of the first stream, as the state before the batch has it.
    - ``host``: host that reads its replica, and takes the best of what others found.
    - ``since``: microseconds; None: from the first tuple on.
    - ``until``: microseconds; ``releases.AFTER_ALL``: all tuples.
    - ``partners``: blocks of the second stream to choose from, by the host that searches them.
    - ``query``: bit of the query that they are released for; None: the run serves none.
    """

    block: Block
    host: int
    since: int | None
    until: int
    partners: Hop
    query: int | None = None

    def involved_hosts(self) -> set[int]:
        """Return all hosts that take part."""
        return {self.host, *self.partners.blocks_by_host}


class Finding(NamedTuple):
    """A block with rows that are results by themselves, as they had their first partner, or none.

    One ``host`` writes these rows. ``query``: bit of the query that they are written for; None: the
    run serves none.
    """

    block: int
    stream: int
    host: int
    query: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of one micro-batch: derivations in order, then drops, then routes.

    - ``routes``: storage and probes by block.
    - ``derivations``: blocks to copy, cut or merge.
    - ``drops``: by block, the hosts that drop their replica.
    - ``pinned_blocks``: blocks that compaction must not merge before the next plan.
    - ``state``: the placement's own state, a JSON value; committed with the batch.
    - ``events``: events of the placement.
    - ``shedding``: the shares of tuples that take part; None: all take part.
    """

    routes: tuple[Route, ...] = ()
    derivations: tuple[Derivation, ...] = ()
    drops: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    pinned_blocks: frozenset[int] = frozenset()
    state: Any = None
    events: tuple[Any, ...] = ()
    shedding: SheddingPlan | None = None


def apply_derivations_and_drops(blocks: Iterable[Block], plan: Plan) -> tuple[Block, ...]:
    """Return the live blocks after the derivations and drops of a plan, before its routes."""
    live = {b.id: b for b in blocks}
    live |= {d.block.id: d.block for d in plan.derivations}
    for id, hosts in plan.drops.items():
        left = tuple(h for h in live[id].hosts if h not in hosts)
        if left:
            live[id] = live[id].with_hosts(left)
        else:
            del live[id]
    return tuple(live.values())


def combine_plans(compaction: Plan, plan: Plan) -> Plan:
    """Return one plan for compaction followed by the placement's plan."""
    drops = dict(compaction.drops)
    for id, hosts in plan.drops.items():
        drops[id] = tuple(sorted({*drops.get(id, ()), *hosts}))
    derivations = compaction.derivations + plan.derivations
    rest = plan.pinned_blocks, plan.state, plan.events, plan.shedding
    return Plan(plan.routes, derivations, drops, *rest)
