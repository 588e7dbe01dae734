"""Moves of stored tuples to the hosts where a spread has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from braid.core.plan import Block, Derivation, Keys
from braid.core.plan_builder import PlanBuilder
from braid.papers.hotkeys.spread import TileTable
from braid.papers.hotkeys.value_work import ValueShares


def find_stray_blocks(blocks: Iterable[Block], tables: Sequence[TileTable]) -> list[Block]:
    """Return the blocks with keys that belong to other hosts, by the tiles of their stream."""
    return [
        b
        for b in blocks
        if any(hosts != b.hosts for _, hosts in tables[b.stream].split_keys(b.key_range))
    ]


def move_stray_blocks(
    builder: PlanBuilder,
    strays: Iterable[Block],
    tables: Sequence[TileTable],
    shares: ValueShares,
    budget: float,
) -> list[Block]:
    """Move blocks to the hosts of their keys, the largest first, and return those that wait.

    Those that several hosts are to store come before all others: until then, all tuples of the
    kept stream go to the one host that has them. A host takes in no further block in this batch
    once it has ``budget`` tuples of others. A block that compaction makes in this batch waits, as
    other hosts cannot read it yet.
    """
    taken: dict[int, float] = {}
    waiting = []
    order = sorted(strays, key=lambda b: (not tables[b.stream].is_copied(b), -b.rows, b.id))
    for block in order:
        table = tables[block.stream]
        sizes = estimate_moving_tuples(block, table, shares)
        if block.id in builder.facts.compacted_blocks or any(
            taken.get(h, 0.0) > budget for h in sizes
        ):
            waiting.append(block)
            continue
        _move_block(builder, block, table)
        for host, tuples in sizes.items():
            taken[host] = taken.get(host, 0.0) + tuples
    return waiting


def estimate_moving_tuples(block: Block, table: TileTable, shares: ValueShares) -> dict[int, float]:
    """Return the tuples of a block that are to be on hosts without a replica, by host.

    They are estimated by the shares of values in recent batches.
    """
    block_share = shares.key_share(block.stream, block.key_range)
    tuples: dict[int, float] = {}
    for keys, hosts in table.split_keys(block.key_range):
        if lacking := set(hosts).difference(block.hosts):
            part = (
                shares.key_share(block.stream, keys) / block_share
                if block_share
                else _width(keys, block)
            )
            for host in lacking:
                tuples[host] = tuples.get(host, 0.0) + block.rows * part
    return tuples


def _width(keys: Keys, block: Block) -> float:
    """Return the part of a block's routing keys that a range has."""
    return (keys[1] - keys[0]) / (block.key_range[1] - block.key_range[0])


def _move_block(builder: PlanBuilder, block: Block, table: TileTable) -> None:
    """Cut a block into pieces that are made on the hosts of their keys, and drop it.

    A host without a replica reads that of the block's first host, as the last commit has it.
    """
    for keys, hosts in table.split_keys(block.key_range):
        piece = structs.replace(
            block, id=next(builder.ids), key_range=keys, hosts=hosts, rows=0, size_bytes=0
        )
        reads = {host: host if host in block.hosts else block.hosts[0] for host in hosts}
        builder.derivations.append(Derivation(piece, (block.id,), reads))
    builder.drop_replicas(block, block.hosts)
