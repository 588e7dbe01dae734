"""The claims of Gedik 2007 hold on small settings, and fail on figures that contradict them."""

from __future__ import annotations

from string import Formatter

import numpy as np
import pandas as pd
import pytest
from braid.papers.shedding.shed import Shed
from braid_lab.common.recorded_settings import record_values
from braid_lab.shedding import claims as claims
from braid_lab.shedding import experiments as shedding_experiments
from braid_lab.shedding import (
    measured,
    model_claims,
    policy_figures,
    steady_claims,
    utility_claims,
)
from braid_lab.shedding.claim_settings import FORWARD, INDEXED_GAIN, SETTINGS
from braid_lab.shedding.policy_runs import PolicyRun, SetTuples
from braid_lab.shedding.runs import count_full_join
from braid_lab.workloads.flight_legs import flight_legs
from braid_lab.workloads.set_streams import SetStreams, burst_rates, overlap_probabilities
from braid_lab.workloads.zipf_skew import zipf_probabilities
from mutations import run_in_process


def test_optimality_falls_with_load_skew_and_size():
    """Fig. 5."""
    frame = shedding_experiments.optimality_table()
    tried = (model_claims.load_claim, model_claims.skew_claim, model_claims.size_claim)
    assert [claim(frame).holds for claim in tried] == ["under reading"] * 3
    upside = frame.assign(optimality_modelled=1 - frame["optimality_modelled"])
    assert [claim(upside).holds for claim in tried] == ["no"] * 3


def test_the_claims_of_models_hold():
    """Fig. 1, 5, 6, 7 and 14; the policy's figures have runs of their own in tests/mutations."""
    tried = claims.CLAIMS.test_claims(
        reduction=shedding_experiments.window_reduction(),
        optimality=shedding_experiments.optimality_table(),
        densities=shedding_experiments.density_curves((0.6, 0.8)),
        drops=shedding_experiments.drop_rates(),
        dropped=policy_figures.drop_runs(scale=0.4),
        basic_windows=shedding_experiments.recall_by_basic_windows(),
    )
    assert {c.source for c in tried} >= {f"Fig. {k}" for k in (1, 5, 6, 7, 14)}
    assert {c.holds for c in tried} == {"under reading"}
    (drops,) = (c.setting for c in tried if c.statement.startswith("without an index"))
    assert "16,000, 32,000 and 64,000 comparisons a second; 20 tuples/s" in drops, "as run"


def with_settings(frame):
    """Return a made-up frame as one that has recorded its run."""
    templates = (*SETTINGS.values(), FORWARD, INDEXED_GAIN)
    names = {name for text in templates for _, name, _, _ in Formatter().parse(text) if name}
    return record_values(frame, **dict.fromkeys(names, 1))


def test_claims_fail_on_figures_that_contradict_them():
    """Fig. 8, 10, 11, 15 and 16; they fail without adaptation."""
    modelled = shedding_experiments.adaptation_curves()
    over = with_settings(pd.DataFrame({"load_counted": [2.0] * 9, "fraction_counted": [0.5] * 9}))
    assert claims.forward_claim(over, modelled).holds == "no"
    kept = over.assign(load_counted=0.9)
    assert claims.forward_claim(kept, modelled).holds == "yes"
    even = with_settings(pd.DataFrame({"second": range(130), "fraction_counted": 0.5}))
    assert claims.burst_claim(even).holds == "no"
    grown = pd.DataFrame(
        [
            (kappa, window, "all", method, gain, 0.1 * (1 + gain))
            for kappa in (0.4, 0.8)
            for window in (10, 40)
            for method, gain in (("drop", 0.0), ("partial", kappa + window / 100))
        ],
        columns=["kappa", "window", "phase", "method", "gain_counted", "recall_counted"],
    )
    with_settings(grown)
    assert claims.growth_claim(grown, grown).holds == "yes"
    in_pairs = grown.assign(recall_counted=0.1)
    assert claims.growth_claim(grown, in_pairs).holds == "under reading"
    flat = in_pairs.assign(gain_counted=0.0)
    assert claims.growth_claim(grown, flat).holds == claims.growth_claim(flat, grown).holds == "no"
    alone = grown[grown["kappa"] == 0.8]
    assert claims.growth_claim(alone, grown).holds == "not tried", "one skew"
    shares = dict(fraction=[0.9, 0.5], r1_counted=0.7, r2_counted=0.7, o1_modelled=1, o2_modelled=2)
    assert claims.direction_claim(with_settings(pd.DataFrame(shares))).holds == "no"
    joins = ("overlap", "equality", "overlap, indexed")
    joins += ("overlap, kappa = 0.8",)
    none = pd.DataFrame([(500.0, j, 0.0) for j in joins], columns=["rate", "join", "gain_counted"])
    assert steady_claims.gain_over_dropping_claim(with_settings(none)).holds == "no"
    worth = shedding_experiments.utility_by_skew().assign(gain_counted=0.0, kappa=0.6)
    assert utility_claims.utility_claim(with_settings(worth)).holds == "no"


def test_a_run_of_the_policy_has_the_tuples_and_the_results_of_the_join():
    """Brute force over all pairs; with r = 1 every policy finds all of them."""
    sets = SetStreams((24.0, 24.0), seconds=16.0, step=2.0, window=8.0, kappa=1.0, theta=2)
    tuples = SetTuples(sets, (8.0, 8.0))
    assert tuples.count_all().sum() == count_full_join(sets)
    done = PolicyRun(tuples, Shed(fraction=1.0)).run_batches()
    assert sum(b.results for b in done) == count_full_join(sets)
    one_sided = SetTuples(sets, (8.0, 0.0))
    both_sides = one_sided.count_all().sum() + SetTuples(sets, (0.0, 8.0)).count_all().sum()
    assert both_sides == pytest.approx(count_full_join(sets), abs=2)


def test_a_run_of_the_policy_finds_what_the_engine_finds():
    """The same tuples and policy in this process, with an engine and without; draws differ."""
    sets = SetStreams((24.0, 24.0), seconds=16.0, step=2.0, window=8.0, kappa=1.0, theta=2)
    shed = Shed(fraction=0.3, method="direction", basic_window="2 seconds")
    spans = dict.fromkeys("nm", "8 seconds")
    joined = run_in_process(
        lambda run: run.results().num_rows,
        sets.make_tables(),
        sets.condition,
        None,
        spans,
        shed=shed,
    )
    tuples = SetTuples(sets, (8.0, 8.0))
    counted = [
        sum(b.results for b in PolicyRun(tuples, shed, seed=seed).run_batches())
        for seed in range(4)
    ]
    assert joined == pytest.approx(np.mean(counted), rel=0.15)


def test_one_knapsack_is_never_worse_than_a_direction_first():
    """Gedik 2007, section 5.3; it is better at half of the work."""
    for kappa in (0.4, 0.8):
        for r in (0.05, 0.2, 0.5, 0.8):
            sets = SetStreams(kappa=kappa)
            found = {
                m: shedding_experiments.compute_recall(sets, r, m)
                for m in shedding_experiments.METHODS
            }
            assert found["selective"] >= found["direction"] - 1e-9
            assert found["selective"] >= found["time"] - 1e-9
    assert shedding_experiments.compute_recall(
        sets, 0.5, "selective"
    ) > shedding_experiments.compute_recall(sets, 0.5, "direction")


def test_the_workload_matches_as_its_density_says():
    """Pairs of the tuples themselves, by age: Fig. 6 counted."""
    sets = SetStreams(rates=(60.0, 60.0), seconds=40.0, kappa=0.8, seed=3)
    n, m = sets.make_tables().values()
    times = [t["ts"].to_numpy().astype("int64") / 1e6 for t in (n, m)]
    held = []
    for table in (n, m):
        matrix = np.zeros((table.num_rows, sets.items + 1))
        rows = np.repeat(np.arange(table.num_rows), [len(x) for x in table["items"].to_pylist()])
        matrix[rows, np.concatenate(table["items"].to_pylist())] = 1
        held.append(matrix)
    age = times[0][:, None] - times[1][None]
    match = held[0] @ held[1].T >= sets.theta
    f = sets.match_density(1, 10)
    counted = [match[(age >= 2 * k) & (age < 2 * k + 2)].mean() for k in range(10)]
    assert int(np.argmax(counted)) == int(np.argmax(f)) == 7
    assert np.corrcoef(f, counted)[0, 1] > 0.95


def test_of_sets_of_one_item_it_is_known_how_likely_they_match():
    """Section 6.1's equality: without drawing sets, as two ranks at that distance."""
    p = zipf_probabilities(9, 0.7)
    found = overlap_probabilities(9, 1.0, 0.0, 0.7, 1, 0)
    assert found == pytest.approx([float(p @ np.roll(p, d)) for d in range(9)])
    assert overlap_probabilities(9, 1.0, 1e-9, 0.7, 1, 0) == pytest.approx(found, abs=0.02), "drawn"


def test_the_burst_of_the_paper():
    sets = SetStreams(**burst_rates())
    counts = sets.make_arrivals.batch_counts()
    assert sum(n for n, _ in counts[61:75]) > 3 * sum(n for n, _ in counts[40:54])
    with pytest.raises(ValueError, match="items is 0"):
        SetStreams(items=0)


def test_legs_share_tags_with_their_own_arrival():
    """Every arrival of a day has its departure, with which it shares all tags but "late"."""
    whole = flight_legs(1, batches=6)
    d, a = (whole[alias].to_pylist() for alias in "da")
    assert len(d) == 837 and len(a) == 754 and {r["batch"] for r in d} <= set(range(6))
    by_plane = {}
    for row in d:
        by_plane.setdefault((row["tailnum"], row["dest"], row["carrier"]), []).append(row)
    for row in a:
        left = by_plane[row["tailnum"], row["dest"], row["carrier"]]
        own = [r for r in left if set(r["tags"]) - {"late"} == set(row["tags"]) - {"late"}]
        assert any(r["ts"] < row["ts"] for r in own)
    assert all(4 <= len(r["tags"]) <= 7 and f"carrier {r['carrier']}" in r["tags"] for r in d)
    with pytest.raises(ValueError, match="days 0, batches 48; month is 1 to 12"):
        flight_legs(0)


def test_methods_differ_on_flights_and_all_know_how_many_results_there_are():
    """A quarter of the pairs; the order is the claim. Claims fail if methods do not differ."""
    found = measured.compare_methods(1, 0.25, 24)
    share = found.results.set_index(["condition", "method"])["found of all"]
    assert share["tags", "uniform"] == pytest.approx(0.25, abs=0.08)
    assert share["tail number", "keys"] == pytest.approx(0.5, abs=0.15)
    best, none, estimates = claims.CLAIMS.test_claims(found)
    assert (best.holds, none.holds, estimates.holds) == ("under reading", "not tried", "yes")
    assert "With 25% of the pairs" in none.reason
    truth = found.results.set_index(["condition", "method"])["in truth"]["tags", "uniform"]
    assert found.carriers["in truth"].sum() == truth
    even = found._replace(
        results=found.results.assign(**{"found of all": 0.25, "estimated": 2.0 * truth})
    )
    assert [c.holds for c in claims.CLAIMS.test_claims(even)] == ["no", "not tried", "no"]
