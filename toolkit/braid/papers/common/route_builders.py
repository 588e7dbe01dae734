"""Routes of placements that keep what can join on one host, or probe other hosts by hops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from braid.core.facts import Facts
from braid.core.plan import Block, Hop, Ids, Keys, Path, Route
from braid.papers.common.join_orders import TRIED, IntermediateGrowth


def local_routes(facts: Facts, places: list[tuple[Keys, int]]) -> list[Route]:
    """Return routes for placements that keep each range of keys on one host; nothing hops.

    A block meets the stored blocks of all other streams on its host and, of the fresh ones there,
    those of streams with a smaller index. The join order is the one with the fewest intermediate
    results. Supports any number of streams.
    """
    ids = count(facts.next_id)
    streams = len(facts.streams)
    stored: dict[tuple[int, int], Ids] = {}
    rows = list(facts.previous_received)
    for b in facts.blocks:
        rows[b.stream] += b.rows
        stored[b.hosts[0], b.stream] = (*stored.get((b.hosts[0], b.stream), ()), b.id)
    routes, growth = [], IntermediateGrowth(facts.match_counts, rows)
    for stream in range(streams):
        others = growth.best_join_orders(stream, TRIED)[0]
        for keys, host in places:
            block = Block(next(ids), stream, keys, facts.batch, (host,))
            path = tuple(Hop(s, {host: stored[host, s]}) for s in others if (host, s) in stored)
            routes.append(Route(block, (path,) if len(path) == len(others) else ()))
        for route in routes[-len(places) :]:
            at = (route.block.hosts[0], stream)
            stored[at] = (*stored.get(at, ()), route.block.id)
    return routes


def hopping_routes(
    facts: Facts,
    blocks: Sequence[Block],
    at: Mapping[int, int],
    heads: Sequence[int],
    keys: Keys,
    ids: Iterator[int],
) -> tuple[Route, ...]:
    """Return one route for each stream: a fresh block that holds ``keys``, stored on its head.

    It visits the live ``blocks`` of the other streams, each on the host in ``at``. The join order
    is the one with the fewest intermediate results.
    """
    streams = range(len(heads))
    held: list[dict[int, list[int]]] = [{} for _ in streams]
    rows = list(facts.previous_received)
    for b in blocks:
        held[b.stream].setdefault(at[b.id], []).append(b.id)
        rows[b.stream] += b.rows
    probes = [{host: tuple(ids) for host, ids in by_host.items()} for by_host in held]
    growth = IntermediateGrowth(facts.match_counts, rows)
    routes = []
    for s in streams:
        block = Block(next(ids), s, keys, facts.batch, (heads[s],))
        path: Path = tuple(Hop(t, dict(probes[t])) for t in growth.best_join_orders(s, TRIED)[0])
        routes.append(Route(block, (path,) if all(hop.blocks_by_host for hop in path) else ()))
        probes[s][heads[s]] = (*probes[s].get(heads[s], ()), block.id)
    return tuple(routes)
