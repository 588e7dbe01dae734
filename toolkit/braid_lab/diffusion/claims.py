"""The claims of Gu, Yu and Wang 2007, section 5, against the data of ``figures``.

Those of Fig. 13 to 16, ATR against CTR, are in ``tradeoff_claims``.

Ahead means by more than 1 %; closer is even. Everything is modelled except routing times and the
runs on Spark. Required claims are those that hold robustly; each is broken by a fault in the
policies (tests/mutations).
"""

from __future__ import annotations

import pandas as pd

from braid_lab.common.claims import Claim, Verdict, format_values, make_verdict
from braid_lab.diffusion.claim_frames import (
    ALL,
    CENTRALIZED,
    HALF,
    PAPER,
    ROOT,
    TWO,
    UNAWARE,
    UNOPTIMIZED,
    report_claim,
    required_claim,
)
from braid_lab.diffusion.claim_frames import DiffusionFigures as DiffusionFigures
from braid_lab.diffusion.experiments import seed_means
from braid_lab.diffusion.tradeoff_claims import atr_against_ctr_claims

MANY = 40
"""Maximum number of hosts with which the L = 2 copies of two segments often share one."""


def length_claim(f: DiffusionFigures, streams: int) -> Claim:
    """Fig. 4: throughput peaks at a length T* between the extremes."""
    by = f.throughput_by_length(streams)
    why = (
        "its work is results, of which ten seconds may wait: the shortest segments, which spread "
        "it best, win"
        if streams > 2
        else ""
    )
    says = f"throughput peaks at a length T* between extremes ({streams}-way): T / best"
    holds = by.index[0] < by.idxmax() < by.index[-1]
    return report_claim("4", says, format_values(by / by.max()), holds, why)


def too_long_check(f: DiffusionFigures) -> Claim:
    """Fig. 4: too long segments cost throughput (the two-way operator)."""
    by = f.throughput_by_length(2)
    says = "too long segments cost throughput (2-way): the longest / best"
    return required_claim("4", says, f"{by.iloc[-1] / by.max():.3g}", by.iloc[-1] < by.max())


def more_results_claim(f: DiffusionFigures, figure: str, window: float) -> Claim:
    """Fig. 7, 8: ATR and CTR have more results than the existing schemes."""
    end = f.final_results(window)
    rest = end[["ATR", HALF, ALL]].min()
    return report_claim(
        figure,
        "ATR and CTR above semantics-unaware and centralized",
        format_values(end),
        rest > max(end[UNAWARE], end[CENTRALIZED]),
        "one host keeps up with these rates",
    )


def complete_results_check(f: DiffusionFigures, figure: str, window: float, rival: str) -> Claim:
    """Fig. 7, 8: semantics-unaware routing loses results; six hosts do more than one."""
    end = f.final_results(window)
    least = end[["ATR", HALF, ALL]].min()
    found = f"{least:,.0f} results and more against {end[rival]:,.0f}"
    return required_claim(figure, f"ATR and CTR above {rival.lower()}", found, least > end[rival])


def window_claim(f: DiffusionFigures) -> Claim:
    """Fig. 7, 8: ATR is ahead at W = 60, CTR at 120."""
    ends = {w: f.final_results(w) for w in (60.0, 120.0)}
    at = {label: [ends[w][label] / ends[w]["ATR"] for w in ends] for label in (TWO, HALF, ALL)}
    held = [label for label, (short, long) in at.items() if short < 0.99 and long > 1.01]
    found = "; ".join(f"{label}: {a:.3g}, {b:.3g}" for label, (a, b) in at.items())
    says = "ATR ahead at W = 60, CTR at 120: CTR / ATR"
    holds: Verdict = "under reading" if held else "no"
    why = "; ".join(held) or "for no bound L, on streams that stand in for the paper's videos"
    return Claim(PAPER, "Fig. 7, 8", says, found, holds, why)


def routing_claim(f: DiffusionFigures, figure: str, window: float) -> Claim:
    """Fig. 9, 10: a tuple is routed in tens of microseconds (measured)."""
    median = f.routing[window].groupby("placement")["micros"].median()
    says = f"tens of microseconds for a tuple, median, W = {window:g} s (measured)"
    return report_claim(
        figure, says, format_values(median), median.max() < 100, "this machine was busy"
    )


def probe_check(f: DiffusionFigures, figure: str, window: float) -> Claim:
    """Fig. 9, 10: routing takes less than one join probe of 10 ms (measured)."""
    median = f.routing[window]["micros"].median()
    says = f"routing takes less than a join probe of 10 ms, W = {window:g} s (measured)"
    return required_claim(figure, says, f"{median:.0f} µs", median < 10_000)


def scale_claim(f: DiffusionFigures) -> Claim:
    """Fig. 11: throughput grows with the hosts."""
    first, last = f.throughput_by_hosts.iloc[0], f.throughput_by_hosts.iloc[-1]
    both = ["ATR", TWO, ROOT]
    holds = (last[both] > first[both]).all()
    found = format_values((last / first)[both])
    return report_claim(
        "11", "throughput grows with J: last / first", found, holds, "for some L only"
    )


def scale_check(f: DiffusionFigures) -> Claim:
    """Fig. 11: more hosts, more results under ATR."""
    by = f.throughput_by_hosts["ATR"]
    found = f"{by.iloc[0]:.3g} to {by.iloc[-1]:.3g} results/s"
    return required_claim("11", "more hosts, more results (ATR)", found, by.iloc[-1] > by.iloc[0])


def above_existing_schemes_claim(f: DiffusionFigures) -> Claim:
    """Fig. 11: ATR and CTR are above the existing schemes."""
    by = f.throughput_by_hosts
    worst = (by[["ATR", TWO, ROOT]].min(axis=1) / by[[UNAWARE, CENTRALIZED]].max(axis=1)).min()
    says = "both above the existing schemes: least ratio"
    return required_claim("11", says, f"{worst:.3g}", worst > 1)


def set_covers_claim(f: DiffusionFigures) -> Claim:
    """Fig. 11: covers by set cover beat random ones."""
    ratio = f.throughput_ratio("11, 12", TWO, UNOPTIMIZED)
    why = (
        "level, within the spread of the seeds, where hosts are many: with L = 2 copies a host "
        "then hardly ever has two of the segments that a tuple needs, so that a cover likely saves "
        "nothing"
    )
    says = "CTR above CTR-unoptimized: CTR / unoptimized by J"
    return report_claim("11", says, format_values(ratio), ratio.min() > 1, why)


def set_covers_check(f: DiffusionFigures) -> Claim:
    """Fig. 11, on few enough hosts for copies to share one: set covers beat random ones."""
    ratio = f.throughput_ratio("11, 12", TWO, UNOPTIMIZED).loc[
        lambda by_hosts: by_hosts.index <= MANY
    ]
    says = f"CTR above CTR-unoptimized on up to {MANY} hosts: CTR / unoptimized by J"
    return required_claim("11", says, format_values(ratio), ratio.min() > 1)


def optimized_claim(f: DiffusionFigures) -> Claim:
    """Fig. 11: ATR is above ATR-unoptimized, from the same first length T0."""
    ratio = f.throughput_ratio("11, 12", "ATR", "ATR-unoptimized")
    why = (
        "T0 = 1 s is the best length here, so that there is nothing to find; and Eq. 2 counts "
        "copies only: where the slave streams probe a fast master first, more intermediate results "
        "are made. From T0 = 5 s it holds"
    )
    says = "ATR above ATR-unoptimized: ATR / unoptimized by J"
    return report_claim("11", says, format_values(ratio), ratio.min() > 1.01, why)


def tuned_check(f: DiffusionFigures) -> Claim:
    """Fig. 11: the search finds a better length than a first one that is not the best."""
    by = seed_means(f.tuned)
    ratio = (by["ATR"] / by["ATR-unoptimized"]).loc[lambda by_start: by_start.index > 1]
    says = "from a first length that is not the best, ATR is above ATR-unoptimized, by T0"
    return required_claim("11", says, format_values(ratio), ratio.min() > 1.01)


def atr_sends_claim(f: DiffusionFigures) -> Claim:
    """Fig. 12: ATR sends less than ATR-unoptimized."""
    ratio = f.mbits_by_hosts["ATR"] / f.mbits_by_hosts["ATR-unoptimized"]
    says = "ATR sends less than unoptimized: ratio by J"
    why = "the first master is the best already, or the run too short for a switch"
    return report_claim("12", says, format_values(ratio), (ratio < 0.99).all(), why)


def ctr_sends_claim(f: DiffusionFigures) -> Claim:
    """Fig. 12: CTR sends less than CTR-unoptimized."""
    ratio = f.mbits_by_hosts[TWO] / f.mbits_by_hosts[UNOPTIMIZED]
    says = "CTR sends less than unoptimized: ratio by J"
    return report_claim(
        "12", says, format_values(ratio), (ratio < 1).all(), "level where hosts are many"
    )


def ctr_sends_check(f: DiffusionFigures) -> Claim:
    """Fig. 12, on few enough hosts for copies to share one: CTR sends less."""
    ratio = (f.mbits_by_hosts[TWO] / f.mbits_by_hosts[UNOPTIMIZED]).loc[
        lambda by_hosts: by_hosts.index <= MANY
    ]
    says = f"CTR sends less than unoptimized on up to {MANY} hosts: ratio by J"
    return required_claim("12", says, format_values(ratio), (ratio < 1).all())


def chvatal_check(f: DiffusionFigures) -> Claim:
    """Section 4.1: a greedy cover is within Chvatal's bound of the lightest."""
    far = (f.covers["ratio"] - f.covers["bound"]).max()
    found = f"greedy / exact at most {f.covers['ratio'].max():.3f}"
    says = "a greedy cover weighs at most H(d) times the lightest"
    return Claim(PAPER, "4.1", says, found, make_verdict(far <= 1e-9), is_required=True)


def bounded_check(f: DiffusionFigures) -> Claim:
    """Section 4.1, with a bound on copies: the greedy cover is the lightest."""
    worst = f.covers.loc[f.covers["copies"] != "none", "ratio"].max()
    says = "with a bound on copies the greedy cover is the lightest"
    return Claim(
        PAPER, "4.1", says, f"{worst:.3f}", make_verdict(worst < 1 + 1e-6), is_required=True
    )


def equation_claims(equations: pd.DataFrame) -> list[Claim]:
    """Eq. 2, 3 and 4 against counts (``plan_costs.check_equations``)."""
    both = equations.set_index("equation")
    near = abs(both["printed"] / both["counted"] - 1) <= 0.15
    rows = both[["printed", "counted"]].itertuples(index=False)
    found = [f"{printed:.0f} printed, {counted:.0f} counted a second" for printed, counted in rows]
    says, why = (
        ("Eq. 2 counts the copies that ATR makes", "Eq. 3 counts what CTR sends"),
        "a host of two hops in a row gets nothing by Eq. 3, but it has only its own share of the "
        "results so far (step 3 voids the rest): the others' have still to come",
    )
    return [
        Claim(PAPER, "Eq. 2", says[0], found[0], make_verdict(near["Eq. 2"]), is_required=True),
        Claim(PAPER, "Eq. 3, 4", says[1], found[1], make_verdict(near["Eq. 3, 4"]), why),
    ]


def diffusion_claims(f: DiffusionFigures) -> list[Claim]:
    """Return all claims, in the order of the figures."""
    ends = (("7", 60.0), ("8", 120.0))
    times = (("9", 60.0), ("10", 120.0))
    return [
        *(length_claim(f, n) for n in (2, 3)),
        too_long_check(f),
        *(more_results_claim(f, *end) for end in ends),
        *(
            complete_results_check(f, *end, rival)
            for end in ends
            for rival in (UNAWARE, CENTRALIZED)
        ),
        window_claim(f),
        *(claim(f, *at) for at in times for claim in (routing_claim, probe_check)),
        *(
            c(f)
            for c in (
                scale_claim,
                scale_check,
                above_existing_schemes_claim,
                set_covers_claim,
                set_covers_check,
            )
        ),
        optimized_claim(f),
        *(c(f) for c in (tuned_check, atr_sends_claim)),
        *(c(f) for c in (ctr_sends_claim, ctr_sends_check)),
        *atr_against_ctr_claims(f),
        chvatal_check(f),
        bounded_check(f),
    ]


def agreement_claims(both: pd.DataFrame, window: float) -> list[Claim]:
    """Agreement of a run on Spark with its model (``experiments.compare_with_model``).

    Counts differ by at most 10 %, and stored tuples by at most a batch more; the baseline loses
    results.
    """
    by = both.set_index(["placement", "count"])
    found = by["measured"].xs("results", level="count")
    near = [
        _make_ratio_claim(f"{name}: {what} as modelled", by.loc[(name, what), "ratio"], slack)
        for name in ("ATR-unoptimized", "CTR")
        for what, slack in (
            ("tuples sent to hosts", 0.1),
            ("replicas stored at the end", 0.1 + 1 / window),
        )
    ]
    return [*near, same_results_claim(found), lost_results_claim(found)]


def _make_ratio_claim(says: str, ratio: float, slack: float) -> Claim:
    holds = make_verdict(abs(ratio - 1) <= slack)
    return Claim(PAPER, "5", says, f"{ratio:.3f} times", holds, is_required=True)


def same_results_claim(found: pd.Series) -> Claim:
    """Section 3, 4: ATR and CTR lose nothing, so they find the same results (measured)."""
    holds = make_verdict(found["ATR-unoptimized"] == found["CTR"])
    text = f"ATR {found['ATR-unoptimized']:,}, CTR {found['CTR']:,} results"
    return Claim(PAPER, "3, 4", "ATR and CTR find the same", text, holds, is_required=True)


def lost_results_claim(found: pd.Series) -> Claim:
    """Section 1: semantics-unaware routing loses results (measured)."""
    text = f"{found[UNAWARE]:,} of {found['CTR']:,} results"
    holds = make_verdict(found[UNAWARE] < found["CTR"])
    return Claim(
        PAPER, "1", "semantics-unaware routing loses results", text, holds, is_required=True
    )
