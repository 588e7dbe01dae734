"""Wang 2008, recomputed in a few lines that follow the text: chains, their cost, and the ring."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, product

import pytest
from braid.core.query import Query
from braid.core.run_events import BatchCommitted
from braid.papers.psp.ring import Ring
from braid.papers.slices.chain import Chain
from braid.papers.slices.chain_optimizer import ChainStatistics, cpu_chain
from braid.simulation.simulator import simulate
from braid_lab.common.tuple_models import Tuple
from braid_lab.psp.cost import Workload, optimal_length
from braid_lab.slices.reference import ReferenceChain

pytestmark = pytest.mark.unit
Pair = tuple[int, int]


def chain_of_slices(ends: list[int], tuples: list[tuple[int, str]]) -> list[Counter[Pair]]:
    """Return the results of each slice by Fig. 5.2 and 5.4, of streams a and b, by times.

    A new tuple probes slice by slice, and purges first what has reached a slice's end.
    """
    states: list[dict[str, list[int]]] = [{"a": [], "b": []} for _ in ends]
    found: list[Counter[Pair]] = [Counter() for _ in ends]
    for t, side in tuples:
        other, fallen = "b" if side == "a" else "a", []
        for k, end in enumerate(ends):
            states[k][other] += fallen
            fallen = [u for u in states[k][other] if t - u >= end]
            states[k][other] = [u for u in states[k][other] if t - u < end]
            found[k].update((t, u) if side == "a" else (u, t) for u in states[k][other])
        states[0][side].append(t)
    return found


@pytest.mark.parametrize("seed", range(10))
def test_theorem_2_a_chain_gives_each_query_its_own_join(seed: int) -> None:
    """The first slices together are the join with the window at which they end."""
    draw = random.Random(seed)
    ends = sorted(draw.sample(range(2, 30), 3))
    tuples = [(t, draw.choice("ab")) for t in range(60)]
    found = chain_of_slices(ends, tuples)
    for k, window in enumerate(ends):
        joined = Counter(
            (t, u) if side == "a" else (u, t)
            for (t, side), (u, other) in product(tuples, tuples)
            if side != other and 0 < t - u < window
        )
        assert sum(found[: k + 1], Counter()) == joined
    chain = ReferenceChain(ends)
    for t, side in tuples:
        chain.process_tuple(Tuple(t, "ab".index(side), t))
        chain.run_until_empty()
    for k, results in enumerate(chain.results_by_query):
        told = Counter(tuple(one.time for one in group) for group in results)
        assert told == sum(found[: k + 1], Counter())


def test_theorem_3_the_policy_s_chain_stores_each_tuple_once() -> None:
    """However many queries: 10 tuples for each second of the longest window, and of one batch."""
    asked = tuple(Query.parse(f"q{w}", ("r", "s"), f"{w} seconds") for w in (4, 9, 20))
    run = simulate(Chain(), [(5, 5)] * 60, windows=(20, 20), queries=asked)
    stored = [e.total_host_metrics.stored_tuples for e in run if isinstance(e, BatchCommitted)]
    assert stored == [10 * min(second, 21) for second in range(1, 61)]


def cost_by_the_text(
    cuts: tuple[int, ...], windows: list[int], rates: tuple[float, float], join: float, sys: float
) -> float:
    """Return section 7.2's work of a chain without selections, for one stream's state.

    A probing tuple of each slice: one comparison to purge, one for each tuple in the state, C_sys,
    and for each result one for every window that ends inside the slice.
    """
    total, before = 0.0, 0
    for end in cuts:
        state = rates[0] * (end - before)
        inside = sum(before < w < end for w in windows)
        total += rates[1] * (1 + sys + state + state * join * inside)
        before = end
    return total


@pytest.mark.parametrize("seed", range(40))
def test_cpu_opt_is_the_cheapest_of_all_cuts(seed: int) -> None:
    """Section 7.2: Dijkstra's path costs what the best of the 2^(N-1) chains costs."""
    draw = random.Random(seed)
    windows = sorted(draw.sample(range(1, 60), draw.randint(1, 7)))
    rates, join, sys = (
        (draw.uniform(0.1, 5), draw.uniform(0.1, 5)),
        draw.random(),
        40 * draw.random(),
    )
    ones = (1.0,) * len(windows)
    statistics = ChainStatistics(rates, join, (ones, ones), sys, (1,) * len(windows))
    chains = [
        (*inner, windows[-1])
        for n in range(len(windows))
        for inner in combinations(windows[:-1], n)
    ]
    costs = {c: cost_by_the_text(c, windows, rates, join, sys) for c in chains}
    assert costs[cpu_chain(tuple(windows), statistics)] == pytest.approx(min(costs.values()))


def test_theorem_9_is_near_the_least_latency_of_all_lengths() -> None:
    """Eq. 13.5 by hand for two equal streams: a tuple probes once, is sent once, and goes round."""
    rate, window, pairs_us, send, hop = 50.0, 20.0, 2e-6, 1e-4, 2e-3
    work = pairs_us * rate * window

    def latency(n: int) -> float:
        return (n - 1) / 2 * hop + max(work / n + send, 2 * n * hop)

    for more in (1.0, 20.0, 400.0):
        work = more * pairs_us * rate * window
        load = Workload((rate,) * 2, (window,) * 2, (0.01,) * 2, more * pairs_us, send, hop)
        best = min(range(1, 200), key=latency)
        assert abs(max(1.0, optimal_length(load)) - best) <= 1.5


@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_a_ring_stores_each_tuple_once_and_fills_before_it_is_full(nodes: int) -> None:
    """Lemma 7: node k holds ages k W / N to (k + 1) W / N; while young, the far nodes are empty."""
    run = simulate(Ring(nodes), [(10, 10)] * 40, windows=(20, 20))
    stored = {
        e.batch: [h.stored_tuples for h in e.host_metrics]
        for e in run
        if isinstance(e, BatchCommitted)
    }
    assert sum(stored[9]) == 10 * 2 * 10, "ten of twenty seconds have come"
    assert abs(sum(stored[39]) - 20 * 2 * 10) <= 3 * 2 * 10, "up to three batches expire together"
