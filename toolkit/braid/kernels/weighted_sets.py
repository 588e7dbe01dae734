"""Inner products of two streams' weighted sets, for many pairs at once.

A weighted set is a map from element to weight.

NumPy and Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from braid.kernels.set_overlap import SetColumn, expand_ranges

Places = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_PAIRS = 1 << 16
"""Pairs that are processed together."""


def map_keys(column: pa.Array) -> pa.Array:
    """Return the sets of a column of maps, as lists of their keys."""
    offsets, keys = _map_offsets_and_keys(column)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), keys, mask=column.is_null())


def _map_offsets_and_keys(column: pa.MapArray) -> tuple[Places, pa.Array]:
    """Return the offset of each map in the keys, and the keys of this column only."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    return offsets - first, column.keys.slice(first, last - first)


@dataclass
class WeightedSetColumn:
    """A column of n maps. Map i has the entries from ``starts[i]`` on, in its own order.

    - ``dictionary``: distinct keys.
    - ``codes``: by entry, its key in the dictionary.
    - ``weights``: by entry; NaN if NULL.
    - ``known``: by entry, whether its weight is not NULL.
    - ``valid``: by map, False if it is NULL. A NULL map has no entries.
    """

    dictionary: pa.Array
    starts: Places
    codes: Places
    weights: Floats
    known: npt.NDArray[np.bool_]
    valid: npt.NDArray[np.bool_]

    @staticmethod
    def from_arrow(column: pa.MapArray) -> WeightedSetColumn:
        """Return the maps of a column, with weights as doubles."""
        starts, keys = _map_offsets_and_keys(column)
        first = int(column.offsets[0].as_py()) if len(column) else 0
        items = column.items.slice(first, len(keys))
        encoded = keys.dictionary_encode()
        return WeightedSetColumn(
            encoded.dictionary,
            starts,
            encoded.indices.to_numpy().astype(np.int64),
            items.cast(pa.float64()).to_numpy(zero_copy_only=False),
            items.is_valid().to_numpy(zero_copy_only=False),
            column.is_valid().to_numpy(zero_copy_only=False),
        )

    def __post_init__(self) -> None:
        size = max(1, len(self.dictionary))
        rows = np.repeat(np.arange(len(self.valid)), np.diff(self.starts))
        self.order = np.argsort(rows * size + self.codes, kind="stable")
        self.places = (rows * size + self.codes)[self.order]


def pairwise_inner_product(
    a: WeightedSetColumn, left: Places, b: WeightedSetColumn, right: Places
) -> pa.Array:
    """Return the inner product of a[left] and b[right], pair by pair, as doubles.

    It sums, in the order of a's map, the weight in a times that in b, or 0 if b lacks the key. NULL
    if a's map or one of its weights is NULL.
    """
    codes = SetColumn.translate_codes(a.dictionary, b.dictionary)
    sums, missing = np.zeros(len(left)), ~a.valid[left]
    for part in _split_pairs(len(left)):
        lengths = a.starts[left[part] + 1] - a.starts[left[part]]
        at = expand_ranges(a.starts[left[part]], lengths)
        pair = np.repeat(np.arange(len(lengths)), lengths)
        weights = _look_up_weights(b, right[part][pair], codes[a.codes[at]])
        sums[part] = np.bincount(pair, a.weights[at] * weights, len(lengths))
        missing[part] |= np.bincount(pair, ~a.known[at], len(lengths)) > 0
    return pa.array(sums, mask=missing, from_pandas=False)


def _split_pairs(pairs: int) -> Iterator[slice]:
    return (slice(n, min(n + _PAIRS, pairs)) for n in range(0, pairs, _PAIRS))


def _look_up_weights(b: WeightedSetColumn, rows: Places, codes: Places) -> Floats:
    """Return the weights of these keys in these maps; 0 if missing or NULL."""
    if not len(b.places):
        return np.zeros(len(rows))
    wanted = rows * max(1, len(b.dictionary)) + codes
    at = np.minimum(np.searchsorted(b.places, wanted), len(b.places) - 1)
    place = b.order[at]
    there = (codes >= 0) & (b.places[at] == wanted) & b.known[place]
    return np.where(there, b.weights[place], 0.0)
