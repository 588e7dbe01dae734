"""Gu 2007, sections 3 and 4, recomputed tuple by tuple in a few lines that follow the text."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import reduce
from itertools import combinations
from operator import or_

import pytest
from braid.core.run_events import BatchCommitted
from braid.papers.diffusion.aligned import Aligned
from braid.papers.diffusion.routing_table import greedy_cover
from braid.papers.diffusion.run_events import MasterSwitched
from braid.papers.diffusion.segment_length import atr_overhead
from braid.simulation.simulator import simulate

pytestmark = pytest.mark.unit
RATES, WINDOWS = (5, 20, 10), (10, 20, 40)


def copies_of_a_tuple(t: int, window: int, master_window: int, length: int) -> int:
    """Return the segments S_M[k T, (k + 1) T] that a slave tuple of time t goes to, less one.

    Section 3: S_i[t - W_i, t + T + W_M] goes where S_M[t, t + T] does.
    """
    starts = range(-200 * length, 200 * length, length)
    return sum(k - window <= t < k + length + master_window for k in starts) - 1


def extra_tuples(rates: tuple[int, ...], windows: tuple[int, ...], master: int, length: int) -> int:
    """Return the extra tuples of one segment's time, with r_i tuples at each moment."""
    return sum(
        rates[i] * copies_of_a_tuple(t, windows[i], windows[master], length)
        for i in range(len(rates))
        if i != master
        for t in range(length)
    )


@pytest.mark.parametrize(("master", "costs"), [(0, 220), (1, 150), (2, 290)])
def test_equation_2_counts_the_copies_tuple_by_tuple(master: int, costs: int) -> None:
    """Rates 5, 20, 10 and windows 10, 20, 40: what W_M costs decides against the slow stream."""
    assert extra_tuples(RATES, WINDOWS, master, 5) / 5 == costs
    assert atr_overhead(RATES, WINDOWS, master, 5) == pytest.approx(costs)


def test_at_equal_rates_the_shortest_window_is_the_best_master() -> None:
    """Each slave has W_M once and its own window: the sum of both is least for the least W_M."""
    costs = [extra_tuples((7, 7, 7), WINDOWS, m, 5) for m in range(3)]
    assert costs[0] < costs[1] < costs[2]
    closed = [atr_overhead((7, 7, 7), WINDOWS, m, 5) for m in range(3)]
    assert closed == pytest.approx([c / 5 for c in costs])


def test_the_master_that_is_elected_has_the_fewest_copies() -> None:
    """ATR begins with stream 2, and changes to the stream whose slaves are copied least."""
    cheapest = min(range(3), key=lambda m: extra_tuples(RATES, WINDOWS, m, 5))
    atr = Aligned(64, 5, master=2, sample_batches=10**6)
    run = simulate(atr, [RATES] * 60, windows=WINDOWS)
    switched = [e for e in run if isinstance(e, MasterSwitched)]
    assert [(e.previous_master, e.master) for e in switched] == [(2, cheapest)]


@pytest.mark.parametrize("length", [2, 5])
def test_a_run_sends_as_many_copies_as_there_are_segments_in_reach(length: int) -> None:
    """The policy's own routes, in a steady state: what all hosts receive, less what arrived."""
    windows, batches = (6, 6), 120
    run = simulate(Aligned(40, length, False, 0), [(3, 7)] * batches, windows=windows)
    late = [e for e in run if isinstance(e, BatchCommitted) and 60 <= e.batch < 60 + 10 * length]
    sent = sum(e.total_host_metrics.received_tuples for e in late) - 10 * len(late)
    expected = 10 * extra_tuples((3, 7), windows, 0, length)
    assert sent == pytest.approx(expected, rel=0.25)


def cover_by_the_text(sets: dict[int, int], weights: list[float], wanted: int) -> list[int]:
    """Return the cover of section 4.1: repeatedly the subset with the least w_j / |A_j|."""
    chosen = []
    while wanted:
        left = {j: (mask & wanted).bit_count() for j, mask in sets.items() if mask & wanted}
        chosen.append(min(left, key=lambda j: (weights[j] / left[j], j)))
        wanted &= ~sets[chosen[-1]]
    return chosen


@pytest.mark.parametrize("seed", range(30))
def test_the_cover_is_the_greedy_one_of_section_4_1(seed: int) -> None:
    draw = random.Random(seed)
    hosts, blocks = draw.randint(2, 7), draw.randint(1, 9)
    sets = {j: draw.getrandbits(blocks) for j in range(hosts)}
    wanted = _union(sets.values())
    weights = [draw.choice([0.5, 1.0, 2.0, 3.5]) for _ in range(hosts)]
    found, reported = greedy_cover(sets, weights, wanted), cover_by_the_text(sets, weights, wanted)
    assert sum(weights[j] for j in found) == pytest.approx(sum(weights[j] for j in reported))
    covers = (c for n in range(hosts + 1) for c in combinations(sets, n))
    best = min(
        sum(weights[j] for j in c) for c in covers if wanted == wanted & _union(sets[j] for j in c)
    )
    longest = max((mask & wanted).bit_count() for mask in sets.values())
    bound = sum(1 / d for d in range(1, longest + 1))
    assert sum(weights[j] for j in found) <= bound * best + 1e-9


def _union(masks: Iterable[int]) -> int:
    return reduce(or_, masks, 0)
