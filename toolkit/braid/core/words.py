"""Blocks and plans in words: what `braid inspect` says of a run, and an error of a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from braid.core.events import BatchPlanned
from braid.core.plan import Block, Derivation, Plan, Route

Names = Sequence[str]
"""Of the streams, by index."""


Planned = Plan | BatchPlanned
"""What is to be done with blocks."""


def of(block: Block, streams: Names, first: int = 0) -> str:
    """A block's stream, routing keys and batch. Here and below, ``first`` is the number of the
    first batch.
    """
    return f"{streams[block.stream]}, keys {keys(block)}, of batch {block.batch + first}"


def keys(block: Block) -> str:
    """A block's range of routing keys."""
    return f"[{block.keys[0]}, {block.keys[1]})"


def counted(n: int, what: str) -> str:
    """So many of something, as "1 host" and "2,000 hosts"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def hosts(found: Collection[int]) -> str:
    """Some hosts."""
    return f"host{'s' if len(found) > 1 else ''} {', '.join(map(str, found))}"


def blocks(ids: Collection[int]) -> str:
    """Some blocks."""
    return f"block{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def routed(route: Route, streams: Names, first: int = 0) -> Iterator[str]:
    """What a route says: a line for the block, then one for each path, and what is put off."""
    what = f"block {route.block.id} of {of(route.block, streams, first)}"
    if route.fresh:
        yield f"fresh {what}: stored on {hosts(route.block.hosts)}"
    else:
        yield f"{what} settles what it owes"
    several = len(route.paths) > 1
    for n, path in enumerate(route.paths, 1):
        hops = (
            f"{streams[hop.stream]} "
            + ("; ".join(f"{blocks(ids)} on host {h}" for h, ids in hop.probes.items()) or "none")
            for hop in path
        )
        yield f"  {f'path {n} ' if several else ''}probes {', then '.join(hops)}"
    if route.deferred:
        yield f"  puts off {blocks(route.deferred)}"


def derived(d: Derivation, streams: Names, first: int = 0) -> str:
    """How a block is made."""
    moved = [f"host {dst} reads host {src}" for dst, src in d.reads.items() if src != dst]
    how = f": {', '.join(moved)}" if moved else ""
    what = f"block {d.block.id} of {of(d.block, streams, first)}"
    if d.sources == (d.block.id,):
        return f"{what} is copied{how}"
    verb = "merged" if len(d.sources) > 1 else "cut"
    return f"{what} is {verb} from {blocks(d.sources)} on {hosts(d.block.hosts)}{how}"


def chapter(
    id: int, plan: Planned, streams: Names, gone: bool = False, first: int = 0
) -> Iterator[str]:
    """What a plan does with a block; ``gone``: another line says that it leaves."""
    for d in plan.derivations:
        if d.block.id == id:
            yield derived(d, streams, first)
        elif id in d.sources:
            verb = "merged into" if len(d.sources) > 1 else "cut into"
            yield f"{verb} block {d.block.id}, keys {keys(d.block)}"
    if id in plan.drops and not gone:
        yield f"given up by {hosts(plan.drops[id])}"
    by: dict[int, list[int]] = {}
    for route in plan.routes:
        if route.block.id == id:
            yield from (line.strip() for line in routed(route, streams, first))
        for path in route.paths:
            for host, ids in ((h, ids) for hop in path for h, ids in hop.probes.items()):
                if id in ids:
                    by.setdefault(host, []).append(route.block.id)
    for host, others in by.items():
        yield f"probed by {blocks(dict.fromkeys(others))} on host {host}"


def story(
    id: int,
    live: Iterable[Block],
    plan: Planned,
    streams: Names,
    owed: Iterable[tuple[int, int]] = (),
) -> str:
    """What is known of a block when a plan is made: what it was at the last commit, what it owes,
    and what the plan does with it.
    """
    block = next((b for b in live if b.id == id), None)
    head = f"block {id}: not there at the last commit"
    if block is not None:
        head = f"block {id} of {of(block, streams)}, {block.rows:,} tuples, on {hosts(block.hosts)}"
    pairs = [a if b == id else b for a, b in sorted(owed) if id in (a, b)]
    lines = [f"owed with {blocks(pairs)}"] if pairs else []
    return "\n  ".join([head, *lines, *chapter(id, plan, streams)])
