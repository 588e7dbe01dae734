"""Charts of joins that shed load, on simulated runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from braid import Shed
from braid.core.run_events import BatchCommitted, BatchShed
from braid.papers.shedding.budget import fill_budget
from braid.papers.shedding.run_events import SheddingPlanned
from braid_lab.shedding import runs as shedding_runs
from braid_widgets.cockpit.view import Cockpit
from braid_widgets.shedding.panel import ShedPanel

SETTINGS = dict(rate=60.0, window=6.0, seconds=18.0, kappa=1.0)
EVENTS = shedding_runs.simulate_shedding(
    shedding_runs.sets_from_controls(**SETTINGS), Shed(fraction=0.2, basic_window="1 second")
)


WHOLE = sum(
    e.results
    for e in shedding_runs.simulate_shedding(
        shedding_runs.sets_from_controls(**SETTINGS), Shed(fraction=1)
    )
    if isinstance(e, BatchCommitted)
)


def test_a_modelled_run_is_planned_by_the_policy():
    """It learns the age of matches: more than twice as many results as a plain share."""
    chosen_events = [e for e in EVENTS if isinstance(e, SheddingPlanned)]
    assert len(chosen_events) == 18 and {e.fraction for e in chosen_events} == {0.2}
    whole = shedding_runs.simulate_shedding(
        shedding_runs.sets_from_controls(**SETTINGS), Shed(fraction=1)
    )
    found = [
        sum(e.results for e in events if isinstance(e, BatchCommitted))
        for events in (EVENTS, whole)
    ]
    assert 0.4 * found[1] < found[0] < found[1]


def test_seconds_are_kept_in_the_burst():
    """A closed loop without a clock: batches of the burst take their limit, and not more."""
    sets = shedding_runs.sets_from_controls(**SETTINGS | dict(rate=200.0))
    free = shedding_runs.simulate_shedding(sets, Shed(fraction=1))
    kept = shedding_runs.simulate_shedding(sets, Shed(seconds=1.0))
    took = [
        [e.seconds_by_phase["modelled"] for e in events if isinstance(e, BatchCommitted)]
        for events in (free, kept)
    ]
    assert max(took[0]) > 3 > 1.15 > np.quantile(took[1], 0.9)
    assert max(took[1]) < 1.5


@pytest.mark.parametrize("method", ["selective", "drop"])
@pytest.mark.parametrize("burst", [1.0, 3.0])
def test_a_batch_without_tuples_of_a_stream_is_modelled(method, burst):
    """The minimum rate of the control: five tuples a second, most of them shed."""
    settings = {**SETTINGS, "rate": 5.0, "burst": burst}
    for fraction in (0.05, 0.25):
        shed = shedding_runs.make_shedder(method=method, fraction=fraction)
        events = shedding_runs.simulate_shedding(shedding_runs.sets_from_controls(**settings), shed)
        assert sum(isinstance(e, BatchCommitted) for e in events) == 18
        assert all(np.isfinite(e.estimated_results) for e in harvested(events))


def harvested(events):
    return [e for e in events if isinstance(e, BatchShed)]


@pytest.mark.parametrize("method", ["selective", "uniform", "drop"])
def test_dear_tuples_come_first_where_it_is_known_what_tuples_are_worth(method):
    """All methods estimate the same matches and utility of the full join.

    The selective one finds most of the utility in the same number of pairs.
    """
    found = {}
    for dear in (0.0, 0.1):
        chosen = SETTINGS | dict(dear=dear, fraction=0.2, method=method)
        events = shedding_runs.simulate_shedding(
            shedding_runs.sets_from_controls(**chosen), shedding_runs.make_shedder(**chosen)
        )
        came = harvested(events)
        found[dear] = [
            sum(getattr(e, name) for e in came)
            for name in ("estimated_results", "utility", "estimated_utility")
        ]
    alike, dear = found[0.0], found[0.1]
    assert dear[0] == pytest.approx(alike[0], rel=0.02) and alike[0] == alike[2]
    assert dear[0] == pytest.approx(WHOLE, rel=0.05)
    part = [utility / whole for _, utility, whole in (alike, dear)]
    assert (part[1] > part[0] + 0.02) == (method == "selective")
    types = {e.types for e in events if isinstance(e, SheddingPlanned)}
    assert ((0, 23), (0, 23)) in types


def test_what_was_learned_is_nearly_as_good_as_what_is_known():
    """Expected matches of the processed pairs from the tenth batch on are compared with the
    optimum.

    The optimum is the best pairs by the workload's own density, with the same number of pairs and
    the same sample size.
    """
    densities = [shedding_runs.sets_from_controls(**SETTINGS).match_density(i, 60) for i in (0, 1)]
    mine = best = 0.0
    for e in [e for e in EVENTS if isinstance(e, SheddingPlanned)][10:]:
        volumes = np.array([i.pairs for i in e.items])
        ages = [
            (i.basic_window + 1) / SETTINGS["window"] for i in e.items
        ]  # when a batch is processed
        known = np.array(
            [
                np.interp(age, np.linspace(0, 1, 60), densities[i.window])
                for i, age in zip(e.items, ages, strict=True)
            ]
        )
        mine += volumes * [i.shares[0] for i in e.items] @ known
        r = e.fraction
        best += volumes * fill_budget(known, volumes, r * float(volumes.sum()), 0.3 * r) @ known
    assert 0.9 * best <= mine <= best * 1.001


def test_a_burst_is_as_high_as_is_asked_for():
    def tuples(burst):
        sets = shedding_runs.sets_from_controls(**SETTINGS | dict(burst=burst))
        return sum(n for n, _ in sets.make_arrivals.batch_counts()[6:12])

    assert tuples(5.0) == pytest.approx(5 * tuples(1.0), rel=0.15)


def test_the_panel_simulates_and_leaves_the_budget_of_a_run_to_the_drawer():
    simulated = []

    def simulate(settings: dict[str, Any]) -> list[Any]:
        simulated.append(settings)
        return EVENTS

    panel = ShedPanel(lambda settings: None, Cockpit([]), simulate, kappa=0.6)
    panel.inputs["method"].value = "uniform"
    panel.wait_for_work(60)
    assert [s["method"] for s in simulated] == ["selective", "uniform"]
    assert len(panel.screen.page["frames"]) == 18, "the cockpit shows the simulated run"
    panel.set_state("running")
    panel.inputs["fraction"].value = 0.5
    assert "from the next launch on" in panel.message.value and len(simulated) == 2
    panel.inputs["allowed"].value = -1.0
    assert "it must be from" in panel.inputs["allowed"].refusal
