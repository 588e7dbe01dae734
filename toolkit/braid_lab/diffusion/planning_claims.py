"""The claims of Gu, Yu and Wang 2007 on planning, against the data of ``planning_costs``.

They are those of routing times (Fig. 9 and 10, measured), of greedy covers and of Eq. 2 to 4.
"""

from __future__ import annotations

import pandas as pd

from braid_lab.common.claims import Case, ClaimRegistry, Finding, judge, judge_reading
from braid_lab.diffusion.claim_frames import (
    COSTS,
    JOIN,
    LOADS,
    PAPER,
    POLICIES,
    SEGMENTS,
    STARTED,
    DiffusionFigures,
    name_runs,
)

PLANNED = (
    f"plans of {POLICIES} in Python, measured on {{machine}}, the time of a second's plan divided "
    f"by its tuples, median of all seconds with tuples; {JOIN}, {STARTED}; hosts {COSTS}; one "
    "window and {seconds} s, seed {seed}"
)
COVERED = (
    "covers for the first hop of the first stream in CTR's own plans, one plan in {each}, bound L "
    f"on copies: {{copies}}, exact ones by integer programming; {JOIN}, {SEGMENTS}; {COSTS}; one "
    "window and {seconds} s, each of seeds {seed:range}"
)
FREE = (
    f"with {SEGMENTS}; {JOIN}; {LOADS}, hosts take no time; tuples and intermediate results sent "
    "beyond one copy of each tuple, in the last {counted_seconds} s of one window and {seconds} s, "
    "each of seeds {seed:range}"
)
SETTINGS = {
    "Fig. 9": PLANNED,
    "Fig. 10": PLANNED,
    "Eq. 2": f"ATR-unoptimized {FREE}",
    "Eq. 3": "CTR (no bound on copies; {warmup} hosts by load alone while some hold nothing) "
    + FREE,
}
CLAIMS = ClaimRegistry(PAPER, SETTINGS)

TENS = 100
"""Microseconds below which a time counts as tens of them."""
SLACK = 0.02
"""Share by which random arrivals change what is counted."""
NEAR = 0.15
"""Share by which a count may differ from Eq. 3."""


def _list_routing_times() -> list[Case]:
    return [{"figure": "9", "window": 60.0}, {"figure": "10", "window": 120.0}]


@CLAIMS.claim(
    "Fig. {figure}",
    "tens of microseconds for a tuple or less, median, W = {window:g} s (measured)",
    cases=_list_routing_times,
)
def routing_claim(f: DiffusionFigures, figure: str, window: float) -> Finding:
    """Fig. 9, 10: a tuple is routed in tens of microseconds (measured)."""
    median = f.routing[window].groupby("placement")["micros"].median()
    times = ", ".join(f"{name} {micros:.3g} µs" for name, micros in median.items())
    shared = (
        f"{times}, if the tuples of a second share the time of its plan; less than {TENS} µs count"
    )
    refusal = f'"tens of micro-seconds" (section 5): {shared}'
    is_met = bool(median.max() < TENS)
    finding = judge_reading(times, is_met, shared if is_met else refusal)
    return name_runs(finding, f.routing[window])


@CLAIMS.claim(
    "beyond the paper",
    "a greedy cover weighs at most H(d) times the lightest, d the most segments on a host",
    is_required=True,
    setting=COVERED,
)
def chvatal_check(f: DiffusionFigures) -> Finding:
    """A greedy cover of section 4.1 is within Chvatal's bound of the lightest."""
    far = (f.covers["ratio"] - f.covers["bound"]).max()
    result = (
        f"greedy / exact at most {f.covers['ratio'].max():.3f} in {len(f.covers):,} covers, at "
        f"most {(f.covers['ratio'] / f.covers['bound']).max():.3f} times H(d)"
    )
    return name_runs(judge(result, far <= 1e-9), f.covers, copies=f.covers["copies"])


@CLAIMS.claim(
    "beyond the paper",
    "with a bound on copies the greedy cover is the lightest",
    is_required=True,
    setting=COVERED,
)
def bounded_check(f: DiffusionFigures) -> Finding:
    """With a bound on copies, which the paper does not have, the greedy cover is the lightest."""
    bounded = f.covers[f.covers["copies"] != "none"]
    worst = bounded["ratio"].max()
    result = f"greedy / exact at most {worst:.3f} in {len(bounded):,} covers"
    finding = judge(result, worst < 1 + 1e-6)
    return name_runs(finding, bounded, copies=bounded["copies"])


@CLAIMS.claim(
    "Eq. 2",
    "Eq. 2 counts the copies that ATR makes, if a slave reaches one batch more, within "
    f"{SLACK:.0%}: counted / Eq. 2, by T",
    is_required=True,
)
def equation_2_claim(equations: pd.DataFrame) -> Finding:
    """Eq. 2 against counts: a block is sent where any of its tuples is needed, a batch further."""
    some = equations[equations["equation"] == "Eq. 2"]
    further = some.assign(printed=some["printed"] * (1 + 1 / (2 * some["window"])))
    is_met = (abs(further["counted"] / further["printed"] - 1) <= SLACK).all()
    shown = f"with a batch more {_format_by_length(further)}; as printed {_format_by_length(some)}"
    refusal = f'"the average number of extra tuples generated per time unit" (section 3): {shown}'
    return judge_reading(shown, is_met, shown if is_met else refusal)


@CLAIMS.claim(
    "Eq. 3, 4",
    f"Eq. 3, summed as in Eq. 4, counts what CTR sends, within {NEAR:.0%}: counted / printed, by T",
)
def equation_4_claim(equations: pd.DataFrame) -> Finding:
    """Eq. 3 and 4 against counts."""
    some = equations[equations["equation"] == "Eq. 3, 4"]
    ratios = _format_by_length(some)
    why = (
        '"the number of extra data transferred over networks by CTR" (section 4, Eq. 3): counted / '
        f"printed {ratios}"
    )
    is_met = (abs(some["counted"] / some["printed"] - 1) <= NEAR).all()
    return judge(ratios, is_met, failure=why)


def _format_by_length(rows: pd.DataFrame) -> str:
    """Return the least and the greatest of counted / printed over seeds, for each T, as text."""
    by = (rows["counted"] / rows["printed"]).groupby(rows["length"])
    return ", ".join(f"{r.min():.4g} to {r.max():.4g} for T = {t} s" for t, r in by)
