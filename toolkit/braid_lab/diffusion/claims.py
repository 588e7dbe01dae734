"""The claims of Gu, Yu and Wang 2007, section 5, against the data of ``figures``.

Those of Fig. 13 to 16, ATR against CTR, are in ``tradeoff_claims``; those of planning (Fig. 9, 10,
covers, Eq. 2 to 4) in ``planning_claims``; those of runs on Spark in ``executed_claims``.

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
from braid_lab.diffusion import executed_claims, planning_claims, tradeoff_claims
from braid_lab.diffusion.claim_frames import (
    ADAPTED,
    AHEAD,
    ALL,
    BOUNDS,
    CENTRALIZED,
    COSTS,
    HALF,
    JOIN,
    MARGIN,
    PAPER,
    PLAIN,
    POLICIES,
    PRINTED,
    SEGMENTS,
    STARTED,
    TWO,
    UNAWARE,
    UNBOUND,
    Ratios,
    is_ahead,
    is_behind,
    is_growing,
    judge_readings,
    name_runs,
)
from braid_lab.diffusion.claim_frames import DiffusionFigures as DiffusionFigures

RUNS = f"{COSTS}; {{seconds}} s, after one window, {{unit}} in the mean of seeds {{seed:range}}"
ALIGNED = f"{PLAIN}; {JOIN}, first {SEGMENTS}; {ADAPTED}; {RUNS}"
COORDINATED = f"{POLICIES}; {JOIN}, {SEGMENTS}; {RUNS}"
COMPARED = f"{POLICIES}; {JOIN}, {STARTED}; {RUNS}"
RESULTS, SENT = "results/s", "Mbit/s to hosts, all that is sent,"
WATCHED = (
    f"{COSTS}; results since the start of one window and {{seconds}} s, each of seeds "
    f"{{seed:range}}; {AHEAD}"
)
PLAYED = f"{JOIN}, in place of blades and videos"
SETTINGS = {
    "Fig. 4": f"{PLAIN} with {SEGMENTS}; {JOIN}; {RUNS}",
    "Fig. 7, 8": f"{POLICIES}; {PLAYED}, {STARTED}; {WATCHED}",
}
CLAIMS = ClaimRegistry(PAPER, SETTINGS)
"""All claims: of the figures, of long runs, and of a run on Spark beside its model."""

MUCH = 0.1
"""Share by which "much" more or less differs."""


def _list_ends() -> list[Case]:
    much = f" by more than {MUCH:.0%}"
    return [
        {"figure": "7", "window": 60.0, "much": ""},
        {"figure": "8", "window": 120.0, "much": much},
    ]


@CLAIMS.claim(
    "Fig. 4",
    "throughput rises with T up to a T* between the extremes, then falls ({streams}-way)",
    cases=lambda: [{"streams": 2}, {"streams": 3}],
)
def length_claim(f: DiffusionFigures, streams: int) -> Finding:
    """Fig. 4: throughput rises with the length up to T*, and falls beyond."""
    by = f.throughput_by_length(streams)
    by_length = f"throughput / the best by T in s {format_values(by / by.max())}"
    shown = (
        f"{by_length}; any rise counts up to the best, and any fall beyond; with operators of "
        "ours, since the paper names neither of its two"
    )
    refusal = f'"until the measured system performance reaches its peak value" (section 3): {shown}'
    has_peak = _has_peak(by)
    finding = judge_reading(by_length, has_peak, shown if has_peak else refusal)
    rates = f.lengths.loc[f.lengths["streams"] == streams, "rates"]
    return name_runs(finding, f.lengths, streams=streams, rates=rates, unit=RESULTS)


def _has_peak(by: pd.Series) -> bool:
    """Return whether values grow with every step up to one between the ends, then fall."""
    peak = int(by.argmax()) + 1
    return 1 < peak < len(by) and is_growing(by.iloc[:peak]) and is_growing(-by.iloc[peak - 1 :])


@CLAIMS.claim(
    "Fig. {figure}",
    "ATR above semantics-unaware and centralized{much} in the end: ATR / the better, by rates and "
    "seed",
    is_required=True,
    cases=_list_ends,
    setting=f"{PLAIN}; {PLAYED}, {STARTED}; {WATCHED}",
)
def aligned_results_check(
    f: DiffusionFigures, figure: str, window: float, much: str = ""
) -> Finding:
    """Fig. 7, 8: ATR has more results than the existing schemes, in the end."""
    end = f.final_results(window)
    ratio = end["ATR"] / end[[UNAWARE, CENTRALIZED]].max(axis=1)
    ratios = {f"{rates} tuples/s": by for rates, by in ratio.groupby(level=0, sort=False)}
    return _judge_ends(f.totals[window], "ATR", ratios, bool(much))


@CLAIMS.claim(
    "Fig. {figure}",
    "CTR above semantics-unaware and centralized{much} in the end: CTR / the better, by L, rates "
    "and seed",
    is_required=True,
    cases=_list_ends,
    setting=f"{POLICIES}; {PLAYED}, {SEGMENTS}; {WATCHED}",
)
def coordinated_results_check(
    f: DiffusionFigures, figure: str, window: float, much: str = ""
) -> Finding:
    """Fig. 7, 8: CTR has more results than the existing schemes, in the end."""
    end = f.final_results(window)
    best = end[[UNAWARE, CENTRALIZED]].max(axis=1)
    ratios = _list_by_bound_and_rates(end.div(best, axis=0))
    return _judge_ends(f.totals[window], "CTR", ratios, bool(much), UNBOUND)


def _judge_ends(
    rows: pd.DataFrame, policy: str, ratios: Ratios, is_much: bool, unnamed: str = ""
) -> Finding:
    """Return the finding on results in the end over those of the better existing scheme."""
    margin, quote = (MUCH, MUCH_BETTER) if is_much else (MARGIN, HIGHER)
    why = f"{quote} (section 5): for none of these"
    finding = judge_readings(ratios, lambda by: is_ahead(by, margin), why, STAND_IN, unnamed)
    policies, share = (policy, UNAWARE, CENTRALIZED), f"{100 * margin:g} %"
    return name_runs(finding, rows, policies=policies, margin=share)


def _list_by_bound_and_rates(ends: pd.DataFrame) -> dict[str, pd.Series]:
    """Return what CTR has by seed (and window), for each bound L and rates."""
    return {
        f"{name.removeprefix('CTR, ')}, {rates} tuples/s": by
        for name in (TWO, HALF, ALL, PRINTED)
        for rates, by in ends[name].groupby(level="rates", sort=False)
    }


STAND_IN = "on streams and hosts that stand in for the paper's videos and blade servers"
HIGHER = '"higher throughput than the other two alternatives"'
MUCH_BETTER = '"much better performance than other alternatives"'


@CLAIMS.claim("Fig. 7, 8", "ATR ahead at W = 60, CTR at 120, in the end: CTR / ATR")
def window_claim(f: DiffusionFigures) -> Finding:
    """Fig. 7, 8: ATR is ahead at W = 60, CTR at 120."""
    ends = pd.concat({w: f.final_results(w) for w in (60.0, 120.0)}, names=["window"])
    ratios = _list_by_bound_and_rates(ends.div(ends["ATR"], axis=0))
    why = (
        '"ATR performs better than CTR for processing J_1", "CTR performs better than ATR in this '
        'case", of J_2 (section 5): the videos are not at hand, and with streams in their place '
        "both hold for none of these L and rates"
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
    "Fig. 11",
    "ATR scales better than the existing schemes: growth of results/s from each J to the next / "
    "the better of theirs",
    is_required=True,
    setting=f"{PLAIN}; {JOIN}, {STARTED}; {RUNS}; {AHEAD}",
)
def scale_check(f: DiffusionFigures) -> Finding:
    """Fig. 11: ATR scales better than the existing schemes."""
    by = f.scaling_ratio("ATR")
    finding = judge(f"with J {format_values(by)}", is_ahead(by))
    return _name_scaled(f, finding, "ATR", UNAWARE, CENTRALIZED)


def _name_scaled(
    f: DiffusionFigures, finding: Finding, *policies: str, unit: str = RESULTS
) -> Finding:
    return name_runs(finding, f.outcomes["11, 12"], policies=policies, unit=unit)


@CLAIMS.claim(
    "Fig. 11",
    "CTR scales better than the existing schemes: growth of results/s from each J to the next / "
    "the better of theirs, by L",
    setting=f"{COORDINATED}; {AHEAD}",
)
def coordinated_scale_claim(f: DiffusionFigures) -> Finding:
    """Fig. 11: CTR scales better than the existing schemes."""
    ratios = {name.removeprefix("CTR, "): f.scaling_ratio(name) for name in BOUNDS}
    why = '"better scalability than the existing distribution solution" (section 5): for none of'
    finding = judge_readings(ratios, is_ahead, f"{why} these L", unnamed=UNBOUND)
    return _name_scaled(f, finding, "CTR", UNAWARE, CENTRALIZED)


@CLAIMS.claim(
    "Fig. 11, section 5",
    "ATR and CTR above the existing schemes at every J with each L: least ratio",
    is_required=True,
    setting=f"{COMPARED}; {AHEAD}",
)
def above_existing_schemes_claim(f: DiffusionFigures) -> Finding:
    """Fig. 11: ATR and CTR are above the existing schemes, with every L on any number of hosts."""
    by = f.throughput_by_hosts
    least, most = by[["ATR", *BOUNDS]], by[[UNAWARE, CENTRALIZED]]
    ratio = least.min(axis=1) / most.max(axis=1)
    j = ratio.idxmin()
    names = least.loc[j].idxmin(), most.loc[j].idxmax()
    both = " / ".join(f"{name} {by.loc[j, name]:,.2f}" for name in names)
    finding = judge(f"{ratio[j]:.3g}, with {j} hosts: {both} results/s", is_ahead(ratio))
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
    return name_runs(finding, f.tuned, unit=RESULTS)


@CLAIMS.claim(
    "Fig. 11",
    "optimizations gain at every J, and more with every step of J, in results/s and as a share, "
    "by L and T0",
    setting=f"{POLICIES}; {JOIN}, under CTR {SEGMENTS}, under ATR the first of {{start}} s; "
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
    ran = dict(policies=pairs, length=length, start=start, unit=RESULTS)
    return name_runs(finding, runs, f.tuned, **ran)


@CLAIMS.claim(
    "Fig. 12",
    f"ATR sends much less than unoptimized, at least {MUCH:.0%} less at every J: ratio by T0",
    setting=ALIGNED,
)
def atr_sends_claim(f: DiffusionFigures) -> Finding:
    """Fig. 12: "much lower bandwidth cost" than ATR-unoptimized."""
    why = (
        '"much lower bandwidth cost than their unoptimized versions" (section 5): from none of '
        "these T0"
    )
    ratios = f.ratios_by_first_length("mbits")
    finding = judge_readings(ratios, _is_much_less, why, unnamed="T0")
    return name_runs(finding, f.tuned, unit=SENT)


@CLAIMS.claim(
    "Fig. 12",
    f"CTR sends much less than unoptimized, at least {MUCH:.0%} less at every J: ratio by L",
    is_required=True,
    setting=COORDINATED,
)
def ctr_sends_check(f: DiffusionFigures) -> Finding:
    """Fig. 12: "much lower bandwidth cost" than CTR-unoptimized."""
    why = (
        '"much lower bandwidth cost than their unoptimized versions" (section 5): for none of '
        "these L"
    )
    ratios = f.ratios_by_bound(f.mbits_by_hosts)
    finding = judge_readings(ratios, _is_much_less, why, unnamed=UNBOUND)
    return _name_scaled(f, finding, "CTR", "CTR-unoptimized", unit=SENT)


def _is_much_less(by: pd.Series) -> bool:
    return bool((by <= 1 - MUCH).all())


CLAIMS.include_claims(planning_claims.CLAIMS)
CLAIMS.include_claims(tradeoff_claims.CLAIMS)
CLAIMS.include_claims(executed_claims.CLAIMS)
