"""The claims of Wang 2008, section 15.1, Fig. 14.1, 15.1 and 16.3, against ``rivals``.

Those of Fig. 16.2 to 16.5 are in ``contest_claims``. All is counted on the policies and priced, so
modelled. Claims that hold are required; ``tests/mutations`` has the faults that break them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from braid_lab.common.claims import Claim
from braid_lab.psp.contest_claims import BOOK, SIDE_BY_SIDE, Contest

# Chapter 14 and section 15.1: ``comparison``, ``rivals.replica_table``


def atr_state_growth_claim(kept: pd.DataFrame) -> Claim:
    """Section 15.1, Fig. 16.4: the state of ATR grows with N."""
    by = kept.groupby(["segment", "nodes"])[["left_modelled", "formula_modelled"]].mean()
    held, texts = True, []
    for segment, runs in by.groupby("segment"):
        left = runs["left_modelled"].droplevel("segment")
        more, nodes = left.iloc[-1] / left.iloc[0], left.index[-1] / left.index[0]
        held &= left.is_monotonic_increasing and 0.8 <= more / nodes <= 1.6
        share = (runs["left_modelled"] / runs["formula_modelled"]).mean()
        sizes = ", ".join(f"{x:,.0f}" for x in left)
        texts.append(f"T = {segment:g} s {sizes} tuples, {share:.2f} of the formula")
    lengths = ", ".join(map(str, sorted(kept["nodes"].unique())))
    reading = (
        "purged when a tuple comes, as the book does (5.2, 12.3), in runs of (N + 3) T and more; "
        "purged by the clock it is the same at any N"
    )
    says = "State of ATR grows with N as MEM_ATR does"
    return BOOK.interpreted_claim(
        "15.1, Fig. 16.4", says, f"{lengths} nodes: {'; '.join(texts)}", held, reading
    )


def atr_memory_formula_claim(kept: pd.DataFrame) -> Claim:
    """Section 15.1: MEM_ATR itself, a whole segment of T + 2 W on every node."""
    share = (kept["left_modelled"] / kept["formula_modelled"]).agg(["min", "max"])
    found = f"{share['min']:.2f} to {share['max']:.2f} of it"
    reason = "a host purges its slave tuples as long as tuples come, so it never has T + 2 W whole"
    says = "State of ATR is λTN + λ(T + 2W)(M - 1)N"
    return BOOK.report_claim("15.1", says, found, share["min"] > 0.75, reason)


ORDERS: dict[str, tuple[Callable[[dict[str, float]], bool], str]] = {
    "Routing Cost": (lambda n: n["CTR"] > 2 * max(n["ATR"], n["PSP"]), ""),
    "Per Segment Metadata": (lambda n: n["CTR"] > max(n["ATR"], n["PSP"]) <= 1, ""),
    "Duplication Removal": (
        lambda n: n["CTR"] > 0 == n["ATR"] == n["PSP"],
        "greedy covers seldom visit two hosts with the same segment",
    ),
    "Load Balancing Granularity": (lambda n: n["ATR"] > 1.3 * max(n["CTR"], n["PSP"]), ""),
    "State Management Cost": (lambda n: 1.5 * n["PSP"] < min(n["ATR"], n["CTR"]), ""),
    "Adaptation Cost": (lambda n: n["PSP"] < 60, ""),
    "Network Transmission": (lambda n: n["ATR"] < n["CTR"] < n["PSP"], ""),
}
"""By row of Fig. 15.1: whether the numbers are as its words say, and why they may not be."""


def comparison_row_claims(rows: pd.DataFrame) -> list[Claim]:
    """Fig. 15.1, a claim for each row, counted on the policies."""
    found = []
    for item, mine in rows.groupby("item", sort=False):
        numbers = mine.groupby("scheme", sort=False)["number_modelled"].mean().to_dict()
        words = mine.drop_duplicates("scheme").set_index("scheme")["printed"]
        holds, why = ORDERS[str(item)][0](numbers), ORDERS[str(item)][1]
        each = ", ".join(f"{k} {n:.3g}" for k, n in numbers.items())
        says = f"{item}: {', '.join(f'{k} {w}' for k, w in words.items())}"
        make = BOOK.report_claim if why else BOOK.required_claim
        found.append(make("Fig. 15.1", says, f"{mine['counts'].iloc[0]}: {each}", holds, why))
    return found


def relocated_state_claim(moves: pd.DataFrame) -> Claim:
    """Fig. 14.1, Eq. 14.1: the state that each node hands on when a ring takes nodes in."""
    off = (moves["moved_modelled"] - moves["equation_modelled"]).abs().max()
    rings = moves[["nodes", "added"]].drop_duplicates()
    grown = ", ".join(f"{n} + {m}" for n, m in rings.itertuples(index=False))
    says = "Aggressive relocation moves what Eq. 14.1 says, between neighbours"
    found = f"{grown} nodes: off by {off:.2f} of a slice at most"
    reading = "the k-th node has a new one after it where M k / N ≥ j; printed is >, which has none"
    return BOOK.interpreted_claim("Fig. 14.1, Eq. 14.1", says, found, off < 0.01, reading)


# Fig. 16.3: ``rivals.concurrency_table``


def psp_i_stability_claim(many: pd.DataFrame) -> Claim:
    """Fig. 16.3 (a), (c), (e): the response time of PSP-I is stable in N."""
    by = many.groupby(["tuples", "nodes"])["response_modelled"].mean().unstack("nodes")
    change = by.iloc[:, -1] / by.iloc[:, 0] - 1
    found = ", ".join(f"{k} at once {x:+.0%}" for k, x in change.items())
    reason = (
        "with a fixed number at once it falls; with one for each node it grows by what every node "
        "sends for every tuple"
    )
    says = "Response time of PSP-I is pretty stable in N"
    found = f"{by.columns[0]} to {by.columns[-1]} nodes: {found}"
    return BOOK.report_claim("Fig. 16.3", says, found, (abs(change) < 0.25).all(), reason)


def concurrency_claim(many: pd.DataFrame) -> Claim:
    """Section 16.3: more nodes process more tuples at once, rather than answer sooner."""
    mine = many[many["tuples"] == "N"].groupby("nodes")["response_modelled"].mean()
    served = mine.index.to_numpy() / mine
    found = (
        f"one for each node, {mine.index[0]} to {mine.index[-1]}: from {served.iloc[0]:.0f} "
        f"to {served.iloc[-1]:.0f} tuples/s, each in {mine.iloc[0]:.3f} to {mine.iloc[-1]:.3f} s"
    )
    says = "More nodes process more tuples at once instead of answering sooner"
    if len(mine) < 2:
        return BOOK.untested_claim("Fig. 16.3", says, "one length only")
    more = served.is_monotonic_increasing and served.iloc[-1] > 1.2 * served.iloc[0]
    grows = more and mine.iloc[-1] >= 0.9 * mine.iloc[0]
    return BOOK.required_claim("Fig. 16.3", says, found, grows)


def more_at_once_claim(many: pd.DataFrame) -> Claim:
    """Section 16.3: more tuples at once hold more state and take longer each."""
    by = many[many["tuples"] != "N"].assign(tuples=lambda f: f["tuples"].astype(int))
    mean = by.groupby(["nodes", "tuples"])[["copied_modelled", "response_modelled"]].mean()
    grows = [mean[c].unstack("tuples").diff(axis=1).iloc[:, 1:] for c in mean]
    copied, took = ((g > 0).all(axis=None) for g in grows)
    sums = mean["copied_modelled"].groupby("tuples").mean()
    found = ", ".join(f"{n:.0f} with {k} at once" for k, n in sums.items())
    says = "The more tuples are processed at once, the more state is held twice"
    return BOOK.required_claim("Fig. 16.3", says, f"tuples on two nodes: {found}", copied and took)


@dataclass(frozen=True)
class ContestFigures:
    """The tidy frames behind the claims.

    They are from ``relocation_table`` and ``scheme_properties``, and from ``replica_table``,
    ``compare_schemes`` and ``concurrency_table``.
    """

    moves: pd.DataFrame
    rows: pd.DataFrame
    kept: pd.DataFrame
    contest: pd.DataFrame
    many: pd.DataFrame


def contest_claims(f: ContestFigures) -> list[Claim]:
    """Return all claims, in the order of the book."""
    r = Contest(f.contest)
    return [
        relocated_state_claim(f.moves),
        atr_state_growth_claim(f.kept),
        atr_memory_formula_claim(f.kept),
        *comparison_row_claims(f.rows),
        *(claim(r) for claim in SIDE_BY_SIDE),
        *(
            claim(f.many)
            for claim in (psp_i_stability_claim, concurrency_claim, more_at_once_claim)
        ),
    ]
