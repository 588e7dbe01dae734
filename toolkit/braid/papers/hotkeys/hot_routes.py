"""Routes of a spread: a fresh block of any tile probes all blocks that may have its values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from braid.core.facts import Facts
from braid.core.plan import Block, Hop, Ids, Path, Route
from braid.core.plan_builder import PlanBuilder
from braid.papers.common.join_orders import TRIED, IntermediateGrowth
from braid.papers.hotkeys.spread import Tile, TileTable


@dataclass
class _GroupBlocks:
    """The blocks of a stream that share a value with a group of values.

    - ``single``: by host, those with one replica.
    - ``copied``: those with several.
    """

    single: dict[int, Ids] = field(default_factory=dict)
    copied: list[Block] = field(default_factory=list)

    def add_block(self, block: Block) -> None:
        if len(block.hosts) > 1:
            self.copied.append(block)
        else:
            _add_id(self.single, block.hosts[0], block.id)

    def choose_hosts(self, near: int | None) -> dict[int, Ids]:
        """Return the blocks by the host where they are probed: ``near``, if they are there."""
        chosen = dict(self.single)
        for b in self.copied:
            host = near if near in b.hosts else b.hosts[b.id % len(b.hosts)]
            _add_id(chosen, host, b.id)
        return chosen


def _add_id(blocks: dict[int, Ids], host: int, id: int) -> None:
    blocks[host] = (*blocks.get(host, ()), id)


_Places = list[_GroupBlocks]
"""By group of values, the blocks that share a value with it."""


def make_routes(builder: PlanBuilder, tables: Sequence[TileTable]) -> list[Route]:
    """Return the routes of a batch: a fresh block for each tile of each stream, on its hosts.

    It meets the blocks of the other streams that share a value with it, on the hosts where they
    are, on its own host if they are there; of fresh blocks, those of streams with a smaller index.
    The join order is the one with the fewest intermediate results, streams with several replicas
    first.
    """
    facts, streams = builder.facts, range(len(builder.facts.streams))
    live = builder.live_blocks()
    places = [_place_blocks((b for b in live if b.stream == s), tables[s]) for s in streams]
    growth = IntermediateGrowth(facts.match_counts, _count_rows(facts))
    routes: list[Route] = []
    for stream in streams:
        tiles, order = tables[stream].tiles, growth.best_join_orders(stream, TRIED)[0]
        fresh = [Block(next(builder.ids), stream, t.keys, facts.batch, t.hosts) for t in tiles]
        paths = _find_paths(places, order, tiles)
        routes += [Route(b, path) for b, path in zip(fresh, paths, strict=True)]
        for block, tile in zip(fresh, tiles, strict=True):
            places[stream][tile.group].add_block(block)
    return routes


def _count_rows(facts: Facts) -> list[int]:
    rows = list(facts.previous_received)
    for b in facts.blocks:
        rows[b.stream] += b.rows
    return rows


def _place_blocks(blocks: Iterable[Block], table: TileTable) -> _Places:
    places: _Places = [_GroupBlocks() for _ in table.group_starts]
    for b in blocks:
        for group in table.overlapped_groups(b.key_range):
            places[group].add_block(b)
    return places


def _find_paths(
    places: Sequence[_Places], order: Sequence[int], tiles: Iterable[Tile]
) -> Iterator[tuple[Path, ...]]:
    """Yield the paths of each tile: one, or none if no block of some stream has its values.

    Tiles of a group have the same one, unless blocks with several replicas are probed near each.
    """
    paths: dict[tuple[int, int | None], tuple[Path, ...]] = {}
    for tile in tiles:
        met = {s: places[s][tile.group] for s in order}
        has_copies = any(each.copied for each in met.values())
        near = tile.hosts[0] if has_copies and len(tile.hosts) == 1 else None
        if (tile.group, near) not in paths:
            hops = [Hop(s, met[s].choose_hosts(near)) for s in _put_copied_first(met)]
            is_met = all(hop.blocks_by_host for hop in hops)
            paths[tile.group, near] = (tuple(hops),) if is_met else ()
        yield paths[tile.group, near]


def _put_copied_first(met: Mapping[int, _GroupBlocks]) -> list[int]:
    """Return the streams in their order, those with several replicas first."""
    return sorted(met, key=lambda s: not met[s].copied)
