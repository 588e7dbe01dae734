"""Describe blocks and plans in words, for `braid inspect` and error messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from braid.core.asof_releases import AFTER_ALL
from braid.core.plan import Block, Derivation, Hop, Plan, Release, Route
from braid.core.run_events import BatchPlanned
from braid.util.batch_numbers import display_batch
from braid.util.durations import format_instant

Names = Sequence[str]
"""Names of the streams, by index."""


Planned = Plan | BatchPlanned
"""A plan or the event that reports it."""


def describe_block(block: Block, streams: Names) -> str:
    """Return a block's stream, routing keys and batch."""
    keys = format_key_range(block)
    return f"{streams[block.stream]}, keys {keys}, of batch {display_batch(block.batch)}"


def format_key_range(block: Block) -> str:
    """Return a block's range of routing keys."""
    return f"[{block.key_range[0]}, {block.key_range[1]})"


def format_count(n: int, what: str) -> str:
    """Return a count with its noun, such as "1 host" or "2,000 hosts"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def format_hosts(hosts: Collection[int]) -> str:
    """Return a list of hosts as text."""
    return f"host{'s' if len(hosts) > 1 else ''} {', '.join(map(str, hosts))}"


def format_blocks(ids: Collection[int]) -> str:
    """Return a list of blocks as text."""
    return f"block{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def describe_route(route: Route, streams: Names) -> Iterator[str]:
    """Yield the lines of a route: one for the block, one for each path, one for deferred blocks."""
    what = f"block {route.block.id} of {describe_block(route.block, streams)}"
    if route.is_fresh:
        yield f"fresh {what}: stored on {format_hosts(route.block.hosts)}"
    else:
        yield f"{what} settles pending pairs"
    several = len(route.paths) > 1
    for n, path in enumerate(route.paths, 1):
        hops = (f"{streams[hop.stream]} {format_hop(hop)}" for hop in path)
        yield f"  {f'path {n} ' if several else ''}probes {', then '.join(hops)}"
    if route.deferred_blocks:
        yield f"  defers {format_blocks(route.deferred_blocks)}"


def format_hop(hop: Hop) -> str:
    """Return the blocks of a hop, by host."""
    by_host = (f"{format_blocks(ids)} on host {h}" for h, ids in hop.blocks_by_host.items())
    return "; ".join(by_host) or "none"


def describe_release(release: Release, streams: Names) -> str:
    """Return which tuples of a block take their partners, and from where."""
    ends = [
        "" if release.since is None else f"from {format_instant(release.since)}",
        "" if release.until == AFTER_ALL else f"before {format_instant(release.until)}",
    ]
    due = ", ".join(end for end in ends if end) or "all tuples"
    return (
        f"block {release.block.id} of {describe_block(release.block, streams)} is released "
        f"on host {release.host}, {due}: partners from {streams[release.partners.stream]} "
        f"{format_hop(release.partners)}"
    )


def describe_derivation(d: Derivation, streams: Names) -> str:
    """Return how a block is made."""
    moved = [f"host {dst} reads host {src}" for dst, src in d.source_hosts.items() if src != dst]
    how = f": {', '.join(moved)}" if moved else ""
    what = f"block {d.block.id} of {describe_block(d.block, streams)}"
    if d.source_blocks == (d.block.id,):
        return f"{what} is copied{how}"
    verb = "merged" if len(d.source_blocks) > 1 else "cut"
    return (
        f"{what} is {verb} from {format_blocks(d.source_blocks)} on "
        f"{format_hosts(d.block.hosts)}{how}"
    )


def describe_block_in_plan(
    id: int, plan: Planned, streams: Names, gone: bool = False
) -> Iterator[str]:
    """Yield what a plan does with a block. With ``gone``, the line on its drop is omitted."""
    for d in plan.derivations:
        if d.block.id == id:
            yield describe_derivation(d, streams)
        elif id in d.source_blocks:
            verb = "merged into" if len(d.source_blocks) > 1 else "cut into"
            yield f"{verb} block {d.block.id}, keys {format_key_range(d.block)}"
    if id in plan.drops and not gone:
        yield f"given up by {format_hosts(plan.drops[id])}"
    by: dict[int, list[int]] = {}
    for route in plan.routes:
        if route.block.id == id:
            yield from (line.strip() for line in describe_route(route, streams))
        for path in route.paths:
            for host, ids in ((h, ids) for hop in path for h, ids in hop.blocks_by_host.items()):
                if id in ids:
                    by.setdefault(host, []).append(route.block.id)
    for release in plan.releases if isinstance(plan, BatchPlanned) else ():
        if release.block.id == id:
            yield describe_release(release, streams)
        for host, ids in release.partners.blocks_by_host.items():
            if id in ids:
                by.setdefault(host, []).append(release.block.id)
    for host, others in by.items():
        yield f"probed by {format_blocks(dict.fromkeys(others))} on host {host}"


def describe_block_state(
    id: int,
    live: Iterable[Block],
    plan: Planned,
    streams: Names,
    pending: Iterable[tuple[int, int]] = (),
) -> str:
    """Return the state of a block in words.

    It covers the last commit, its pending pairs, and its part in the plan.
    """
    block = next((b for b in live if b.id == id), None)
    head = f"block {id}: not there at the last commit"
    if block is not None:
        head = (
            f"block {id} of {describe_block(block, streams)}, {block.rows:,} tuples, on "
            f"{format_hosts(block.hosts)}"
        )
    pairs = [a if b == id else b for a, b in sorted(pending) if id in (a, b)]
    lines = [f"pending with {format_blocks(pairs)}"] if pairs else []
    return "\n  ".join([head, *lines, *describe_block_in_plan(id, plan, streams)])
