"""Meetings of several arrivals of partial results with several blocks that are probed at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from braid.kernels.compared_pairs import CandidatePairs
from braid.kernels.host_block_rows import BlockRows, PartialMatches


@dataclass(frozen=True)
class Meetings:
    """Which arrivals meet which blocks.

    - ``numbers``: by arrival and block, the number of their meeting; -1: they do not meet.
    - ``count``: number of meetings.
    """

    numbers: np.ndarray
    count: int

    @classmethod
    def from_pairs(cls, arrivals: np.ndarray, blocks: np.ndarray, shape: tuple[int, int]) -> Self:
        """Return the meetings of these arrivals and blocks, numbered in order."""
        numbers = np.full(shape, -1, np.int32)
        numbers[arrivals, blocks] = np.arange(len(arrivals))
        return cls(numbers, len(arrivals))

    def keep_due(self, pairs: CandidatePairs) -> CandidatePairs:
        """Return the pairs whose arrival and block meet."""
        if self.count == self.numbers.size:
            return pairs
        met = self._find_numbers(pairs.partial, pairs.left, pairs.rows, pairs.right)
        return pairs.take_positions(np.flatnonzero(met >= 0))

    def count_pairs(self, pairs: CandidatePairs) -> np.ndarray:
        """Return the number of these pairs by meeting. All of them are due."""
        return self._count_pairs(pairs.partial, pairs.left, pairs.rows, pairs.right)

    def count_matches(self, matches: PartialMatches, stream: int) -> np.ndarray:
        """Return the number of these matches with rows of ``stream``, by meeting."""
        rows, right = matches.parts[stream]
        return self._count_pairs(matches, None, rows, right)

    def _count_pairs(
        self, partial: PartialMatches, left: np.ndarray | None, rows: BlockRows, right: np.ndarray
    ) -> np.ndarray:
        if self.numbers.size == 1:
            return np.array([len(right)])
        return np.bincount(self._find_numbers(partial, left, rows, right), minlength=self.count)

    def _find_numbers(
        self, partial: PartialMatches, left: np.ndarray | None, rows: BlockRows, right: np.ndarray
    ) -> np.ndarray:
        """Return the meeting of each pair; ``left`` None: of each partial result."""
        block = 0 if rows.sources is None else rows.sources[right]
        if (arrivals := partial.origins) is None:
            return self.numbers[0, np.broadcast_to(block, len(right))]
        return np.asarray(self.numbers[arrivals if left is None else arrivals[left], block])


ONE_MEETING = Meetings(np.zeros((1, 1), np.int32), 1)
"""The meeting of partial results of one arrival with one block."""


def split_by_origin(partial: PartialMatches) -> Iterator[tuple[int, PartialMatches]]:
    """Yield partial results by the number of their arrival."""
    if (origins := partial.origins) is None:
        yield 0, partial
        return
    order = np.argsort(origins, kind="stable")
    numbers, starts = np.unique(origins[order], return_index=True)
    single = replace(partial, origins=None)
    for number, at in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        yield number, single.take_positions(at)
