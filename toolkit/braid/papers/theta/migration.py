"""Migration of a group's blocks when its mapping changes, over several batches, during the join.

In the words of Algorithm 3: tau are the blocks born before the epoch, mu the blocks that are
copied, Delta' those born since. Delta, tuples of the old epoch that arrive late, is empty here: the
barrier between batches is "all signals received".

Source: Elseidy et al. 2014, section 4.2.1 (Lemma 4.4: keep, discard, exchange with the partner,
nothing else moves), 4.2.2 (elasticity) and 4.3 (Algorithm 3, Theorem 4.4).
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from itertools import pairwise

from braid.core.plan import Block, Hop, Keys, ReplicaCopy, Route
from braid.core.plan_builder import PlanBuilder
from braid.papers.theta.host_groups import HostGroup

RATE = 2
"""Migrated tuples that a host takes in for each new tuple it receives (Theorem 4.4)."""

PIECES = 16
"""Maximum number of pieces of a block, for each new partition that it is copied to."""


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration in progress.

    The epoch began with batch ``since_batch``; ``pending_copies`` are still to be made.
    ``allowance`` is a token bucket for each host, in tuples: it fills with RATE times the new
    tuples that the host receives, and a block is copied once its rows are covered.
    """

    since_batch: int
    pending_copies: tuple[ReplicaCopy, ...]
    allowance: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MigrationStart:
    """A new migration and its cost.

    ``tuples`` are to be copied, ``discarded`` ones dropped at once (of cuts, the expected number).
    """

    migration: Migration
    tuples: int
    discarded: int


def begin_migration(
    draft: PlanBuilder, old: HostGroup, new: HostGroup, blocks: Iterable[Block], budget: float
) -> MigrationStart:
    """Cut and discard blocks for the new mapping, and list the copies to make.

    No copy is made yet. A block that is already on all its new hosts (its stream's partitions are
    cut) needs no copy: KEEP and DISCARD of Algorithm 3. The other stream's blocks are MIGRATED:
    each goes from a host to its partner in the same old row or column. To keep the flow steady, it
    is cut in pieces of about ``budget`` tuples, the most that a host may take in with one batch.
    """
    pending: list[ReplicaCopy] = []
    tuples = discarded = 0.0
    places = _find_copy_sources(old, new)
    for b in blocks:
        ranges = _cut_key_ranges(b, new, budget)
        for keys in ranges:
            share = b.rows * (keys[1] - keys[0]) / (b.key_range[1] - b.key_range[0])
            target = new.partition_hosts(b.stream, new.find_partition(b.stream, keys[0]))
            missing = [h for h in target if h not in b.hosts]
            stay = b.hosts if missing else target
            piece = b if len(ranges) == 1 else draft.cut_block(b, keys, stay)
            source = old.find_partition(b.stream, b.key_range[0])
            pending += [ReplicaCopy(piece.id, places[h][b.stream][source], h) for h in missing]
            tuples += share * len(missing)
            discarded += share * (len(b.hosts) - len(stay))
            if piece is b:
                draft.drop_replicas(b, set(b.hosts) - set(stay))
        if len(ranges) > 1:
            draft.drop_replicas(b, b.hosts)
    return MigrationStart(
        Migration(draft.facts.batch, tuple(pending)), round(tuples), round(discarded)
    )


def _cut_key_ranges(block: Block, new: HostGroup, budget: float) -> list[Keys]:
    """Return the key ranges in which a block is cut: one for each new partition.

    A block that is to be copied is cut further, into equal ranges.
    """
    stream, (lo, hi) = block.stream, block.key_range
    ranges: list[Keys] = []
    for part in range(new.find_partition(stream, lo), new.find_partition(stream, hi - 1) + 1):
        first, last = new.partition_keys(stream, part)
        first, last = max(first, lo), min(last, hi)
        moves = not set(block.hosts).issuperset(new.partition_hosts(stream, part))
        pieces = (
            _count_pieces(block.rows * (last - first) / (hi - lo), last - first, budget)
            if moves
            else 1
        )
        ranges += pairwise(first + (last - first) * k // pieces for k in range(pieces + 1))
    return ranges


def _count_pieces(rows: float, keys: int, budget: float) -> int:
    """Return the least power of two of pieces that are within the budget, if keys allow it.

    1 if nothing is arriving.
    """
    pieces = 1
    while 0 < pieces * budget < rows and 2 * pieces <= min(keys, PIECES):
        pieces *= 2
    return pieces


def _find_copy_sources(
    old: HostGroup, new: HostGroup
) -> dict[int, tuple[dict[int, int], dict[int, int]]]:
    """Return, by host and stream, the host from which each old partition is copied.

    That host shares the old column (for R) or row (for S).
    """
    cells = old.cells_by_host()
    sources = {}
    for h, (row, column) in new.cells_by_host().items():
        i, j = cells.get(h, (row // 2, column // 2))
        sources[h] = (
            {k: old.host_at(k, j) for k in range(old.mapping[0])},
            {k: old.host_at(i, k) for k in range(old.mapping[1])},
        )
    return sources


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """One batch's share of a migration.

    - ``remaining``: the migration after the batch; None: it has ended.
    - ``copies``: the copies of this batch.
    - ``moved``, ``remaining_tuples``: tuples of the copies made, and of those that wait.
    """

    remaining: Migration | None
    copies: tuple[ReplicaCopy, ...]
    moved: int
    remaining_tuples: int


def advance_migration(
    draft: PlanBuilder, migration: Migration, group: HostGroup, blocks: dict[int, Block]
) -> MigrationStep:
    """Copy what the hosts' allowances cover, and drop replicas that the new mapping does not need.

    The pieces of a block are copied in the order of their keys, so that compaction can merge them
    while others wait. If the last batch brought no tuple at all, copies delay nothing, and all
    pending ones are made.
    """
    pending = [copy for copy in migration.pending_copies if copy.block in blocks]
    idle = not any(draft.facts.previous_received)
    allowance = _refill_allowances(
        migration, draft.facts.batch, blocks.values(), {copy.target for copy in pending}
    )
    copies: list[ReplicaCopy] = []
    rest: list[ReplicaCopy] = []
    for copy in pending:
        rows = blocks[copy.block].rows
        if idle or rows <= allowance[copy.target]:
            allowance[copy.target] -= rows
            copies.append(copy)
        else:
            rest.append(copy)
    _copy_blocks(draft, group, blocks, copies, {copy.block for copy in rest})
    moved, left = (sum(blocks[copy.block].rows for copy in some) for some in (copies, rest))
    return MigrationStep(
        Migration(migration.since_batch, tuple(rest), allowance) if rest else None,
        tuple(copies),
        moved,
        left,
    )


def _refill_allowances(
    migration: Migration, batch: int, blocks: Iterable[Block], hosts: set[int]
) -> dict[int, int]:
    allowance = {h: migration.allowance.get(h, 0) for h in hosts}
    for b in blocks:
        if b.batch == batch - 1:
            for h in hosts.intersection(b.hosts):
                allowance[h] += RATE * b.rows
    return allowance


def _copy_blocks(
    draft: PlanBuilder,
    group: HostGroup,
    blocks: dict[int, Block],
    copies: list[ReplicaCopy],
    waiting: set[int],
) -> None:
    reads: dict[int, dict[int, int]] = {}
    for copy in copies:
        reads.setdefault(copy.block, {})[copy.target] = copy.source
    for id, where in reads.items():
        block = draft.copy_block(blocks[id], where)
        if id not in waiting:
            draft.drop_replicas(
                block,
                set(block.hosts)
                - set(
                    group.partition_hosts(
                        block.stream, group.find_partition(block.stream, block.key_range[0])
                    )
                ),
            )


def arrival_routes(
    step: MigrationStep, since: int, live: Map[int, Block], committed: Iterable[Block]
) -> list[Route]:
    """Return routes that join mu with Delta'.

    Each block that has just arrived meets, at its new host, the blocks born in the epoch that
    deferred it. ``committed`` are the group's blocks of the last commit. The fresh blocks of this
    batch are not among them: they meet the arrivals on their own routes.
    """
    born: dict[tuple[int, int], list[int]] = {}
    for b in committed:
        if b.batch >= since:
            for h in b.hosts:
                born.setdefault((b.stream, h), []).append(b.id)
    others_of = {at: tuple(ids) for at, ids in born.items()}
    probes: dict[int, dict[int, tuple[int, ...]]] = {}
    for id, _, dst in step.copies:
        if others := others_of.get((1 - live[id].stream, dst)):
            probes.setdefault(id, {})[dst] = others
    return [
        Route(live[id], ((Hop(1 - live[id].stream, where),),), is_fresh=False)
        for id, where in probes.items()
    ]
