"""Blocks, plans, and the one rule that makes a plan correct.

A join is a plan of blocks. A *placement* looks at the facts of the live blocks and says, for one micro-batch, where each
fresh block is stored and which other blocks it meets, on which host. A plan is plain data: it never sees a tuple.

The *cover rule* is the whole correctness argument: over the paths of a route, every combination of due blocks of the other
streams is met exactly once. A fresh block of stream i is due to meet every live block of the other streams, and of the blocks
that are fresh in the same batch those of streams with a smaller index; so every result group is made once, by its fresh
member of highest index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import prod
from typing import Any, Literal, Protocol

from toolkit.audience import Served

Keys = tuple[int, int]
"""Half-open range [lo, hi) of routing keys."""

Keying = Literal["tuple", "join"]
"""What the routing key is a seeded hash of: the whole tuple, or the value that an equality joins on."""


@dataclass(frozen=True, slots=True)
class Block:
    """An immutable set of tuples of one stream that share a range of routing keys.

    ``batch`` is the first micro-batch whose tuples it holds, ``hosts`` are the hosts with a replica (sorted), ``rows`` and
    ``bytes`` count one replica (0 until the engine has reported them), ``span`` is (earliest, latest) event time in
    microseconds.
    """

    id: int
    stream: int
    keys: Keys
    batch: int
    hosts: tuple[int, ...]
    rows: int = 0
    bytes: int = 0
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a path: the blocks of ``stream`` to probe, by host. No block appears under two hosts."""

    stream: int
    probes: Mapping[int, tuple[int, ...]]

    def blocks(self) -> tuple[int, ...]:
        return tuple(b for ids in self.probes.values() for b in ids)


Path = tuple[Hop, ...]
"""Hops in order, one for each other stream. What one hop finds goes to all hosts of the next."""


@dataclass(frozen=True, slots=True)
class Route:
    """What happens to one block in one batch.

    A *fresh* block is stored on ``block.hosts`` and sent to the hosts of the first hop of each path. A block that is not
    fresh is already stored (it has just arrived on a new host, say) and settles what it owes. ``deferred`` names the due
    blocks that a fresh block does not meet now; a later route settles each pair.
    """

    block: Block
    paths: tuple[Path, ...]
    deferred: tuple[int, ...] = ()
    fresh: bool = True

    def hosts(self) -> set[int]:
        """Every host that needs the rows of the block: those that store it and those of each first hop."""
        store = set(self.block.hosts) if self.fresh else set()
        return store.union(*(path[0].probes for path in self.paths))


@dataclass(frozen=True, slots=True)
class Derivation:
    """A block made from replicas that exist: ``reads`` maps each host that makes it to the host whose replicas it reads.

    A copy keeps the id of its only source and adds hosts; a cut narrows ``keys``; a merge has several sources. A host that
    reads another host's replica may name only blocks that were there at the last commit.
    """

    block: Block
    sources: tuple[int, ...]
    reads: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of one micro-batch: derivations (in order), then drops, then routes.

    ``drops`` maps a block to the hosts that give up their replica. ``pinned`` blocks must not be merged by upkeep before
    the next plan. ``state`` is the placement's own state, a JSON value, committed with the batch. ``events`` are what the
    placement has to tell.
    """

    routes: tuple[Route, ...] = ()
    derivations: tuple[Derivation, ...] = ()
    drops: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    pinned: frozenset[int] = frozenset()
    state: Any = None
    events: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What one host did in the last committed batch, and what it holds now: counts only, so that a plan repeats exactly.

    ``received`` tuples; ``arrived`` intermediate results from other hosts; ``sent`` intermediate results, once for each host
    that they went to; ``probed`` tuples and intermediate results that met something here, once for each hop; ``compared``
    candidate pairs; ``stored`` tuples and ``stored_bytes``; ``network_bytes`` that came in: tuples, intermediate results and
    moved blocks.
    """

    received: int = 0
    arrived: int = 0
    sent: int = 0
    probed: int = 0
    compared: int = 0
    stored: int = 0
    stored_bytes: int = 0
    network_bytes: int = 0


Visit = tuple[tuple[int, ...], int]
"""A step of a join order: the streams visited so far (sorted), and the next one."""

Matches = dict[Visit, tuple[float, float]]
"""By step, the pairs (intermediate result, tuple) that were considered and those that matched."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a placement may know when it plans batch number ``batch``: no tuple, no clock.

    ``blocks`` are live, after upkeep; new ids start at ``next_id``; ``received`` and ``received_bytes`` count, by stream,
    the tuples of all committed batches; ``last_received`` those of the last one. By stream, ``windows`` are W_i and ``latest``
    the latest event times, in microseconds; None stands for full history and for a stream that has been silent. ``usage`` is
    by host and may be shorter than the hosts are many. ``matches`` measures selectivity, recent batches counting most: see
    Matches. ``horizon`` is, by stream, the earliest event time still expected of the others. A run that serves many queries tells
    them, and how many tuples had each routing key, by stream, recent batches counting most (``lineage``).
    """

    batch: int
    streams: tuple[str, ...]
    blocks: tuple[Block, ...]
    next_id: int
    received: tuple[int, ...]
    received_bytes: tuple[int, ...]
    last_received: tuple[int, ...]
    windows: tuple[int | None, ...] = ()
    latest: tuple[int | None, ...] = ()
    usage: tuple[Usage, ...] = ()
    matches: Matches = field(default_factory=dict)
    horizon: tuple[int | None, ...] = ()
    queries: tuple[Served, ...] = ()
    lineage: tuple[Mapping[int, float], ...] = ()


class Placement(Protocol):
    """A placement policy: frozen settings and two pure functions.

    ``hosts`` is J, the number of logical hosts at the start; ``keys`` the size of the routing-key space; ``keying`` what the
    routing key hashes. Four more attributes are optional: ``max_hosts``, the most hosts that it may ever use; ``owes(state)``,
    whether batches without tuples must follow because results are owed; ``slices(state)``, by stream the ages (microseconds,
    rising) across which upkeep must not merge blocks; ``complete = False`` for a baseline that loses results, whose plans are not
    held against the cover rule.
    """

    @property
    def hosts(self) -> int: ...

    @property
    def keying(self) -> Keying: ...

    @property
    def keys(self) -> int: ...

    def start(self, streams: int) -> Any:
        """The first state. Raises ValueError when the placement cannot serve that many streams."""
        ...

    def plan(self, facts: Facts, state: Any) -> Plan: ...


class WholeBatches:
    """For placements that never split what a stream brings in a micro-batch: there is one routing key."""

    @property
    def keying(self) -> Keying:
        return "tuple"

    @property
    def keys(self) -> int:
        return 1


def after(blocks: Iterable[Block], plan: Plan) -> tuple[Block, ...]:
    """The live blocks once the derivations and drops of a plan are done, before its routes."""
    live = {b.id: b for b in blocks}
    live |= {d.block.id: d.block for d in plan.derivations}
    for id, hosts in plan.drops.items():
        left = tuple(h for h in live[id].hosts if h not in hosts)
        if left:
            live[id] = replace(live[id], hosts=left)
        else:
            del live[id]
    return tuple(live.values())


def joined(kept: Plan, plan: Plan) -> Plan:
    """Upkeep and the placement's plan as one."""
    drops = dict(kept.drops)
    for id, hosts in plan.drops.items():
        drops[id] = tuple(sorted({*drops.get(id, ()), *hosts}))
    return replace(plan, derivations=kept.derivations + plan.derivations, drops=drops)


class CoverError(AssertionError):
    """A plan that would lose a result or make one twice; the message tells the story of the block it concerns."""


def meets(a: Block, b: Block, keying: Keying) -> bool:
    """Whether two blocks of different streams can have tuples that join, as far as routing keys tell."""
    return keying == "tuple" or (a.keys[0] < b.keys[1] and b.keys[0] < a.keys[1])


@dataclass
class CoverLedger:
    """Checks the cover rule on every plan of a run, in order, and keeps account of what is deferred.

    ``owed`` holds the pairs (fresh block, other block) that some plan deferred and none has settled yet; a run is complete
    when it is empty.
    """

    streams: int
    keying: Keying = "tuple"
    owed: set[tuple[int, int]] = field(default_factory=set)

    def check(self, blocks: Iterable[Block], plan: Plan) -> None:
        """Raise CoverError unless the plan, made for these live blocks, obeys the cover rule."""
        blocks = tuple(blocks)
        _check_derivations(blocks, plan)
        live = {b.id: b for b in after(blocks, plan)}
        self._check_replaced(blocks, live)
        fresh = {r.block.id: r.block for r in plan.routes if r.fresh}
        if clash := fresh.keys() & live.keys():
            raise CoverError(f"fresh blocks {sorted(clash)} carry ids that are in use")
        for route in plan.routes:
            _check_presence(route, live | fresh, self.streams)
            if route.fresh:
                self._check_fresh(route, live, fresh)
            else:
                self._settle(route)

    def _check_replaced(self, blocks: tuple[Block, ...], live: Mapping[int, Block]) -> None:
        gone = {b.id for b in blocks} - live.keys()
        for pair in self.owed:
            if gone.intersection(pair):
                raise CoverError(f"pair {pair} is owed, but block {min(gone.intersection(pair))} is dropped or replaced")

    def _check_fresh(self, route: Route, live: Mapping[int, Block], fresh: Mapping[int, Block]) -> None:
        f = route.block
        candidates = [*live.values(), *(g for g in fresh.values() if g.stream < f.stream)]
        due: dict[int, set[int]] = {s: set() for s in range(self.streams) if s != f.stream}
        for b in candidates:
            if b.stream != f.stream and meets(f, b, self.keying):
                due[b.stream].add(b.id)
        if route.deferred:
            self._defer(route, due)
        _check_boxes(f, route.paths, due)

    def _defer(self, route: Route, due: dict[int, set[int]]) -> None:
        if self.streams != 2:
            raise CoverError(f"block {route.block.id} defers blocks, which only joins of two streams may")
        (others,) = due.values()
        if not others.issuperset(route.deferred):
            raise CoverError(f"block {route.block.id} defers {sorted(set(route.deferred) - others)}, which are not due")
        others.difference_update(route.deferred)
        self.owed |= {(route.block.id, b) for b in route.deferred}

    def _settle(self, route: Route) -> None:
        b = route.block.id
        for path in route.paths:
            for other in path[0].blocks():
                pair = (other, b) if (other, b) in self.owed else (b, other)
                if pair not in self.owed:
                    raise CoverError(f"block {b} settles block {other}, but owes it nothing")
                self.owed.remove(pair)


def _check_boxes(f: Block, paths: tuple[Path, ...], due: Mapping[int, set[int]]) -> None:
    """Each path meets the product of its hops' blocks (a box); the boxes must tile the product of the due blocks."""
    boxes = []
    for path in paths:
        box = {hop.stream: hop.blocks() for hop in path}
        if twice := [s for s, ids in box.items() if len(set(ids)) < len(ids)]:
            raise CoverError(f"block {f.id} meets a block of stream {twice[0]} on two hosts of one hop")
        if extra := [b for s, ids in box.items() for b in set(ids) - due[s]]:
            raise CoverError(f"block {f.id} meets blocks {sorted(extra)}, which are not due")
        boxes.append({s: set(ids) for s, ids in box.items()})
    for a, b in combinations(boxes, 2):
        if all(a[s] & b[s] for s in due):
            both = [sorted(a[s] & b[s]) for s in due]
            raise CoverError(f"block {f.id} meets blocks {both} on two paths")
    met = sum(prod(len(ids) for ids in box.values()) for box in boxes)
    if met != (wanted := prod(len(ids) for ids in due.values())):
        missing = {s: sorted(ids - set().union(*(box[s] for box in boxes))) for s, ids in due.items()}
        raise CoverError(f"block {f.id} meets {met} of {wanted} due combinations; blocks never met, by stream: {missing}")


def _check_presence(route: Route, known: Mapping[int, Block], streams: int) -> None:
    f = route.block
    for path in route.paths:
        if sorted(hop.stream for hop in path) != [s for s in range(streams) if s != f.stream]:
            raise CoverError(f"a path of block {f.id} visits streams {[hop.stream for hop in path]} of {streams}")
        if not route.fresh and not set(path[0].probes) <= set(f.hosts):
            raise CoverError(f"block {f.id} is stored on {f.hosts} but probes from {sorted(path[0].probes)}")
        for hop in path:
            for host, ids in hop.probes.items():
                for b in ids:
                    if b not in known or host not in known[b].hosts or known[b].stream != hop.stream:
                        raise CoverError(f"block {f.id} probes block {b} of stream {hop.stream} on host {host}: not there")


def _check_derivations(blocks: tuple[Block, ...], plan: Plan) -> None:
    committed = {b.id: b for b in blocks}
    known = dict(committed)
    for d in plan.derivations:
        for dst, src in d.reads.items():
            where = known if src == dst else committed
            for s in d.sources:
                if s not in where or src not in where[s].hosts:
                    raise CoverError(f"block {d.block.id} on host {dst} reads block {s} of host {src}: not there")
        kept = set(known[d.block.id].hosts) if d.sources == (d.block.id,) else set()
        if set(d.block.hosts) != kept | set(d.reads):
            raise CoverError(f"block {d.block.id} is said to be on {d.block.hosts} but made on {sorted(d.reads)}")
        known[d.block.id] = d.block
