"""Routes of a spread: a fresh block of any tile probes all blocks that may have its values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from braid.core.facts import Facts
from braid.core.plan import Block, Hop, Ids, Path, Route
from braid.core.plan_builder import PlanBuilder
from braid.papers.common.join_orders import TRIED, IntermediateGrowth
from braid.papers.hotkeys.spread import TileTable

_Places = list[dict[int, Ids]]
"""By group of values, the blocks that share a value with it, by host."""


def make_routes(builder: PlanBuilder, table: TileTable) -> list[Route]:
    """Return the routes of a batch: a fresh block for each stream and tile, stored on its host.

    It meets the blocks of the other streams that share a value with it, on the hosts where they
    are; of fresh blocks, those of streams with a smaller index. The join order is the one with the
    fewest intermediate results.
    """
    facts, streams = builder.facts, range(len(builder.facts.streams))
    live = builder.live_blocks()
    places = [_place_blocks((b for b in live if b.stream == s), table) for s in streams]
    growth = IntermediateGrowth(facts.match_counts, _count_rows(facts))
    routes: list[Route] = []
    for stream in streams:
        order = growth.best_join_orders(stream, TRIED)[0]
        paths = [_find_paths(places, order, g) for g in range(len(table.group_starts))]
        fresh = [
            Block(next(builder.ids), stream, tile.keys, facts.batch, (tile.host,))
            for tile in table.tiles
        ]
        routes += [Route(b, paths[t.group]) for b, t in zip(fresh, table.tiles, strict=True)]
        for block, tile in zip(fresh, table.tiles, strict=True):
            _add_block(places[stream][tile.group], block)
    return routes


def _count_rows(facts: Facts) -> list[int]:
    rows = list(facts.previous_received)
    for b in facts.blocks:
        rows[b.stream] += b.rows
    return rows


def _place_blocks(blocks: Iterable[Block], table: TileTable) -> _Places:
    places: _Places = [{} for _ in table.group_starts]
    for b in blocks:
        for group in table.overlapped_groups(b.key_range):
            _add_block(places[group], b)
    return places


def _add_block(places: dict[int, Ids], block: Block) -> None:
    (host,) = block.hosts
    places[host] = (*places.get(host, ()), block.id)


def _find_paths(places: Sequence[_Places], order: Sequence[int], group: int) -> tuple[Path, ...]:
    """Return the only path of a group of values; none if no block of some stream has its values."""
    path = tuple(Hop(s, dict(places[s][group])) for s in order if places[s][group])
    return (path,) if len(path) == len(order) else ()
