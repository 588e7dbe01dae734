"""Unite the pairs that several searches find, each pair once.

A search of one range for each partial result knows how many rows it finds. Others are asked for
some partial results at a time, and for fewer if these have too many pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from braid.kernels.position_sort import sort_distinct
from braid.kernels.range_search import split_into_chunks
from braid.kernels.set_overlap import expand_ranges

Positions = npt.NDArray[np.int64]


_PROBES = 1 << 16
"""Maximum partial results that searches of unknown counts are asked for at once."""


class RowRanges(NamedTuple):
    """The rows that a search finds for each partial result.

    They are those at ``counts`` positions from ``first`` on in ``order`` (None: as stored).
    """

    first: Positions
    counts: Positions
    order: npt.NDArray[np.integer] | None

    @classmethod
    def make_empty(cls, size: int) -> RowRanges:
        """Return the ranges of a search that finds nothing."""
        nothing = np.zeros(size, np.int64)
        return cls(nothing, nothing, None)

    def expand_pairs(self, probing: Positions, size: int) -> Positions:
        """Return the pairs of some partial results, as position times ``size`` plus row."""
        counts = self.counts[probing]
        positions = expand_ranges(self.first[probing], counts)
        rows = positions if self.order is None else self.order[positions]
        return np.repeat(probing * size, counts) + rows


class PairSearch(Protocol):
    """A search for rows of a block of ``size`` rows."""

    def find_pairs(self, start: int, stop: int, size: int) -> Iterator[Positions]:
        """Yield the pairs of a range of partial results, as position times ``size`` plus row."""
        ...


def unite_pairs(
    searches: Sequence[RowRanges], size: int, most: int
) -> Iterator[tuple[Positions, Positions]]:
    """Yield the pairs that some search finds, each once, in chunks of at most ``most`` pairs.

    A pair is (position in the partial results, position in the block, which has ``size`` rows).
    """
    totals = np.sum([search.counts for search in searches], axis=0)
    hits = np.flatnonzero(totals)
    for start, stop in split_into_chunks(np.cumsum(totals[hits]), most):
        pairs = [search.expand_pairs(hits[start:stop], size) for search in searches]
        yield from _split_pairs(pairs, size, most)


def unite_searches(
    searches: Sequence[RowRanges],
    others: Sequence[PairSearch],
    probes: int,
    size: int,
    most: int,
) -> Iterator[tuple[Positions, Positions]]:
    """Yield the same for searches of both kinds; ``probes``: number of partial results."""
    if not others:
        yield from unite_pairs(searches, size, most)
        return
    totals = np.sum([np.zeros(probes, np.int64), *(s.counts for s in searches)], axis=0)
    pieces = [*split_into_chunks(np.cumsum(totals + max(1, most // _PROBES)), most)][::-1]
    while pieces:
        start, stop = pieces.pop()
        probing = np.arange(start, stop)
        pairs = [search.expand_pairs(probing, size) for search in searches]
        count = sum(map(len, pairs))
        for more in (each for other in others for each in other.find_pairs(start, stop, size)):
            pairs.append(more)
            count += len(more)
            if count > 2 * most and stop - start > 1:
                middle = (start + stop) // 2
                pieces += [(middle, stop), (start, middle)]
                break
        else:
            yield from _split_pairs(pairs, size, most)


def _split_pairs(
    pairs: Sequence[Positions], size: int, most: int
) -> Iterator[tuple[Positions, Positions]]:
    if not pairs:
        return
    distinct = pairs[0] if len(pairs) == 1 else sort_distinct(np.concatenate(pairs))
    left, right = np.divmod(distinct, size)
    for at in range(0, len(left), most):  # a single partial result may exceed a chunk
        yield left[at : at + most], right[at : at + most]
