"""The claims of Gu, Yu and Wang 2007, section 5, against the figures of ``studies.diffusion``.

Ahead means by more than 1 %; closer is even. Everything is modelled but for routing times and the
runs on Spark. Checked (``must``) are those claims that hold robustly, in part for a weaker reading:
those of Fig. 11, 13, 15 and 16 held for each of the five seeds of the paper's setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from braid.studies.claim import Claim, figures, verdict
from braid.studies.diffusion import means

PAPER = "Gu 2007"
HALF, ALL, UNOPTIMIZED = "CTR, L = J/2", "CTR, L = J", "CTR-unoptimized, L = J/2"
UNAWARE, CENTRALIZED = "Semantics-unaware", "Centralized"

EVEN = "even: no host has more to do than it can"
WHY = {
    HALF: "at L = J/2 every intermediate result is sent to two hosts and probes both",
    ALL: "any host will do as a cover, so intermediate results need not travel",
}
"""Why CTR with so many copies is behind, or ahead, where the paper has it the other way round."""


@dataclass(frozen=True)
class Figures:
    """The tidy frames that the claims are about.

    ``lengths`` of ``segment_length``; ``totals`` of ``total_results`` and ``routing`` of
    ``routing_time``, by W in seconds; ``outcomes`` of the other experiments by the paper's figure
    ("11, 12", "13", "14", "15", "16"); ``covers`` of ``cover_distance``.
    """

    lengths: pd.DataFrame
    totals: Mapping[float, pd.DataFrame]
    routing: Mapping[float, pd.DataFrame]
    outcomes: Mapping[str, pd.DataFrame]
    covers: pd.DataFrame

    def length(self, streams: int) -> pd.Series:
        """Fig. 4: mean throughput by T."""
        rows = self.lengths[self.lengths["streams"] == streams]
        return rows.groupby("x")["throughput"].mean()

    @cached_property
    def throughput(self) -> dict[str, pd.DataFrame]:
        """Results per second by x and placement."""
        return {number: means(outcome) for number, outcome in self.outcomes.items()}

    @cached_property
    def mbits(self) -> pd.DataFrame:
        """Fig. 12: Mbit/s to hosts by J and placement."""
        return means(self.outcomes["11, 12"], "mbits")

    def end(self, window: float) -> pd.Series:
        """Fig. 7, 8: results at the end, by placement."""
        return self.totals[window].groupby("placement", sort=False)["results"].last()

    def over(self, number: str, a: str, b: str) -> pd.Series:
        """Throughput of one placement over that of another, by x."""
        table = self.throughput[number]
        return (table[a] / table[b]).replace([np.inf, -np.inf], np.nan).dropna()


def _claim(figure: str, says: str, found: str, holds: object, why: str = "") -> Claim:
    """A claim that is told, with the likely reason when it does not hold."""
    return Claim(PAPER, f"Fig. {figure}", says, found, verdict(holds), "" if holds else why)


def _check(figure: str, says: str, found: str, holds: object) -> Claim:
    """A claim that must hold."""
    return Claim(PAPER, f"Fig. {figure}", says, found, verdict(holds), must=True)


def _reason(ratios: pd.Series, otherwise: str) -> str:
    """Why a comparison does not come out as in the paper."""
    return EVEN if bool((abs(ratios - 1) <= 0.01).all()) else otherwise


def length_claim(f: Figures, streams: int) -> Claim:
    """Fig. 4: throughput peaks at a length T* between the extremes."""
    by = f.length(streams)
    why = "its work is results, not copies: the shortest segments, which spread it best, win"
    says = f"throughput peaks at a length T* between extremes ({streams}-way): T / best"
    holds = by.index[0] < by.idxmax() < by.index[-1]
    return _claim("4", says, figures(by / by.max()), holds, why if streams > 2 else "")


def too_long_check(f: Figures) -> Claim:
    """Fig. 4: too long segments cost throughput (the two-way operator)."""
    by = f.length(2)
    says = "too long segments cost throughput (2-way): the longest / best"
    return _check("4", says, f"{by.iloc[-1] / by.max():.3g}", by.iloc[-1] < by.max())


def complete_claim(f: Figures, figure: str, window: float) -> Claim:
    """Fig. 7, 8: ATR and CTR have more results than the existing schemes."""
    end = f.end(window)
    rest = end.drop([UNAWARE, CENTRALIZED]).min()
    return _claim(
        figure,
        "ATR and CTR above semantics-unaware and centralized",
        figures(end),
        rest > max(end[UNAWARE], end[CENTRALIZED]),
        "one host keeps up with these rates",
    )


def above_check(f: Figures, figure: str, window: float, rival: str) -> Claim:
    """Fig. 7, 8: semantics-unaware routing loses results; six hosts do more than one."""
    end = f.end(window)
    least = end[["ATR", HALF, ALL]].min()
    found = f"{least:,.0f} results and more against {end[rival]:,.0f}"
    return _check(figure, f"ATR and CTR above {rival.lower()}", found, least > end[rival])


def window_claim(f: Figures, label: str) -> Claim:
    """Fig. 7, 8: ATR is ahead at W = 60, CTR at 120."""
    ends = {w: f.end(w) for w in (60.0, 120.0)}
    at = pd.Series({int(w): end[label] / end["ATR"] for w, end in ends.items()})
    holds = at[60] < 0.99 and at[120] > 1.01
    says = f"ATR ahead at W = 60, CTR at 120: {label} / ATR"
    return _claim("7, 8", says, figures(at), holds, _reason(at, WHY[label]))


def routing_claim(f: Figures, figure: str, window: float) -> Claim:
    """Fig. 9, 10: a segment is routed in tens of microseconds (measured)."""
    median = f.routing[window].groupby("placement")["micros"].median()
    says = f"tens of microseconds for a segment, median, W = {window:g} s (measured)"
    why = "a plan also copies and checks block facts, in Python"
    return _claim(figure, says, figures(median), median.max() < 100, why)


def probe_check(f: Figures, figure: str, window: float) -> Claim:
    """Fig. 9, 10: routing takes less than one join probe of 10 ms (measured)."""
    median = f.routing[window]["micros"].median()
    says = f"routing takes less than a join probe of 10 ms, W = {window:g} s (measured)"
    return _check(figure, says, f"{median:.0f} µs", median < 10_000)


def scale_claim(f: Figures) -> Claim:
    """Fig. 11: throughput grows with the hosts."""
    by = f.throughput["11, 12"]
    first, last = by.iloc[0], by.iloc[-1]
    holds = (last[["ATR", HALF]] > first[["ATR", HALF]]).all()
    return _claim("11", "throughput grows with J: last / first", figures(last / first), holds)


def scale_check(f: Figures) -> Claim:
    """Fig. 11: more hosts, more results under ATR."""
    by = f.throughput["11, 12"]["ATR"]
    found = f"{by.iloc[0]:.3g} to {by.iloc[-1]:.3g} results/s"
    return _check("11", "more hosts, more results (ATR)", found, by.iloc[-1] > by.iloc[0])


def existing_claim(f: Figures) -> Claim:
    """Fig. 11: ATR and CTR are above the existing schemes."""
    by = f.throughput["11, 12"]
    worst = (by[["ATR", HALF, ALL]].min(axis=1) / by[[UNAWARE, CENTRALIZED]].max(axis=1)).min()
    says = "both above the existing schemes: least ratio"
    return _check("11", says, f"{worst:.3g}", worst > 1)


def covers_claim(f: Figures) -> Claim:
    """Fig. 11: covers by set cover beat random ones."""
    ratio = f.over("11, 12", HALF, UNOPTIMIZED)
    says = "CTR above CTR-unoptimized: CTR / unoptimized by J"
    return _check("11", says, figures(ratio), ratio.min() > 1)


def optimized_claim(f: Figures) -> Claim:
    """Fig. 11: ATR is above ATR-unoptimized."""
    ratio = f.over("11, 12", "ATR", "ATR-unoptimized")
    why = (
        "Eq. 2 chooses the fastest stream as master: fewer copies, but more results on the host of "
        "one segment"
    )
    says = "ATR above ATR-unoptimized: ATR / unoptimized by J"
    return _claim("11", says, figures(ratio), ratio.min() > 1.01, why)


def atr_sends_claim(f: Figures) -> Claim:
    """Fig. 12: ATR sends less than ATR-unoptimized."""
    ratio = f.mbits["ATR"] / f.mbits["ATR-unoptimized"]
    says = "ATR sends less than unoptimized: ratio by J"
    return _claim("12", says, figures(ratio), (ratio <= 1).all(), "too short a run for a switch")


def ctr_sends_claim(f: Figures) -> Claim:
    """Fig. 12: CTR sends less than CTR-unoptimized."""
    ratio = f.mbits[HALF] / f.mbits[UNOPTIMIZED]
    says = "CTR sends less than unoptimized: ratio by J"
    return _check("12", says, figures(ratio), (ratio < 1).all())


def few_streams_claim(f: Figures, label: str) -> Claim:
    """Fig. 13: ATR is ahead for two and three streams."""
    few = f.over("13", label, "ATR").loc[lambda ratio: ratio.index <= 3]
    says = f"ATR ahead for 2 and 3 streams: {label} / ATR"
    return _claim("13", says, figures(few), (few < 0.99).all(), _reason(few, WHY[label]))


def many_streams_claim(f: Figures, label: str) -> Claim:
    """Fig. 13: CTR is ahead for more streams."""
    many = f.over("13", label, "ATR").loc[lambda ratio: ratio.index > 3]
    says = f"CTR ahead for more streams: {label} / ATR"
    return _claim("13", says, figures(many), (many > 1.01).all(), _reason(many, WHY[label]))


def most_streams_check(f: Figures) -> Claim:
    """Fig. 13: CTR is ahead for the most streams when any host will do."""
    last = f.over("13", ALL, "ATR").iloc[-1]
    says = f"CTR ahead for the most streams when any host will do: {ALL} / ATR"
    return _check("13", says, f"{last:.3g}", last > 1)


def sizes_claim(f: Figures, label: str) -> Claim:
    """Fig. 14: ATR is ahead for small windows, CTR for large ones."""
    by = f.over("14", label, "ATR")
    holds = by.iloc[0] < 0.99 and by.iloc[-1] > 1.01
    odd = by.iloc[:1] if by.iloc[-1] > 1.01 else by.iloc[-1:]
    says = f"ATR ahead for small windows, CTR for large: {label} / ATR"
    return _claim("14", says, figures(by), holds, _reason(odd, WHY[label]))


def selectivity_claim(f: Figures, label: str) -> Claim:
    """Fig. 15: CTR is ahead at low selectivity, ATR at high."""
    by = f.over("15", label, "ATR")
    holds = by.iloc[0] > 1.01 and by.iloc[-1] < 0.99
    odd = by.iloc[:1] if by.iloc[-1] < 0.99 else by.iloc[-1:]
    says = f"CTR ahead at low selectivity, ATR at high: {label} / ATR"
    return _claim("15", says, figures(by), holds, _reason(odd, WHY[label]))


def gains_check(f: Figures) -> Claim:
    """Fig. 15: ATR gains on CTR as the selectivity grows."""
    by = f.over("15", HALF, "ATR")
    found = f"{HALF} / ATR from {by.iloc[0]:.3g} to {by.iloc[-1]:.3g}"
    return _check("15", "ATR gains on CTR as σ grows", found, by.iloc[-1] < by.iloc[0])


def bursts_claim(f: Figures, label: str) -> Claim:
    """Fig. 16: CTR is ahead under bursts."""
    by = f.over("16", label, "ATR")
    says = f"CTR ahead under bursts: {label} / ATR"
    why = _reason(by.iloc[-1:], WHY[label])
    return _claim("16", says, figures(by), by.iloc[-1] > 1.01, why)


def full_bursts_check(f: Figures) -> Claim:
    """Fig. 16: CTR is ahead under full bursts when any host will do."""
    last = f.over("16", ALL, "ATR").iloc[-1]
    says = f"CTR ahead under full bursts when any host will do: {ALL} / ATR"
    return _check("16", says, f"{last:.3g}", last > 1)


def chvatal_check(f: Figures) -> Claim:
    """Section 4.1: a greedy cover is within Chvatal's bound of the lightest."""
    far = (f.covers["ratio"] - f.covers["bound"]).max()
    found = f"greedy / exact at most {f.covers['ratio'].max():.3f}"
    says = "a greedy cover weighs at most H(d) times the lightest"
    return Claim(PAPER, "4.1", says, found, verdict(far <= 1e-9), must=True)


def bounded_check(f: Figures) -> Claim:
    """Section 4.1, with a bound on copies: the greedy cover is the lightest."""
    worst = f.covers.loc[f.covers["copies"] != "none", "ratio"].max()
    says = "with a bound on copies the greedy cover is the lightest"
    return Claim(PAPER, "4.1", says, f"{worst:.3f}", verdict(worst < 1 + 1e-6), must=True)


def claims(f: Figures) -> list[Claim]:
    """All of them, in the order of the figures."""
    ends = (("7", 60.0), ("8", 120.0))
    times = (("9", 60.0), ("10", 120.0))
    both = (HALF, ALL)
    return [
        *(length_claim(f, n) for n in (2, 3)),
        too_long_check(f),
        *(complete_claim(f, *end) for end in ends),
        *(above_check(f, *end, rival) for end in ends for rival in (UNAWARE, CENTRALIZED)),
        *(window_claim(f, label) for label in both),
        *(claim(f, *at) for at in times for claim in (routing_claim, probe_check)),
        *(c(f) for c in (scale_claim, scale_check, existing_claim, covers_claim, optimized_claim)),
        *(c(f) for c in (atr_sends_claim, ctr_sends_claim)),
        *(c(f, label) for label in both for c in (few_streams_claim, many_streams_claim)),
        most_streams_check(f),
        *(sizes_claim(f, label) for label in both),
        *(selectivity_claim(f, label) for label in both),
        gains_check(f),
        *(bursts_claim(f, label) for label in both),
        full_bursts_check(f),
        chvatal_check(f),
        bounded_check(f),
    ]


def agreement_claims(both: pd.DataFrame, window: float) -> list[Claim]:
    """A run on Spark beside its model (``diffusion.agreement``): the model counts what Spark does,
    within 10 %, and what is stored within a batch more; the baseline loses results.
    """
    by = both.set_index(["placement", "count"])
    found = by["measured"].xs("results", level="count")
    near = [
        _near(f"{name}: {what} as modelled", by.loc[(name, what), "ratio"], slack)
        for name in ("ATR-unoptimized", "CTR")
        for what, slack in (
            ("tuples sent to hosts", 0.1),
            ("replicas stored at the end", 0.1 + 1 / window),
        )
    ]
    return [*near, same_claim(found), loses_claim(found)]


def _near(says: str, ratio: float, slack: float) -> Claim:
    holds = verdict(abs(ratio - 1) <= slack)
    return Claim(PAPER, "5", says, f"{ratio:.3f} times", holds, must=True)


def same_claim(found: pd.Series) -> Claim:
    """Section 3, 4: ATR and CTR lose nothing, so they find the same (measured)."""
    holds = verdict(found["ATR-unoptimized"] == found["CTR"])
    text = f"ATR {found['ATR-unoptimized']:,}, CTR {found['CTR']:,} results"
    return Claim(PAPER, "3, 4", "ATR and CTR find the same", text, holds, must=True)


def loses_claim(found: pd.Series) -> Claim:
    """Section 1: semantics-unaware routing loses results (measured)."""
    text = f"{found[UNAWARE]:,} of {found['CTR']:,} results"
    holds = verdict(found[UNAWARE] < found["CTR"])
    return Claim(PAPER, "1", "semantics-unaware routing loses results", text, holds, must=True)
