"""Gedik 2007, Algorithms 1 to 5 over tuples, in a few lines that follow the text."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest
from braid import Centralized, Shed
from braid.core.facts import Facts
from braid.core.plan import Block
from braid.core.shedding_plan import ItemYield, SheddingOutcome
from braid.papers.shedding.productivity_profile import ProductivityProfile
from braid.papers.shedding.run_events import SheddingPlanned

pytestmark = pytest.mark.unit
BASIC = 6


def probe_and_learn(seed: int, density: list[float], tuples: int = 400) -> list[list[int]]:
    """Return by basic window the pairs that full processing compares, and their matches.

    Algorithm 3, lines 2 to 5: every tuple of the sample meets all 50 tuples of each basic window.
    """
    draw = random.Random(seed)
    counts = [[0, 0] for _ in density]
    for _ in range(tuples):
        for j, chance in enumerate(density):
            counts[j][0] += 50
            counts[j][1] += sum(draw.random() < chance for _ in range(50))
    return counts


def outcome(counts: list[list[int]], stream: int = 0) -> SheddingOutcome:
    return SheddingOutcome(
        tuple(
            ItemYield(stream, 1 - stream, j, (pairs,), (found,), (found,), 0.0)
            for j, (pairs, found) in enumerate(counts)
        )
    )


@pytest.mark.parametrize("seed", range(5))
def test_algorithm_2_orders_basic_windows_by_matches_over_pairs(seed: int) -> None:
    """Line 5: o_ij is the matches over the pairs that were considered; line 6: s_i sorts by it."""
    draw = random.Random(100 + seed)
    density = draw.sample([0.001, 0.004, 0.01, 0.02, 0.04, 0.08], BASIC)
    counts = probe_and_learn(seed, density)
    by_text = {j: found / pairs for j, (pairs, found) in enumerate(counts)}
    profile = ProductivityProfile().update(outcome(counts), ())
    learned = profile.matches_per_pair([(0, 1, j) for j in range(BASIC)])
    for j in range(BASIC):
        assert learned[0, 1, j] == pytest.approx(by_text[j], rel=0.02, abs=1e-4)
    order = sorted(by_text, key=lambda j: -by_text[j])
    assert sorted(range(BASIC), key=lambda j: -learned[0, 1, j]) == order


def facts(rows: tuple[int, ...], rates: tuple[int, int] = (100, 100)) -> Facts:
    """Return the tenth second of two windows of 5 s, whose basic windows hold ``rows`` tuples."""
    blocks = tuple(
        Block(2 * t + s, s, (0, 1), t, (0,), n, n, (t * 1_000_000, t * 1_000_000 + 999_999))
        for t, n in enumerate(rows)
        for s in (0, 1)
    )
    came = (sum(rows),) * 2
    latest = (len(rows) * 1_000_000,) * 2
    return Facts(len(rows), ("r", "s"), blocks, 99, came, came, rates, (5_000_000,) * 2, latest)


def planned(shed: Shed, given: Facts, last: SheddingOutcome | None = None) -> SheddingPlanned:
    plan, _ = shed.plan_shedding(
        given, Centralized().plan_batch(given, None), shed.initial_state(2), last
    )
    event = plan.events[-1]
    assert isinstance(event, SheddingPlanned)
    return event


def test_algorithm_3_takes_basic_windows_by_rank_until_r_of_the_window_is_used() -> None:
    """Lines 7 to 14: whole ones, then a fraction of the next; the sample aside."""
    r, rows, floor = 0.45, (100,) * 5, 1e-4
    counts = [[10_000, n] for n in (900, 100, 1600, 400, 2500)]
    both = SheddingOutcome((*outcome(counts).yields, *outcome(counts, 1).yields))
    shed = Shed(fraction=r, method="time", sample=floor, basic_window="1 second")
    event = planned(shed, facts(rows), both)
    for stream in (0, 1):
        mine = [i for i in event.items if i.stream == stream]
        left = r * sum(i.pairs for i in mine)
        for item in sorted(mine, key=lambda i: -counts[i.basic_window][1]):
            share = min(1.0, max(0.0, left) / item.pairs)
            left -= share * item.pairs
            assert item.shares[0] == pytest.approx(share, abs=0.002), item


@pytest.mark.parametrize(("r", "better"), list(product((0.1, 0.3, 0.8), (0, 1))))
def test_algorithm_4_gives_the_better_direction_all_it_can_use(r: float, better: int) -> None:
    """Lines 5 to 7 with the constraint r (v1 + v2) = r1 v1 + r2 v2, v the pairs of a direction."""
    o = {better: 0.08, 1 - better: 0.01}
    counts = {s: [[10_000, round(10_000 * o[s])] for _ in range(BASIC)] for s in (0, 1)}
    both = SheddingOutcome(tuple(y for s in (0, 1) for y in outcome(counts[s], s).yields))
    shed = Shed(fraction=r, method="direction", sample=1e-4, basic_window="1 second")
    event = planned(shed, facts((100,) * 5), both)
    pairs = {s: sum(i.pairs for i in event.items if i.stream == s) for s in (0, 1)}
    used = {s: sum(i.pairs * i.shares[0] for i in event.items if i.stream == s) for s in (0, 1)}
    first = min(1.0, r * (pairs[0] + pairs[1]) / pairs[better])
    rest = (r * (pairs[0] + pairs[1]) - first * pairs[better]) / pairs[1 - better]
    assert used[better] / pairs[better] == pytest.approx(first, abs=0.002)
    assert used[1 - better] / pairs[1 - better] == pytest.approx(rest, abs=0.002)


def test_a_window_that_is_not_full_yet_counts_what_it_holds() -> None:
    """Two of five seconds have come, and 50 tuples are due, as in the last: pairs are of these."""
    event = planned(Shed(fraction=0.5, basic_window="1 second"), facts((100, 50)))
    by_window = {(i.stream, i.basic_window): i.pairs for i in event.items if i.stream == 0}
    assert by_window == {(0, 0): 50 * 50.0, (0, 1): 50 * 100.0}
    shed = Shed(pairs=10_000, basic_window="1 second")
    assert planned(shed, facts((100, 50))).fraction == pytest.approx(10_000 / (50 * 150 + 50 * 200))


def test_the_utility_of_a_type_is_relative_to_a_match_of_its_direction() -> None:
    """Section 5.3: u_iz is a pair's utility over a pair's matches, so the product with o is it.

    Types 0 and 23 (utility 1 and 10) match 4 % and 1 % of their pairs: 0.04 and 0.10 a pair, in a
    direction that matches 2.5 % of all.
    """
    found = SheddingOutcome(
        (ItemYield(0, 1, 0, (1e6, 1e6), (4e4, 1e4), (4e4, 1e5), 0.0),), ({0: 100, 23: 100}, {})
    )
    profile = ProductivityProfile().update(found, ((0, 23), ()))
    worth = profile.utility_per_pair(0, 1, (0, 23))
    assert worth == pytest.approx((0.04 / 0.025, 0.10 / 0.025), rel=1e-3)
    o = profile.matches_per_pair([(0, 1, 0)])[0, 1, 0]
    assert [o * u for u in worth] == pytest.approx([0.04, 0.10], rel=1e-3)
    assert profile.type_frequencies(0, (0, 23)) == (0.5, 0.5)


def test_utility_is_compared_across_directions_by_what_a_pair_gives() -> None:
    """Algorithm 5: the dear type of a direction with few matches gives 0.06 a pair, others 0.05."""
    poor = ItemYield(0, 1, 1, (1e6, 1e6), (4e3, 4e3), (4e3, 6e4), 0.0)
    rich = ItemYield(1, 0, 1, (1e6, 1e6), (5e4, 5e4), (5e4, 5e4), 0.0)
    types = ({0: 100, 23: 100}, {0: 100, 1: 100})
    shed = Shed(fraction=0.3, sample=1e-4, basic_window="1 second", utility={"r": "x", "s": "x"})
    first = planned_twice(shed, SheddingOutcome((poor, rich), types))
    share = {(i.stream, i.basic_window): i.shares for i in first.items}
    assert share[0, 1][1] > 0.99 and share[0, 1][0] < 0.01 and share[1, 1][0] < 0.99


def planned_twice(shed: Shed, last: SheddingOutcome) -> SheddingPlanned:
    """Plan two batches: types are known from the second on."""
    given = facts((100, 100))
    plan = Centralized().plan_batch(given, None)
    counted = replace(last, yields=())
    _, state = shed.plan_shedding(given, plan, shed.initial_state(2), counted)
    after, _ = shed.plan_shedding(given, plan, state, last)
    event = after.events[-1]
    assert isinstance(event, SheddingPlanned)
    return event
