"""Merges of blocks of changes: what was inserted and deleted again cancels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from braid.condition.access_paths import Order
from braid.condition.residual_evaluation import query_table
from braid.core.reserved_columns import SIGN
from braid.kernels.block_builder import build_block
from braid.kernels.host_block_rows import take_block_rows

_PLACE = "__place"


def drop_cancelled_rows(
    rows: pa.RecordBatch, columns: Sequence[str], orders: Sequence[Order]
) -> pa.RecordBatch:
    """Return a block without pairs of equal tuples of opposite sign.

    No pair of its tuples may be pending: each result that such a pair still gives comes once as an
    insertion and once as a deletion.

    Parameters
    ----------
    rows
        The block.
    columns
        Columns of a tuple, without its sign.
    orders
        Orders of the stream's blocks.
    """
    signs = rows.column(SIGN).to_numpy()
    if not (signs < 0).any() or not (signs > 0).any():
        return rows
    places = pa.array(np.arange(rows.num_rows))
    tuples = pa.Table.from_batches([rows.select([*columns, SIGN])]).append_column(_PLACE, places)
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    ranked = (
        f"SELECT {_PLACE}, {SIGN}, sum({SIGN}) OVER (PARTITION BY {names}) AS net, row_number() "
        f"OVER (PARTITION BY {names}, {SIGN} ORDER BY {_PLACE}) AS nth FROM tuples"
    )
    lasting = query_table(
        f"SELECT {_PLACE} FROM ({ranked}) WHERE sign(net) = {SIGN} AND nth <= abs(net) "
        f"ORDER BY {_PLACE}",
        tuples,
    )
    return build_block(take_block_rows(rows, lasting[_PLACE].to_numpy()), orders, ordered=True)
