"""The claims of Wang 2008, section 15.1, Fig. 14.1, 15.1 and 16.3, against ``scheme_comparison``.

Those of Fig. 16.2 to 16.5 are in ``contest_claims``. All is counted on the policies and priced, so
modelled. Claims that hold are required; ``tests/mutations`` has the faults that break them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pandas as pd

from braid_lab.common.claims import (
    Case,
    ClaimRegistry,
    Finding,
    judge,
    judge_reading,
    leave_untested,
)
from braid_lab.psp import contest_claims
from braid_lab.psp.contest_claims import RUN, STREAMS

SETTINGS = {
    "15.1": "ATR with T = {segment} s, its tuples counted as they are purged; {nodes} nodes, "
    f"{STREAMS}; runs of {{seconds:range}} s, a segment on every node, where the book has "
    "{printed_seconds}, seeds {seed}",
    "Fig. 15.1": f"ATR (T = W), CTR ({{copies}} copies) and PSP-D on {{nodes}} nodes; {STREAMS}, "
    "σ = {sigma}; {seconds} s, seeds {seed}",
    "Fig. 14.1": "PSP-D of {nodes:range} nodes that takes in {added:range} at once; full windows "
    "of N (N + M) batches of equal size",
    "Fig. 16.3": f"PSP-I with {{tuples}} tuples at once, counted and priced; {{nodes}} nodes, "
    f"{STREAMS}, σ = {{sigma}}, {{join:count}} costs of a pair, T_n of {{hop_ms:range}} ms; "
    f"{RUN}",
    "12.4": f"PSP-I with {{tuples}} tuples at once, counted; {{nodes}} nodes, {STREAMS}, σ = "
    "{sigma}; {seconds} s, seeds {seed}",
}
CLAIMS = ClaimRegistry("Wang 2008, II", SETTINGS)

# Chapter 14 and section 15.1: ``scheme_properties``, ``scheme_comparison.replica_table``


@CLAIMS.claim("15.1, Fig. 16.4", "State of ATR grows with N as MEM_ATR does", is_required=True)
def atr_state_growth_claim(cached: pd.DataFrame) -> Finding:
    """Section 15.1, Fig. 16.4: the state of ATR grows with N."""
    by = cached.groupby(["segment", "nodes"])[["left_modelled", "formula_modelled"]].mean()
    held, texts = True, []
    for segment, runs in by.groupby("segment"):
        left = runs["left_modelled"].droplevel("segment")
        more, nodes = left.iloc[-1] / left.iloc[0], left.index[-1] / left.index[0]
        held &= left.is_monotonic_increasing and 0.8 <= more / nodes <= 1.6
        share = (runs["left_modelled"] / runs["formula_modelled"]).mean()
        sizes = ", ".join(f"{x:,.0f}" for x in left)
        texts.append(f"T = {segment:g} s {sizes} tuples, {share:.2f} of the formula")
    lengths = ", ".join(map(str, sorted(cached["nodes"].unique())))
    reading = (
        "purged when a tuple comes, as the book does (5.2, 12.3), in runs of (N + 3) T and more; "
        "purged by the clock it is the same at any N"
    )
    return judge_reading(f"{lengths} nodes: {'; '.join(texts)}", held, reading)


@CLAIMS.claim("15.1", "State of ATR is λTN + λ(T + 2W)(M - 1)N")
def atr_memory_formula_claim(cached: pd.DataFrame) -> Finding:
    """Section 15.1: MEM_ATR itself, a whole segment of T + 2 W on every node."""
    share = (cached["left_modelled"] / cached["formula_modelled"]).agg(["min", "max"])
    result = f"{share['min']:.2f} to {share['max']:.2f} of it"
    reason = (
        '"MEM_ATR = λTN + λ(T + 2W)(M - 1)N" (15.1): a host purges its slave tuples as long as '
        "tuples come, so it never has T + 2 W whole"
    )
    return judge(result, share["min"] > 0.75, failure=reason)


ORDERS: dict[str, tuple[Callable[[dict[str, float]], bool], str]] = {
    "Routing Cost": (lambda n: n["CTR"] > 2 * max(n["ATR"], n["PSP"]), ""),
    "Per Segment Metadata": (lambda n: n["CTR"] > max(n["ATR"], n["PSP"]) <= 1, ""),
    "Duplication Removal": (
        lambda n: n["CTR"] > 0 == n["ATR"] == n["PSP"],
        "CTR stores a segment on all hosts of its first cover, as in Gu 2007; with 2 copies, as in "
        "the other rows, covers name no segment twice",
    ),
    "Load Balancing Granularity": (lambda n: n["ATR"] > max(n["CTR"], n["PSP"]), ""),
    "State Management Cost": (
        lambda n: n["PSP"] < min(n["ATR"], n["CTR"]),
        "PSP-D; in the basic PSP a tuple is inserted on every node that it ages to",
    ),
    "Adaptation Cost": (
        lambda n: n["PSP"] == 0,
        "passive adjustment, which induces no extra migration (14.2); aggressive relocation moves "
        "the state of Eq. 14.1",
    ),
    "Network Transmission": (lambda n: n["ATR"] < n["CTR"] < n["PSP"], ""),
}
"""By row of Fig. 15.1: whether the numbers are as its words say, and the reading of it."""


def _list_comparison_rows(rows: pd.DataFrame) -> Iterator[Case]:
    for item, schemes in rows.groupby("item", sort=False):
        words = schemes.drop_duplicates("scheme").set_index("scheme")["printed"]
        printed_words = ", ".join(f"{scheme} {word}" for scheme, word in words.items())
        yield {"item": str(item), "words": printed_words, "schemes": schemes}


@CLAIMS.claim("Fig. 15.1", "{item}: {words}", cases=_list_comparison_rows, is_required=True)
def comparison_row_claim(item: str, words: str, schemes: pd.DataFrame) -> Finding:
    """Fig. 15.1, row by row, counted on the policies."""
    numbers = schemes.groupby("scheme", sort=False)["number_modelled"].mean().to_dict()
    is_as_printed, reading = ORDERS[item]
    each = ", ".join(f"{scheme} {number:.3g}" for scheme, number in numbers.items())
    text, holds = f"{schemes['counts'].iloc[0]}: {each}", is_as_printed(numbers)
    return judge_reading(text, holds, reading) if reading else judge(text, holds)


@CLAIMS.claim(
    "Fig. 14.1, Eq. 14.1",
    "Aggressive relocation moves what Eq. 14.1 says, between neighbours",
    is_required=True,
)
def relocated_state_claim(moves: pd.DataFrame) -> Finding:
    """Fig. 14.1, Eq. 14.1: the state that each node hands on when a ring takes nodes in."""
    off = (moves["moved_modelled"] - moves["equation_modelled"]).abs().max()
    beyond = moves["beyond_modelled"].sum()
    rings = moves[["nodes", "added"]].drop_duplicates()
    grown = ", ".join(f"{n} + {m}" for n, m in rings.itertuples(index=False))
    result = f"{grown} nodes: off by {off:.2f} of a slice at most"
    reading = (
        "the k-th node has a new one after it where M k / N ≥ j; printed is >, which has none. The "
        "state goes to the next old node, past new ones between, and whole slices to these"
    )
    return judge_reading(result, off < 0.01 and not beyond, reading)


# Fig. 16.3: ``scheme_comparison.concurrency_table``


def _price_tuples(many: pd.DataFrame) -> pd.DataFrame:
    """Return the mean response times of runs, by tuples at once and setting, and by nodes."""
    keys = ["tuples", "sigma", "join", "hop", "nodes"]
    return many.groupby(keys)["response_modelled"].mean().unstack("nodes").sort_index(axis=1)


@CLAIMS.claim("Fig. 16.3", "Response time of PSP-I is pretty stable in N")
def psp_i_stability_claim(many: pd.DataFrame) -> Finding:
    """Fig. 16.3 (a), (c), (e): the response time of PSP-I is stable in N."""
    by = _price_tuples(many)
    change = by.iloc[:, -1] / by.iloc[:, 0] - 1
    groups = change.groupby(["tuples", "join"], sort=False).agg(["min", "max"])
    result = f"{by.columns[0]} to {by.columns[-1]} nodes: " + ", ".join(
        f"{k} at once, {join} join {low:+.0%} to {high:+.0%}"
        for (k, join), (low, high) in groups.iterrows()
    )
    reason = (
        '"pretty stable since the PSP-Int allows more input tuples to be processed" (16.3): '
        "with a fixed number at once it falls; with one for each node it grows, by what every node "
        "sends for every tuple, the least where a pair costs most"
    )
    is_stable = (abs(change) < 0.25).groupby("tuples").all()
    return judge(result, is_stable.any(), failure=reason)


@CLAIMS.claim(
    "Fig. 16.3",
    "More nodes process more tuples at once instead of answering sooner",
    is_required=True,
)
def concurrency_claim(many: pd.DataFrame) -> Finding:
    """Section 16.3: more nodes process more tuples at once, rather than answer sooner."""
    by = _price_tuples(many).xs("N", level="tuples")
    if len(by.columns) < 2:
        return leave_untested("one length only")
    served = by.rdiv(pd.Series(by.columns, by.columns), axis=1)
    more, later = served.iloc[:, -1] / served.iloc[:, 0], by.iloc[:, -1] / by.iloc[:, 0]
    result = (
        f"{by.columns[0]} to {by.columns[-1]} nodes: {more.min():.1f} to {more.max():.1f} times as "
        f"many tuples/s, each in {later.min():.2f} to {later.max():.2f} times the time"
    )
    grows = (served.diff(axis=1).iloc[:, 1:] > 0).all(axis=None) and later.min() >= 1
    reading = "with one tuple for each node; with a fixed number at once, more nodes answer sooner"
    finding = judge_reading(result, grows and more.min() > 1.2, reading)
    return replace(finding, ran={"tuples": "N"})


@CLAIMS.claim(
    "12.4",
    "Interleaved processing holds state on two nodes, the more, the more tuples are processed",
    is_required=True,
)
def more_at_once_claim(many: pd.DataFrame) -> Finding:
    """Section 12.4: interleaved processing induces duplicated states."""
    by = many[many["tuples"] != "N"].assign(tuples=lambda f: f["tuples"].astype(int))
    copied = by.groupby(["nodes", "sigma", "tuples"])["copied_modelled"].mean().unstack("tuples")
    each = ", ".join(f"{n:.0f} with {k} at once" for k, n in copied.mean().items())
    grows = copied.min(axis=None) > 0 and (copied.diff(axis=1).iloc[:, 1:] > 0).all(axis=None)
    reason = "that it grows with their number is ours; the book bounds the number"
    finding = judge(f"tuples on two nodes: {each}", grows, reason)
    return replace(finding, ran={"tuples": tuple(copied.columns)})


CLAIMS.include_claims(contest_claims.CLAIMS)
