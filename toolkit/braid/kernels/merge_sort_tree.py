"""A merge-sort tree, which finds rows of a range whose rank is between two bounds.

Level k has the ranks of every 4^k rows in order, with the number of their run in front. So a level
is one ascending array, and one binary search serves all nodes of it. The number of results is known
before they are made.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from braid.kernels.range_search import expand_ranges, split_into_chunks
from braid.kernels.zone_tree import split_ranges

_BITS = 2


class MergeSortTree:
    """Ranks sorted within every 4 rows, within every 16, and so on.

    - ``ranks``: rank of each row: every number below their number once.
    - ``looked_at``: nodes that were searched, once for each bound that was needed.
    """

    def __init__(self, ranks: np.ndarray) -> None:
        self.ranks, self.size = ranks, len(ranks)
        self.rows = np.empty(self.size, np.int64)
        self.rows[ranks] = np.arange(self.size)
        self.looked_at = 0
        self._levels: dict[int, npt.NDArray[np.int64]] = {}

    def _sort_level(self, level: int) -> npt.NDArray[np.int64]:
        """Return the packed ranks of a level; sorted once, when a search needs them."""
        if level not in self._levels:
            runs = np.arange(self.size) >> (_BITS * level)
            packed = runs * (self.size + 1) + self.ranks
            self._levels[level] = np.sort(packed) if level else packed
        return self._levels[level]

    def find_pairs(
        self,
        first: np.ndarray,
        last: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        most: int,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs (probe, row in [first, last) whose rank is in [low, high)), in chunks.

        - ``first``, ``last``, ``low``, ``high``: by probe.
        - ``most``: maximum number of nodes and pairs in memory, approximately.
        """
        levels = _count_levels(self.size)
        step = max(1, most // (8 * levels))
        for start in range(0, len(first), step):
            some = slice(start, start + step)
            nodes = split_ranges(first[some], last[some], levels)
            for level, (probes, at) in enumerate(nodes):
                if not len(at):
                    continue
                yield from self._search_level(level, probes + start, at, low, high, most)

    def _search_level(
        self,
        level: int,
        probes: np.ndarray,
        nodes: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        most: int,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the pairs of these probes and nodes of one level.

        The end is searched only in nodes with a result.
        """
        packed, base = self._sort_level(level), nodes * (self.size + 1)
        lowest, highest = base + low[probes], base + high[probes]
        begin = np.searchsorted(packed, lowest) if level else nodes
        first = packed[np.minimum(begin, self.size - 1)]
        hits = np.flatnonzero((first >= lowest) & (first < highest))
        self.looked_at += len(nodes)
        if not level:
            for start in range(0, len(hits), most):
                some = hits[start : start + most]
                yield probes[some], nodes[some]
            return
        self.looked_at += len(hits)
        counts = np.searchsorted(packed, highest[hits]) - begin[hits]
        for start, stop in split_into_chunks(np.cumsum(counts), most):
            some = hits[start:stop]
            for at, places in expand_ranges(some, begin[some], counts[start:stop], None, most):
                yield probes[at], self.rows[packed[places] % (self.size + 1)]


def _count_levels(rows: int) -> int:
    """Return the number of levels; the nodes of the last are at most four."""
    levels = 1
    while rows > 1 << (_BITS * levels):
        levels += 1
    return levels
