"""Merge and cut small blocks of many hosts together: one sort and one copy for all of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from braid.condition.access_paths import Order
from braid.core.plan import Derivation, Keys
from braid.core.reserved_columns import ROUTING
from braid.core.run_state import ReplicaAddress
from braid.kernels.block_builder import build_block
from braid.kernels.host_block_rows import (
    BlockRows,
    concat_rows,
    order_by_segment,
    take_block_rows,
)
from braid.kernels.position_sort import sort_positions
from braid.kernels.range_search import concat_position_ranges, split_into_chunks
from braid.kernels.segment_rows import Segment
from braid.storage.block_files import BlockFileWriter

_SMALL = 1 << 14
"""Rows up to which a merged block is made together with others."""
_MOST_BYTES = 1 << 27
"""Bytes of rows that are sorted at once, unless one block has more."""


class Merge(NamedTuple):
    """A merger of blocks, or a cut of one, whose result some hosts share.

    - ``hosts``: by host, the one whose replicas it reads.
    - ``size_bytes``, ``rows``: of the sources.
    """

    derivation: Derivation
    hosts: dict[int, int]
    sources: Sequence[BlockRows]
    size_bytes: int
    rows: int

    @property
    def is_small(self) -> bool:
        """Whether it is worth to make it with others."""
        return self.rows <= _SMALL

    def source_key_ranges(self) -> list[Keys]:
        """Return, by source, the routing keys of the rows that it takes."""
        keys = self.derivation.block.key_range
        return [intersect_key_ranges(rows.keys, keys) for rows in self.sources]


class MergedBlock(NamedTuple):
    """A merged block and its address. ``hosts``: by host, the one whose replicas it read."""

    block: int
    hosts: dict[int, int]
    address: ReplicaAddress
    rows: BlockRows


def merge_together(
    merges: Sequence[Merge], orders: Mapping[int, Sequence[Order]], files: BlockFileWriter
) -> Iterator[MergedBlock]:
    """Make and write merged blocks, without those that are empty. ``orders``: by stream."""
    for stream, stream_orders in orders.items():
        of_stream = [merge for merge in merges if merge.derivation.block.stream == stream]
        ends = np.cumsum([merge.size_bytes for merge in of_stream])
        for start, stop in split_into_chunks(ends, _MOST_BYTES):
            yield from _merge_at_once(of_stream[start:stop], stream_orders, files)


def _merge_at_once(
    merges: Sequence[Merge], orders: Sequence[Order], files: BlockFileWriter
) -> Iterator[MergedBlock]:
    segment, numbers = _sort_merged_rows(merges, orders[0].column)
    filled = [merges[n] for n in numbers]
    if not filled:
        return
    stream = filled[0].derivation.block.stream
    if (built := segment.build_blocks(orders)) is None:
        slices = (segment.batch.slice(first, end - first) for first, end in segment.list_bounds())
        blocks = [BlockRows(build_block(rows, orders, ordered=True)) for rows in slices]
        addresses = [files.append_block(stream, rows.batch) for rows in blocks]
        yield from map(_make_merged_block, filled, addresses, blocks)
    for part, places in built or ():
        addresses = files.append_blocks(stream, part.batch, part.list_bounds())
        merged = [filled[n] for n in places.tolist()]
        yield from map(_make_merged_block, merged, addresses, part.slice_blocks())


def _make_merged_block(merge: Merge, address: ReplicaAddress, rows: BlockRows) -> MergedBlock:
    return MergedBlock(merge.derivation.block.id, merge.hosts, address, rows)


def _sort_merged_rows(merges: Sequence[Merge], column: str) -> tuple[Segment, list[int]]:
    """Return the rows of mergers, each sorted by a column, and the numbers of those with rows.

    A block of which several pieces are cut is read once.
    """
    distinct = [*{id(rows): rows for merge in merges for rows in merge.sources}.values()]
    distinct = [distinct[n] for n in order_by_segment(distinct)]
    batch = concat_rows(distinct)
    sizes = [rows.row_total for rows in distinct]
    first = dict(zip(map(id, distinct), np.cumsum([0, *sizes]).tolist(), strict=False))
    sources = [(n, rows) for n, merge in enumerate(merges) for rows in merge.sources]
    counts = np.array([rows.row_total for _, rows in sources])
    group = np.repeat([n for n, _ in sources], counts)
    at = concat_position_ranges(np.array([first[id(rows)] for _, rows in sources]), counts)
    keys = np.array([keys for merge in merges for keys in merge.source_key_ranges()])
    low, high = np.repeat(keys, counts, axis=0).T
    routing = batch.column(ROUTING).to_numpy()[at]
    chosen = np.flatnonzero((routing >= low) & (routing < high))
    at, group = at[chosen], group[chosen]
    key = batch.column(column).to_numpy(zero_copy_only=False)
    order = sort_positions(key[at], group) if len(at) else at
    rows_by_merge = np.bincount(group, minlength=len(merges))
    filled = np.flatnonzero(rows_by_merge)
    segment = Segment(take_block_rows(batch, at[order]), np.cumsum(rows_by_merge)[filled])
    return segment, filled.tolist()


def intersect_key_ranges(a: Keys | None, b: Keys) -> Keys:
    """Return the routing keys in both ranges; ``a`` None: any."""
    return b if a is None else (max(a[0], b[0]), min(a[1], b[1]))
