"""The rows of a block in its orders, which ``block_orders`` stores, and trees over them.

Every search is one of positions or ranks. So only ``range_search`` compares values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from braid.condition.access_paths import Order
from braid.kernels.block_orders import PERMUTATION, RANKS, find_new_values
from braid.kernels.merge_sort_tree import MergeSortTree
from braid.kernels.zone_tree import ZoneTree


@dataclass
class OrderedRows:
    """The rows of a block in an order, by position in it.

    - ``positions``: by position in the order, the position in the block; None: as stored.
    - ``keys``: values of the order's column, ascending.
    - ``values``: by position in the order, the value of its last column.
    - ``ranks``: by position in the order, the rank of that value; None: the position.
    """

    positions: np.ndarray | None
    keys: np.ndarray
    values: np.ndarray
    ranks: np.ndarray | None

    @cached_property
    def ascending_values(self) -> np.ndarray:
        """All values of the last column, ascending."""
        if self.ranks is None:
            return self.values
        ascending = np.empty_like(self.values)
        ascending[self.ranks] = self.values
        return ascending

    @cached_property
    def packed_ranks(self) -> npt.NDArray[np.int64]:
        """By position, the begin of its run of equal keys and the rank: ascending.

        It is ``begin * (number of rows + 1) + rank``.
        """
        assert self.ranks is not None
        new = find_new_values(self.keys)
        starts = np.flatnonzero(new)
        begins = np.repeat(starts, np.diff(np.append(starts, len(new))))
        return begins * (len(new) + 1) + self.ranks

    @cached_property
    def rank_by_row(self) -> np.ndarray:
        """By position in the block, the rank of the last column."""
        size = len(self.keys)
        ranks = np.arange(size, dtype=np.int32) if self.ranks is None else self.ranks
        if self.positions is None:
            return ranks
        by_row = np.empty(size, np.int32)
        by_row[self.positions] = ranks
        return by_row


@dataclass
class RankTrees:
    """Trees over an order that find ranks of another order's last column.

    - ``ranks``: by position in the order.
    """

    ranks: np.ndarray

    @cached_property
    def greatest_ranks(self) -> ZoneTree:
        """A tree that finds ranks of at least a bound."""
        return ZoneTree(self.ranks)

    @cached_property
    def least_ranks(self) -> ZoneTree:
        """A tree that finds ranks below a bound: those of at least its mirror image."""
        return ZoneTree(len(self.ranks) - 1 - self.ranks)

    @cached_property
    def sorted_ranks(self) -> MergeSortTree:
        """A tree that finds ranks between two bounds."""
        return MergeSortTree(self.ranks)


class BlockOrders:
    """The orders of a block. Columns that are read stay in memory.

    - ``names``: the columns of the block.
    - ``read_column``: returns a column as a cached array.
    """

    def __init__(self, names: Collection[str], read_column: Callable[[str], np.ndarray]) -> None:
        self.names, self.read_column = names, read_column
        permutations = [name for name in names if name.startswith(PERMUTATION)]
        self._permutations = {
            name.removeprefix(PERMUTATION).partition(",")[0]: name for name in permutations
        }
        self._keys: dict[str, np.ndarray] = {}
        self._orders: dict[Order, OrderedRows | None] = {}
        self._trees: dict[tuple[Order, Order], RankTrees] = {}

    def sorted_keys(self, name: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the values of a key in order, and their positions (None: as stored)."""
        if (permutation := self._permutations.get(name)) is None:
            return self.read_column(name), None
        positions = self.read_column(permutation)
        if name not in self._keys:
            self._keys[name] = self.read_column(name)[positions]
        return self._keys[name], positions

    def find_order(self, order: Order) -> OrderedRows | None:
        """Return the rows in an order. None: the block does not store it."""
        if order not in self._orders:
            self._orders[order] = self._read_order(order)
        return self._orders[order]

    def _read_order(self, order: Order) -> OrderedRows | None:
        if order.within is None:
            keys, positions = self.sorted_keys(order.column)
            return OrderedRows(positions, keys, keys, None)
        if RANKS + order.name not in self.names:
            return None
        permutation = PERMUTATION + order.name
        positions = self.read_column(permutation) if permutation in self.names else None
        keys, values = (
            column if positions is None else column[positions]
            for column in map(self.read_column, (order.column, order.within))
        )
        return OrderedRows(positions, keys, values, self.read_column(RANKS + order.name))

    def rank_trees(self, order: Order, ranked: Order) -> RankTrees:
        """Return trees over an order that find ranks of another. The block stores both."""
        if (order, ranked) not in self._trees:
            rows, others = self.find_order(order), self.find_order(ranked)
            assert rows is not None and others is not None
            ranks = others.rank_by_row
            self._trees[order, ranked] = RankTrees(
                ranks if rows.positions is None else ranks[rows.positions]
            )
        return self._trees[order, ranked]
