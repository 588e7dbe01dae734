"""The claims of Wang 2008, Fig. 16.2 to 16.5, against ``scheme_comparison.compare_schemes``.

Rings, ATR and CTR are compared. All is counted on the policies and priced, so modelled. Claims that
hold are required; ``tests/mutations`` has the faults that break them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from braid_lab.common.claims import (
    ClaimRegistry,
    Finding,
    format_values,
    judge,
    judge_reading,
    leave_untested,
)
from braid_lab.psp.experiments import HOPS, JOINS, to_milliseconds
from braid_lab.psp.scheme_comparison import (
    HALF,
    LONG,
    PAIR,
    RINGS,
    SHORT,
    add_response_times,
    lead_over_rivals,
)
from braid_lab.psp.simulated_hosts import wang_cost_parameters

STREAMS = "{streams} streams of {rate} tuples/s, W = {window} s"
"""The template of what is joined."""
RUN = "{seconds} s of the {printed_seconds} printed, seeds {seed}"
"""The template of how long and how often it is."""
_PRICED, _HOPS = ", {join:count} costs of a pair", ", T_n of {hop_ms:range} ms"
_ATR, _CTR = "ATR (T = W and {long_segment} W)", "CTR ({copies} copies, and half of N)"
_RINGS = "PSP, PSP-D, PSP-I"
_PRICES = _PRICED + _HOPS


def _describe_schemes(schemes: str, costs: str = "") -> str:
    """Return the template of the setting of schemes on several lengths."""
    return f"{schemes}; {{nodes}} nodes, {STREAMS}, σ = {{sigma}}{costs}; {RUN}"


CLAIMS = ClaimRegistry("Wang 2008, II")


def add_hops(finding: Finding, hops: Sequence[float] = HOPS) -> Finding:
    """Return a finding on these T_n (seconds), with them among its values."""
    return replace(finding, ran={**finding.ran, "hop_ms": to_milliseconds(hops)})


@dataclass(frozen=True)
class Contest:
    """A comparison of schemes, averaged over its seeds.

    Frames have rows by streams, sigma, join and nodes, and a column for each scheme.
    """

    runs: pd.DataFrame

    def _pivot_by_scheme(self, runs: pd.DataFrame, value: str, *by: str) -> pd.DataFrame:
        keys = [*by, *self.varied_settings, "nodes"]
        mean = runs.groupby([*keys, "scheme"])[f"{value}_modelled"].mean()
        return mean.unstack("scheme")

    @cached_property
    def live_tuples(self) -> pd.DataFrame:
        """Live tuples, with their copies."""
        return self._pivot_by_scheme(self.runs, "stored")

    @cached_property
    def busiest_seconds(self) -> pd.DataFrame:
        """Seconds of the busiest node for one tuple."""
        return self._pivot_by_scheme(self.runs, "busy")

    @cached_property
    def response_seconds(self) -> pd.DataFrame:
        """Seconds of response, at each of HOPS."""
        return self._pivot_by_scheme(add_response_times(self.runs, HOPS), "response", "hop")

    @cached_property
    def hop_counts(self) -> pd.DataFrame:
        """Hops of a tuple, of any join."""
        return self._pivot_by_scheme(self.runs, "hops").xs("small", level="join")

    @property
    def varied_settings(self) -> list[str]:
        """The varied settings, without the nodes."""
        return ["streams", "sigma", "join"]

    @property
    def least_streams(self) -> int:
        """The least number of streams."""
        return int(self.runs["streams"].min())

    @property
    def min_nodes(self) -> int:
        """The least number of nodes."""
        return int(self.runs["nodes"].min())

    @property
    def max_nodes(self) -> int:
        """The largest number of nodes."""
        return int(self.runs["nodes"].max())

    def measure_flatness(self, scheme: str) -> tuple[bool, float, float]:
        """Return whether a scheme's state varies by less than 15 %, its least and its most."""
        by = self.live_tuples[scheme].groupby(self.varied_settings)
        low, high = self.live_tuples[scheme].min(), self.live_tuples[scheme].max()
        return bool((by.max() <= 1.15 * by.min()).all()), float(low), float(high)


CHEAP = 0.1
"""The share of our cost of a pair at which prices are varied."""
SEND_PAIRS = [2e3 * wang_cost_parameters(us).transfer_ms / us for us in JOINS.values()]
"""Pairs that cost as much as a send and a receipt, by join."""
AS_PRICED = f"where a send costs {min(SEND_PAIRS):g} to {max(SEND_PAIRS):g} pairs"
AS_CHEAP = f"where it costs {max(SEND_PAIRS) / CHEAP:g}"
EVEN = 1.35
"""The busiest node over the mean, below which nodes count as doing about the same."""


def with_cheap_pairs(seconds: pd.DataFrame) -> pd.DataFrame:
    """Return the busiest nodes' seconds of the small join with pairs at CHEAP of our cost.

    They are on the line through the small and the middle join, whose pairs cost twice as much.
    """
    small, middle = (seconds.xs(join, level="join") for join in ("small", "middle"))
    return small - (1 - CHEAP) * (middle - small)


@CLAIMS.claim(
    "Fig. 16.2",
    "State of PSP is flat in N",
    is_required=True,
    setting=_describe_schemes("PSP and PSP-D, counted"),
)
def one_copy_claim(r: Contest) -> Finding:
    """Fig. 16.2 (b), (d), (f): the state of PSP is flat in N, with one copy of each tuple."""
    flat = {ring: r.measure_flatness(ring) for ring in ("PSP", "PSP-D")}
    _, low, high = flat["PSP-D"]
    result = f"{low:,.0f} to {high:,.0f} tuples over all settings"
    return judge(result, all(is_flat for is_flat, _, _ in flat.values()))


@CLAIMS.claim(
    "Fig. 16.3",
    "PSP-I holds more state than PSP",
    is_required=True,
    setting=_describe_schemes("PSP and PSP-I, counted"),
)
def late_purge_claim(r: Contest) -> Finding:
    """Fig. 16.3: PSP-I holds more state than PSP: blocks that are purged late are on two nodes."""
    more = r.live_tuples["PSP-I"] / r.live_tuples["PSP"] - 1
    result = f"{more.min():.0%} to {more.max():.0%} more"
    return judge(result, more.min() > 0)


@CLAIMS.claim(
    "15.1",
    "ATR (T = W) and CTR store tuples more than once, CTR as often as it makes copies",
    is_required=True,
    setting=_describe_schemes(f"PSP-D, ATR (T = W) and {_CTR}, counted"),
)
def copies_claim(r: Contest) -> Finding:
    """Section 15.1: ATR and CTR store more than a ring does, which has one copy of each tuple."""
    ratio = r.live_tuples[[SHORT, PAIR, HALF]].div(r.live_tuples["PSP-D"], axis=0)
    copies = (ratio[HALF] / (ratio.index.get_level_values("nodes") // 2)).to_numpy()
    each = ", ".join(f"{k} {x.min():.2f} to {x.max():.2f}" for k, x in ratio.items())
    as_many = abs(ratio[PAIR] / 2 - 1).max() < 0.15 and abs(copies - 1).max() < 0.15
    more = ratio.min(axis=None) > 1.1
    return judge(f"times PSP-D: {each}", more and as_many)


@CLAIMS.claim(
    "Fig. 16.5",
    "State of CTR is flat in N for a fixed number of copies, and grows with the copies",
    is_required=True,
    setting=_describe_schemes(f"{_CTR}, counted"),
)
def ctr_state_claim(r: Contest) -> Finding:
    """Fig. 16.5 (b), (d): the state of CTR is flat in N for fixed copies, and grows with copies."""
    flat, low, high = r.measure_flatness(PAIR)
    last = r.live_tuples.xs(r.max_nodes, level="nodes")
    grows = r.max_nodes <= 4 or (last[HALF] > 1.2 * last[PAIR]).all()
    result = f"2 copies {low:,.0f} to {high:,.0f}, N/2 up to {last[HALF].max():,.0f} tuples"
    return judge(result, flat and grows)


@CLAIMS.claim(
    "Fig. 16.4",
    "Response time of ATR does not fall with N",
    is_required=True,
    setting=_describe_schemes(f"{_ATR}, counted and priced", _PRICES),
)
def atr_response_claim(r: Contest) -> Finding:
    """Fig. 16.4 (a), (c): the response time of ATR does not fall with N.

    One host does all the work.
    """
    by = r.response_seconds[[SHORT, LONG]].groupby(["hop", *r.varied_settings])
    low = (by.min() / by.max()).min(axis=None)
    result = f"within {1 - low:.0%} in every setting"
    return add_hops(judge(result, (r.max_nodes == r.min_nodes) or low > 0.9))


@CLAIMS.claim(
    "Fig. 16.5",
    "Response time of CTR falls with N",
    is_required=True,
    setting=_describe_schemes("CTR ({copies} copies), counted and priced", _PRICES),
)
def ctr_response_claim(r: Contest) -> Finding:
    """Fig. 16.5 (a), (c): the response time of CTR with a fixed number of copies falls with N."""
    if r.max_nodes == r.min_nodes:
        return add_hops(leave_untested("one length only"))
    by = r.response_seconds[PAIR].unstack("nodes").sort_index(axis=1)
    ratio = by[r.max_nodes] / by[r.min_nodes]
    result = (
        f"at {r.max_nodes} nodes {ratio.min():.2f} to {ratio.max():.2f} times that at {r.min_nodes}"
    )
    return add_hops(judge(result, (by.diff(axis=1).iloc[:, 1:] < 0).all(axis=None)))


@CLAIMS.claim(
    "Fig. 16.5",
    "More copies mean a longer response time",
    setting=_describe_schemes(f"{_CTR}, counted and priced", _PRICES),
)
def ctr_copies_claim(r: Contest) -> Finding:
    """Fig. 16.5: more copies mean a longer response time."""
    wide = r.response_seconds[r.response_seconds.index.get_level_values("nodes") > 4]
    if wide.empty:
        return add_hops(leave_untested("no length above 4"))
    slower = wide[HALF] > wide[PAIR]
    result = f"slower with N/2 copies than with 2 at {slower.sum()} of {len(slower)} points"
    cheap = with_cheap_pairs(r.busiest_seconds).query("nodes > 4")
    few = (cheap[HALF] > cheap[PAIR]).sum()
    reading = (
        f"{AS_PRICED}; {AS_CHEAP}, at {few} of {len(cheap)} points: "
        "few copies mean wide covers, and more of them send fewer intermediate results"
    )
    return add_hops(judge_reading(result, slower.all(), reading))


@CLAIMS.claim(
    "15.1",
    "A tuple takes the busiest node of PSP less time than that of ATR or CTR",
    is_required=True,
    setting=_describe_schemes(f"{_RINGS}, {_ATR} and {_CTR}, counted and priced", _PRICED),
)
def less_work_claim(r: Contest) -> Finding:
    """Section 15.1: the latency of PSP is expected to be the lowest, as most nodes work on a tuple.

    Without hops, which section 16.4 has.
    """

    def compare(seconds: pd.DataFrame) -> pd.Series:
        rivals = seconds[[SHORT, LONG, PAIR, HALF]].min(axis=1)
        return seconds[["PSP", "PSP-I", "PSP-D"]].rdiv(rivals, axis=0).min()

    took = r.busiest_seconds
    ratio, cheap = compare(took), compare(with_cheap_pairs(took))
    late = (took["PSP-I"] / took[[PAIR, HALF]].min(axis=1)).rename("late")
    streams, sigma, join, nodes = late.idxmax()
    result = f"their time in PSP's, the least of every setting: {format_values(ratio)}"
    reading = (
        f"PSP and PSP-D, {AS_PRICED}: {AS_CHEAP}, CTR takes "
        f"{cheap['PSP-D']:.2f} of PSP-D's time. PSP-I, which compares what it has purged late, "
        f"takes {late.max():.2f} times as long as CTR with {streams} streams, {nodes} nodes, σ = "
        f"{sigma:g} and the {join} join"
    )
    return judge_reading(result, ratio["PSP"] > 1 and ratio["PSP-D"] > 1, reading)


@CLAIMS.claim(
    "13.4",
    "The dominant cost of a node is that of probing",
    is_required=True,
    setting=_describe_schemes("PSP, PSP-D and PSP-I, counted and priced", _PRICED),
)
def probing_claim(r: Contest) -> Finding:
    """Section 13.4: the dominant CPU cost for each node is the join probing cost."""
    rings = r.busiest_seconds[list(RINGS)]
    joins = "small", "middle"
    small, middle = (rings.xs(join, level="join") for join in joins)
    ratio = ((middle - small) / (2 * small - middle)).min(axis=1).groupby("nodes").min()
    reading = (
        f"where a send costs less than {20 * ratio.iloc[-1]:.0f} pairs on "
        f"{r.max_nodes} nodes, {20 * ratio.iloc[0]:.0f} on {r.min_nodes}; the small join has "
        f"{max(SEND_PAIRS):g}. The book prints neither cost"
    )
    result = f"probing over sending on the busiest node, small join, by N: {format_values(ratio)}"
    finding = judge_reading(result, ratio.min() > 1, reading)
    return replace(finding, ran={"join": joins})


@CLAIMS.claim(
    "13.4",
    "The nodes of a ring do about the same",
    is_required=True,
    setting=_describe_schemes("PSP, PSP-D and PSP-I, counted and priced", _PRICED),
)
def balanced_work_claim(r: Contest) -> Finding:
    """Section 13.4: state is balanced, so nodes do about the same work, in all forms."""
    rings = r.runs[r.runs["scheme"].isin(RINGS)]
    most = rings.groupby("scheme")["uneven_modelled"].max()
    result = ", ".join(f"{k} {x:.2f}" for k, x in most.items())
    reading = (
        f"the busiest has at most {EVEN:g} times the mean, for a slice is a whole number of "
        "batches, five and more; the book prints no bound"
    )
    return judge_reading(f"the busiest at most {result} times the mean", most.max() < EVEN, reading)


def _format_leads(lead: pd.DataFrame) -> str:
    """Return in how many settings PSP leads at each T_n, and its least lead."""
    by = lead.groupby(["streams", "sigma", "join", "hop"])["ratio_modelled"].min()
    return ", ".join(
        f"T_n {1e3 * hop:g} ms {(x > 1).sum()} of {len(x)} ({x.min():.2f} times and more)"
        for hop, x in by.groupby("hop")
    )


@CLAIMS.claim(
    "16.4",
    "With its best length PSP is ahead of CTR",
    is_required=True,
    setting=_describe_schemes(f"{_RINGS} and {_CTR}, counted and priced", _PRICES),
)
def ahead_of_ctr_claim(r: Contest) -> Finding:
    """Section 16.4: with its best length and form, PSP is ahead of CTR."""
    lead = lead_over_rivals(r.runs)
    lead = lead[lead["rival"].isin([PAIR, HALF])]
    fast = lead[(lead["hop"] == HOPS[0]) & (lead["streams"] == r.least_streams)]
    reading = (
        f"in every setting at T_n = {1e3 * HOPS[0]:g} ms with {r.least_streams} streams alone: in "
        "each of M - 1 rounds a ring makes N / 2 hops and CTR one, so the more a hop costs and "
        "the more streams there are, the less PSP is ahead. The book prints no T_n"
    )
    finding = judge_reading(_format_leads(lead), fast["ratio_modelled"].min() > 1, reading)
    return add_hops(finding)


@CLAIMS.claim(
    "16.4",
    "With its best length PSP is ahead of ATR",
    is_required=True,
    setting=_describe_schemes(f"{_RINGS} and {_ATR}, counted and priced", _PRICES),
)
def ahead_of_atr_claim(r: Contest) -> Finding:
    """Section 16.4: PSP with its best length is ahead of ATR at any cost of a hop."""
    lead = lead_over_rivals(r.runs)
    lead = lead[lead["rival"].isin([SHORT, LONG])]
    cheap, hops = with_cheap_pairs(r.busiest_seconds), r.hop_counts
    least = {t: (cheap + t * hops).groupby(["streams", "sigma"]).min() for t in HOPS}
    behind = [
        f"{(x[[SHORT, LONG]].min(axis=1) <= x[list(RINGS)].min(axis=1)).sum()} at {1e3 * t:g} ms"
        for t, x in least.items()
    ]
    reading = (
        f"at T_n up to {1e3 * HOPS[-1]:g} ms, {AS_PRICED}; {AS_CHEAP}, it is behind "
        f"in {', '.join(behind)} of {len(least[HOPS[0]])} pairs of a number of streams and a σ. "
        "The book prints neither"
    )
    finding = judge_reading(_format_leads(lead), lead["ratio_modelled"].min() > 1, reading)
    return add_hops(finding)
