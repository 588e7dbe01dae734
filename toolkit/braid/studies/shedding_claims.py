"""The claims of Gedik, Wu, Yu and Liu 2007, against the figures of ``studies.shedding``."""

from __future__ import annotations

import pandas as pd

from braid.studies import shedding
from braid.studies.claim import Claim, figures, verdict

PAPER = "Gedik 2007"


def load_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 5, first observation, on means over basic windows."""
    phi = frame[frame["share"] <= 1].groupby("share")["optimality_modelled"].mean()
    low, high = phi[phi.index < 0.3].mean(), phi[phi.index >= 0.3].mean()
    return Claim(
        PAPER,
        "Fig. 5",
        "optimality falls with less CPU",
        figures(phi),
        verdict(low < high),
        "whole basic windows make it rise and fall between, so that means are compared",
        must=True,
    )


def skew_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 5, second observation."""
    phi = frame[frame["share"] <= 1].groupby("deviation")["optimality_modelled"].mean()
    return Claim(
        PAPER,
        "Fig. 5",
        "optimality falls as matches are more skewed in time",
        figures(phi),
        verdict(phi.is_monotonic_increasing and phi.iloc[-1] > phi.iloc[0]),
        must=True,
    )


def size_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 5, third observation."""
    few = frame[(frame["share"] <= 0.4) & (frame["deviation"] == frame["deviation"].min())]
    phi = few.groupby("basic")["optimality_modelled"].mean()
    return Claim(
        PAPER,
        "Fig. 5",
        "small basic windows are better when there is little CPU or much skew",
        figures(phi),
        verdict(phi.is_monotonic_decreasing and phi.iloc[-1] < phi.iloc[0]),
        must=True,
    )


def reduction_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 1: what age-based window reduction can and cannot do."""
    kept = frame.assign(part=frame["newest_modelled"] / frame["best_modelled"])
    part = kept.groupby("peak")["part"].min()
    return Claim(
        PAPER,
        "Fig. 1",
        "keeping the newest part of a window sheds CPU load well only if the peak is early",
        figures(part),
        verdict(part["early"] > 0.9 and part["late"] < 0.1),
        must=True,
    )


def density_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 6: where the peak lies and how sharp it is."""
    f = frame.groupby(["kappa", "window"])["f_modelled"]
    sharp = (f.max() / f.mean()).groupby("kappa").max()
    peaks = frame.loc[f.idxmax()]
    inside = peaks[(peaks["age"] > 0.5) & (peaks["age"] < 0.95)]
    return Claim(
        PAPER,
        "Fig. 6",
        "matches peak within the window, more sharply for more skewed items",
        f"peak over mean {figures(sharp)}; at age {inside['age'].max():.2f} w",
        verdict(len(inside) and sharp.is_monotonic_increasing and sharp.is_unique),
        "by the formula of section 6.1 it is the window of the shifted stream that has the peak; "
        "Fig. 6 and 11 have it in the other",
        must=True,
    )


def need_claims(frame: pd.DataFrame) -> list[Claim]:
    """Fig. 7: how much is dropped."""
    dropped = frame.set_index(["index", "rate", "window"])["dropped_modelled"]
    plain, indexed = dropped[False, 50.0, 125.0], dropped[True, 100.0, 625.0]
    return [
        Claim(
            PAPER,
            "Fig. 7",
            "without an index about half is dropped at 50 tuples/s and 125 s",
            f"{plain:.0%}",
            verdict(0.35 < plain < 0.65),
            "the machine's 200,000 comparisons a second are taken from the paper's own rates",
            must=True,
        ),
        Claim(
            PAPER,
            "Fig. 7",
            "with an index about a quarter is dropped at 100 tuples/s and 625 s; it helps for "
            "moderate windows and rates only",
            f"{indexed:.0%}",
            verdict(0.1 < indexed < 0.4 and dropped[True, 200.0, 625.0] > indexed),
            must=True,
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
        verdict(during < 0.3 * before and end > 3 * during),
        must=True,
    )


def forward_claim(frame: pd.DataFrame) -> Claim:
    """Ours beside Fig. 8: knowing the window's growth beforehand."""
    over = frame[frame["load_modelled"] > 1.1].groupby("rule").size()
    over = over.reindex(["Algorithm 1", "forward"], fill_value=0)
    short = frame[frame["fraction_modelled"] < 1]
    used = short.groupby("rule")["load_modelled"].mean().reindex(over.index, fill_value=0)
    return Claim(
        PAPER,
        "section 4.1",
        "rate adaptation keeps the join within its capacity, and uses it",
        f"seconds beyond 1.1 of it: {figures(over)}; used of it while r < 1: {figures(used)}",
        verdict(over["forward"] <= 3 and used["forward"] > 0.8),
        "by the feed-forward rule; Algorithm 1 has to overrun first, and tries again and again",
        must=True,
    )


def rate_claim(frame: pd.DataFrame) -> Claim:
    """Fig. 9: rate adaptation alone where the newest match (shift 0)."""
    gain = frame[frame["method"] == "partial"].groupby("rate")["gain_modelled"].mean()
    return Claim(
        PAPER,
        "Fig. 9",
        "rate adaptation gives more than random dropping when the newest match, more so at 500/s "
        "(by 100 %) than at 300/s (by 50 %)",
        figures(gain),
        verdict(0 < gain[300.0] < gain[500.0]),
        must=True,
    )


def growth_claim(frame: pd.DataFrame, wider: pd.DataFrame) -> Claim:
    """Fig. 10: by skew, and by the window."""

    def gains(frame: pd.DataFrame, by: str) -> pd.Series:
        return frame[frame["method"] == "partial"].groupby(by)["gain_modelled"].mean()

    both = skewed, wide = gains(frame, "kappa"), gains(wider, "window")
    says = "the gain of rate adaptation grows with skew and with the window"
    found = f"by skew {figures(skewed)}; by window {figures(wide)}"
    if min(map(len, both)) < 2:
        return Claim(PAPER, "Fig. 10", says, found, "not tried")
    grows = all(g.is_monotonic_increasing and g.iloc[-1] > g.iloc[0] for g in both)
    return Claim(PAPER, "Fig. 10", says, found, verdict(grows), must=True)


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
        f"{worse} {figures(falls.set_index('fraction')[worse])}",
        verdict((first[better] == 1).all() and len(first) > 1),
        must=True,
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
            f"time {figures(time)}; direction {figures(way)}",
            verdict((time > 0).all() and (way > 0).all()),
            must=True,
        ),
        Claim(
            PAPER,
            "Fig. 12",
            "time correlation adds about 50 %, direction about 40 % more",
            f"time {figures(time)}; direction {figures(way)}",
            verdict(printed.any()),
            "the paper does not give kappa, and none gives both figures",
        ),
        Claim(
            PAPER,
            "section 4",
            "partial processing by itself is about as good as dropping",
            figures(alone),
            verdict((alone.abs() < 0.1).all()),
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
        f"recall over that of rate alone {figures(ahead)}; rate alone {figures(gain['partial'])}",
        verdict(
            ahead.is_monotonic_increasing
            and ahead.is_unique
            and gain["partial"].is_monotonic_decreasing
        ),
        must=True,
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
            f"none {figures(found['none'])}; time {figures(found['time'])}",
            verdict(
                small["none"].min() > large["none"].max()
                and found["time"].iloc[-1] < found["time"].max()
            ),
            must=True,
        ),
        Claim(
            PAPER,
            "Fig. 14",
            "lists by identifier give less, above all with large basic windows",
            f"identifier {figures(found['identifier'])}",
            verdict(
                (found["identifier"] <= found["time"] + 1e-9).all()
                and (large["time"] - large["identifier"]).min()
                > (small["time"] - small["identifier"]).max()
            ),
            must=True,
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
            figures(last),
            verdict(last["overlap"] > last["equality"] > 0),
            "the order holds; how much depends on kappa, which is not given",
            must=True,
        ),
        Claim(
            PAPER,
            "Fig. 15",
            "with an index nothing is gained until 300/s, and up to 100 % after; an indexed "
            "equality gains and loses nothing",
            figures(gain["overlap, indexed"]),
            verdict(
                gain["overlap, indexed"].loc[:200].max() < 0.01
                and 0.3 < last["overlap, indexed"] < 2
                and (gain["equality, indexed"].abs() < 1e-9).all()
            ),
            "the cost of an indexed pair is chosen so that 300/s saturates: the two figures of the "
            "paper on it (7 and 15) are a factor of five apart; method keys does gain for equality",
            must=True,
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
            "; ".join(f"{name} {figures(by[name])}" for name in by),
            verdict(
                by["uniform"].is_monotonic_increasing
                and by["inverse"].is_monotonic_increasing
                and (by["inverse"].iloc[1:] > by["uniform"].iloc[1:]).all()
            ),
            must=True,
        ),
        Claim(
            PAPER,
            "Fig. 16",
            "it stays almost the same for frequencies proportional to values",
            figures(by["direct"]),
            verdict(by["direct"].max() < 0.1),
            must=True,
        ),
        Claim(
            PAPER,
            "Fig. 17",
            "the gain falls at first as there are more types",
            figures(some),
            verdict(some.is_monotonic_decreasing and 0 < drops.iloc[0] == drops.max()),
            must=True,
        ),
        Claim(
            PAPER,
            "Fig. 17",
            "it then becomes stable quickly",
            figures(some),
            verdict(drops.iloc[-1] < 0.05 * some.iloc[-1]),
            "it goes on falling slowly, about as 1 / log of the number of types",
        ),
    ]


def claims(kappas: tuple[float, ...] = (0.4, 0.6, 0.8)) -> list[Claim]:
    """All claims, on figures made anew."""
    best, outputs = shedding.optimality(), shedding.outputs(kappas)
    burst = shedding.adaptation()
    return [
        reduction_claim(shedding.window_reduction()),
        load_claim(best),
        skew_claim(best),
        size_claim(best),
        density_claim(shedding.densities(kappas[-2:])),
        *need_claims(shedding.drop_rates()),
        burst_claim(burst),
        forward_claim(burst),
        rate_claim(shedding.outputs(kappas, shift=0.0)),
        growth_claim(shedding.outputs(kappas, shift=0.0), shedding.by_window()),
        direction_claim(shedding.parts()),
        *order_claims(outputs),
        skewed_claim(shedding.outputs(kappas, theta=4)),
        *size_claims(shedding.basic_windows()),
        *dropping_claims(shedding.against_dropping()),
        *utility_claims(shedding.utility_by_skew(), shedding.utility_by_types()),
    ]
