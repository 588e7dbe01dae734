"""The claims of Gu, Yu and Wang 2007, section 5, against the figures of ``diffusion_figures``.

Ahead means by more than 1 %; closer is even. Everything is modelled but for routing times and the
runs on Spark. What the paper leaves open decides some of them: L, the bound on copies under CTR,
and what a probe costs. Such a claim names the readings under which it holds. Checked (``must``) are
those that hold robustly; each is broken by a fault in the policies (tests/mutations).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from braid.studies.claim import Claim, Verdict, figures, verdict
from braid.studies.diffusion import ALIGNED_OR_COORDINATED, READINGS, SCANNED, means

PAPER = "Gu 2007"
TWO, ROOT, HALF, ALL = (name for name in ALIGNED_OR_COORDINATED if name != "ATR")
UNOPTIMIZED = "CTR-unoptimized, L = 2"
UNAWARE, CENTRALIZED = "Semantics-unaware", "Centralized"

EVEN = "even: no host has more to do than it can"
NONE = "for no bound L on copies and neither reading of what a probe costs"


@dataclass(frozen=True)
class Figures:
    """The tidy frames that the claims are about.

    ``lengths`` of ``segment_length``; ``totals`` of ``total_results`` and ``routing`` of
    ``routing_time``, by W in seconds; ``outcomes`` of the other experiments by the paper's figure
    ("11, 12", "13", "14", "15", "16"); ``covers`` of ``cover_distance``; ``tuned`` of ``tuning``.
    """

    lengths: pd.DataFrame
    totals: Mapping[float, pd.DataFrame]
    routing: Mapping[float, pd.DataFrame]
    outcomes: Mapping[str, pd.DataFrame]
    covers: pd.DataFrame
    tuned: pd.DataFrame

    def length(self, streams: int) -> pd.Series:
        """Fig. 4: mean throughput by T."""
        rows = self.lengths[self.lengths["streams"] == streams]
        return rows.groupby("x")["throughput"].mean()

    @cached_property
    def throughput(self) -> pd.DataFrame:
        """Fig. 11: results per second by J and placement."""
        return means(self.outcomes["11, 12"])

    @cached_property
    def mbits(self) -> pd.DataFrame:
        """Fig. 12: Mbit/s to hosts by J and placement."""
        return means(self.outcomes["11, 12"], "mbits")

    def end(self, window: float) -> pd.Series:
        """Fig. 7, 8: results at the end, by placement."""
        return self.totals[window].groupby("placement", sort=False)["results"].last()

    def over(self, number: str, a: str, b: str, reading: str | None = None) -> pd.Series:
        """Throughput of one placement over that of another, by x; under one reading of what a probe
        costs, where there are several.
        """
        outcomes = self.outcomes[number]
        table = means(outcomes if reading is None else outcomes[outcomes["reading"] == reading])
        return (table[a] / table[b]).replace([np.inf, -np.inf], np.nan).dropna()

    def readings(self, number: str) -> dict[str, pd.Series]:
        """CTR over ATR by x, for each bound L and reading of what a probe costs."""
        return {
            f"{label.removeprefix('CTR, ')}, {reading}": self.over(number, label, "ATR", reading)
            for reading in READINGS
            for label in (TWO, ROOT, HALF, ALL)
        }


def _claim(figure: str, says: str, found: str, holds: object, why: str = "") -> Claim:
    """A claim that is told, with the likely reason when it does not hold."""
    return Claim(PAPER, f"Fig. {figure}", says, found, verdict(holds), "" if holds else why)


def _check(figure: str, says: str, found: str, holds: object) -> Claim:
    """A claim that must hold."""
    return Claim(PAPER, f"Fig. {figure}", says, found, verdict(holds), must=True)


Shape = Callable[[pd.Series], object]
"""Whether CTR over ATR, by x, has the shape that a claim speaks of."""


def _under(f: Figures, figure: str, says: str, shape: Shape) -> Claim:
    """A claim on CTR against ATR: it holds, or holds under some readings, which are named."""
    ratios = f.readings(figure)
    held = [name for name, by in ratios.items() if shape(by)]
    told = held or list(ratios)
    ends = (f"{n}: {ratios[n].iloc[0]:.3g} to {ratios[n].iloc[-1]:.3g}" for n in told)
    holds: Verdict = "yes" if len(held) == len(ratios) else "under reading" if held else "no"
    even = all(bool((abs(by - 1) <= 0.01).all()) for by in ratios.values())
    why = "" if holds == "yes" else "; ".join(held) if held else EVEN if even else NONE
    return Claim(PAPER, f"Fig. {figure}", f"{says}: CTR / ATR", "; ".join(ends), holds, why)


def length_claim(f: Figures, streams: int) -> Claim:
    """Fig. 4: throughput peaks at a length T* between the extremes."""
    by = f.length(streams)
    why = (
        "its work is results, of which ten seconds may wait: the shortest segments, which spread "
        "it best, win"
        if streams > 2
        else ""
    )
    says = f"throughput peaks at a length T* between extremes ({streams}-way): T / best"
    holds = by.index[0] < by.idxmax() < by.index[-1]
    return _claim("4", says, figures(by / by.max()), holds, why)


def too_long_check(f: Figures) -> Claim:
    """Fig. 4: too long segments cost throughput (the two-way operator)."""
    by = f.length(2)
    says = "too long segments cost throughput (2-way): the longest / best"
    return _check("4", says, f"{by.iloc[-1] / by.max():.3g}", by.iloc[-1] < by.max())


def complete_claim(f: Figures, figure: str, window: float) -> Claim:
    """Fig. 7, 8: ATR and CTR have more results than the existing schemes."""
    end = f.end(window)
    rest = end[["ATR", HALF, ALL]].min()
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


def window_claim(f: Figures) -> Claim:
    """Fig. 7, 8: ATR is ahead at W = 60, CTR at 120."""
    ends = {w: f.end(w) for w in (60.0, 120.0)}
    at = {label: [ends[w][label] / ends[w]["ATR"] for w in ends] for label in (TWO, HALF, ALL)}
    held = [label for label, (short, long) in at.items() if short < 0.99 and long > 1.01]
    found = "; ".join(f"{label}: {a:.3g}, {b:.3g}" for label, (a, b) in at.items())
    says = "ATR ahead at W = 60, CTR at 120: CTR / ATR"
    holds: Verdict = "under reading" if held else "no"
    why = "; ".join(held) or "for no bound L, on streams that stand in for the paper's videos"
    return Claim(PAPER, "Fig. 7, 8", says, found, holds, why)


def routing_claim(f: Figures, figure: str, window: float) -> Claim:
    """Fig. 9, 10: a tuple is routed in tens of microseconds (measured)."""
    median = f.routing[window].groupby("placement")["micros"].median()
    says = f"tens of microseconds for a tuple, median, W = {window:g} s (measured)"
    return _claim(figure, says, figures(median), median.max() < 100, "this machine was busy")


def probe_check(f: Figures, figure: str, window: float) -> Claim:
    """Fig. 9, 10: routing takes less than one join probe of 10 ms (measured)."""
    median = f.routing[window]["micros"].median()
    says = f"routing takes less than a join probe of 10 ms, W = {window:g} s (measured)"
    return _check(figure, says, f"{median:.0f} µs", median < 10_000)


def scale_claim(f: Figures) -> Claim:
    """Fig. 11: throughput grows with the hosts."""
    first, last = f.throughput.iloc[0], f.throughput.iloc[-1]
    both = ["ATR", TWO, ROOT]
    holds = (last[both] > first[both]).all()
    found = figures((last / first)[both])
    return _claim("11", "throughput grows with J: last / first", found, holds, "for some L only")


def scale_check(f: Figures) -> Claim:
    """Fig. 11: more hosts, more results under ATR."""
    by = f.throughput["ATR"]
    found = f"{by.iloc[0]:.3g} to {by.iloc[-1]:.3g} results/s"
    return _check("11", "more hosts, more results (ATR)", found, by.iloc[-1] > by.iloc[0])


def existing_claim(f: Figures) -> Claim:
    """Fig. 11: ATR and CTR are above the existing schemes."""
    by = f.throughput
    worst = (by[["ATR", TWO, ROOT]].min(axis=1) / by[[UNAWARE, CENTRALIZED]].max(axis=1)).min()
    says = "both above the existing schemes: least ratio"
    return _check("11", says, f"{worst:.3g}", worst > 1)


def covers_claim(f: Figures) -> Claim:
    """Fig. 11: covers by set cover beat random ones."""
    ratio = f.over("11, 12", TWO, UNOPTIMIZED)
    says = "CTR above CTR-unoptimized: CTR / unoptimized by J"
    return _check("11", says, figures(ratio), ratio.min() > 1)


def optimized_claim(f: Figures) -> Claim:
    """Fig. 11: ATR is above ATR-unoptimized, from the same first length T0."""
    ratio = f.over("11, 12", "ATR", "ATR-unoptimized")
    why = (
        "T0 = 1 s is the best length here, so that there is nothing to find; and Eq. 2 counts "
        "copies only: where the slave streams probe a fast master first, more intermediate results "
        "are made. From T0 = 5 s it holds"
    )
    says = "ATR above ATR-unoptimized: ATR / unoptimized by J"
    return _claim("11", says, figures(ratio), ratio.min() > 1.01, why)


def tuned_check(f: Figures) -> Claim:
    """Fig. 11: the search finds a better length than a first one that is not the best."""
    by = means(f.tuned)
    ratio = (by["ATR"] / by["ATR-unoptimized"]).loc[lambda by_start: by_start.index > 1]
    says = "from a first length that is not the best, ATR is above ATR-unoptimized, by T0"
    return _check("11", says, figures(ratio), ratio.min() > 1.01)


def atr_sends_claim(f: Figures) -> Claim:
    """Fig. 12: ATR sends less than ATR-unoptimized."""
    ratio = f.mbits["ATR"] / f.mbits["ATR-unoptimized"]
    says = "ATR sends less than unoptimized: ratio by J"
    why = "the first master is the best already, or the run too short for a switch"
    return _claim("12", says, figures(ratio), (ratio < 0.99).all(), why)


def ctr_sends_claim(f: Figures) -> Claim:
    """Fig. 12: CTR sends less than CTR-unoptimized."""
    ratio = f.mbits[TWO] / f.mbits[UNOPTIMIZED]
    says = "CTR sends less than unoptimized: ratio by J"
    return _check("12", says, figures(ratio), (ratio < 1).all())


def few_streams_claim(f: Figures) -> Claim:
    """Fig. 13: ATR is ahead for two and three streams."""
    says = "ATR ahead for 3 streams, and not behind for 2"
    return _under(f, "13", says, lambda by: by.iloc[0] <= 1.01 and _few(by) < 0.99)


def _few(by: pd.Series) -> float:
    """CTR over ATR for three streams, or the fewest that were tried."""
    return float(by[3] if 3 in by.index else by.iloc[0])


def many_streams_claim(f: Figures) -> Claim:
    """Fig. 13: CTR is ahead for more streams."""
    return _under(f, "13", "CTR ahead for the most streams", lambda by: by.iloc[-1] > 1.01)


def streams_claim(f: Figures) -> Claim:
    """Fig. 13: both at once."""
    says = "ATR ahead for 3 streams, CTR for the most"
    return _under(f, "13", says, lambda by: _few(by) < 0.99 and by.iloc[-1] > 1.01)


def streams_check(f: Figures) -> Claim:
    """Fig. 13: CTR gains on ATR from three streams to the most, whatever a probe costs, where any
    host will do.
    """
    by = {n: r for n, r in f.readings("13").items() if n.startswith("L = J,")}
    found = "; ".join(f"{n}: {_few(r):.3g} to {r.iloc[-1]:.3g}" for n, r in by.items())
    holds = all(r.iloc[-1] > _few(r) for r in by.values())
    return _check("13", "CTR gains on ATR from 3 streams to the most", found, holds)


def sizes_claims(f: Figures) -> list[Claim]:
    """Fig. 14: ATR is ahead for small windows, CTR for large ones."""
    return [
        _under(f, "14", "ATR ahead for small windows", lambda by: by.iloc[0] < 0.99),
        _under(f, "14", "CTR ahead for large windows", lambda by: by.iloc[-1] > 1.01),
        _under(
            f,
            "14",
            "ATR ahead for small windows, CTR for large",
            lambda by: by.iloc[0] < 0.99 and by.iloc[-1] > 1.01,
        ),
    ]


def selectivity_claims(f: Figures) -> list[Claim]:
    """Fig. 15: CTR is ahead at low selectivity, ATR at high."""
    return [
        _under(f, "15", "CTR ahead at low selectivity", lambda by: by.iloc[0] > 1.01),
        _under(f, "15", "ATR ahead at high selectivity", lambda by: by.iloc[-1] < 0.99),
        _under(
            f,
            "15",
            "CTR ahead at low selectivity, ATR at high",
            lambda by: by.iloc[0] > 1.01 and by.iloc[-1] < 0.99,
        ),
    ]


def gains_check(f: Figures) -> Claim:
    """Fig. 15: ATR gains on CTR as the selectivity grows, with L = J/2 and either reading."""
    by = {n: r for n, r in f.readings("15").items() if n.startswith("L = J/2")}
    found = "; ".join(f"{n}: {r.iloc[0]:.3g} to {r.iloc[-1]:.3g}" for n, r in by.items())
    holds = all(r.iloc[-1] < r.iloc[0] for r in by.values())
    return _check("15", "ATR gains on CTR as σ grows", found, holds)


def bursts_claim(f: Figures) -> Claim:
    """Fig. 16: CTR is ahead under bursts."""
    return _under(f, "16", "CTR ahead under bursts", lambda by: by.iloc[-1] > 1.01)


def bursts_check(f: Figures) -> Claim:
    """Fig. 16: CTR gains on ATR as the streams burst more, with L = J/2 and a probe per tuples
    scanned; with the other reading in long runs alone.
    """
    ratios = {n: r for n, r in f.readings("16").items() if n == f"L = J/2, {SCANNED}"}
    by = {n: (r.iloc[0], r.iloc[-1]) for n, r in ratios.items()}
    found = "; ".join(f"{n}: {first:.3g} to {last:.3g}" for n, (first, last) in by.items())
    holds = all(last > first for first, last in by.values())
    return _check("16", "CTR gains on ATR as θ grows", found, holds)


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


def equation_claims(equations: pd.DataFrame) -> list[Claim]:
    """Eq. 2, 3 and 4 against what is counted (``diffusion_plans.equations``)."""
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
        Claim(PAPER, "Eq. 2", says[0], found[0], verdict(near["Eq. 2"]), must=True),
        Claim(PAPER, "Eq. 3, 4", says[1], found[1], verdict(near["Eq. 3, 4"]), why),
    ]


def claims(f: Figures) -> list[Claim]:
    """All of them, in the order of the figures."""
    ends = (("7", 60.0), ("8", 120.0))
    times = (("9", 60.0), ("10", 120.0))
    return [
        *(length_claim(f, n) for n in (2, 3)),
        too_long_check(f),
        *(complete_claim(f, *end) for end in ends),
        *(above_check(f, *end, rival) for end in ends for rival in (UNAWARE, CENTRALIZED)),
        window_claim(f),
        *(claim(f, *at) for at in times for claim in (routing_claim, probe_check)),
        *(c(f) for c in (scale_claim, scale_check, existing_claim, covers_claim, optimized_claim)),
        *(c(f) for c in (tuned_check, atr_sends_claim, ctr_sends_claim)),
        *(c(f) for c in (few_streams_claim, many_streams_claim, streams_claim, streams_check)),
        *sizes_claims(f),
        *selectivity_claims(f),
        gains_check(f),
        bursts_claim(f),
        bursts_check(f),
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
