"""The work that frequent values make, estimated from the counts that core keeps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from braid.core.facts import Facts
from braid.core.frequent_values import EARLIER_WEIGHT, OTHERS
from braid.core.plan import Keys

TUPLE, PAIR = 1.5, 0.1
"""Microseconds of a host to receive a tuple and probe with it, and to write a result. As
``RECEIVED + PROBED`` and ``FOUND`` of ``simulation.placement_comparison``.
"""


@dataclass(frozen=True)
class ValueShares:
    """The share of each stream's recent tuples that a value, or a range of routing keys, has.

    - ``counts``: by stream, tuples of frequent values and ``OTHERS``, as ``Facts.key_counts``.
    - ``values``: number of values.
    - ``keys_per_value``: number of routing keys of a value.
    """

    counts: Sequence[Mapping[int, float]]
    values: int
    keys_per_value: int

    def frequent_values(self) -> list[int]:
        """Return the counted values of all streams, ascending."""
        return sorted({v for counts in self.counts for v in counts if v != OTHERS})

    def value_share(self, stream: int, value: int) -> float:
        """Return the share of a value; one that is not counted has its part of the others."""
        first = value * self.keys_per_value
        return self.key_share(stream, (first, first + self.keys_per_value))

    def key_share(self, stream: int, keys: Keys) -> float:
        """Return the share of a range of routing keys."""
        low, high = (self._count_below(stream, key) for key in keys)
        total = self._sums[stream][1][-1] + self.counts[stream].get(OTHERS, 0.0)
        return (high - low) / total if total else 0.0

    @cached_property
    def _sums(self) -> list[tuple[list[int], list[float]]]:
        """The counted values of each stream, ascending, and the sums of the counts before each."""
        pairs = []
        for counts in self.counts:
            values = sorted(v for v in counts if v != OTHERS)
            pairs.append((values, [0.0, *accumulate(counts[v] for v in values)]))
        return pairs

    def _count_below(self, stream: int, key: int) -> float:
        """Return the tuples with smaller routing keys."""
        values, sums = self._sums[stream]
        value, part = divmod(key, self.keys_per_value)
        at = bisect_left(values, value)
        within = self.counts[stream].get(value, 0.0) * part / self.keys_per_value
        others = self.counts[stream].get(OTHERS, 0.0) * key / (self.values * self.keys_per_value)
        return sums[at] + within + others


@dataclass(frozen=True)
class ValueWork:
    """The expected work of a batch, in microseconds.

    - ``tuples``: by frequent value, the work of its new tuples on each host that they probe.
    - ``pairs``: by frequent value, the work of its pairs, which its hosts share.
    - ``rest``: the work of all other tuples, which all hosts share.
    - ``fresh``, ``held``: by frequent value, its new and its stored tuples by stream.
    - ``stored``: stored tuples of all values.
    """

    tuples: Mapping[int, float]
    pairs: Mapping[int, float]
    rest: float
    fresh: Mapping[int, Sequence[float]] = field(default_factory=dict)
    held: Mapping[int, Sequence[float]] = field(default_factory=dict)
    stored: float = 0.0

    def value_micros(self, value: int) -> float:
        """Return the work of a value on one host; 0 if it is not frequent."""
        return self.tuples.get(value, 0.0) + self.pairs.get(value, 0.0)

    def shared_micros(self, value: int, hosts: int, kept_stream: int | None) -> float:
        """Return the work of a value on each of the hosts that share it.

        Each new tuple goes to all of them, but one of ``kept_stream`` only to its own host.
        """
        once = 0.0 if kept_stream is None else TUPLE * self.fresh[value][kept_stream]
        return self.tuples[value] - once + (once + self.pairs[value]) / hosts

    def total_micros(self) -> float:
        """Return the work of all tuples if none is sent twice."""
        return self.rest + sum(self.tuples.values()) + sum(self.pairs.values())


def estimate_value_work(facts: Facts, shares: ValueShares) -> ValueWork:
    """Return the work of a batch with the rates and shares of recent batches.

    Stored tuples are taken to have the values of recent ones, as they will if these shares last. A
    value with blocks of its own may have been more frequent: at least their tuples are stored.
    """
    streams = range(len(facts.streams))
    # The weight of all batches in faded counts; the last one has 1.
    weight = (1 - EARLIER_WEIGHT**facts.batch) / (1 - EARLIER_WEIGHT)
    new = [sum(counts.values()) / weight for counts in shares.counts]
    stored, single = _count_stored_tuples(facts, shares.keys_per_value)
    tuples, pairs, each_fresh, each_held = {}, {}, {}, {}
    for value in sorted({*shares.frequent_values(), *(v for each in single for v in each)}):
        share = [shares.value_share(s, value) for s in streams]
        fresh = [n * part for n, part in zip(new, share, strict=True)]
        held = [max(stored[s] * share[s], single[s].get(value, 0)) for s in streams]
        tuples[value] = TUPLE * sum(fresh)
        pairs[value] = PAIR * sum(fresh[s] * (sum(held) - held[s]) for s in streams)
        each_fresh[value], each_held[value] = fresh, held
    rest = max(0.0, TUPLE * sum(new) - sum(tuples.values()))
    return ValueWork(tuples, pairs, rest, each_fresh, each_held, sum(stored))


def _count_stored_tuples(
    facts: Facts, keys_per_value: int
) -> tuple[list[int], list[dict[int, int]]]:
    """Return, by stream, all stored tuples, and those in blocks of one value by that value."""
    totals = [0] * len(facts.streams)
    single: list[dict[int, int]] = [{} for _ in facts.streams]
    for b in facts.blocks:
        totals[b.stream] += b.rows
        value = b.key_range[0] // keys_per_value
        if b.key_range[1] <= (value + 1) * keys_per_value:
            single[b.stream][value] = single[b.stream].get(value, 0) + b.rows
    return totals, single
