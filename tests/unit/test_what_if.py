"""Another placement on the input of a run: the same arrivals, from any batch on."""

from __future__ import annotations

import pytest
from braid import AdaptiveGrid, Aligned, Ring, StaticGrid
from braid.core.run_events import BatchCommitted, RunStarted
from braid.simulation.simulator import simulate
from braid_widgets.cockpit.alternative_placement import (
    comparable_placements,
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
    assert baseline.batch == tuple(range(9, 21)) and baseline.name == "StaticGrid(16)"
    whole = simulate_alternative(events, "StaticGrid", 16, ahead=5)
    assert list(baseline.max_host_tuples) == pytest.approx(
        list(whole.max_host_tuples[9:]), rel=0.12
    )
    assert baseline.sent_copies[-1] == (1 + 200) * 4, (
        "as the last batches, each tuple to four hosts"
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


def test_offered_is_what_joins_so_many_streams():
    two, three = (simulate(AdaptiveGrid(4), [(1, 1)])[0], simulate(Ring(3), [(1, 1, 1)])[0])
    assert "AdaptiveGrid" in comparable_placements(
        two
    ) and "AdaptiveGrid" not in comparable_placements(three)
    assert {"Ring", "Aligned", "Coordinated"} <= set(comparable_placements(three))
    assert "Chain" not in comparable_placements(two), "it serves the queries of a shared join"


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
