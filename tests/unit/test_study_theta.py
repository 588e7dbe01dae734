"""Table 2 and Fig. 5 of Elseidy 2014 on the modelled cluster: input of TPC-H, output of the
plans.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from braid.core.run_events import BatchCommitted
from braid_lab.launches import recorded_runs
from braid_lab.theta import claims as theta_claims
from braid_lab.theta import cluster_model, figure_tables, join_inputs
from braid_lab.theta import figures as theta_figures
from braid_lab.theta.cluster_model import JOINER, ModelledMachine, simulate_progress
from braid_lab.theta.join_inputs import JoinInput, count_input

FEW = JoinInput(
    "made up", 100, 6400, 3200, (np.array([40, 30, 20, 10]), np.array([3200, 1600, 1600, 0]))
)


def test_counts_are_those_of_the_runs_on_spark():
    """Table 1: tuples and results of EQ5 as recorded, with and without skew."""
    for z in recorded_runs.SKEWS:
        events = recorded_runs.recorded_competitors()[f"SHJ, z={z}"]
        done = [e for e in events if isinstance(e, BatchCommitted)]
        of = count_input("EQ5", float(z))
        assert (of.r_tuples, of.s_tuples) == done[-1].total_received_tuples
        assert of.results == sum(e.results for e in done)


def test_joins_have_the_results_of_the_original_system():
    """Table 1: the original results of EQ5 and EQ7 at scale factor 0.01 without skew."""
    counted = [count_input.__wrapped__(query).results for query in ("EQ5", "EQ7")]
    assert counted == [11_995, 1_217]


def test_a_hash_gives_every_value_to_one_host_and_bands_have_none():
    r, s, found = FEW.hash_distribution(3, seed=1)
    assert (r.sum(), s.sum()) == (100, 6400) and found.sum() == 40 * 3200 + 30 * 1600 + 20 * 1600
    assert len(r) == len(s) == 3
    with pytest.raises(ValueError, match="no equality"):
        JoinInput("BCI", 1, 1, 1).hash_distribution(4)
    with pytest.raises(ValueError, match="no join is named 'EQ6'; there are: EQ5, EQ7, BNCI, BCI"):
        count_input("EQ6")


def test_a_key_of_a_larger_scale_has_more_values_or_few() -> None:
    """100,000 suppliers at 10 GB; at z = 1 the most frequent one has 8.3 % of the lines."""
    of = count_input("EQ5")
    whole = join_inputs.spread_keys(of, 1000.0, 1.0)
    (r, s) = whole.values
    assert len(r) == 100_000 and r.sum() == of.r_tuples * 1000 and s.sum() == of.s_tuples * 1000
    assert s.max() / s.sum() == pytest.approx(0.083, abs=0.001)
    few = join_inputs.spread_keys(of, 1000.0, 1.0, 25, seed=1)
    assert (few.values[1] > 0).sum() == 25 and few.results == (few.values[0] * few.values[1]).sum()
    assert few.values[1].max() / s.sum() == pytest.approx(0.262, abs=0.001)
    for values in (0, 100_001):
        with pytest.raises(ValueError, match=f"values is {values}; S has from 1 to 100000 values"):
            join_inputs.spread_keys(of, 1000.0, 1.0, values)
    with pytest.raises(ValueError, match="BCI is no equality; it has no key to spread"):
        join_inputs.spread_keys(JoinInput("BCI", 1, 1, 1), 1.0, 0.0)


def test_a_batch_takes_as_long_as_its_busiest_joiner_and_disk_longer():
    """The square grid stores R/n + S/m on each of four hosts, at 21 microseconds a tuple."""
    run = simulate_progress("StaticMid", FEW, 1000.0, 4, 4)
    each = 100_000 / 2 + 6_400_000 / 2
    last = run.iloc[-1]
    assert last["stored_mean"] == pytest.approx(each) and not last["overflow"]
    took, made = each * JOINER.tuple_us / 1e6, 3_200_000 / 4 * JOINER.result_us / 1e6
    assert last["seconds_modelled"] == pytest.approx(took + made, rel=0.005)
    assert last["results_modelled"] == pytest.approx(3200 * 1000, rel=1e-6)
    slow = simulate_progress("StaticMid", FEW, 1000.0, 4, 4, ModelledMachine(memory_mb=0.0)).iloc[
        -1
    ]
    assert slow["overflow"]
    assert slow["seconds_modelled"] == pytest.approx(JOINER.disk * took + made, rel=0.005)


def test_skew_loads_one_host_of_shj_and_results_wait_only_while_tuples_migrate():
    shj = simulate_progress("SHJ", FEW, 1000.0, 4, 4).iloc[-1]
    assert shj["stored_max"] > 1.9 * shj["stored_mean"]
    dynamic = simulate_progress("Dynamic", FEW, 1000.0, 16, 8)
    moving, still = (dynamic[dynamic["migrating"] == m] for m in (True, False))
    assert moving["moved"].sum() > 0 == still["moved"].sum()
    assert moving["latency_ms_modelled"].max() > still["latency_ms_modelled"].max()
    with pytest.raises(ValueError, match="no operator is named 'Flux'"):
        cluster_model.make_operator("Flux", 4, (1, 1))


def test_the_tables_have_every_query_operator_and_skew():
    table = theta_figures.table_2(0.01, 1, ("Z0", "Z4"), batches=3)
    assert len(table) == 2 * 4 * 2 and (table["seconds_modelled"] > 0).all()
    assert (
        table.set_index(["query", "operator", "skew"]).loc[("EQ7", "SHJ", "Z4"), "printed"] == 6385
    )
    runs = theta_figures.performance_runs(0.01, 1, 16, 3)
    ends = theta_figures.final_batches(runs)
    assert len(ends) == 2 * (3 + 2 * 3) + 2 * 3 and set(ends["query"]) == set(join_inputs.QUERIES)
    tables = {"runs": runs, "mapping_runs": theta_figures.mapping_curves(16, 3, scale=0.01)}
    tables["scaling_runs"] = theta_figures.weak_scaling((16,), 3, 0.01)
    tables["disk"] = figure_tables.vary_disk((16,), 3, 0.01)
    tables["fluctuation_runs"] = theta_figures.fluctuation_progress((2,), 16, growth=2)
    tables["few_overflows"] = theta_figures.overflow_runs(0.01, (10, 25), seeds=3)
    tables["hash_ranges"] = figure_tables.vary_key_values(0.01, 3, (10, 25), hosts=16)
    tables["result_ranges"] = figure_tables.vary_result_seconds(0.01, 3, hosts=16)
    assert tables["few_overflows"].shape == (2 * 3, 5) and len(tables["hash_ranges"]) == 2 * 2 * 3
    assert all(
        isinstance(t, pd.DataFrame)
        for _, p in theta_figures.figure_curves(tables).values()
        for t in p.values()
    )
    assert len(theta_figures.figure_bars(tables)) == 5
    square = theta_claims.square_check(table)
    assert square.holds == theta_claims.overflow_check(table).holds == "yes"
    assert "10 GB of TPC-H, counted at scale 0.01, in 3 batches" in square.setting
    assert "16 machines of 2 GB (190 bytes a tuple), Z0 to Z4; seeds: 1; a tuple" in square.setting


def test_table_2_is_shown_without_what_one_seed_cannot_tell():
    of = dict(query="EQ5", operator="SHJ", skew="Z4", overflow=0.5, printed=79.0)
    one = pd.DataFrame(
        [{**of, "seconds_modelled": 81.0, "least_modelled": 81.0, "most_modelled": 81.0}]
    )
    columns = ["query", "operator", "skew", "seconds (modelled)", "least", "most"]
    last = ["memory full, of runs", "seconds (printed)"]
    found = theta_figures.format_table_2(one)
    assert {*found.columns} == {*columns, *last} - {"least", "most"}
    assert found["memory full, of runs"].tolist() == ["50%"]
    assert {*theta_figures.format_table_2(one.assign(most_modelled=90.0)).columns} == {
        *columns,
        *last,
    }
