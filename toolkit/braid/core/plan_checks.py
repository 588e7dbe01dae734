"""Check a plan beside the cover rule: its keys, the presence of blocks, and shares of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from braid.core.plan import Block, Plan, Route
from braid.core.shedding_plan import SheddingPlan
from braid.errors import CoverageError

_NONE: frozenset[int] = frozenset()


def check_key_partition(plan: Plan, streams: int, keys: int, first: int = 0) -> None:
    """Raise CoverageError unless the fresh blocks of every stream partition the keys [first, keys).

    Each tuple is then in exactly one block.
    """
    for s in range(streams):
        ranges = sorted(
            r.block.key_range for r in plan.routes if r.is_fresh and r.block.stream == s
        )
        ends = [first, *(end for _, end in ranges)]
        if [start for start, _ in ranges] != ends[:-1] or ends[-1] != keys:
            raise CoverageError(
                f"the fresh blocks of stream {s} hold routing keys {ranges}; together they must "
                f"hold [{first}, {keys}) once"
            )


def check_harvest(plan: Plan, harvest: SheddingPlan, blocks: Mapping[int, Block]) -> None:
    """Raise CoverageError unless every probing tuple has a share in (0, 1]."""
    if unknown := sorted(harvest.basic_windows.keys() - blocks.keys()):
        raise CoverageError(
            f"the shedding plan puts blocks {unknown} in basic windows; they are not there",
            *unknown,
        )
    for item, shares in harvest.shares.items():
        if len(shares) != harvest.type_count(item[0]) or not all(
            0 < share <= 1 for share in shares
        ):
            raise CoverageError(
                f"the shedding plan has shares {shares} for item {item}; it must have "
                f"{harvest.type_count(item[0])}, each greater than 0 and at most 1"
            )
    if not all(0 < share <= 1 for share in harvest.keep_shares):
        raise CoverageError(
            f"the shedding plan admits shares {harvest.keep_shares} of the streams; each must be "
            "greater than 0 and at most 1"
        )
    for route in (r for r in plan.routes if r.is_fresh):
        for path in route.paths:
            for b in path[0].probed_blocks():
                item = (route.block.stream, path[0].stream, harvest.basic_windows.get(b, -1))
                if item not in harvest.shares:
                    raise CoverageError(
                        f"block {route.block.id} is to meet block {b}, but the shedding plan "
                        f"has no share for item {item}",
                        route.block.id,
                        b,
                    )


def index_blocks_by_host(blocks: Iterable[Block]) -> dict[tuple[int, int], set[int]]:
    """Return the blocks by stream and host."""
    alike: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for b in blocks:
        alike.setdefault((b.stream, b.hosts), []).append(b.id)
    there: dict[tuple[int, int], set[int]] = {}
    for (stream, hosts), ids in alike.items():
        for h in hosts:
            there.setdefault((stream, h), set()).update(ids)
    return there


def check_presence(route: Route, there: Mapping[tuple[int, int], set[int]], streams: int) -> None:
    """Raise CoverageError unless paths visit each other stream, where the blocks are.

    ``there``: the blocks by stream and host.
    """
    f = route.block
    for path in route.paths:
        if sorted(hop.stream for hop in path) != [s for s in range(streams) if s != f.stream]:
            raise CoverageError(
                f"a path of block {f.id} visits streams {[h.stream for h in path]} of {streams}",
                f.id,
            )
        if not route.is_fresh and not set(path[0].blocks_by_host) <= set(f.hosts):
            raise CoverageError(
                f"block {f.id} is stored on {f.hosts} but probes from "
                f"{sorted(path[0].blocks_by_host)}",
                f.id,
            )
        for hop in path:
            for host, ids in hop.blocks_by_host.items():
                if not there.get((hop.stream, host), _NONE).issuperset(ids):
                    b = next(b for b in ids if b not in there.get((hop.stream, host), _NONE))
                    raise CoverageError(
                        f"block {f.id} probes block {b} of stream {hop.stream} on host {host}: "
                        "not there",
                        f.id,
                        b,
                    )


def check_derivations(blocks: tuple[Block, ...], plan: Plan) -> None:
    """Raise CoverageError unless the sources of every derivation are where it reads them."""
    committed = {b.id: b for b in blocks}
    present = dict(committed)
    for d in plan.derivations:
        for dst, src in d.source_hosts.items():
            where = present if src == dst else committed
            for s in d.source_blocks:
                if s not in where or src not in where[s].hosts:
                    raise CoverageError(
                        f"block {d.block.id} on host {dst} reads block {s} of host {src}: not "
                        "there",
                        d.block.id,
                        s,
                    )
        unchanged = set(present[d.block.id].hosts) if d.source_blocks == (d.block.id,) else set()
        if set(d.block.hosts) != unchanged | set(d.source_hosts):
            raise CoverageError(
                f"block {d.block.id} is said to be on {d.block.hosts} but made on "
                f"{sorted(d.source_hosts)}",
                d.block.id,
                *d.source_blocks,
            )
        present[d.block.id] = d.block
