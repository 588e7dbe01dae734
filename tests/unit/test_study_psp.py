"""The studies of Wang 2008: shapes that hold for any seed, and frames that mark modelled values."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from braid.core.run_events import BatchCommitted
from braid_lab.common.recorded_settings import RECORDED
from braid_lab.psp import adaptation
from braid_lab.psp import experiments as psp_experiments
from braid_lab.psp import scheme_comparison as psp_rivals
from braid_lab.psp import scheme_properties as psp_comparison
from braid_lab.psp.scheme_comparison import HALF, LONG, PAIR, SHORT

QUICK = psp_experiments.RingSetting(sigma=0.05, rate=20.0, seconds=20.0)


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    """Return all schemes on few nodes and more, with two seeds."""
    return psp_rivals.compare_schemes((3, 9), seeds=(0, 1), setting=replace(QUICK, seconds=30.0))


def test_every_number_that_is_not_a_setting_says_that_it_is_modelled(runs):
    known = {"nodes", "scheme", "join", "part", "sigma", "adapts", "second", "seed", "hop", "price"}
    known |= {
        "streams",
        "sends",
        "rival",
        "tuples",
        "segment",
        "item",
        "counts",
        "printed",
        "added",
        "place",
        "kept",
    }
    for frame in (
        psp_experiments.cost_breakdown(2, QUICK),
        psp_experiments.response_times((4,)),
        adaptation.adaptation_curves("16.6", 10.0, prices=(0.05,)),
        runs,
        psp_rivals.add_response_times(runs),
        psp_rivals.best_node_counts(runs),
        psp_rivals.lead_over_rivals(runs),
        psp_rivals.concurrency_table((3,), (15,), setting=replace(QUICK, seconds=11.0)),
        psp_rivals.replica_table((2,), setting=replace(QUICK, seconds=0.0, step=1.0)),
        psp_comparison.scheme_properties(3, QUICK),
        psp_comparison.relocation_table(((3, 1),)),
        psp_experiments.seed_statistics(runs, "busy_modelled"),
    ):
        assert len(frame) and all(c in known or c.endswith("_modelled") for c in frame.columns)
        assert not frame.isna().any().any()


def test_a_spread_is_over_the_seeds(runs):
    over = psp_experiments.seed_statistics(runs, "stored_modelled")
    assert len(over) * 2 == len(runs)
    assert (over["low_modelled"] < over["mean_modelled"]).all()
    assert (over["mean_modelled"] < over["high_modelled"]).all()


def test_the_best_ring_is_inside_and_longer_for_more_selectivity():
    times = psp_experiments.response_times(tuple(range(1, 40)), joins=("small",))
    best = times.loc[times.groupby("sigma")["response_modelled"].idxmin()].set_index("sigma")
    assert 1 < best["nodes"][0.05] <= best["nodes"][0.1] < best["nodes"][0.5] < 39
    theorem = best[["first_modelled", "second_modelled"]].min(axis=1)
    assert (abs(best["nodes"] - theorem) <= 1).all(), "near Theorem 9"


def test_theorem_9_gives_the_hop_of_a_best_length():
    hop = psp_experiments.hop_seconds_for(14)
    assert hop == pytest.approx(1.66e-3, rel=0.01), "with 1 ns for a pixel"
    load = psp_experiments.RingSetting(sigma=0.5, hop=hop).cost_workload()
    assert psp_experiments.cost.optimal_length(load) == pytest.approx(14)


def test_a_hop_that_costs_nothing_makes_the_longest_ring_the_best():
    times = psp_experiments.response_times(tuple(range(4, 20)), joins=("small",), hops=(1e-4, 2e-3))
    least = times.loc[times.groupby(["hop", "sigma"])["response_modelled"].idxmin()]
    best = least.set_index(["hop", "sigma"])["nodes"]
    assert (best[1e-4] == 19).all() and (best[2e-3] < 19).all()


def test_probing_is_priced_by_pixels_and_sending_is_not():
    parts = psp_experiments.cost_breakdown(4, QUICK).pivot(
        index="join", columns="part", values="mean_modelled"
    )
    assert parts.loc["large", "join"] == pytest.approx(4 * parts.loc["small", "join"])
    assert parts.loc["large", "network"] == parts.loc["small", "network"]


def test_a_tuple_compares_the_pairs_of_equation_13_1():
    """A window of 500 tuples: a tenth of them fits each member of an intermediate result."""
    assert psp_experiments.probe_counts(psp_experiments.RingSetting()) == pytest.approx(
        (500 * (1 + 50), 50, 50 * 5)
    )
    five = psp_experiments.probe_counts(psp_experiments.RingSetting(streams=5))
    assert five == pytest.approx((500 * (1 + 50 + 250 + 125), 50 + 250 + 125, 6.25))


def by_scheme(runs, value):
    mine = runs[runs["join"] == "small"]
    return mine.pivot(index="nodes", columns="scheme", values=f"{value}_modelled")


@pytest.mark.parametrize("seed", [0, 1])
def test_memory_and_response_of_the_rivals(runs, seed):
    """Fig. 16.2 to 16.5: which figures grow with N, fall, or stay constant."""
    runs = runs[runs["seed"] == seed]
    stored, busy = by_scheme(runs, "stored"), by_scheme(runs, "busy")
    took = by_scheme(psp_rivals.add_response_times(runs, (2e-3,)), "response")
    for ring in ("PSP", "PSP-D"):
        assert stored.loc[9, ring] == pytest.approx(stored.loc[3, ring], rel=0.15)
        assert (stored[ring] < stored["PSP-I"]).all() and (stored[ring] < stored[SHORT]).all()
        assert busy.loc[9, ring] < 0.6 * busy.loc[3, ring]
    assert stored.loc[9, PAIR] == pytest.approx(stored.loc[3, PAIR], rel=0.1)
    assert stored.loc[9, HALF] > 1.5 * stored.loc[9, PAIR]
    assert (stored[LONG] < stored[SHORT]).all(), "fewer replicas, the longer segments are"
    assert took.loc[9, SHORT] == pytest.approx(took.loc[3, SHORT], rel=0.05)
    assert took.loc[9, PAIR] < took.loc[3, PAIR]


def test_idle_hosts_keep_their_last_segment():
    """Fig. 16.4 (b), section 15.1."""
    kept = psp_rivals.replica_table((3, 9), setting=replace(QUICK, seconds=0.0, step=1.0))
    by = kept.set_index("nodes")
    assert by["left_modelled"][9] > 2 * by["left_modelled"][3]
    assert by["live_modelled"][9] < 1.3 * by["live_modelled"][3], "purged by the clock"
    assert (by["left_modelled"] < by["formula_modelled"]).all()


def test_joins_of_five_streams_have_the_same_shapes():
    runs = psp_rivals.compare_schemes((3, 9), streams=(5,), setting=replace(QUICK, seconds=16.0))
    stored = by_scheme(runs, "stored")
    took = by_scheme(psp_rivals.add_response_times(runs, (2e-3,)), "response")
    assert stored.loc[9, "PSP-D"] == pytest.approx(stored.loc[3, "PSP-D"], rel=0.15)
    assert stored.loc[9, HALF] > 1.5 * stored.loc[9, PAIR] > 2 * stored.loc[9, "PSP-D"]
    assert took.loc[9, PAIR] < took.loc[3, PAIR]


def test_the_more_a_hop_costs_the_less_a_ring_is_ahead():
    ahead = psp_rivals.lead_over_rivals(psp_rivals.compare_schemes((4, 8), setting=QUICK))
    by = ahead.pivot(index=["join", "rival"], columns="hop", values="ratio_modelled")
    assert (by.diff(axis=1).iloc[:, 1:] <= 0).all(axis=None)


def test_more_tuples_at_once_are_on_two_nodes_more_often():
    """Fig. 16.3."""
    few = replace(QUICK, rate=50.0, seconds=12.0)
    many = psp_rivals.concurrency_table((4,), (15, 30, 0), setting=few)
    many = many.query("join == 'small' and hop == hop.max()").set_index("tuples")
    assert many["copied_modelled"]["N"] < many["copied_modelled"]["15"]
    assert many["copied_modelled"]["15"] < many["copied_modelled"]["30"]
    assert many["response_modelled"]["15"] < many["response_modelled"]["30"]


def test_each_row_of_figure_15_1_is_counted():
    rows = psp_comparison.scheme_properties(8, QUICK)
    assert set(rows["item"]) == set(psp_comparison.ROWS) and len(rows) == 6 * 3 + 1
    by = rows.pivot(index="item", columns="scheme", values="number_modelled")
    sent = by.loc["Network Transmission"]
    assert sent["ATR"] < sent["CTR"] < sent["PSP"], "low, middle, high"
    inserted = by.loc["State Management Cost"]
    assert inserted["PSP"] == 1 and inserted["CTR"] == 2 < inserted["ATR"]
    assert by.loc["Per Segment Metadata"].tolist()[::2] == [0, 1], "the ring's way is fixed"
    assert by.loc["Adaptation Cost", "PSP"] == 0, "passive adjustment moves nothing"
    assert rows.attrs[RECORDED]["bounded_left_out"] == [0], "no second replica in a bounded cover"


@pytest.mark.parametrize("figure", list(adaptation.CHANGES))
def test_a_ring_that_takes_nodes_in_keeps_up(figure):
    """Fig. 16.6 and 16.7."""
    grown = adaptation.adaptation_curves(figure, prices=adaptation.CHANGES[figure].prices[1:2])
    end = grown[grown["second"] > 54].groupby("adapts")["response_modelled"].mean()
    assert end[True] < end[False] / 2 and set(grown["seed"]) == {0}
    nodes = grown.groupby("adapts")["nodes"].max()
    assert nodes[False] == 3 < nodes[True]


def test_an_unknown_figure_is_refused():
    with pytest.raises(ValueError, match="there are: 16.6"):
        adaptation.adaptation_curves("16.9")


def test_runs_by_settings_and_their_agreement():
    arrivals, ring = psp_experiments.run_from_controls(
        rates="5,10", windows="4", streams=2, nodes=3, resize=5, seconds=20.0
    )
    assert (
        arrivals.rates == (5.0, 10.0)
        and arrivals.windows == (4.0, 4.0)
        and ring.resize == ((10, 5),)
        and ring.max_hosts == 5
    )
    events = psp_experiments.simulate_all(arrivals, ring)
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    assert [tuple(e.received_tuples) for e in commits] == arrivals.batch_counts()
    both = psp_experiments.compare_with_model(events, events)
    assert (
        both["ratio"].dropna().eq(1).all()
        and both.set_index("what").loc["state at the end", "measured"]
        == commits[-1].total_host_metrics.stored_tuples
    )


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        (dict(rates="5,6"), "rates are '5,6'"),
        (dict(windows="soon"), "windows are 'soon'"),
        (dict(windows="0"), "longer than 0 seconds"),
        (dict(form="round"), "form is 'round'"),
        (dict(sigma=2.0), "sigma is 2.0"),
    ],
)
def test_settings_that_cannot_be_get_one_sentence(settings, reported):
    with pytest.raises(ValueError, match=reported) as raised:
        psp_experiments.run_from_controls(**settings)
    assert "\n" not in str(raised.value)
