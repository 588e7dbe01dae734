"""What has been learned of a join: which basic windows and types give most for a pair.

Source: Gedik 2007, sections 5.1 (Algorithm 2) and 5.3. Which tuple meets which block is drawn by a
hash and not by what is in them, so matches over pairs of whatever was processed estimates o_{i,j}
without bias, and no tuple need be processed in full to learn. Algorithm 2 divides by the pairs that
rates promise; here by those that were considered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from braid.core.shedding_plan import Item, SheddingOutcome, utility_of_type

KEPT = 0.9
"""The weight of all earlier batches beside the last: half of it is gone after 6.6 batches. It plays
the part of T_c."""


class Observation(NamedTuple):
    """Of tuples of ``stream`` against ``window``, in basic window ``part`` or of type ``part``: the
    pairs that were considered, and what they gave (matches, or their utility).
    """

    stream: int
    window: int
    part: int
    pairs: float
    output: float


@dataclass(frozen=True, slots=True)
class ProductivityProfile:
    """What is known by basic window (``parts``, matches) and by type (``kinds``, utility), and by
    stream how many tuples were of each type; earlier batches fade.
    """

    parts: tuple[Observation, ...] = ()
    types_seen: tuple[Observation, ...] = ()
    counts: tuple[Mapping[int, float], ...] = field(default=())

    def update(
        self, last: SheddingOutcome, types: tuple[tuple[int, ...], ...]
    ) -> ProductivityProfile:
        """With what a batch gave; ``types`` are the codes that its harvest told apart."""
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
        """By stream, the codes of the commonest types, rising."""
        return tuple(
            tuple(sorted(sorted(each, key=lambda code: -each[code])[:most])) for each in self.counts
        )

    def type_frequencies(self, stream: int, types: tuple[int, ...]) -> tuple[float, ...]:
        """omega_{k,z}: the share of a stream's tuples that is of each type."""
        if not types:
            return (1.0,)
        counts = [self.counts[stream].get(code, 0.0) for code in types]
        return tuple(n / sum(counts) for n in counts)

    def matches_per_pair(self, items: Iterable[Item]) -> dict[Item, float]:
        """o_{k,i,j}: matches that a pair of an item gives. One match at the mean rate counts as
        seen beforehand, so that what has not been tried is average.
        """
        mean = _measure_matches_per_pair(self.parts)
        seen = {s[:3]: s for s in self.parts}
        return {item: _smooth_productivity(seen.get(item), mean, 1.0) for item in items}

    def utility_per_pair(
        self, stream: int, window: int, types: tuple[int, ...]
    ) -> tuple[float, ...]:
        """u_{i,z} for tuples of a stream against a window: the utility of a pair by type, over the
        matches of a pair. One match, worth what the tuple is, counts as seen beforehand.
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
    sums = {s[:3]: (KEPT * s.pairs, KEPT * s.output) for s in old}
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
            if (n := KEPT * a.get(code, 0.0) + b.get(code, 0)) >= 1e-3
        }
        for a, b in pairs
    )


def _measure_matches_per_pair(seen: Iterable[Observation]) -> float:
    """Matches over pairs of all; 1 before any pair has been seen."""
    seen = list(seen)
    pairs = sum(s.pairs for s in seen)
    return max(sum(s.output for s in seen), 1.0) / pairs if pairs else 1.0


def _smooth_productivity(seen: Observation | None, mean: float, one: float) -> float:
    pairs, gave = (seen.pairs, seen.output) if seen else (0.0, 0.0)
    return (gave + one) / (pairs + 1 / mean)
