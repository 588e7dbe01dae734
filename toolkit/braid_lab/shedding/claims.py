"""The claims of Gedik, Wu, Yu and Liu 2007.

Fig. 7 to 17 are judged by the policy itself (Fig. 14 and 15 in ``steady_claims``, 16 and 17 in
``utility_claims``); Fig. 1, 5, 6 and joins with an index by models (``model_claims``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from braid_lab.shedding import measured, model_claims, runs, steady_claims, utility_claims
from braid_lab.shedding.claim_settings import FORWARD, SETTINGS
from braid_lab.shedding.claim_tables import (
    UNSAID,
    average_recall,
    compute_added_recall,
    compute_output_gain,
    format_percents,
    format_span,
    judge_runs,
    number_seeds,
    select_phase,
)
from braid_lab.shedding.policy_figures import LONGER, PHASES, WHOLE

CLAIMS = ClaimRegistry("Gedik 2007", SETTINGS)
"""All claims: of the figures, and of measured runs."""
ABOUT, HALF = 0.1, 0.15
"""How far a gain may be from one that the paper gives as "around" a number, and a share from half.
"""
DOWN_TO, BELOW = 0.5, 0.9
"""The r down to which Fig. 11 is judged, and the fraction of a window below which it has fallen."""
FALLEN, RECOVERED = 0.3, 3
"""The r that has fallen over that before, and that has recovered over the fallen."""
WITHIN, USED = 1.2, 0.8
"""The part of a capacity up to which a join is within it, and from which it counts as used."""
STEADY, RISING = ("500/s", "300/s"), ("500/s, 15 s",)
"""Phases in which a rate has filled most of the window, and one that begins with its rise."""
SPANS = {p.name: f"{p.begins} to {p.ends} s" for p in (*PHASES, *LONGER, WHOLE)}
"""The seconds of each phase."""
RAISED = f"from {SPANS['burst']}, while rates are raised"
ALONE = "both of the output of rate adaptation alone"


@CLAIMS.claim(
    "Fig. 7", "without an index about half is dropped at 50 tuples/s and 125 s", is_required=True
)
def plain_drops_claim(dropped: pd.DataFrame) -> Finding:
    """Fig. 7: the fraction of dropped tuples without an index, by the policy, by the machine."""
    by = dict(list(dropped.groupby("capacity")["dropped_counted"]))
    each = ", ".join(f"{format_span(part, '.0%')} for {c:,.0f}" for c, part in by.items())
    middle = list(by)[len(by) // 2]
    reading = (
        f"for a machine of {middle:,.0f} comparisons a second, {UNSAID}: of the tuples {each} "
        "comparisons a second are dropped, by seed; about half is read as "
        f"{0.5 - HALF:.0%} to {0.5 + HALF:.0%}"
    )
    return judge_reading(each, ((by[middle] - 0.5).abs() < HALF).all(), reading)


@CLAIMS.claim("Fig. 8", "r falls in a burst and recovers after it", is_required=True)
def burst_claim(fractions: pd.DataFrame) -> Finding:
    """Fig. 8: r follows the rates, by the policy."""
    r = number_seeds(fractions).pivot(index="second", columns="seed", values="fraction_counted")
    spans = ((50, 60), (70, 75), (95, 105), (125, 130))
    before, during, after, end = by = [r.loc[a : b - 1].mean() for a, b in spans]
    named = zip(spans, by, strict=True)
    means = ", ".join(f"{format_span(mean, '.2f')} from {a} to {b} s" for (a, b), mean in named)
    has_fallen = (during < after) & (after < FALLEN * before)
    reason = (
        f"r in the mean, by seed: {means}. It counts if the second is less than the third, that "
        f"less than {FALLEN:g} times the first, and the last more than {RECOVERED:g} times the "
        "third"
    )
    return judge(f"{means} (counted)", (has_fallen & (end > RECOVERED * after)).all(), reason)


@CLAIMS.claim(
    "beyond the paper",
    "rate adaptation keeps the join within its capacity, and uses it",
    is_required=True,
    setting=FORWARD,
)
def forward_claim(fractions: pd.DataFrame, burst: pd.DataFrame) -> Finding:
    """Fig. 8: the policy, which feeds forward how the window grows, beside Algorithm 1."""
    by_seed = [run for _, run in number_seeds(fractions).groupby("seed")]
    most = max(run["load_counted"].rolling(5).mean().max() for run in by_seed)
    less = (run[run["fraction_counted"] < 1] for run in by_seed)
    used = pd.Series([run["load_counted"].mean() for run in less])
    rule = burst[burst["rule"] == "Algorithm 1"]
    tried = rule["load_modelled"].rolling(5).mean().max()
    figures = (
        f"at most {most:.0%} of it in the mean of five seconds, {tried:.0%} by Algorithm 1 "
        f"(modelled); {format_span(used, '.0%')} in the mean while r < 1, by seed"
    )
    finding = judge if most <= 1 else judge_reading
    reading = "" if most <= 1 else f"; within is read as up to {WITHIN:.0%}"
    reading += f"; used is read as more than {USED:.0%}"
    return finding(figures, most <= WITHIN and used.min() > USED, figures + reading)


@CLAIMS.claim(
    "Fig. 9",
    "rate adaptation improves the output rate when stream rates increase, if the newest match",
    is_required=True,
)
def newest_claim(newest: pd.DataFrame) -> Finding:
    """Fig. 9: rate adaptation alone improves the output rate where rates are raised."""
    runs = number_seeds(newest)
    raised = runs[(runs["method"] == "partial") & (runs["phase"] != "all")]
    gain = raised.groupby(["phase", "kappa", "seed"])["gain_counted"].mean()
    output = compute_output_gain(runs, "partial", "seed").drop("all", level="phase")
    full, since = (output[output.index.isin(p, level="phase")] for p in (STEADY, RISING))
    filled = " and ".join(SPANS[phase] for phase in STEADY)
    stretches = ", ".join(SPANS[phase] for phase in gain.index.unique("phase"))
    reading = (
        f"for equally many pairs ({format_span(gain)}), at each kappa, {UNSAID}, by seed, in each "
        f"stretch of raised rates ({stretches}). In output so too at the end of each rate, from "
        f"{filled} ({format_span(full)})"
        + (f"; from {SPANS[RISING[0]]} it is {format_span(since)}" if len(since) else "")
    )
    holds = gain.min() > 0 and full.min() > 0
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
        "for equally many pairs": alone["gain_counted"].mean(),
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
    quotation = (
        '"around 100% when stream rates are 500 tuples per second and around 50% when 300 tuples '
        'per second" (section 6.3): '
    )
    return judge_reading(
        f"{_format_spans(measures['for equally many pairs'])} (counted, the mean of kappa)",
        holds,
        f"{'' if holds else quotation}of {len(distance)} choices of kappa, {UNSAID}, of how much "
        "of a rate's time is counted, and of a gain for equally many pairs beside one in output, "
        f"nearest are {high_gain:.0%} at {STEADY[0]} (from {SPANS[fast]}) and {low_gain:.0%} at "
        f"{STEADY[1]} (from {SPANS[slow]}), at kappa = {kappa:g}, {name}, in the mean of seeds; "
        f"around is read as within {100 * ABOUT:g} percentage points",
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
    paired, output = (_tabulate_gains(newest, wider, of) for of in ("pairs", "output"))
    by_window, by_skew = paired
    ran = {"varied": tuple(by_window.index), "middle": newest["window"].max()}
    shown = f"for equally many pairs {_describe_growth(paired)}"
    if by_skew.size < 2 or min(by_window.shape) < 2:
        return replace(leave_untested(f"{shown} (counted)"), ran=ran)
    by_skews, by_windows = (
        [of_seed for _, of_seed in number_seeds(runs).groupby("seed")] for runs in (newest, wider)
    )
    each = pd.DataFrame(
        {
            of: [
                _is_growing(*_tabulate_gains(one, other, of))
                for one, other in zip(by_skews, by_windows, strict=True)
            ]
            for of in ("pairs", "output")
        }
    )
    both = f"{shown}; in output {_describe_growth(output)}, in the mean of seeds"
    if each.all(axis=None):
        return replace(judge(shown, True, f"in each seed; {both}"), ran=ran)
    reading = (
        f"from {SPANS['all']} it grows at each step for equally many pairs in "
        f"{each['pairs'].sum()}, in output in {each['output'].sum()} of {len(each)} seeds; {both}"
    )
    holds = _is_growing(*paired) or _is_growing(*output)
    return replace(judge_reading(shown, holds, reading), ran=ran)


def _tabulate_gains(
    newest: pd.DataFrame, wider: pd.DataFrame, of: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the gain of rate adaptation over the whole period: by window, and by skew."""
    return _tabulate_gain(wider, of, "window"), _tabulate_gain(newest, of, "phase").T


def _tabulate_gain(runs: pd.DataFrame, of: str, by: str) -> pd.DataFrame:
    period = runs[runs["phase"] == "all"].groupby(["method", "kappa", by])
    if of == "pairs":
        return period["gain_counted"].mean()["partial"].unstack()
    recall = period["recall_counted"].mean()
    return (recall["partial"] / recall["drop"] - 1).unstack()


def _is_growing(by_window: pd.DataFrame, by_skew: pd.DataFrame) -> bool:
    rises = (by_window.diff().iloc[1:], by_window.diff(axis=1).iloc[:, 1:])
    skewed = by_skew.diff(axis=1).iloc[:, 1:]
    return all((rise > 0).all(axis=None) for rise in (*rises, skewed))


def _describe_growth(tables: Sequence[pd.DataFrame]) -> str:
    by_window, by_skew = tables
    rows = "; ".join(
        f"{format_percents(row)} s for kappa = {k:g}" for k, row in by_window.iterrows()
    )
    return f"by kappa {format_percents(by_skew.iloc[0])}, and by window {rows}"


@CLAIMS.claim("Fig. 11", "the fraction of the less useful window falls first", is_required=True)
def direction_claim(directions: pd.DataFrame) -> Finding:
    """Fig. 11: the shares of both windows that the policy processes."""
    falls = directions.sort_values("fraction", ascending=False).set_index("fraction")
    r1, r2 = falls["r1_counted"], falls["r2_counted"]
    is_second_better = (falls["o2_modelled"] > falls["o1_modelled"]).all()
    better, worse = (r2, r1) if is_second_better else (r1, r2)
    first = better[better.index > DOWN_TO]
    each = ", ".join(
        f"{falls.at[r, worse.name]:.2f} and {falls.at[r, better.name]:.2f} at r = {r:g}"
        for r in falls.index
    )
    less, more = ("r_1", "r_2") if is_second_better else ("r_2", "r_1")
    holds = (first > 1 - 1e-9).all() and worse[worse.index >= DOWN_TO].is_monotonic_decreasing
    return judge_reading(
        f"{worse.name} {format_values(worse)}; {better.name} {format_values(better)} (counted)",
        holds and worse.iloc[0] < BELOW,
        f"where r is given, which in the paper follows from the rates: {less} and {more} are "
        f"{each}, in the mean of seeds; first is read as the whole of {more}, up to rounding, "
        f"while r is above {DOWN_TO}, and {less} below {BELOW} at r = {falls.index[0]:g} and "
        f"falling to r = {DOWN_TO}. By the formula of section 6.1 the less useful window is that "
        f"of {less}; Fig. 11 has r_2",
    )


@CLAIMS.claim(
    "Fig. 12",
    "time correlation adds to rate adaptation, and direction to that",
    is_required=True,
)
def order_claim(recall: pd.DataFrame) -> Finding:
    """Fig. 12: the order of the methods while rates are raised."""
    time, way = compute_added_recall(recall)
    each = pd.concat(compute_added_recall(number_seeds(recall), "burst", "seed"))
    result = f"time {format_values(time)}; direction {format_values(way)} (counted)"
    reason = (
        f"{RAISED}; by kappa, {UNSAID}, time correlation adds {format_percents(time)}, and "
        f"direction adds {format_percents(way)} to that, in the mean of seeds"
    )
    return judge_runs(result, (time > 0).all() and (way > 0).all(), each > 0, reason)


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
    reading = (
        f"at kappa = {kappa:g}, {UNSAID}, and {way}: {time:.0%} and {more:.0%} from "
        f"{SPANS[phase]}, in the mean of seeds, nearest of {len(gains)} choices of kappa, stretch "
        f"and comparison; around is read as within {100 * ABOUT:g} percentage points. "
        f"{RAISED.capitalize()}, time correlation adds, by kappa, "
        f"{format_percents(compute_added_recall(recall)[0])}"
    )
    holds = distance[nearest] < ABOUT
    quoted = '"around 50%", "around 40%" (section 6.4): '
    return judge_reading(f"{time:.0%}, {more:.0%}", holds, reading if holds else quoted + reading)


@CLAIMS.claim(
    "section 4", "partial processing by itself does not give significantly more than dropping"
)
def partial_processing_claim(recall: pd.DataFrame, newest: pd.DataFrame) -> Finding:
    """Section 4: "does not significantly increase the number of output tuples", by the policy."""
    alone, aligned = (
        select_phase(number_seeds(runs), "burst", "partial")
        .groupby(["kappa", "seed"])["gain_counted"]
        .mean()
        for runs in (recall, newest)
    )
    output, even = (
        compute_output_gain(number_seeds(runs), "partial", "seed")["burst"]
        for runs in (recall, newest)
    )
    holds = (alone < ABOUT).all() and (output < ABOUT).all()
    quoted = '"does not significantly increase the number of output tuples" (section 4): '
    return judge_reading(
        f"shifted {format_span(alone)}; not shifted {format_span(aligned)} (counted)",
        holds,
        f"{'' if holds else quoted}where the streams are shifted: {RAISED}, it gives "
        f"{format_span(alone)} for equally many pairs and {format_span(output)} in output, by "
        f"kappa and seed; not shifted it gives {format_span(aligned)} and {format_span(even)}. "
        f"Significantly is read as {ABOUT:.0%} more",
    )


@CLAIMS.claim(
    "Fig. 13",
    "the gain of time correlation and direction grows with skew; rate adaptation alone does "
    "not improve",
    is_required=True,
)
def skewed_claim(skewed: pd.DataFrame) -> Finding:
    """Fig. 13, theta of 4, over the whole period."""
    runs = number_seeds(skewed)
    each = _compare_with_rate_alone(average_recall(runs, "all", "seed"))
    ahead = _compare_with_rate_alone(average_recall(runs, "all"))
    period = select_phase(runs, "all", "partial").groupby(["seed", "kappa"])
    by_seed = period["results_counted"].mean().unstack()
    results = by_seed.mean()
    alone = (results / results.iloc[0]).iloc[1:]
    in_runs = by_seed.div(by_seed.iloc[:, 0], axis=0).iloc[:, 1:]
    rises = (ahead.diff().iloc[1:] > 0).all(axis=None)
    result = "; ".join(f"{m} over rate alone {format_values(ahead[m])}" for m in ahead)
    why = (
        f"from {SPANS['all']}, by kappa, time correlation adds {format_percents(ahead['time'])} to "
        f"rate adaptation, and with direction {format_percents(ahead['direction'])}; rate "
        f"adaptation alone finds {format_percents(alone)} of what it finds at "
        f"{results.index[0]:g}, in the mean of seeds; in single runs {format_span(in_runs, '.0%')}"
    )
    shown = f"{result}; rate alone finds {format_values(results)} (counted)"
    if in_runs.max(axis=None) > 1:
        why += f"; it improves is read as by {ABOUT:.0%} and more"
        return judge_reading(shown, rises and in_runs.max(axis=None) < 1 + ABOUT, why)
    return judge_runs(shown, rises, each.groupby("seed").diff().dropna() > 0, why)


def _compare_with_rate_alone(recall: pd.DataFrame) -> pd.DataFrame:
    return recall[["time", "direction"]].div(recall["partial"], axis=0) - 1


CLAIMS.include_claims(steady_claims.CLAIMS)
CLAIMS.include_claims(model_claims.CLAIMS)
CLAIMS.include_claims(utility_claims.CLAIMS)
CLAIMS.include_claims(measured.CLAIMS)
CLAIMS.include_claims(runs.CLAIMS)
