"""Moves of stored tuples to the hosts where a spread has them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from braid.core.plan import Block, Derivation, Keys
from braid.core.plan_builder import PlanBuilder
from braid.papers.hotkeys.spread import TileTable
from braid.papers.hotkeys.value_work import ValueShares


def find_stray_blocks(blocks: Iterable[Block], table: TileTable) -> list[Block]:
    """Return the blocks with keys that belong to another host."""
    return [b for b in blocks if any((h,) != b.hosts for _, h in table.split_keys(b.key_range))]


def move_stray_blocks(
    builder: PlanBuilder,
    strays: Iterable[Block],
    table: TileTable,
    shares: ValueShares,
    budget: float,
) -> list[Block]:
    """Move blocks to the hosts of their keys, the largest first, and return those that wait.

    A host takes in no further block in this batch once it has ``budget`` tuples of others. A block
    that compaction makes in this batch waits, as other hosts cannot read it yet.
    """
    taken: dict[int, float] = {}
    waiting = []
    for block in sorted(strays, key=lambda b: (-b.rows, b.id)):
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
    """Return the tuples of a block that belong to other hosts, by host.

    They are estimated by the shares of values in recent batches.
    """
    block_share = shares.key_share(block.stream, block.key_range)
    tuples: dict[int, float] = {}
    for keys, host in table.split_keys(block.key_range):
        if host not in block.hosts:
            part = (
                shares.key_share(block.stream, keys) / block_share
                if block_share
                else _width(keys, block)
            )
            tuples[host] = tuples.get(host, 0.0) + block.rows * part
    return tuples


def _width(keys: Keys, block: Block) -> float:
    """Return the part of a block's routing keys that a range has."""
    return (keys[1] - keys[0]) / (block.key_range[1] - block.key_range[0])


def _move_block(builder: PlanBuilder, block: Block, table: TileTable) -> None:
    """Cut a block into pieces that are made on the hosts of their keys, and drop it.

    Each reads the replica of the block's host, as the last commit has it.
    """
    (source,) = block.hosts
    for keys, host in table.split_keys(block.key_range):
        piece = structs.replace(
            block, id=next(builder.ids), key_range=keys, hosts=(host,), rows=0, size_bytes=0
        )
        builder.derivations.append(Derivation(piece, (block.id,), {host: source}))
    builder.drop_replicas(block, block.hosts)
