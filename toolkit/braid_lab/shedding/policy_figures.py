"""Fig. 7 to 15 of Gedik 2007 by the real policy, counted on the paper's settings.

As in section 6.1: windows of 20 seconds, basic windows of one second, gamma = 0.1, and a machine of
``CAPACITY`` comparisons a second, from which r follows: 0.02 at 500 tuples/s on two windows. What
differs: T_r and T_c are one batch of a second, with weights that fade by a tenth a batch, for the
paper's 5 seconds; r is fed forward, for Algorithm 1. Columns that end in ``_modelled`` are the same
by the true densities of matches: what the policy would find if learning were free.

A ``scale`` below 1 gives short runs with the paper's r: rates times it, CAPACITY times its square.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from braid.papers.shedding.shed import Method, Shed

from braid_lab.common.recorded_settings import concat_runs, record_values, records_arguments
from braid_lab.shedding import experiments
from braid_lab.shedding.experiments import CAPACITY, METHODS, OVERLAP, SINGLE
from braid_lab.shedding.paper_algorithms import newest_output_share
from braid_lab.shedding.policy_runs import PolicyBatch, PolicyRun, SetTuples, list_settings
from braid_lab.workloads.set_streams import SetStreams, burst_rates

GAMMA = 0.1
"""The paper's sampling probability."""
WINDOW = 20.0
"""The paper's window, in seconds."""


class Phase(NamedTuple):
    """A stretch of the burst of Fig. 8, in seconds.

    Those of a rate are the last seconds with it, when it fills most of the window.
    """

    name: str
    begins: int
    ends: int


PHASES = (Phase("500/s", 70, 75), Phase("300/s", 95, 105), Phase("burst", 60, 105))
LONGER = (
    Phase("500/s, 10 s", 65, 75),
    Phase("500/s, 15 s", 60, 75),
    Phase("300/s, 20 s", 85, 105),
    Phase("300/s, 30 s", 75, 105),
)
"""Longer stretches of a rate, up to all of it: does a figure depend on the stretch?"""
WHOLE = Phase("all", 0, 130)
"""The period over which Fig. 10 and 13 take means."""


def make_shed(method: str, pairs: float = CAPACITY, basic: float = WINDOW / 20) -> Shed:
    """Return the policy with the paper's gamma and a budget of pairs a second."""
    kinds: dict[str, Method] = {m: m for m in ("drop", "partial", "time", "direction", "selective")}
    length = f"{round(basic * 1e3)} milliseconds"
    return Shed(pairs=pairs, method=kinds[method], sample=GAMMA, basic_window=length)


@lru_cache(maxsize=2)
def _burst_tuples(
    kappa: float,
    theta: int,
    shift: float,
    windows: tuple[float, float],
    seed: int,
    scale: float,
) -> SetTuples:
    rates = burst_rates(100.0 * scale, 500.0 * scale, 300.0 * scale)
    sets = SetStreams(
        **rates,  # type: ignore[arg-type]
        kappa=kappa,
        theta=theta,
        shift=shift,
        window=max(windows),
        seed=seed,
    )
    return SetTuples(sets, windows)


@records_arguments
def burst_runs(
    kappas: Sequence[float] = (0.4, 0.5, 0.6, 0.7, 0.8),
    theta: int = 3,
    shift: float = 5 / 8,
    windows: tuple[float, float] = (WINDOW, WINDOW),
    methods: Sequence[str] = METHODS,
    seeds: Sequence[int] = (0,),
    scale: float = 1.0,
) -> pd.DataFrame:
    """Return Fig. 9, 10, 12 and 13: results of each method through the burst of Fig. 8.

    A row for each kappa, method, seed and phase. ``fraction`` is the mean r, ``recall_counted`` the
    share of the full join's results, ``gain_counted`` the gain over random dropping for as many
    pairs (where rates rise, dropping meets more than it planned, as it dropped fewer before);
    ``recall_modelled`` is by true densities at this r.
    """
    rows = []
    for kappa, seed in product(kappas, seeds):
        tuples = _burst_tuples(kappa, theta, shift, windows, seed, scale)
        full = tuples.count_all()
        runs = {
            m: PolicyRun(tuples, make_shed(m, CAPACITY * scale**2), seed=seed).run_batches()
            for m in {*methods, "drop"}
        }
        for phase, method in product((*PHASES, *LONGER, WHOLE), methods):
            at = slice(phase.begins, phase.ends)
            fractions = [b.fraction for b in runs[method][at]]
            results = sum(b.results for b in runs[method][at])
            gain = compute_gain(_find_rate(runs[method][at]), _find_rate(runs["drop"][at]))
            free, random = (
                float(
                    np.average(
                        [_compute_free_recall(tuples, r, m) for r in fractions], None, full[at]
                    )
                )
                for m in (method, "drop")
            )
            mean = float(np.mean(fractions))
            row = (kappa, max(windows), method, seed, phase.name, mean, results)
            rows.append((*row, results / full[at].sum(), gain, free, free / random - 1))
    names = ["kappa", "window", "method", "seed", "phase", "fraction", "results_counted"]
    values = ["recall_counted", "gain_counted", "recall_modelled", "gain_modelled"]
    frame = pd.DataFrame(rows, columns=[*names, *values])
    shed = make_shed("partial", CAPACITY * scale**2)
    return record_values(frame, **list_settings(tuples, shed))


def compute_gain(value: float, other: float) -> float:
    """Return the gain of one value over another; NaN if the other is 0, as in tiny runs."""
    return value / other - 1 if other else float("nan")


def _find_rate(done: Sequence[PolicyBatch]) -> float:
    """Return the results of a pair that was considered."""
    return sum(b.results for b in done) / sum(b.pairs for b in done)


def _compute_free_recall(tuples: SetTuples, r: float, method: str) -> float:
    """Return the recall by true densities; with one window, of the direction that probes it."""
    return _recall_by_density(tuples.sets, bool(tuples.windows[1]), float(f"{r:.2g}"), method)


@lru_cache(maxsize=4096)
def _recall_by_density(sets: SetStreams, has_both: bool, r: float, method: str) -> float:
    if has_both or method == "drop":
        return experiments.compute_recall(sets, r, method)
    return newest_output_share(sets.match_density(0), r)


def newest_runs(
    kappas: Sequence[float] = (0.4, 0.6, 0.8),
    window: float = WINDOW,
    seeds: Sequence[int] = (0,),
    scale: float = 1.0,
) -> pd.DataFrame:
    """Return Fig. 9 and 10: ``burst_runs`` of rate adaptation where the newest tuples match.

    As in section 6.3, tau is 0 and one stream has a window.
    """
    return burst_runs(kappas, 3, 0.0, (window, 0.0), ("drop", "partial"), seeds, scale)


def wider_runs(
    windows: Sequence[float] = (10.0, 20.0, 40.0),
    seeds: Sequence[int] = (0,),
    kappas: Sequence[float] = (0.4, 0.6, 0.8),
    scale: float = 1.0,
) -> pd.DataFrame:
    """Return Fig. 10: ``newest_runs`` by the window."""
    return concat_runs(newest_runs(kappas, w, seeds, scale) for w in windows)


@records_arguments
def drop_runs(
    capacities: Sequence[float] = (CAPACITY / 2, CAPACITY, CAPACITY * 2),
    rate: float = 50.0,
    window: float = 125.0,
    seeds: Sequence[int] = (0,),
    scale: float = 1.0,
) -> pd.DataFrame:
    """Return Fig. 7 without an index: the fraction of tuples that the policy drops.

    Columns: capacity (comparisons a second, as run), seed, dropped_counted. Batches are of five
    seconds; the first window of the run is left out.
    """
    step, rows = 5.0, []
    for seed in seeds:
        sets = SetStreams((rate * scale,) * 2, 2 * window, step, window, seed=seed)
        tuples, filled = SetTuples(sets, (window, window)), round(window / step)
        arrived = sum(len(b.times) for side in tuples.batches for b in side[filled:])
        for capacity in capacities:
            able = float(round(capacity * scale**2))
            shed = make_shed("drop", able * step, step)
            done = PolicyRun(tuples, shed, seed=seed).run_batches()[filled:]
            rows.append((able, seed, 1 - sum(b.admitted for b in done) / arrived))
    frame = pd.DataFrame(rows, columns=["capacity", "seed", "dropped_counted"])
    ran = list_settings(tuples, shed) | {"capacity": frame["capacity"], "counted": window}
    return record_values(frame, **ran)


@records_arguments
def burst_fractions(
    kappa: float = 0.6, seeds: Sequence[int] = (0,), scale: float = 1.0
) -> pd.DataFrame:
    """Return Fig. 8: r by second, by the policy, and the considered pairs over the budget.

    Columns: rule, seed, second, fraction_counted, load_counted.
    """
    rows, budget = [], CAPACITY * scale**2
    shed = make_shed("partial", budget)
    for seed in seeds:
        tuples = _burst_tuples(kappa, 3, 0.0, (WINDOW, 0.0), seed, scale)
        done = PolicyRun(tuples, shed, seed=seed).run_batches()
        rows += [("policy", seed, k, b.fraction, b.pairs / budget) for k, b in enumerate(done)]
    names = ["rule", "seed", "second", "fraction_counted", "load_counted"]
    return record_values(pd.DataFrame(rows, columns=names), **list_settings(tuples, shed))


@records_arguments
def direction_runs(
    kappa: float = 0.6,
    shares: Sequence[float] = (0.9, 0.7, 0.5, 0.3, 0.1),
    rate: float = 100.0,
    seconds: float = 60.0,
    seeds: Sequence[int] = (0,),
) -> pd.DataFrame:
    """Return Fig. 11: the processed shares of both windows as r falls, by the policy.

    r1 is of pairs with the window of n, o1 its matches of a pair. Means of the last 20 seconds, and
    over seeds.
    """
    rows, last = [], 20
    for seed in seeds:
        sets = SetStreams((rate, rate), seconds, kappa=kappa, seed=seed)
        tuples = SetTuples(sets, (WINDOW, WINDOW))
        useful = [float(sets.match_density(w).mean()) for w in (0, 1)]
        for r in shares:
            shed = Shed(fraction=r, method="direction", sample=GAMMA, basic_window="1 second")
            done = PolicyRun(tuples, shed, seed=seed).run_batches()[-last:]
            by_m, by_n = (float(np.mean([b.directions[s] for b in done])) for s in (1, 0))
            rows.append((r, by_m, by_n, *useful))
    names = ["fraction", "r1_counted", "r2_counted", "o1_modelled", "o2_modelled"]
    frame = pd.DataFrame(rows, columns=names).groupby("fraction", as_index=False).mean()
    return record_values(frame, **list_settings(tuples, shed), counted=last)


STEADY = 60.0
"""Seconds of a run at a steady rate; the first 20 fill the windows and are left out."""
CHEAP_EQUALITY, CHEAP_INDEXED = 4.0, experiments.CHEAPEST * WINDOW / experiments.INDEXED
"""How many times as cheap a pair of an equality is, and one that has the r of an index."""


@lru_cache(maxsize=3)
def steady_tuples(rate: float, kappa: float, seed: int = 0, equality: bool = False) -> SetTuples:
    """Return tuples at a steady rate of both streams: sets, or single values of 5,000."""
    single = SINGLE if equality else {}
    sets = SetStreams((rate, rate), STEADY, kappa=kappa, seed=seed, **single)
    return SetTuples(sets, (WINDOW, WINDOW))


def sum_steady(done: Sequence[PolicyBatch], of: str = "results") -> float:
    """Return the results, or another quantity, of batches after the windows have filled."""
    return float(sum(getattr(b, of) for b in done[round(WINDOW) :]))


@records_arguments
def basic_window_runs(
    parts: Sequence[int] = (1, 2, 5, 10, 20),
    kappas: Sequence[float] = (0.4, 0.6, 0.8),
    rate: float = 500.0,
    seeds: Sequence[int] = (0,),
    pairs: float = CAPACITY,
) -> pd.DataFrame:
    """Return Fig. 14 without an index: recall by the number of basic windows, by the policy."""
    rows = []
    for kappa, seed in product(kappas, seeds):
        tuples = steady_tuples(rate, kappa, seed)
        full = tuples.count_all()[round(WINDOW) :].sum()
        for n in parts:
            done = PolicyRun(
                tuples, make_shed("selective", pairs, WINDOW / n), seed=seed
            ).run_batches()
            rows.append((kappa, n, seed, sum_steady(done) / full))
    frame = pd.DataFrame(rows, columns=["kappa", "parts", "seed", "recall_counted"])
    ran = list_settings(tuples, make_shed("selective", pairs))
    ran["basic"] = [WINDOW / n for n in parts]
    ran |= {"fraction": pairs / (2 * rate * rate * WINDOW), "counted": STEADY - WINDOW}
    return record_values(frame, **ran)


@records_arguments
def gain_runs(
    rates: Sequence[float] = (100.0, 200.0, 300.0, 400.0, 500.0),
    seeds: Sequence[int] = (0,),
    kappa: float = 0.6,
    scale: float = 1.0,
    skewer: Sequence[float] = (0.7, 0.8),
) -> pd.DataFrame:
    """Return Fig. 15: the gain of selective processing over random dropping, by the policy.

    Without an index: overlap, at the highest rate also for ``skewer`` items, and equality, whose
    pairs are four times as cheap. With an index, the overlap runs at the r of 200-second windows,
    on windows of 20 seconds.
    """
    joins = (
        ("overlap", 1.0, False),
        ("overlap, indexed", CHEAP_INDEXED, False),
        ("equality", CHEAP_EQUALITY, True),
    )
    each = [(lam, *join, kappa) for lam, join in product(rates, joins)]
    each += [(max(rates), f"{OVERLAP}{k:g}", 1.0, False, k) for k in skewer]
    rows = []
    for (lam, name, cheaper, equality, skew), seed in product(each, seeds):
        tuples = steady_tuples(scale * lam, skew, seed, equality)
        r = min(1.0, cheaper * CAPACITY / (2 * lam * lam * WINDOW))
        chosen, dropped = (
            sum_steady(
                PolicyRun(
                    tuples, make_shed(m, cheaper * CAPACITY * scale**2), seed=seed
                ).run_batches()
            )
            for m in ("selective", "drop")
        )
        free = experiments.compute_recall(tuples.sets, r, "selective") / r - 1
        rows.append((lam, name, seed, r, compute_gain(chosen, dropped), free))
    names = ["rate", "join", "seed", "fraction", "gain_counted", "gain_modelled"]
    frame = pd.DataFrame(rows, columns=names)
    ran = list_settings(tuples, make_shed("selective", CAPACITY * scale**2))
    ran |= {"rate": [scale * lam for lam in rates], "counted": STEADY - WINDOW}
    ran |= {"values": SINGLE["items"], "same": SINGLE["theta"], "equal": CHEAP_EQUALITY}
    last = frame[frame["rate"] == frame["rate"].max()].groupby("join")["fraction"].max()
    ran |= {"fraction": last["overlap"], "equal_fraction": last["equality"]}
    ran |= {"cheap": experiments.CHEAPEST, "indexed": experiments.INDEXED}
    return record_values(frame, **ran)
