"""Find candidate pairs of an OR: those that at least one of its branches finds, each once.

Each branch is searched by its own sorted key. A row whose key is NULL is found by no search of that
branch, and finds nothing by it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from braid.condition.access_paths import Disjunction, IndexCondition
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.range_search import search_ranges
from braid.kernels.range_union import Positions, RowRanges, unite_pairs


def find_disjunction_pairs(
    partial: PartialMatches, rows: BlockRows, stream: int, either: Disjunction, most: int
) -> Iterator[tuple[Positions, Positions]]:
    """Yield the pairs that some branch finds, each once, in chunks of at most ``most`` pairs.

    A pair is (position in the partial results, position in the block).
    """
    branches = [_search_branch(partial, rows, stream, branch) for branch in either.branches]
    yield from unite_pairs(branches, rows.batch.num_rows, most)


def _search_branch(
    partial: PartialMatches, rows: BlockRows, stream: int, branch: IndexCondition
) -> RowRanges:
    here, other = branch.ends[:: 1 if branch.left[0] == stream else -1]
    stored, order = _sort_valid_keys(rows, here[1])
    if not len(stored):
        return RowRanges.make_empty(len(partial))
    probing, at = partial.parts[other[0]]
    keys, valid = _fill_null_keys(probing, other[1]), _find_valid_keys(probing, other[1])
    first, last = search_ranges(keys[at], stored, branch, here == branch.left)
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
