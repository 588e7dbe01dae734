"""Find texts that begin with a text of another stream.

Stored texts are in lexicographic order, in which those with one prefix are a range. It is found by
binary searches on eight bytes at a time. Stored prefixes are in the order of their hashes; a
probing text looks up its first bytes for each length of prefix that a block has.

A LIKE pattern has the prefix before its first wildcard. A pattern with a backslash has none,
because Spark fails if the backslash precedes another letter than a wildcard.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from braid.condition.access_paths import TextPrefix
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.range_search import search_equal_ranges
from braid.kernels.range_union import Positions, RowRanges, unite_pairs
from braid.kernels.text_hashes import Hashes, Letters, Places

_ROWS = 1 << 16
"""Most texts that are looked up at once."""
_LOOKUPS = 1 << 22
"""Most lookups at once, one for each text and length of prefix. Their ranges take 130 MB."""
_WORD = 8
_WILDCARDS = np.frombuffer(b"%_", np.uint8)
_ESCAPE = ord("\\")

Words = npt.NDArray[np.uint64]


def find_prefix_pairs(
    partial: PartialMatches, rows: BlockRows, stream: int, path: TextPrefix, most: int
) -> Iterator[tuple[Positions, Positions]]:
    """Yield pairs among which are all texts with their prefixes, in chunks of at most ``most``.

    A pair is (position in the partial results, position in the block).
    """
    stores_texts = path.text[0] == stream
    here, other = (path.text, path.prefix)[:: 1 if stores_texts else -1]
    probing, at = partial.parts[other[0]]
    letters = Letters.read_bytes(probing.batch.column(other[1]))
    sizes = 1 if stores_texts else len(_list_sizes(rows, here[1], path.is_pattern))
    step = max(1, min(_ROWS, _LOOKUPS // max(1, sizes)))
    for start in range(0, len(partial), step):
        some = at[start : start + step]
        if stores_texts:
            searches = [_search_texts(rows, here[1], letters, some, path.is_pattern)]
        else:
            searches = _search_prefixes(rows, here[1], letters, some, path.is_pattern)
        for left, right in unite_pairs(searches, rows.batch.num_rows, most):
            yield left + start, right


def _measure_prefixes(letters: Letters, is_pattern: bool) -> Places:
    """Return the lengths of the prefixes that a column of prefixes or patterns has."""
    if not is_pattern:
        return letters.lengths
    ends = letters.starts + letters.lengths
    wild = np.flatnonzero(np.isin(letters.values, _WILDCARDS))
    firsts = np.append(wild, len(letters.values))[np.searchsorted(wild, letters.starts)]
    lengths = np.minimum(firsts, ends) - letters.starts
    escapes = np.concatenate([[0], np.cumsum(letters.values == _ESCAPE)])
    return np.where(escapes[ends] > escapes[letters.starts], 0, lengths)


# Stored prefixes


def _read_lengths(rows: BlockRows, name: str, is_pattern: bool) -> Places:
    """Return the lengths of a block's prefixes; -1 for NULL."""

    def read_lengths() -> Places:
        letters = Letters.read_bytes(rows.batch.column(name))
        return np.where(letters.valid, _measure_prefixes(letters, is_pattern), -1)

    return rows.cached_column(f"prefix lengths {is_pattern} {name}", read_lengths)


def _list_sizes(rows: BlockRows, name: str, is_pattern: bool) -> Places:
    """Return the different lengths of a block's prefixes."""
    lengths = _read_lengths(rows, name, is_pattern)
    return rows.cached_column(
        f"prefix sizes {is_pattern} {name}", lambda: np.unique(lengths[lengths >= 0])
    )


def _search_prefixes(
    rows: BlockRows, name: str, texts: Letters, chosen: Places, is_pattern: bool
) -> list[RowRanges]:
    """Return the stored prefixes of each chosen text, by their length."""
    kind = f"{is_pattern} {name}"
    column = rows.batch.column(name)

    def hash_prefixes() -> Hashes:
        letters = Letters.read_bytes(column)
        nothing = np.zeros(len(valid), np.int64)
        return letters.hash_parts(valid, nothing, lengths[valid])

    lengths = _read_lengths(rows, name, is_pattern)
    valid = np.flatnonzero(lengths >= 0)
    hashes = rows.cached_column(f"prefixes {kind}", hash_prefixes)
    order = rows.cached_column(f"prefix order {kind}", lambda: np.argsort(hashes, kind="stable"))
    ascending = rows.cached_column(f"sorted prefixes {kind}", lambda: hashes[order])
    if not len(valid):
        return [RowRanges.make_empty(len(chosen))]
    prefix_rows = rows.cached_column(f"prefix rows {kind}", lambda: valid[order])
    sizes = _list_sizes(rows, name, is_pattern).tolist()
    return [_search_length(ascending, prefix_rows, texts, chosen, size) for size in sizes]


def _search_length(
    hashes: Hashes, order: Positions, texts: Letters, chosen: Places, size: int
) -> RowRanges:
    """Return the stored prefixes of one length."""
    there = texts.valid[chosen] & (texts.lengths[chosen] >= size)
    fits = np.flatnonzero(there)
    parts = texts.hash_parts(chosen[fits], np.zeros(len(fits), np.int64), np.full(len(fits), size))
    first, counts = np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.int64)
    begin, end = search_equal_ranges(parts, hashes)
    first[fits], counts[fits] = begin, end - begin
    return RowRanges(first, counts, order)


# Stored texts


def _search_texts(
    rows: BlockRows, name: str, prefixes: Letters, chosen: Places, is_pattern: bool
) -> RowRanges:
    """Return the stored texts that begin with each chosen prefix."""
    column = rows.batch.column(name)
    order = rows.cached_column(f"text order {name}", lambda: _sort_texts(column))
    texts = Letters.read_bytes(column)
    lengths = np.where(prefixes.valid, _measure_prefixes(prefixes, is_pattern), 0)[chosen]
    first = np.zeros(len(chosen), np.int64)
    last = np.where(prefixes.valid[chosen], len(order), 0)
    for begin in range(0, int(lengths.max(initial=0)), _WORD):
        longer = np.flatnonzero((lengths > begin) & (first < last))
        sizes = np.minimum(lengths[longer] - begin, _WORD)
        least = _read_words(prefixes, chosen[longer], begin, sizes)
        most = least | (~np.uint64(0) >> (8 * np.minimum(sizes, 7)).astype(np.uint64))
        most = np.where(sizes == _WORD, least, most)
        ends = first[longer], last[longer]
        first[longer] = _search_words(texts, order, begin, *ends, least, "left")
        last[longer] = _search_words(texts, order, begin, *ends, most, "right")
    return RowRanges(first, np.maximum(last - first, 0), order)


def _sort_texts(column: pa.Array) -> Positions:
    """Return the positions that sort texts by their bytes, without NULL."""
    order = np.asarray(pc.sort_indices(column).to_numpy(), np.int64)
    return order[: len(column) - column.null_count]


def _read_words(letters: Letters, chosen: Places, begin: int, sizes: Places | int) -> Words:
    """Return bytes of texts from ``begin`` on as numbers in the same order; 0 beyond their end."""
    words = np.zeros(len(chosen), np.uint64)
    starts, lengths = letters.starts[chosen] + begin, letters.lengths[chosen] - begin
    most = max(len(letters.values) - 1, 0)
    for n in range(_WORD):
        is_there = (lengths > n) & (sizes > n)
        if is_there.any():
            values = letters.values[np.minimum(starts + n, most)].astype(np.uint64)
            words |= np.where(is_there, values, 0) << np.uint64(8 * (_WORD - 1 - n))
    return words


def _search_words(
    texts: Letters,
    order: Positions,
    begin: int,
    first: Places,
    last: Places,
    words: Words,
    side: str,
) -> Places:
    """Return where each word belongs between ``first`` and ``last``, by binary search.

    There, the words of texts from ``begin`` on ascend.
    """
    low, high = first.copy(), last.copy()
    while len(open_ := np.flatnonzero(low < high)):
        middle = (low[open_] + high[open_]) // 2
        stored = _read_words(texts, order[middle], begin, _WORD)
        is_below = stored < words[open_] if side == "left" else stored <= words[open_]
        low[open_] = np.where(is_below, middle + 1, low[open_])
        high[open_] = np.where(is_below, high[open_], middle)
    return low
