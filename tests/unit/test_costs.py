"""The estimated cost of a launch is shown before it and has the right magnitude."""

from __future__ import annotations

import pytest
from braid.core.run_events import BatchCommitted
from braid_lab.diffusion.experiments import make_arrivals, setting_from_controls
from braid_lab.launches import run_estimates, workbench
from braid_lab.launches.recorded_runs import SETTINGS, SHARED, recorded_events
from braid_lab.shedding import runs as shedding_runs
from braid_widgets.theta.panel import ThetaPanel
from unit.test_widgets import MIGRATION, Cockpit, FakeRun

DIFFUSION = dict(
    placement="ATR", streams=3, window=10.0, slowest=5.0, fastest=20.0, selectivity=0.1,
    hosts=12, length=2, copies=0, bursts=False, burst=0.5,
)  # fmt: skip


def count_tuples(name: str) -> int:
    """Return the number of tuples of a recorded run."""
    return sum(
        sum(e.received_tuples)
        for e in recorded_events(name)
        if type(e).__name__ == "BatchCommitted"
    )


@pytest.mark.parametrize("name", ["fluct", "eq5-Dynamic-z0"])
def test_a_theta_join_takes_in_what_the_recorded_one_did(name):
    assert run_estimates.estimate_theta(SETTINGS[name]).rows == pytest.approx(
        count_tuples(name), rel=0.1
    )


def test_shared_joins_take_in_what_the_recorded_ones_did():
    assert run_estimates.estimate_slices(SHARED["slices"], 0).rows == pytest.approx(
        count_tuples("slices"), rel=0.15
    )
    ring = run_estimates.estimate_dashboards({**SHARED["shared_ring"], "pace": 0.0})
    assert ring.rows == pytest.approx(count_tuples("shared_ring"), rel=0.25), (
        "February has fewer flights"
    )


def test_streams_of_drawn_rates_and_of_a_ring_are_as_many_as_asked_for():
    given = make_arrivals(setting_from_controls(DIFFUSION, 8))
    expected = sum(given.rates) * given.seconds
    assert run_estimates.estimate_diffusion(DIFFUSION, 8).rows == pytest.approx(expected, rel=0.35)
    assert run_estimates.estimate_ring(dict(rates="5,10,15", streams=3), 40).rows == 30 * 40
    assert run_estimates.estimate_slices(
        dict(source="flights", batches=48, pace=0.0), 2
    ).rows == pytest.approx(1989, rel=0.01)


def test_sets_come_as_the_workload_has_them():
    chosen = dict(rate=100.0, burst=3.0, pace=0.0)
    given = shedding_runs.sets_from_controls(**chosen, seconds=12.0)
    expected = sum(map(sum, given.make_arrivals.batch_counts()))
    assert run_estimates.estimate_shedding(chosen, 12).rows == pytest.approx(expected, rel=0.05)


def test_the_board_says_what_its_streams_have():
    known = dict(data="steady", batches=24, rate=200)
    came = [
        e
        for e in workbench.simulate_run(workbench.WorkbenchSettings(**known))
        if isinstance(e, BatchCommitted)
    ]
    assert run_estimates.estimate_workbench(known).rows == sum(sum(e.received_tuples) for e in came)
    with pytest.raises(ValueError, match="how many tuples 'a.csv,b.csv' has is not known"):
        run_estimates.estimate_workbench({**known, "data": "a.csv,b.csv"})


def test_it_is_told_in_a_sentence_with_units():
    few = run_estimates.LaunchCost(rows=1234, width=64, batches=10)
    assert str(few) == (
        "a launch takes in about 1,200 tuples (less than 1 MB) in 10 batches, about 20 s (modelled)"
    )
    huge = run_estimates.estimate_theta({**SETTINGS["fluct"], "scale": 100.0})
    assert "690,000,000 tuples (210 GB) in 48 batches, about 1 h 1" in str(huge)
    assert run_estimates.LaunchCost(10, 64, 100, pace=2.0).total_seconds >= 200


def test_a_panel_says_it_while_its_controls_change():
    panel = ThetaPanel(lambda s: FakeRun(MIGRATION), Cockpit(MIGRATION), batches=10)
    assert panel.price.value == ""
    panel.with_cost(run_estimates.estimate_theta)
    before = panel.price.value
    assert "A launch takes in about" in before and "(modelled)" in before
    panel.inputs["scale"].value = 1.0
    assert panel.price.value != before and "(1.8 GB)" in panel.price.value
    panel.inputs["scale"].value = 1000.0
    assert panel.price.value == "", "which is refused"
