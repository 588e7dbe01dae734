"""Segments: the rows of several blocks of a stream, one block after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from braid.core.reserved_columns import TIME
from braid.kernels.host_block_rows import BlockRows
from braid.kernels.value_sizes import value_bytes_by_slice


@dataclass(frozen=True)
class Segment:
    """The rows of several blocks that are not empty.

    - ``ends``: by block, the position after its last row.
    """

    batch: pa.RecordBatch
    ends: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        """The position of the first row of each block."""
        return np.concatenate([[0], self.ends[:-1]])

    def list_bounds(self) -> list[tuple[int, int]]:
        """Return, by block, its rows as a half-open range."""
        return [*zip(self.starts.tolist(), self.ends.tolist(), strict=True)]

    def slice_blocks(self, births: Sequence[Sequence[int]] = ()) -> list[BlockRows]:
        """Return the blocks, whose bytes and event times are found for all at once.

        ``births``: by block, as in ``BlockRows``. Default: none.
        """
        blocks = [BlockRows.from_segment(self.batch, rows) for rows in self.list_bounds()]
        times = self.batch.column(TIME).to_numpy()
        first = np.minimum.reduceat(times, self.starts).tolist()
        last = np.maximum.reduceat(times, self.starts).tolist()
        sizes = self.measure_blocks().tolist()
        for rows, span, size in zip(blocks, zip(first, last, strict=True), sizes, strict=True):
            rows.set_measures(span, size)
        for rows, birth in zip(blocks, births, strict=False):
            rows.births = birth
        return blocks

    def measure_blocks(self) -> np.ndarray:
        """Return the bytes of each block; see ``value_bytes``."""
        return value_bytes_by_slice(self.batch, self.starts, self.ends)
