"""Routes for placements that store each stream on one host and probe the others by hops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from braid.core.facts import Facts
from braid.core.plan import Block, Hop, Keys, Path, Route
from braid.papers.common.join_orders import TRIED, IntermediateGrowth


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
