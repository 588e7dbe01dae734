"""An order of tuples by their contents, the same wherever they arrive in whatever order."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from braid.condition.residual_evaluation import query_table
from braid.core.reserved_columns import ROUTING, TIME
from braid.kernels.block_orders import find_new_values
from braid.kernels.host_block_rows import take_block_rows

_SALT = 1
"""Makes a second hash of 64 bits. Different tuples never have both the same."""


def sort_by_contents(rows: pa.RecordBatch, key: str, columns: Sequence[str]) -> pa.RecordBatch:
    """Return rows that are sorted by a key, with equal keys sorted by hashes of these columns.

    Only equal tuples have the same hashes, so that their order does not matter.
    """
    values = rows.column(key).to_numpy(zero_copy_only=False)
    is_new = find_new_values(values)
    if is_new.all():
        return rows
    hashes = _hash_tuples(rows.select(columns))
    order = np.lexsort((*hashes, np.cumsum(is_new)))
    return take_block_rows(rows, order)


def _hash_tuples(rows: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    parts = [f'"c{n}"' for n in range(rows.num_columns)]
    # The hash of a list ignores where it ends, and NULL hashes like an empty list.
    texts = [
        f"CAST({part} AS VARCHAR)"
        for part, field in zip(parts, rows.schema, strict=True)
        if pa.types.is_nested(field.type)
    ]
    arguments = ", ".join([*parts, *texts])
    sql = f"SELECT hash({arguments}) AS first, hash({_SALT}, {arguments}) AS second FROM tuples"
    named = pa.Table.from_arrays(rows.columns, names=[f"c{n}" for n in range(rows.num_columns)])
    hashed = query_table(sql, named)
    return hashed["first"].to_numpy(), hashed["second"].to_numpy()


def checksum_order(rows: pa.RecordBatch) -> int:
    """Return a checksum of the order of a block's rows, by event time and routing key."""
    times, keys = rows.column(TIME).to_numpy(), rows.column(ROUTING).to_numpy()
    return zlib.crc32(keys.tobytes(), zlib.crc32(times.tobytes()))
