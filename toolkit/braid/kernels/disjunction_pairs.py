"""Find candidate pairs of an OR: those that at least one of its branches finds, each once.

A branch with one condition is searched by its sorted key, which blocks store. One with several is
searched in orders of its own, which are made when a block is first probed. A row whose key is NULL
is found by no search of that branch, and finds nothing by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from braid.condition.access_paths import Branch, Disjunction, IndexCondition, Order
from braid.condition.order_choice import choose_orders, choose_search
from braid.kernels.block_builder import build_block
from braid.kernels.host_block_rows import BlockRows, PartialMatches, take_block_rows
from braid.kernels.order_search import find_pairs_in_order
from braid.kernels.range_search import search_ranges
from braid.kernels.range_union import Positions, RowRanges, unite_searches

_ROW = "__row"


def find_disjunction_pairs(
    partial: PartialMatches, rows: BlockRows, stream: int, either: Disjunction, most: int
) -> Iterator[tuple[Positions, Positions]]:
    """Yield the pairs that some branch finds, each once, in chunks of at most ``most`` pairs.

    A pair is (position in the partial results, position in the block).
    """
    ranges, others = [], []
    for branch in either.branches:
        if len(branch.conditions) == 1:
            ranges.append(_search_condition(partial, rows, stream, branch.conditions[0]))
        else:
            others.append(_BranchSearch.from_rows(partial, rows, stream, branch, most))
    yield from unite_searches(ranges, others, len(partial), rows.batch.num_rows, most)


@dataclass(frozen=True)
class _BranchSearch:
    """The search of a branch with several conditions.

    - ``probing``, ``stored``: the rows of both sides in which no key of the branch is NULL.
    - ``lefts``, ``rights``: their positions in the partial results and in the block.
    - ``streams``: of the probing and of the stored rows.
    """

    branch: Branch
    probing: BlockRows
    stored: BlockRows
    lefts: Positions
    rights: Positions
    streams: tuple[int, int]
    most: int

    @classmethod
    def from_rows(
        cls, partial: PartialMatches, rows: BlockRows, stream: int, branch: Branch, most: int
    ) -> _BranchSearch:
        """Return the search of a block's rows by partial results."""
        ends = {s for condition in branch.conditions for s, _ in condition.ends}
        other = min(ends - {stream})
        stored = rows.cached_rows((branch, stream), lambda: _order_rows(rows, branch, stream))
        probing_rows, at = partial.parts[other]
        names = branch.list_keys(other)
        lefts = np.flatnonzero(_find_rows_without_null(probing_rows, names)[at])
        probing = BlockRows(take_block_rows(probing_rows.batch.select(names), at[lefts]))
        rights = stored.numpy_column(_ROW)
        return cls(branch, probing, stored, lefts, rights, (other, stream), most)

    def find_pairs(self, start: int, stop: int, size: int) -> Iterator[Positions]:
        """Yield the pairs of a range of partial results, as position times ``size`` plus row."""
        first, last = np.searchsorted(self.lefts, (start, stop))
        other, stream = self.streams
        orders = _choose_orders(self.branch, stream)
        search = choose_search(_rank_conditions(self.branch), stream, orders)
        if search is None or first == last or not self.stored.batch.num_rows:
            return
        some = PartialMatches({other: (self.probing, np.arange(first, last))})
        for chunk in find_pairs_in_order(some, self.stored, stream, search, self.most):
            yield self.lefts[first + chunk.left] * size + self.rights[chunk.right]


def _rank_conditions(branch: Branch) -> list[IndexCondition]:
    return sorted(branch.conditions, key=lambda condition: condition.cost_rank)


def _choose_orders(branch: Branch, stream: int) -> list[Order]:
    return choose_orders(_rank_conditions(branch), stream)


def _order_rows(rows: BlockRows, branch: Branch, stream: int) -> BlockRows:
    """Return the rows without a NULL key of a branch, in its orders, with their positions.

    Orders within equal values are always stored, so that whatever is searched together, the same
    pairs are found.
    """
    names = branch.list_keys(stream)
    positions = np.flatnonzero(_find_rows_without_null(rows, names))
    chosen = take_block_rows(rows.batch.select(names), positions)
    numbered = chosen.append_column(_ROW, pa.array(positions))
    return BlockRows(build_block(numbered, _choose_orders(branch, stream), is_ranked=True))


def _find_rows_without_null(rows: BlockRows, names: Sequence[str]) -> npt.NDArray[np.bool_]:
    chosen = np.ones(rows.batch.num_rows, bool)
    for name in names:
        if (valid := _find_valid_keys(rows, name)) is not None:
            chosen = chosen & valid
    return chosen


def _search_condition(
    partial: PartialMatches, rows: BlockRows, stream: int, condition: IndexCondition
) -> RowRanges:
    here, other = condition.ends[:: 1 if condition.left[0] == stream else -1]
    stored, order = _sort_valid_keys(rows, here[1])
    if not len(stored):
        return RowRanges.make_empty(len(partial))
    probing, at = partial.parts[other[0]]
    keys, valid = _fill_null_keys(probing, other[1]), _find_valid_keys(probing, other[1])
    first, last = search_ranges(keys[at], stored, condition, here == condition.left)
    counts = np.maximum(last - first, 0)
    return RowRanges(first, counts if valid is None else counts * valid[at], order)


def _sort_valid_keys(rows: BlockRows, name: str) -> tuple[np.ndarray, npt.NDArray[np.int32] | None]:
    """Return a key's values in order and their positions, without those that are NULL."""
    column = rows.batch.column(name)
    if not column.null_count:
        return rows.sorted_keys(name)
    order = rows.numpy_column(f"__p:{name}")[: len(column) - column.null_count]
    return rows.cached_column(f"ordered {name}", lambda: _fill_null_keys(rows, name)[order]), order


def _fill_null_keys(rows: BlockRows, name: str) -> np.ndarray:
    """Return a key with 0 for NULL."""
    column = rows.batch.column(name)
    if not column.null_count:
        return rows.numpy_column(name)
    return rows.cached_column(f"filled {name}", lambda: pc.fill_null(column, 0).to_numpy())


def _find_valid_keys(rows: BlockRows, name: str) -> npt.NDArray[np.bool_] | None:
    """Return where a key is not NULL; None: everywhere."""
    column = rows.batch.column(name)
    if not column.null_count:
        return None
    return rows.cached_column(
        f"valid {name}", lambda: column.is_valid().to_numpy(zero_copy_only=False)
    )
