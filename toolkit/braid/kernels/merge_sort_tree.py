"""A merge-sort tree, which finds rows of a range whose rank is between two bounds.

Level k has the ranks of every 4^k rows in order, with the number of their run in front. So a level
is one ascending array, and one binary search serves all nodes of it. The number of results is known
before they are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from braid.kernels.position_sort import sort_numbers
from braid.kernels.range_search import expand_ranges, split_into_chunks
from braid.kernels.zone_tree import Nodes, expand_nodes, split_ranges

_BITS = 2
_FEW = 8
"""Rows of a node with a matching rank that are checked one by one against the range of rows."""
Pairs = tuple[np.ndarray, np.ndarray]
"""Probes, and the row that each of them matches."""


class _Ranges(NamedTuple):
    """The range [first, last) of rows and the range [low, high) of ranks of each probe."""

    first: np.ndarray
    last: np.ndarray
    low: np.ndarray
    high: np.ndarray


class _Matches(NamedTuple):
    """Nodes that have rows with a matching rank.

    - ``probes``, ``nodes``: the probe and the number of the node.
    - ``begin``, ``counts``: where these rows begin in the level, and their number.
    """

    probes: np.ndarray
    nodes: np.ndarray
    begin: np.ndarray
    counts: np.ndarray

    def select_nodes(self, chosen: np.ndarray | slice) -> _Matches:
        """Return the ``chosen`` nodes."""
        return _Matches(*(each[chosen] for each in self))


class MergeSortTree:
    """Ranks sorted within every 4 rows, within every 16, and so on.

    - ``ranks``: rank of each row: every number below their number once.
    - ``looked_at``: nodes that were searched, once for each bound that was needed, and rows with a
      matching rank outside of the range.
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
            self._levels[level] = sort_numbers(packed) if level else packed
        return self._levels[level]

    def find_pairs(
        self,
        first: np.ndarray,
        last: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        most: int,
    ) -> Iterator[Pairs]:
        """Yield pairs (probe, row in [first, last) whose rank is in [low, high)), in chunks.

        - ``first``, ``last``, ``low``, ``high``: by probe.
        - ``most``: maximum number of nodes and pairs in memory, approximately.
        """
        ranges, step = _Ranges(first, last, low, high), max(1, most // 8)
        for start in range(0, len(first), step):
            probes = start + np.flatnonzero(
                first[start : start + step] < last[start : start + step]
            )
            levels = _choose_levels(last[probes] - first[probes])
            for level in np.flatnonzero(np.bincount(levels)).tolist():
                yield from self._search_covering_nodes(level, probes[levels == level], ranges, most)

    def _search_covering_nodes(
        self, level: int, probes: np.ndarray, ranges: _Ranges, most: int
    ) -> Iterator[Pairs]:
        """Yield the pairs of these probes, from the nodes of one level that cover their ranges.

        The first and the last node may have rows outside of the range. If many of its rows have a
        matching rank, the nodes below it are searched instead, so that the cost follows the pairs.
        """
        shift = _BITS * level
        begin, end = ranges.first[probes] >> shift, (ranges.last[probes] - 1 >> shift) + 1
        matches = self._count_matches(level, expand_nodes(probes, begin, end), ranges)
        if not level:
            yield from self._expand_matches(level, matches, most)
            return
        node_first = np.maximum(matches.nodes << shift, ranges.first[matches.probes])
        node_last = np.minimum(matches.nodes + 1 << shift, ranges.last[matches.probes])
        is_cut = node_last - node_first < np.minimum(
            1 << shift, self.size - (matches.nodes << shift)
        )
        has_many = is_cut & (matches.counts > _FEW)
        for pairs, rows in self._expand_matches(level, matches.select_nodes(~has_many), most):
            inside = (rows >= ranges.first[pairs]) & (rows < ranges.last[pairs])
            self.looked_at += len(rows) - int(np.count_nonzero(inside))
            yield pairs[inside], rows[inside]
        parts = ranges._replace(first=node_first[has_many], last=node_last[has_many])
        yield from self._search_nodes_below(level, matches.probes[has_many], parts, most)

    def _search_nodes_below(
        self, level: int, probes: np.ndarray, parts: _Ranges, most: int
    ) -> Iterator[Pairs]:
        """Yield the pairs of parts of nodes of a level, from nodes below that make up each part.

        - ``probes``: probe of each part.
        - ``parts``: the rows of each part; the ranks are by probe.
        """
        step = max(1, most // (8 * level))
        for start in range(0, len(probes), step):
            some = slice(start, start + step)
            nodes = split_ranges(parts.first[some], parts.last[some], level)
            for below, (which, at) in enumerate(nodes):
                matches = self._count_matches(below, (probes[some][which], at), parts)
                yield from self._expand_matches(below, matches, most)

    def _count_matches(self, level: int, nodes: Nodes, ranges: _Ranges) -> _Matches:
        """Return the nodes of a level that have rows with a matching rank.

        The end is searched only in nodes with a match.
        """
        probes, at = nodes
        packed, base = self._sort_level(level), at * (self.size + 1)
        lowest, highest = base + ranges.low[probes], base + ranges.high[probes]
        begin = np.searchsorted(packed, lowest) if level else at
        least = packed[np.minimum(begin, self.size - 1)]
        hits = np.flatnonzero((least >= lowest) & (least < highest))
        begin = begin[hits]
        self.looked_at += len(at) + (len(hits) if level else 0)
        end = np.searchsorted(packed, highest[hits]) if level else begin + 1
        return _Matches(probes[hits], at[hits], begin, end - begin)

    def _expand_matches(self, level: int, matches: _Matches, most: int) -> Iterator[Pairs]:
        """Yield the pairs (probe, row) of these nodes, in chunks."""
        packed = self._sort_level(level)
        for start, stop in split_into_chunks(np.cumsum(matches.counts), most):
            part = matches.select_nodes(slice(start, stop))
            for probes, at in expand_ranges(part.probes, part.begin, part.counts, None, most):
                yield probes, self.rows[packed[at] % (self.size + 1)] if level else at


def _choose_levels(widths: np.ndarray) -> np.ndarray:
    """Return the level at which a few nodes cover a range, by its ``widths`` in rows.

    A node has at most the rows of the range, and more than a quarter of them.
    """
    return (np.frexp(widths)[1] - 1) // _BITS
