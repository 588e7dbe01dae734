"""ATR: which tuples meet, the closed forms of its overhead, and how it adapts.

Every simulated plan is checked against the cover rule.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from braid.core import event_jsonl
from braid.core.coverage import CoverageChecker
from braid.core.facts import Facts, HostUsage
from braid.core.plan import Block
from braid.core.run_events import BatchCommitted, BatchPlanned
from braid.papers.baselines.centralized import Centralized
from braid.papers.common.load_balance import LoadBalance
from braid.papers.common.window_batches import EventTimeRate
from braid.papers.diffusion.aligned import Aligned
from braid.papers.diffusion.alignment import BlockRoles, MasterTenure, Segment
from braid.papers.diffusion.run_events import MasterSwitched, SegmentLengthTuned, SegmentPlaced
from braid.papers.diffusion.segment_length import BETTER, LengthSearch, atr_overhead
from braid.papers.diffusion.semantics_unaware import SemanticsUnaware
from braid.simulation.simulator import simulate
from braid_lab.common.recordings import write_events
from hypothesis import example, given, settings
from hypothesis import strategies as st


def select_events(run, kind):
    return [e for e in run if isinstance(e, kind)]


def count_results(run):
    return sum(e.results for e in select_events(run, BatchCommitted))


def poisson(batches, *rates, seed=0):
    return np.random.default_rng(seed).poisson(rates, (batches, len(rates))).tolist()


def extra(run, since):
    """Return the tuples received beyond one copy of each, per batch."""
    late = select_events(run, BatchCommitted)[since:]
    return sum(e.total_host_metrics.received_tuples - sum(e.received_tuples) for e in late) / len(
        late
    )


@st.composite
def runs(draw):
    streams = draw(st.integers(2, 6))
    windows = [draw(st.sampled_from([None, 0.5, 1, 2, 3.5, 7, 20])) for _ in range(streams)]
    alone = [tuple(9 * (s == k) for k in range(streams)) for s in range(streams)]
    burst = st.sampled_from([(0,) * streams, (1,) * streams, *alone])
    batches = draw(st.lists(st.tuples(burst, st.integers(1, 9)), min_size=1, max_size=6))
    placement = Aligned(
        draw(st.integers(1, 7)),
        draw(st.integers(1, 6)),
        draw(st.booleans()),
        sample_batches=draw(st.integers(1, 4)),
    )
    return placement, [batch for batch, times in batches for _ in range(times)], windows


@given(runs())
@settings(max_examples=40, deadline=None)
def test_every_combination_is_met_once_whatever_comes(run):
    placement, batches, windows = run
    assert len(select_events(simulate(placement, batches, windows=windows), BatchPlanned)) == len(
        batches
    )


@given(st.randoms(use_true_random=False), st.integers(2, 3), st.integers(2, 7), st.integers(1, 9))
@settings(max_examples=10, deadline=None)
def test_event_time_that_runs_unevenly_costs_copies_but_no_result(draw, streams, hosts, length):
    """Event time covered by each batch is 1 1 1 1 1 1 .1 .1 3 1 .1 3 ..., so hosts are chosen too
    briefly ahead.
    """
    seconds = [draw.choice([0.1, 1, 3]) if batch // 20 % 2 else 1 for batch in range(70)]
    batches = [[draw.randint(0, 3) for _ in range(streams)] for _ in range(70)]
    windows = [draw.choice([4, 8, 15]) for _ in range(streams)]
    simulate(Aligned(hosts, length), batches, windows=windows, seconds=seconds)


def test_a_slower_event_time_is_caught_up_with_by_copies():
    """From batch 40 on, batches cover a quarter of the time, so tuples live four times as many
    batches.
    """
    seconds = [1] * 40 + [0.25] * 110
    run = simulate(Aligned(7, 5, adaptive=False), [(4, 4)] * 150, windows=(10, 10), seconds=seconds)
    copied = {e.batch: e.copied_tuples for e in select_events(run, SegmentPlaced) if e.batch >= 20}
    assert not any(n for batch, n in copied.items() if batch <= 40 or batch >= 100)
    assert sum(copied.values()) > 0
    assert count_results(run) == 0 and sum(
        e.total_host_metrics.migrated_tuples for e in select_events(run, BatchCommitted)[20:]
    ) == sum(copied.values())


def test_a_block_that_was_just_merged_is_not_copied_the_old_segment_goes_on():
    """Host 1 is next, but lacks block 9, which is new since the last commit.

    The hosts are 0 0 [0] 1 instead of 0 0 [1] 1.
    """
    blocks = (
        Block(0, 0, (0, 1), 0, (0,), 5, 5, (0, 9)),
        Block(9, 1, (0, 1), 0, (0,), 5, 5, (0, 9)),
    )
    facts = Facts(2, ("r", "s"), blocks, 10, (5, 5), (5, 5), (0, 0), (100, 100), (19, 19))
    placement = Aligned(2, 2, adaptive=False)
    state = replace(
        placement.initial_state(2),
        tenure=MasterTenure(0),
        segments=(Segment(0, 2, 0, 0), Segment(2, 2, 1, 0)),
        rates=(1.0, 1.0),
    )
    plan = placement.plan_batch(facts, replace(state, next_id=9))
    CoverageChecker(2).check_plan(blocks, plan)
    assert (
        not plan.derivations
        and plan.state.segments[:2] == (Segment(0, 3, 0, 0), Segment(3, 1, 1, 0))
        and not plan.events
    )
    plan = placement.plan_batch(facts, replace(state, next_id=10))
    assert [(d.block.id, d.block.hosts) for d in plan.derivations] == [(9, (0, 1))]
    (placed,) = plan.events
    assert (placed.host, placed.is_planned, placed.copied_tuples) == (1, True, 5)


@pytest.mark.parametrize("windows", [(None, None), (None, 5), (5, None, 9), (None, None, None)])
@pytest.mark.parametrize("master", [0, 1])
def test_full_history(windows, master):
    """A slave without a window is on every host; a master without one is never replaced."""
    run = simulate(Aligned(4, master=master), [(3,) * len(windows)] * 20, windows=windows)
    switched = select_events(run, MasterSwitched)
    assert not (switched and windows[master] is None)
    last = select_events(run, BatchPlanned)[-1]
    for b in (r.block for r in last.routes):
        if windows[b.stream] is None and b.stream != master:
            assert b.hosts == (0, 1, 2, 3)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("windows", [(10, 10), (5, 15, 10), (15, 3, 3)])
def test_on_steady_streams_nothing_is_copied_after_warm_up(windows, length):
    run = simulate(
        Aligned(16, length, adaptive=False), poisson(60, *[5] * len(windows)), windows=windows
    )
    placed = select_events(run, SegmentPlaced)
    warm = max(windows)
    assert not any(e.copied_tuples for e in placed if e.batch > 2 * warm) and all(
        e.is_planned for e in placed if e.batch > warm
    )
    assert [b.batch - a.batch for a, b in pairwise(placed)] == [length] * (len(placed) - 1)


@pytest.mark.parametrize("master", [0, 2])
def test_segments_are_disjoint_and_slaves_overlap_as_in_figure_3(master):
    """W = 3 for all, T = 2, one batch a second. The diagram shows destinations after the
    warm-up.

    master   [ a ][ b ][ c ][ d ]
    slaves   of batch t: every segment that meets [t - 3, t + 3], and one batch more
    """
    run = simulate(
        Aligned(50, 2, adaptive=False, master=master), [(1, 1, 1)] * 40, windows=(3, 3, 3)
    )
    host = {
        batch: e.host for e in select_events(run, SegmentPlaced) for batch in (e.batch, e.batch + 1)
    }
    for e in select_events(run, BatchPlanned)[10:30]:
        for b in (r.block for r in e.routes):
            span = range(e.batch - 3, e.batch + 5) if b.stream != master else [e.batch]
            assert b.hosts == tuple(sorted({host[t] for t in span}))


def test_nothing_hops():
    for e in select_events(
        simulate(Aligned(9, 2), poisson(60, 4, 2, 9), windows=(5, 5, 5)), BatchPlanned
    ):
        for r in e.routes:
            assert all(
                len({h for hop in path for h in hop.blocks_by_host}) == 1 for path in r.paths
            )


def test_overhead_in_closed_form():
    """Eq. 2 by hand: master 0 with T = 2 costs (3 + 6)/2 * 10 + (5 + 6)/2 * 20."""
    rates, windows = (7, 10, 20), (6, 3, 5)
    assert atr_overhead(rates, windows, 0, 2) == (9 * 10 + 11 * 20) / 2
    assert atr_overhead(rates, windows, 0, 2, hosts=5) == 4 * 10 + 4 * 20
    assert atr_overhead((1, 5), (None, 3), 1, 1, hosts=4) == 3 and atr_overhead(
        (1, 5), (None, 3), 1, 1
    ) == float("inf")


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(1, 60)), min_size=2, max_size=6),
    st.floats(0.1, 9),
)
def test_longer_segments_cost_less_and_more_hosts_no_more(streams, length):
    """Section 3: Eq. 2 falls with T, and ATR uses any number of hosts at the same overhead."""
    rates, windows = zip(*streams, strict=True)
    for master in range(len(rates)):
        o = atr_overhead(rates, windows, master, length)
        assert atr_overhead(rates, windows, master, 2 * length) == pytest.approx(o / 2)
        assert atr_overhead(rates, windows, master, length, hosts=10_000) == pytest.approx(o)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("windows, master", [((10, 10, 10), 1), ((5, 15, 10), 0), ((20, 10, 5), 1)])
def test_copies_are_those_of_equation_2(windows, master, length):
    """Up to one batch: windows end inside batches, so every slave tuple also goes to the next
    segment.
    """
    rates = (10, 20, 5)
    run = simulate(
        Aligned(60, length, adaptive=False, master=master), [rates] * 80, windows=windows
    )
    slaves = sum(rates) - rates[master]
    assert extra(run, 60) == pytest.approx(
        atr_overhead(rates, windows, master, length) + slaves / length
    )


def test_any_number_of_hosts_at_the_same_overhead():
    costs = [
        extra(simulate(Aligned(hosts, adaptive=False), [(5, 5)] * 80, windows=(5, 5)), 30)
        for hosts in (20, 50, 200)
    ]
    assert costs[0] == costs[1] == costs[2] > 0


@pytest.mark.parametrize("windows", [(12, 12), (12, 10, 6), (4, 9, 6)])
def test_the_master_follows_the_rates(windows):
    """Rates are exchanged at batch 70; the master follows, and its cost falls. Nothing is copied
    for it.
    """
    others = len(windows) - 2
    batches = poisson(70, 30, 4, *[4] * others) + poisson(80, 4, 30, *[4] * others)
    placement = Aligned(40, master=1, sample_batches=1000)
    run = simulate(placement, batches, windows=windows)
    first, *_, last = select_events(run, MasterSwitched)
    assert (first.previous_master, first.master, last.master) == (1, 0, 1) and 70 < last.batch < 100
    assert all(e.costs[1] < e.costs[0] for e in select_events(run, MasterSwitched))
    fixed = simulate(Aligned(40, adaptive=False, master=0), batches, windows=windows)
    assert extra(run, 125) < 0.6 * extra(fixed, 125)
    switched = {e.batch for e in select_events(run, MasterSwitched)}
    assert not any(
        e.copied_tuples
        for e in select_events(run, SegmentPlaced)
        if e.batch in switched and e.batch > 40
    )


def test_who_joins_what_in_a_transition():
    """S_0 hands over to S_1 at batch 4.

    Letters are batches of S_0, S_1 and of a third stream; hosts are 7, 8 | 9.

    Letters are batches of S_0, S_1 and of a third stream; hosts are 7, 8 | 9.

    batch    2  3 | 4  5        old tuple first: its segment's host, with all of S_1
    S_0      a  b | c  d        then new tuples of S_1: theirs, with c and d only
    S_1      e  f | g  h        what is left, c or d with e or f: host 8 of the last old segment
    """
    segments = [Segment(2, 1, 7, 0), Segment(3, 1, 8, 0), Segment(4, 2, 9, 0)]
    roles = BlockRoles(3, MasterTenure(1, 4, 0, 8), segments)
    for stream in (0, 1, 2):
        for batch in (2, 3, 4, 5):
            roles.add_block(Block(10 * stream + batch, stream, (0, 1), batch, ()))
    third = (22, 23, 24, 25)
    assert roles.host_boxes() == [
        (7, {0: (2,), 1: (12, 13, 14, 15), 2: third}),
        (8, {0: (3,), 1: (12, 13, 14, 15), 2: third}),
        (9, {0: (4, 5), 1: (14, 15), 2: third}),
        (8, {0: (4, 5), 1: (12, 13), 2: third}),
    ]


def test_marked_tuples_go_to_the_last_old_host_for_as_long_as_the_paper_says():
    """S_M tuples since t_s reach the last old segment's host for W_N.

    Tuples of the new master reach the old segments' hosts for W_M.
    """
    windows = (8, 5)
    run = simulate(
        Aligned(60, sample_batches=1000, master=0), [(9, 1)] * 30 + [(1, 40)] * 60, windows=windows
    )
    (switch,) = select_events(run, MasterSwitched)
    sent = {
        (e.batch, r.block.stream): r.block.hosts
        for e in select_events(run, BatchPlanned)
        for r in e.routes
    }
    late = range(switch.batch, switch.batch + 20)
    star = [[b for b in late if switch.host in sent[b, stream]] for stream in (0, 1)]
    assert star == [list(late[: windows[1]]), list(late[: windows[0]])]


def test_atr_unoptimized_does_not_adapt():
    run = simulate(
        Aligned(30, 3, adaptive=False),
        poisson(60, 30, 3, 3) + poisson(90, 3, 3, 30),
        windows=(9, 9, 9),
    )
    assert not select_events(run, MasterSwitched) and not select_events(run, SegmentLengthTuned)
    assert {(e.master_stream, e.batches) for e in select_events(run, SegmentPlaced)} == {(0, 3)}


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 4))
@example(1, 1, 1)
def test_the_search_ends_at_the_peak(first, best, step):
    """On any curve that falls to one minimum and rises, the length ends within one step of it."""
    search, tried = LengthSearch.start_at(first), []
    for _ in range(70):
        search = search.add_sample(1.0 + (search.length - best) ** 2, 1.0).next_length(step)
        tried.append(search.length)
    assert search.direction == 0 and min(tried) >= 1
    reachable = range(first % step or step, 99, step)
    assert abs(search.length - best) == min(abs(length - best) for length in reachable)


def test_a_length_must_be_clearly_better_and_shorter_ones_are_tried_if_no_longer_one_is():
    longer = LengthSearch(4, 4, 6, 1.0, 1)
    assert longer.add_sample(0.5, 1.0).next_length(2) == LengthSearch(4, 6, 8, 0.5, 1)
    hardly = longer.add_sample(1 - BETTER, 1.0)
    assert hardly.next_length(2) == LengthSearch(4, 4, 2, 1.0, -1)
    after_a_better = LengthSearch(4, 6, 8, 0.5, 1).add_sample(0.5, 1.0)
    assert after_a_better.next_length(2) == LengthSearch(4, 6, 6, 0.5, 0)
    shorter = LengthSearch(4, 4, 2, 1.0, -1).add_sample(1.0, 1.0)
    assert shorter.next_length(2) == LengthSearch(4, 4, 4, 1.0, 0)
    nothing_is_shorter = LengthSearch(1, 1, 3, 1.0, 1).add_sample(1.0, 1.0)
    assert nothing_is_shorter.next_length(2) == LengthSearch(1, 1, 1, 1.0, 0)


def test_a_search_that_has_ended_begins_again_when_the_load_changes():
    search = LengthSearch(4, 4, 4, 1.0, 0)
    assert search.add_sample(1.2, 1.0).next_length(2) == search
    assert search.add_sample(1.3, 1.0).next_length(2) == LengthSearch(4, 4, 6, 1.3, 1)


def test_tuning_evens_out_the_load():
    """Segments of 8 batches in windows of 12 keep few hosts busy: 12 is worse, 4 is better, 0 does
    not exist.
    """
    run = simulate(
        Aligned(20, 8, step_batches=4), poisson(300, 5, 5, 5), windows=(12, 12, 12), selectivity=0.1
    )
    assert [(e.previous_batches, e.batches) for e in select_events(run, SegmentLengthTuned)] == [
        (8, 12),
        (12, 4),
    ]
    peaks = [max(h.probes for h in e.host_metrics) for e in select_events(run, BatchCommitted)]
    assert sum(peaks[-60:]) < 0.9 * sum(peaks[20:80])


def test_faster_hosts_get_more_segments():
    cluster = ((750.0, 1000.0, 550.0),) * 3 + ((750.0, 4000.0, 550.0),) * 3
    placed = select_events(
        simulate(
            Aligned(6, adaptive=False, host_capacities=cluster), [(6, 6)] * 200, windows=(6, 6)
        ),
        SegmentPlaced,
    )
    slow, fast = (sum(e.host in hosts for e in placed[20:]) for hosts in (range(3), range(3, 6)))
    assert fast > 1.5 * slow > 0


def test_the_least_loaded_host_is_chosen():
    """Eq. 1 of Gu 2007 with loads 30, 10, 20 and 0; each choice adds 20.

    Among equals the first is chosen, then the next in turn.
    """
    usage = (
        HostUsage(received_tuples=30),
        HostUsage(received_tuples=10),
        HostUsage(received_tuples=20),
    )
    facts = Facts(1, ("r", "s"), (), 0, (0, 0), (0, 0), (0, 0), host_usage=usage)
    balance = LoadBalance(4, (), facts, (1.0, 0.0, 0.0), 1.0, 3)
    alone = LoadBalance(4, (), facts, (1.0, 0.0, 0.0), 1.0, 1)
    assert alone.brings == pytest.approx(3 * balance.brings), "one segment brought all of the load"
    chosen = Counter()
    for expected in (3, 1, 2, 3, 0):
        assert balance.least_loaded_host(chosen, -1) == expected
        chosen[expected] += 1
    assert (
        LoadBalance(
            4, (), replace(facts, host_usage=()), (1.0, 0.0, 0.0), 1.0, 3
        ).least_loaded_host(Counter(), 1)
        == 2
    )
    fast_last = (
        (750.0, 1000.0, 550.0),
        (750.0, 1000.0, 550.0),
        (750.0, 1000.0, 550.0),
        (750.0, 4000.0, 550.0),
    )
    idle = replace(
        facts, host_usage=(HostUsage(received_tuples=30), HostUsage(), HostUsage(), HostUsage())
    )
    assert (
        LoadBalance(4, fast_last, idle, (1.0, 0.0, 0.0), 1.0, 1).least_loaded_host(Counter(), 0)
        == 3
    )


def test_pace():
    """Two seconds a batch; stream 1 is slower. A block of stream 0 that is 11 s old shows
    lateness.
    """
    blocks = (
        Block(0, 0, (0, 1), 0, (0,), 1, 1, (0, 1_000_000)),
        Block(1, 1, (0, 1), 3, (0,), 1, 1, (6_000_000, 7_000_000)),
    )
    facts = Facts(
        6,
        ("r", "s"),
        blocks,
        2,
        (1, 1),
        (1, 1),
        (1, 0),
        (10_000_000, None),
        (12_000_000, 7_000_000),
    )
    pace = EventTimeRate.from_facts(facts)
    assert (
        pace.microseconds_per_batch == 2_000_000
        and pace.seconds_per_batch == 2.0
        and pace.windows_in_batches() == (5.0, None)
    )
    assert pace.block_lifetimes == (11_000_000, None) and (
        pace.reachable_batches(0),
        pace.reachable_batches(1),
    ) == (6, None)
    late = replace(facts, clocks=(facts.clocks[0] + 60_000_000, None))
    assert EventTimeRate.from_facts(late).block_lifetimes == (20_000_000, None), "two windows"
    nothing = EventTimeRate.from_facts(
        Facts(0, ("r", "s"), (), 0, (0, 0), (0, 0), (0, 0), (10, None), (None, None))
    )
    assert (
        nothing.microseconds_per_batch is None
        and nothing.reachable_batches(0) == 2
        and nothing.seconds_per_batch == 1.0
    )


def test_events_survive_a_file(tmp_path):
    run = simulate(Aligned(20, 8, step_batches=4), [(20, 1)] * 20 + [(1, 20)] * 60, windows=(3, 3))
    assert all(
        select_events(run, kind) for kind in (SegmentPlaced, MasterSwitched, SegmentLengthTuned)
    )
    write_events(tmp_path / "run.jsonl", run)
    assert event_jsonl.read_events(tmp_path / "run.jsonl") == run


def lost(hosts, streams):
    """Return the share of all combinations that semantics-unaware routing never makes."""
    batches = poisson(60, *[6] * streams, seed=hosts)
    run = simulate(SemanticsUnaware(hosts), batches, windows=[10] * streams, selectivity=1.0)
    return 1 - count_results(run) / count_results(
        simulate(Centralized(), batches, windows=[10] * streams, selectivity=1.0)
    )


@pytest.mark.parametrize("streams", [2, 3])
def test_routing_without_semantics_loses_results(streams):
    """About 1 - 1/J^(m-1) of them are lost, as if hosts were drawn at random."""
    shares = [lost(hosts, streams) for hosts in (1, 2, 4, 8)]
    assert shares[0] == 0 and shares == sorted(shares)
    for hosts, share in zip((2, 4, 8), shares[1:], strict=True):
        assert share == pytest.approx(1 - hosts ** (1 - streams), abs=0.2)


def test_routing_without_semantics_copies_nothing_and_balances():
    run = select_events(
        simulate(SemanticsUnaware(5, segment_batches=2), [(6, 6, 6)] * 60, windows=(10, 10, 10)),
        BatchCommitted,
    )
    assert all(
        e.total_host_metrics.received_tuples == 18 and not e.total_host_metrics.migrated_tuples
        for e in run
    )
    received = np.sum([[h.received_tuples for h in e.host_metrics] for e in run[10:]], axis=0)
    assert received.max() < 2 * received.min()


def test_segments_of_idle_hosts_are_placed_in_turn_without_semantics():
    facts = Facts(1, ("r", "s"), (), 0, (0, 0), (0, 0), (0, 0))
    routes = SemanticsUnaware(5, segment_batches=1).plan_batch(facts, None).routes
    assert [r.block.hosts for r in routes] == [(2,), (3,)]


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: Aligned(0), "hosts is 0; it must be a whole number, 1 or more"),
        (
            lambda: Aligned(4, segment_batches=0),
            "segment_batches is 0; it must be a whole number of batches, 1 or more",
        ),
        (lambda: Aligned(4, step_batches=1.5), "step_batches is 1.5"),
        (lambda: Aligned(4, sample_batches=True), "sample_batches is True"),
        (lambda: Aligned(4, load_weights=(1, 1, 1)), "add up to 1"),
        (
            lambda: Aligned(4, host_capacities=((1.0, 1.0, 1.0),)),
            "cluster describes 1 hosts; it must describe all 4",
        ),
        (
            lambda: Aligned(4, master=2).initial_state(2),
            "master is 2; it must be the index of a stream, from 0 to 1",
        ),
        (lambda: Aligned(4).initial_state(1), "two streams or more; got 1"),
        (lambda: SemanticsUnaware(4, segment_batches=-1), "segment_batches is -1"),
        (lambda: SemanticsUnaware(0), "hosts is 0"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_plans_depend_on_their_arguments_alone():
    draw = random.Random(3)
    batches = [[draw.randint(0, 9) for _ in range(3)] for _ in range(60)]
    make = lambda: simulate(Aligned(8, 2), batches, windows=(5, 9, 7))  # noqa: E731
    assert make() == make()
