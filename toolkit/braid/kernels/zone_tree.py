"""A tree of greatest ranks, which finds rows of a range whose rank is at least a bound.

Every node has the greatest rank of four nodes below it, so it has a partner below it exactly if its
own rank is great enough. A search therefore looks at a logarithmic number of nodes for each result.
All probes descend at once, level by level.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_BITS = 2
_FAN_OUT = 1 << _BITS
Nodes = tuple[np.ndarray, np.ndarray]
"""Probes, and the nodes of one level that each of them reached."""


class ZoneTree:
    """Greatest ranks of every 4 rows, of every 16, and so on.

    - ``ranks``: rank of each row, from 0.
    - ``looked_at``: nodes that searches have compared with a bound.
    """

    def __init__(self, ranks: np.ndarray) -> None:
        self.levels = [ranks]
        while len(self.levels[-1]) > _FAN_OUT:
            self.levels.append(_find_greatest(self.levels[-1]))
        self.looked_at = 0

    def find_pairs(
        self, first: np.ndarray, last: np.ndarray, low: np.ndarray, most: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs (probe, row in [first, last) whose rank is at least ``low``), in chunks.

        - ``first``, ``last``, ``low``: by probe.
        - ``most``: maximum number of nodes and pairs in memory, approximately.
        """
        step = max(1, most // (2 * _FAN_OUT * len(self.levels)))
        for start in range(0, len(first), step):
            some = slice(start, start + step)
            for probes, rows in self._find_some(first[some], last[some], low[some], most):
                yield probes + start, rows

    def _find_some(
        self, first: np.ndarray, last: np.ndarray, low: np.ndarray, most: int
    ) -> Iterator[Nodes]:
        """Yield pairs, for a piece of the probes at a time, so that memory is bounded."""
        ends = split_ranges(first, last, len(self.levels))
        reached: Nodes = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        for level in range(len(self.levels) - 1, -1, -1):
            reached = self._keep_reaching(level, _append_nodes(reached, ends[level]), low)
            if level and _FAN_OUT * len(reached[0]) > most:
                yield from self._descend_in_parts(level, reached, low, most)
                reached = reached[0][:0], reached[1][:0]
            elif level:
                reached = _find_children(reached)
        if len(reached[0]):
            yield reached

    def _descend_in_parts(
        self, level: int, reached: Nodes, low: np.ndarray, most: int
    ) -> Iterator[Nodes]:
        """Yield the pairs below these nodes, in parts whose children fit in memory."""
        step = max(1, most // _FAN_OUT)
        for start in range(0, len(reached[0]), step):
            part = reached[0][start : start + step], reached[1][start : start + step]
            below = self._keep_reaching(level - 1, _find_children(part), low)
            if level - 1:
                yield from self._descend_in_parts(level - 1, below, low, most)
            elif len(below[0]):
                yield below

    def _keep_reaching(self, level: int, nodes: Nodes, low: np.ndarray) -> Nodes:
        """Return the nodes with a rank of at least the probe's bound."""
        probes, at = nodes
        self.looked_at += len(probes)
        enough = np.flatnonzero(self.levels[level][at] >= low[probes])
        return probes[enough], at[enough]


def _find_children(nodes: Nodes) -> Nodes:
    """Return the four nodes below each. All have rows of the block: ranges are of whole nodes."""
    probes, at = nodes
    children = (at[:, None] * _FAN_OUT + np.arange(_FAN_OUT)).ravel()
    return np.repeat(probes, _FAN_OUT), children


def _find_greatest(ranks: np.ndarray) -> np.ndarray:
    """Return the greatest of every four ranks, and of those that are left at the end."""
    return np.maximum.reduceat(ranks, np.arange(0, len(ranks), _FAN_OUT))


def _append_nodes(a: Nodes, b: Nodes) -> Nodes:
    return np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]])


def split_ranges(first: np.ndarray, last: np.ndarray, levels: int) -> list[Nodes]:
    """Return, by level, the nodes that ranges [first, last) of rows consist of, with their probe.

    A node of level k has 4^k rows. Ranges that begin at or after their end are empty.
    """
    probes = np.flatnonzero(first < last)
    first, last = first[probes], last[probes]
    reached = []
    for level in range(levels):
        if level == levels - 1:
            reached.append(expand_nodes(probes, first, last))
            break
        inner_first = -(-first // _FAN_OUT) * _FAN_OUT
        inner_last = last // _FAN_OUT * _FAN_OUT
        left = expand_nodes(probes, first, np.minimum(inner_first, last))
        right = expand_nodes(probes, np.maximum(inner_last, np.minimum(inner_first, last)), last)
        reached.append(_append_nodes(left, right))
        going_on = np.flatnonzero(inner_first < inner_last)
        probes = probes[going_on]
        first, last = inner_first[going_on] >> _BITS, inner_last[going_on] >> _BITS
    return reached


def expand_nodes(probes: np.ndarray, first: np.ndarray, last: np.ndarray) -> Nodes:
    """Return the nodes [first, last) of each probe."""
    counts = last - first
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(probes, counts), np.arange(total) + np.repeat(first - ends + counts, counts)
