"""The claims of Gedik, Wu, Yu and Liu 2007.

Fig. 7 to 17 are judged by the policy itself (``policy_figures``); Fig. 1, 5, 6 and joins with an
index by models (``model_claims``).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import sqrt

import pandas as pd

from braid_lab.common.claims import (
    ClaimRegistry,
    Finding,
    format_values,
    judge,
    judge_reading,
    leave_untested,
)
from braid_lab.shedding import experiments, measured, model_claims, runs, utility_claims
from braid_lab.shedding.claim_settings import FORWARD, SETTINGS
from braid_lab.shedding.claim_tables import (
    average_recall,
    compare_joins,
    compute_added_recall,
    compute_output_gain,
    select_phase,
)

CLAIMS = ClaimRegistry("Gedik 2007", SETTINGS)
"""All claims: of the figures, and of measured runs."""
ABOUT = 0.1
"""How far a gain may be from one that the paper gives as "around" a number."""
STEADY, RISING = ("500/s", "300/s"), ("500/s, 15 s",)
"""Phases in which a rate has filled most of the window, and one that begins with its rise."""
ALONE = "both of the output of rate adaptation alone"


@CLAIMS.claim(
    "Fig. 7", "without an index about half is dropped at 50 tuples/s and 125 s", is_required=True
)
def plain_drops_claim(dropped: pd.DataFrame) -> Finding:
    """Fig. 7: the fraction of dropped tuples without an index, by the policy, by the machine."""
    by = dropped.groupby("capacity")["dropped_counted"].mean()
    each = ", ".join(f"{part:.0%} for {capacity:,.0f}" for capacity, part in by.items())
    reading = (
        "the paper does not say what its machine can compare: of the tuples "
        f"{each} comparisons a second"
    )
    return judge_reading(each, abs(by.iloc[len(by) // 2] - 0.5) < 0.15, reading)


@CLAIMS.claim("Fig. 8", "r falls in a burst and recovers after it", is_required=True)
def burst_claim(fractions: pd.DataFrame) -> Finding:
    """Fig. 8: r follows the rates, by the policy."""
    r = fractions.set_index("second")["fraction_counted"]
    before, during, after, end = (
        r[a:b].mean() for a, b in ((50, 59), (70, 74), (95, 104), (125, 129))
    )
    return judge(
        f"{before:.2f}, at 500/s {during:.2f}, at 300/s {after:.2f}, then {end:.2f} (counted)",
        during < after < 0.3 * before and end > 3 * after,
        "runs feed r forward, a batch of a second at a time; Algorithm 1 is drawn beside it, with "
        "T_r of one second for the paper's five",
    )


@CLAIMS.claim(
    "beyond the paper",
    "rate adaptation keeps the join within its capacity, and uses it",
    is_required=True,
    setting=FORWARD,
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
    output = compute_output_gain(newest, "partial").drop("all", level="phase")
    full, since = (output[output.index.isin(p, level="phase")] for p in (STEADY, RISING))
    reading = (
        "for as many pairs, at every kappa, which the paper does not give, while rates are raised. "
        "In output so too once a rate has filled most of the window "
        f"({full.min():+.0%} to {full.max():+.0%}); right after a rise dropping compares more than "
        "planned, as fewer of the stored tuples were dropped, and finds "
        f"{since.min():+.0%} to {since.max():+.0%}"
    )
    holds = gain.min() > 0.1 and full.min() > 0.1
    return judge_reading(f"{_format_spans(gain)} (counted, the mean of kappa)", holds, reading)


@CLAIMS.claim(
    "Fig. 9",
    "rate adaptation adds about 100 % at 500/s and about 50 % at 300/s",
)
def rate_claim(newest: pd.DataFrame, nearer: pd.DataFrame) -> Finding:
    """Fig. 9: rate adaptation alone if the newest tuples match (shift 0)."""
    both = pd.concat([newest, nearer])
    alone = both[both["method"] == "partial"].groupby(["phase", "kappa"])
    measures = {
        "for as many pairs": alone["gain_counted"].mean(),
        "in output": compute_output_gain(both, "partial"),
    }
    distance = {
        (name, slow, fast, kappa): max(abs(by[slow, kappa] - 0.5), abs(by[fast, kappa] - 1))
        for name, by in measures.items()
        for (slow, kappa), (fast, also) in product(by.index, by.index)
        if kappa == also and slow.startswith("300/s") and fast.startswith("500/s")
    }
    name, slow, fast, kappa = nearest = min(distance, key=lambda at: distance[at])
    low_gain, high_gain = measures[name][slow, kappa], measures[name][fast, kappa]
    holds = distance[nearest] < ABOUT and low_gain < high_gain
    quotation = '"around 100% when stream rates are 500 tuples per second" (section 6.3): '
    return judge_reading(
        f"{_format_spans(measures['for as many pairs'])} (counted, the mean of kappa)",
        holds,
        f"{'' if holds else quotation}of {len(distance)} choices of kappa, which the paper does "
        "not give, of how much of a rate's time is counted, and of a gain for as many pairs "
        f"beside one in output, nearest are {high_gain:.0%} at {STEADY[0]} and {low_gain:.0%} at "
        f"{STEADY[1]}, for kappa = {kappa:g}, {fast} and {slow}, {name}",
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

    some = select_phase(wider, "all", "partial")
    table = some.groupby(["kappa", "window"])["gain_counted"].mean().unstack()
    skewed = select_phase(newest, "all", "partial").groupby("kappa")["gain_counted"].mean()
    by_window = "; ".join(f"{kappa:g}: {format_values(row)}" for kappa, row in table.iterrows())
    ran = {"varied": tuple(table.index)}
    result = f"by skew {format_values(skewed)}; by window, for kappa of {by_window} (counted)"
    if len(skewed) < 2 or min(table.shape) < 2:
        return replace(leave_untested(result), ran=ran)
    rises = [table.diff().iloc[1:], table.diff(axis=1).iloc[:, 1:], skewed.diff().iloc[1:]]
    grows = all((rise > 0).to_numpy().all() for rise in rises)
    finding = judge(result, grows, "over the whole period, as in the paper")
    return replace(finding, ran=ran)


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
        "without prior knowledge: the policy has learned which window is less useful. By the "
        "formula of section 6.1 it is that of n, r_1, where the paper has r_2; r is given here, "
        "and in the paper follows from the rates",
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


@CLAIMS.claim(
    "Fig. 12",
    "time correlation adds about 50 %, direction about 40 % more",
)
def printed_gains_claim(recall: pd.DataFrame, finer: pd.DataFrame) -> Finding:
    """Fig. 12: the printed gains, while rates are raised."""
    both = pd.concat([recall, finer])
    phases = [phase for phase in both["phase"].unique() if phase != "all"]
    gains = {
        (way, phase, kappa): (time[kappa], more[kappa] * (1 + time[kappa] * (way == ALONE)))
        for phase in phases
        for time, more in [compute_added_recall(both, phase)]
        for kappa in time.index
        for way in (ALONE, "direction's of the output with time correlation")
    }
    distance = {at: max(abs(t - 0.5), abs(more - 0.4)) for at, (t, more) in gains.items()}
    way, phase, kappa = nearest = min(distance, key=lambda at: distance[at])
    time, more = gains[nearest]
    added = compute_added_recall(recall)[0].round(2)
    reading = (
        f"at kappa = {kappa:g}, which the paper does not give, and {way}: {time:.0%} and "
        f"{more:.0%} ({phase}), nearest of {len(gains)} choices. At {added.index.min():g} to "
        f"{added.index.max():g} time correlation adds {format_values(added)}"
    )
    holds = distance[nearest] < ABOUT
    quoted = '"around 50%", "around 40%" (section 6.4): '
    return judge_reading(f"{time:.0%}, {more:.0%}", holds, reading if holds else quoted + reading)


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
        "where the streams are shifted: it gives "
        f"{alone.min():+.0%} to {alone.max():+.0%} there; "
        f"not shifted it gives {aligned.min():+.0%} to {aligned.max():+.0%}, as in Fig. 9",
    )


@CLAIMS.claim(
    "Fig. 13",
    "the gain of time correlation and direction grows with skew; rate adaptation alone does "
    "not improve",
    is_required=True,
)
def skewed_claim(skewed: pd.DataFrame) -> Finding:
    """Fig. 13, theta of 4, over the whole period."""
    recall = average_recall(skewed, "all")
    results = select_phase(skewed, "all", "partial").groupby("kappa")["results_counted"].mean()
    ahead = recall[["time", "direction"]].div(recall["partial"], axis=0)
    grows = (ahead.diff().iloc[1:] > 0).all(axis=None)
    result = "; ".join(f"{m} over rate alone {format_values(ahead[m])}" for m in ahead)
    return judge(
        f"{result}; rate alone finds {format_values(results)} (counted)",
        grows and results.iloc[-1] <= 1.1 * results.iloc[0],
        "over the whole period; with most skew rate adaptation alone finds "
        f"{results.iloc[-1] / results.iloc[0]:.0%} of the results that it finds with least",
    )


@CLAIMS.claim("Fig. 14", "small basic windows give more without an index", is_required=True)
def small_basic_windows_claim(cut_windows: pd.DataFrame) -> Finding:
    """Fig. 14, left: recall by the number of basic windows, by the policy, for every kappa."""
    by = cut_windows.groupby(["kappa", "parts"])["recall_counted"].mean().unstack()
    result = "; ".join(f"kappa {kappa:g}: {format_values(row)}" for kappa, row in by.iterrows())
    most, least = by.columns >= 10, by.columns <= 2
    rises = (by.loc[:, most].min(axis=1) > by.loc[:, least].max(axis=1)).all()
    return judge(f"by basic windows in a window, {result} (counted)", rises)


@CLAIMS.claim(
    "Fig. 15",
    "selective processing gives up to 500 % more than dropping, more for overlap than for equality",
    is_required=True,
)
def gain_over_dropping_claim(gains: pd.DataFrame) -> Finding:
    """Fig. 15: joins without an index."""
    last = compare_joins(gains).iloc[-1]
    overlap = last[[name for name in last.index if name.startswith(experiments.OVERLAP)]]
    overlap = pd.Series(
        {0.6: last["overlap"]} | {float(k.split()[-1]): v for k, v in overlap.items()}
    )
    equal = experiments.equality_gain()
    each = ", ".join(f"{gain:.0%} at {kappa:g}" for kappa, gain in overlap.items())
    reading = (
        f"for a kappa that the paper does not give: at {STEADY[0]} the overlap gains {each}. At "
        f"{overlap.index.min():g} the equality, with pairs four times as cheap, gains "
        f"{last['equality']:.0%}; by the model {equal:.0%} with pairs as dear as those of the "
        "overlap"
    )
    holds = overlap.min() < 5 < overlap.max() and last["overlap"] > max(last["equality"], equal)
    return judge_reading(
        f"{format_values(last)} (counted)", holds and last["equality"] > 0, reading
    )


@CLAIMS.claim(
    "Fig. 15",
    "with an index nothing is gained until 300/s, and up to 100 % after",
    is_required=True,
)
def indexed_gain_claim(gains: pd.DataFrame) -> Finding:
    """Fig. 15: the overlap with an index."""
    overlap = compare_joins(gains)["overlap, indexed"]
    per_rate = 2 * experiments.INDEXED / experiments.CAPACITY
    least, most = (per_rate * rate**2 for rate in (200.0, 300.0))
    begins = sqrt(experiments.CHEAPER / per_rate)
    reading = (
        f"only if a pair is {least:.0f} to {most:.0f} times as cheap with an index; "
        f"{experiments.CHEAPEST:g} is chosen so here. With the {experiments.CHEAPER:g} that fit "
        f"Fig. 7 something is gained from {begins:.0f}/s on. Then {STEADY[0]} gains "
        f"{overlap.iloc[-1]:.0%}, at the r of windows of {experiments.INDEXED:g} s, on "
        f"{experiments.PROCESSED:g} s"
    )
    holds = overlap.loc[:200].abs().max() < 0.01 and 0.6 < overlap.iloc[-1] < 1.4
    return judge_reading(f"{format_values(overlap.dropna())} (counted)", holds, reading)


CLAIMS.include_claims(model_claims.CLAIMS)
CLAIMS.include_claims(utility_claims.CLAIMS)
CLAIMS.include_claims(measured.CLAIMS)
CLAIMS.include_claims(runs.CLAIMS)
