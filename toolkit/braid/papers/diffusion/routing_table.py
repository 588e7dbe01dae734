"""The routing table of CTR: the blocks of each host, and covers of blocks by hosts.

Sets are bit masks: ``sets`` maps a host to the blocks that it holds (bit b is set for block b),
``wanted`` is the mask of the blocks to cover, ``weights`` are by host, above 0. A cover lists hosts
in the order in which they were chosen. Functions raise ValueError if a wanted block is on no host.

Source: Gu, Yu and Wang, ICDE 2007, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from random import Random

from braid.core.plan import Block, Hop

Probes = dict[int, int]
"""A hop: by host, the mask of the blocks to probe there.

Bit b stands for the b-th block of the stream in the table.
"""


class RoutingTable:
    """The locations of the live blocks.

    By stream: ``ids``, ``sets`` (a mask of blocks by host) and ``rows``, the number of tuples.
    ``places`` are the sets of hosts that store something.
    """

    def __init__(self, streams: int, blocks: Iterable[Block]) -> None:
        self.ids: list[list[int]] = [[] for _ in range(streams)]
        self.sets: list[dict[int, int]] = [{} for _ in range(streams)]
        self.rows = [0] * streams
        self.places: dict[tuple[int, ...], None] = {}
        for block in blocks:
            self.add_block(block, block.rows)

    def add_block(self, block: Block, rows: int) -> None:
        """Enter a block of ``rows`` tuples under the hosts that hold it."""
        sets, bit = self.sets[block.stream], 1 << len(self.ids[block.stream])
        for host in block.hosts:
            sets[host] = sets.get(host, 0) | bit
        self.ids[block.stream].append(block.id)
        self.rows[block.stream] += rows
        self.places[block.hosts] = None

    def stream_mask(self, stream: int) -> int:
        """Return the mask of all blocks of a stream."""
        return (1 << len(self.ids[stream])) - 1

    def idle_hosts(self, hosts: int) -> list[int]:
        """Return the hosts that hold nothing."""
        held = {h for place in self.places for h in place}
        return [h for h in range(hosts) if h not in held]

    def make_hop(self, stream: int, probes: Probes) -> Hop:
        """Return the hop to a stream that probes these bits of its blocks, by host."""
        ids = self.ids[stream]
        return Hop(
            stream,
            {h: tuple(ids[b] for b in _iterate_set_bits(mask)) for h, mask in probes.items()},
        )


def _iterate_set_bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


Sets = Mapping[int, int]


def greedy_cover(sets: Sets, weights: Sequence[float], wanted: int) -> list[int]:
    """Return a greedy cover: repeatedly the host with the least weight per uncovered block.

    The cover weighs at most H(d) = 1 + 1/2 + ... + 1/d times the lightest one, where d is the
    largest number of wanted blocks on one host. Of hosts with the same blocks only the lightest is
    considered. Ratios only grow while blocks get covered. So the head of a heap of old ratios, once
    updated, is the next host if it stays the head. Source: Chvatal 1979, as Gu 2007 uses it in
    section 4.1.
    """
    lightest: dict[int, int] = {}
    for j, mask in sets.items():
        if (has := mask & wanted) and (
            has not in lightest or (weights[j], j) < (weights[lightest[has]], lightest[has])
        ):
            lightest[has] = j
    heap = [(weights[j] / has.bit_count(), j) for has, j in lightest.items()]
    heapify(heap)
    cover = []
    while wanted:
        j = _pop_cheapest_host(heap, wanted)
        if left := (sets[j] & wanted).bit_count():
            now = (weights[j] / left, j)
            if heap and heap[0] < now:
                heappush(heap, now)
            else:
                cover.append(j)
                wanted &= ~sets[j]
    return cover


def random_cover(sets: Sets, draw: Random, wanted: int) -> list[int]:
    """Return a random cover: draw hosts and keep those with an uncovered block.

    This is CTR-unoptimized (Gu 2007, section 5).
    """
    heap = [(draw.random(), j) for j, mask in sets.items() if mask & wanted]
    heapify(heap)
    cover = []
    while wanted:
        j = _pop_cheapest_host(heap, wanted)
        if sets[j] & wanted:
            cover.append(j)
            wanted &= ~sets[j]
    return cover


def _pop_cheapest_host(heap: list[tuple[float, int]], wanted: int) -> int:
    if not heap:
        raise ValueError(
            f"{wanted.bit_count()} blocks are on none of the hosts; a block can only be covered by "
            "a host that has it"
        )
    return heappop(heap)[1]
