"""The chain of one stream's state slices with the least state, and the one with the least work.

All functions are pure and all figures are modelled. A chain consists of the ages at which state is
cut, w_1 < .. < w_N, in any one unit; w_0 = 0 is implied. Node i of the merge graph (Fig. 7.3)
stands for w_i. Its edge (i, j) is one slice from w_i to w_j, which does the work of the slices i +
1 to j.

Every stream is cut by itself: its tuples are stored, and those of all others probe. With two
streams and the same cuts for both, the sum over both is the book's formula if nothing filters. If
selections are pushed into the chain, a slice is charged only for the tuples that reach it; the
book's purge term (Eq. 5.1) still charges for all. Section 7.2 charges C_sys for all the slices that
are merged, though one of them is left: here the merged slice has its own.

Source: Wang 2008, sections 7.1, 7.2 and 7.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from braid.core.facts import Facts

Chain = tuple[float, ...]
"""The ends of the slices, youngest first."""
Age = TypeVar("Age", bound=float)


@dataclass(frozen=True)
class ChainStatistics:
    """The statistics that the cost of one stream's chain depends on.

    Fields of tuple type have one number for each distinct window, shortest first.

    Parameters
    ----------
    rates
        lambda of the stored stream and of all that probes it, in tuples per unit of time.
    join_selectivity
        S_join: the fraction of compared pairs that match.
    surviving_fractions
        For the stored stream and for what probes it: the fraction of tuples that still serve a
        query in the slice that ends with the window. Never rising; 1 if nothing filters. The two
        are assumed to be independent.
    slice_overhead
        C_sys: the cost of one more slice for each tuple that probes it, in comparisons.
    queries
        Number of queries with the window.
    lookup_cost
        Whether a router looks a result up once in a table of windows, a router of ours. Otherwise
        it compares the result with every window that ends inside its slice, as section 7.2 prints.

    Raises ValueError for numbers out of range.
    """

    rates: tuple[float, float]
    join_selectivity: float
    surviving_fractions: tuple[tuple[float, ...], tuple[float, ...]]
    slice_overhead: float
    queries: tuple[int, ...]
    lookup_cost: bool = False

    def __post_init__(self) -> None:
        if min(self.rates) < 0 or not 0 <= self.join_selectivity <= 1 or self.slice_overhead < 0:
            raise ValueError(
                f"rates are {self.rates}, join {self.join_selectivity}, overhead "
                f"{self.slice_overhead}; none is below 0, and join is at most 1"
            )
        if any(len(fractions) != len(self.queries) for fractions in self.surviving_fractions):
            counts = [len(fractions) for fractions in self.surviving_fractions]
            raise ValueError(
                f"surviving has {counts} fractions for {len(self.queries)} windows; each stream "
                "needs one for each"
            )
        if any(
            not 1 >= a >= b >= 0
            for fractions in self.surviving_fractions
            for a, b in pairwise((1.0, *fractions))
        ):
            raise ValueError(
                f"surviving_fractions is {self.surviving_fractions}; fractions are from 0 to 1 and "
                "never rise with the window"
            )


def memory_chain(windows: Iterable[Age]) -> tuple[Age, ...]:
    """Return Mem-Opt (Fig. 7.1): a cut at every distinct window.

    Raises ValueError if there is none, or one is not above 0.
    """
    chain = tuple(sorted(set(windows)))
    if not chain or chain[0] <= 0:
        raise ValueError(f"windows are {chain}; there must be one or more, and all above 0")
    return chain


def edge_memory(i: int, j: int, windows: Chain, statistics: ChainStatistics) -> float:
    """Return the tuples that one slice from w_i to w_j holds.

    No selection is inside it, so a tuple that serves a query at its start stays to its end (Fig.
    7.7, section 7.4.2).
    """
    return (
        statistics.rates[0]
        * statistics.surviving_fractions[0][i]
        * (windows[j - 1] - (windows[i - 1] if i else 0))
    )


def edge_cost(i: int, j: int, windows: Chain, statistics: ChainStatistics) -> float:
    """Return l_ij (section 7.2): comparisons per unit of time of one slice from w_i to w_j.

    A probing tuple compares once to purge and once with each stored tuple, and has the overhead
    C_sys. Each matching pair is compared once, to route it, with the window of every query that
    ends inside the slice. Union operators and the selections cost the same in every chain and are
    left out.
    """
    probing = statistics.rates[1] * statistics.surviving_fractions[1][i]
    pairs = edge_memory(i, j, windows, statistics)
    inside = sum(statistics.queries[i : j - 1])
    routing = statistics.join_selectivity * (min(1, inside) if statistics.lookup_cost else inside)
    return probing * (1 + statistics.slice_overhead + pairs * (1 + routing))


def merge_graph(windows: Chain, statistics: ChainStatistics) -> list[tuple[int, int, float]]:
    """Return the edges (i, j, l_ij) of Fig. 7.3: N (N + 1) / 2 of them."""
    n = len(windows)
    return [
        (i, j, edge_cost(i, j, windows, statistics)) for i in range(n) for j in range(i + 1, n + 1)
    ]


def cpu_chain(windows: tuple[Age, ...], statistics: ChainStatistics) -> tuple[Age, ...]:
    """Return CPU-Opt (section 7.2): the shortest path from w_0 to w_N in the merge graph.

    Of equal ones, the one with the shortest end is taken.
    """
    best: list[tuple[float, tuple[Age, ...]]] = [(0.0, ())]
    for j in range(1, len(windows) + 1):
        paths = (
            (cost + edge_cost(i, j, windows, statistics), -i, chain)
            for i, (cost, chain) in enumerate(best)
        )
        cost, _, chain = min(paths)
        best.append((cost, (*chain, windows[j - 1])))
    return best[-1][1]


def chain_cost(boundaries: Chain, windows: Chain, statistics: ChainStatistics) -> float:
    """Return the comparisons per unit of time of a chain.

    Raises ValueError for cuts that are not windows, or do not reach the last one.
    """
    return sum(
        edge_cost(i, j, windows, statistics) for i, j in _list_path_edges(boundaries, windows)
    )


def chain_memory(boundaries: Chain, windows: Chain, statistics: ChainStatistics) -> float:
    """Return the tuples that a chain holds. Raises ValueError as ``chain_cost`` does."""
    return sum(
        edge_memory(i, j, windows, statistics) for i, j in _list_path_edges(boundaries, windows)
    )


def choose_chain(
    windows: tuple[Age, ...], statistics: ChainStatistics, extra: float = 0.1
) -> tuple[Age, ...]:
    """Return CPU-Opt if its state is at most (1 + extra) times that of Mem-Opt, else Mem-Opt."""
    chain = cpu_chain(windows, statistics)
    allowed = (1 + extra) * chain_memory(windows, windows, statistics)
    return chain if chain_memory(chain, windows, statistics) <= allowed else windows


def _list_path_edges(boundaries: Sequence[float], windows: Chain) -> list[tuple[int, int]]:
    """Return a path through the merge graph, edge by edge."""
    nodes = [0, *(windows.index(b) + 1 for b in boundaries if b in windows)]
    if (
        len(nodes) <= len(boundaries)
        or nodes[-1] != len(windows)
        or any(a >= b for a, b in pairwise(nodes))
    ):
        raise ValueError(
            f"a chain cut at {tuple(boundaries)} does not rise through some of the windows "
            f"{windows} to the last"
        )
    return list(pairwise(nodes))


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
    matches = sum(matched for (_, s), (_, matched) in facts.match_counts.items() if s == stream)
    if not all(rates) or not pairs:
        return None
    probing = sum(rate for s, rate in enumerate(rates) if s != stream)
    ends = tuple(sum(q.windows[stream] == w for q in facts.queries) for w in windows[stream])
    fractions = (
        surviving_fractions(facts, stream, windows[stream]),
        _estimate_probing_fractions(facts, stream, windows, rates),
    )
    return ChainStatistics(
        (rates[stream], probing), min(1.0, matches / pairs), fractions, overhead, ends
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
