"""Candidate pairs of a probe, and the values of their columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from braid.condition.access_paths import IndexCondition
from braid.core.reserved_columns import ROUTING
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.order_search import PairChunk
from braid.kernels.range_search import evaluate_condition


class CandidatePairs(NamedTuple):
    """Pairs of a partial result and a row of a block of ``stream``, as positions in both.

    - ``unchecked``: conditions of the access path that they may not fulfill.
    """

    partial: PartialMatches
    left: np.ndarray
    rows: BlockRows
    right: np.ndarray
    stream: int
    unchecked: tuple[IndexCondition, ...] = ()

    @classmethod
    def from_chunk(
        cls, chunk: PairChunk, partial: PartialMatches, rows: BlockRows, stream: int
    ) -> CandidatePairs:
        """Return the pairs that an access path found, if the stored row belongs to this host."""
        pairs = cls(partial, chunk.left, rows, chunk.right, stream, chunk.unchecked)
        return pairs.keep_in_key_range()

    def take_positions(self, at: np.ndarray) -> CandidatePairs:
        """Return some of the pairs."""
        return self._replace(left=self.left[at], right=self.right[at])

    def column_values(self, stream: int, name: str) -> np.ndarray:
        """Return a number of each pair."""
        if stream == self.stream:
            return self.rows.numpy_column(name)[self.right]
        return self.partial.values_at(stream, name, self.left)

    def evaluate_condition(self, condition: IndexCondition) -> np.ndarray:
        """Return a mask of the pairs that fulfill an exact condition."""
        a, b = (self.column_values(*end) for end in condition.ends)
        return evaluate_condition(a, b, condition)

    def keep_in_key_range(self) -> CandidatePairs:
        """Return the pairs whose stored row belongs to this host."""
        if self.rows.keys is None:
            return self
        key = self.rows.numpy_column(ROUTING)[self.right]
        low, high = self.rows.keys
        return self.take_positions(np.flatnonzero((key >= low) & (key < high)))
