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


def stores_ranks(schema: pa.Schema, orders: Sequence[Order]) -> bool:
    """Return whether blocks with these columns store the ranks of these orders within equal values.

    It is decided by the rows of a block alone, when it is built.
    """
    return all(schema.get_field_index(RANKS + order.name) >= 0 for order in orders)


def sort_within(
    batch: pa.RecordBatch, order: Order, is_ranked: bool | None
) -> tuple[bool, npt.NDArray[np.integer] | None]:
    """Return whether rows are to be sorted within equal values, and the positions that sort them.

    They are sorted by the order's column. The positions are None if they are sorted within, too, or
    are not to be. ``is_ranked``: None: if it is worth it.
    """
    if order.within is None or is_ranked is False:
        return False, None
    values = _read_values(batch, order.column)
    if not (is_ranked or _is_worth_ranking(values)):
        return False, None
    new, within = find_new_values(values), _read_values(batch, order.within)
    if bool(np.all(new[1:] | (within[1:] >= within[:-1]))):
        return True, None
    by_within = sort_stably(within)
    group = np.cumsum(new)
    return True, by_within[sort_stably(group[by_within])]


def make_order_columns(
    batch: pa.RecordBatch,
    orders: Sequence[Order],
    is_sorted_within: bool,
    is_ranked: bool | None,
) -> dict[str, npt.NDArray[np.int32]]:
    """Return the columns that store the orders, by name.

    The batch is sorted by the column of the first. ``is_sorted_within``: also within equal values.
    ``is_ranked``: as in ``sort_within``.
    """
    columns = {}
    if is_sorted_within:
        within = _read_values(batch, orders[0].within or "")
        columns[RANKS + orders[0].name] = rank_values(within)
    for order in orders[1:]:
        columns |= _make_columns(batch, order, orders[0].column, is_ranked)
    return columns


def _make_columns(
    batch: pa.RecordBatch, order: Order, sorted_by: str, is_ranked: bool | None
) -> dict[str, npt.NDArray[np.int32]]:
    """Return the columns of a further order. ``sorted_by``: the column of the first.

    An order whose range within equal values is not worth its rank is stored as that of its column.
    """
    at = None if sorted_by == order.column else sort_column(batch.column(order.column))
    if order.within is not None and is_ranked is not False:
        values, within = (_read_values(batch, name) for name in (order.column, order.within))
        if is_ranked or _is_worth_ranking(values if at is None else values[at]):
            by_within = sort_stably(within)
            at = by_within[sort_stably(values[by_within])]
            return {
                PERMUTATION + order.name: at.astype(np.int32),
                RANKS + order.name: rank_values(within[at]),
            }
    return {} if at is None else {PERMUTATION + order.column: at.astype(np.int32)}


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


def find_blocks_to_rank(
    batch: pa.RecordBatch, order: Order, starts: npt.NDArray[np.integer]
) -> npt.NDArray[np.bool_]:
    """Return which blocks are to be sorted within equal values, each by its own rows alone.

    The batch has one block after the other, each sorted by the order's column. ``starts``: the
    first row of each.
    """
    if order.within is None:
        return np.zeros(len(starts), bool)
    return _find_worthwhile_blocks(_read_values(batch, order.column), starts)


def _is_worth_ranking(ordered: np.ndarray) -> bool:
    return len(ordered) > 0 and bool(_find_worthwhile_blocks(ordered, np.zeros(1, int))[0])


def _find_worthwhile_blocks(
    ordered: np.ndarray, starts: npt.NDArray[np.integer]
) -> npt.NDArray[np.bool_]:
    """Return for which blocks a probe by a stored row's value finds many equal rows on average."""
    rest = len(ordered) - _WORTH
    if rest <= 0 or not (ordered[_WORTH:] == ordered[:rest]).any():
        return np.zeros(len(starts), bool)
    new = np.ones(len(ordered), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    new[starts] = True
    runs = np.flatnonzero(new)
    counts = np.diff(np.append(runs, len(ordered)))
    squares = np.add.reduceat(counts * counts, np.searchsorted(runs, starts))
    return np.asarray(squares > _WORTH * np.diff(np.append(starts, len(ordered))))


def sort_blocks_within(
    batch: pa.RecordBatch, order: Order, at: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, npt.NDArray[np.int32]]:
    """Return the positions of blocks' rows sorted within equal values, and their ranks by block.

    - ``at``: positions of the rows, one block after the other, sorted by the order's column.
    - ``sizes``: rows of each block.
    """
    values, within = (_read_values(batch, str(name))[at] for name in (order.column, order.within))
    first, block = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(sizes)), sizes)
    new = find_new_values(values)
    new[first] = True
    if not np.all(new[1:] | (within[1:] >= within[:-1])):
        by_within = sort_stably(within)
        sorted_within = by_within[sort_stably(np.cumsum(new)[by_within])]
        at, within = at[sorted_within], within[sorted_within]
    by_within = sort_stably(within)
    by_block = by_within[sort_stably(block[by_within])]
    ranks = np.empty(len(at), np.int32)
    ranks[by_block] = np.arange(len(at)) - np.repeat(first, sizes)
    return at, ranks
