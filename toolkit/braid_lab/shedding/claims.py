"""The claims of Gedik, Wu, Yu and Liu 2007, against ``braid_lab.shedding.experiments``."""

from __future__ import annotations

import pandas as pd

from braid_lab.common.claims import Claim, format_values, make_verdict
from braid_lab.shedding import experiments as shedding_experiments

PAPER = "Gedik 2007"


def load_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 5, first observation, on means over basic windows."""
    phi = frame[frame["share"] <= 1].groupby("share")["optimality_modelled"].mean()
    low, high = phi[phi.index < 0.3].mean(), phi[phi.index >= 0.3].mean()
    return Claim(
        PAPER,
        "Fig. 5",
        "optimality falls with less CPU",
        format_values(phi),
        make_verdict(low < high),
        "whole basic windows make it rise and fall between, so that means are compared",
        is_required=True,
    )


def skew_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 5, second observation."""
    phi = frame[frame["share"] <= 1].groupby("deviation")["optimality_modelled"].mean()
    return Claim(
        PAPER,
        "Fig. 5",
        "optimality falls as matches are more skewed in time",
        format_values(phi),
        make_verdict(phi.is_monotonic_increasing and phi.iloc[-1] > phi.iloc[0]),
        is_required=True,
    )


def size_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 5, third observation."""
    few = frame[(frame["share"] <= 0.4) & (frame["deviation"] == frame["deviation"].min())]
    phi = few.groupby("basic")["optimality_modelled"].mean()
    return Claim(
        PAPER,
        "Fig. 5",
        "small basic windows are better when there is little CPU or much skew",
        format_values(phi),
        make_verdict(phi.is_monotonic_decreasing and phi.iloc[-1] < phi.iloc[0]),
        is_required=True,
    )


def reduction_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 1: what age-based window reduction can and cannot do."""
    kept = frame.assign(part=frame["newest_modelled"] / frame["best_modelled"])
    part = kept.groupby("peak")["part"].min()
    return Claim(
        PAPER,
        "Fig. 1",
        "keeping the newest part of a window sheds CPU load well only if the peak is early",
        format_values(part),
        make_verdict(part["early"] > 0.9 and part["late"] < 0.1),
        is_required=True,
    )


def density_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 6: the position and the sharpness of the peak."""
    f = frame.groupby(["kappa", "window"])["f_modelled"]
    sharp = (f.max() / f.mean()).groupby("kappa").max()
    peaks = frame.loc[f.idxmax()]
    inside = peaks[(peaks["age"] > 0.5) & (peaks["age"] < 0.95)]
    return Claim(
        PAPER,
        "Fig. 6",
        "matches peak within the window, more sharply for more skewed items",
        f"peak over mean {format_values(sharp)}; at age {inside['age'].max():.2f} w",
        make_verdict(len(inside) and sharp.is_monotonic_increasing and sharp.is_unique),
        "by the formula of section 6.1 it is the window of the shifted stream that has the peak; "
        "Fig. 6 and 11 have it in the other",
        is_required=True,
    )


def drop_rate_claims(frame: pd.DataFrame) -> list[Claim]:
    """Fig. 7: the fraction of dropped tuples."""
    dropped = frame.set_index(["index", "rate", "window"])["dropped_modelled"]
    plain, indexed = dropped[False, 50.0, 125.0], dropped[True, 100.0, 625.0]
    return [
        Claim(
            PAPER,
            "Fig. 7",
            "without an index about half is dropped at 50 tuples/s and 125 s",
            f"{plain:.0%}",
            make_verdict(0.35 < plain < 0.65),
            "the machine's 200,000 comparisons a second are taken from the paper's own rates",
            is_required=True,
        ),
        Claim(
            PAPER,
            "Fig. 7",
            "with an index about a quarter is dropped at 100 tuples/s and 625 s; it helps for "
            "moderate windows and rates only",
            f"{indexed:.0%}",
            make_verdict(0.1 < indexed < 0.4 and dropped[True, 200.0, 625.0] > indexed),
            is_required=True,
        ),
    ]


def burst_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 8: r follows the rates."""
    mine = frame[frame["rule"] == "Algorithm 1"].set_index("second")["fraction_modelled"]
    before, during, end = mine[50:59].mean(), mine[70:74].mean(), mine[125:].mean()
    return Claim(
        PAPER,
        "Fig. 8",
        "r falls in a burst and recovers after it",
        f"{before:.2f}, {during:.2f}, {end:.2f}",
        make_verdict(during < 0.3 * before and end > 3 * during),
        is_required=True,
    )


def forward_claim(frame: pd.DataFrame) -> Claim:
    """Beside Fig. 8: the feed-forward rule, which knows the window's growth beforehand."""
    over = frame[frame["load_modelled"] > 1.1].groupby("rule").size()
    over = over.reindex(["Algorithm 1", "forward"], fill_value=0)
    short = frame[frame["fraction_modelled"] < 1]
    used = short.groupby("rule")["load_modelled"].mean().reindex(over.index, fill_value=0)
    return Claim(
        PAPER,
        "section 4.1",
        "rate adaptation keeps the join within its capacity, and uses it",
        f"seconds beyond 1.1 of it: {format_values(over)}; used of it while r < 1: "
        f"{format_values(used)}",
        make_verdict(over["forward"] <= 3 and used["forward"] > 0.8),
        "by the feed-forward rule; Algorithm 1 has to overrun first, and tries again and again",
        is_required=True,
    )


def rate_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 9: rate adaptation alone if the newest tuples match (shift 0)."""
    gain = frame[frame["method"] == "partial"].groupby("rate")["gain_modelled"].mean()
    return Claim(
        PAPER,
        "Fig. 9",
        "rate adaptation gives more than random dropping when the newest match, more so at 500/s "
        "(by 100 %) than at 300/s (by 50 %)",
        format_values(gain),
        make_verdict(0 < gain[300.0] < gain[500.0]),
        is_required=True,
    )


def growth_claim(frame: pd.DataFrame, wider: pd.DataFrame) -> Claim:
    """Fig. 10: by skew, and by the window."""

    def gains(frame: pd.DataFrame, by: str) -> pd.Series:
        return frame[frame["method"] == "partial"].groupby(by)["gain_modelled"].mean()

    both = skewed, wide = gains(frame, "kappa"), gains(wider, "window")
    says = "the gain of rate adaptation grows with skew and with the window"
    found = f"by skew {format_values(skewed)}; by window {format_values(wide)}"
    if min(map(len, both)) < 2:
        return Claim(PAPER, "Fig. 10", says, found, "not tried")
    grows = all(g.is_monotonic_increasing and g.iloc[-1] > g.iloc[0] for g in both)
    return Claim(PAPER, "Fig. 10", says, found, make_verdict(grows), is_required=True)


def direction_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 11."""
    better = "r2" if (frame["o2_modelled"] > frame["o1_modelled"]).all() else "r1"
    worse = "r1" if better == "r2" else "r2"
    falls = frame.sort_values("fraction", ascending=False)
    first = falls[falls[worse] > 0]
    return Claim(
        PAPER,
        "Fig. 11",
        "the fraction of the less useful window falls first",
        f"{worse} {format_values(falls.set_index('fraction')[worse])}",
        make_verdict((first[better] == 1).all() and len(first) > 1),
        is_required=True,
    )


def order_claims(frame: pd.DataFrame) -> list[Claim]:
    """Fig. 12: the order of the methods, and the printed gains."""
    gain = frame.groupby(["kappa", "method"])["recall_modelled"].mean().unstack()
    time, way = gain["time"] / gain["partial"] - 1, gain["direction"] / gain["time"] - 1
    printed = ((time - 0.5).abs() < 0.15) & ((way - 0.4).abs() < 0.15)
    alone = gain["partial"] / gain["drop"] - 1
    return [
        Claim(
            PAPER,
            "Fig. 12",
            "time correlation adds to rate adaptation, and direction to that",
            f"time {format_values(time)}; direction {format_values(way)}",
            make_verdict((time > 0).all() and (way > 0).all()),
            is_required=True,
        ),
        Claim(
            PAPER,
            "Fig. 12",
            "time correlation adds about 50 %, direction about 40 % more",
            f"time {format_values(time)}; direction {format_values(way)}",
            make_verdict(printed.any()),
            "the paper does not give kappa, and none gives both figures",
        ),
        Claim(
            PAPER,
            "section 4",
            "partial processing by itself is about as good as dropping",
            format_values(alone),
            make_verdict((alone.abs() < 0.1).all()),
            "where the peak is late, the newest part of the window holds least of it",
        ),
    ]


def skewed_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 13, theta of 4."""
    gain = frame.groupby(["kappa", "method"])["recall_modelled"].mean().unstack()
    ahead = gain["direction"] / gain["partial"]
    return Claim(
        PAPER,
        "Fig. 13",
        "the gain of time correlation and direction grows with skew; rate adaptation alone does "
        "not improve",
        f"recall over that of rate alone {format_values(ahead)}; rate alone "
        f"{format_values(gain['partial'])}",
        make_verdict(
            ahead.is_monotonic_increasing
            and ahead.is_unique
            and gain["partial"].is_monotonic_decreasing
        ),
        is_required=True,
    )


def size_claims(frame: pd.DataFrame) -> list[Claim]:
    """Fig. 14."""
    found = frame.set_index(["index", "parts"])["recall_modelled"].unstack("index")
    small, large = found[found.index >= 20], found[found.index <= 5]
    return [
        Claim(
            PAPER,
            "Fig. 14",
            "small basic windows give more; with an index very small ones give less again",
            f"none {format_values(found['none'])}; time {format_values(found['time'])}",
            make_verdict(
                small["none"].min() > large["none"].max()
                and found["time"].iloc[-1] < found["time"].max()
            ),
            is_required=True,
        ),
        Claim(
            PAPER,
            "Fig. 14",
            "lists by identifier give less, above all with large basic windows",
            f"identifier {format_values(found['identifier'])}",
            make_verdict(
                (found["identifier"] <= found["time"] + 1e-9).all()
                and (large["time"] - large["identifier"]).min()
                > (small["time"] - small["identifier"]).max()
            ),
            is_required=True,
        ),
    ]


def dropping_claims(frame: pd.DataFrame) -> list[Claim]:
    """Fig. 15."""
    gain = frame.set_index(["rate", "join"])["gain_modelled"].unstack()
    last = gain.iloc[-1]
    return [
        Claim(
            PAPER,
            "Fig. 15",
            "selective processing gives up to 500 % more than dropping, more for overlap than for "
            "equality",
            format_values(last),
            make_verdict(last["overlap"] > last["equality"] > 0),
            "the order holds; how much depends on kappa, which is not given",
            is_required=True,
        ),
        Claim(
            PAPER,
            "Fig. 15",
            "with an index nothing is gained until 300/s, and up to 100 % after; an indexed "
            "equality gains and loses nothing",
            format_values(gain["overlap, indexed"]),
            make_verdict(
                gain["overlap, indexed"].loc[:200].max() < 0.01
                and 0.3 < last["overlap, indexed"] < 2
                and (gain["equality, indexed"].abs() < 1e-9).all()
            ),
            "the cost of an indexed pair is chosen so that 300/s saturates: the two figures of the "
            "paper on it (7 and 15) are a factor of five apart; method keys does gain for equality",
            is_required=True,
        ),
    ]


def utility_claims(skew: pd.DataFrame, types: pd.DataFrame) -> list[Claim]:
    """Fig. 16 and 17."""
    by = skew.set_index(["skew", "frequencies"])["gain_modelled"].unstack()
    some = types[types["factor"] == types["factor"].max()].set_index("types")["gain_modelled"]
    drops = -some.diff().dropna()
    return [
        Claim(
            PAPER,
            "Fig. 16",
            "the gain in utility grows with the skew of values, most for frequencies inverse to "
            "values",
            "; ".join(f"{name} {format_values(by[name])}" for name in by),
            make_verdict(
                by["uniform"].is_monotonic_increasing
                and by["inverse"].is_monotonic_increasing
                and (by["inverse"].iloc[1:] > by["uniform"].iloc[1:]).all()
            ),
            is_required=True,
        ),
        Claim(
            PAPER,
            "Fig. 16",
            "it stays almost the same for frequencies proportional to values",
            format_values(by["direct"]),
            make_verdict(by["direct"].max() < 0.1),
            is_required=True,
        ),
        Claim(
            PAPER,
            "Fig. 17",
            "the gain falls at first as there are more types",
            format_values(some),
            make_verdict(some.is_monotonic_decreasing and 0 < drops.iloc[0] == drops.max()),
            is_required=True,
        ),
        Claim(
            PAPER,
            "Fig. 17",
            "it then becomes stable quickly",
            format_values(some),
            make_verdict(drops.iloc[-1] < 0.05 * some.iloc[-1]),
            "it goes on falling slowly, about as 1 / log of the number of types",
        ),
    ]


def shedding_claims(kappas: tuple[float, ...] = (0.4, 0.6, 0.8)) -> list[Claim]:
    """Return all claims, on newly computed figures."""
    best, outputs = (
        shedding_experiments.optimality_table(),
        shedding_experiments.recall_table(kappas),
    )
    burst = shedding_experiments.adaptation_curves()
    return [
        reduction_claim(shedding_experiments.window_reduction()),
        load_claim(best),
        skew_claim(best),
        size_claim(best),
        density_claim(shedding_experiments.density_curves(kappas[-2:])),
        *drop_rate_claims(shedding_experiments.drop_rates()),
        burst_claim(burst),
        forward_claim(burst),
        rate_claim(shedding_experiments.recall_table(kappas, shift=0.0)),
        growth_claim(
            shedding_experiments.recall_table(kappas, shift=0.0),
            shedding_experiments.recall_by_window(),
        ),
        direction_claim(shedding_experiments.direction_shares()),
        *order_claims(outputs),
        skewed_claim(shedding_experiments.recall_table(kappas, theta=4)),
        *size_claims(shedding_experiments.recall_by_basic_windows()),
        *dropping_claims(shedding_experiments.gain_over_dropping()),
        *utility_claims(
            shedding_experiments.utility_by_skew(), shedding_experiments.utility_by_types()
        ),
    ]
