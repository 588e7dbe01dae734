"""The spread: the hosts that share each frequent value, and the tiles of routing keys."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from braid.core.plan import Keys
from braid.papers.hotkeys.value_work import ValueWork

Spread = Mapping[int, tuple[int, ...]]
"""By frequent value, the hosts that share its tuples, ascending. All other values are at home."""

GRAINS = (1.0, 0.8, 0.65, 0.5, 0.35, 0.25, 0.12)
"""Work of a value on each of its hosts, as keys_per_value of the mean work of a host."""
EVEN = 1.06
"""Busiest host over mean at which no finer grain is tried."""
NOTICED = 0.3
"""A value with more than this part of the mean work is always shared out."""
COOLED = 0.1
"""A value with less than this part of the mean work goes home."""
STEP = 0.05
"""Loads that differ by less than this part of the mean are taken as equal."""


@dataclass(frozen=True)
class ValueRanges:
    """The home of each value: hosts have consecutive ranges of values of equal size.

    - ``hosts``: number of hosts.
    - ``values``: number of values.
    - ``keys_per_value``: number of routing keys of a value, at most this many hosts share it.
    """

    hosts: int
    values: int
    keys_per_value: int

    def first_value(self, host: int) -> int:
        """Return the first value of a host; for the number of hosts, the number of values."""
        return host * self.values // self.hosts

    def home_host(self, value: int) -> int:
        """Return the host of a value that is not shared out."""
        return ((value + 1) * self.hosts - 1) // self.values

    def most_sharing_hosts(self) -> int:
        """Return how many hosts may share a value, so that their parts differ little."""
        return min(self.hosts, max(2, self.keys_per_value // 4))


@dataclass(frozen=True)
class Tile:
    """A range of routing keys whose new tuples one host stores.

    - ``group``: number of its range of values; the tiles of a frequent value have the same.
    """

    keys: Keys
    host: int
    group: int


class TileTable:
    """The tiles of a spread: they ascend, and together hold all routing keys.

    - ``tiles``: all tiles.
    - ``group_starts``: first value of each group, ascending.
    """

    def __init__(self, ranges: ValueRanges, spread: Spread) -> None:
        self.ranges = ranges
        self.tiles: list[Tile] = []
        self.group_starts: list[int] = []
        hot = sorted(spread)
        for host in range(ranges.hosts):
            first, end = ranges.first_value(host), ranges.first_value(host + 1)
            at = first
            for value in hot[bisect_left(hot, first) : bisect_left(hot, end)]:
                self._add_group(at, value, (host,))
                self._add_group(value, value + 1, spread[value])
                at = value + 1
            self._add_group(at, end, (host,))

    def _add_group(self, first: int, end: int, hosts: tuple[int, ...]) -> None:
        """Add the tiles of a range of values, which some hosts share."""
        if first == end:
            return
        low, high = first * self.ranges.keys_per_value, end * self.ranges.keys_per_value
        bounds = [low + (high - low) * k // len(hosts) for k in range(len(hosts) + 1)]
        group = len(self.group_starts)
        self.group_starts.append(first)
        self.tiles += [Tile(k, h, group) for k, h in zip(pairwise(bounds), hosts, strict=True)]

    @cached_property
    def tile_starts(self) -> list[int]:
        """The first routing key of each tile."""
        return [tile.keys[0] for tile in self.tiles]

    def overlapped_groups(self, keys: Keys) -> range:
        """Return the numbers of the groups that share a value with some routing keys."""
        low, high = keys[0] // self.ranges.keys_per_value, -(-keys[1] // self.ranges.keys_per_value)
        first = bisect_right(self.group_starts, low) - 1
        return range(first, bisect_left(self.group_starts, high))

    def split_keys(self, keys: Keys) -> Iterator[tuple[Keys, int]]:
        """Yield the pieces of a range of routing keys, each with the host it belongs to."""
        at = keys[0]
        for tile, following in pairwise((*self._overlapped_tiles(keys), None)):
            assert tile is not None
            end = min(tile.keys[1], keys[1])
            if following is None or following.host != tile.host:
                yield (at, end), tile.host
                at = end

    def _overlapped_tiles(self, keys: Keys) -> list[Tile]:
        first = bisect_right(self.tile_starts, keys[0]) - 1
        return self.tiles[first : bisect_left(self.tile_starts, keys[1])]


def host_micros(work: ValueWork, spread: Spread, ranges: ValueRanges) -> list[float]:
    """Return the modelled work of each host under a spread, in microseconds.

    Every tuple of a shared value goes to all of its hosts, which share its pairs.
    """
    loads = [work.rest / ranges.hosts] * ranges.hosts
    for value in work.tuples:
        hosts = spread.get(value) or (ranges.home_host(value),)
        for host in hosts:
            loads[host] += work.tuples[value] + work.pairs[value] / len(hosts)
    return loads


def busiest_over_mean(loads: list[float]) -> float:
    """Return the load of the busiest host divided by the mean; 1 if there is no load."""
    return max(loads) * len(loads) / sum(loads) if any(loads) else 1.0


def drop_cooled_values(spread: Spread, work: ValueWork, ranges: ValueRanges) -> Spread:
    """Return the spread without values that are no longer frequent."""
    limit = COOLED * work.total_micros() / ranges.hosts
    return {v: hosts for v, hosts in spread.items() if work.value_micros(v) >= limit}


def pack_values(work: ValueWork, present: Spread, ranges: ValueRanges) -> Spread:
    """Return a spread of the frequent values: the coarsest that is even, or the one with the least
    work on the busiest host.
    """
    best, least = present, max(host_micros(work, present, ranges))
    for grain in GRAINS:
        packed = _pack_by_grain(work, present, ranges, grain)
        loads = host_micros(work, packed, ranges)
        if busiest_over_mean(loads) <= EVEN and max(loads) < least:
            return packed
        if max(loads) < least:
            best, least = packed, max(loads)
    return best


def _pack_by_grain(work: ValueWork, present: Spread, ranges: ValueRanges, grain: float) -> Spread:
    """Return a spread in which each host has about ``grain`` of the mean work for a value.

    The heaviest value first, each goes to the hosts with the least load. Of equal ones, those that
    have it already are taken.
    """
    mean = work.total_micros() / ranges.hosts
    heavy = [v for v in work.tuples if work.value_micros(v) > min(grain, NOTICED) * mean]
    heavy.sort(key=lambda v: (-work.value_micros(v), v))
    light = {v: work.tuples[v] for v in work.tuples.keys() - set(heavy)}
    loads = host_micros(replace(work, tuples=light), {}, ranges)
    packed: dict[int, tuple[int, ...]] = {}
    for value in heavy:
        wanted = -(-work.value_micros(value) // (grain * mean))
        count = int(min(max(wanted, 2), ranges.most_sharing_hosts()))
        there = present.get(value, ())
        order = sorted(
            range(ranges.hosts),
            key=lambda h: (int(loads[h] / (STEP * mean)), h not in there, loads[h], h),
        )
        packed[value] = tuple(sorted(order[:count]))
        for host in packed[value]:
            loads[host] += work.tuples[value] + work.pairs[value] / count
    return packed
