"""Segments: the rows of several blocks of a stream, one block after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from braid.condition.access_paths import Order
from braid.core.reserved_columns import TIME
from braid.kernels.block_orders import RANKS, find_blocks_to_rank, sort_blocks_within
from braid.kernels.host_block_rows import BlockRows, take_block_rows
from braid.kernels.range_search import concat_position_ranges
from braid.kernels.value_sizes import value_bytes_by_slice


@dataclass(frozen=True)
class Segment:
    """The rows of several blocks that are not empty.

    - ``ends``: by block, the position after its last row.
    """

    batch: pa.RecordBatch
    ends: np.ndarray

    @cached_property
    def starts(self) -> np.ndarray:
        """The position of the first row of each block."""
        return np.concatenate([[0], self.ends[:-1]])

    def list_bounds(self) -> list[tuple[int, int]]:
        """Return, by block, its rows as a half-open range."""
        return [*zip(self.starts.tolist(), self.ends.tolist(), strict=True)]

    def build_blocks(
        self, orders: Sequence[Order], stores_orders: bool = True
    ) -> list[tuple[Segment, npt.NDArray[np.intp]]] | None:
        """Return segments with the same blocks, built, and the numbers of the blocks in each.

        Rows are sorted by the first order's column. Blocks that are sorted within equal values are
        in a segment of their own. None: blocks store several orders, so that each is built alone.

        ``stores_orders``: as for ``build_block``.
        """
        if len(orders) > 1 and stores_orders:
            return None
        is_ranked = find_blocks_to_rank(self.batch, orders[0], self.starts)
        if not is_ranked.any():
            return [(self, np.arange(len(self.ends)))]
        others, ranked = np.flatnonzero(~is_ranked), np.flatnonzero(is_ranked)
        built = [(self._rank_blocks(ranked, orders[0], stores_orders), ranked)]
        if len(others):
            at, sizes = self._find_rows(others)
            built.append((Segment(take_block_rows(self.batch, at), np.cumsum(sizes)), others))
        return built

    def _find_rows(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of the rows of some blocks, and the number of rows of each."""
        sizes = (self.ends - self.starts)[numbers]
        return concat_position_ranges(self.starts[numbers], sizes), sizes

    def _rank_blocks(self, numbers: np.ndarray, order: Order, stores_orders: bool) -> Segment:
        """Return the segment of some blocks, sorted within equal values."""
        at, sizes = self._find_rows(numbers)
        at, ranks = sort_blocks_within(self.batch, order, at, sizes)
        rows = take_block_rows(self.batch, at)
        if stores_orders:
            rows = rows.append_column(RANKS + order.name, pa.array(ranks))
        return Segment(rows, np.cumsum(sizes))

    def slice_blocks(self, births: Sequence[Sequence[int]] = ()) -> list[BlockRows]:
        """Return the blocks, whose bytes and event times are found for all at once.

        ``births``: by block, as in ``BlockRows``. Default: none.
        """
        blocks = [BlockRows.from_segment(self.batch, rows) for rows in self.list_bounds()]
        times = self.batch.column(TIME).to_numpy()
        first = np.minimum.reduceat(times, self.starts).tolist()
        last = np.maximum.reduceat(times, self.starts).tolist()
        sizes = self.block_bytes.tolist()
        for rows, span, size in zip(blocks, zip(first, last, strict=True), sizes, strict=True):
            rows.set_measures(span, size)
        for rows, birth in zip(blocks, births, strict=False):
            rows.births = birth
        return blocks

    @cached_property
    def block_bytes(self) -> np.ndarray:
        """The bytes of each block; see ``value_bytes``."""
        return value_bytes_by_slice(self.batch, self.starts, self.ends)
