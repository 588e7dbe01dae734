"""The claims on tuples of different utility: Fig. 16 and 17 of Gedik, Wu, Yu and Liu 2007."""

from __future__ import annotations

import pandas as pd

from braid_lab.common.claims import ClaimRegistry, Finding, format_values, judge
from braid_lab.shedding.claim_settings import SETTINGS
from braid_lab.shedding.claim_tables import compare_frequencies, select_largest_factor

CLAIMS = ClaimRegistry("Gedik 2007", SETTINGS)
KAPPA = "for kappa = 0.6, which the paper does not give"


@CLAIMS.claim(
    "Fig. 16",
    "the gain in utility grows with the skew of values, most for frequencies inverse to values",
    is_required=True,
)
def utility_claim(utility: pd.DataFrame) -> Finding:
    """Fig. 16: uniform and inverse frequencies."""
    by = compare_frequencies(utility)
    grows = by["uniform"].is_monotonic_increasing and by["inverse"].is_monotonic_increasing
    result = "; ".join(f"{name} {format_values(by[name])}" for name in by)
    holds = grows and (by["inverse"].iloc[1:] > by["uniform"].iloc[1:]).all()
    return judge(f"{result} (counted)", holds, KAPPA)


@CLAIMS.claim(
    "Fig. 16",
    "it stays almost the same for frequencies proportional to values",
    is_required=True,
)
def proportional_utility_claim(utility: pd.DataFrame) -> Finding:
    """Fig. 16: frequencies proportional to values."""
    direct = compare_frequencies(utility)["direct"]
    return judge(format_values(direct), direct.max() < 0.1, f"a gain below 0.1; {KAPPA}")


@CLAIMS.claim("Fig. 17", "the gain falls at first as there are more types", is_required=True)
def types_claim(types: pd.DataFrame) -> Finding:
    """Fig. 17: few types."""
    gain = select_largest_factor(types)
    drops = -gain.diff().dropna()
    holds = gain.is_monotonic_decreasing and 0 < drops.iloc[0] == drops.max()
    return judge(format_values(gain), holds, f"of values that differ by a factor of ten; {KAPPA}")


@CLAIMS.claim("Fig. 17", "it then becomes stable quickly")
def stable_types_claim(types: pd.DataFrame) -> Finding:
    """Fig. 17: many types."""
    gain = select_largest_factor(types)
    reason = (
        '"the improvement values stabilize quickly" (section 6.5): '
        "it goes on falling slowly, about as 1 / log of the number of types, up to 40 of them with "
        "values that differ by a factor of ten"
    )
    return judge(format_values(gain), -gain.diff().iloc[-1] < 0.05 * gain.iloc[-1], reason)
