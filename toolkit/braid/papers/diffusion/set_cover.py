"""Weighted minimum set cover: the hosts that together hold some blocks, at the least load.

Sets are bit masks: ``sets`` maps a host to the blocks that it holds (bit b is set for block b),
``wanted`` is the mask of the blocks to cover, ``weights`` are by host, above 0. Every function
returns hosts in the order in which they were chosen. It raises ValueError if a wanted block is on
no host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from random import Random

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
