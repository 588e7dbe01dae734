"""Build blocks: sort rows by index keys, and merge or gather several blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from braid.kernels.block_rows import BlockRows, take_block_rows
from braid.kernels.sort_order import sort_positions

_SOURCE = "__source"


def build_block(
    columns: pa.RecordBatch, indexes: Sequence[str], ordered: bool = False, runs: bool = False
) -> pa.RecordBatch:
    """Return a block: the rows sorted by the first index, with a permutation for each further one.

    ``ordered``: the rows are sorted already. ``runs``: they are a few sorted runs, which a stable
    sort merges.
    """
    if not ordered:
        key = columns.column(indexes[0]).to_numpy(zero_copy_only=False)
        columns = take_block_rows(
            columns, np.argsort(key, kind="stable") if runs else sort_positions(key)
        )
    for name in indexes[1:]:
        order = np.argsort(columns.column(name).to_numpy(zero_copy_only=False), kind="stable")
        columns = replace_column(columns, f"__p:{name}", pa.array(order.astype(np.int32)))
    return columns


def replace_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Return the batch with a column replaced, or appended if it is new."""
    at = batch.schema.get_field_index(name)
    return batch.append_column(name, values) if at < 0 else batch.set_column(at, name, values)


def merge_blocks(sources: Sequence[BlockRows], indexes: Sequence[str]) -> pa.RecordBatch:
    """Return one block of the chosen rows of several."""
    batches = [*map(_take_chosen_rows, sources)]
    merged = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    return build_block(merged, indexes, ordered=len(batches) == 1, runs=True)


def gather_blocks(sources: Sequence[BlockRows], indexes: Sequence[str]) -> BlockRows:
    """Return the rows of small blocks, to be probed at once. Each row knows its block."""
    batches = [*map(_take_chosen_rows, sources)]
    source = np.repeat(np.arange(len(batches)), [b.num_rows for b in batches])
    gathered = replace_column(pa.concat_batches(batches), _SOURCE, pa.array(source))
    rows = build_block(gathered, indexes, runs=True)
    at = rows.schema.get_field_index(_SOURCE)
    return BlockRows(rows.remove_column(at), None, rows.column(at).to_numpy(), len(batches))


def _take_chosen_rows(rows: BlockRows) -> pa.RecordBatch:
    chosen = rows.key_mask()
    return rows.batch if chosen is None else take_block_rows(rows.batch, np.flatnonzero(chosen))
