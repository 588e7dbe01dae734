"""Another placement on the input of a run: the same arrivals, from any batch on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from braid import AdaptiveGrid, Aligned, HashPartition, HotKeys, Ring, StaticGrid
from braid.core.run_events import BatchCommitted, QueryAdded, RunStarted
from braid.simulation.simulator import simulate
from braid_lab.launches import recorded_runs
from braid_widgets.cockpit.alternative_placement import (
    comparable_placements,
    estimate_value_shares,
    observed_input,
    simulate_alternative,
)

GROWING = [(90, 10)] * 4 + [(1, 200)] * 12
WINDOWED = dict(windows=(4, 4, 4), selectivity=0.1)


def fullest(events):
    return [
        max(h.stored_tuples for h in e.host_metrics)
        for e in events
        if isinstance(e, BatchCommitted)
    ]


def test_the_same_placement_from_the_start_is_the_run_itself_but_for_the_draw():
    events = simulate(AdaptiveGrid(16), GROWING)
    baseline = simulate_alternative(events, "AdaptiveGrid", 16, ahead=0)
    assert baseline.batch == tuple(range(len(baseline.batch)))
    assert fullest(events)[: len(baseline.max_host_tuples)] == pytest.approx(
        list(baseline.max_host_tuples), rel=0.15
    )


def test_a_grid_that_does_not_adapt_holds_what_the_square_grid_would():
    events = simulate(AdaptiveGrid(16), GROWING)
    baseline = simulate_alternative(events, "StaticGrid", 16, ahead=0)
    assert list(baseline.max_host_tuples) == pytest.approx(
        fullest(simulate(StaticGrid(16), GROWING)), rel=0.1
    )
    assert baseline.max_host_tuples[-1] > 1.3 * fullest(events)[-1], "adapting has paid"


def test_it_takes_over_with_what_is_held_and_goes_on_like_the_last_batches():
    events = simulate(AdaptiveGrid(16), GROWING)
    baseline = simulate_alternative(events, "StaticGrid", 16, since=9, ahead=5)
    assert baseline.batch == tuple(range(9, 21)) and baseline.name == "StaticMid, 16 hosts"
    whole = simulate_alternative(events, "StaticGrid", 16, ahead=5)
    assert list(baseline.max_host_tuples) == pytest.approx(
        list(whole.max_host_tuples[9:]), rel=0.12
    )


def test_windows_are_kept_by_event_time():
    events = simulate(Ring(4), [(9, 9, 9)] * 12, **WINDOWED)
    start = events[0]
    assert isinstance(start, RunStarted)
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    given = observed_input(start, commits, 7)
    assert (
        sum(given.held_tuples) == sum(commits[7].live_tuples)
        and len(given.received_tuples) == len(commits) - 8
    )
    assert given.seconds[1:] == pytest.approx([1.0] * len(given.received_tuples), abs=1e-3)
    baseline = simulate_alternative(events, "Aligned", 4, since=7, ahead=4)
    own = fullest(simulate(Aligned(4), [(9, 9, 9)] * 16, **WINDOWED))
    assert max(baseline.max_host_tuples) <= 2 * max(own), "what is old expires here too"


@pytest.mark.parametrize("is_shared", [False, True])
def test_until_now_one_host_holds_what_the_run_has_held(is_shared):
    """A shared run has its windows in its queries."""
    start, *rest = simulate(Ring(4), [(9, 9, 9)] * 12, **WINDOWED)
    windows = {alias: 4_000_000 for alias in start.streams}
    short, long = (
        QueryAdded(0, f"q{k}", k, {a: w // k for a, w in windows.items()}, {}, {}) for k in (2, 1)
    )
    shared = [replace(start, windows={}), long, short, *rest]
    curve = simulate_alternative(shared if is_shared else [start, *rest], "Centralized", 1, ahead=0)
    held = [e.total_host_metrics.stored_tuples for e in list_commits(rest)]
    assert [*curve.max_host_tuples] == held and held[-1] == held[-5] < 9 * 3 * 12


def test_a_recorded_shared_run_is_compared_within_its_windows():
    """Its last query selects tuples, so the run drops others of them after 15 s."""
    events = recorded_runs.recorded_events("slices")
    commits = list_commits(events)
    held = [e.total_host_metrics.stored_tuples for e in commits]
    curve = simulate_alternative(events, "Centralized", 1, ahead=0)
    assert [*curve.max_host_tuples[:17]] == held[:17]
    assert curve.max_host_tuples[-1] <= sum(sum(e.received_tuples) for e in commits[-32:])


def test_offered_is_what_joins_so_many_streams():
    two, three = (simulate(AdaptiveGrid(4), [(1, 1)])[0], simulate(Ring(3), [(1, 1, 1)])[0])
    assert "AdaptiveGrid" in comparable_placements(
        two
    ) and "AdaptiveGrid" not in comparable_placements(three)
    assert {"Ring", "Aligned", "Coordinated"} <= set(comparable_placements(three))
    assert "Chain" not in comparable_placements(two), "it serves the queries of a shared join"


def list_commits(events):
    return [e for e in events if isinstance(e, BatchCommitted)]


@pytest.mark.parametrize(
    ("placement", "rival", "streams"),
    [
        (StaticGrid(16), "JoinBiclique", 2),
        (Aligned(4), "Coordinated", 3),
        (Ring(4), "Aligned", 3),
        (HashPartition(4), "HotKeys", 2),
        (HotKeys(4), "HashPartition", 2),
    ],
)
def test_the_answer_is_one_number_beside_that_of_the_run(placement, rival, streams):
    windows = dict(windows=(4,) * streams, selectivity=0.1)
    events = simulate(placement, [(40,) * streams] * 8, **windows)
    label = comparable_placements(events[0])[rival].partition(" (")[0]
    curve = simulate_alternative(events, rival, placement.hosts)
    last = list_commits(events)[-1]
    own = max(host.stored_tuples for host in last.host_metrics)
    rows = curve.max_host_tuples[curve.batch.index(last.batch)]
    assert curve.compare(last) == (
        f"{label}, {placement.hosts} hosts, modelled: {rows:,} rows on the fullest host after batch 8, "
        f"{rows / own - 1:+.0%} beside the {own:,} of this run; dashed in the time line"
    )


def test_frequent_values_are_those_that_the_run_found():
    half = dict(key_shares=[[0.625, *[0.125] * 3]] * 2)
    hashed = simulate(HashPartition(4), [(400, 400)] * 6, **half)
    shares = estimate_value_shares(hashed, HashPartition(8))
    assert len(shares) == 8 and sum(shares) == pytest.approx(1)
    assert shares[0] == pytest.approx(0.5 + 0.5 / 8, abs=0.03), "one value has half of the tuples"
    assert estimate_value_shares(hashed, StaticGrid(4)) == []
    values = HotKeys(4).key_space_size // HotKeys(4).keys_per_value
    keys = [[0.5, 0.25, *[0.25 / (values - 2)] * (values - 2)]] * 2
    spread = simulate(HotKeys(4), [(2000, 2000)] * 6, key_shares=keys)
    found = sorted(estimate_value_shares(spread, HotKeys(8)), reverse=True)
    assert found[:2] == pytest.approx([0.5, 0.25], abs=0.05) and found[2] < 0.01
    worse = simulate_alternative(spread, "HashPartition", 4, ahead=0)
    held = max(host.stored_tuples for host in list_commits(spread)[-1].host_metrics)
    assert worse.max_host_tuples[-1] > 1.6 * held, "one host holds the frequent value"
    assert "HashPartition" not in comparable_placements(simulate(StaticGrid(4), [(1, 1)])[0])


@pytest.mark.parametrize(
    ("name", "hosts", "since", "words"),
    [
        ("AdaptiveGrid", 16, -1, "joins two streams|does not join 3 streams"),
        ("Ring", 3, 99, "there is no batch 100; this run has had"),
        ("Nothing", 3, -1, "no placement is named 'Nothing'"),
        ("Ring", 0, -1, "0"),
    ],
)
def test_what_cannot_be_is_refused(name, hosts, since, words):
    events = simulate(Ring(3), [(1, 1, 1)] * 3, **WINDOWED)
    with pytest.raises(ValueError, match=words):
        simulate_alternative(events, name, hosts, since)


def test_nothing_can_be_compared_with_no_run():
    with pytest.raises(ValueError, match="nothing has been joined yet"):
        simulate_alternative([], "Ring", 3)
