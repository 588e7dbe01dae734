"""How the blocks of a group move when its mapping changes, over several batches and without
stopping the join.

Source: Elseidy et al. 2014, section 4.2.1 (Lemma 4.4: keep, discard, exchange with the partner,
nothing else moves), 4.2.2 (elasticity) and 4.3 (Algorithm 3, Theorem 4.4). In the words of
Algorithm 3: tau are the blocks born before the epoch, mu the blocks that are copied, Delta' those
born since. Delta, tuples of the old epoch that arrive late, is empty here: the barrier between
batches is "all signals received".
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from itertools import pairwise

from braid.core.draft import Draft
from braid.core.events import Copy
from braid.core.plan import Block, Hop, Keys, Route
from braid.papers.theta.groups import Group

RATE = 2
"""Migrated tuples that a host takes in for each new tuple it receives (Theorem 4.4)."""

PIECES = 16
"""A block is cut into this many pieces at most, for each new partition that it is copied to."""


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration that runs: the epoch began with batch ``since``; ``pending`` lists the copies
    (block, to, from) to come.

    ``allowance`` is a token bucket for each host, in tuples: it fills with RATE times the new
    tuples that the host receives, and a block is copied once its rows are covered.
    """

    since: int
    pending: tuple[Copy, ...]
    allowance: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Start:
    """A migration that begins, and its cost: tuples to copy, and tuples given up at once (of cuts,
    the expected number).
    """

    migration: Migration
    tuples: int
    discarded: int


def begin(draft: Draft, old: Group, new: Group, blocks: Iterable[Block], budget: float) -> Start:
    """Cut and discard what the new mapping does not need in its place, and list what must be
    copied; no copy is made yet.

    A block that already lies on all its new hosts (its stream's partitions are cut) needs no copy:
    KEEP and DISCARD of Algorithm 3. The other stream's blocks are MIGRATED: each goes from a host
    to its partner in the same old row or column, in pieces of about ``budget`` tuples, what a host
    may take in with one batch, so that the flow is steady.
    """
    pending: list[Copy] = []
    tuples = discarded = 0.0
    places = _sources(old, new)
    for b in blocks:
        ranges = _ranges(b, new, budget)
        for keys in ranges:
            share = b.rows * (keys[1] - keys[0]) / (b.keys[1] - b.keys[0])
            target = new.line(b.stream, new.part(b.stream, keys[0]))
            missing = [h for h in target if h not in b.hosts]
            stay = b.hosts if missing else target
            piece = b if len(ranges) == 1 else draft.cut(b, keys, stay)
            source = old.part(b.stream, b.keys[0])
            pending += [Copy(piece.id, places[h][b.stream][source], h) for h in missing]
            tuples += share * len(missing)
            discarded += share * (len(b.hosts) - len(stay))
            if piece is b:
                draft.drop(b, set(b.hosts) - set(stay))
        if len(ranges) > 1:
            draft.drop(b, b.hosts)
    return Start(Migration(draft.facts.batch, tuple(pending)), round(tuples), round(discarded))


def _ranges(block: Block, new: Group, budget: float) -> list[Keys]:
    """The key ranges that a block is cut in: by new partition, and what is to be copied further,
    into equal ones.
    """
    stream, (lo, hi) = block.stream, block.keys
    ranges: list[Keys] = []
    for part in range(new.part(stream, lo), new.part(stream, hi - 1) + 1):
        first, last = new.range(stream, part)
        first, last = max(first, lo), min(last, hi)
        moves = not set(block.hosts).issuperset(new.line(stream, part))
        pieces = (
            _pieces(block.rows * (last - first) / (hi - lo), last - first, budget) if moves else 1
        )
        ranges += pairwise(first + (last - first) * k // pieces for k in range(pieces + 1))
    return ranges


def _pieces(rows: float, keys: int, budget: float) -> int:
    """The least power of two of pieces that are within the budget, as far as keys allow; one when
    nothing is arriving.
    """
    pieces = 1
    while 0 < pieces * budget < rows and 2 * pieces <= min(keys, PIECES):
        pieces *= 2
    return pieces


def _sources(old: Group, new: Group) -> dict[int, tuple[dict[int, int], dict[int, int]]]:
    """By host and stream: from which host each old partition is copied. It shares the old column
    (for R) or row (for S).
    """
    cells = old.cells()
    sources = {}
    for h, (row, column) in new.cells().items():
        i, j = cells.get(h, (row // 2, column // 2))
        sources[h] = (
            {k: old.host(k, j) for k in range(old.mapping[0])},
            {k: old.host(i, k) for k in range(old.mapping[1])},
        )
    return sources


@dataclass(frozen=True, slots=True)
class Step:
    """One batch's share of a migration: ``rest`` goes on (None: it has ended); ``copies`` lists
    (block, to, from).

    ``moved`` and ``left`` are the tuples of the copies made and of those that wait.
    """

    rest: Migration | None
    copies: tuple[Copy, ...]
    moved: int
    left: int


def advance(draft: Draft, migration: Migration, group: Group, blocks: dict[int, Block]) -> Step:
    """Copy what the hosts' allowances cover and drop the replicas that the new mapping does not
    need.

    The pieces of a block come in the order of their keys, so that compaction can merge them while
    others are on their way.

    When the last batch brought no tuple at all, copies delay nothing, and all that is pending
    moves.
    """
    pending = [copy for copy in migration.pending if copy.block in blocks]
    idle = not any(draft.facts.last_received)
    allowance = _filled(
        migration, draft.facts.batch, blocks.values(), {copy.target for copy in pending}
    )
    copies: list[Copy] = []
    rest: list[Copy] = []
    for copy in pending:
        rows = blocks[copy.block].rows
        if idle or rows <= allowance[copy.target]:
            allowance[copy.target] -= rows
            copies.append(copy)
        else:
            rest.append(copy)
    _copy(draft, group, blocks, copies, {copy.block for copy in rest})
    moved, left = (sum(blocks[copy.block].rows for copy in some) for some in (copies, rest))
    return Step(
        Migration(migration.since, tuple(rest), allowance) if rest else None,
        tuple(copies),
        moved,
        left,
    )


def _filled(
    migration: Migration, batch: int, blocks: Iterable[Block], hosts: set[int]
) -> dict[int, int]:
    allowance = {h: migration.allowance.get(h, 0) for h in hosts}
    for b in blocks:
        if b.batch == batch - 1:
            for h in hosts.intersection(b.hosts):
                allowance[h] += RATE * b.rows
    return allowance


def _copy(
    draft: Draft, group: Group, blocks: dict[int, Block], copies: list[Copy], waiting: set[int]
) -> None:
    reads: dict[int, dict[int, int]] = {}
    for copy in copies:
        reads.setdefault(copy.block, {})[copy.target] = copy.source
    for id, where in reads.items():
        block = draft.copy(blocks[id], where)
        if id not in waiting:
            draft.drop(
                block,
                set(block.hosts)
                - set(group.line(block.stream, group.part(block.stream, block.keys[0]))),
            )


def settle(step: Step, since: int, live: Map[int, Block], known: Iterable[Block]) -> list[Route]:
    """mu joined with Delta': each block that has just arrived meets, there, the blocks born in the
    epoch that deferred it.

    ``known`` are the group's blocks of the last commit. The fresh blocks of this batch are not
    among them: they meet the arrivals on their own routes.
    """
    born: dict[tuple[int, int], list[int]] = {}
    for b in known:
        if b.batch >= since:
            for h in b.hosts:
                born.setdefault((b.stream, h), []).append(b.id)
    others_of = {at: tuple(ids) for at, ids in born.items()}
    probes: dict[int, dict[int, tuple[int, ...]]] = {}
    for id, _, dst in step.copies:
        if others := others_of.get((1 - live[id].stream, dst)):
            probes.setdefault(id, {})[dst] = others
    return [
        Route(live[id], ((Hop(1 - live[id].stream, where),),), fresh=False)
        for id, where in probes.items()
    ]
