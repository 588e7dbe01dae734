"""The claims of Gu, Yu and Wang 2007, Fig. 13 to 16: ATR against CTR.

They are by streams, window, selectivity and bursts. Ahead means by more than 1 %; closer is even.
Some depend on what the paper leaves open: L, the bound on copies under CTR, and the cost of a
probe. Such a claim names the interpretations under which it holds.
"""

from __future__ import annotations

import pandas as pd

from braid_lab.common.claims import ClaimRegistry, Finding, format_values, judge, leave_untested
from braid_lab.diffusion.claim_frames import (
    ALL,
    EVEN,
    HALF,
    NONE,
    PAPER,
    PRINTED,
    QUOTES,
    ROOT,
    TWO,
    DiffusionFigures,
    Shape,
    is_growing,
    judge_readings,
)

BOTH = "ATR and CTR; 30 hosts, 5 to 20 tuples/s, T0 = 1 s, 10 s of work may wait"
READ = "L = 2, √J, J/2 and J, a probe of 10 ms for each host visited, and for tuples scanned"
SETTINGS = {
    "Fig. 13": f"{BOTH}, W = 20 s, two to six streams, σ = 0.15 for a pair of streams; {READ}; "
    "1000 s, five seeds",
    "Fig. 13, 14, 15, 16": "ATR and CTR (no bound L); 30 hosts, T0 = 1 s, a probe of 10 ms for "
    "each host visited, 10 s of work may wait; six streams (W = 20 s, σ = 0.15), and three with W "
    "= 50 s, σ = 0.2 and θ = 1 (else W = 30 s, σ = 0.1); 1000 s, one seed",
    "Fig. 13, Eq. 3": f"{BOTH}, W = 20 s, three to five streams, σ = 0.1 for a hop; {READ}; 1000 "
    "s, one seed",
    "Fig. 14": f"{BOTH}, three streams, σ = 0.1, W from 10 to 50 s; {READ}; 1000 s, five seeds",
    "Fig. 14, wait": "ATR and CTR (L = 2, √J, J/2 and J); 30 hosts, 5 to 20 tuples/s, T0 = 1 s, "
    "three streams, σ = 0.1, W = 50 s, a probe of 10 ms for each host visited; 0, 2 and 10 s of "
    "work may wait; 1000 s, one seed",
    "Fig. 15": f"{BOTH}, three streams, W = 30 s, σ from 0.2 to 1; {READ}; 1000 s, five seeds",
    "Fig. 16": f"{BOTH} in the mean, three streams, W = 30 s, σ = 0.1, θ "
    f"from 0 to 1 with a period of 20 s; {READ}; 1000 s, five seeds",
    "Fig. 16, r_i": "ATR and CTR; 30 hosts, r_i from 5 to 20 tuples/s, T0 = 1 s, 10 s of work may "
    "wait, three streams, W = 30 s, σ = 0.1, θ = 0 and 1 with a period of 20 s; "
    f"{READ}; 1000 s, one seed",
}
CLAIMS = ClaimRegistry(PAPER, SETTINGS)
WAITS = "10 s of waiting work are ours"
OURS = {
    "14": WAITS,
    "15": WAITS,
    "13": f"σ = 0.15, since the paper states none, and {WAITS}",
    "16": f"rates of 5 to 20 in the mean, a period of 20 s and {WAITS}",
}
"""By figure, what this study chose."""


def _judge_shape(f: DiffusionFigures, figure: str, shape: Shape, only: object = None) -> Finding:
    """Return the finding on CTR against ATR; it names the interpretations under which it holds.

    ``only`` is the value of x that is judged; None: all of them.
    """
    ratios = f.ratios_by_interpretation(figure)
    if only is not None:
        ratios = {name: by[by.index == only] for name, by in ratios.items()}
    if not all(map(len, ratios.values())):
        return leave_untested("", f"{only} was not tried")
    even = all(bool((abs(by - 1) <= 0.01).all()) for by in ratios.values())
    refusal = f"{QUOTES[figure[:2]]} (section 5): {EVEN if even else NONE}"
    return judge_readings(ratios, shape, refusal, OURS.get(figure, ""))


def _select_fewest_streams_ratio(by: pd.Series) -> float:
    """Return CTR over ATR for three streams, or the fewest that were tried."""
    return float(by[3] if 3 in by.index else by.iloc[0])


def _is_ahead_for_more(by: pd.Series, streams: int = 4) -> bool:
    """Return whether CTR is ahead for every larger number of streams, from ``streams`` on."""
    return bool((by[by.index >= streams] > 1.01).all())


@CLAIMS.claim("Fig. 13", "ATR ahead for 2 streams: CTR / ATR")
def two_streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: ATR is ahead for two streams."""
    return _judge_shape(f, "13", lambda by: by.iloc[0] < 0.99, only=2)


@CLAIMS.claim("Fig. 13", "ATR ahead for 3 streams: CTR / ATR")
def three_streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: ATR is ahead for three streams."""
    return _judge_shape(f, "13", lambda by: by.iloc[0] < 0.99, only=3)


@CLAIMS.claim("Fig. 13", "CTR ahead for every number of streams above 3: CTR / ATR")
def many_streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: CTR is ahead for larger stream numbers, each of them."""
    return _judge_shape(f, "13", _is_ahead_for_more)


@CLAIMS.claim("Fig. 13", "ATR ahead for 3 streams, CTR for every number above: CTR / ATR")
def streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: both at once."""
    return _judge_shape(
        f, "13", lambda by: _select_fewest_streams_ratio(by) < 0.99 and _is_ahead_for_more(by)
    )


@CLAIMS.claim("Fig. 13", "ATR ahead for 3 streams, CTR for the most: CTR / ATR")
def last_streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: both at once, with the change anywhere."""
    return _judge_shape(
        f, "13", lambda by: _select_fewest_streams_ratio(by) < 0.99 and by.iloc[-1] > 1.01
    )


@CLAIMS.claim(
    "Fig. 13, Eq. 3",
    "with one selectivity a hop, ATR ahead for 3 streams, CTR for 4 and 5: CTR / ATR",
)
def hops_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13 with one selectivity a hop, of three to five streams: both at once."""
    return _judge_shape(
        f,
        "13, Eq. 3",
        lambda by: _select_fewest_streams_ratio(by) < 0.99 and _is_ahead_for_more(by),
    )


@CLAIMS.claim("Fig. 13", "CTR gains on ATR with every stream above 3", is_required=True)
def streams_check(f: DiffusionFigures) -> Finding:
    """Fig. 13: CTR gains on ATR with every stream from three on."""
    return _judge_shape(f, "13", lambda by: is_growing(by.loc[3:] if 3 in by.index else by))


@CLAIMS.claim(
    "Fig. 13, 14, 15, 16",
    "CTR without a bound on copies, as printed, is ahead where the paper has it ahead: CTR / ATR",
)
def printed_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13 to 16: the policy as printed, where its figures have it ahead."""
    by = f.throughput_ratio("13 to 16", PRINTED, "ATR")
    why = (
        f"{QUOTES['14']} (section 5): with no bound it finds less than ATR, here and in the other "
        "three"
    )
    return judge(format_values(by), (by > 1.01).all(), failure=why)


@CLAIMS.claim("Fig. 14", "ATR ahead for small windows: CTR / ATR")
def small_windows_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: ATR is ahead for small windows."""
    return _judge_shape(f, "14", lambda by: by.iloc[0] < 0.99)


@CLAIMS.claim("Fig. 14", "CTR ahead for large windows: CTR / ATR")
def large_windows_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: CTR is ahead for large windows."""
    return _judge_shape(f, "14", lambda by: by.iloc[-1] > 1.01)


@CLAIMS.claim("Fig. 14, wait", "CTR ahead for W = 50 s, by L and how much work may wait: CTR / ATR")
def waiting_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: CTR is ahead for the largest window, by the work that may wait at a host."""
    ratios = {
        f"{name.removeprefix('CTR, ')}, {wait:g} s": by
        for name in (TWO, ROOT, HALF, ALL)
        for wait, by in f.throughput_ratio("14, wait", name, "ATR").groupby(level=0)
    }
    why = f"{QUOTES['14']} (section 5): for none of these L, however much work may wait"
    return judge_readings(ratios, lambda by: by.iloc[0] > 1.01, why)


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


@CLAIMS.claim("Fig. 15", "ATR gains on CTR with every step of σ", is_required=True)
def selectivity_gains_check(f: DiffusionFigures) -> Finding:
    """Fig. 15: ATR gains on CTR as the selectivity grows."""
    return _judge_shape(f, "15", lambda by: is_growing(-by))


@CLAIMS.claim("Fig. 16", "CTR ahead under full bursts (θ = 1): CTR / ATR")
def bursts_claim(f: DiffusionFigures) -> Finding:
    """Fig. 16: CTR is ahead under bursts."""
    return _judge_shape(f, "16", lambda by: by.iloc[-1] > 1.01)


@CLAIMS.claim("Fig. 16", "CTR gains on ATR from θ = 0 to 1", is_required=True)
def bursts_check(f: DiffusionFigures) -> Finding:
    """Fig. 16: CTR gains on ATR with bursts."""
    return _judge_shape(f, "16", lambda by: by.iloc[-1] > by.iloc[0])


@CLAIMS.claim(
    "Fig. 16, r_i",
    "CTR ahead under full bursts (θ = 1) with r_i from 5 to 20, half of it in the mean: CTR / ATR",
)
def halved_bursts_claim(f: DiffusionFigures) -> Finding:
    """Fig. 16 with high and low rates by the paper's formula from r_i of its other figures."""
    return _judge_shape(f, "16, r_i", lambda by: by.iloc[-1] > 1.01)
