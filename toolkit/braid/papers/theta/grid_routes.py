"""Routes of a batch's fresh blocks on one grid or several."""

from __future__ import annotations

from itertools import count

from braid.core.plan import Block, Hop, Ids, Path, Route
from braid.papers.theta.host_groups import HostGroup


class _Shelf:
    """The blocks of one group by stream and partition, with the hosts of blocks in transit."""

    def __init__(self, group: HostGroup, blocks: list[Block]) -> None:
        self.group = group
        self.hosts = {b.id: b.hosts for b in blocks}
        at: list[list[list[int]]] = [[[] for _ in range(parts)] for parts in group.mapping]
        self.moving: list[dict[int, list[int]]] = [{}, {}]
        lines = [
            [group.partition_hosts(stream, part) for part in range(parts)]
            for stream, parts in enumerate(group.mapping)
        ]
        for b in blocks:
            part = group.find_partition(b.stream, b.key_range[0])
            at[b.stream][part].append(b.id)
            if b.hosts != lines[b.stream][part]:
                self.moving[b.stream].setdefault(part, []).append(b.id)
        self.at: list[list[Ids]] = [[tuple(ids) for ids in parts] for parts in at]

    def add_block(self, block: Block) -> None:
        """Add a block that is fresh in this batch."""
        part = self.group.find_partition(block.stream, block.key_range[0])
        self.at[block.stream][part] += (block.id,)

    def split_by_presence(self, stream: int, part: int, host: int) -> tuple[Ids, Ids]:
        """Return the blocks of a partition that the host has, and those that it still waits for."""
        ids = self.at[stream][part]
        absent = {b for b in self.moving[stream].get(part, ()) if host not in self.hosts[b]}
        if not absent:
            return ids, ()
        return tuple(b for b in ids if b not in absent), tuple(b for b in ids if b in absent)

    def plan_home_group_probes(self, stream: int, part: int) -> tuple[dict[int, Ids], Ids]:
        """Return the probes of a fresh block of this group, by host, and the blocks to defer.

        A deferred block is met after it has arrived.
        """
        probes: dict[int, Ids] = {}
        deferred: list[int] = []
        for other in range(self.group.mapping[1 - stream]):
            host = self.group.meeting_host(stream, part, other)
            here, waiting = self.split_by_presence(1 - stream, other, host)
            if here:
                probes[host] = here
            deferred += waiting
        return probes, tuple(deferred)

    def plan_other_group_probes(self, stream: int, part: int) -> dict[int, Ids]:
        """Return the probes of a fresh block of another group, which visits one line.

        Blocks in transit are met at their current host.
        """
        probes: dict[int, list[int]] = {}
        for other in range(self.group.mapping[1 - stream]):
            host = self.group.meeting_host(stream, part, other)
            here, waiting = self.split_by_presence(1 - stream, other, host)
            if here:
                probes.setdefault(host, []).extend(here)
            for b in waiting:
                probes.setdefault(self.hosts[b][0], []).append(b)
        return {h: tuple(ids) for h, ids in probes.items()}


def grid_routes(
    batch: int, next_id: int, groups: list[HostGroup], blocks: list[list[Block]]
) -> list[Route]:
    """Return a route for every partition of every group.

    A block is stored on its row (R) or column (S), and has a path in each group. The line that it
    visits in another group depends on the partition and the batch, so that the load spreads.
    """
    shelves = [_Shelf(g, b) for g, b in zip(groups, blocks, strict=True)]
    ids = count(next_id)
    made = []
    for stream in (0, 1):
        fresh = []
        for home in shelves:
            group = home.group
            for part in range(group.mapping[stream]):
                block = Block(
                    next(ids),
                    stream,
                    group.partition_keys(stream, part),
                    batch,
                    group.partition_hosts(stream, part),
                )
                fresh.append((home, block))
                made.append(_route_block(block, home, part, shelves))
        for home, block in fresh:
            home.add_block(block)
    return made


def _route_block(block: Block, home: _Shelf, part: int, shelves: list[_Shelf]) -> Route:
    paths: list[Path] = []
    deferred: Ids = ()
    for shelf in shelves:
        if shelf is home:
            probes, deferred = shelf.plan_home_group_probes(block.stream, part)
        else:
            lines = shelf.group.mapping[block.stream]
            line = (part * lines // home.group.mapping[block.stream] + block.batch) % lines
            probes = shelf.plan_other_group_probes(block.stream, line)
        if probes:
            paths.append((Hop(1 - block.stream, probes),))
    return Route(block, tuple(paths), deferred)
