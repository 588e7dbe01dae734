"""Count common elements of sets, and compute inner products of weighted sets, for many pairs.

A weighted set is a map from element to weight. NumPy and Arrow only.

Elements are looked up in the block's dictionary, so all types are compared exactly. The most
frequent elements of a block are bits of words, whose common bits are counted at once. The others
are in an inverted index: for each element, the sets that contain it, in the order of the block,
which is by time if there is no equality (Gedik 2007, section 4.2.2). Blocks never change, so
neither does the index. Matrix products are as fast on an idle machine, but not beside other
threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from braid.kernels.position_sort import sort_distinct

Places = npt.NDArray[np.int64]
Counts = npt.NDArray[np.uint8] | npt.NDArray[np.uint32]

WORD = 64
"""Elements that are counted at once as bits of a word: the most frequent of a block."""
_WORDS = 4
"""Maximum words of a set."""
_WORTH = 0.06
"""A further word pays off if the squared shares of its elements among the block's sets sum to this
much: a word takes about 1 ns for a pair, an entry of two lists 15 ns.
"""
_CELLS = 1 << 17
"""Pairs that are counted at once. Their counts fit in the processor's cache."""


@dataclass
class SetColumn:
    """A column of n sets.

    - ``dictionary``: distinct elements.
    - ``rows``, ``codes``: aligned; each element of a set once, sorted by row.
    - ``valid``: False for NULL sets, which have no elements.
    """

    dictionary: pa.Array
    rows: Places
    codes: Places
    valid: npt.NDArray[np.bool_]

    @staticmethod
    def from_arrow(column: pa.Array) -> SetColumn:
        """Return the sets of a column of lists. NULL is an element like others."""
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        lengths = np.where(valid, pc.list_value_length(column).fill_null(0).to_numpy(), 0)
        encoded = pc.dictionary_encode(column.flatten(), null_encoding="encode")
        rows = np.repeat(np.arange(len(valid)), lengths)
        size = max(1, len(encoded.dictionary))
        both = sort_distinct(rows * size + encoded.indices.to_numpy())
        return SetColumn(encoded.dictionary, both // size, both % size, valid)

    def __post_init__(self) -> None:
        frequency = np.bincount(self.codes, minlength=len(self.dictionary))
        order = np.argsort(-frequency, kind="stable")
        share = frequency[order[: WORD * _WORDS]] / max(1, len(self.valid))
        words = 1
        while words < _WORDS and np.sum(share[words * WORD : (words + 1) * WORD] ** 2) > _WORTH:
            words += 1
        often = order[: words * WORD]
        self.heavy = np.full(len(self.dictionary), -1)
        self.heavy[often] = np.arange(len(often))
        columns = self.heavy[self.codes]
        at = columns >= 0
        self.bits = _set_word_bits(self.rows[at], columns[at], words, len(self.valid))
        self.most = int(np.bincount(self.rows, minlength=1).max(initial=0))
        light = np.flatnonzero(columns < 0)
        by_code = light[np.argsort(self.codes[light], kind="stable")]
        self.lists = self.rows[by_code]
        self.starts = np.searchsorted(self.codes[by_code], np.arange(len(self.dictionary) + 1))

    def encode_in(self, other: SetColumn) -> tuple[Places, Places]:
        """Return (rows, codes) of these sets in another column's dictionary.

        Elements that it lacks are omitted.
        """
        codes = SetColumn.translate_codes(self.dictionary, other.dictionary)
        encoded = codes[self.codes] if len(codes) else np.zeros(0, np.int64)
        return self.rows[encoded >= 0], encoded[encoded >= 0]

    @staticmethod
    def translate_codes(values: pa.Array, dictionary: pa.Array) -> Places:
        """Return, by element, its position in another dictionary; -1: missing.

        Integers of different widths are compared as 64 bits.
        """
        if values.type != dictionary.type and pa.types.is_integer(dictionary.type):
            values, dictionary = values.cast(pa.int64()), dictionary.cast(pa.int64())
        positions = pc.index_in(values, value_set=dictionary).fill_null(-1).to_numpy()
        return np.asarray(positions, np.int64)


def count_common_elements(
    a: SetColumn, chosen: Places, b: SetColumn
) -> Iterator[tuple[slice, Counts]]:
    """Yield the numbers of common elements of chosen sets of ``a`` and all sets of ``b``.

    Each tile covers some of the chosen sets.
    """
    rows, codes = a.encode_in(b)
    starts = np.searchsorted(rows, np.arange(len(a.valid) + 1))
    size = max(1, _CELLS // max(1, len(b.valid)))
    for start in range(0, len(chosen), size):
        tile = slice(start, min(start + size, len(chosen)))
        yield tile, _count_tile_overlaps(codes, starts, chosen[tile], b)


def _count_tile_overlaps(codes: Places, starts: Places, chosen: Places, b: SetColumn) -> Counts:
    """Return the counts of one tile. The elements of set n are ``codes`` from ``starts[n]`` on."""
    lengths = starts[chosen + 1] - starts[chosen]
    at, code = (
        np.repeat(np.arange(len(chosen)), lengths),
        codes[expand_ranges(starts[chosen], lengths)],
    )
    heavy = b.heavy[code]
    words = _set_word_bits(at[heavy >= 0], heavy[heavy >= 0], len(b.bits), len(chosen))
    counts: Any = np.bitwise_count(words[0][:, None] & b.bits[0])
    if b.most > 255:  # a count can be as large as a set
        counts = counts.astype(np.uint32)
    for left_bits, theirs in zip(words[1:], b.bits[1:], strict=True):
        counts += np.bitwise_count(left_bits[:, None] & theirs)
    at, code = at[heavy < 0], code[heavy < 0]
    lengths = b.starts[code + 1] - b.starts[code]
    cells = np.repeat(at, lengths) * len(b.valid) + b.lists[expand_ranges(b.starts[code], lengths)]
    if len(cells) < counts.size // 4:
        np.add.at(counts.reshape(-1), cells, counts.dtype.type(1))
    elif len(cells):
        more = np.bincount(cells, minlength=counts.size).reshape(counts.shape)
        counts += more.astype(counts.dtype)
    return np.asarray(counts)


def _set_word_bits(rows: Places, columns: Places, words: int, size: int) -> npt.NDArray[np.uint64]:
    """Return, by word and row, the bits of its columns. Each column occurs once in a row."""
    bits = np.zeros((words, size), np.uint64)
    bit = np.uint64(1) << (columns % WORD).astype(np.uint64)
    np.add.at(bits.reshape(-1), columns // WORD * size + rows, bit)
    return bits


def expand_ranges(starts: Places, lengths: Places) -> Places:
    """Return the concatenated positions of runs that begin at ``starts``."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def pairwise_overlap(a: SetColumn, left: Places, b: SetColumn, right: Places) -> pa.Array:
    """Return the number of common elements of a[left] and b[right], pair by pair, as doubles.

    NULL if a set is NULL.
    """
    valid = a.valid[left] & b.valid[right]
    values = np.zeros(len(left))
    chosen, at = np.unique(left, return_inverse=True)
    for tile, counts in count_common_elements(a, chosen, b):
        in_tile = np.flatnonzero((at >= tile.start) & (at < tile.stop))
        values[in_tile] = counts[at[in_tile] - tile.start, right[in_tile]]
    return pa.array(values, mask=~valid, from_pandas=False)


def pairs_sharing(
    a: SetColumn, chosen: Places, b: SetColumn, least: int
) -> Iterator[tuple[Places, Places]]:
    """Yield pairs of sets with at least ``least`` common elements, 1 or more.

    A pair is (position in ``chosen``, position in b).
    """
    for tile, counts in count_common_elements(a, chosen, b):
        hits = np.flatnonzero(counts.reshape(-1) >= least)
        if len(hits):
            left, right = np.divmod(hits, len(b.valid))
            yield left + tile.start, right


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
    - ``weight_mask``: by entry, whether its weight is not NULL.
    - ``valid``: by map, False if it is NULL. A NULL map has no entries.
    """

    dictionary: pa.Array
    starts: Places
    codes: Places
    weights: Floats
    weight_mask: npt.NDArray[np.bool_]
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
        missing[part] |= np.bincount(pair, ~a.weight_mask[at], len(lengths)) > 0
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
    there = (codes >= 0) & (b.places[at] == wanted) & b.weight_mask[place]
    return np.where(there, b.weights[place], 0.0)
