"""The experiments of Gu 2007 on small settings: their values, and shapes that hold for any seed."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf

import pandas as pd
import pytest
from braid.core.cluster_model import REFERENCE_MIPS
from braid.core.run_events import BatchCommitted
from braid_lab.common.result_cache import CachedOutcome
from braid_lab.diffusion import __main__ as diffusion_program
from braid_lab.diffusion import claims
from braid_lab.diffusion import experiments as study
from braid_lab.diffusion import figures as figures
from braid_lab.diffusion import planning_costs as plans
from braid_lab.diffusion.claim_frames import DiffusionFigures
from braid_lab.diffusion.experiments import (
    ALIGNED_OR_COORDINATED,
    PLACEMENTS,
    RIVALS,
    VISITING,
    DiffusionSetting,
)

SMALL = DiffusionSetting(streams=3, window=5.0, hosts=6, seconds=10)


def outcome(name: str, setting: DiffusionSetting = SMALL) -> dict[str, float]:
    return study.summarize(
        study.simulate_setting(study.make_placement(name, setting), setting), setting.window
    )


def small(name: str, setting: DiffusionSetting) -> CachedOutcome:
    """Run an experiment on fewer hosts and in a shorter window."""
    return study.run_and_summarize(name, replace(setting, window=3.0, hosts=min(setting.hosts, 6)))


def test_a_setting_gives_the_same_arrivals_every_time_and_bursts_keep_the_mean():
    assert (
        study.make_arrivals(SMALL).batch_counts()
        == study.make_arrivals(SMALL).batch_counts()
        != study.make_arrivals(replace(SMALL, seed=1)).batch_counts()
    )
    long = replace(SMALL, seconds=2000, rates=(10.0, 10.0))
    counts = study.make_arrivals(replace(long, burst=1.0, rates=(20.0, 20.0))).batch_counts()
    assert len(counts) == 2005
    assert sum(map(sum, counts)) == pytest.approx(
        sum(map(sum, study.make_arrivals(long).batch_counts())), rel=0.05
    )


def test_an_unknown_placement_is_refused():
    with pytest.raises(ValueError, match="no placement is named 'LTR'; there are: ATR, CTR"):
        study.make_placement("LTR", SMALL)


def test_all_but_the_baseline_find_the_same_where_no_host_sheds():
    calm = replace(SMALL, patience=inf)
    found = {
        name: study.count_totals(study.simulate_setting(study.make_placement(name, calm), calm))[
            "results"
        ]
        for name in PLACEMENTS
    }
    lost = found.pop("Semantics-unaware")
    assert max(found.values()) - min(found.values()) <= 2, (
        found
    )  # expected numbers, rounded batch by batch
    assert 0 <= lost < 0.5 * found["ATR"]


def test_patience_lets_work_wait_and_no_host_does_more_than_it_has_time_for():
    busy = replace(SMALL, rates=(40.0, 60.0), seconds=30)
    hasty, patient = replace(busy, patience=0.0), replace(busy, patience=10.0)
    assert outcome("ATR", hasty)["throughput"] < outcome("ATR", patient)["throughput"]
    done = [
        [h.seconds for h in e.host_metrics]
        for e in study.simulate_setting(study.make_placement("ATR", patient), patient)
        if isinstance(e, BatchCommitted)
    ]
    for host in zip(*done, strict=True):
        assert sum(host) <= 1.05 * (len(done) + patient.patience)


def test_more_than_one_host_does_more_than_one_and_both_beat_the_baselines():
    busy = replace(SMALL, rates=(15.0, 20.0), window=10.0, hosts=10, copies=5)
    got = {name: outcome(name, busy)["throughput"] for name in PLACEMENTS}
    for name in ("ATR", "CTR"):
        assert got[name] > max(got["Semantics-unaware"], got["Centralized"]), got
    assert got["CTR"] > got["CTR-unoptimized"], got


def test_machines_are_the_papers():
    assert all(
        1000 <= h.mips <= 5000 and 100 <= h.mbps <= 1000 and 500 <= h.memory_mb <= 1000
        for h in SMALL.host_capacities(50)
    )
    assert SMALL.costs.transfer_ms == 1 and SMALL.costs.probe_ms == 10 and REFERENCE_MIPS == 3000


@pytest.mark.parametrize(
    "experiment, values, rivals",
    [
        (figures.host_scalability, (4, 8), RIVALS),
        (figures.stream_number, (2, 3), VISITING),
        (figures.window_size, (2, 4), VISITING),
        (figures.join_selectivity, (0.1, 0.2), VISITING),
        (figures.arrival_burstiness, (0.0, 1.0), VISITING),
    ],
)
def test_an_experiment_has_a_row_for_each_x_placement_and_seed(experiment, values, rivals):
    found = experiment(2, 1, values, small)
    scanned = ALIGNED_OR_COORDINATED if rivals is VISITING else {}
    assert len(found) == len(values) * (len(rivals) + len(scanned))
    assert set(found["placement"]) == set(rivals)
    assert set(found.get("reading", [])) == set(study.READINGS if scanned else [])
    assert list(found.columns[:4]) == ["figure", "x", "placement", "seed"]
    table = study.seed_means(found)
    assert table.index.tolist() == list(values) and table.columns.tolist() == list(rivals)


def test_what_seeds_differ_by_is_told():
    found = figures.stream_number(2, 2, (2,), small)
    reported = study.seed_spread(found)
    assert len(reported) == len(found) / 2 and set(reported["seeds"]) == {2}
    assert (reported["least"] <= reported["mean"]).all() and (
        reported["mean"] <= reported["most"]
    ).all()
    assert (reported["least"] < reported["most"]).any() and "reading" in reported
    assert "reading" not in study.seed_spread(found.drop(columns="reading"))


def test_long_segments_of_a_three_way_join_cost_throughput():
    found = figures.segment_length(15, 1, (1, 9))
    by_length = found[found["streams"] == 3].set_index("x")["throughput"]
    assert by_length[9] < 0.5 * by_length[1]
    none = pd.DataFrame()
    reported = claims.length_claim(DiffusionFigures(found, {}, {}, {}, none, none), 2).setting
    assert (
        "segments of 1 and 9 s" in reported
        and "2 Poisson streams of 100 to 200 tuples/s, W" in reported
    )
    assert reported.endswith("; 15 s, after one window, results/s in the mean of seeds 0")


def test_results_since_the_start_never_fall():
    """Fig. 7 and 8 of Gu 2007."""
    found = figures.total_results(5.0, 5, 2)
    by_run = found.groupby(["placement", "seed"])["results"]
    assert by_run.apply(lambda r: r.is_monotonic_increasing).all()
    assert found["second"].max() == 9
    none = pd.DataFrame()
    f = DiffusionFigures(none, {60.0: found}, {}, {}, none, none)
    reported = claims.coordinated_results_check(f, "7", 60.0).setting
    assert (
        "(bound L on copies: 2, J, J/2 and no bound); J = 6 hosts drawn as in section 5" in reported
    )
    assert "3 Poisson streams of 2 to 8 tuples/s" in reported
    assert "W = 5 s" in reported and "of one window and 5 s, each of seeds 0 to 1" in reported
    assert "ATR" not in reported, "it is not in this row"
    ends = by_run.last().unstack("placement")
    assert f.final_results(60.0).loc["2 to 8"].to_dict() == ends.to_dict()


def test_the_time_of_a_plan_is_shared_out_over_its_tuples(monkeypatch):
    """Fig. 9 is per tuple: with twice the tuples, each takes about half the time."""
    clock = iter(range(10**6))
    monkeypatch.setattr(plans, "perf_counter", lambda: next(clock))
    found = plans.routing_time(5.0, 5, seed=1)
    assert (found.groupby("placement").size() > 5).all() and (found["micros"] > 0).all()
    rates = dict(window=5.0, rates=(2.0, 8.0), hosts=6, seconds=5, seed=1)
    came = [
        sum(batch) for batch in study.make_arrivals(DiffusionSetting(3, **rates)).batch_counts()
    ]
    atr = found[found["placement"] == "ATR"].set_index("second")["micros"]
    assert atr.to_dict() == {k: 1e6 / n for k, n in enumerate(came) if n}


def test_the_greedy_cover_is_exact_with_a_bound_on_copies_and_within_chvatals_without():
    found = plans.greedy_cover_ratios(
        replace(SMALL, hosts=12, window=10.0, seconds=20), (None, 0, 6)
    )
    assert found.groupby("copies").size().to_dict() == {"4": 18, "6": 18, "none": 18}
    assert (found["ratio"] >= 1 - 1e-6).all() and (found["ratio"] <= found["bound"] + 1e-9).all()
    worst = found.groupby("copies")["ratio"].max()
    assert worst["none"] > 1.01 and max(worst["4"], worst["6"]) < 1 + 1e-6


def test_a_run_from_the_command_line_tells_how_long_it_took(monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv",
        [
            "load_diffusion",
            "CTR",
            "--hosts",
            "4",
            "--streams",
            "2",
            "--window",
            "2",
            "--seconds",
            "3",
        ],
    )
    diffusion_program.main()
    assert re.fullmatch(
        r"CTR: \d+\.\d s \(measured\); throughput .*, stored 2 \(modelled\)\n",
        capsys.readouterr().out,
    )


def test_ten_thousand_hosts_are_simulated():
    many = DiffusionSetting(4, 5.0, hosts=10_000, seconds=5, length=1, copies=100)
    for name in ("ATR", "CTR"):
        assert outcome(name, many)["throughput"] > 0
