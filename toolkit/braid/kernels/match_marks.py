"""Marks of the rows that are in some result, by birth (see ``core.answers``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from braid.core.answer_state import make_mark_key
from braid.core.reserved_columns import BIRTH
from braid.kernels.host_block_rows import BlockRows, PartialMatches

Bits = npt.NDArray[np.bool_]
"""By number of a row, whether it is in some result. Rows past the end are in none."""


class MatchMarker:
    """Marker of the rows of preserved streams that a task finds in results.

    ``preserved``: the streams, by the bit of a query, in a run that serves many; else by None.
    """

    def __init__(self, preserved: Mapping[int | None, Sequence[int]]) -> None:
        self._preserved = preserved
        self._hits: dict[tuple[int, int | None], tuple[BlockRows, Bits]] = {}
        """By identity of the rows, which are kept with them, so that identities stay unique."""

    def mark_results(self, results: PartialMatches) -> None:
        """Mark the members of results, for each query that these serve."""
        for query, streams in self._preserved.items():
            chosen = None
            if query is not None:
                assert results.queries is not None, "results of a run with queries serve some"
                chosen = (results.queries >> query & 1).astype(bool)
            for stream in streams:
                rows, at = results.parts[stream]
                self._mark_rows(rows, at if chosen is None else at[chosen], query)

    def _mark_rows(self, rows: BlockRows, at: npt.NDArray[np.integer], query: int | None) -> None:
        key = id(rows), query
        if key not in self._hits:
            self._hits[key] = rows, np.zeros(rows.batch.num_rows, bool)
        self._hits[key][1][at] = True

    def collect_marks(self) -> dict[int, Bits]:
        """Return the marks by ``make_mark_key``."""
        marks: dict[int, Bits] = {}
        for (_, query), (rows, hit) in self._hits.items():
            for birth, bits in _split_by_birth(rows, hit):
                key = make_mark_key(birth, query)
                marks[key] = union_match_bits([marks[key], bits]) if key in marks else bits
        return marks


def _split_by_birth(rows: BlockRows, hit: Bits) -> Iterator[tuple[int, Bits]]:
    at = np.flatnonzero(hit)
    numbers = rows.row_numbers()[at]
    births, sources = _find_births(rows, at)
    for source, birth in enumerate(births):
        chosen = numbers if sources is None else numbers[sources == source]
        if len(chosen):
            bits = np.zeros(int(chosen.max()) + 1, bool)
            bits[chosen] = True
            yield birth, bits


def _find_births(
    rows: BlockRows, at: npt.NDArray[np.integer]
) -> tuple[Sequence[int], npt.NDArray[np.integer] | None]:
    """Return births, and by position the index of its own; None: all have the first."""
    if BIRTH not in rows.batch.schema.names:
        return rows.births, None if rows.sources is None else rows.sources[at]
    births, sources = np.unique(rows.numpy_column(BIRTH)[at], return_inverse=True)
    return births.tolist(), sources


def union_match_bits(several: Iterable[Bits]) -> Bits:
    """Return the rows that some of these bitmaps mark."""
    longest, *others = sorted(several, key=len, reverse=True)
    union = longest.copy()
    for bits in others:
        union[: len(bits)] |= bits
    return union


def pack_match_bits(bits: Bits) -> bytes:
    """Return a bitmap as bytes, lowest bit first."""
    return np.packbits(bits, bitorder="little").tobytes()


def unpack_match_bits(body: bytes) -> Bits:
    """Return the bitmap that ``pack_match_bits`` packed, with up to seven further rows."""
    return np.unpackbits(np.frombuffer(body, np.uint8), bitorder="little").astype(bool)


def look_up_match_bits(bits: Bits | None, numbers: npt.NDArray[np.integer]) -> Bits:
    """Return whether the rows with these numbers are marked. None: no row is."""
    if bits is None or not len(bits):
        return np.zeros(len(numbers), bool)
    if int(numbers.max(initial=0)) < len(bits):
        return np.asarray(bits[numbers])
    inside = numbers < len(bits)
    return np.asarray(inside & bits[np.where(inside, numbers, 0)])
