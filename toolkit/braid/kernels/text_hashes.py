"""Texts as arrays of letters, and hashes of any parts of them.

The hash of a part is a polynomial in its letters, so that one running sum over all texts yields the
hash of every part of every text. Equal parts have equal hashes; a residual decides on the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Places = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.int64]

_BASE = 0x9E3779B97F4A7C15
"""Base of the polynomial; odd, so that it has an inverse modulo 2^64."""
_INVERSE = pow(_BASE, -1, 1 << 64)
_MIX = 0xBF58476D1CE4E5B9
_PIECE = 1 << 20
"""Letters that are weighted at once."""


@dataclass(frozen=True)
class Letters:
    """The letters of a column of texts: bytes, or code points.

    - ``values``: the letters of all texts.
    - ``starts``, ``lengths``: by text.
    - ``valid``: False for NULL.
    """

    values: npt.NDArray[np.uint8] | npt.NDArray[np.uint32]
    starts: Places
    lengths: Places
    valid: npt.NDArray[np.bool_]

    @classmethod
    def read_bytes(cls, column: pa.Array) -> Letters:
        """Return the texts of a column as UTF-8."""
        offsets = _read_offsets(column)
        values = np.frombuffer(_read_data(column, offsets), np.uint8)
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        return cls(values, offsets[:-1] - offsets[0], np.diff(offsets), valid)

    @classmethod
    def read_code_points(cls, column: pa.Array) -> Letters:
        """Return the texts of a column as code points."""
        encoded = cls.read_bytes(column)
        is_first = (encoded.values & 0xC0) != 0x80  # not a further byte of a code point
        if is_first.all():
            return encoded
        before = np.concatenate([[0], np.cumsum(is_first)])
        starts, ends = before[encoded.starts], before[encoded.starts + encoded.lengths]
        values = np.frombuffer(encoded.values.tobytes().decode().encode("utf-32-le"), np.uint32)
        return cls(values, starts, ends - starts, encoded.valid)

    def hash_parts(self, texts: Places, begins: Places, lengths: Places) -> Hashes:
        """Return the hashes of parts, each given by its text, its begin in it, and its length."""
        at = self.starts[texts] + begins
        total = (self._prefix_sums[at + lengths] - self._prefix_sums[at]) * self._inverses[begins]
        return mix_numbers(total, lengths)

    @cached_property
    def _prefix_sums(self) -> npt.NDArray[np.uint64]:
        """Before each letter, the sum of the letters so far times powers of the base."""
        powers, letters = _make_powers(_BASE, self._longest), len(self.values)
        places = np.arange(letters, dtype=np.int32)
        places -= np.repeat(self.starts.astype(np.int32), self.lengths)
        sums = np.zeros(letters + 1, np.uint64)
        weighted = sums[1:]
        weighted[:] = self.values
        weighted += np.uint64(1)
        for at in range(0, letters, _PIECE):  # numbers of 8 bytes for all letters are much
            weighted[at : at + _PIECE] *= powers[places[at : at + _PIECE]]
        np.cumsum(weighted, out=weighted)
        return sums

    @cached_property
    def _inverses(self) -> npt.NDArray[np.uint64]:
        return _make_powers(_INVERSE, self._longest)

    @property
    def _longest(self) -> int:
        return int(self.lengths.max(initial=0))


def mix_numbers(hashes: npt.NDArray[np.integer], numbers: npt.NDArray[np.integer] | int) -> Hashes:
    """Return hashes of each hash together with a number."""
    mixed = (hashes.astype(np.uint64) + np.asarray(numbers).astype(np.uint64)) * np.uint64(_MIX)
    return ((mixed ^ (mixed >> np.uint64(31))) * np.uint64(_BASE)).view(np.int64)


def _make_powers(base: int, count: int) -> npt.NDArray[np.uint64]:
    """Return the powers of a number from 0 to ``count``, modulo 2^64."""
    factors = np.full(count + 1, base, np.uint64)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint64)


def _read_offsets(column: pa.Array) -> Places:
    if not len(column):
        return np.zeros(1, np.int64)
    buffer = column.buffers()[1]
    return np.frombuffer(buffer, np.int32, len(column) + 1, 4 * column.offset).astype(np.int64)


def _read_data(column: pa.Array, offsets: Places) -> memoryview:
    buffer = column.buffers()[2] if len(column) else None
    return memoryview(b"" if buffer is None else buffer)[offsets[0] : offsets[-1]]
