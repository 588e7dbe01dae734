"""Faults of load shedding (Gedik 2007)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from braid.papers.shedding.shed import Method, Shed
from braid_lab.common.recorded_settings import concat_runs, record_values
from braid_lab.shedding import claims as gedik
from braid_lab.shedding import experiments as study
from braid_lab.shedding import measured as measured
from braid_lab.shedding import (
    model_claims,
    policy_figures,
    policy_runs,
    steady_claims,
    utility_figures,
)
from braid_lab.shedding.paper_algorithms import newest_output_share
from braid_lab.workloads.set_streams import SetStreams

from mutations import Mutation, Tries, cached_run, run_in_process

BOTH = (0.6, 0.8)
"""Skews of items."""


FEW = 20_000.0
"""Pairs a second of short runs, at a tenth of the paper's rates."""


@cache
def small(kappa: float, shift: float = 5 / 8, windows: tuple[float, float] = (8.0, 8.0)) -> Any:
    """Return tuples of a short run: 90 tuples/s in the last third and before 30."""
    sets = SetStreams(
        (30.0, 30.0),
        45.0,
        window=max(windows),
        kappa=kappa,
        shift=shift,
        changes=((30.0, (90.0, 90.0)),),
    )
    return policy_runs.SetTuples(sets, windows)


def through(
    kappas: tuple[float, ...], shift: float, *methods: str, window: float = 8.0
) -> pd.DataFrame:
    """Return Fig. 9, 10, 12 and 13 on short runs: a row as of ``policy_figures.burst_runs``."""
    windows = (window, window) if shift else (window, 0.0)
    rows = []
    for kappa in kappas:
        tuples = small(kappa, shift, windows)
        full = tuples.count_all()
        for method in ("drop", *methods):
            shed = policy_figures.make_shed(method, 12_000.0, 1.0)
            done = policy_runs.PolicyRun(tuples, shed).run_batches()
            for phase, at in (
                ("300/s", slice(32, 38)),
                ("500/s", slice(39, 45)),
                ("burst", slice(30, 45)),
                ("all", slice(8, 45)),
            ):
                pairs, found = (sum(getattr(b, n) for b in done[at]) for n in ("pairs", "results"))
                recall = found / full[at].sum()
                rows.append((kappa, window, phase, method, found, recall, found / pairs))
    names = ["kappa", "window", "phase", "method", "results_counted", "recall_counted", "rate"]
    table = pd.DataFrame(rows, columns=names)
    dropped = table[table["method"] == "drop"].set_index(["kappa", "phase"])["rate"]
    at = pd.MultiIndex.from_frame(table[["kappa", "phase"]])
    gained = table.assign(gain_counted=table["rate"].to_numpy() / dropped[at].to_numpy() - 1)
    ran = policy_runs.list_settings(tuples, shed)
    return record_values(gained, **ran, kappas=kappas, seeds=0)


ALL = ("partial", "time", "direction")


def chosen() -> Tries:
    """Return Fig. 12 and section 4: which pairs the policy processes, on short runs."""
    runs = cache(lambda: through((0.8,), 5 / 8, *ALL))
    newest = cache(lambda: through((0.8,), 0.0, "partial"))
    return [
        lambda: gedik.order_claim(runs()),
        lambda: gedik.printed_gains_claim(
            *2 * [policy_figures.burst_runs((0.44,), methods=ALL, scale=0.4)]
        ),
        lambda: gedik.partial_processing_claim(runs(), newest()),
    ]


OFTEN = SetStreams((60.0, 60.0), 40.0, window=8.0, kappa=0.6, theta=2)
"""Streams that match often, so that a short run has many results."""
OFTEN_TUPLES = policy_runs.SetTuples(OFTEN, (8.0, 8.0))


def valued() -> Tries:
    """Return Fig. 16 and 17 on short runs, at few tuples a second."""

    def gain(values: Any, frequencies: Any, *rest: Any) -> float:
        tuples, worth = OFTEN_TUPLES, (list(values), list(frequencies))
        reported, untold = (
            sum(
                b.utility
                for b in policy_runs.PolicyRun(
                    tuples, policy_figures.make_shed("selective", 3_000.0, 1.0), worth, typed
                ).run_batches()[10:]
            )
            for typed in (True, False)
        )
        return reported / untold - 1

    with patch("braid_lab.shedding.utility_figures._compute_utility_gain", gain):
        utility = utility_figures.utility_runs(kappas=(0.6,))
        types = utility_figures.type_runs((2, 3, 5, 10, 40), (10.0,), kappas=(0.6,))
    reported = gedik.CLAIMS.test_claims(utility=utility, types=types)
    return [lambda: reported]


def followed() -> Tries:
    """Return Fig. 8 by the policy, on a fifth of the rates of the paper."""
    runs = cache(lambda: policy_figures.burst_fractions(scale=0.2))
    burst = study.adaptation_curves()
    return [
        lambda: gedik.burst_claim(runs()),
        lambda: gedik.forward_claim(runs(), burst),
    ]


def directed() -> Tries:
    """Return Fig. 11: which window the policy reduces, at few tuples a second."""
    return [lambda: gedik.direction_claim(policy_figures.direction_runs(0.8, rate=25.0))]


def windowed() -> Tries:
    """Return Fig. 1 and 5: the output of a part of a window, by the model."""
    best = cache(study.optimality_table)
    return [
        lambda: model_claims.reduction_claim(study.window_reduction()),
        lambda: model_claims.load_claim(best()),
        lambda: model_claims.skew_claim(best()),
        lambda: model_claims.size_claim(best()),
    ]


def dropped() -> Tries:
    """Return Fig. 7 with an index."""
    return [lambda: gedik.CLAIMS.test_claims(drops=study.drop_rates())]


def admitted() -> Tries:
    """Return Fig. 7 without an index, at two fifths of the rate and the paper's r."""
    return [lambda: gedik.plain_drops_claim(policy_figures.drop_runs(scale=0.4))]


def peaked() -> Tries:
    """Return Fig. 6."""
    return [lambda: model_claims.density_claim(study.density_curves(BOTH))]


def partly() -> Tries:
    """Return Fig. 9, 10 and 13 on short runs, for two skews; the last while rates are raised."""
    newest = cache(lambda: through(BOTH, 0.0, "partial"))
    wider = cache(lambda: concat_runs([newest(), through(BOTH, 0.0, "partial", window=16.0)]))
    return [
        lambda: gedik.newest_claim(newest()),
        lambda: gedik.growth_claim(newest(), wider()),
        lambda: gedik.skewed_claim(
            through(BOTH, 5 / 8, *ALL).query("phase == 'burst'").assign(phase="all")
        ),
    ]


def cut() -> Tries:
    """Return Fig. 14 without an index, at few tuples a second that match often."""
    sets = SetStreams((30.0, 30.0), 60.0, kappa=0.8, theta=2)
    tuples = policy_runs.SetTuples(sets, (20.0, 20.0))
    with patch("braid_lab.shedding.policy_figures.steady_tuples", lambda *given: tuples):
        found = policy_figures.basic_window_runs((1, 2, 10, 20), (0.8,), pairs=3_000.0)
    return [lambda: steady_claims.small_basic_windows_claim(found)]


def indexed() -> Tries:
    """Return Fig. 14 with an index, modelled."""
    return [lambda: gedik.CLAIMS.test_claims(basic_windows=study.recall_by_basic_windows())]


def gained() -> Tries:
    """Return Fig. 15, at few tuples a second and the paper's r."""
    with patch("braid_lab.shedding.policy_figures.CAPACITY", 8_000.0):
        few = policy_figures.gain_runs((40.0, 100.0))
    gains = few.assign(rate=5 * few["rate"])
    return [lambda: gedik.CLAIMS.test_claims(gains=gains)]


SHEDS: tuple[Method, ...] = ("selective", "uniform", "drop")
SETS = SetStreams((24.0, 24.0), seconds=16.0, step=2.0, window=8.0, kappa=1.0, theta=2)


def results(method: Method | None) -> dict[str, float]:
    """Return the results of a run on SETS in this process, with a quarter of the pairs or all
    (None).
    """
    shed = None if method is None else Shed(fraction=0.25, method=method, basic_window="1 second")
    tables, spans = SETS.make_tables(), {"n": "8 seconds", "m": "8 seconds"}

    def ran(run: Any) -> dict[str, float]:
        if shed is None:
            return {"found": run.results().num_rows}
        estimates = run.estimate_results().iloc[-1]
        shown = {"found": "results", "estimated": "estimated_results", "error": "error_95"}
        return {name: float(estimates[column]) for name, column in shown.items()}

    return cached_run(
        (method or "full", SETS),
        lambda: run_in_process(ran, tables, SETS.condition, None, spans, shed=shed),
    )


def weighed() -> Tries:
    """Return real pairs: generated sets instead of the flights of notebook 06."""

    def legs() -> measured.FlightComparison:
        truth = results(None)["found"]
        rows = [
            {"condition": condition, "method": m, "in truth": truth}
            | (of := results(m))
            | {"found of all": of["found"] / truth}
            for condition in ("tags", "tail number")
            for m in SHEDS
        ]
        ran = {
            "days": 0,
            "batches": 8,
            "fraction": 0.25,
            "gamma": 0.3,
            "basic": 1 / 3600,
            "month": "",
        }
        ran |= {"windows": "8 seconds", "tags": SETS.condition, "equality": SETS.condition}
        found = record_values(pd.DataFrame(rows), **ran)
        return measured.FlightComparison(found, pd.DataFrame(), [])

    found = cache(legs)
    return [
        lambda: measured.selective_shedding_claim(found()),
        lambda: measured.estimate_claim(found()),
    ]


def oldest(found: Any) -> Any:
    """Return the oldest part of a window."""
    return lambda f, share: newest_output_share(f[::-1], share)


def still(likeness: Any) -> Any:
    """Return items with constant popularity, so that age has no effect."""
    return lambda *given: np.full_like(of := likeness(*given), of[0])


def oldest_first(values: Any) -> Any:
    """Return a policy whose rate adaptation processes the oldest part of a window."""

    def fault(self: Any, typed: Any) -> Any:
        found = values(self, typed)
        return -found if self.shed.method == "partial" else found

    return fault


def by_age(values: Any) -> Any:
    """Return a policy whose rate adaptation processes what has been learned to match."""

    def fault(self: Any, typed: Any) -> Any:
        asked = self.shed
        self.shed = replace(asked, method="time")
        found = values(self, typed)
        self.shed = asked
        return found

    return fault


def unlearned(outputs: Any) -> Any:
    """Return a profile in which all ages are alike."""
    return lambda self, items: dict.fromkeys(items, 1.0)


def equally_frequent(frequencies: Any) -> Any:
    """Return a profile in which all types are equally frequent."""

    def fault(self: Any, *given: Any) -> Any:
        found = frequencies(self, *given)
        return tuple(1 / len(found) for _ in found)

    return fault


def worst_first(fill: Any) -> Any:
    """Return a knapsack that prefers the lowest value."""
    return lambda values, *rest: fill(-values, *rest)


def turned_round(outputs: Any) -> Any:
    """Exchange the more and the less useful window."""
    return lambda self, way: -outputs(self, way)


def likelier(draws: Any) -> Any:
    """Draw tuples more often than their share."""
    return lambda numbers, block: draws(numbers, block) ** 3


NEWEST_MATCH = "rate adaptation improves the output rate"
GROWS = "the gain of rate adaptation grows with skew"

MUTATIONS = [
    Mutation(
        "the oldest part of a window is kept",
        "braid_lab.shedding.paper_algorithms.newest_output_share",
        oldest,
        windowed,
        ("keeping the newest part of a window sheds",),
    ),
    Mutation(
        "work that is not bound to basic windows",
        "braid_lab.shedding.paper_algorithms.output_optimality",
        lambda phi: lambda f, basic, share: 1.0,
        windowed,
        (
            "optimality falls with less CPU",
            "optimality falls as matches are more skewed",
            "small basic windows are better",
        ),
    ),
    Mutation(
        "items whose popularity stands still",
        "braid_lab.workloads.set_streams.overlap_probabilities",
        still,
        peaked,
        ("matches peak within the window",),
    ),
    Mutation(
        "one stream alone is dropped",
        "braid_lab.shedding.experiments.retained_share",
        lambda kept: lambda fits: min(1.0, fits),
        dropped,
        ("with an index about a quarter is dropped",),
    ),
    Mutation(
        "tuples that are kept, whatever fits",
        "braid.papers.shedding.budget.Budget.choose_fraction",
        lambda choose: lambda self, *given: (1.0, True),
        admitted,
        ("without an index about half is dropped",),
    ),
    Mutation(
        "lists by identifier that can stop within a basic window",
        "braid_lab.shedding.experiments.processed_output",
        lambda processed: lambda ranked, fits, parted: processed(ranked, fits, True),
        indexed,
        ("lists by identifier give less",),
    ),
    Mutation(
        "nothing is learned of ages, on made-up sets for the flights",
        "braid.papers.shedding.productivity_profile.ProductivityProfile.matches_per_pair",
        lambda outputs: lambda self, items: dict.fromkeys(items, 1.0),
        weighed,
        ("selective processing gives significantly more",),
    ),
    Mutation(
        "tuples that are drawn more often than their share, on made-up sets for the flights",
        "braid.kernels.shedding_sampler.draw_numbers",
        likelier,
        weighed,
        ("weights estimate what the full join has",),
    ),
    Mutation(
        "a burst in which all pairs are processed",
        "braid.papers.shedding.budget.Budget.choose_fraction",
        lambda choose: lambda self, *given: (1.0, True),
        followed,
        ("rate adaptation keeps the join within",),
    ),
    Mutation(
        "a budget of which hardly anything is used",
        "braid.papers.shedding.budget.Budget.choose_fraction",
        lambda choose: lambda self, *given: (choose(self, *given)[0] / 10, True),
        followed,
        ("rate adaptation keeps the join within",),
    ),
    Mutation(
        "rate adaptation that processes the oldest tuples",
        "braid.papers.shedding.shed._Work._estimate_item_values",
        oldest_first,
        partly,
        (NEWEST_MATCH, GROWS),
    ),
    Mutation(
        "the least productive pairs first, by skew",
        "braid.papers.shedding.shed.fill_budget",
        worst_first,
        partly,
        ("the gain of time correlation and direction grows",),
    ),
    Mutation(
        "nothing is learned of ages",
        "braid.papers.shedding.productivity_profile.ProductivityProfile.matches_per_pair",
        unlearned,
        chosen,
        ("time correlation adds to rate adaptation", "time correlation adds about"),
    ),
    Mutation(
        "rate adaptation that knows the productive ages",
        "braid.papers.shedding.shed._Work._estimate_item_values",
        by_age,
        chosen,
        ("partial processing by itself",),
    ),
    Mutation(
        "types of tuples that are taken to be worth the same",
        "braid.papers.shedding.productivity_profile.ProductivityProfile.utility_per_pair",
        lambda utility: lambda self, stream, window, types: (1.0,) * max(1, len(types)),
        valued,
        ("the gain in utility grows", "the gain falls at first"),
    ),
    Mutation(
        "types that are taken to be equally frequent",
        "braid.papers.shedding.productivity_profile.ProductivityProfile.type_frequencies",
        equally_frequent,
        valued,
        ("the gain in utility stays almost the same",),
    ),
    Mutation(
        "a fraction that is never adapted",
        "braid.papers.shedding.budget.Budget.choose_fraction",
        lambda choose: lambda *given: (1.0, True),
        followed,
        ("r falls in a burst",),
    ),
    Mutation(
        "the less useful window first",
        "braid.papers.shedding.shed._Work._compute_mean_output",
        turned_round,
        directed,
        ("the fraction of the less useful window",),
    ),
    Mutation(
        "nothing is learned of basic windows",
        "braid.papers.shedding.productivity_profile.ProductivityProfile.matches_per_pair",
        unlearned,
        cut,
        ("small basic windows give more",),
    ),
    Mutation(
        "lookups that cost nothing",
        "braid_lab.shedding.experiments.recall_by_basic_windows",
        lambda recall: partial(recall, lookup=0.0),
        indexed,
        ("with an index very small",),
    ),
    Mutation(
        "the least productive pairs first, against dropping",
        "braid.papers.shedding.shed.fill_budget",
        worst_first,
        gained,
        ("selective processing gives up to 500 %", "with an index nothing is gained"),
    ),
]
