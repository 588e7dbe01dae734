"""Statistics of a shared run's streams, which optimise chains and divide state among hosts.

Source: Wang 2008, sections 7.2, 7.4 and 21.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from braid.core.facts import Facts
from braid.papers.slices.chain_optimizer import ChainStatistics

Windows = Sequence[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Tuples received and latest event times, by stream, at a batch."""

    batch: int
    received_tuples: tuple[int, ...]
    latest_event_times: tuple[int | None, ...]

    @staticmethod
    def from_facts(facts: Facts) -> StreamPosition:
        """Return the position from a batch's facts."""
        return StreamPosition(facts.batch, facts.received, facts.clocks)


def measure_chain_statistics(
    facts: Facts, before: StreamPosition | None, stream: int, windows: Windows, overhead: float
) -> ChainStatistics | None:
    """Return the statistics of one stream's chain, by microsecond; None if too little is known.

    Rates are those since ``before``; the join selectivity is that of all steps to the stream.
    """
    rates = [_measure_arrival_rate(facts, before, s) for s in range(len(facts.streams))]
    pairs = sum(considered for (_, s), (considered, _) in facts.match_counts.items() if s == stream)
    found = sum(matched for (_, s), (_, matched) in facts.match_counts.items() if s == stream)
    if not all(rates) or not pairs:
        return None
    probing = sum(rate for s, rate in enumerate(rates) if s != stream)
    ends = tuple(sum(q.windows[stream] == w for q in facts.queries) for w in windows[stream])
    fractions = (
        surviving_fractions(facts, stream, windows[stream]),
        _estimate_probing_fractions(facts, stream, windows, rates),
    )
    return ChainStatistics(
        (rates[stream], probing), min(1.0, found / pairs), fractions, overhead, ends
    )


def surviving_fractions(facts: Facts, stream: int, windows: Sequence[int]) -> tuple[float, ...]:
    """Return, by distinct window, the fraction of the stream's tuples that still serve a query.

    Such a query has that window or a longer one.
    """
    counts = facts.key_counts[stream] if facts.key_counts else {}
    total = sum(counts.values())
    return tuple(
        sum(n for key, n in counts.items() if key >= k) / total if total else 1.0
        for k in range(len(windows))
    )


def choose_host_ages(
    facts: Facts, stream: int, windows: Sequence[int], hosts: int
) -> tuple[int, ...]:
    """Return the ages at which each host but the last hands tuples on; microseconds, rising.

    Each host then holds about the same number of tuples (21.3).
    """
    widths = [b - a for a, b in zip((0, *windows), windows, strict=False)]
    held = [
        fraction * width
        for fraction, width in zip(surviving_fractions(facts, stream, windows), widths, strict=True)
    ]
    sums = np.concatenate([[0.0], np.cumsum(held)])
    ages = np.interp(np.arange(1, hosts) / hosts * sums[-1], sums, (0, *windows))
    return tuple(int(age) for age in ages)


def _measure_arrival_rate(facts: Facts, before: StreamPosition | None, stream: int) -> float:
    now = facts.clocks[stream]
    then = before.latest_event_times[stream] if before else None
    if before is None or now is None or then is None or now <= then:
        return 0.0
    return (facts.received[stream] - before.received_tuples[stream]) / (now - then)


def _estimate_probing_fractions(
    facts: Facts, stream: int, windows: Windows, rates: Sequence[float]
) -> tuple[float, ...]:
    """Return the fraction of probing tuples that serve a query with this window or a longer one.

    A tuple is known by its rank on its own stream. If queries have another order there, all tuples
    count as serving.
    """
    order = [[windows[s].index(q.windows[s]) for q in facts.queries] for s in range(len(windows))]
    if any(ranks != order[stream] for ranks in order):
        return (1.0,) * len(windows[stream])
    shares = {
        s: surviving_fractions(facts, s, windows[s]) for s in range(len(windows)) if s != stream
    }
    total = sum(rates[s] for s in shares)
    return tuple(
        sum(rates[s] * share[k] for s, share in shares.items()) / total
        for k in range(len(windows[stream]))
    )
