"""The claims of the studies fail for figures that contradict them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from braid.core.run_events import BatchPlanned, QueryAdded, QueryRemoved
from braid_lab.common.recorded_settings import record_values
from braid_lab.diffusion import claim_frames as frames
from braid_lab.diffusion import claims as gu
from braid_lab.diffusion import executed_claims
from braid_lab.diffusion import experiments as diffusion_experiments
from braid_lab.diffusion import tradeoff_claims as trades
from braid_lab.psp import claims as ring
from braid_lab.psp import contest_claims as contests
from braid_lab.psp import experiments as psp_experiments
from braid_lab.psp import rival_claims as scheme_comparison
from braid_lab.psp import scheme_comparison as psp_rivals
from braid_lab.shared_ring import claims as shared
from braid_lab.shared_ring import cost as shared_ring_cost
from braid_lab.shared_ring import experiments as shared_ring_experiments
from braid_lab.slices import chain_claims, live_chain
from braid_lab.slices import claims as chain
from braid_lab.slices import experiments as slices_experiments


def test_the_best_ring_is_neither_the_shortest_nor_the_longest() -> None:
    """Fig. 16.2 and Theorem 9; they fail if hops cost nothing."""
    times = psp_experiments.response_times(
        range(1, 240), (0.05, 0.5), hops=psp_experiments.HOPS[::4], sends=psp_experiments.SENDS
    )
    work = psp_experiments.count_ring_work((4, 6, 14, 16, 19))
    assert ring.interior_claim(work).holds == "under reading"
    found = ring.theorem_9_claim(times)
    assert found.holds == "under reading"
    assert "N_1 is the lesser in" in found.reason and "N_2 is the lesser in" in found.reason
    assert ring.response_growth_claim(work).holds == "yes"
    longer = ring.length_by_selectivity_claim(work)
    assert longer.holds == "no" and longer.reason
    free = work.assign(hops_modelled=0.0)
    assert ring.interior_claim(free).holds == ring.fourteen_nodes_claim(free).holds == "no"
    upside = times.assign(response_modelled=-times["response_modelled"])
    assert ring.theorem_9_claim(upside).holds == "no"
    even = work.assign(busy_counted=1.0)
    assert ring.response_growth_claim(even).holds == "no"


def contest(**factors: float) -> contests.Contest:
    """Return generated runs on 4 and 8 nodes; each scheme's figures are multiplied by its factor on
    8.
    """
    names = ("PSP", "PSP-D", "PSP-I", contests.SHORT, contests.LONG, contests.PAIR, contests.HALF)
    stored = (1.0, 1.0, 1.2, 2.0, 1.6, 2.0, 2.0)
    busy = (0.05, 0.05, 0.05, 0.3, 0.5, 0.2, 0.2)
    rows = []
    for n in (4, 8):
        for k, name in enumerate(names):
            f = factors.get(name.split(",")[0].replace("-", "_"), 1.0) if n == 8 else 1.0
            copies = n / 4 if name == contests.HALF else 1.0
            for join, pairs in (("small", 0.9), ("middle", 1.8)):
                work = busy[k] * (0.1 + pairs) * f
                figures = (100 * stored[k] * copies * f, 9.0, work, f, 1.0)
                rows.append((3, 0.05, n, name, join, 0, *figures))
    keys = ["streams", "sigma", "nodes", "scheme", "join", "seed"]
    counts = [f"{c}_modelled" for c in ("stored", "sent", "busy", "uneven", "hops")]
    runs = pd.DataFrame(rows, columns=[*keys, *counts])
    return contests.Contest(psp_rivals.record_schemes(runs, psp_experiments.RingSetting()))


@pytest.mark.parametrize(
    ("claim", "factors", "holds"),
    [
        (contests.one_copy_claim, {}, "yes"),
        (contests.one_copy_claim, {"PSP_D": 1.3}, "no"),
        (contests.late_purge_claim, {}, "yes"),
        (contests.late_purge_claim, {"PSP_I": 0.8}, "no"),
        (contests.copies_claim, {}, "yes"),
        (contests.copies_claim, {"CTR": 0.7}, "no"),
        (contests.atr_response_claim, {}, "yes"),
        (contests.atr_response_claim, {"ATR": 0.5}, "no"),
        (contests.ctr_response_claim, {"CTR": 0.9}, "yes"),
        (contests.ctr_response_claim, {}, "no"),
        (contests.ctr_state_claim, {}, "yes"),
        (contests.ctr_state_claim, {"CTR": 1.5}, "no"),
        (contests.less_work_claim, {}, "under reading"),
        (contests.less_work_claim, {"CTR": 0.2}, "no"),
        (contests.balanced_work_claim, {}, "under reading"),
        (contests.balanced_work_claim, {"PSP": 1.5}, "no"),
        (contests.ahead_of_ctr_claim, {}, "under reading"),
        (contests.ahead_of_ctr_claim, {"CTR": 0.2}, "no"),
        (contests.ahead_of_atr_claim, {}, "under reading"),
        (contests.ahead_of_atr_claim, {"ATR": 0.1}, "no"),
    ],
)
def test_each_claim_about_the_rivals_of_the_ring_can_fail(
    claim: Any, factors: dict[str, float], holds: str
) -> None:
    assert claim(contest(**factors)).holds == holds


def test_state_that_does_not_grow_breaks_the_claim_of_15_1() -> None:
    def make_states(left: list[float]) -> pd.DataFrame:
        rows = [(n, 10.0, 0, 5.0, x, 30.0) for n, x in zip((4, 8), left, strict=True)]
        names = ["nodes", "segment", "seed", "live_modelled", "left_modelled", "formula_modelled"]
        return psp_experiments.RingSetting().record_run(pd.DataFrame(rows, columns=names), spare=3)

    assert (
        scheme_comparison.atr_state_growth_claim(make_states([10.0, 20.0])).holds == "under reading"
    )
    assert scheme_comparison.atr_state_growth_claim(make_states([10.0, 12.0])).holds == "no"
    assert scheme_comparison.atr_memory_formula_claim(make_states([10.0, 20.0])).holds == "no"
    assert scheme_comparison.atr_memory_formula_claim(make_states([28.0, 30.0])).holds == "yes"


def test_more_nodes_that_process_less_at_once_break_the_claim_of_16_3() -> None:
    def many(*took: float) -> pd.DataFrame:
        rows = [(n, "N", 0.1, "small", 0.1, 0, x) for n, x in zip((4, 8, 12), took, strict=False)]
        names = ["nodes", "tuples", "sigma", "join", "hop", "seed", "response_modelled"]
        frame = pd.DataFrame(rows, columns=names)
        return psp_experiments.RingSetting().record_run(frame, hop_ms=100.0)

    assert scheme_comparison.concurrency_claim(many(1.0, 1.5, 2.0)).holds == "under reading"
    assert scheme_comparison.concurrency_claim(many(1.0, 2.5, 4.0)).holds == "no", (
        "fewer are served"
    )
    assert scheme_comparison.concurrency_claim(many(1.0, 2.5, 3.0)).holds == "no", "fewer at first"
    assert scheme_comparison.concurrency_claim(many(1.0, 0.9, 0.8)).holds == "no", (
        "they answer sooner"
    )
    assert scheme_comparison.concurrency_claim(many(1.0)).holds == "not tried", (
        "nothing is beside it"
    )


def outcomes(ratio: np.ndarray, **factors: float) -> pd.DataFrame:
    """Return an experiment of Gu's: CTR over ATR by x, other placements by factors of ATR."""
    rows = []
    for x, r in enumerate(ratio, 2):
        for name in {
            **diffusion_experiments.RIVALS,
            **diffusion_experiments.ALIGNED_OR_COORDINATED,
        }:
            bounds = (frames.TWO, frames.ROOT, frames.HALF, frames.ALL, frames.PRINTED)
            f = r if name in bounds else factors.get(name.partition(",")[0], 0.5)
            through = 10.0 * x * (1.0 if name == "ATR" else f)
            sent = 1.0 if name in frames.BOUNDS else 2.0
            rows += [
                ("", x, name, 0, through, 1.0, sent, reading)
                for reading in diffusion_experiments.READINGS
            ]
    columns = ["figure", "x", "placement", "seed", "throughput", "work", "mbits", "reading"]
    return record_default(pd.DataFrame(rows, columns=columns))


def record_default(frame: pd.DataFrame) -> pd.DataFrame:
    """Record the default setting of Gu's experiments with generated outcomes."""
    default, rivals = diffusion_experiments.DiffusionSetting(), diffusion_experiments.RIVALS
    return diffusion_experiments.record_settings(frame, [default], rivals)


def figures(number: str, ratio: list[float], **factors: float) -> frames.DiffusionFigures:
    none = pd.DataFrame()
    of = {number: outcomes(np.array(ratio), **factors)}
    return frames.DiffusionFigures(none, {}, {}, of, none, none)


@pytest.mark.parametrize(
    ("claim", "number", "good", "bad"),
    [
        (trades.selectivity_gains_check, "15", [1.2, 0.9], [0.9, 1.2]),
        (trades.bursts_check, "16", [0.9, 1.1], [1.1, 0.9]),
        (trades.streams_check, "13", [1.0, 0.9, 1.1], [1.0, 1.1, 0.9]),
        (gu.coordinated_scale_claim, "11, 12", [1.0, 1.1], [1.0, 1.0]),
        (gu.set_covers_check, "11, 12", [1.0, 1.0], [1.0, 0.4]),
        (gu.above_existing_schemes_claim, "11, 12", [1.0, 1.0], [1.0, 0.4]),
    ],
)
def test_each_check_of_load_diffusion_can_fail(
    claim: Any, number: str, good: list[float], bad: list[float]
) -> None:
    assert claim(figures(number, good)).holds in ("yes", "under reading")
    assert claim(figures(number, bad)).holds == "no"


@pytest.mark.parametrize(
    ("more", "holds", "reason"),
    [
        (
            [0.9, 1.2],
            "under reading",
            "for 1 of 2 readings: T0 = 5 s (1.2, 1.2); not for T0 = 1 s (0.9, 0.9); "
            "the paper names no T0",
        ),
        ([1.2, 1.2], "yes", "T0 = 1 s (1.2, 1.2); T0 = 5 s (1.2, 1.2)"),
        (
            [0.9, 1.0],
            "no",
            '"The optimizations are effective" (section 5): from none of these T0: T0 = 1 s (0.9, 0.9); T0 = 5 s (1, 1)',
        ),
    ],
)
def test_a_search_is_judged_by_the_length_that_it_begins_with(
    more: list[float], holds: str, reason: str
) -> None:
    """Fig. 11 of Gu 2007, ATR at its ratio to ATR-unoptimized by T0, on 10 hosts and on 20."""
    columns = ["start", "x", "placement", "throughput", "mbits"]
    rows = [
        (t, j, name, 10.0 * v, v)
        for t, ratio in zip((1, 5), more, strict=True)
        for j in (10, 20)
        for name, v in (("ATR", ratio), ("ATR-unoptimized", 1.0))
    ]
    none, tuned = pd.DataFrame(), record_default(pd.DataFrame(rows, columns=columns))
    f = frames.DiffusionFigures(none, {}, {}, {}, none, tuned)
    found = gu.optimized_check(f)
    assert (found.holds, found.reason) == (holds, reason)
    assert gu.atr_sends_claim(f).holds == ("under reading" if min(more) <= 0.9 else "no")


def test_an_even_comparison_is_called_so() -> None:
    even = gu.window_claim(
        frames.DiffusionFigures(
            pd.DataFrame(),
            {w: total(even=True) for w in (60.0, 120.0)},
            {},
            {},
            pd.DataFrame(),
            pd.DataFrame(),
        )
    )
    assert even.holds == "not tried" and "for none of these L" in even.reason


@pytest.mark.parametrize(
    ("ratio", "holds", "reason"),
    [
        (
            [0.9, 1.0, 1.1],
            "under reading",
            "for 10 of 10 readings: L = 2, per host visited (0.9, 1.1)",
        ),
        ([1.1, 1.0, 0.9], "no", f"{frames.QUOTES['14']} (section 5): {frames.NONE}: L = 2, "),
        ([1.0, 1.0, 1.0], "not tried", f"{frames.EVEN} 1 to 1"),
    ],
)
def test_a_trade_off_holds_under_all_readings_or_none(
    ratio: list[float], holds: str, reason: str
) -> None:
    """Fig. 14 of Gu 2007: ATR is better for small windows, CTR for large ones."""
    found = trades.window_size_claim(figures("14", ratio))
    assert found.holds == holds and found.reason.startswith(reason)


def test_a_trade_off_that_holds_for_one_bound_names_it() -> None:
    """Fig. 14 of Gu 2007, generated so that only L = J/2 crosses, whatever a probe costs."""
    f = figures("14", [1.1, 1.0, 0.9])
    f.outcomes["14"].loc[f.outcomes["14"]["placement"] == frames.HALF, "throughput"] = [
        10.0 * x * r
        for x, r in ((2, 0.9), (3, 1.0), (4, 1.1))
        for _ in diffusion_experiments.READINGS
    ]
    found = trades.window_size_claim(f)
    assert found.holds == "under reading"
    both = "; ".join(f"L = J/2, {reading} (0.9, 1.1)" for reading in diffusion_experiments.READINGS)
    assert found.reason.startswith(f"for 2 of 10 readings: {both}; not for L = 2, ")
    assert found.reason.endswith(f" (1.1, 0.9); {trades.OURS['14']}")


def total(even: bool) -> pd.DataFrame:
    rows = [
        (0, name, 100, "2 to 8", 0)
        for name in {
            **diffusion_experiments.RIVALS,
            **diffusion_experiments.ALIGNED_OR_COORDINATED,
            **diffusion_experiments.VISITING,
        }
    ]
    columns = ["second", "placement", "results", "rates", "seed"]
    return record_default(pd.DataFrame(rows, columns=columns))


def test_a_run_that_is_not_its_model_breaks_the_claims() -> None:
    counts = ("tuples sent to hosts", "replicas stored at the end", "results")
    rows = [
        (
            name,
            what,
            90 if name == frames.UNAWARE else 100,
            100,
            0.9 if name == frames.UNAWARE else 1.0,
        )
        for name in ("ATR", "CTR", frames.UNAWARE)
        for what in counts
    ]
    columns = ["placement", "count", "measured", "modelled", "ratio"]
    both = record_default(pd.DataFrame(rows, columns=columns)).assign(**{"by L": 1.0})
    given = dict(both=both, window=4.0, expected=100, adaptations={"T": 1, "master": 1})
    assert {c.holds for c in gu.CLAIMS.test_claims(**given)} == {"yes"}
    fixed = executed_claims.same_results_claim(both, 100, {"T": 0, "master": 1})
    assert fixed.holds == "not tried", "as ATR-unoptimized"
    both.loc[both["placement"] == "CTR", ["measured", "ratio"]] = [80, 0.8]
    assert [c.holds for c in gu.CLAIMS.test_claims(**given)].count("no") == 2
    both.loc[both["placement"] == "CTR", ["measured", "ratio", "by L"]] = [100, 1.0, 0.5]
    assert [c.holds for c in gu.CLAIMS.test_claims(**given)].count("no") == 2, "as modelled, not L"


def test_what_the_chain_saves_and_does_not() -> None:
    """Fig. 5.8 to 6.7, closed forms; they fail for a chain that holds twice as much."""
    memory, trees = slices_experiments.memory_savings(), slices_experiments.tree_ratios()
    assert chain.always_saves_claim(memory, "Fig. 5.8", "memory").holds == "yes"
    lost = memory.assign(saved_modelled=2 * memory["saved_modelled"] - 1)
    assert chain.always_saves_claim(lost, "Fig. 5.8", "memory").holds == "no"
    assert chain.tree_memory_claim(trees).holds == "yes"
    twice = trees.assign(ratio_modelled=2 * trees["ratio_modelled"])
    assert chain.tree_memory_claim(twice).holds == "no"
    assert chain.one_state_claim().holds == chain.tree_example_claim().holds == "yes"
    assert chain_claims.two_slices_claim().holds == "no"


FLIGHTS = {"queries": 1, "streams": 2, "days": 3, "month": "May", "batches": 2, "hosts": 4}
FLIGHTS |= {"window_hours": [1.0, 24.0], "selecting": 0}
"""Values that a run of the shared ring records."""
ANSWERS = shared_ring_experiments.QueryAnswers(
    {"q": Counter({(1, 2): 1})}, {"q": Counter({(1, 2): 1})}, ("a", "b"), FLIGHTS
)


def test_a_result_that_is_lost_or_made_twice_breaks_theorem_11() -> None:
    assert shared.results_claim(ANSWERS).holds == "yes"
    assert shared.each_result_once_claim(ANSWERS, {"results": 1}).holds == "under reading"
    other = replace(ANSWERS, actual={"q": Counter({(3, 4): 1})})
    assert shared.each_result_once_claim(other, {"results": 1}).holds == "no"
    for got in (Counter(), Counter({(1, 2): 2})):
        wrong = replace(ANSWERS, actual={"q": got})
        assert shared.results_claim(wrong).holds == "no"
    assert shared.each_result_once_claim(ANSWERS, {"results": 2}).holds == "no"


def test_state_that_is_given_up_too_early_breaks_theorem_12() -> None:
    use = pd.DataFrame({"held": [5, 6], "of use": [5, 5], 1: [5, 5], 2: [6, 6]})
    record_values(use, **FLIGHTS)
    assert "8 hours longer" in shared.state_claim(use, 4.0).reason
    assert shared.state_claim(use, 4.0).holds == "under reading"
    assert shared.state_claim(use.assign(held=4), 4.0).holds == "no"
    assert shared.state_claim(use.assign(held=7), 4.0).holds == "no", "none that nothing needs"


def test_sharing_that_saves_nothing_breaks_the_claims_of_18_1() -> None:
    names = ["queries", "held_mean", "of use", "probed", "compared"]
    rows = [("all", 5.0, 4.0, 9.0, 8.0), ("a", 3.0, 3.0, 5.0, 5.0), ("b", 3.0, 3.0, 5.0, 5.0)]
    costs = record_values(pd.DataFrame(rows, columns=names), **FLIGHTS)
    probes = partial(shared.least_work_claim, what="probed", name="probes")
    pairs = partial(shared.least_work_claim, what="compared", name="pairs")
    made = (shared.least_state_claim, probes, pairs)
    assert {claim(shared.IsolatedCosts(costs)).holds for claim in made} == {"yes"}
    assert {claim(shared.IsolatedCosts(costs[:2])).holds for claim in made} == {"no"}


def test_a_ring_whose_last_node_always_gains_breaks_eq_21_2() -> None:
    lengths = shared_ring_cost.length_table()
    assert shared.length_claim(lengths).holds == "yes"
    falling = lengths.assign(latency_modelled=1 / lengths["nodes"])
    assert shared.length_claim(falling).holds == "no"


def test_a_fullest_host_with_much_more_than_the_mean_breaks_the_claims_of_21_3() -> None:
    def balances(evenly: float, as_run: float) -> pd.DataFrame:
        ages = [shared_ring_experiments.EVENLY, shared_ring_experiments.AS_RUN]
        table = pd.DataFrame({"batch": 0, "ages": ages, "ratio": [evenly, as_run], "seed": 0})
        return record_values(table, **FLIGHTS, rate=20.0, windows=(4.0, 8.0), passing=0.2, seed=0)

    assert shared.balance_claim(balances(2.0, 1.4)).holds == "under reading"
    assert shared.balance_claim(balances(2.0, 1.6)).holds == "no"
    assert shared.balance_claim(balances(1.2, 1.4)).holds == "no", "equal stretches are better"


def test_the_batches_in_which_a_query_was_served() -> None:
    def planned(batch: int) -> BatchPlanned:
        return BatchPlanned(batch, (), (), {})

    come = QueryAdded(2, "late", 0, {}, {}, {})
    events = [planned(0), planned(1), come, planned(2), planned(3), QueryRemoved(4, "late")]
    assert live_chain.served_batches(events, "late", 6) == range(2, 4)
    assert live_chain.served_batches(events, "first", 6) == range(0, 6)


def test_changes_are_made_while_the_run_is_held_at_its_share() -> None:
    """A run that plans a batch whenever it is polled."""
    run = SimpleNamespace(planned=0, held=True, status={"batch": 0})

    def events() -> list[Any]:
        run.planned += not run.held
        return [BatchPlanned(k, (), (), {}) for k in range(run.planned)]

    run.events, run.awaitTermination = events, lambda timeout: False
    run.pause = lambda: setattr(run, "held", True)
    run.unpause = lambda: setattr(run, "held", False)
    seen: list[tuple[int, bool]] = []
    note = lambda: seen.append((run.planned, run.held))  # noqa: E731
    live_chain.apply_changes(run, 10, {0.2: note, 0.5: note}, lambda text: None)  # type: ignore[arg-type]
    assert seen == [(2, True), (5, True)] and not run.held
