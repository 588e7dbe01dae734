"""The spread: the hosts that share each frequent value, and the tiles of routing keys."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from braid.core.plan import Block, Keys
from braid.papers.hotkeys.value_work import ValueWork


class SharedValue(NamedTuple):
    """A frequent value and the hosts that share its tuples.

    - ``value``: its number.
    - ``hosts``: ascending.
    - ``kept_stream``: the stream whose tuples are stored and probe on one of the hosts each, while
      all of the hosts store those of the other streams; None: each tuple is stored once and probes
      all.
    """

    value: int
    hosts: tuple[int, ...]
    kept_stream: int | None = None


Spread = Mapping[int, SharedValue]
"""The frequent values by number. All other values are at home."""

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
MARGIN = 1.5
"""Factor on the copies that a value would have if it begins to keep a stream. Without it, a value
near the limit would change to and fro.
"""


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
    """A range of routing keys whose new tuples each of some hosts stores; usually one.

    - ``group``: number of its range of values; the tiles of a frequent value have the same.
    """

    keys: Keys
    hosts: tuple[int, ...]
    group: int


class TileTable:
    """The tiles of a stream under a spread: they ascend, and together hold all routing keys.

    - ``tiles``: all tiles.
    - ``group_starts``: first value of each group, ascending; the same for all streams.
    """

    def __init__(self, ranges: ValueRanges, spread: Spread, stream: int = 0) -> None:
        self.ranges = ranges
        self.tiles: list[Tile] = []
        self.group_starts: list[int] = []
        hot = sorted(spread)
        for host in range(ranges.hosts):
            first, end = ranges.first_value(host), ranges.first_value(host + 1)
            at = first
            for value in hot[bisect_left(hot, first) : bisect_left(hot, end)]:
                self._add_group(at, value, [(host,)])
                _, hosts, kept_stream = spread[value]
                is_everywhere = kept_stream is not None and kept_stream != stream
                self._add_group(
                    value, value + 1, [hosts] if is_everywhere else [(h,) for h in hosts]
                )
                at = value + 1
            self._add_group(at, end, [(host,)])

    def _add_group(self, first: int, end: int, parts: Sequence[tuple[int, ...]]) -> None:
        """Add the tiles of a range of values: one for each part, with the hosts that store it."""
        if first == end:
            return
        low, high = first * self.ranges.keys_per_value, end * self.ranges.keys_per_value
        bounds = [low + (high - low) * k // len(parts) for k in range(len(parts) + 1)]
        group = len(self.group_starts)
        self.group_starts.append(first)
        self.tiles += [Tile(k, h, group) for k, h in zip(pairwise(bounds), parts, strict=True)]

    @cached_property
    def tile_starts(self) -> list[int]:
        """The first routing key of each tile."""
        return [tile.keys[0] for tile in self.tiles]

    def overlapped_groups(self, keys: Keys) -> range:
        """Return the numbers of the groups that share a value with some routing keys."""
        low, high = keys[0] // self.ranges.keys_per_value, -(-keys[1] // self.ranges.keys_per_value)
        first = bisect_right(self.group_starts, low) - 1
        return range(first, bisect_left(self.group_starts, high))

    def split_keys(self, keys: Keys) -> Iterator[tuple[Keys, tuple[int, ...]]]:
        """Yield the pieces of a range of routing keys, each with the hosts that are to store it."""
        at = keys[0]
        for tile, following in pairwise((*self._overlapped_tiles(keys), None)):
            assert tile is not None
            end = min(tile.keys[1], keys[1])
            if following is None or following.hosts != tile.hosts:
                yield (at, end), tile.hosts
                at = end

    def is_copied(self, block: Block) -> bool:
        """Return whether several hosts are to store a part of a block."""
        return any(len(tile.hosts) > 1 for tile in self._overlapped_tiles(block.key_range))

    def _overlapped_tiles(self, keys: Keys) -> list[Tile]:
        first = bisect_right(self.tile_starts, keys[0]) - 1
        return self.tiles[first : bisect_left(self.tile_starts, keys[1])]


def make_tile_tables(ranges: ValueRanges, spread: Spread, streams: int) -> list[TileTable]:
    """Return the tiles of each stream."""
    if all(shared.kept_stream is None for shared in spread.values()):
        return [TileTable(ranges, spread)] * streams
    return [TileTable(ranges, spread, stream) for stream in range(streams)]


def host_micros(work: ValueWork, spread: Spread, ranges: ValueRanges) -> list[float]:
    """Return the modelled work of each host under a spread, in microseconds."""
    loads = [work.rest / ranges.hosts] * ranges.hosts
    for value in work.tuples:
        shared = spread.get(value) or SharedValue(value, (ranges.home_host(value),))
        _add_load(loads, work, shared)
    return loads


def _add_load(loads: list[float], work: ValueWork, shared: SharedValue) -> None:
    """Add the work of a value to its hosts."""
    micros = work.shared_micros(shared.value, len(shared.hosts), shared.kept_stream)
    for host in shared.hosts:
        loads[host] += micros


def busiest_over_mean(loads: list[float]) -> float:
    """Return the load of the busiest host divided by the mean; 1 if there is no load."""
    return max(loads) * len(loads) / sum(loads) if any(loads) else 1.0


def drop_cooled_values(spread: Spread, work: ValueWork, ranges: ValueRanges) -> Spread:
    """Return the spread without values that are no longer frequent."""
    limit = COOLED * work.total_micros() / ranges.hosts
    return {v: shared for v, shared in spread.items() if work.value_micros(v) >= limit}


def choose_kept_streams(work: ValueWork, spread: Spread, copies: float) -> Spread:
    """Return the spread in which each value has the form that its streams' rates call for now.

    ``copies``: stored tuples that may exist beside one of each; the heaviest values come first.
    """
    chosen = dict(spread)
    for value in sorted(spread, key=lambda v: (-work.value_micros(v), v)):
        chosen[value] = _choose_kept_stream(work, spread[value], spread, copies)
        copies -= count_copies(work, chosen[value])
    return chosen


def count_copies(work: ValueWork, shared: SharedValue) -> float:
    """Return the stored tuples of a value beside one of each."""
    if shared.kept_stream is None:
        return 0.0
    return (len(shared.hosts) - 1) * _sum_others(work.held[shared.value], shared.kept_stream)


def _choose_kept_stream(
    work: ValueWork, shared: SharedValue, present: Spread, copies: float
) -> SharedValue:
    """Return a value with the stream to keep, or with none.

    A stream is kept if the copies of the other streams' new tuples on all hosts are at most its own
    new tuples, and those of the stored ones at most ``copies``. Less is then sent and stored than
    if each tuple is stored once and probes all hosts.
    """
    fresh = work.fresh.get(shared.value, ())
    if not any(fresh):
        return shared._replace(kept_stream=None)
    most = max(range(len(fresh)), key=lambda s: (fresh[s], -s))
    chosen, before = shared._replace(kept_stream=most), present.get(shared.value)
    margin = 1.0 if before is not None and before.kept_stream == most else MARGIN
    sent, stored = len(shared.hosts) * _sum_others(fresh, most), count_copies(work, chosen)
    is_rare = margin * sent <= fresh[most] and margin * stored <= copies
    return chosen if is_rare else shared._replace(kept_stream=None)


def _sum_others(tuples: Sequence[float], stream: int) -> float:
    """Return the tuples of all streams but one."""
    return sum(tuples) - tuples[stream]


def pack_values(
    work: ValueWork, present: Spread, ranges: ValueRanges, copies: float = 0.0
) -> Spread:
    """Return a spread of the frequent values: the coarsest that is even, or the one with the least
    work on the busiest host.

    ``copies``: stored tuples that may exist beside one of each.
    """
    best, least = present, max(host_micros(work, present, ranges))
    for grain in GRAINS:
        packed = _pack_by_grain(work, present, ranges, grain, copies)
        loads = host_micros(work, packed, ranges)
        if busiest_over_mean(loads) <= EVEN and max(loads) < least:
            return packed
        if max(loads) < least:
            best, least = packed, max(loads)
    return best


def _pack_by_grain(
    work: ValueWork, present: Spread, ranges: ValueRanges, grain: float, copies: float = 0.0
) -> Spread:
    """Return a spread in which each host has about ``grain`` of the mean work for a value.

    The heaviest value first, each goes to the hosts with the least load. Of equal ones, those that
    have it already are taken.
    """
    mean = work.total_micros() / ranges.hosts
    heavy = [v for v in work.tuples if work.value_micros(v) > min(grain, NOTICED) * mean]
    heavy.sort(key=lambda v: (-work.value_micros(v), v))
    light = {v: work.tuples[v] for v in work.tuples.keys() - set(heavy)}
    loads = host_micros(replace(work, tuples=light), {}, ranges)
    packed: dict[int, SharedValue] = {}
    for value in heavy:
        wanted = -(-work.value_micros(value) // (grain * mean))
        count = int(min(max(wanted, 2), ranges.most_sharing_hosts()))
        there = present[value].hosts if value in present else ()
        order = sorted(
            range(ranges.hosts),
            key=lambda h: (int(loads[h] / (STEP * mean)), h not in there, loads[h], h),
        )
        shared = SharedValue(value, tuple(sorted(order[:count])))
        packed[value] = _choose_kept_stream(work, shared, present, copies)
        copies -= count_copies(work, packed[value])
        _add_load(loads, work, packed[value])
    return packed
