"""Orders of a block's rows: the columns that store them, and their search.

The rows of a block are sorted by the column of its first order, and equal ones by the ``within``
column if that is worth it. Three kinds of columns store what sorting found:

- ``__p:order``: a permutation that sorts the rows, for every order but the first;
- ``__r:order``: by position in the order, the rank of the ``within`` column in the block. Equal
  values have different ranks, which rise with the position;
- ``__y:order``: the same for the ``ranked`` column.

Every search is one of positions or ranks. So only ``range_search`` compares values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from braid.condition.access_paths import Order
from braid.kernels.merge_sort_tree import MergeSortTree
from braid.kernels.position_sort import sort_column
from braid.kernels.zone_tree import ZoneTree

PERMUTATION, WITHIN, RANKED = "__p:", "__r:", "__y:"
_WORTH = 4
"""An equality alone finds this many rows for a stored row before a range within it is worth its
rank.
"""


def is_order_column(name: str) -> bool:
    """Return whether a column of a block stores an order. It is invalid for other rows."""
    return name.startswith((PERMUTATION, WITHIN, RANKED))


def drop_order_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch without its orders."""
    names = batch.schema.names
    others = [name for name in names if not is_order_column(name)]
    return batch if len(others) == len(names) else batch.select(others)


def find_permutations(names: Iterable[str]) -> dict[str, str]:
    """Return the names of permutations, by the column that they sort the rows by."""
    return {
        re.split("[,;]", name.removeprefix(PERMUTATION))[0]: name
        for name in names
        if name.startswith(PERMUTATION)
    }


def sort_within(batch: pa.RecordBatch, order: Order) -> npt.NDArray[np.integer] | None:
    """Return the positions that sort rows within equal values of the order's column.

    None: they are sorted, or it is not worth it. The batch is sorted by that column.
    """
    if order.within is None:
        return None
    new = _find_new_values(_read_values(batch, order.column))
    if not _is_worth_ranking(new):
        return None
    within = _read_values(batch, order.within)
    if bool(np.all(new[1:] | (within[1:] >= within[:-1]))):
        return None
    by_within = np.argsort(within, kind="stable")
    group = np.cumsum(new)
    return by_within[np.argsort(group[by_within], kind="stable")]


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
        is_worth = _is_worth_ranking(_find_new_values(values if at is None else values[at]))
    columns = {}
    if order.within is not None and is_worth and sorted_by is not None:
        by_within = np.argsort(_read_values(batch, order.within), kind="stable")
        at = by_within[np.argsort(values[by_within], kind="stable")]
    if at is not None:
        name = order.name if is_worth else order.column
        columns[PERMUTATION + name] = at.astype(np.int32)
    for kind, column in ((WITHIN, order.within), (RANKED, order.ranked)):
        if is_worth and column is not None:
            ordered = _read_values(batch, column)
            columns[kind + order.name] = rank_values(ordered if at is None else ordered[at])
    return columns


def rank_values(values: np.ndarray) -> npt.NDArray[np.int32]:
    """Return the rank of each value. Ranks of equal values rise with the position."""
    ranks = np.empty(len(values), np.int32)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values), dtype=np.int32)
    return ranks


def _read_values(batch: pa.RecordBatch, name: str) -> np.ndarray:
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False))


def _find_new_values(ordered: np.ndarray) -> npt.NDArray[np.bool_]:
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


@dataclass
class OrderedRows:
    """The rows of a block in an order, by position in it.

    - ``order``: the order; its columns are in the block.
    - ``positions``: by position in the order, the position in the block; None: as stored.
    - ``read_column``: returns a column of the block by name, as a cached array.
    """

    order: Order
    positions: np.ndarray | None
    read_column: Callable[[str], np.ndarray]

    @classmethod
    def from_columns(
        cls, order: Order, names: Sequence[str], read_column: Callable[[str], np.ndarray]
    ) -> OrderedRows | None:
        """Return the rows of a block with columns of these names; None: it lacks the order."""
        needed = {WITHIN + order.name: order.within, RANKED + order.name: order.ranked}
        if any(column is not None and name not in names for name, column in needed.items()):
            return None
        permutation = PERMUTATION + order.name
        return cls(order, read_column(permutation) if permutation in names else None, read_column)

    def read_in_order(self, name: str) -> np.ndarray:
        """Return a column by position in the order."""
        column = self.read_column(name)
        return column if self.positions is None else column[self.positions]

    @cached_property
    def sorted_keys(self) -> np.ndarray:
        """The values of the order's column, ascending."""
        return self.read_in_order(self.order.column)

    @cached_property
    def packed_ranks(self) -> npt.NDArray[np.int64]:
        """By position, the begin of its run of equal keys and the rank within: ascending.

        It is ``begin * (number of rows + 1) + rank``.
        """
        new = _find_new_values(self.sorted_keys)
        starts = np.flatnonzero(new)
        begins = np.repeat(starts, np.diff(np.append(starts, len(new))))
        return begins * (len(new) + 1) + self.read_column(WITHIN + self.order.name)

    @cached_property
    def within_values(self) -> np.ndarray:
        """All values of the ``within`` column of the block, ascending."""
        return self._sort_by_rank(self.order.within, self.read_column(WITHIN + self.order.name))

    @cached_property
    def ranked_ranks(self) -> np.ndarray:
        """By position, the rank of the ``ranked`` column."""
        return self.read_column(RANKED + self.order.name)

    @cached_property
    def ranked_values(self) -> np.ndarray:
        """All values of the ``ranked`` column of the block, ascending."""
        return self._sort_by_rank(self.order.ranked, self.ranked_ranks)

    def _sort_by_rank(self, name: str | None, ranks: np.ndarray) -> np.ndarray:
        assert name is not None
        values = self.read_in_order(name)
        ascending = np.empty_like(values)
        ascending[ranks] = values
        return ascending

    @cached_property
    def greatest_ranks(self) -> ZoneTree:
        """A tree that finds ranks of at least a bound."""
        return ZoneTree(self.ranked_ranks)

    @cached_property
    def least_ranks(self) -> ZoneTree:
        """A tree that finds ranks below a bound: those of at least its mirror image."""
        return ZoneTree(len(self.ranked_ranks) - 1 - self.ranked_ranks)

    @cached_property
    def sorted_ranks(self) -> MergeSortTree:
        """A tree that finds ranks between two bounds."""
        return MergeSortTree(self.ranked_ranks)
