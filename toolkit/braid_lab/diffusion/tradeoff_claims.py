"""The claims of Gu, Yu and Wang 2007, Fig. 13 to 16: ATR against CTR.

They are by streams, window, selectivity and bursts. Ahead means by more than 1 %; closer is even.
Some depend on what the paper leaves open: L, the bound on copies under CTR, and the cost of a
probe. Such a claim names the interpretations under which it holds.
"""

from __future__ import annotations

from collections.abc import Callable

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
    name_runs,
)

BOTH = (
    "ATR and CTR (L: {bounds}); {hosts} hosts, {streams} streams, r_i of {rates} tuples/s, W = "
    "{window} s, σ = {selectivity}"
)
RUNS = (
    "segments of {length} s, under ATR the first, a probe of {probe}, {patience} s of work may "
    "wait; {seconds} s, after one window, seeds {seed:range}"
)
SETTINGS = {
    "Fig.": f"{BOTH} for each {{selects}}, {RUNS}",
    "Fig. 13, 14, 15, 16": f"ATR and CTR (L: {{bounds}}); {{hosts}} hosts, {{joins}}; {RUNS}",
    "Fig. 16": f"{BOTH}, θ = {{burst}} with a period of {{period}} s, the mean rate half of r_i, "
    f"{RUNS}",
}
CLAIMS = ClaimRegistry(PAPER, SETTINGS)
WAITS = "how much work may wait is ours"
OURS = {
    "14": WAITS,
    "15": WAITS,
    "13": f"σ is ours, since the paper states none, and {WAITS}",
    "16": "the rates, their period and how much work may wait are ours",
}
"""By figure, what this study chose."""
VARIED = {"13": "streams", "14": "window", "15": "selectivity", "16": "burst"}
"""By figure, what its x is in a setting."""
Select = Callable[[pd.Series], pd.Series]
"""A choice of values by x."""


def _select_all(by: pd.Series) -> pd.Series:
    return by


def _select_least(by: pd.Series) -> pd.Series:
    return by.iloc[[0]]


def _select_greatest(by: pd.Series) -> pd.Series:
    return by.iloc[[-1]]


def _select_ends(by: pd.Series) -> pd.Series:
    return by.iloc[[0, -1]]


def _select_from_three(by: pd.Series) -> pd.Series:
    """Select three streams and more, or all if three were not tried."""
    return by[by.index >= 3] if 3 in by.index else by


def _judge_shape(
    f: DiffusionFigures, figure: str, shape: Shape, select: Select = _select_all
) -> Finding:
    """Return the finding on CTR against ATR; it names the interpretations under which it holds.

    ``select`` returns what is judged of the ratios by x.
    """
    ratios = {name: select(by) for name, by in f.ratios_by_interpretation(figure).items()}
    judged = {x for by in ratios.values() for x in by.index}
    if not all(map(len, ratios.values())):
        return name_runs(leave_untested("", "they were not tried"), f.outcomes[figure])
    refusal = f"{QUOTES[figure[:2]]} (section 5): {NONE}"
    finding = judge_readings(ratios, shape, refusal, OURS.get(figure, ""))
    if all(bool((abs(by - 1) <= 0.01).all()) for by in ratios.values()):
        finding = leave_untested(finding.result, EVEN)
    return name_runs(finding, f.outcomes[figure], **{VARIED[figure[:2]]: judged})


def _is_ahead_for_more(by: pd.Series) -> bool:
    """Return whether CTR is ahead for every number of streams above three."""
    return bool((by[by.index > 3] > 1.01).all())


def _is_ahead_for_more_only(by: pd.Series) -> bool:
    """Return whether CTR is behind for three streams, and ahead for every larger number."""
    return by.iloc[0] < 0.99 and _is_ahead_for_more(by)


@CLAIMS.claim("Fig. 13", "ATR ahead for 2 streams: CTR / ATR")
def two_streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: ATR is ahead for two streams."""
    return _judge_shape(f, "13", lambda by: by.iloc[0] < 0.99, lambda by: by[by.index == 2])


@CLAIMS.claim("Fig. 13", "ATR ahead for 3 streams: CTR / ATR")
def three_streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: ATR is ahead for three streams."""
    return _judge_shape(f, "13", lambda by: by.iloc[0] < 0.99, lambda by: by[by.index == 3])


@CLAIMS.claim("Fig. 13", "CTR ahead for every number of streams above 3: CTR / ATR")
def many_streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: CTR is ahead for larger stream numbers, each of them."""
    return _judge_shape(f, "13", _is_ahead_for_more, lambda by: by[by.index > 3])


@CLAIMS.claim("Fig. 13", "ATR ahead for 3 streams, CTR for every number above: CTR / ATR")
def streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: both at once."""
    return _judge_shape(f, "13", _is_ahead_for_more_only, _select_from_three)


@CLAIMS.claim(
    "beyond the paper",
    "ATR ahead for 3 streams, CTR for the most: CTR / ATR",
    setting=SETTINGS["Fig."],
)
def last_streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: both at once, with the change anywhere."""
    return _judge_shape(
        f,
        "13",
        lambda by: by.iloc[0] < 0.99 and by.iloc[-1] > 1.01,
        lambda by: _select_ends(_select_from_three(by)),
    )


@CLAIMS.claim(
    "Fig. 13, Eq. 3",
    "with one selectivity a hop, ATR ahead for 3 streams, CTR for 4 and 5: CTR / ATR",
)
def hops_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13 with one selectivity a hop, of three to five streams: both at once."""
    return _judge_shape(f, "13, Eq. 3", _is_ahead_for_more_only)


@CLAIMS.claim(
    "beyond the paper",
    "CTR gains on ATR with every stream that is added to 3",
    setting=SETTINGS["Fig."],
)
def streams_check(f: DiffusionFigures) -> Finding:
    """Fig. 13: CTR gains on ATR with every stream that is added to three."""
    return _judge_shape(f, "13", is_growing, _select_from_three)


@CLAIMS.claim(
    "Fig. 13, 14, 15, 16",
    "CTR without a bound on copies, as printed, is ahead where the paper has it ahead: CTR / ATR",
)
def printed_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13 to 16: the policy as printed, where its figures have it ahead."""
    by = f.throughput_ratio("13 to 16", PRINTED, "ATR")
    why = (
        f"{QUOTES['14']} (section 5): with no bound it is ahead in {(by > 1.01).sum()} of these "
        f"{len(by)}, one of each figure"
    )
    finding = judge(format_values(by), (by > 1.01).all(), failure=why)
    return name_runs(finding, f.outcomes["13 to 16"])


@CLAIMS.claim("Fig. 14", "ATR ahead for small windows: CTR / ATR")
def small_windows_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: ATR is ahead for small windows."""
    return _judge_shape(f, "14", lambda by: by.iloc[0] < 0.99, _select_least)


@CLAIMS.claim("Fig. 14", "CTR ahead for large windows: CTR / ATR")
def large_windows_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: CTR is ahead for large windows."""
    return _judge_shape(f, "14", lambda by: by.iloc[0] > 1.01, _select_greatest)


@CLAIMS.claim("Fig. 14", "CTR ahead for W = 50 s, by L and how much work may wait: CTR / ATR")
def waiting_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: CTR is ahead for the largest window, by the work that may wait at a host."""
    ratios = {
        f"{name.removeprefix('CTR, ')}, {wait:g} s": by
        for name in (TWO, ROOT, HALF, ALL)
        for wait, by in f.throughput_ratio("14, wait", name, "ATR").groupby(level=0)
    }
    why = f"{QUOTES['14']} (section 5): for none of these L, however much work may wait"
    return name_runs(
        judge_readings(ratios, lambda by: by.iloc[0] > 1.01, why), f.outcomes["14, wait"]
    )


@CLAIMS.claim("Fig. 14", "ATR ahead for small windows, CTR for large: CTR / ATR")
def window_size_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: both at once."""
    return _judge_shape(f, "14", lambda by: by.iloc[0] < 0.99 and by.iloc[-1] > 1.01, _select_ends)


@CLAIMS.claim("Fig. 15", "CTR ahead at low selectivity: CTR / ATR")
def low_selectivity_claim(f: DiffusionFigures) -> Finding:
    """Fig. 15: CTR is ahead at low selectivity."""
    return _judge_shape(f, "15", lambda by: by.iloc[0] > 1.01, _select_least)


@CLAIMS.claim("Fig. 15", "ATR ahead at high selectivity: CTR / ATR")
def high_selectivity_claim(f: DiffusionFigures) -> Finding:
    """Fig. 15: ATR is ahead at high selectivity."""
    return _judge_shape(f, "15", lambda by: by.iloc[0] < 0.99, _select_greatest)


@CLAIMS.claim("Fig. 15", "CTR ahead at low selectivity, ATR at high: CTR / ATR")
def selectivity_claim(f: DiffusionFigures) -> Finding:
    """Fig. 15: both at once."""
    return _judge_shape(f, "15", lambda by: by.iloc[0] > 1.01 and by.iloc[-1] < 0.99, _select_ends)


@CLAIMS.claim("beyond the paper", "ATR gains on CTR with every step of σ", setting=SETTINGS["Fig."])
def selectivity_gains_check(f: DiffusionFigures) -> Finding:
    """Fig. 15: ATR gains on CTR as the selectivity grows."""
    return _judge_shape(f, "15", lambda by: is_growing(-by))


@CLAIMS.claim("Fig. 16", "CTR ahead under full bursts (θ = 1): CTR / ATR")
def bursts_claim(f: DiffusionFigures) -> Finding:
    """Fig. 16: CTR is ahead under bursts."""
    return _judge_shape(f, "16", lambda by: by.iloc[0] > 1.01, _select_greatest)


@CLAIMS.claim("beyond the paper", "CTR gains on ATR from θ = 0 to 1", setting=SETTINGS["Fig. 16"])
def bursts_check(f: DiffusionFigures) -> Finding:
    """Fig. 16: CTR gains on ATR with bursts."""
    return _judge_shape(f, "16", lambda by: by.iloc[-1] > by.iloc[0], _select_ends)


@CLAIMS.claim(
    "Fig. 16",
    "CTR ahead under full bursts (θ = 1) with r_i from 5 to 20, half of it in the mean: CTR / ATR",
)
def halved_bursts_claim(f: DiffusionFigures) -> Finding:
    """Fig. 16 with high and low rates by the paper's formula from r_i of its other figures."""
    return _judge_shape(f, "16, r_i", lambda by: by.iloc[0] > 1.01, _select_greatest)
