"""How much load is shed, and which: the pure parts of Gedik 2007."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from braid import Centralized, Shed
from braid.core.coverage import CoverageChecker
from braid.core.facts import Facts
from braid.core.plan import Block, Plan
from braid.core.shedding_plan import ItemYield, SheddingOutcome, SheddingPlan, merge_outcomes
from braid.errors import CoverageError
from braid.papers.shedding import productivity_profile
from braid.papers.shedding.budget import Budget, fill_budget
from braid.papers.shedding.productivity_profile import ProductivityProfile
from braid.papers.shedding.shed import METHODS, ShedState
from braid.util.json_codec import from_plain, round_trip, to_plain
from braid_lab.shedding import paper_algorithms
from braid_lab.shedding.paper_algorithms import fill_by_heap, split_directions
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

numbers = st.floats(0, 10)
items = st.lists(st.tuples(numbers, st.floats(0.1, 10)), min_size=1, max_size=12)


@given(items, st.floats(0, 1), st.floats(0, 1))
def test_the_knapsack_is_as_good_as_a_linear_program(items, part, sample):
    """Gedik 2007, section 5.3: the greedy choice of Algorithm 5 is optimal."""
    from scipy.optimize import linprog

    values, volumes = np.array(items).T
    budget, floor = part * volumes.sum(), part * sample
    shares = fill_budget(values, volumes, budget, floor)
    assert shares @ volumes == pytest.approx(budget)
    assert np.all(shares >= floor) and np.all(shares <= 1)
    best = linprog(-values * volumes, volumes[None], [budget], bounds=(floor, 1))
    assert shares @ (values * volumes) == pytest.approx(-best.fun, abs=1e-6)


@given(items, st.floats(0, 1), st.floats(0, 1))
def test_more_budget_never_lowers_a_share(items, a, b):
    values, volumes = np.array(items).T
    less, more = (fill_budget(values, volumes, p * volumes.sum()) for p in sorted((a, b)))
    assert np.all(less <= more + 1e-12)


def test_of_equal_values_the_first_comes_first():
    assert fill_budget(np.ones(3), np.ones(3), 1.5).tolist() == [1.0, 0.5, 0.0]


@given(
    st.lists(st.lists(numbers, min_size=1, max_size=6), min_size=1, max_size=5),
    st.floats(0, 1),
    st.data(),
)
def test_algorithm_5_with_its_heap_takes_what_sorting_takes(lists, part, data):
    volumes = [data.draw(st.floats(0.1, 5)) for _ in lists]
    flat = np.array([v for values in lists for v in values])
    sizes = np.repeat(volumes, [len(values) for values in lists])
    budget = part * sizes.sum()
    taken = fill_by_heap(lists, volumes, budget)
    used = sum(
        r * len(values) * volume for r, values, volume in zip(taken, lists, volumes, strict=True)
    )
    assert used == pytest.approx(budget)
    worth = 0.0
    for r, values, volume in zip(taken, lists, volumes, strict=True):
        best = np.sort(values)[::-1]
        whole = min(len(values), int(r * len(values) + 1e-9))
        worth += volume * best[:whole].sum()
        worth += volume * (r * len(values) - whole) * (best[whole] if whole < len(values) else 0)
    assert worth == pytest.approx(fill_budget(flat, sizes, budget) @ (flat * sizes), abs=1e-6)


@given(st.floats(0.01, 1), *[st.floats(0.5, 50)] * 2, *[numbers] * 2)
def test_algorithm_4_keeps_the_constraint_and_prefers_the_better_window(r, w1, w2, o1, o2):
    r1, r2 = split_directions(r, (w1, w2), (o1, o2))
    assert r1 * w1 + r2 * w2 == pytest.approx(r * (w1 + w2))
    assert 0 <= r1 <= 1 and 0 <= r2 <= 1
    better, worse = (r1, r2) if o1 >= o2 else (r2, r1)
    assert better == 1 or worse == pytest.approx(0)


def test_algorithm_4_as_printed_would_compare_twice_as_much():
    """w = 10, 20 and r = 0.3 require 9 units of work; line 7 as printed gives 18."""
    r, (w1, w2) = 0.3, (10.0, 20.0)
    r1 = min(1.0, r * (w1 + w2) / w1)
    printed = r * (w1 + w2) / w1 - r1 * w1 / w2
    assert r1 * w1 + printed * w2 == pytest.approx(17.0, abs=1.1)
    assert split_directions(r, (w1, w2), (2, 1)) @ (w1, w2) == pytest.approx(9)


@given(st.floats(1e-3, 1), st.floats(0, 2))
def test_algorithm_1_falls_when_input_is_left_and_rises_by_the_boost_at_most(r, beta):
    following = paper_algorithms.adapt_fraction(r, beta)
    assert 0 <= following <= 1
    assert (following < r) == (beta < 1)
    assert following <= 1.2 * r


def test_the_fraction_that_fits_is_known_beforehand():
    r"""A burst of five times the tuples in both streams is 25 times the work.

    No batch is lost to learning that.

    pairs:  ____/^^^^\____      r:  1 1 1 0.16 ... 1
    """
    assert paper_algorithms.affordable_fraction(1.0, 0.1, 1e-6, 200_000) == 1.0
    assert paper_algorithms.affordable_fraction(1.0, 0.1, 1e-6, 5_000_000) == pytest.approx(0.16)
    assert paper_algorithms.affordable_fraction(1.0, 0.95, 1e-6, 1) == 0.0
    assert paper_algorithms.affordable_fraction(1.0, 0.1, 1e-6, 0) == 1.0


@pytest.mark.parametrize("width", [0.02, 0.05, 0.2])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_whole_basic_windows_are_never_better_than_the_best_part_of_a_window(width, share):
    """Gedik 2007, section 5.1.1; small ones come close."""
    age = np.linspace(0, 1, 2000)
    f = np.exp(-((age - 0.7) ** 2) / (2 * width**2))
    phi = [paper_algorithms.output_optimality(f, basic, share) for basic in (0.002, 0.05, 0.5)]
    assert phi[0] > 0.97 and all(p < 1.001 for p in phi)
    assert phi[0] > phi[2]


def test_age_based_reduction_needs_an_early_peak():
    """Gedik 2007, Fig. 1: the newest part is best for a falling density, but not for a late
    peak.
    """
    age = np.linspace(0, 1, 1000)
    early, late = np.exp(-5 * age), np.exp(-((age - 0.8) ** 2) / 0.005)
    assert paper_algorithms.newest_output_share(early, 0.3) == pytest.approx(
        paper_algorithms.best_output_share(early, 0.3), abs=1e-3
    )
    assert (
        paper_algorithms.newest_output_share(late, 0.3)
        < 0.01
        < 0.99
        < paper_algorithms.best_output_share(late, 0.3)
    )


@pytest.mark.parametrize(
    ("span", "now", "j"),
    [((0, 10), 10, 0), ((0, 10), 25, 2), ((0, 10), 1000, 10), ((90, 110), 50, 0)],
)
def test_a_block_lies_in_the_basic_window_of_its_middle(span, now, j):
    block = Block(0, 0, (0, 1), 0, (0,), 5, 5, span)
    assert productivity_profile.locate_basic_window(block, 9, 95, 10, now) == j


@pytest.mark.parametrize(("window", "now"), [(None, 5), (95, None)])
def test_without_a_window_or_a_clock_basic_windows_double(window, now):
    block = Block(0, 0, (0, 1), 3, (0,), 5, 5, (0, 10))
    found = [
        productivity_profile.locate_basic_window(block, batch, window, 10, now)
        for batch in (3, 4, 5, 7, 11)
    ]
    assert found == [0, 1, 2, 3, 4]


def test_basic_windows_end_with_the_window():
    assert productivity_profile.basic_window_ends(95, 30) == (30, 60, 90, 95)
    assert productivity_profile.basic_window_ends(None, 30) == ()
    assert len(productivity_profile.basic_window_ends(1000, None)) == 20


def harvested(rates, pairs=1000.0):
    """Return a harvest for pairs that match at rates[j] in basic window j of either direction."""
    return SheddingOutcome(
        tuple(
            ItemYield(k, 1 - k, j, (pairs,), (pairs * o,), (pairs * o,), 0.0)
            for k in (0, 1)
            for j, o in enumerate(rates)
        )
    )


def test_what_was_not_tried_is_taken_for_average():
    profile = ProductivityProfile().update(harvested([0.1, 0.3]), ())
    outputs = profile.matches_per_pair([(0, 1, 0), (0, 1, 1), (0, 1, 7)])
    assert outputs[0, 1, 0] == pytest.approx(0.1, rel=0.02)
    assert outputs[0, 1, 1] == pytest.approx(0.3, rel=0.02)
    assert outputs[0, 1, 7] == pytest.approx(0.2, rel=0.02)
    assert set(ProductivityProfile().matches_per_pair([(0, 1, 0)]).values()) == {1.0}


def test_half_of_what_was_learned_is_gone_after_seven_batches():
    """As long a past as one likes: seven batches of another peak outweigh it, ten tenths fade."""
    profile = ProductivityProfile()
    for _ in range(30):
        profile = profile.update(harvested([0.3, 0.1]), ())
    before = {s.part: s.pairs for s in profile.parts}
    for _ in range(7):
        profile = profile.update(harvested([0.1, 0.3]), ())
    o = profile.matches_per_pair([(0, 1, 0), (0, 1, 1)])
    assert o[0, 1, 1] > o[0, 1, 0]
    silent = SheddingOutcome((ItemYield(0, 1, 5, (1.0,), (0.0,), (0.0,), 0.0),))
    alone = ProductivityProfile().update(harvested([0.3]), ())
    for _ in range(7):
        alone = alone.update(silent, ())
    pairs = {s.part: s.pairs for s in alone.parts}
    once = ProductivityProfile().update(harvested([0.3]), ()).parts[0].pairs
    assert pairs[0] == pytest.approx(0.9**7 * once) and pairs[0] < 0.5 * once
    assert 9 * once < before[0] < 10 * once, "the sum of all fading batches"


def test_types_are_worth_what_their_pairs_gave():
    """Type 23 (V = 10) matches a tenth as often as type 0 (V = 1): pairs of both have the same
    value.
    """
    came = SheddingOutcome(
        (ItemYield(0, 1, 0, (1000.0, 1000.0), (100.0, 10.0), (100.0, 100.0), 0.0),),
        ({0: 300, 23: 100}, {}),
    )
    profile = ProductivityProfile().update(came, ((0, 23), ()))
    assert profile.common_types() == ((0, 23), ())
    assert profile.type_frequencies(0, (0, 23)) == (0.75, 0.25)
    cheap, dear = profile.utility_per_pair(0, 1, (0, 23))
    assert cheap == pytest.approx(dear, rel=0.15)
    assert profile.type_frequencies(1, ()) == profile.utility_per_pair(1, 0, ()) == (1.0,)


def test_the_commonest_types_are_told_apart():
    counts = {code: code + 1 for code in range(100)}
    profile = ProductivityProfile().update(SheddingOutcome((), (counts, {})), ())
    assert profile.common_types()[0] == tuple(range(36, 100))


def facts(batch=5, rows=100, latest=(5_000_000, 5_000_000)):
    """Return two streams with a block for each of the last five seconds."""
    blocks = tuple(
        Block(2 * t + s, s, (0, 1), t, (0,), rows, rows, (t * 1_000_000, t * 1_000_000 + 999_999))
        for t in range(5)
        for s in (0, 1)
    )
    whole = (5 * rows,) * 2
    windows_ = (5_000_000, 5_000_000)
    return Facts(batch, ("r", "s"), blocks, 10, whole, whole, (rows, rows), windows_, tuple(latest))


def planned(shed, state=None, last=None, given=None):
    given = given or facts()
    plan = Centralized().plan_batch(given, None)
    return shed.plan_shedding(given, plan, state or shed.initial_state(2), last)


def used(plan, given):
    """Return the share of all pairs that the harvest processes."""
    reported = plan.events[-1]
    volumes = np.array([item.pairs for item in reported.items])
    return volumes @ [item.shares[0] for item in reported.items] / volumes.sum()


def test_no_share_is_below_a_ten_thousandth_so_that_every_weight_is_finite():
    """A hundredth of r = 0.001 would be less."""
    plan, _ = planned(Shed(fraction=0.001, sample=0.01, basic_window="1 second"))
    assert min(share for item in plan.events[-1].items for share in item.shares) == 1e-4


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("drop", "keys")])
def test_every_method_uses_the_fraction_and_no_more(method):
    shed = Shed(fraction=0.3, method=method, basic_window="1 second")
    peak = harvested([0.001, 0.001, 0.02, 0.001, 0.001])
    plan, state = planned(shed)
    again_plan, _ = planned(shed, state, peak)
    for each in (plan, again_plan):
        assert used(each, facts()) == pytest.approx(0.3)
        assert all(share > 0 for shares in each.shedding.shares.values() for share in shares)
        ledger = CoverageChecker(2)
        ledger.check_plan(facts().blocks, each)
    peaks = {s for item, (s,) in again_plan.shedding.shares.items() if item[2] == 2}
    assert (1.0 in peaks) == (method in ("time", "direction", "selective"))


def test_partial_processing_takes_the_newest_and_selective_the_best():
    newest, _ = planned(Shed(fraction=0.3, method="partial", basic_window="1 second"))
    shares = newest.shedding.shares
    assert shares[0, 1, 0] == (1.0,) > shares[0, 1, 4] == (0.09,)
    assert shares[1, 0, 0] == (0.72,)  # in the same batch s also meets r


def test_the_better_direction_comes_first():
    """Algorithm 4: tuples of r find four times as many matches in s as vice versa."""
    last = SheddingOutcome(
        tuple(
            ItemYield(k, 1 - k, j, (1000.0,), (40.0 if k == 0 else 10.0,), (0.0,), 0.0)
            for k in (0, 1)
            for j in range(5)
        )
    )
    plan, _ = planned(Shed(fraction=0.3, method="direction", basic_window="1 second"), None, last)
    mean = {
        k: np.mean([s for item, (s,) in plan.shedding.shares.items() if item[0] == k])
        for k in (0, 1)
    }
    assert mean[1] == pytest.approx(0.09) and mean[0] > 0.4


def test_pairs_are_bounded_and_a_burst_is_thinned_by_the_guard():
    plan, _ = planned(Shed(pairs=10_000))
    total = sum(item.pairs for item in plan.events[-1].items)
    assert used(plan, facts()) == pytest.approx(10_000 / total)
    assert set(plan.shedding.expected_tuples.values()) == {120.0}  # 100, and twice its deviation
    roomy, _ = planned(Shed(pairs=4 * total))
    assert set(roomy.shedding.expected_tuples.values()) == {440.0}
    free, _ = planned(Shed(fraction=0.3))
    assert free.shedding.expected_tuples == {}


def timed(seconds, pairs=110_000.0):
    one = ItemYield(0, 1, 0, (pairs,), (1.0,), (1.0,), 0.0)
    return SheddingOutcome((one,), probe_seconds=seconds[0], seconds=seconds[1])


def test_seconds_are_kept_by_what_was_measured():
    """A pair took 10 us and a batch 0.1 s in addition: 0.9 * 0.5 s leave 35,000 pairs."""
    shed = Shed(seconds=0.5)
    first, state = planned(shed)
    assert first.events[-1].fraction == 1  # nothing is measured yet
    plan, state = planned(shed, state, timed((1.1, 1.2)))
    assert plan.events[-1].fraction == pytest.approx(0.35e5 / 110_000, rel=0.01)
    assert plan.events[-1].is_enough and plan.events[-1].allowed_seconds == 0.5
    slower, _ = planned(shed, state, timed((2.2, 2.3)))
    assert slower.events[-1].fraction == pytest.approx(0.35 / 15e-6 / 110_000, rel=0.01), "15 us"
    tight, _ = planned(Shed(seconds=0.1), None, timed((1.1, 1.2)))
    assert not tight.events[-1].is_enough and tight.events[-1].fraction == 0.001


def silent(given):
    """Plan the batch after one without tuples, such as a change of queries."""
    return replace(given, batch=given.batch + 1, previous_received=(0, 0))


@pytest.mark.parametrize("shed", [Shed(pairs=10_000), Shed(seconds=0.5), Shed(event_time_speed=2)])
def test_the_batch_after_an_empty_one_is_shed_like_that_before(shed):
    _, state = planned(shed, given=facts(latest=(3_000_000, 3_000_000)))
    before, state = planned(shed, state, timed((1.1, 1.2)))
    after, state = planned(shed, state, None, silent(facts()))
    assert before.events[-1].fraction < 1
    assert after.events[-1].fraction == pytest.approx(before.events[-1].fraction)
    assert after.shedding.expected_tuples == before.shedding.expected_tuples != {}
    later, _ = planned(shed, state, None, silent(silent(facts())))
    assert later.shedding.expected_tuples == after.shedding.expected_tuples


def test_of_streams_that_nothing_is_known_of_what_would_fit_is_let_in():
    """In the first batch, 100 tuples of each stream would make 10,000 pairs.

    In the batch in which r first arrives it meets 500 tuples of s: 20 of it are processed.
    """
    none = replace(facts(0, 0), blocks=(), previous_received=(0, 0))
    plan, _ = planned(Shed(pairs=10_000), given=none)
    assert set(plan.shedding.expected_tuples.values()) == {100.0}
    one = replace(facts(), previous_received=(0, 0))
    half = replace(one, blocks=tuple(b for b in one.blocks if b.stream))
    plan, _ = planned(Shed(pairs=10_000), given=half)
    assert sorted(plan.shedding.expected_tuples.values()) == [
        20.0,
        120.0,
    ]  # 100 tuples of s arrived


def test_a_speed_allows_a_batch_the_event_time_of_the_last():
    shed = Shed(event_time_speed=2)
    _, state = planned(shed, given=facts(latest=(3_000_000, 3_000_000)))
    plan, _ = planned(shed, state, timed((1.1, 1.2)))
    assert plan.events[-1].allowed_seconds == pytest.approx(1.0)
    assert Shed().processing_budget == Budget("speed", 1.0)


def test_an_adjusted_budget_stays_in_force():
    shed = Shed(fraction=0.5)
    plan, state = planned(shed, shed.with_budget(shed.initial_state(2), Budget("fraction", 0.1)))
    assert plan.events[-1].fraction == 0.1
    plan, _ = planned(shed, state)
    assert plan.events[-1].fraction == 0.1


def test_what_is_dropped_on_both_sides_is_squared():
    plan, _ = planned(Shed(fraction=0.25, method="drop"))
    assert plan.shedding.keep_shares == (0.5, 0.5)
    assert {s for (s,) in plan.shedding.shares.values()} == {1.0}


def test_settings_and_state_survive_a_file_and_a_plan_is_made_again():
    shed = Shed(seconds=2, utility={"r": "r.x"}, basic_window="1 second", sample=0.1)
    assert from_plain(to_plain(shed), Shed) == shed
    plan, state = planned(shed, None, timed((1.1, 1.2)))
    assert round_trip(state, ShedState) == state
    assert planned(shed, None, timed((1.1, 1.2))) == (plan, state)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda h: replace(h, basic_windows={99: 0}), r"puts blocks \[99\] in basic windows"),
        (lambda h: replace(h, shares={}), "has no share for item"),
        (lambda h: replace(h, basic_windows={}), "has no share for item"),
        (lambda h: replace(h, shares=dict.fromkeys(h.shares, (0.0,))), "greater than 0"),
        (lambda h: replace(h, shares=dict.fromkeys(h.shares, (1.5,))), "at most 1"),
        (lambda h: replace(h, shares=dict.fromkeys(h.shares, (1.0, 1.0))), "it must have 1"),
        (lambda h: replace(h, keep_shares=(0.0, 1.0)), "admits shares"),
    ],
)
def test_the_ledger_refuses_a_harvest_that_is_wrong(change, sentence):
    plan, _ = planned(Shed(fraction=0.3))
    with pytest.raises(CoverageError, match=sentence):
        CoverageChecker(2).check_plan(facts().blocks, replace(plan, shedding=change(plan.shedding)))


def test_the_cover_rule_is_held_beside_a_harvest():
    plan, _ = planned(Shed(fraction=0.3))
    lost = replace(plan, routes=tuple(structs.replace(r, paths=()) for r in plan.routes))
    with pytest.raises(CoverageError, match="blocks never met"):
        CoverageChecker(2).check_plan(facts().blocks, lost)
    assert Plan().shedding is None and SheddingPlan().type_count(0) == 1


def test_what_hosts_report_is_added_up():
    a = SheddingOutcome(
        (ItemYield(0, 1, 0, (1.0,), (2.0,), (3.0,), 4.0),), ({5: 1}, {}), 1.0, 2.0, 3.0, 4.0
    )
    b = SheddingOutcome(
        (
            ItemYield(0, 1, 0, (1.0,), (2.0,), (3.0,), 4.0),
            ItemYield(1, 0, 0, (1.0,), (0.0,), (0.0,), 0.0),
        ),
        ({5: 2}, {6: 1}),
        1.0,
        2.0,
        3.0,
        4.0,
    )
    both = merge_outcomes([a, b])
    assert (
        both.yields[0] == ItemYield(0, 1, 0, (2.0,), (4.0,), (6.0,), 8.0) and len(both.yields) == 2
    )
    assert both.types == ({5: 3}, {6: 1}) and both.variance == 4.0
    assert both.considered_pairs == 3.0 and both.skipped_pairs == 8.0


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8), st.randoms())
def test_what_came_of_a_harvest_does_not_depend_on_which_task_ended_first(values, random):
    """A resumed run would plan differently because of a last digit."""
    parts = [
        SheddingOutcome(
            (ItemYield(0, 1, 0, (1.0,), (1.0,), (v,), 0.0),), (), v, v / 3, v / 7, v / 9
        )
        for v in values
    ]
    shuffled = random.sample(parts, len(parts))
    assert merge_outcomes(shuffled) == merge_outcomes(parts)


def test_noise_in_the_last_digit_does_not_choose_a_basic_window():
    """Basic windows 1 and 2 have equal output, added up in different orders."""
    shed = Shed(fraction=0.3, basic_window="1 second")
    noise = [(0.1 + 0.2) / 3, 0.1]
    assert noise[0] != noise[1]
    chosen = [
        planned(shed, None, harvested([0.01, *order, 0.01, 0.01], 1e6))[0].shedding.shares
        for order in (noise, noise[::-1], [0.1, 0.1])
    ]
    assert chosen[0] == chosen[1] == chosen[2]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (dict(fraction=0.3, pairs=5), "fraction and pairs are given; a budget is one of"),
        (dict(fraction=0), "fraction is 0; it must be greater than 0 and at most 1"),
        (dict(fraction=1.5), "fraction is 1.5"),
        (dict(fraction=True), "fraction is True"),
        (dict(pairs=0), "pairs is 0; it must be a number of at least 1"),
        (dict(seconds=-1), "seconds is -1; it must be a number greater than 0"),
        (dict(seconds=float("inf")), "seconds is inf"),
        (dict(event_time_speed=0), "speed is 0"),
        (dict(method="best"), "method is 'best'; it must be one of selective, direction"),
        (dict(sample=0), "sample is 0; it must be greater than 0 and at most 1"),
        (dict(sample=1.1), "sample is 1.1"),
        (dict(basic_window="soon"), "basic window is 'soon'; it must be a positive span"),
        (dict(combine="min"), "combine is 'min'; it must be 'max' or 'mean'"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        Shed(**given)
