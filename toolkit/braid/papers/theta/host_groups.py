"""Groups of hosts, each a grid of cells: moves when a mapping changes, and routes.

Source: Elseidy et al. 2014, Lemma 4.4 and section 4.2.2 (number of joiners, elasticity).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from braid.core.plan import Block, Hop, Ids, Keys, Path, Route
from braid.papers.theta.mapping import Mapping, powers_of_two
from braid.papers.theta.run_events import Cell, MappingChanged


@dataclass(frozen=True, slots=True)
class HostGroup:
    """A group of hosts: its routing keys, its mapping (n, m), and its hosts row by row."""

    keys: Keys
    mapping: Mapping
    hosts: tuple[int, ...]

    def host_at(self, row: int, column: int) -> int:
        """Return the host of a cell of the group's grid."""
        return self.hosts[row * self.mapping[1] + column]

    def meeting_host(self, stream: int, part: int, other: int) -> int:
        """Return the host of the cell where two partitions meet.

        ``part`` is a partition of ``stream``, ``other`` one of the other stream.
        """
        return self.host_at(part, other) if stream == 0 else self.host_at(other, part)

    def partition_hosts(self, stream: int, part: int) -> tuple[int, ...]:
        """Return the sorted hosts of a partition: a row of the grid for R, a column for S."""
        return tuple(
            sorted(
                self.meeting_host(stream, part, other) for other in range(self.mapping[1 - stream])
            )
        )

    def partition_keys(self, stream: int, part: int) -> Keys:
        """Return the routing keys of a partition."""
        width = (self.keys[1] - self.keys[0]) // self.mapping[stream]
        return self.keys[0] + part * width, self.keys[0] + (part + 1) * width

    def find_partition(self, stream: int, key: int) -> int:
        """Return the partition of a routing key."""
        return (key - self.keys[0]) * self.mapping[stream] // (self.keys[1] - self.keys[0])

    def cells_by_host(self) -> dict[int, tuple[int, int]]:
        """Return (row, column) by host."""
        return {h: divmod(k, self.mapping[1]) for k, h in enumerate(self.hosts)}

    def with_mapping(self, mapping: Mapping) -> HostGroup:
        """Return the same hosts under another mapping, in steps of Lemma 4.4.

        From (n, m) to (n/2, 2m), host (i, j) moves to (i//2, 2j + i%2); from (n, m) to (2n, m/2),
        to (2i + j%2, j//2).
        """
        if mapping == self.mapping:
            return self
        n, m = self.mapping
        if n > mapping[0]:
            step = self._with_host_cells(
                (n // 2, m * 2),
                {h: (i // 2, 2 * j + i % 2) for h, (i, j) in self.cells_by_host().items()},
            )
        else:
            step = self._with_host_cells(
                (n * 2, m // 2),
                {h: (2 * i + j % 2, j // 2) for h, (i, j) in self.cells_by_host().items()},
            )
        return step.with_mapping(mapping)

    def split_hosts(self, numbers: Iterator[int]) -> HostGroup:
        """Return the group with every host split in four, (n, m) to (2n, 2m).

        (i, j) keeps cell (2i, 2j); three new hosts get the others.
        """
        n, m = self.mapping
        place: dict[int, tuple[int, int]] = {}
        for h, (i, j) in self.cells_by_host().items():
            place |= {h: (2 * i, 2 * j)} | {
                next(numbers): (2 * i + a, 2 * j + b) for a, b in ((0, 1), (1, 0), (1, 1))
            }
        return self._with_host_cells((2 * n, 2 * m), place)

    def _with_host_cells(self, mapping: Mapping, place: dict[int, tuple[int, int]]) -> HostGroup:
        return HostGroup(self.keys, mapping, tuple(sorted(place, key=place.__getitem__)))


def make_groups(hosts: int, mappings: Sequence[Mapping], width: int = 1) -> list[HostGroup]:
    """Return J hosts as groups of powers of two, with ``width`` routing keys for each host."""
    groups, first = [], 0
    for size, mapping in zip(powers_of_two(hosts), mappings, strict=True):
        groups.append(
            HostGroup(
                (first * width, (first + size) * width), mapping, tuple(range(first, first + size))
            )
        )
        first += size
    return groups


def blocks_by_group(groups: Sequence[HostGroup], blocks: Iterable[Block]) -> list[list[Block]]:
    """Return the blocks that each group stores."""
    split: list[list[Block]] = [[] for _ in groups]
    first = [g.keys[0] for g in groups]
    for b in blocks:
        split[bisect_right(first, b.key_range[0]) - 1].append(b)
    return split


def mapping_event(
    batch: int, number: int, old: HostGroup, new: HostGroup, estimate: tuple[float, float]
) -> MappingChanged:
    """Return the event of a new mapping; of the first one if old and new are the same."""
    cells = tuple(Cell(h, row, column) for h, (row, column) in new.cells_by_host().items())
    sizes = tuple(round(size) for size in estimate)
    return MappingChanged(batch, number, old.mapping, new.mapping, cells, sizes)


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
    routes = []
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
                routes.append(_route_block(block, home, part, shelves))
        for home, block in fresh:
            home.add_block(block)
    return routes


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
