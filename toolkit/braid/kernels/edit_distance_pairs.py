"""Find texts within a few edits of each other by an index of segments.

A stored text is cut into one segment more than there may be edits. In a text within that many edits
one segment is unchanged, near its place. The probing text therefore looks up its parts near the
place of each segment, for each length that a partner may have.

Source: Li, Deng, Wang and Feng 2011, "Pass-Join: A Partition-based Method for Similarity Joins",
sections 3 and 4.2 (multi-match-aware selection).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from braid.condition.access_paths import EditDistance
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.range_search import search_equal_ranges
from braid.kernels.range_union import Positions, RowRanges, unite_pairs
from braid.kernels.text_hashes import Hashes, Letters, Places, mix_numbers

_ROWS = 1 << 13
"""Texts that are looked up at once. Their ranges for 4 edits take 30 MB."""


def find_texts_within_edits(
    partial: PartialMatches, rows: BlockRows, stream: int, path: EditDistance, most: int
) -> Iterator[tuple[Positions, Positions]]:
    """Yield pairs among which are all texts within the edits, in chunks of at most ``most`` pairs.

    A pair is (position in the partial results, position in the block).
    """
    here, other = (path.left, path.right)[:: 1 if path.left[0] == stream else -1]
    hashes, order = _index_segments(rows, here[1], path.most_edits)
    if not len(hashes):
        return
    probing, at = partial.parts[other[0]]
    texts = Letters.read_code_points(probing.batch.column(other[1]))
    for start in range(0, len(partial), _ROWS):
        some = at[start : start + _ROWS]
        searches = [
            _search_hashes(hashes, order, parts, there)
            for parts, there in _list_parts(texts, some, path.most_edits)
        ]
        for left, right in unite_pairs(searches, rows.batch.num_rows, most):
            yield left + start, right


def _index_segments(rows: BlockRows, name: str, edits: int) -> tuple[Hashes, Positions]:
    """Return the hashes of all segments of a block's texts in order, and their rows."""
    size = rows.batch.num_rows

    def hash_segments() -> Hashes:
        texts = Letters.read_code_points(rows.batch.column(name))
        every = np.arange(size)
        hashes = [_hash_segment(texts, every, n, edits) for n in range(edits + 1)]
        return np.concatenate(hashes)[np.tile(texts.valid, edits + 1)]

    def sort_segments() -> Positions:
        return np.argsort(hashes, kind="stable")

    hashes = rows.cached_column(f"segments {edits} {name}", hash_segments)
    order = rows.cached_column(f"segment order {edits} {name}", sort_segments)
    valid = np.flatnonzero(rows.batch.column(name).is_valid().to_numpy(zero_copy_only=False))
    return (
        rows.cached_column(f"sorted segments {edits} {name}", lambda: hashes[order]),
        rows.cached_column(
            f"segment rows {edits} {name}", lambda: valid[order % max(1, len(valid))]
        ),
    )


def _locate_segment(lengths: Places, number: int, edits: int) -> tuple[Places, Places]:
    """Return the begin and the length of a segment of texts of these lengths.

    Lengths of segments differ by at most 1; the last ones are the longer ones.
    """
    shorter, longer = np.divmod(lengths, edits + 1)
    further = np.maximum(number - (edits + 1 - longer), 0)
    is_longer = number >= edits + 1 - longer
    return number * shorter + further, shorter + is_longer


def _hash_segment(texts: Letters, chosen: Places, number: int, edits: int) -> Hashes:
    lengths = texts.lengths[chosen]
    begins, sizes = _locate_segment(lengths, number, edits)
    return _name_segment(texts.hash_parts(chosen, begins, sizes), lengths, number)


def _name_segment(hashes: Hashes, lengths: Places, number: int) -> Hashes:
    """Return hashes of segments together with the length of their text and their number."""
    return mix_numbers(hashes, lengths * 64 + number)


def _list_parts(texts: Letters, chosen: Places, edits: int) -> Iterator[tuple[Hashes, np.ndarray]]:
    """Yield the hashes of the parts that may be segments of partners, and where there is one."""
    lengths, valid = texts.lengths[chosen], texts.valid[chosen]
    for longer in range(-edits, edits + 1):
        partner = lengths - longer
        for number in range(edits + 1):
            begins, sizes = _locate_segment(np.maximum(partner, 0), number, edits)
            low = max(-number, longer - (edits - number))
            high = min(number, longer + (edits - number))
            for shift in range(low, high + 1):
                at = begins + shift
                there = valid & (partner >= 0) & (at >= 0) & (at + sizes <= lengths)
                parts = np.zeros(len(chosen), np.int64)
                fits = np.flatnonzero(there)
                hashes = texts.hash_parts(chosen[fits], at[fits], sizes[fits])
                parts[fits] = _name_segment(hashes, partner[fits], number)
                yield parts, there


def _search_hashes(hashes: Hashes, order: Positions, parts: Hashes, there: np.ndarray) -> RowRanges:
    first, last = search_equal_ranges(parts, hashes)
    return RowRanges(first, (last - first) * there, order)
