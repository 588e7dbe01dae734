"""The cost model of the PSP ring: work, output rate, latency and the best length.

It also has the cost of replication instead. All figures are modelled; times are in seconds, rates
in tuples per second.

Source: Wang 2008, chapter 13 (Eq. 13.1 to 13.5, Theorem 9, section 13.3), Eq. 14.1 and section
15.1.

Where the book contradicts itself, this module takes the reading under which the later equations
hold:

- Eq. 13.1 charges T_j for each *result* of a probing step; a nested loop, which the text assumes,
  compares *pairs*. Only with pairs does Eq. 13.2 follow (with results its second term would be T_s
  N / (lambda W S T_j)), so pairs are charged here.
- Eq. 13.3 gives the ring 1 / L_PSP tuples per second, Eq. 13.4 N times as many. N busy nodes share
  L_PSP, so 13.4 is taken as the output of a ring, and 13.3 as the rate of one node that does all
  the work of a ring.
- Section 12.2.2 has M - 1 rounds of intermediate results, section 13.2.2 has M. Eq. 13.5 is used as
  printed, with M.
- Theorem 9 sets the two parts of the latency equal, which for N_2 is not where the sum is least:
  that is at sqrt(2 L_C / T_n), about half a node lower. ``optimal_length`` is as printed.
- Section 16.2 expects longer rings for smaller selectivities, and calls that consistent with
  chapter 13. By Theorem 9 the length grows with L_C, so with the selectivity.
- Section 13.3 asks for a length for each stream, but its heuristic hardly leaves equal lengths: see
  ``initial_lengths``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import sqrt
from operator import mul


@dataclass(frozen=True)
class Workload:
    """A windowed join of M streams, as the cost model sees it (Table 13.1).

    Fields of tuple type have one number for each stream.

    Parameters
    ----------
    rates, windows
        lambda_i in tuples per second and W_i in seconds.
    selectivities
        S_i: the fraction of the tuples in the window of stream i that match a probing tuple.
    join, send, hop
        Seconds to join one pair (T_j), to send and receive one tuple (T_s), and for one hop of the
        network (T_n).
    insert, purge
        Seconds to insert a tuple in a state (T_i) and to purge it (T_p).

    Raises ValueError unless there are two streams or more, with one number for each, and all are
    above 0 (insert and purge may be 0, and selectivities at most 1).
    """

    rates: tuple[float, ...]
    windows: tuple[float, ...]
    selectivities: tuple[float, ...]
    join: float
    send: float
    hop: float
    insert: float = 0.0
    purge: float = 0.0

    def __post_init__(self) -> None:
        counts = len(self.rates), len(self.windows), len(self.selectivities)
        if len(set(counts)) > 1 or counts[0] < 2:
            raise ValueError(
                f"rates, windows, selectivities have {counts} entries; each needs as many, for 2 "
                "streams or more"
            )
        numbers = (*self.rates, *self.windows, *self.selectivities, self.join, self.send, self.hop)
        if min(numbers) <= 0 or min(self.insert, self.purge) < 0 or max(self.selectivities) > 1:
            raise ValueError(
                f"{self}: all numbers must be above 0 (insert and purge 0 or more), and "
                "selectivities at most 1"
            )

    @property
    def stream_count(self) -> int:
        """M, the number of streams."""
        return len(self.rates)

    @property
    def window_sizes(self) -> tuple[float, ...]:
        """lambda_i W_i: the tuples in each window."""
        return tuple(rate * window for rate, window in zip(self.rates, self.windows, strict=True))

    @property
    def growth_factors(self) -> tuple[float, ...]:
        """lambda_i W_i S_i: the results of one (intermediate) tuple that probes stream i."""
        return tuple(n * s for n, s in zip(self.window_sizes, self.selectivities, strict=True))

    def best_join_order(self, stream: int) -> tuple[int, ...]:
        """Return the join order of a tuple of a stream with the fewest intermediate results.

        It has the other streams in increasing order of lambda_i W_i S_i.
        """
        factors = self.growth_factors
        return tuple(
            sorted((s for s in range(self.stream_count) if s != stream), key=lambda s: factors[s])
        )

    def mean_cost(self, cost: Callable[[int], float]) -> float:
        """Return the mean over arriving tuples of a cost that depends on their stream."""
        return sum(rate * cost(stream) for stream, rate in enumerate(self.rates)) / sum(self.rates)


def probe_inputs(load: Workload, stream: int) -> list[float]:
    """Return the (intermediate) tuples that enter each probing step for one tuple of a stream.

    The last entry is the number of results.
    """
    factors = load.growth_factors
    return list(accumulate((factors[s] for s in load.best_join_order(stream)), mul, initial=1.0))


def _list_probing_rounds(load: Workload, stream: int) -> list[tuple[int, float, float]]:
    """Return, by probing step: the stream probed, the tuples that enter, the pairs compared."""
    steps = zip(load.best_join_order(stream), probe_inputs(load, stream)[:-1], strict=True)
    return [(probed, n, n * load.window_sizes[probed]) for probed, n in steps]


def probe_work(load: Workload) -> float:
    """Return T_j times the pairs that a tuple compares, in seconds.

    This is L_C without insertion and purge, as Eq. 13.5 uses it.
    """
    return load.join * load.mean_cost(
        lambda stream: sum(pairs for _, _, pairs in _list_probing_rounds(load, stream))
    )


def centralized_work(load: Workload) -> float:
    """Return L_C (Eq. 13.1): seconds of work for a tuple if one node does it all."""
    return load.insert + load.purge + probe_work(load)


def ring_work(load: Workload, nodes: int) -> float:
    """Return L_PSP (Eq. 13.1): seconds of work for a tuple in a ring of N nodes.

    The tuple and all intermediate results go round once.
    """
    return centralized_work(load) + nodes * send_seconds(load)


def send_seconds(load: Workload) -> float:
    """Return the seconds for which each node of a ring receives and sends for one tuple.

    This is T_s (1 + intermediate results).
    """
    return load.send * load.mean_cost(
        lambda stream: sum(n for _, n, _ in _list_probing_rounds(load, stream))
    )


def service_rate(load: Workload, nodes: int) -> float:
    """Return mu (Eq. 13.3): tuples per second if one node did all the work of the ring."""
    return 1 / ring_work(load, nodes)


def output_rate(load: Workload, nodes: int) -> float:
    """Return O_PSP (Eq. 13.4): results per second of N busy nodes.

    It grows with N, up to the limit set by sending.
    """
    return (
        nodes
        * service_rate(load, nodes)
        * load.mean_cost(lambda stream: probe_inputs(load, stream)[-1])
    )


def mean_latency_seconds(load: Workload, lengths: Sequence[int]) -> float:
    """Return tau (Eq. 13.5): mean seconds from a tuple to its results.

    ``lengths`` are the lengths N_i of each stream's ring. With equal lengths this is the book's
    equation. With unequal ones each probing step is shared by the nodes of the ring that it visits,
    and a round takes one hop for each node of that ring. Raises ValueError unless there is one
    length per stream.
    """
    if len(lengths) != load.stream_count or min(lengths) < 1:
        raise ValueError(
            f"lengths are {tuple(lengths)}; there must be one for each of the {load.stream_count} "
            "streams, each 1 or more"
        )

    def probing(stream: int) -> float:
        return sum(
            load.join * pairs / lengths[probed]
            for probed, _, pairs in _list_probing_rounds(load, stream)
        )

    travel = (sum(lengths) / load.stream_count - 1) / 2 * load.hop
    return travel + max(load.mean_cost(probing) + send_seconds(load), sum(lengths) * load.hop)


def find_equal_part_lengths(load: Workload) -> tuple[float, float]:
    """Return N_1 and N_2 of Theorem 9: the ring lengths at which its parts are equal, as reals."""
    work, sending, rounds = probe_work(load), send_seconds(load), load.stream_count * load.hop
    first = (sending + sqrt(sending**2 + 4 * rounds * work)) / (2 * rounds)
    return first, (1 + sqrt(1 + 8 * work / load.hop)) / 2


def optimal_length(load: Workload) -> float:
    """Return N = min(N_1, N_2) of Theorem 9: the ring length with the least latency, as a real."""
    return min(find_equal_part_lengths(load))


def initial_lengths(load: Workload, most: int) -> tuple[int, ...]:
    """Return a ring length for each stream, from 1 to ``most``, by the heuristic of section 13.3.

    Streams are taken in increasing order of lambda_i W_i S_i. Each gets the length with the least
    latency, if the remaining streams have the same one. So the first gets the best equal length,
    and the others seldom gain from a different one.
    """
    lengths: dict[int, int] = {}
    for stream in sorted(range(load.stream_count), key=lambda s: load.growth_factors[s]):
        trials = {
            n: [lengths.get(s, n) for s in range(load.stream_count)] for n in range(1, most + 1)
        }
        lengths[stream] = min(trials, key=lambda n: mean_latency_seconds(load, trials[n]))
    return tuple(lengths[s] for s in range(load.stream_count))


def lay_out_rings(lengths: Sequence[int], hosts: int) -> tuple[tuple[int, ...], ...]:
    """Return rings of these lengths, laid over the hosts one after another.

    Each host then holds slices of about the same number of streams. Raises ValueError if a ring is
    longer than the number of hosts.
    """
    if not all(1 <= n <= hosts for n in lengths):
        raise ValueError(
            f"lengths are {tuple(lengths)}; each must be from 1 to the number of hosts, {hosts}"
        )
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    return tuple(
        tuple((start + k) % hosts for k in range(n))
        for start, n in zip(starts, lengths, strict=True)
    )


def relocated_shares(nodes: int, added: int) -> tuple[Fraction, ...]:
    """Return Delta S_i (Eq. 14.1): what each of N nodes hands to the next old node for M new nodes.

    Nodes are ordered from the head. Values are exact, in units of a new slice, W / (N + M).
    """
    return tuple(Fraction(added * i, nodes) % 1 for i in range(1, nodes + 1))


def memory_psp(load: Workload) -> float:
    """Return the tuples held by a PSP ring of any length: each window once (section 15.1)."""
    return sum(load.window_sizes)


def memory_ctr(load: Workload, copies: int) -> float:
    """Return the tuples held by CTR with L copies of each (section 15.1)."""
    return copies * sum(load.window_sizes)


def memory_atr(load: Workload, nodes: int, segment: float, master: int = 0) -> float:
    """Return MEM_ATR (section 15.1): tuples held by ATR on N nodes.

    Each node has one segment of T seconds, of T + 2 W for slave streams.
    """
    return nodes * sum(
        rate * span
        for rate, span in zip(load.rates, _compute_state_spans(load, segment, master), strict=True)
    )


def atr_duplicates_per_tuple(load: Workload, segment: float, master: int = 0) -> float:
    """Return the duplicated tuples per tuple of ATR (section 15.1).

    For equal streams this is 2 W / T (M - 1) / M, for any number of nodes.
    """
    return memory_atr(load, 1, segment, master) / (segment * sum(load.rates)) - 1


def _compute_state_spans(load: Workload, segment: float, master: int) -> list[float]:
    return [
        segment if s == master else segment + 2 * window for s, window in enumerate(load.windows)
    ]
