"""Orders of a block's rows: the columns that store them.

The rows of a block are sorted by the column of its first order, and equal ones by the ``within``
column if that is worth it. Two kinds of columns store what sorting found:

- ``__p:order``: a permutation that sorts the rows, for every order but the first;
- ``__r:order``: by position in the order, the rank of the ``within`` column in the block. Equal
  values have different ranks, which rise with the position.

See ``ordered_rows`` for their search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from braid.condition.access_paths import Order
from braid.kernels.position_sort import sort_column, sort_stably

PERMUTATION, RANKS = "__p:", "__r:"
_WORTH = 4
"""An equality alone finds this many rows for a stored row before a range within it is worth its
rank.
"""


def is_order_column(name: str) -> bool:
    """Return whether a column of a block stores an order. It is invalid for other rows."""
    return name.startswith((PERMUTATION, RANKS))


def drop_order_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch without its orders."""
    names = batch.schema.names
    others = [name for name in names if not is_order_column(name)]
    return batch if len(others) == len(names) else batch.select(others)


def sort_within(batch: pa.RecordBatch, order: Order) -> npt.NDArray[np.integer] | None:
    """Return the positions that sort rows within equal values of the order's column.

    None: they are sorted, or it is not worth it. The batch is sorted by that column.
    """
    if order.within is None:
        return None
    new = find_new_values(_read_values(batch, order.column))
    if not _is_worth_ranking(new):
        return None
    within = _read_values(batch, order.within)
    if bool(np.all(new[1:] | (within[1:] >= within[:-1]))):
        return None
    by_within = sort_stably(within)
    group = np.cumsum(new)
    return by_within[sort_stably(group[by_within])]


def make_order_columns(
    batch: pa.RecordBatch, orders: Sequence[Order]
) -> dict[str, npt.NDArray[np.int32]]:
    """Return the columns that store the orders, by name. The batch is sorted in the first."""
    columns: dict[str, npt.NDArray[np.int32]] = {}
    for order in orders:
        is_first = order.column == orders[0].column and order == orders[0]
        columns |= _make_columns(batch, order, None if is_first else orders[0].column)
    return columns


def _make_columns(
    batch: pa.RecordBatch, order: Order, sorted_by: str | None
) -> dict[str, npt.NDArray[np.int32]]:
    """Return the columns of an order. ``sorted_by``: column of the first order; None: this is it.

    An order whose range within equal values is not worth its rank is stored as that of its column.
    """
    at = None if sorted_by in (None, order.column) else sort_column(batch.column(order.column))
    is_worth = True
    if order.within is not None:
        values = _read_values(batch, order.column)
        is_worth = _is_worth_ranking(find_new_values(values if at is None else values[at]))
    columns = {}
    if order.within is not None and is_worth and sorted_by is not None:
        by_within = sort_stably(_read_values(batch, order.within))
        at = by_within[sort_stably(values[by_within])]
    if at is not None:
        name = order.name if is_worth else order.column
        columns[PERMUTATION + name] = at.astype(np.int32)
    if order.within is not None and is_worth:
        within = _read_values(batch, order.within)
        columns[RANKS + order.name] = rank_values(within if at is None else within[at])
    return columns


def rank_values(values: np.ndarray) -> npt.NDArray[np.int32]:
    """Return the rank of each value. Ranks of equal values rise with the position."""
    ranks = np.empty(len(values), np.int32)
    ranks[sort_stably(values)] = np.arange(len(values), dtype=np.int32)
    return ranks


def _read_values(batch: pa.RecordBatch, name: str) -> np.ndarray:
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False))


def find_new_values(ordered: np.ndarray) -> npt.NDArray[np.bool_]:
    """Return where a sorted value differs from the one before it."""
    new = np.ones(len(ordered), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    if ordered.dtype.kind == "f":
        new[1:] &= ordered[:-1] == ordered[:-1]  # only NaN differs from itself, and it is last
    return new


def _is_worth_ranking(new: npt.NDArray[np.bool_]) -> bool:
    """Return whether a probe by equality of a stored row's value finds many rows on average."""
    starts = np.flatnonzero(new)
    counts = np.diff(np.append(starts, len(new)))
    return bool(counts @ counts > _WORTH * len(new))
