"""Faults of load shedding (Gedik 2007)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from braid.papers.shedding.shed import Method, Shed
from braid_lab.shedding import claims as gedik
from braid_lab.shedding import experiments as study
from braid_lab.shedding import measured as measured
from braid_lab.shedding.paper_algorithms import newest_output_share
from braid_lab.workloads.set_streams import SetStreams

from mutations import Mutation, Tries, cached_run, run_in_process

BOTH = (0.6, 0.8)
"""Skews of items."""


def chosen() -> Tries:
    """Return Fig. 12, 16 and 17: which pairs are processed, for one skew of items."""
    return [
        lambda: gedik.CLAIMS.test_claims(recall=study.recall_table((0.6,))),
        lambda: gedik.CLAIMS.test_claims(
            utility=study.utility_by_skew(), types=study.utility_by_types()
        ),
    ]


def adapted() -> Tries:
    """Return Fig. 8: how much is processed, through a burst."""
    burst = study.adaptation_curves()
    return [lambda: gedik.burst_claim(burst), lambda: gedik.forward_claim(burst)]


def directed() -> Tries:
    """Return Fig. 11: which window is reduced."""
    return [lambda: gedik.direction_claim(study.direction_shares())]


def windowed() -> Tries:
    """Return Fig. 1 and 5: the output of a part of a window, by the model."""
    best = cache(study.optimality_table)
    return [
        lambda: gedik.reduction_claim(study.window_reduction()),
        lambda: gedik.load_claim(best()),
        lambda: gedik.skew_claim(best()),
        lambda: gedik.size_claim(best()),
    ]


def dropped() -> Tries:
    """Return Fig. 7."""
    return [lambda: gedik.CLAIMS.test_claims(drops=study.drop_rates())]


def peaked() -> Tries:
    """Return Fig. 6."""
    return [lambda: gedik.density_claim(study.density_curves(BOTH))]


def partly() -> Tries:
    """Return Fig. 9, 10 and 13, for two skews and the same threshold."""
    newest_match = cache(lambda: study.recall_table(BOTH, shift=0.0))
    return [
        lambda: gedik.rate_claim(newest_match()),
        lambda: gedik.growth_claim(newest_match(), study.recall_by_window()),
        lambda: gedik.skewed_claim(study.recall_table(BOTH)),
    ]


def indexed() -> Tries:
    """Return Fig. 14 and 15."""
    return [
        lambda: gedik.CLAIMS.test_claims(basic_windows=study.recall_by_basic_windows()),
        lambda: gedik.CLAIMS.test_claims(gains=study.gain_over_dropping()),
    ]


SHEDS: tuple[Method, ...] = ("selective", "uniform")
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
        told = run.estimate_results().iloc[-1]
        shown = {"found": "results", "estimated": "estimated_results", "error": "error_95"}
        return {name: float(told[column]) for name, column in shown.items()}

    return cached_run(
        (method or "full", SETS),
        lambda: run_in_process(ran, tables, SETS.condition, None, spans, shed=shed),
    )


def weighed() -> Tries:
    """Return real pairs: generated sets instead of the flights of notebook 06."""

    def legs() -> measured.FlightComparison:
        truth = results(None)["found"]
        rows = [
            {"condition": "tags", "method": m, "in truth": truth}
            | (of := results(m))
            | {"found of all": of["found"] / truth}
            for m in SHEDS
        ]
        return measured.FlightComparison(pd.DataFrame(rows), pd.DataFrame(), [])

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


def at_random(utility: Any) -> Any:
    """Process any pairs, because types are not distinguished."""

    def fault(sets: Any, r: float, values: Any, frequency: Any, typed: bool) -> Any:
        found = utility(sets, r if typed else 1.0, values, frequency, typed)
        return found if typed else r * found

    return fault


def worst_first(fill: Any) -> Any:
    """Return a knapsack that prefers the lowest value."""
    return lambda values, *rest: fill(-values, *rest)


def turned_round(directions: Any) -> Any:
    """Exchange the two windows."""
    return lambda r, windows, outputs: directions(r, windows, outputs[::-1])


def likelier(draws: Any) -> Any:
    """Draw tuples more often than their share."""
    return lambda numbers, block: draws(numbers, block) ** 3


NEWEST_MATCH = "rate adaptation gives more than random dropping"
GROWS = "the gain of rate adaptation grows with skew"

MUTATIONS = [
    Mutation(
        "the oldest part of a window is kept",
        "braid_lab.shedding.experiments.newest_output_share",
        oldest,
        lambda: [*windowed(), *partly()],
        ("keeping the newest part of a window sheds", NEWEST_MATCH, GROWS),
    ),
    Mutation(
        "work that is not bound to basic windows",
        "braid_lab.shedding.experiments.phi",
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
        ("without an index about half is dropped", "with an index about a quarter is dropped"),
    ),
    Mutation(
        "items that are as skewed, whatever they should be",
        "braid_lab.workloads.set_streams.overlap_probabilities",
        lambda likeness: (
            lambda items, size, deviation, kappa, *rest: likeness(
                items, size, deviation, BOTH[0], *rest
            )
        ),
        partly,
        ("the gain of time correlation and direction grows",),
    ),
    Mutation(
        "as much of every basic window",
        "braid_lab.shedding.experiments.processed_output",
        lambda processed: lambda ranked, fits, parted: min(1.0, fits / len(ranked)),
        indexed,
        ("small basic windows give more",),
    ),
    Mutation(
        "lists by identifier that can stop within a basic window",
        "braid_lab.shedding.experiments.processed_output",
        lambda processed: lambda ranked, fits, parted: processed(ranked, fits, True),
        indexed,
        ("lists by identifier give less",),
    ),
    Mutation(
        "what is worth least first, against dropping",
        "braid_lab.shedding.experiments.fill_budget",
        worst_first,
        indexed,
        ("selective processing gives up to 500 %", "with an index nothing is gained until"),
    ),
    Mutation(
        "any pairs, where types are not told apart",
        "braid_lab.shedding.experiments._compute_utility",
        at_random,
        chosen,
        ("it stays almost the same",),
    ),
    Mutation(
        "dear types that are the most frequent",
        "braid_lab.shedding.experiments._compute_utility",
        lambda utility: (
            lambda sets, r, values, frequency, typed: utility(
                sets, r, values, frequency[::-1], typed
            )
        ),
        chosen,
        ("the gain falls at first",),
    ),
    Mutation(
        "nothing is learned of ages, on made-up sets for the flights",
        "braid.papers.shedding.productivity_profile.ProductivityProfile.matches_per_pair",
        lambda outputs: lambda self, items: dict.fromkeys(items, 1.0),
        weighed,
        ("pairs chosen by age and direction",),
    ),
    Mutation(
        "tuples that are drawn more often than their share, on made-up sets for the flights",
        "braid.kernels.shedding_sampler.draw_numbers",
        likelier,
        weighed,
        ("weights estimate what the full join has",),
    ),
    Mutation(
        "what is worth least first",
        "braid_lab.shedding.experiments.fill_budget",
        worst_first,
        chosen,
        ("the gain in utility grows with the skew",),
    ),
    Mutation(
        "the newest part of a window taken for the best",
        "braid_lab.shedding.experiments.best_output_share",
        lambda best: newest_output_share,
        chosen,
        ("time correlation adds to rate adaptation",),
    ),
    Mutation(
        "a fraction that is never adapted",
        "braid_lab.shedding.paper_algorithms.adapt_fraction",
        lambda adapt: lambda r, *rest: r,
        adapted,
        ("r falls in a burst",),
    ),
    Mutation(
        "a burst that nobody foresees",
        "braid_lab.shedding.paper_algorithms.affordable_fraction",
        lambda forward: lambda *given: 1.0,
        adapted,
        ("rate adaptation keeps the join within",),
    ),
    Mutation(
        "a feed-forward rule that processes hardly anything",
        "braid_lab.shedding.paper_algorithms.affordable_fraction",
        lambda forward: lambda *given: forward(*given) / 10,
        adapted,
        ("rate adaptation keeps the join within",),
    ),
    Mutation(
        "the less useful window first",
        "braid_lab.shedding.experiments.split_directions",
        turned_round,
        directed,
        ("the fraction of the less useful window",),
    ),
]
