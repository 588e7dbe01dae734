"""Basic windows, the pieces of a window that are processed or not, and their productivity.

Here a basic window is a set of blocks: windows slide block by block, and no block is merged across
the end of a basic window.

A hash, not the content of tuples, decides which tuple meets which block. So matches over processed
pairs estimate o_{i,j} without bias, and no tuple has to be processed in full to learn. Algorithm 2
divides by the pairs that rates predict; this module divides by the pairs that were considered.

Source: Gedik 2007, sections 5.1 (Algorithm 2) and 5.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from braid.core.plan import Block
from braid.core.shedding_plan import Item, SheddingOutcome, utility_of_type

PARTS = 20
"""Default number of basic windows in a window: the paper has 1 of 20 seconds."""


def basic_window_length(window: int, basic: int | None) -> int:
    """Return b, in microseconds: as given, or a twentieth of the window."""
    return basic if basic is not None else max(1, window // PARTS)


def basic_window_ends(window: int | None, basic: int | None) -> tuple[int, ...]:
    """Return the ages b, 2b, .., w_i (microseconds) across which blocks are not merged.

    There are none in full history.
    """
    if window is None:
        return ()
    b = basic_window_length(window, basic)
    return (*range(b, window, b), window)


def locate_basic_window(
    block: Block, batch: int, window: int | None, basic: int | None, now: int | None
) -> int:
    """Return j, the basic window of the middle of a block's event times; 0: the youngest.

    ``now`` is the latest event time of the other streams, in microseconds. In full history, or
    while the others are silent, basic windows double: j is the number of doublings in the number of
    batches since the block's first.
    """
    if window is None or block.event_time_range is None or now is None:
        return max(0, batch - block.batch).bit_length()
    b = basic_window_length(window, basic)
    return min(ceil(window / b), max(0, (now - sum(block.event_time_range) // 2) // b))


EARLIER_WEIGHT = 0.9
"""Weight of all earlier batches beside the last one: half of it is gone after 6.6 batches.

It replaces T_c.
"""


class Observation(NamedTuple):
    """Counts for tuples of ``stream`` against ``window``.

    ``part`` is a basic window or a type, ``pairs`` the pairs that were considered, and ``output``
    their matches, or the utility of these.
    """

    stream: int
    window: int
    part: int
    pairs: float
    output: float


@dataclass(frozen=True, slots=True)
class ProductivityProfile:
    """Learned productivity; earlier batches fade.

    - ``parts``: matches by basic window.
    - ``types_seen``: utility by type.
    - ``counts``: by stream, the number of tuples of each type.
    """

    parts: tuple[Observation, ...] = ()
    types_seen: tuple[Observation, ...] = ()
    counts: tuple[Mapping[int, float], ...] = field(default=())

    def update(
        self, last: SheddingOutcome, types: tuple[tuple[int, ...], ...]
    ) -> ProductivityProfile:
        """Return the profile with a batch's outcome; ``types`` are the codes in its harvest."""
        parts = [
            Observation(y.stream, y.window, y.basic_window, sum(y.considered_pairs), sum(y.matches))
            for y in last.yields
        ]
        kinds = [
            Observation(y.stream, y.window, code, pairs, value)
            for y in (last.yields if types else ())
            if types[y.stream]
            for code, pairs, value in zip(types[y.stream], y.considered_pairs, y.value, strict=True)
        ]
        return ProductivityProfile(
            _fade_and_add(self.parts, parts),
            _fade_and_add(self.types_seen, kinds),
            _update_type_counts(self.counts, last.types),
        )

    def common_types(self, most: int = 64) -> tuple[tuple[int, ...], ...]:
        """Return, by stream, the codes of the most frequent types, in rising order."""
        return tuple(
            tuple(sorted(sorted(each, key=lambda code: -each[code])[:most])) for each in self.counts
        )

    def type_frequencies(self, stream: int, types: tuple[int, ...]) -> tuple[float, ...]:
        """Return omega_{k,z}: the fraction of a stream's tuples with each type."""
        if not types:
            return (1.0,)
        counts = [self.counts[stream].get(code, 0.0) for code in types]
        return tuple(n / sum(counts) for n in counts)

    def matches_per_pair(self, items: Iterable[Item]) -> dict[Item, float]:
        """Return o_{k,i,j}: matches for each pair of an item.

        One match at the mean rate is added as prior, so that an untried item is average.
        """
        mean = _measure_matches_per_pair(self.parts)
        seen = {s[:3]: s for s in self.parts}
        return {item: _smooth_productivity(seen.get(item), mean, 1.0) for item in items}

    def utility_per_pair(
        self, stream: int, window: int, types: tuple[int, ...]
    ) -> tuple[float, ...]:
        """Return u_{i,z} for tuples of a stream against a window.

        This is the utility of a pair by type, over the matches of a pair. One match with the
        utility of its tuple is added as prior.
        """
        if not types:
            return (1.0,)
        mean = _measure_matches_per_pair([s for s in self.parts if s[:2] == (stream, window)])
        seen = {s.part: s for s in self.types_seen if s[:2] == (stream, window)}
        return tuple(
            _smooth_productivity(seen.get(z), mean, utility_of_type(z)) / mean for z in types
        )


def _fade_and_add(
    old: Iterable[Observation], new: Iterable[Observation]
) -> tuple[Observation, ...]:
    sums = {s[:3]: (EARLIER_WEIGHT * s.pairs, EARLIER_WEIGHT * s.output) for s in old}
    for s in new:
        pairs, gave = sums.get(s[:3], (0.0, 0.0))
        sums[s[:3]] = (pairs + s.pairs, gave + s.output)
    return tuple(Observation(*at, *n) for at, n in sorted(sums.items()) if n[0] >= 1e-6)


def _update_type_counts(
    old: tuple[Mapping[int, float], ...], new: tuple[Mapping[int, int], ...]
) -> tuple[Mapping[int, float], ...]:
    pairs = zip(old or ({},) * len(new), new or ({},) * len(old), strict=True)
    return tuple(
        {
            code: n
            for code in sorted(a.keys() | b.keys())
            if (n := EARLIER_WEIGHT * a.get(code, 0.0) + b.get(code, 0)) >= 1e-3
        }
        for a, b in pairs
    )


def _measure_matches_per_pair(seen: Iterable[Observation]) -> float:
    """Return matches over pairs of all observations; 1 if there are none."""
    seen = list(seen)
    pairs = sum(s.pairs for s in seen)
    return max(sum(s.output for s in seen), 1.0) / pairs if pairs else 1.0


def _smooth_productivity(seen: Observation | None, mean: float, one: float) -> float:
    pairs, gave = (seen.pairs, seen.output) if seen else (0.0, 0.0)
    return (gave + one) / (pairs + 1 / mean)
