"""The claims on tuples of different utility: Fig. 16 and 17 of Gedik, Wu, Yu and Liu 2007."""

from __future__ import annotations

import pandas as pd

from braid_lab.common.claims import ClaimRegistry, Finding, format_values, judge, judge_reading
from braid_lab.shedding.claim_settings import SETTINGS
from braid_lab.shedding.claim_tables import (
    UNSAID,
    compare_factors,
    compare_frequencies,
    format_span,
)

CLAIMS = ClaimRegistry("Gedik 2007", SETTINGS)
STABLE, HALF, PART = 0.15, 0.5, 0.1
"""By how much a gain may change that stays "almost stable", beside one that grows too, and by what
part of its first change one that has become stable.
"""


def _format_columns(table: pd.DataFrame) -> str:
    return "; ".join(f"{name} {format_values(table[name])}" for name in table) + " (counted)"


@CLAIMS.claim(
    "Fig. 16",
    "the gain in utility grows with the skew of values, for uniform frequencies and for those "
    "inverse to values, and is greatest for inverse ones",
    is_required=True,
)
def utility_claim(utility: pd.DataFrame) -> Finding:
    """Fig. 16: uniform and inverse frequencies, at every kappa."""
    each = compare_frequencies(utility)
    by = each.groupby(["kappa", "skew"]).mean()
    holds, in_mean = _find_rises(each, ["kappa", "seed"]), _find_rises(by, ["kappa"])
    at, also = (rises.groupby("kappa").all() for rises in (holds, in_mean))
    gains = (by.xs(skew, level="skew")[["uniform", "inverse", "direct"]] for skew in _find_ends(by))
    ends = "; ".join(
        f"at kappa = {kappa:g} from "
        + ", ".join(f"{a:.0%} to {b:.0%} ({k})" for k, a, b in columns)
        for kappa, columns in _pair_rows(*gains)
    )
    first, last = _find_ends(by)
    gained = f"from k = {first:g} to {last:g} the gain goes {ends}, in the mean of seeds"
    if at.all():
        return judge(_format_columns(by), True, f"by kappa, {UNSAID}, in each seed; {gained}")
    held = (at if at.any() else also)[lambda rises: rises]
    kappas = ", ".join(f"{kappa:g}" for kappa in held.index) or "none"
    broken = holds.groupby("kappa").sum()[lambda n: n < holds.groupby("kappa").size()]
    steps = " and ".join(f"at {k:g} in {n} of {holds[k].size}" for k, n in broken.items())
    reading = (
        f"at kappa = {kappas}, {UNSAID}, {'in each seed' if at.any() else 'in the mean of seeds'}; "
        f"it holds {steps} by step of k and seed; {gained}"
    )
    return judge_reading(_format_columns(by), len(held) > 0, reading)


def _find_rises(by: pd.DataFrame, keys: list[str]) -> pd.Series:
    """Return, for each skew but the first, whether gains are greater, most with inverse ones."""
    steps = by[["uniform", "inverse"]].groupby(keys).diff().dropna()
    is_most = by["inverse"] > by[["uniform", "direct"]].max(axis=1)
    return (steps > 0).all(axis=1) & is_most[steps.index]


def _find_ends(by: pd.DataFrame) -> tuple[float, float]:
    skews = by.index.get_level_values("skew")
    return skews.min(), skews.max()


def _pair_rows(
    first: pd.DataFrame, last: pd.DataFrame
) -> list[tuple[float, list[tuple[str, float, float]]]]:
    return [
        (kappa, [(k, first.at[kappa, k], last.at[kappa, k]) for k in first])
        for kappa in first.index
    ]


@CLAIMS.claim(
    "Fig. 16",
    "the gain in utility stays almost the same for frequencies proportional to values",
    is_required=True,
)
def proportional_utility_claim(utility: pd.DataFrame) -> Finding:
    """Fig. 16: frequencies proportional to values."""
    by = compare_frequencies(utility).groupby(["kappa", "seed"])
    spread = 100 * (by.max() - by.min())
    reading = (
        f"read as a change by less than {100 * STABLE:g} percentage points over all k, and less "
        f"than {HALF:g} times that with uniform frequencies: by kappa and seed it changes by "
        f"{format_span(spread['direct'], '.1f')}, with uniform frequencies by "
        f"{format_span(spread['uniform'], '.1f')}, "
        f"{(spread['direct'] / spread['uniform']).max():.2f} times that at most"
    )
    is_stable = (spread["direct"] < 100 * STABLE) & (spread["direct"] < HALF * spread["uniform"])
    mean = spread["direct"].groupby("kappa").mean()
    return judge_reading(f"points by kappa {format_values(mean)}", is_stable.all(), reading)


@CLAIMS.claim("Fig. 17", "the gain falls at first as there are more types", is_required=True)
def types_claim(types: pd.DataFrame) -> Finding:
    """Fig. 17: few types, for every factor."""
    each = compare_factors(types)
    first, second, *_ = each.columns
    falls = 100 * (each[first] - each[second])
    fits, others = _split_by_kappa(falls.groupby(["kappa", "factor"]).mean() > 0)
    runs = falls[falls.index.get_level_values("kappa").isin(fits or others)]
    rest = falls.drop(runs.index)
    why = (
        f"at kappa = {_list_values(fits)}, {UNSAID}, in the mean of seeds and in "
        f"{(runs > 0).sum()} of {runs.size} runs by factor and seed: from {first} to {second} "
        f"types it falls by {format_span(runs, '.1f')} percentage points"
    )
    why += f"; at {_list_values(others)} by {format_span(rest, '.1f')}" if len(rest) else ""
    by = each.groupby(["kappa", "factor"]).mean()
    return judge_reading(_format_columns(by.T), bool(fits), why)


def _split_by_kappa(holds: pd.Series) -> tuple[list[float], list[float]]:
    """Return the values of kappa for which something holds with each factor, and the others."""
    every = holds.groupby("kappa").all()
    return [*every.index[every]], [*every.index[~every]]


def _list_values(values: list[float]) -> str:
    return " and ".join(f"{value:g}" for value in values) or "no value"


@CLAIMS.claim("Fig. 17", "the gain then becomes stable quickly")
def stable_types_claim(types: pd.DataFrame) -> Finding:
    """Fig. 17: many types, for every factor."""
    by = compare_factors(types).groupby(["kappa", "factor"]).mean()
    first, second, *_, few, many = by.columns
    early, late = 100 * (by[first] - by[second]), 100 * (by[few] - by[many])
    fits, others = _split_by_kappa((early > 0) & (late.abs() <= PART * early))
    chosen = by.index.get_level_values("kappa").isin(fits or others)
    reading = (
        f"read as a fall from {few} to {many} types by at most {PART:.0%} of that from {first} to "
        f"{second}, for each factor: so at {_list_values(fits)} of kappa = "
        f"{', '.join(f'{k:g}' for k in sorted([*fits, *others]))}, {UNSAID}; in the mean of seeds "
        "the gain falls by "
        f"{format_span(late[chosen], '.1f')} percentage points, after "
        f"{format_span(early[chosen], '.1f')}"
    )
    holds = bool(fits)
    quoted = '"stabilize quickly as the type domain size gets larger" (section 6.5): '
    return judge_reading(_format_columns(by.T), holds, reading if holds else quoted + reading)
