"""Blocks are made: rows sorted by their index keys, and several blocks merged into one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from braid.local.order import order_of
from braid.local.rows import Rows, rows_at

_SOURCE = "__source"


def build(
    columns: pa.RecordBatch, indexes: Sequence[str], ordered: bool = False, runs: bool = False
) -> pa.RecordBatch:
    """A block: the rows sorted by the first index, with a permutation for each further one.

    ``ordered`` says that they are sorted already, ``runs`` that they are a few sorted runs, which a
    stable sort merges.
    """
    if not ordered:
        key = columns.column(indexes[0]).to_numpy(zero_copy_only=False)
        columns = rows_at(columns, np.argsort(key, kind="stable") if runs else order_of(key))
    for name in indexes[1:]:
        order = np.argsort(columns.column(name).to_numpy(zero_copy_only=False), kind="stable")
        columns = replaced(columns, f"__p:{name}", pa.array(order.astype(np.int32)))
    return columns


def replaced(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """The batch with a column put in place of one of that name, or after the others."""
    at = batch.schema.get_field_index(name)
    return batch.append_column(name, values) if at < 0 else batch.set_column(at, name, values)


def merge(sources: Sequence[Rows], indexes: Sequence[str]) -> pa.RecordBatch:
    """One block from the chosen rows of several."""
    batches = [*map(_chosen, sources)]
    whole = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    return build(whole, indexes, ordered=len(batches) == 1, runs=True)


def gather(sources: Sequence[Rows], indexes: Sequence[str]) -> Rows:
    """The rows of small blocks, to be probed at once; each knows which of them it is from."""
    batches = [*map(_chosen, sources)]
    source = np.repeat(np.arange(len(batches)), [b.num_rows for b in batches])
    whole = replaced(pa.concat_batches(batches), _SOURCE, pa.array(source))
    rows = build(whole, indexes, runs=True)
    at = rows.schema.get_field_index(_SOURCE)
    return Rows(rows.remove_column(at), None, rows.column(at).to_numpy(), len(batches))


def _chosen(rows: Rows) -> pa.RecordBatch:
    chosen = rows.chosen()
    return rows.batch if chosen is None else rows_at(rows.batch, np.flatnonzero(chosen))
