"""The claims of Gu, Yu and Wang 2007, section 5, against the data of ``figures``.

Those of Fig. 13 to 16, ATR against CTR, are in ``tradeoff_claims``; those of runs on Spark in
``executed_claims``.

Ahead means by more than MARGIN; closer is even. Everything is modelled except routing times and the
runs on Spark. Required claims are those that hold robustly; each is broken by a fault in the
policies (tests/mutations).
"""

from __future__ import annotations

import pandas as pd

from braid_lab.common.claims import (
    Case,
    ClaimRegistry,
    Finding,
    format_values,
    judge,
    judge_reading,
    leave_untested,
)
from braid_lab.common.recorded_settings import RECORDED
from braid_lab.diffusion import executed_claims, tradeoff_claims
from braid_lab.diffusion.claim_frames import (
    ADAPTED,
    AHEAD,
    ALL,
    BOUNDS,
    CENTRALIZED,
    COSTS,
    HALF,
    JOIN,
    PAPER,
    PLAIN,
    POLICIES,
    PRINTED,
    SEGMENTS,
    STARTED,
    TWO,
    UNAWARE,
    UNBOUND,
    is_ahead,
    is_behind,
    is_growing,
    judge_readings,
    name_runs,
)
from braid_lab.diffusion.claim_frames import DiffusionFigures as DiffusionFigures

RUNS = f"{COSTS}; {{seconds}} s, after one window, mean of seeds {{seed:range}}"
ALIGNED = f"{PLAIN}; {JOIN}, first {SEGMENTS}, under ATR {ADAPTED}; {RUNS}"
COORDINATED = f"{POLICIES}; {JOIN}, {SEGMENTS}; {RUNS}"
COMPARED = f"{POLICIES}; {JOIN}, {STARTED}; {RUNS}"
SENT = "tuples of {tuple_bytes} bytes"
WATCHED = f"{COSTS}; one window and {{seconds}} s, each of seeds {{seed:range}}; {AHEAD}"
PLAYED = f"{JOIN}, in place of the videos"
PLANNED = (
    f"plans of {POLICIES} in Python, measured on {{machine}}, the time of a second's plan divided "
    f"by its tuples; {JOIN}, {STARTED}; one window and {{seconds}} s, seed {{seed}}"
)
COVERED = (
    "covers for the first hop of the first stream in CTR's own plans, one plan in {each}, L: "
    f"{{copies}}; {JOIN}, {SEGMENTS}; one window and {{seconds}} s, each of seeds {{seed:range}}"
)
FREE = (
    f"with {SEGMENTS}; {JOIN}, hosts take no time; counted in the last {{counted_seconds}} s, "
    "each of seeds {seed:range}"
)
SETTINGS = {
    "Fig. 4": f"{PLAIN} with {SEGMENTS}; {JOIN}; {RUNS}",
    "Fig. 7, 8": f"{POLICIES}; {PLAYED}, {STARTED}; {WATCHED}",
    "Fig. 9": PLANNED,
    "Fig. 10": PLANNED,
    "Eq. 2": f"ATR-unoptimized {FREE}",
    "Eq. 3": f"CTR (L: {{bounds}}) {FREE}",
}
CLAIMS = ClaimRegistry(PAPER, SETTINGS)
"""All claims: of the figures, of long runs, and of a run on Spark beside its model."""

MUCH = 0.9
"""Ratio of what is sent that counts as "much lower": a tenth less."""
TENS = 100
"""Microseconds below which a time counts as tens of them."""


def _list_ends() -> list[Case]:
    return [{"figure": "7", "window": 60.0}, {"figure": "8", "window": 120.0}]


def _list_routing_times() -> list[Case]:
    return [{"figure": "9", "window": 60.0}, {"figure": "10", "window": 120.0}]


@CLAIMS.claim(
    "Fig. 4",
    "throughput rises with T up to a T* between the extremes, then falls ({streams}-way): T / best",
    cases=lambda: [{"streams": 2}, {"streams": 3}],
)
def length_claim(f: DiffusionFigures, streams: int) -> Finding:
    """Fig. 4: throughput rises with the length up to T*, and falls beyond."""
    by = f.throughput_by_length(streams)
    by_length = f"throughput / the best by T in s {format_values(by / by.max())}"
    shown = f"{by_length}; with operators of ours, since the paper names neither of its two"
    refusal = f'"until the measured system performance reaches its peak value" (section 3): {shown}'
    has_peak = _has_peak(by)
    finding = judge_reading(by_length, has_peak, shown if has_peak else refusal)
    rates = f.lengths.loc[f.lengths["streams"] == streams, "rates"]
    return name_runs(finding, f.lengths, streams=streams, rates=rates)


def _has_peak(by: pd.Series) -> bool:
    """Return whether values grow with every step up to one between the ends, then fall."""
    peak = int(by.argmax()) + 1
    return 1 < peak < len(by) and is_growing(by.iloc[:peak]) and is_growing(-by.iloc[peak - 1 :])


@CLAIMS.claim(
    "Fig. {figure}",
    "ATR above semantics-unaware and centralized in the end: ATR / the better, by rates and seed",
    is_required=True,
    cases=_list_ends,
    setting=f"{PLAIN}; {PLAYED}, {STARTED}; {WATCHED}",
)
def aligned_results_check(f: DiffusionFigures, figure: str, window: float) -> Finding:
    """Fig. 7, 8: ATR has more results than the existing schemes, in the end."""
    end = f.final_results(window)
    ratio = end["ATR"] / end[[UNAWARE, CENTRALIZED]].max(axis=1)
    ratios = {f"{rates} tuples/s": by for rates, by in ratio.groupby(level=0, sort=False)}
    finding = judge_readings(ratios, is_ahead, HIGHER, STAND_IN)
    return name_runs(finding, f.totals[window], policies=("ATR", UNAWARE, CENTRALIZED))


@CLAIMS.claim(
    "Fig. {figure}",
    "CTR above semantics-unaware and centralized in the end: CTR / the better, by L, rates and "
    "seed",
    is_required=True,
    cases=_list_ends,
    setting=f"{POLICIES}; {PLAYED}, {SEGMENTS}; {WATCHED}",
)
def coordinated_results_check(f: DiffusionFigures, figure: str, window: float) -> Finding:
    """Fig. 7, 8: CTR has more results than the existing schemes, in the end."""
    end = f.final_results(window)
    best = end[[UNAWARE, CENTRALIZED]].max(axis=1)
    ratios = _list_by_bound_and_rates(end.div(best, axis=0))
    finding = judge_readings(ratios, is_ahead, HIGHER, STAND_IN, UNBOUND)
    return name_runs(finding, f.totals[window], policies=("CTR", UNAWARE, CENTRALIZED))


def _list_by_bound_and_rates(ends: pd.DataFrame) -> dict[str, pd.Series]:
    """Return what CTR has by seed (and window), for each bound L and rates."""
    return {
        f"{name.removeprefix('CTR, ')}, {rates} tuples/s": by
        for name in (TWO, HALF, ALL, PRINTED)
        for rates, by in ends[name].groupby(level="rates", sort=False)
    }


STAND_IN = "on streams that stand in for the paper's videos"
HIGHER = '"higher throughput than the other two alternatives" (section 5): for none of these'


@CLAIMS.claim("Fig. 7, 8", "ATR ahead at W = 60, CTR at 120, in the end: CTR / ATR")
def window_claim(f: DiffusionFigures) -> Finding:
    """Fig. 7, 8: ATR is ahead at W = 60, CTR at 120."""
    ends = pd.concat({w: f.final_results(w) for w in (60.0, 120.0)}, names=["window"])
    ratios = _list_by_bound_and_rates(ends.div(ends["ATR"], axis=0))
    why = (
        '"CTR performs better than ATR in this case" (section 5, of J2): the videos are not at '
        "hand, and with streams in their place this and the reverse for J1 hold for none of these "
        "L and rates"
    )
    finding = judge_readings(
        ratios, lambda by: is_behind(by.loc[60.0]) and is_ahead(by.loc[120.0]), why, STAND_IN
    )
    if finding.holds == "no":  # of other streams: that decides nothing
        by_window = pd.concat([*ratios.values()]).groupby(level="window")
        spans = (f"{by.min():.3g} to {by.max():.3g} at W = {w:g} s" for w, by in by_window)
        finding = leave_untested(finding.result, f"{why}: CTR / ATR {', '.join(spans)}")
    return name_runs(finding, f.totals[60.0], f.totals[120.0], policies=("ATR", "CTR"))


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
    "Fig. 11",
    "ATR scales better than the existing schemes: growth from each J to the next / the better of "
    "theirs",
    is_required=True,
    setting=f"{PLAIN}; {JOIN}, {STARTED}; {RUNS}; {AHEAD}",
)
def scale_check(f: DiffusionFigures) -> Finding:
    """Fig. 11: ATR scales better than the existing schemes."""
    by = f.scaling_ratio("ATR")
    finding = judge(f"with J {format_values(by)}", is_ahead(by))
    return _name_scaled(f, finding, "ATR", UNAWARE, CENTRALIZED)


def _name_scaled(f: DiffusionFigures, finding: Finding, *policies: str) -> Finding:
    return name_runs(finding, f.outcomes["11, 12"], policies=policies)


@CLAIMS.claim(
    "Fig. 11",
    "CTR scales better than the existing schemes: growth from each J to the next / the better of "
    "theirs, by L",
    setting=f"{COORDINATED}; {AHEAD}",
)
def coordinated_scale_claim(f: DiffusionFigures) -> Finding:
    """Fig. 11: CTR scales better than the existing schemes."""
    ratios = {name.removeprefix("CTR, "): f.scaling_ratio(name) for name in BOUNDS}
    why = '"better scalability than the existing distribution solution" (section 5): for none of'
    finding = judge_readings(ratios, is_ahead, f"{why} these L", unnamed=UNBOUND)
    return _name_scaled(f, finding, "CTR", UNAWARE, CENTRALIZED)


@CLAIMS.claim(
    "Fig. 11",
    "ATR and CTR above the existing schemes at every J with each L: least ratio",
    is_required=True,
    setting=f"{COMPARED}; {AHEAD}",
)
def above_existing_schemes_claim(f: DiffusionFigures) -> Finding:
    """Fig. 11: ATR and CTR are above the existing schemes, with every L on any number of hosts."""
    by = f.throughput_by_hosts
    least = by[["ATR", *BOUNDS]].min(axis=1)
    ratio = least / by[[UNAWARE, CENTRALIZED]].max(axis=1)
    finding = judge(f"{ratio.min():.3g}, with {ratio.idxmin()} hosts", is_ahead(ratio))
    return _name_scaled(f, finding, "ATR", "CTR", UNAWARE, CENTRALIZED)


@CLAIMS.claim(
    "Fig. 11",
    "CTR above CTR-unoptimized at every J: CTR / unoptimized, by L",
    is_required=True,
    setting=f"{COORDINATED}; {AHEAD}",
)
def set_covers_check(f: DiffusionFigures) -> Finding:
    """Fig. 11: covers by set cover beat random ones."""
    why = '"The optimizations are effective" (section 5): for none of these L'
    ratios = f.ratios_by_bound(f.throughput_by_hosts)
    finding = judge_readings(ratios, is_ahead, why, unnamed=UNBOUND)
    return _name_scaled(f, finding, "CTR", "CTR-unoptimized")


@CLAIMS.claim(
    "Fig. 11",
    "ATR above ATR-unoptimized at every J: ATR / unoptimized, by T0",
    is_required=True,
    setting=f"{ALIGNED}; {AHEAD}",
)
def optimized_check(f: DiffusionFigures) -> Finding:
    """Fig. 11: ATR is above ATR-unoptimized, from the same first length T0."""
    why = '"The optimizations are effective" (section 5): from none of these T0'
    ratios = f.ratios_by_first_length("throughput")
    finding = judge_readings(ratios, is_ahead, why, unnamed="T0")
    return name_runs(finding, f.tuned)


@CLAIMS.claim(
    "Fig. 11",
    "optimizations gain more with every J, in results/s and as a share, by L and T0",
    setting=f"{POLICIES}; {JOIN}, under CTR {SEGMENTS}, under ATR the first of {{start}} s, "
    f"{ADAPTED}; {RUNS}",
)
def large_clusters_claim(f: DiffusionFigures) -> Finding:
    """Fig. 11: optimizations are effective, especially under large clusters."""
    why = '"especially under large clusters" (section 5): for none of these'
    gains = f.gains_by_hosts()
    finding = judge_readings(
        gains, lambda by: by.iloc[0] > 0 and is_growing(by), why, unnamed=f"T0 and no {UNBOUND}"
    )
    runs, pairs = f.outcomes["11, 12"], ("ATR", "ATR-unoptimized", "CTR", "CTR-unoptimized")
    length, start = runs.attrs[RECORDED]["length"], f.tuned["start"]
    return name_runs(finding, runs, f.tuned, policies=pairs, length=length, start=start)


@CLAIMS.claim(
    "Fig. 12",
    "ATR sends much less than unoptimized, at least a tenth less at every J: ratio by T0",
    setting=f"{ALIGNED}; {SENT}",
)
def atr_sends_claim(f: DiffusionFigures) -> Finding:
    """Fig. 12: "much lower bandwidth cost" than ATR-unoptimized."""
    why = (
        '"much lower bandwidth cost than their unoptimized versions" (section 5): from none of '
        "these T0"
    )
    ratios = f.ratios_by_first_length("mbits")
    finding = judge_readings(ratios, _is_much_less, why, unnamed="T0")
    return name_runs(finding, f.tuned)


@CLAIMS.claim(
    "Fig. 12",
    "CTR sends much less than unoptimized, at least a tenth less at every J: ratio by L",
    is_required=True,
    setting=f"{COORDINATED}; {SENT}",
)
def ctr_sends_check(f: DiffusionFigures) -> Finding:
    """Fig. 12: "much lower bandwidth cost" than CTR-unoptimized."""
    why = (
        '"much lower bandwidth cost than their unoptimized versions" (section 5): for none of '
        "these L"
    )
    ratios = f.ratios_by_bound(f.mbits_by_hosts)
    finding = judge_readings(ratios, _is_much_less, why, unnamed=UNBOUND)
    return _name_scaled(f, finding, "CTR", "CTR-unoptimized")


def _is_much_less(by: pd.Series) -> bool:
    return bool((by <= MUCH).all())


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


CLAIMS.include_claims(tradeoff_claims.CLAIMS)
CLAIMS.include_claims(executed_claims.CLAIMS)

# Equations: ``plan_costs.check_equations``

SLACK = 0.02
"""Share by which random arrivals change what is counted."""
NEAR = 0.15
"""Share by which a count may differ from Eq. 3."""


@CLAIMS.claim(
    "Eq. 2",
    "Eq. 2 counts the copies that ATR makes, but for one batch more that a slave reaches, within "
    f"{SLACK:.0%}",
    is_required=True,
)
def equation_2_claim(equations: pd.DataFrame) -> Finding:
    """Eq. 2 against counts: a block is sent where any of its tuples is needed, a batch further."""
    some = equations[equations["equation"] == "Eq. 2"]
    ratio, most = some["counted"] / some["printed"], 1 + 1 / (2 * some["window"])
    is_met = ((ratio >= 1 - SLACK) & (ratio <= most + SLACK)).all()
    result = (
        f"counted / printed {_format_by_length(some)}, by seed; with a batch more {most.max():.3f}"
    )
    return judge(result, is_met)


@CLAIMS.claim(
    "Eq. 3, 4", f"Eq. 3 counts what CTR sends, within {NEAR:.0%}: counted / printed, by T"
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
    return ", ".join(f"{r.min():.3g} to {r.max():.3g} for T = {t} s" for t, r in by)
