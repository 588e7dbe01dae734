"""The claims of Gu, Yu and Wang 2007, Fig. 13 to 16: ATR against CTR.

They are by streams, window, selectivity and bursts. Ahead means by more than MARGIN; else even.
Some depend on what the paper leaves open: L, the bound on copies under CTR, and the cost of a
probe. Such a claim names the interpretations under which it holds.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from braid_lab.common.claims import Case, ClaimRegistry, Finding, judge, leave_untested
from braid_lab.diffusion.claim_frames import (
    AHEAD,
    ALL,
    COSTS,
    EVEN,
    HALF,
    MARGIN,
    NONE,
    PAPER,
    PRINTED,
    QUOTES,
    ROOT,
    STARTED,
    TWO,
    DiffusionFigures,
    Ratios,
    Shape,
    is_ahead,
    is_behind,
    is_growing,
    judge_readings,
    name_runs,
)
from braid_lab.diffusion.experiments import READINGS, VISITED, describe_probe, seed_means

BOTH = (
    "ATR and CTR (bound L on copies: {bounds}); J = {hosts} hosts drawn as in section 5, {streams} "
    "Poisson streams, r_i of {rates} tuples/s, W = {window} s, σ = {selectivity}"
)
RUNS = (
    f"{STARTED}; {COSTS}; {{seconds}} s, after one window, results/s in the mean of seeds "
    "{seed:range}"
)
STEADY = f"{BOTH} for each {{selects}}, {RUNS}"
BURSTING = (
    f"{BOTH} for each {{selects}}, θ = {{burst}}, HIGH in half of each period of {{period}} s, "
    f"streams out of step, the mean rate half of r_i, {RUNS}"
)
SETTINGS = {"Fig.": f"{STEADY}; {AHEAD}", "Fig. 16": f"{BURSTING}; {AHEAD}"}
CLAIMS = ClaimRegistry(PAPER, SETTINGS)
CHOSEN = "other values that the paper leaves open are ours"
OURS = {
    "13": f"σ, the rates and {CHOSEN}",
    "14": f"σ, the rates and {CHOSEN}",
    "15": f"the rates and {CHOSEN}",
    "16": f"σ, the rates, their period and {CHOSEN}",
}
"""By figure, what this study chose, since the paper states none."""
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
    finding = judge_readings(ratios, shape, refusal, OURS[figure[:2]])
    every = pd.concat([*ratios.values()])
    if (abs(every - 1) <= MARGIN).all():
        finding = leave_untested(finding.result, f"{EVEN} {every.min():.4g} to {every.max():.4g}")
    varied = {"bounds": _list_bounds(ratios), VARIED[figure[:2]]: judged}
    return name_runs(finding, f.outcomes[figure], **varied)


def _list_bounds(ratios: Ratios) -> list[str]:
    """Return the bounds L of interpretations; one that is not under all readings names its own."""
    readings: dict[str, list[str]] = {}
    for bound, reading in (name.removeprefix("L = ").split(", ") for name in ratios):
        readings.setdefault(bound, []).append(reading)
    most = max(map(len, readings.values()))
    return [b if len(r) == most else f"{b} ({', '.join(r)})" for b, r in readings.items()]


def _is_ahead_for_more(by: pd.Series) -> bool:
    """Return whether CTR is ahead for every number of streams above three."""
    return is_ahead(by[by.index > 3])


def _is_ahead_for_more_only(by: pd.Series) -> bool:
    """Return whether CTR is behind for three streams, and ahead for every larger number."""
    return is_behind(by.iloc[:1]) and _is_ahead_for_more(by)


@CLAIMS.claim("Fig. 13", "ATR ahead for 2 streams: CTR / ATR")
def two_streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: ATR is ahead for two streams."""
    return _judge_shape(f, "13", is_behind, lambda by: by[by.index == 2])


@CLAIMS.claim("Fig. 13", "ATR ahead for 3 streams: CTR / ATR")
def three_streams_claim(f: DiffusionFigures) -> Finding:
    """Fig. 13: ATR is ahead for three streams."""
    return _judge_shape(f, "13", is_behind, lambda by: by[by.index == 3])


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
    "CTR gains on ATR with every stream that is added to 3: CTR / ATR",
    setting=STEADY,
)
def streams_check(f: DiffusionFigures) -> Finding:
    """Fig. 13: CTR gains on ATR with every stream that is added to three."""
    return _judge_shape(f, "13", is_growing, _select_from_three)


def _list_printed() -> list[Case]:
    return [
        {"figure": "13", "name": "n", "x": 6, "unit": ""},
        {"figure": "14", "name": "W", "x": 50, "unit": " s"},
        {"figure": "15", "name": "σ", "x": 0.2, "unit": ""},
        {"figure": "16", "name": "θ", "x": 1, "unit": ""},
    ]


@CLAIMS.claim(
    "Fig. {figure}",
    "CTR without a bound on copies, as printed, ahead at {name} = {x}{unit}: CTR / ATR",
    cases=_list_printed,
)
def printed_claim(f: DiffusionFigures, figure: str, name: str, x: float, unit: str) -> Finding:
    """Fig. 13 to 16: the policy as printed, where its figures have it ahead."""
    rows = f.outcomes[figure]
    by = seed_means(rows[rows["reading"] == VISITED]).loc[[x]]
    ratio = by[PRINTED] / by["ATR"]
    both = " / ".join(f"{float(f'{by.loc[x, name]:.5g}'):,}" for name in (PRINTED, "ATR"))
    result = f"{ratio[x]:.4g}: {both} results/s"
    failure = f"{QUOTES[figure]} (section 5): CTR / ATR {result}"
    finding = judge(result, is_ahead(ratio), failure=failure)
    probe = describe_probe(READINGS[VISITED])
    return name_runs(finding, rows, bounds="none", probe=probe, **{VARIED[figure]: x})


@CLAIMS.claim("Fig. 14", "ATR ahead for the smallest window: CTR / ATR")
def small_windows_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: ATR is ahead for small windows."""
    return _judge_shape(f, "14", is_behind, _select_least)


@CLAIMS.claim("Fig. 14", "CTR ahead for the largest window: CTR / ATR")
def large_windows_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: CTR is ahead for large windows."""
    return _judge_shape(f, "14", is_ahead, _select_greatest)


@CLAIMS.claim("Fig. 14", "CTR ahead for W = 50 s, by L and how much work may wait: CTR / ATR")
def waiting_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: CTR is ahead for the largest window, by the work that may wait at a host."""
    ratios = {
        f"{name.removeprefix('CTR, ')}, {wait:g} s": by
        for name in (TWO, ROOT, HALF, ALL, PRINTED)
        for wait, by in f.throughput_ratio("14, wait", name, "ATR").groupby(level=0)
    }
    why = f"{QUOTES['14']} (section 5): for none of these L, however much work may wait"
    finding = judge_readings(ratios, is_ahead, why, OURS["14"])
    return name_runs(finding, f.outcomes["14, wait"])


@CLAIMS.claim("Fig. 14", "ATR ahead for the smallest window, CTR for the largest: CTR / ATR")
def window_size_claim(f: DiffusionFigures) -> Finding:
    """Fig. 14: both at once."""
    return _judge_shape(
        f, "14", lambda by: is_behind(by.iloc[:1]) and is_ahead(by.iloc[1:]), _select_ends
    )


@CLAIMS.claim("Fig. 15", "CTR ahead at the lowest selectivity: CTR / ATR")
def low_selectivity_claim(f: DiffusionFigures) -> Finding:
    """Fig. 15: CTR is ahead at low selectivity."""
    return _judge_shape(f, "15", is_ahead, _select_least)


@CLAIMS.claim("Fig. 15", "ATR ahead at the highest selectivity: CTR / ATR")
def high_selectivity_claim(f: DiffusionFigures) -> Finding:
    """Fig. 15: ATR is ahead at high selectivity."""
    return _judge_shape(f, "15", is_behind, _select_greatest)


@CLAIMS.claim("Fig. 15", "CTR ahead at the lowest selectivity, ATR at the highest: CTR / ATR")
def selectivity_claim(f: DiffusionFigures) -> Finding:
    """Fig. 15: both at once."""
    return _judge_shape(
        f, "15", lambda by: is_ahead(by.iloc[:1]) and is_behind(by.iloc[1:]), _select_ends
    )


@CLAIMS.claim(
    "beyond the paper", "ATR gains on CTR with every step of σ: CTR / ATR", setting=STEADY
)
def selectivity_gains_check(f: DiffusionFigures) -> Finding:
    """Fig. 15: ATR gains on CTR as the selectivity grows."""
    return _judge_shape(f, "15", lambda by: is_growing(-by))


@CLAIMS.claim("Fig. 16", "CTR ahead under full bursts (θ = 1): CTR / ATR")
def bursts_claim(f: DiffusionFigures) -> Finding:
    """Fig. 16: CTR is ahead under bursts."""
    return _judge_shape(f, "16", is_ahead, _select_greatest)


@CLAIMS.claim("beyond the paper", "CTR gains on ATR from θ = 0 to 1: CTR / ATR", setting=BURSTING)
def bursts_check(f: DiffusionFigures) -> Finding:
    """Fig. 16: CTR gains on ATR with bursts."""
    return _judge_shape(f, "16", lambda by: by.iloc[-1] > by.iloc[0], _select_ends)


@CLAIMS.claim(
    "Fig. 16",
    "CTR ahead under full bursts (θ = 1) with r_i from 5 to 20, half of it in the mean: CTR / ATR",
)
def halved_bursts_claim(f: DiffusionFigures) -> Finding:
    """Fig. 16 with high and low rates by the paper's formula from r_i of its other figures."""
    return _judge_shape(f, "16, r_i", is_ahead, _select_greatest)
