"""Distance, inner product and cosine of two streams' vectors, for many pairs of tuples at once.

Results are those of Spark's functions of the same names, in double precision throughout. A vector
is read from the memory-mapped block, and copied once for each tile of pairs that contains it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from braid.condition.residual_predicate import VectorFunction

Reals = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_HELD = 1 << 20
"""Maximum numbers of one side of a tile in memory, in double precision."""
_SPARSE = 8
"""If fewer than one in this many pairs of a tile are needed, each is calculated separately."""
_CANCELLED = 1e-6
"""Below this share of the squared lengths, a squared distance is calculated from differences,
without cancellation.
"""


@dataclass(frozen=True)
class VectorColumn:
    """A column of n vectors as an n x d matrix.

    ``valid`` is False for vectors that are NULL or contain NULL; their rows are zeros.
    """

    matrix: npt.NDArray[np.float32]
    valid: npt.NDArray[np.bool_]

    @staticmethod
    def from_arrow(column: pa.Array) -> VectorColumn:
        """Return the vectors of a column of lists.

        Raises ValueError if they differ in dimension.
        """
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        lengths = pc.list_value_length(column).drop_null().to_numpy()
        if len(lengths) and lengths.min() != lengths.max():
            raise ValueError(
                f"vectors of {lengths.min()} and of {lengths.max()} dimensions are in one stream; "
                "give all the same"
            )
        dimensions = int(lengths[0]) if len(lengths) else 0
        flat = column.flatten()
        matrix = flat.to_numpy(zero_copy_only=False).reshape(len(lengths), dimensions)
        if valid.all() and not flat.null_count:
            return VectorColumn(matrix, valid)
        values = np.zeros((len(valid), dimensions), np.float32)
        gone = flat.is_null().to_numpy(zero_copy_only=False).reshape(matrix.shape).any(axis=1)
        at = np.flatnonzero(valid)
        values[at[~gone]] = matrix[~gone]
        valid[at[gone]] = False
        return VectorColumn(values, valid)


def pairwise_measure(
    function: VectorFunction, a: VectorColumn, left: Places, b: VectorColumn, right: Places
) -> pa.Array:
    """Return the function of a[left] and b[right], pair by pair, as doubles; NULL if Spark's is.

    Raises ValueError if the two sides differ in dimension.
    """
    values, valid = np.zeros(len(left)), a.valid[left] & b.valid[right]
    pairs = np.flatnonzero(valid)
    if len(pairs) and a.matrix.shape[1] != b.matrix.shape[1]:
        raise ValueError(
            f"{function} of vectors of {a.matrix.shape[1]} and of {b.matrix.shape[1]} dimensions; "
            "they must be alike"
        )
    for at, x, y, i, j in _split_into_tiles(a.matrix, left[pairs], b.matrix, right[pairs]):
        values[pairs[at]] = _FUNCTIONS[function](x, y, i, j)
    if function == "vector_cosine_similarity":
        valid &= ~np.isneginf(values)
    return pa.array(values, mask=~valid, from_pandas=False)


def _split_into_tiles(
    a: npt.NDArray[np.float32], left: Places, b: npt.NDArray[np.float32], right: Places
) -> Iterator[tuple[Places, Reals, Reals, Places, Places]]:
    """Yield groups of pairs.

    A group has the pairs' positions, the rows of both sides, and each pair's positions in these
    rows.
    """
    if not len(left):
        return
    size = max(16, _HELD // max(1, a.shape[1]))
    lefts, i = _index_distinct(left, len(a))
    rights, j = _index_distinct(right, len(b))
    across = len(rights) // size + 1
    tile = i // size * across + j // size
    order = np.argsort(tile, kind="stable") if tile.max() else np.arange(len(tile))
    for at in np.split(order, np.flatnonzero(np.diff(tile[order])) + 1):
        row, column = divmod(int(tile[at[0]]), across)
        x = a[lefts[row * size : (row + 1) * size]].astype(np.float64)
        y = b[rights[column * size : (column + 1) * size]].astype(np.float64)
        yield at, x, y, i[at] - row * size, j[at] - column * size


def _index_distinct(places: Places, size: int) -> tuple[Places, Places]:
    """Return the distinct places, all below ``size``, and the index of each place among them."""
    occurs = np.zeros(size, bool)
    occurs[places] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[places]


def _compute_inner_products(x: Reals, y: Reals, i: Places, j: Places) -> Reals:
    if _SPARSE * len(i) >= len(x) * len(y):
        product: Reals = (x @ y.T)[i, j]
        return product
    return np.concatenate(
        [np.einsum("pd,pd->p", x[i[c]], y[j[c]]) for c in _split_into_chunks(len(i), x.shape[1])]
    )


def _compute_cosines(x: Reals, y: Reals, i: Places, j: Places) -> Reals:
    """Return the cosines; minus infinity, which no cosine is, if a vector has length 0."""
    lengths = np.sqrt(_squared_norms(x))[i] * np.sqrt(_squared_norms(y))[j]
    return np.divide(
        _compute_inner_products(x, y, i, j),
        lengths,
        out=np.full(len(i), -np.inf),
        where=lengths != 0,
    )


def _compute_distances(x: Reals, y: Reals, i: Places, j: Places) -> Reals:
    squares = _squared_norms(x)[i] + _squared_norms(y)[j]
    with np.errstate(invalid="ignore"):  # an infinite component; recalculated below
        distances = squares - 2 * _compute_inner_products(x, y, i, j)
        close = np.flatnonzero(~(distances > _CANCELLED * squares) | ~np.isfinite(distances))
        for c in _split_into_chunks(len(close), x.shape[1]):
            distances[close[c]] = _squared_norms(x[i[close[c]]] - y[j[close[c]]])
    return np.sqrt(distances)


def _squared_norms(x: Reals) -> Reals:
    return np.einsum("pd,pd->p", x, x)


def _split_into_chunks(pairs: int, dimensions: int) -> list[slice]:
    size = max(1, _HELD // max(1, dimensions))
    return [slice(k, k + size) for k in range(0, pairs, size)]


_FUNCTIONS = {
    "vector_l2_distance": _compute_distances,
    "vector_inner_product": _compute_inner_products,
    "vector_cosine_similarity": _compute_cosines,
}
