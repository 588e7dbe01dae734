"""The claims of Gu, Yu and Wang 2007, Fig. 13 to 16: ATR against CTR.

They are by streams, window, selectivity and bursts. Ahead means by more than 1 %; closer is even.
Some depend on what the paper leaves open: L, the bound on copies under CTR, and the cost of a
probe. Such a claim names the interpretations under which it holds.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from braid_lab.common.claims import ClaimRegistry, Finding, Verdict
from braid_lab.diffusion.claim_frames import EVEN, NONE, PAPER, QUOTES, DiffusionFigures

BOTH = "ATR and CTR; 30 hosts, 5 to 20 tuples/s"
READ = "L = 2, √J, J/2 and J, a probe of 10 ms for each host visited, and for tuples scanned"
SETTINGS = {
    "Fig. 13": f"{BOTH}, W = 20 s, σ = 0.15 for a pair of streams; {READ}; 1000 s, five seeds",
    "Fig. 13, Eq. 3": f"{BOTH}, W = 20 s, σ = 0.1 for a hop; {READ}; 1000 s, one seed",
    "Fig. 14": f"{BOTH}, three streams, σ = 0.1, W from 10 to 50 s; {READ}; 1000 s, five seeds",
    "Fig. 15": f"{BOTH}, three streams, W = 30 s, σ from 0.2 to 1; {READ}; 1000 s, five seeds",
    "Fig. 16": f"{BOTH} in the mean, three streams, W = 30 s, σ = 0.1, θ "
    f"from 0 to 1; {READ}; 1000 s, five seeds",
}
CLAIMS = ClaimRegistry(PAPER, SETTINGS)
Shape = Callable[[pd.Series], object]
"""A test of whether CTR over ATR, by x, has the shape of a claim."""


def _judge_shape(f: DiffusionFigures, figure: str, shape: Shape) -> Finding:
    """Return the finding on CTR against ATR; it names the interpretations under which it holds."""
    ratios = f.ratios_by_interpretation(figure)
    held = [name for name, by in ratios.items() if shape(by)]
    ends = (
        f"{n}: {ratios[n].iloc[0]:.3g} to {ratios[n].iloc[-1]:.3g}"
        for n in sorted(ratios, key=lambda n: n not in held)
    )
    holds: Verdict = "yes" if len(held) == len(ratios) else "under reading" if held else "no"
    even = all(bool((abs(by - 1) <= 0.01).all()) for by in ratios.values())
    none = f"{QUOTES[figure[:2]]} (section 5): {EVEN if even else NONE}"
    some = f"for {len(held)} of {len(ratios)} readings: {'; '.join(held)}"
    why = "" if holds == "yes" else some if held else none
    return Finding("; ".join(ends), holds, why)


def _select_fewest_streams_ratio(by: pd.Series) -> float:
    """Return CTR over ATR for three streams, or the fewest that were tried."""
    return float(by[3] if 3 in by.index else by.iloc[0])


@CLAIMS.claim("Fig. 13", "ATR ahead for 3 streams, and not behind for 2: CTR / ATR")
def few_streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: ATR is ahead for two and three streams."""
    return _judge_shape(
        f, "13", lambda by: by.iloc[0] <= 1.01 and _select_fewest_streams_ratio(by) < 0.99
    )


@CLAIMS.claim("Fig. 13", "CTR ahead for the most streams: CTR / ATR")
def many_streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: CTR is ahead for more streams."""
    return _judge_shape(f, "13", lambda by: by.iloc[-1] > 1.01)


@CLAIMS.claim("Fig. 13", "ATR ahead for 3 streams, CTR for the most: CTR / ATR")
def streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: both at once."""
    return _judge_shape(
        f, "13", lambda by: _select_fewest_streams_ratio(by) < 0.99 and by.iloc[-1] > 1.01
    )


@CLAIMS.claim(
    "Fig. 13, Eq. 3",
    "with one selectivity a hop, ATR ahead for 3 streams, CTR for the most (5): CTR / ATR",
)
def hops_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13 with one selectivity a hop, of three to five streams: both at once."""
    return _judge_shape(
        f, "13, Eq. 3", lambda by: _select_fewest_streams_ratio(by) < 0.99 and by.iloc[-1] > 1.01
    )


@CLAIMS.claim("Fig. 13", "CTR gains on ATR from 3 streams to the most", is_required=True)
def streams_check(f: DiffusionFigures) -> Finding:
    """Fig. 13: CTR gains on ATR from three streams to the most."""
    return _judge_shape(f, "13", lambda by: by.iloc[-1] > _select_fewest_streams_ratio(by))


@CLAIMS.claim("Fig. 14", "ATR ahead for small windows: CTR / ATR")
def small_windows_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: ATR is ahead for small windows."""
    return _judge_shape(f, "14", lambda by: by.iloc[0] < 0.99)


@CLAIMS.claim("Fig. 14", "CTR ahead for large windows: CTR / ATR")
def large_windows_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: CTR is ahead for large windows."""
    return _judge_shape(f, "14", lambda by: by.iloc[-1] > 1.01)


@CLAIMS.claim("Fig. 14", "ATR ahead for small windows, CTR for large: CTR / ATR")
def window_size_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: both at once."""
    return _judge_shape(f, "14", lambda by: by.iloc[0] < 0.99 and by.iloc[-1] > 1.01)


@CLAIMS.claim("Fig. 15", "CTR ahead at low selectivity: CTR / ATR")
def low_selectivity_claim(f: DiffusionFigures) -> Finding:
    """Fig. 15: CTR is ahead at low selectivity."""
    return _judge_shape(f, "15", lambda by: by.iloc[0] > 1.01)


@CLAIMS.claim("Fig. 15", "ATR ahead at high selectivity: CTR / ATR")
def high_selectivity_claim(f: DiffusionFigures) -> Finding:
    """Fig. 15: ATR is ahead at high selectivity."""
    return _judge_shape(f, "15", lambda by: by.iloc[-1] < 0.99)


@CLAIMS.claim("Fig. 15", "CTR ahead at low selectivity, ATR at high: CTR / ATR")
def selectivity_claim(f: DiffusionFigures) -> Finding:
    """Fig. 15: both at once."""
    return _judge_shape(f, "15", lambda by: by.iloc[0] > 1.01 and by.iloc[-1] < 0.99)


@CLAIMS.claim("Fig. 15", "ATR gains on CTR as σ grows", is_required=True)
def selectivity_gains_check(f: DiffusionFigures) -> Finding:
    """Fig. 15: ATR gains on CTR as the selectivity grows."""
    return _judge_shape(f, "15", lambda by: by.iloc[-1] < by.iloc[0])


@CLAIMS.claim("Fig. 16", "CTR ahead under bursts: CTR / ATR")
def bursts_claim(f: DiffusionFigures) -> Finding:
    """Fig. 16: CTR is ahead under bursts."""
    return _judge_shape(f, "16", lambda by: by.iloc[-1] > 1.01)


@CLAIMS.claim("Fig. 16", "CTR gains on ATR as θ grows", is_required=True)
def bursts_check(f: DiffusionFigures) -> Finding:
    """Fig. 16: CTR gains on ATR with bursts."""
    return _judge_shape(f, "16", lambda by: by.iloc[-1] > by.iloc[0])
