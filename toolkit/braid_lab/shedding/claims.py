"""The claims of Gedik, Wu, Yu and Liu 2007.

Fig. 8 to 17 are judged by the policy itself (``policy_figures``), Fig. 1, 5, 6, 7 and joins with an
index by the models of ``experiments``.
"""

from __future__ import annotations

from itertools import product

import pandas as pd

from braid_lab.common.claims import (
    ClaimRegistry,
    Finding,
    format_values,
    judge,
    judge_reading,
    leave_untested,
)
from braid_lab.shedding import measured, runs, utility_claims
from braid_lab.shedding.claim_settings import INDEXED, SETTINGS
from braid_lab.shedding.claim_tables import (
    average_recall,
    compare_indexes,
    compare_joins,
    compute_added_recall,
    index_drops,
    select_phase,
)

CLAIMS = ClaimRegistry("Gedik 2007", SETTINGS)
"""All claims: of the figures, and of measured runs."""
ABOUT = 0.1
"""How far a gain may be from one that the paper gives as "around" a number."""


@CLAIMS.claim("Fig. 5", "optimality falls with less CPU", is_required=True)
def load_claim(optimality: pd.DataFrame) -> Finding:
    """Fig. 5, first observation, on means over basic windows."""
    phi = optimality[optimality["share"] <= 1].groupby("share")["optimality_modelled"].mean()
    low, high = phi[phi.index < 0.3].mean(), phi[phi.index >= 0.3].mean()
    return judge(
        format_values(phi),
        low < high,
        "whole basic windows make it rise and fall between, so that means are compared",
    )


@CLAIMS.claim("Fig. 5", "optimality falls as matches are more skewed in time", is_required=True)
def skew_claim(optimality: pd.DataFrame) -> Finding:
    """Fig. 5, second observation."""
    phi = optimality[optimality["share"] <= 1].groupby("deviation")["optimality_modelled"].mean()
    return judge(format_values(phi), phi.is_monotonic_increasing and phi.iloc[-1] > phi.iloc[0])


@CLAIMS.claim(
    "Fig. 5",
    "small basic windows are better when there is little CPU or much skew",
    is_required=True,
)
def size_claim(optimality: pd.DataFrame) -> Finding:
    """Fig. 5, third observation."""
    few = optimality[
        (optimality["share"] <= 0.4) & (optimality["deviation"] == optimality["deviation"].min())
    ]
    phi = few.groupby("basic")["optimality_modelled"].mean()
    return judge(format_values(phi), phi.is_monotonic_decreasing and phi.iloc[-1] < phi.iloc[0])


@CLAIMS.claim(
    "Fig. 1",
    "keeping the newest part of a window sheds CPU load well only if the peak is early",
    is_required=True,
)
def reduction_claim(reduction: pd.DataFrame) -> Finding:
    """Fig. 1: what age-based window reduction can and cannot do."""
    shares = reduction.assign(part=reduction["newest_modelled"] / reduction["best_modelled"])
    part = shares.groupby("peak")["part"].min()
    return judge(format_values(part), part["early"] > 0.9 and part["late"] < 0.1)


@CLAIMS.claim(
    "Fig. 6", "matches peak within the window, more sharply for more skewed items", is_required=True
)
def density_claim(densities: pd.DataFrame) -> Finding:
    """Fig. 6: the position and the sharpness of the peak."""
    f = densities.groupby(["kappa", "window"])["f_modelled"]
    sharp = (f.max() / f.mean()).groupby("kappa").max()
    peaks = densities.loc[f.idxmax()]
    inside = peaks[(peaks["age"] > 0.5) & (peaks["age"] < 0.95)]
    return judge(
        f"peak over mean {format_values(sharp)}; at age {inside['age'].max():.2f} w",
        len(inside) and sharp.is_monotonic_increasing and sharp.is_unique,
        "by the formula of section 6.1 it is the window of the shifted stream that has the peak; "
        "Fig. 6 and 11 have it in the other",
    )


@CLAIMS.claim(
    "Fig. 7",
    "without an index about half is dropped at 50 tuples/s and 125 s",
    is_required=True,
)
def plain_drops_claim(drops: pd.DataFrame) -> Finding:
    """Fig. 7: the fraction of dropped tuples without an index."""
    plain = index_drops(drops)[False, 50.0, 125.0]
    reason = "the machine's 200,000 comparisons a second are taken from the paper's own rates"
    return judge(f"{plain:.0%}", 0.35 < plain < 0.65, reason)


@CLAIMS.claim(
    "Fig. 7",
    "with an index about a quarter is dropped at 100 tuples/s and 625 s; it helps for moderate "
    "windows and rates only",
    is_required=True,
)
def indexed_drops_claim(drops: pd.DataFrame) -> Finding:
    """Fig. 7: the fraction of dropped tuples with an index."""
    dropped = index_drops(drops)
    some, most = dropped[True, 100.0, 625.0], dropped[True, 200.0, 625.0]
    return judge(f"{some:.0%}", 0.1 < some < 0.4 and most > some)


@CLAIMS.claim("Fig. 8", "r falls in a burst and recovers after it", is_required=True)
def burst_claim(fractions: pd.DataFrame) -> Finding:
    """Fig. 8: r follows the rates, by the policy."""
    r = fractions.set_index("second")["fraction_counted"]
    before, during, end = r[50:59].mean(), r[70:74].mean(), r[125:].mean()
    return judge(
        f"{before:.2f}, {during:.2f}, {end:.2f} (counted)",
        during < 0.3 * before and end > 3 * during,
        "runs feed r forward, a batch of a second at a time; Algorithm 1 is drawn beside it, with "
        "T_r of one second for the paper's five",
    )


@CLAIMS.claim(
    "section 4.1",
    "rate adaptation keeps the join within its capacity, and uses it",
    is_required=True,
)
def forward_claim(fractions: pd.DataFrame, burst: pd.DataFrame) -> Finding:
    """Fig. 8: the policy, which feeds forward how the window grows, beside Algorithm 1."""
    load = fractions["load_counted"]
    most, used = load.rolling(5).mean().max(), load[fractions["fraction_counted"] < 1].mean()
    rule = burst[burst["rule"] == "Algorithm 1"]
    tried = rule["load_modelled"].rolling(5).mean().max()
    return judge(
        f"at most {most:.2f} of it (counted), by Algorithm 1 {tried:.2f} (modelled); while r < 1, "
        f"{used:.0%} of it are used",
        most <= 1.2 and used > 0.8,
        "by the policy, which feeds r forward, in means of five seconds, the T_r of the paper; "
        "Algorithm 1 has to overrun first, and tries again and again",
    )


@CLAIMS.claim(
    "Fig. 9",
    "rate adaptation gives more than random dropping when the newest match",
    is_required=True,
)
def newest_claim(newest: pd.DataFrame) -> Finding:
    """Fig. 9: rate adaptation alone improves the output rate where rates are raised."""
    raised = newest[(newest["method"] == "partial") & (newest["phase"] != "all")]
    gain = raised.groupby(["phase", "kappa"])["gain_counted"].mean()
    reason = "at every kappa, which the paper does not give, while rates are raised"
    return judge(f"{_format_spans(gain)} (counted, the mean of kappa)", gain.min() > 0.1, reason)


@CLAIMS.claim("Fig. 9", "rate adaptation adds about 100 % at 500/s and about 50 % at 300/s")
def rate_claim(newest: pd.DataFrame) -> Finding:
    """Fig. 9: rate adaptation alone if the newest tuples match (shift 0)."""
    by = newest[newest["method"] == "partial"].groupby(["phase", "kappa"])["gain_counted"].mean()
    low, high = (by[by.index.get_level_values(0).str.startswith(v)] for v in ("300/s", "500/s"))
    distance = {
        (slow, fast, kappa): max(abs(low[slow, kappa] - 0.5), abs(high[fast, kappa] - 1))
        for (slow, kappa), (fast, also) in product(low.index, high.index)
        if kappa == also
    }
    slow, fast, kappa = nearest = min(distance, key=lambda at: distance[at])
    low_gain, high_gain = low[slow, kappa], high[fast, kappa]
    holds = distance[nearest] < ABOUT and low_gain < high_gain
    quotation = '"around 100% when stream rates are 500 tuples per second" (section 6.3): '
    return judge_reading(
        f"{_format_spans(low)}; {_format_spans(high)} (counted, the mean of kappa)",
        holds,
        f"{'' if holds else quotation}of {len(distance)} choices of kappa, which the paper does "
        "not give, and of how much of a rate's time is counted, nearest are "
        f"{high_gain:.0%} at 500/s and {low_gain:.0%} at 300/s, for kappa = {kappa:g}, {fast} and "
        f"{slow}",
    )


def _format_spans(gains: pd.Series) -> str:
    return format_values(gains.groupby("phase").mean())


@CLAIMS.claim(
    "Fig. 10",
    "the gain of rate adaptation grows with skew and with the window",
    is_required=True,
)
def growth_claim(newest: pd.DataFrame, wider: pd.DataFrame) -> Finding:
    """Fig. 10: by skew, and by the window, over the whole period of Fig. 8."""

    def gains(frame: pd.DataFrame, by: str) -> pd.Series:
        return select_phase(frame, "all", "partial").groupby(by)["gain_counted"].mean()

    both = skewed, wide = gains(newest, "kappa"), gains(wider, "window")
    result = f"by skew {format_values(skewed)}; by window {format_values(wide)} (counted)"
    if min(map(len, both)) < 2:
        return leave_untested(result)
    grows = all(g.is_monotonic_increasing and g.iloc[-1] > g.iloc[0] for g in both)
    return judge(result, grows, "over the whole period, as in the paper; by the window for 0.6")


@CLAIMS.claim("Fig. 11", "the fraction of the less useful window falls first", is_required=True)
def direction_claim(directions: pd.DataFrame) -> Finding:
    """Fig. 11: the shares of both windows that the policy processes."""
    falls = directions.sort_values("fraction", ascending=False).set_index("fraction")
    r1, r2 = falls["r1_counted"], falls["r2_counted"]
    is_second_better = (falls["o2_modelled"] > falls["o1_modelled"]).all()
    better, worse = (r2, r1) if is_second_better else (r1, r2)
    first = better[better.index > 0.5]
    return judge(
        f"{worse.name} {format_values(worse)}; {better.name} {format_values(better)} (counted)",
        (first > 1 - 1e-9).all()
        and worse[worse.index >= 0.5].is_monotonic_decreasing
        and worse.iloc[0] < 0.9,
        "without prior knowledge: the policy has learned which window is less useful; while r is "
        "above a half, the other is processed whole",
    )


@CLAIMS.claim(
    "Fig. 12",
    "time correlation adds to rate adaptation, and direction to that",
    is_required=True,
)
def order_claim(recall: pd.DataFrame) -> Finding:
    """Fig. 12: the order of the methods while rates are raised."""
    time, way = compute_added_recall(recall)
    result = f"time {format_values(time)}; direction {format_values(way)} (counted)"
    reason = "at every kappa, which the paper does not give, while rates are raised"
    return judge(result, (time > 0).all() and (way > 0).all(), reason)


@CLAIMS.claim("Fig. 12", "time correlation adds about 50 %, direction about 40 % more")
def printed_gains_claim(recall: pd.DataFrame) -> Finding:
    """Fig. 12: the printed gains, while rates are raised."""
    added = {phase: compute_added_recall(recall, phase) for phase in ("500/s", "300/s", "burst")}
    distance = {
        (phase, kappa): max(abs(time[kappa] - 0.5), abs(way[kappa] - 0.4))
        for phase, (time, way) in added.items()
        for kappa in time.index
    }
    phase, kappa = min(distance, key=lambda at: distance[at])
    time, way = (float(gain[kappa]) for gain in added[phase])
    result = "; ".join(
        f"{phase}: time {format_values(time)}, direction {format_values(way)}"
        for phase, (time, way) in added.items()
    )
    nearest = (
        f"of {len(distance)} pairs of a kappa, which the paper does not give, and a part of the "
        f"burst, nearest are {time:.0%} and {way:.0%}, at kappa = {kappa:g} and {phase}"
    )
    holds = distance[phase, kappa] < ABOUT
    quoted = '"around 50%", "around 40%" (section 6.4): '
    return judge_reading(f"{result} (counted)", holds, nearest if holds else quoted + nearest)


@CLAIMS.claim(
    "section 4", "partial processing by itself does not give significantly more than dropping"
)
def partial_processing_claim(recall: pd.DataFrame, newest: pd.DataFrame) -> Finding:
    """Section 4: "does not significantly increase the number of output tuples", by itself."""
    alone, aligned = (
        select_phase(runs, "burst", "partial").groupby("kappa")["gain_counted"].mean()
        for runs in (recall, newest)
    )
    return judge_reading(
        f"shifted {format_values(alone)}; not shifted {format_values(aligned)} (counted)",
        (alone < 0.1).all(),
        "where the streams are shifted, tau = 5/8 of a cycle: it gives less than dropping there; "
        f"with tau = 0 it gives {aligned.min():+.0%} to {aligned.max():+.0%}, as in Fig. 9",
    )


@CLAIMS.claim(
    "Fig. 13",
    "the gain of time correlation and direction grows with skew; rate adaptation alone does "
    "not improve",
    is_required=True,
)
def skewed_claim(skewed: pd.DataFrame) -> Finding:
    """Fig. 13, theta of 4, over the whole period."""
    gain = average_recall(skewed, "all")
    ahead = gain["direction"] / gain["partial"]
    return judge(
        f"recall over that of rate alone {format_values(ahead)}; rate alone "
        f"{format_values(gain['partial'])} (counted)",
        ahead.is_monotonic_increasing
        and ahead.is_unique
        and gain["partial"].is_monotonic_decreasing,
        "over the whole period; a gain is of recall, since more skew makes more matches",
    )


@CLAIMS.claim("Fig. 14", "small basic windows give more without an index", is_required=True)
def small_basic_windows_claim(cut_windows: pd.DataFrame) -> Finding:
    """Fig. 14, left: recall by the number of basic windows, by the policy."""
    by = cut_windows.groupby("parts")["recall_counted"].mean()
    result = f"by basic windows in a window {format_values(by)} (counted)"
    rises = by[by.index >= 10].min() > by[by.index <= 2].max()
    return judge(result, rises)


@CLAIMS.claim(
    "Fig. 14",
    "with an index very small basic windows give less again",
    is_required=True,
    setting=INDEXED,
)
def indexed_basic_windows_claim(basic_windows: pd.DataFrame) -> Finding:
    """Fig. 14, right: recall by the number of basic windows, lists ordered by time."""
    by = compare_indexes(basic_windows)["time"]
    reason = "by true densities: what a lookup costs is a parameter of the model"
    return judge(f"{format_values(by)} (modelled)", by.iloc[-1] < 0.99 * by.max(), reason)


@CLAIMS.claim(
    "Fig. 14",
    "lists by identifier give less, above all with large basic windows",
    is_required=True,
    setting=INDEXED,
)
def identifier_lists_claim(basic_windows: pd.DataFrame) -> Finding:
    """Fig. 14: lists by identifier beside lists by time."""
    by = compare_indexes(basic_windows)
    reason = "by true densities: what an index leaves out is a parameter of the model"
    lost = by["time"] - by["identifier"]
    never_ahead = (by["identifier"] <= by["time"] + 1e-9).all()
    grows = lost[lost.index <= 5].min() > lost[lost.index >= 20].max()
    return judge(f"identifier {format_values(by['identifier'])}", never_ahead and grows, reason)


@CLAIMS.claim(
    "Fig. 15",
    "selective processing gives up to 500 % more than dropping, more for overlap than for equality",
    is_required=True,
)
def gain_over_dropping_claim(gains: pd.DataFrame) -> Finding:
    """Fig. 15: joins without an index."""
    last = compare_joins(gains).iloc[-1]
    reason = (
        "at 500/s, for kappa = 0.6, which the paper does not give; pairs of the equality are four "
        "times as cheap"
    )
    holds = 5.5 > last["overlap"] > last["equality"] > 0
    return judge(f"{format_values(last)} (counted)", holds, reason)


@CLAIMS.claim(
    "Fig. 15",
    "with an index nothing is gained until 300/s, and up to 100 % after",
    is_required=True,
)
def indexed_gain_claim(gains: pd.DataFrame) -> Finding:
    """Fig. 15: the overlap with an index."""
    overlap = compare_joins(gains)["overlap, indexed"]
    reason = (
        "only if an indexed pair costs so little that 300/s saturates, which is chosen so: the two "
        "figures of the paper on that cost (7 and 15) are a factor of five apart. Then 500/s gains "
        f"{overlap.iloc[-1]:.0%}, at the r of windows of 200 s, on 20 s"
    )
    holds = overlap.loc[:200].abs().max() < 0.01 and 0.3 < overlap.iloc[-1] < 2
    return judge_reading(f"{format_values(overlap)} (counted)", holds, reason)


CLAIMS.include_claims(utility_claims.CLAIMS)
CLAIMS.include_claims(measured.CLAIMS)
CLAIMS.include_claims(runs.CLAIMS)
