"""Modelled rates of a definition's results, in tuples and bytes a second of event time.

Seshadri 2008, section 2.1, takes rates and selectivities as given. The formula for a join of
windows is Braid's own: each new tuple meets the contents of the other windows.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeVar

from braid.papers.reuse.query_definition import Definition, JoinCondition
from braid.papers.reuse.selections import Conjunction, Selection

TIME_BYTES = 8
"""Bytes of the event time, which every tuple has."""

_WITHOUT_SAMPLE = 256
"""Assumed number of sample tuples of a stream without a sample."""
_MOST = 1 << 14
"""Maximum number of cached values of a kind: queries come and go without notice."""

_K = TypeVar("_K")
_V = TypeVar("_V")


class BoundedCache(dict[_K, _V]):
    """A cache that forgets its values when it is full."""

    def __setitem__(self, key: _K, value: _V) -> None:
        if len(self) >= _MOST:
            self.clear()
        super().__setitem__(key, value)


@dataclass(frozen=True)
class StreamRate:
    """A stream: tuples a second, bytes of each column, and a sample of its tuples."""

    tuples_per_second: float
    column_bytes: Mapping[str, float]
    sample: Sequence[Mapping[str, Any]] = ()


@dataclass
class Rates:
    """Rates of streams, and of definitions over them.

    Parameters
    ----------
    streams
        Rates by name. A stream that one query reads twice, ``flights#2``, has the rate of the name
        before the "#".
    selectivity
        Fraction of pairs that satisfy a join condition, by its text.
    default_selectivity
        Fraction for other join conditions. Default: 0.01.
    opaque_selectivity
        Assumed fraction of tuples that satisfy an opaque condition, or one on a column that is not
        in the sample. Default: 0.3.
    longest_window_seconds
        Longest window that is modelled, in seconds. Default: one day.
    """

    streams: Mapping[str, StreamRate]
    selectivity: Mapping[str, float] = field(default_factory=dict)
    default_selectivity: float = 0.01
    opaque_selectivity: float = 0.3
    longest_window_seconds: float = 86400.0

    def __post_init__(self) -> None:
        self._masks = BoundedCache[tuple[str, Selection], int]()
        self._boxes = BoundedCache[tuple[str, Conjunction], int]()
        self._joint = BoundedCache[tuple[tuple[str, ...], frozenset[JoinCondition]], float]()
        self._widths = BoundedCache[tuple[str, frozenset[str]], float]()
        self._sent = BoundedCache[Definition, float]()
        self._tuples = BoundedCache[Definition, float]()

    def stream_rate(self, stream: str) -> StreamRate:
        """Return the rate of a stream."""
        return self.streams[stream.partition("#")[0]]

    def sample_mask(self, stream: str, where: Selection) -> int:
        """Return the tuples of the stream's sample that pass, one bit each."""
        key = stream.partition("#")[0], where
        if key not in self._masks:
            mask = 0
            for box in where.conjunctions:
                mask |= self._make_conjunction_mask(key[0], box)
            self._masks[key] = mask
        return self._masks[key]

    def passing_rate(self, stream: str, mask: int) -> float:
        """Return the tuples a second that pass, from the mask of passing sample tuples.

        If none in the sample passes, half a tuple is assumed.
        """
        return self.tuple_rate(stream) * max(mask.bit_count(), 0.5)

    def tuple_rate(self, stream: str) -> float:
        """Return the tuples a second that one sample tuple represents."""
        rate = self.stream_rate(stream)
        return rate.tuples_per_second / (len(rate.sample) or _WITHOUT_SAMPLE)

    def sample_masks(self, definition: Definition) -> list[int]:
        """Return, by stream, the sample tuples that pass."""
        return list(map(self.sample_mask, definition.streams, definition.selections))

    def _make_conjunction_mask(self, stream: str, box: Conjunction) -> int:
        key = stream, box
        if key not in self._boxes:
            sample = self.streams[stream].sample
            mask = (1 << (len(sample) or _WITHOUT_SAMPLE)) - 1
            for column, domain in box.domains:
                if sample and column in sample[0]:
                    mask &= _pack_bits(domain.contains(row[column]) for row in sample)
                else:
                    mask &= self._draw_opaque_mask(stream, domain.to_sql(column))
            for opaque in box.opaque_conditions:
                mask &= self._draw_opaque_mask(stream, opaque.text)
            self._boxes[key] = mask
        return self._boxes[key]

    def _draw_opaque_mask(self, stream: str, text: str) -> int:
        """Return a random mask for an opaque condition, the same for the same text."""
        rng = random.Random(text)
        size = len(self.streams[stream].sample) or _WITHOUT_SAMPLE
        return _pack_bits(rng.random() < self.opaque_selectivity for _ in range(size))

    def result_rate(self, definition: Definition) -> float:
        """Return the results a second.

        With a slide, results are emitted at its times only, and again while they hold; the smaller
        of the two rates counts.
        """
        if definition not in self._tuples:
            arriving = list(
                map(self.passing_rate, definition.streams, self.sample_masks(definition))
            )
            joint = self.join_selectivity(definition.streams, definition.joins)
            rate = self.join_rate(arriving, definition.windows, joint, definition.slides)
            self._tuples[definition] = rate
        return self._tuples[definition]

    def join_rate(
        self,
        arriving: Sequence[float],
        windows: Sequence[int],
        joint: float,
        slides: frozenset[int] = frozenset(),
    ) -> float:
        """Return the results a second of a join of windows.

        ``arriving`` are tuples a second by stream; ``joint`` is the fraction of all combinations
        that are results.
        """
        if len(arriving) == 1:
            return arriving[0]
        spans = [min(w / 1e6, self.longest_window_seconds) for w in windows]
        held = [rate * span for rate, span in zip(arriving, spans, strict=True)]
        pairs = prod(held) * joint
        unlimited = pairs * sum(1 / span for span in spans)
        return min(unlimited, pairs / (min(slides) / 1e6)) if slides else unlimited

    def join_selectivity(self, streams: tuple[str, ...], joins: frozenset[JoinCondition]) -> float:
        """Return the fraction of tuple combinations that satisfy the join conditions.

        Stated conditions count independently; implied ones count where they alone connect streams.
        """
        key = streams, joins
        if key not in self._joint:
            self._joint[key] = self._compute_join_selectivity(streams, joins)
        return self._joint[key]

    def _compute_join_selectivity(
        self, streams: tuple[str, ...], joins: frozenset[JoinCondition]
    ) -> float:
        selectivity, group = 1.0, {s: frozenset([s]) for s in streams}
        for join in sorted(joins, key=lambda j: (j.is_implied, j.text)):
            together = frozenset().union(*(group[s] for s in join.joined_streams))
            if join.is_implied and together == group[min(join.joined_streams)]:
                continue
            selectivity *= self.selectivity.get(join.text, self.default_selectivity)
            group |= dict.fromkeys(together, together)
        return selectivity

    def column_width(self, stream: str, columns: frozenset[str]) -> float:
        """Return the bytes of these columns in a tuple, with its event time."""
        key = stream, columns
        if key not in self._widths:
            widths = self.stream_rate(stream).column_bytes
            self._widths[key] = TIME_BYTES + sum(widths.get(c, 8.0) for c in columns)
        return self._widths[key]

    def result_width(self, definition: Definition) -> float:
        """Return the bytes of a result."""
        return sum(map(self.column_width, definition.streams, definition.columns))

    def result_byte_rate(self, definition: Definition) -> float:
        """Return the bytes of results a second."""
        if definition not in self._sent:
            self._sent[definition] = self.result_rate(definition) * self.result_width(definition)
        return self._sent[definition]


def _pack_bits(passed: Iterable[bool]) -> int:
    return int("0" + "".join("1" if p else "0" for p in passed), 2)
