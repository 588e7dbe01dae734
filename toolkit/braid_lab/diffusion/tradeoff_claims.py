"""The claims of Gu, Yu and Wang 2007, Fig. 13 to 16: ATR against CTR.

They are by streams, window, selectivity and bursts. Ahead means by more than 1 %; closer is even.
Some depend on what the paper leaves open: L, the bound on copies under CTR, and the cost of a
probe. Such a claim names the interpretations under which it holds.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from braid_lab.common.claims import Claim, Verdict
from braid_lab.diffusion.claim_frames import EVEN, NONE, PAPER, DiffusionFigures, required_claim
from braid_lab.diffusion.experiments import SCANNED

Shape = Callable[[pd.Series], object]
"""A test of whether CTR over ATR, by x, has the shape of a claim."""


def _make_reading_claim(f: DiffusionFigures, figure: str, says: str, shape: Shape) -> Claim:
    """Return a claim on CTR against ATR that names the interpretations under which it holds."""
    ratios = f.ratios_by_interpretation(figure)
    held = [name for name, by in ratios.items() if shape(by)]
    told = held or list(ratios)
    ends = (f"{n}: {ratios[n].iloc[0]:.3g} to {ratios[n].iloc[-1]:.3g}" for n in told)
    holds: Verdict = "yes" if len(held) == len(ratios) else "under reading" if held else "no"
    even = all(bool((abs(by - 1) <= 0.01).all()) for by in ratios.values())
    why = "" if holds == "yes" else "; ".join(held) if held else EVEN if even else NONE
    return Claim(PAPER, f"Fig. {figure}", f"{says}: CTR / ATR", "; ".join(ends), holds, why)


def few_streams_claim(f: DiffusionFigures) -> Claim:
    """Fig. 13: ATR is ahead for two and three streams."""
    says = "ATR ahead for 3 streams, and not behind for 2"
    return _make_reading_claim(
        f, "13", says, lambda by: by.iloc[0] <= 1.01 and _select_fewest_streams_ratio(by) < 0.99
    )


def _select_fewest_streams_ratio(by: pd.Series) -> float:
    """Return CTR over ATR for three streams, or the fewest that were tried."""
    return float(by[3] if 3 in by.index else by.iloc[0])


def many_streams_claim(f: DiffusionFigures) -> Claim:
    """Fig. 13: CTR is ahead for more streams."""
    return _make_reading_claim(
        f, "13", "CTR ahead for the most streams", lambda by: by.iloc[-1] > 1.01
    )


def streams_claim(f: DiffusionFigures) -> Claim:
    """Fig. 13: both at once."""
    says = "ATR ahead for 3 streams, CTR for the most"
    return _make_reading_claim(
        f, "13", says, lambda by: _select_fewest_streams_ratio(by) < 0.99 and by.iloc[-1] > 1.01
    )


def hops_claim(f: DiffusionFigures) -> Claim:
    """Fig. 13 with one selectivity a hop, of three to five streams: both at once."""
    says = "with one selectivity a hop, ATR ahead for 3 streams, CTR for the most (5)"
    return _make_reading_claim(
        f,
        "13, Eq. 3",
        says,
        lambda by: _select_fewest_streams_ratio(by) < 0.99 and by.iloc[-1] > 1.01,
    )


def streams_check(f: DiffusionFigures) -> Claim:
    """Fig. 13: CTR gains on ATR from three streams to the most, at either cost of a probe.

    It holds if any host may be used.
    """
    by = {n: r for n, r in f.ratios_by_interpretation("13").items() if n.startswith("L = J,")}
    found = "; ".join(
        f"{n}: {_select_fewest_streams_ratio(r):.3g} to {r.iloc[-1]:.3g}" for n, r in by.items()
    )
    holds = all(r.iloc[-1] > _select_fewest_streams_ratio(r) for r in by.values())
    return required_claim("13", "CTR gains on ATR from 3 streams to the most", found, holds)


def window_size_claims(f: DiffusionFigures) -> list[Claim]:
    """Fig. 14: ATR is ahead for small windows, CTR for large ones."""
    return [
        _make_reading_claim(f, "14", "ATR ahead for small windows", lambda by: by.iloc[0] < 0.99),
        _make_reading_claim(f, "14", "CTR ahead for large windows", lambda by: by.iloc[-1] > 1.01),
        _make_reading_claim(
            f,
            "14",
            "ATR ahead for small windows, CTR for large",
            lambda by: by.iloc[0] < 0.99 and by.iloc[-1] > 1.01,
        ),
    ]


def selectivity_claims(f: DiffusionFigures) -> list[Claim]:
    """Fig. 15: CTR is ahead at low selectivity, ATR at high."""
    return [
        _make_reading_claim(f, "15", "CTR ahead at low selectivity", lambda by: by.iloc[0] > 1.01),
        _make_reading_claim(
            f, "15", "ATR ahead at high selectivity", lambda by: by.iloc[-1] < 0.99
        ),
        _make_reading_claim(
            f,
            "15",
            "CTR ahead at low selectivity, ATR at high",
            lambda by: by.iloc[0] > 1.01 and by.iloc[-1] < 0.99,
        ),
    ]


def selectivity_gains_check(f: DiffusionFigures) -> Claim:
    """Fig. 15: ATR gains on CTR as the selectivity grows, with L = J/2 and either reading."""
    by = {n: r for n, r in f.ratios_by_interpretation("15").items() if n.startswith("L = J/2")}
    found = "; ".join(f"{n}: {r.iloc[0]:.3g} to {r.iloc[-1]:.3g}" for n, r in by.items())
    holds = all(r.iloc[-1] < r.iloc[0] for r in by.values())
    return required_claim("15", "ATR gains on CTR as σ grows", found, holds)


def bursts_claim(f: DiffusionFigures) -> Claim:
    """Fig. 16: CTR is ahead under bursts."""
    return _make_reading_claim(f, "16", "CTR ahead under bursts", lambda by: by.iloc[-1] > 1.01)


def bursts_check(f: DiffusionFigures) -> Claim:
    """Fig. 16: CTR gains on ATR with bursts, with L = J/2 and a probe per tuples scanned.

    With the other interpretation it holds in long runs only.
    """
    ratios = {
        n: r for n, r in f.ratios_by_interpretation("16").items() if n == f"L = J/2, {SCANNED}"
    }
    by = {n: (r.iloc[0], r.iloc[-1]) for n, r in ratios.items()}
    found = "; ".join(f"{n}: {first:.3g} to {last:.3g}" for n, (first, last) in by.items())
    holds = all(last > first for first, last in by.values())
    return required_claim("16", "CTR gains on ATR as θ grows", found, holds)


def atr_against_ctr_claims(f: DiffusionFigures) -> list[Claim]:
    """Return all claims, in the order of the figures."""
    return [
        *(c(f) for c in (few_streams_claim, many_streams_claim, streams_claim, hops_claim)),
        streams_check(f),
        *window_size_claims(f),
        *selectivity_claims(f),
        selectivity_gains_check(f),
        bursts_claim(f),
        bursts_check(f),
    ]
