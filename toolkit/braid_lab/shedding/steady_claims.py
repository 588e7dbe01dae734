"""The claims at steady rates: Fig. 14 and 15 of Gedik, Wu, Yu and Liu 2007, by the policy."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import pandas as pd

from braid_lab.common.claims import ClaimRegistry, Finding, format_values, judge_reading
from braid_lab.shedding import experiments
from braid_lab.shedding.claim_settings import INDEXED_GAIN, SETTINGS
from braid_lab.shedding.claim_tables import UNSAID, compare_joins, format_percents, judge_runs
from braid_lab.shedding.policy_figures import WINDOW

CLAIMS = ClaimRegistry("Gedik 2007", SETTINGS)
BEGINS, DOUBLED = (200.0, 300.0), (0.6, 1.4)
"""Rates between which an index begins to gain, and the gain that is read as the printed one."""
NOTHING = 0.01
"""The gain below which nothing is gained."""


@CLAIMS.claim("Fig. 14", "small basic windows give more without an index", is_required=True)
def small_basic_windows_claim(cut_windows: pd.DataFrame) -> Finding:
    """Fig. 14, left: recall by the number of basic windows, by the policy, for every kappa."""
    each = cut_windows.set_index(["kappa", "seed", "parts"])["recall_counted"].unstack()
    by = each.groupby("kappa").mean()
    small, large = by.columns >= 10, by.columns <= 2
    rises = each.loc[:, small].min(axis=1) > each.loc[:, large].max(axis=1)
    sizes = by.set_axis(WINDOW / by.columns, axis=1).iloc[:, ::-1]
    shares = "; ".join(
        f"at kappa = {k:g} {format_percents(row, '.1%')} s" for k, row in sizes.iterrows()
    )
    lengths = [
        " and ".join(f"{b:g}" for b in WINDOW / by.columns[at][::-1]) for at in (small, large)
    ]
    return judge_runs(
        f"of all results {shares} (counted)",
        (by.loc[:, small].min(axis=1) > by.loc[:, large].max(axis=1)).all(),
        rises,
        f"with {lengths[0]} s more than with {lengths[1]} s; in the mean of seeds, of all results "
        f"{shares}",
    )


@CLAIMS.claim(
    "Fig. 15",
    "selective processing gives up to 500 % more than dropping without an index, more for overlap "
    "than for equality",
    is_required=True,
)
def gain_over_dropping_claim(gains: pd.DataFrame) -> Finding:
    """Fig. 15: joins without an index."""
    by = compare_joins(gains)
    last = by.iloc[-1]
    overlap = last[[name for name in last.index if name.startswith(experiments.OVERLAP)]]
    overlap = pd.Series(
        {0.6: last["overlap"]} | {float(k.split()[-1]): v for k, v in overlap.items()}
    )
    equal = experiments.equality_gain()
    reading = (
        f"for a kappa between two of these, {UNSAID}: at {by.index[-1]:g}/s the overlap gains "
        f"{format_percents(overlap)}, in the mean of seeds. The equality gains "
        f"{last['equality']:.0%} at {overlap.index.min():g}, and by true densities {equal:.0%} if "
        "its pairs are as dear as those of the overlap"
    )
    holds = overlap.min() < 5 < overlap.max() and last["overlap"] > max(last["equality"], equal)
    finding = judge_reading(
        f"{format_values(last)} (counted)", holds and last["equality"] > 0, reading
    )
    return replace(finding, ran={"rate": by.index[-1]})


@CLAIMS.claim(
    "Fig. 15",
    "with an index nothing is gained of the overlap until 300/s, and up to 100 % after",
    is_required=True,
    setting=INDEXED_GAIN,
)
def indexed_gain_claim(gains: pd.DataFrame) -> Finding:
    """Fig. 15: the overlap with an index."""
    overlap = compare_joins(gains)["overlap, indexed"].dropna()
    per_rate = 2 * experiments.INDEXED / experiments.CAPACITY
    least, most = (per_rate * rate**2 for rate in BEGINS)
    begins = sqrt(experiments.CHEAPER / per_rate)
    reading = (
        f"only if a pair is {least:.0f} to {most:.0f} times as cheap with an index, so that "
        f"pairs are first left out between {BEGINS[0]:g}/s and {BEGINS[1]:g}/s; "
        f"{experiments.CHEAPEST:g} is chosen so here, and the gain is {format_percents(overlap)}/s "
        f"in the mean of seeds. With the {experiments.CHEAPER:g} that fit Fig. 7, they are first "
        f"left out at {begins:.0f}/s. Nothing is read as less than {NOTHING:.0%} up to "
        f"{BEGINS[0]:g}/s, and the most as {DOUBLED[0]:.0%} to {DOUBLED[1]:.0%}"
    )
    none = overlap.loc[: BEGINS[0]].abs().max() < NOTHING
    holds = none and DOUBLED[0] < overlap.max() < DOUBLED[1]
    return judge_reading(f"{format_values(overlap)} (counted)", holds, reading)
