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

from braid.core.harvest import Harvested, Item, utility

KEPT = 0.9
"""The weight of all earlier batches beside the last: half of it is gone after 6.6 batches. It plays
the part of T_c."""


class Seen(NamedTuple):
    """Of tuples of ``stream`` against ``window``, in basic window ``part`` or of type ``part``: the
    pairs that were considered, and what they gave (matches, or their utility).
    """

    stream: int
    window: int
    part: int
    pairs: float
    gave: float


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known by basic window (``parts``, matches) and by type (``kinds``, utility), and by
    stream how many tuples were of each type; earlier batches fade.
    """

    parts: tuple[Seen, ...] = ()
    kinds: tuple[Seen, ...] = ()
    counts: tuple[Mapping[int, float], ...] = field(default=())

    def after(self, last: Harvested, types: tuple[tuple[int, ...], ...]) -> Profile:
        """With what a batch gave; ``types`` are the codes that its harvest told apart."""
        parts = [
            Seen(y.stream, y.window, y.basic, sum(y.considered), sum(y.found)) for y in last.yields
        ]
        kinds = [
            Seen(y.stream, y.window, code, pairs, value)
            for y in (last.yields if types else ())
            if types[y.stream]
            for code, pairs, value in zip(types[y.stream], y.considered, y.value, strict=True)
        ]
        return Profile(
            _faded(self.parts, parts), _faded(self.kinds, kinds), _counts(self.counts, last.types)
        )

    def types(self, most: int = 64) -> tuple[tuple[int, ...], ...]:
        """By stream, the codes of the commonest types, rising."""
        return tuple(
            tuple(sorted(sorted(each, key=lambda code: -each[code])[:most])) for each in self.counts
        )

    def frequencies(self, stream: int, types: tuple[int, ...]) -> tuple[float, ...]:
        """omega_{k,z}: the share of a stream's tuples that is of each type."""
        if not types:
            return (1.0,)
        counts = [self.counts[stream].get(code, 0.0) for code in types]
        return tuple(n / sum(counts) for n in counts)

    def outputs(self, items: Iterable[Item]) -> dict[Item, float]:
        """o_{k,i,j}: matches that a pair of an item gives. One match at the mean rate counts as
        seen beforehand, so that what has not been tried is average.
        """
        mean = _rate(self.parts)
        seen = {s[:3]: s for s in self.parts}
        return {item: _smoothed(seen.get(item), mean, 1.0) for item in items}

    def worth(self, stream: int, window: int, types: tuple[int, ...]) -> tuple[float, ...]:
        """u_{i,z} for tuples of a stream against a window: the utility of a pair by type, over the
        matches of a pair. One match, worth what the tuple is, counts as seen beforehand.
        """
        if not types:
            return (1.0,)
        mean = _rate([s for s in self.parts if s[:2] == (stream, window)])
        seen = {s.part: s for s in self.kinds if s[:2] == (stream, window)}
        return tuple(_smoothed(seen.get(z), mean, utility(z)) / mean for z in types)


def _faded(old: Iterable[Seen], new: Iterable[Seen]) -> tuple[Seen, ...]:
    sums = {s[:3]: (KEPT * s.pairs, KEPT * s.gave) for s in old}
    for s in new:
        pairs, gave = sums.get(s[:3], (0.0, 0.0))
        sums[s[:3]] = (pairs + s.pairs, gave + s.gave)
    return tuple(Seen(*at, *n) for at, n in sorted(sums.items()) if n[0] >= 1e-6)


def _counts(
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


def _rate(seen: Iterable[Seen]) -> float:
    """Matches over pairs of all; 1 before any pair has been seen."""
    seen = list(seen)
    pairs = sum(s.pairs for s in seen)
    return max(sum(s.gave for s in seen), 1.0) / pairs if pairs else 1.0


def _smoothed(seen: Seen | None, mean: float, one: float) -> float:
    pairs, gave = (seen.pairs, seen.gave) if seen else (0.0, 0.0)
    return (gave + one) / (pairs + 1 / mean)
