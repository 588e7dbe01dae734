"""The claims on tuples of different utility: Fig. 16 and 17 of Gedik, Wu, Yu and Liu 2007."""

from __future__ import annotations

import pandas as pd

from braid_lab.common.claims import ClaimRegistry, Finding, format_values, judge, judge_reading
from braid_lab.shedding.claim_settings import SETTINGS
from braid_lab.shedding.claim_tables import compare_factors, compare_frequencies

CLAIMS = ClaimRegistry("Gedik 2007", SETTINGS)
STABLE = 0.15
"""By how much a gain may change that stays "almost stable"."""


def _format_columns(table: pd.DataFrame) -> str:
    return "; ".join(f"{name} {format_values(table[name])}" for name in table) + " (counted)"


@CLAIMS.claim(
    "Fig. 16",
    "the gain in utility grows with the skew of values, most for frequencies inverse to values",
    is_required=True,
)
def utility_claim(utility: pd.DataFrame) -> Finding:
    """Fig. 16: uniform and inverse frequencies, at every kappa."""
    by = compare_frequencies(utility)
    steps = by[["uniform", "inverse"]].groupby("kappa").diff().dropna()
    skewed = by[by.index.get_level_values("skew") > 0]
    holds = (steps > 0).all(axis=1) & (skewed["inverse"] > skewed["uniform"])
    at = holds.groupby("kappa").all()
    if at.all():
        return judge(_format_columns(by), True, "at every kappa, which the paper does not give")
    broken = ", ".join(f"{skew:g} at kappa = {kappa:g}" for kappa, skew in holds.index[~holds])
    reading = (
        f"at kappa = {', '.join(f'{kappa:g}' for kappa in at.index[at])}, which the paper does not "
        f"give; not up to a skew of {broken}"
    )
    return judge_reading(_format_columns(by), at.any(), reading)


@CLAIMS.claim(
    "Fig. 16",
    "it stays almost the same for frequencies proportional to values",
    is_required=True,
)
def proportional_utility_claim(utility: pd.DataFrame) -> Finding:
    """Fig. 16: frequencies proportional to values."""
    by = compare_frequencies(utility).groupby("kappa")
    spread = by.max() - by.min()
    reason = (
        f"by kappa it changes by {format_values(spread['direct'].round(3))}, for uniform "
        f"frequencies by {format_values(spread['uniform'].round(3))}"
    )
    holds = (spread["direct"] < STABLE).all() and (spread["direct"] < spread["uniform"] / 2).all()
    return judge(format_values(spread["direct"]), holds, reason)


@CLAIMS.claim("Fig. 17", "the gain falls at first as there are more types", is_required=True)
def types_claim(types: pd.DataFrame) -> Finding:
    """Fig. 17: few types, for every factor."""
    gain = compare_factors(types)
    drops = -gain.diff().dropna()
    holds = (drops > 0).all(axis=None) and (drops.iloc[0] >= drops.max()).all()
    return judge(_format_columns(gain), holds, "for one kappa, which the paper does not give")


@CLAIMS.claim("Fig. 17", "it then becomes stable quickly")
def stable_types_claim(types: pd.DataFrame) -> Finding:
    """Fig. 17: many types, for every factor."""
    gain = compare_factors(types)
    slope = -gain.diff().div(gain.index.to_series().diff(), axis=0).dropna()
    last = slope.iloc[-1] / slope.iloc[0]
    fall = -gain.diff().iloc[-1] / gain.iloc[-2]
    reading = (
        f"per type: from {gain.index[-2]} to {gain.index[-1]} types one more changes the gain by "
        f"at most {last.max():.1%} of what the third does. It goes on falling, in these by "
        f"{fall.min():.0%} to {fall.max():.0%}; for one kappa, which the paper does not give"
    )
    holds = (slope.iloc[0] > 0.05).all() and (last < 0.05).all()
    return judge_reading(_format_columns(gain), holds, reading)
