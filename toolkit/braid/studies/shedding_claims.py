"""The claims of Gedik, Wu, Yu and Liu 2007, against the figures of ``studies.shedding``."""

from __future__ import annotations

import pandas as pd

from braid.studies.claim import Claim, figures, verdict

PAPER = "Gedik 2007"


def load_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 5, first observation, on means over basic windows."""
    phi = frame[frame["share"] <= 1].groupby("share")["optimality_modelled"].mean()
    low, high = phi[phi.index < 0.3].mean(), phi[phi.index >= 0.3].mean()
    return Claim(
        PAPER,
        "Fig. 5",
        "optimality falls with less CPU",
        figures(phi),
        verdict(low < high),
        "whole basic windows make it rise and fall between, so that means are compared",
        must=True,
    )


def skew_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 5, second observation."""
    phi = frame[frame["share"] <= 1].groupby("deviation")["optimality_modelled"].mean()
    return Claim(
        PAPER,
        "Fig. 5",
        "optimality falls as matches are more skewed in time",
        figures(phi),
        verdict(phi.is_monotonic_increasing),
        must=True,
    )


def size_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 5, third observation."""
    few = frame[(frame["share"] <= 0.4) & (frame["deviation"] == frame["deviation"].min())]
    phi = few.groupby("basic")["optimality_modelled"].mean()
    return Claim(
        PAPER,
        "Fig. 5",
        "small basic windows are better when there is little CPU or much skew",
        figures(phi),
        verdict(phi.is_monotonic_decreasing),
        must=True,
    )
