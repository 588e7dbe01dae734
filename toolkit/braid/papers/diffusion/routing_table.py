"""The routing table of CTR, built from the facts of a batch.

Source: Gu, Yu and Wang, ICDE 2007, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
