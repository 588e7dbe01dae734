"""Cells of a hypercube on hosts: who stores what, the routes of fresh blocks, and moves of stored.

A stream is hashed on its own dimensions and stored on all cells along the others. A fresh block is
one part of each of its dimensions, and has a path for each cell that it reaches, which is one host.
Two of its partners that may join are in exactly one cell together, as each of the other dimensions
is one of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, product

import numpy as np
from msgspec import structs

from braid.core.facts import Facts
from braid.core.key_boxes import Cell, KeyBoxes, Shares
from braid.core.plan import Block, Derivation, Hop, Path, Route
from braid.core.plan_builder import PlanBuilder
from braid.papers.common.join_orders import TRIED, IntermediateGrowth, Order


@dataclass(frozen=True)
class CubeCells:
    """The cells of a hypercube.

    - ``boxes``: routing keys and shares.
    - ``hosts``: host by cell, the last dimension fastest.
    """

    boxes: KeyBoxes
    hosts: tuple[int, ...]

    def hosts_by_part(self, stream: int) -> dict[Cell, tuple[int, ...]]:
        """Return the hosts that store the tuples of a stream, by part of its dimensions."""
        hosts: dict[Cell, list[int]] = {}
        for cell, host in zip(_list_cells(self.boxes.shares), self.hosts, strict=True):
            part = tuple(cell[d] for d in self.boxes.dimensions[stream])
            hosts.setdefault(part, []).append(host)
        return {part: tuple(sorted(each)) for part, each in hosts.items()}


def _list_cells(shares: Shares) -> Iterable[Cell]:
    return product(*map(range, shares))


def exchange_hosts(
    hosts: Sequence[int], shares: Shares, grows: int, shrinks: int, factor: int
) -> tuple[int, ...]:
    """Return the host by cell after one share is multiplied and another one divided by a factor.

    Each host keeps a part of what it has: the cells that become one share out the parts of the
    dimension that grows (Elseidy et al. 2014, Lemma 4.4, in several dimensions).
    """
    changed = list(shares)
    changed[grows], changed[shrinks] = changed[grows] * factor, changed[shrinks] // factor
    at = [*np.indices(changed)]
    part = at[grows] % factor
    at[grows], at[shrinks] = at[grows] // factor, at[shrinks] * factor + part
    return tuple(np.reshape(hosts, shares)[tuple(at)].ravel().tolist())


def make_cell_routes(facts: Facts, cells: CubeCells, blocks: Iterable[Block]) -> list[Route]:
    """Return the routes of fresh blocks beside these live blocks, which are where cells want them.

    A tuple meets all partners on the hosts that store it; nothing hops.
    """
    ids, routes = count(facts.next_id), list[Route]()
    rows = list(facts.previous_received)
    held: dict[tuple[int, int], tuple[int, ...]] = {}
    for b in blocks:
        rows[b.stream] += b.rows
        for host in b.hosts:
            held[host, b.stream] = (*held.get((host, b.stream), ()), b.id)
    growth = IntermediateGrowth(facts.match_counts, rows)
    for stream in range(len(facts.streams)):
        order = _choose_order(growth, cells.boxes, stream)
        hops = {key: Hop(key[1], {key[0]: ids}) for key, ids in held.items()}
        fresh = []
        for part, hosts in cells.hosts_by_part(stream).items():
            keys = cells.boxes.find_cell_keys(stream, part)
            block = Block(next(ids), stream, keys, facts.batch, hosts)
            local = (tuple(hops[h, s] for s in order if (h, s) in hops) for h in hosts)
            paths: tuple[Path, ...] = tuple(path for path in local if len(path) == len(order))
            fresh.append(Route(block, paths))
        for route in fresh:
            for host in route.block.hosts:
                held[host, stream] = (*held.get((host, stream), ()), route.block.id)
        routes += fresh
    return routes


def _choose_order(growth: IntermediateGrowth, boxes: KeyBoxes, stream: int) -> Order:
    """Return the join order with the fewest intermediate results.

    An order in which each stream has a dimension of an earlier one goes before others.
    """

    def is_linked(order: Order) -> bool:
        seen = {*boxes.dimensions[stream]}
        for other in order:
            if seen.isdisjoint(boxes.dimensions[other]):
                return False
            seen.update(boxes.dimensions[other])
        return True

    orders = growth.best_join_orders(stream, TRIED)
    return next(filter(is_linked, orders), orders[0])


def move_stored_blocks(draft: PlanBuilder, cells: CubeCells, blocks: Iterable[Block]) -> None:
    """Bring the blocks to where the cells want them: copy, cut and drop replicas.

    A block whose tuples belong to several parts is cut. A host that lacks a piece reads it from one
    that has the block.
    """
    places = [cells.hosts_by_part(s) for s in range(len(cells.boxes.dimensions))]
    for block in blocks:
        pieces = [*cells.boxes.split_key_range(block.stream, block.key_range)]
        if len(pieces) == 1:
            _move_whole(draft, block, places[block.stream][pieces[0].cell])
            continue
        for keys, part in pieces:
            hosts = places[block.stream][part]
            piece = structs.replace(
                block, id=next(draft.ids), key_range=keys, hosts=hosts, rows=0, size_bytes=0
            )
            draft.derivations.append(Derivation(piece, (block.id,), _choose_sources(block, hosts)))
        draft.drop_replicas(block, block.hosts)


def _move_whole(draft: PlanBuilder, block: Block, hosts: tuple[int, ...]) -> None:
    missing = [h for h in hosts if h not in block.hosts]
    if missing:
        draft.copy_block(block, _choose_sources(block, missing))
    draft.drop_replicas(block, {*block.hosts}.difference(hosts))


def _choose_sources(block: Block, hosts: Iterable[int]) -> dict[int, int]:
    """Return, for each host, the host whose replica it reads: its own, or each in turn."""
    return {
        h: h if h in block.hosts else block.hosts[n % len(block.hosts)] for n, h in enumerate(hosts)
    }
