"""The claims of Wang 2008, Part II, chapters 15 and 16, against the figures of ``studies.psp``.

All of it is modelled, but for the run on Spark. Claims that hold are checked (``must``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from braid.studies.claim import Claim, Verdict, verdict
from braid.studies.psp import CHANGES, JOINS

PAPER = "Wang 2008, II"
SHORT, PAIR, HALF = "ATR, T = W", "CTR, 2 copies", "CTR, N/2 copies"


def _claim(where: str, says: str, found: str, holds: object, reason: str = "") -> Claim:
    """A claim that is told, with the likely reason when it does not hold."""
    return Claim(PAPER, where, says, found, verdict(holds), "" if holds else reason)


def _check(where: str, says: str, found: str, holds: object, reason: str = "") -> Claim:
    """A claim that must hold."""
    return Claim(PAPER, where, says, found, verdict(holds), reason, must=True)


# Fig. 15.1: closed forms, ``psp.schemes``


def memory_claim(schemes: pd.DataFrame) -> Claim:
    """Fig. 15.1: ATR stores most and grows with N, CTR stores two copies, the ring one."""
    by = schemes.pivot(index="nodes", columns="scheme", values="memory_modelled")
    ordered = ((by["ATR"] > by["CTR"]) & (by["CTR"] > by["PSP"])).all()
    holds = by["PSP"].nunique() == 1 and by["ATR"].is_monotonic_increasing and ordered
    first, last = by.iloc[0], by.iloc[-1]
    each = ", ".join(f"{k} {first[k]:,.0f} to {last[k]:,.0f}" for k in ("ATR", "CTR", "PSP"))
    says = "ATR stores most and grows with N, CTR less, PSP one copy whatever the length"
    return _check("15.1", says, f"{each} tuples", holds)


def sent_claim(schemes: pd.DataFrame) -> Claim:
    """Section 15.1: network transmission is low for ATR, middle for CTR, high for PSP."""
    by = schemes.pivot(index="nodes", columns="scheme", values="sent_modelled")
    holds = ((by["ATR"] < by["CTR"]) & (by["CTR"] < by["PSP"])).all()
    middle = by.loc[8] if 8 in by.index else by.iloc[0]
    each = ", ".join(f"{k} {middle[k]:.0f}" for k in ("ATR", "CTR", "PSP"))
    says = "Network transmission is low for ATR, middle for CTR, high for PSP"
    return _check("15.1", says, f"at {middle.name} nodes {each} sends a tuple", holds)


# Fig. 16.1: ``psp.breakdown`` with a column for the streams


def share_claim(parts: pd.DataFrame) -> Claim:
    """Fig. 16.1: the network's share is the same for all join costs; probing grows with them."""
    by = parts.pivot(index=["streams", "join"], columns="part", values="mean_modelled")
    network, probing = by["network"].unstack(), by["join"].unstack()
    grows = (probing["small"] < probing["middle"]) & (probing["middle"] < probing["large"])
    holds = (network.nunique(axis=1) == 1).all() and grows.all()
    each = "; ".join(
        f"{m}-way network {network.loc[m, 'small']:.3f} s, joins "
        f"{probing.loc[m, 'small']:.2f} to {probing.loc[m, 'large']:.2f} s"
        for m in probing.index
    )
    says = "The network's share is the same for all join costs; probing grows with them"
    return _check("16.1", says, each, holds)


def probing_claim(parts: pd.DataFrame) -> Claim:
    """Fig. 16.1: probing costs more than the network does."""
    by = parts.pivot(index=["streams", "join"], columns="part", values="mean_modelled")
    found = f"at least {(by['join'] / by['network']).min():.1f} times the network's share"
    holds = (by["join"] > by["network"]).all()
    return _check("16.1", "Probing costs more than the network", found, holds)


# Fig. 16.2: closed forms, ``psp.response``


def shortest(times: pd.DataFrame) -> pd.Series:
    """The ring's length of least response time, by join cost and selectivity."""
    least = times.loc[times.groupby(["join", "sigma"])["response_modelled"].idxmin()]
    return least.set_index(["join", "sigma"])["nodes"]


def interior_claim(times: pd.DataFrame) -> Claim:
    """Fig. 16.2: the best ring has an interior length."""
    best, low, high = shortest(times), times["nodes"].min(), times["nodes"].max()
    inner = int(((best > low) & (best < high)).sum())
    at = best["small", 0.5]
    found = f"interior in {inner} of {len(best)} settings; {at} nodes at σ = 0.5, small join"
    says = (
        "More nodes help up to a point: the best ring has an interior length (the book: 14 nodes "
        "at σ = 0.5, small join)"
    )
    return _check("16.2", says, found, inner > 0)


def grows_claim(times: pd.DataFrame) -> Claim:
    """Fig. 16.2: the response time grows with the selectivity."""
    by = times.pivot(index=["join", "nodes"], columns="sigma", values="response_modelled")
    ordered = (by[0.05] <= by[0.1]).all() and (by[0.1] <= by[0.5]).all()
    found = "at every length and join cost, until the hops outweigh the rest"
    says = "Response time grows with the selectivity"
    return _check("16.2", says, found, ordered and (by[0.05] < by[0.5]).any())


def theorem_claim(times: pd.DataFrame) -> Claim:
    """Theorem 9: the more selectivity, the longer the best ring."""
    best = shortest(times)
    holds = all(best[j, 0.05] <= best[j, 0.1] <= best[j, 0.5] for j in JOINS)
    found = f"small join: {', '.join(str(best['small', s]) for s in (0.05, 0.1, 0.5))} nodes"
    says = "The more selectivity, the longer the best ring (σ = 0.05, 0.1, 0.5)"
    return _check("Theorem 9", says, found, holds)


def text_claim(times: pd.DataFrame) -> Claim:
    """Section 16.2, text: the smaller the selectivity, the longer the best ring."""
    best = shortest(times)
    few, some, more = (best["small", s] for s in (0.05, 0.1, 0.5))
    why = "the other way round, as Theorem 9 has it: more selectivity means more probing to share"
    found = f"small join: {few}, {some}, {more} nodes for σ = 0.05, 0.1, 0.5"
    says = "The smaller the selectivity, the longer the best ring (text of 16.2)"
    return _claim("16.2", says, found, few > more, why)


# Fig. 16.2 to 16.5: counted, ``psp.rivals`` with a column for the streams


@dataclass(frozen=True)
class Rivals:
    """The rivals by streams and nodes: a column for each scheme."""

    runs: pd.DataFrame

    def _by(self, value: str) -> pd.DataFrame:
        return self.runs.pivot(
            index=["streams", "nodes"], columns="scheme", values=f"{value}_modelled"
        )

    @cached_property
    def stored(self) -> pd.DataFrame:
        """Live tuples, with their copies."""
        return self._by("stored")

    @cached_property
    def left(self) -> pd.DataFrame:
        """Tuples, if a host purges only when one comes to it."""
        return self._by("left")

    @cached_property
    def took(self) -> pd.DataFrame:
        """Seconds of response."""
        return self._by("response")

    @property
    def ways(self) -> list[int]:
        """The numbers of streams, rising."""
        return sorted(self.runs["streams"].unique())

    @property
    def few(self) -> int:
        """The least number of nodes."""
        return int(self.runs["nodes"].min())

    @property
    def many(self) -> int:
        """The largest number of nodes."""
        return int(self.runs["nodes"].max())

    def each(self, text: Callable[[int], str]) -> str:
        """What there is to say of each number of streams."""
        return "; ".join(f"{m}-way {text(m)}" for m in self.ways)

    def flat(self, scheme: str) -> tuple[bool, pd.Series, pd.Series]:
        """Whether a scheme's state is the same for all lengths but for 15 %, its least and its
        most.
        """
        by = self.stored[scheme].groupby("streams")
        return bool((by.max() <= 1.15 * by.min()).all()), by.min(), by.max()


def one_copy_claim(r: Rivals) -> Claim:
    """Fig. 16.2: the state of PSP is flat in N."""
    dynamic, low, high = r.flat("PSP-D")
    basic, _, _ = r.flat("PSP")
    found = r.each(lambda m: f"{low[m]:.0f} to {high[m]:.0f} tuples")
    reason = "a block more or less"
    return _check("16.2", "State of PSP is flat in N", found, dynamic and basic, reason)


def late_purge_claim(r: Rivals) -> Claim:
    """Fig. 16.3: PSP-I holds more state than PSP, for what is purged late is on two nodes."""
    both = r.stored.groupby("streams").sum()
    found = r.each(lambda m: f"{both.loc[m, 'PSP-I'] / both.loc[m, 'PSP'] - 1:.0%} more")
    holds = (r.stored["PSP-I"] > r.stored["PSP"]).all()
    return _check("16.3", "PSP-I holds more state than PSP", found, holds)


def copies_claim(r: Rivals) -> Claim:
    """Section 15.1, counted: ATR and CTR store much more than a ring does."""
    ratio = r.stored[[SHORT, PAIR]].min(axis=1) / r.stored["PSP-D"]
    found = f"{ratio.min():.2f} times and more"
    says = "ATR and CTR store more than 1.5 times what PSP-D does"
    return _check("15.1", says, found, ratio.min() > 1.5)


def atr_state_claim(r: Rivals) -> Claim:
    """Section 15.1, Fig. 16.4: the state of ATR grows with N."""
    first, last = (r.stored.xs(n, level="nodes")[SHORT] for n in (r.few, r.many))
    held, more = last / first, r.left.xs(r.many, level="nodes")[SHORT]
    more = more / r.left.xs(r.few, level="nodes")[SHORT]
    formula = r.many / r.few
    each = r.each(lambda m: f"×{held[m]:.2f} of live tuples, ×{more[m]:.2f} purged on arrival")
    found = f"from {r.few} to {r.many} nodes, by the formula ×{formula:.2f}: {each}"
    why = "only (T + 2W)/T segments are live at a time, and purging by the clock empties the others"
    says = "State of ATR grows with N, as λTN + λ(T + 2W)(M - 1)N"
    return _claim("15.1, 16.4", says, found, (abs(held / formula - 1) < 0.25).all(), why)


def ctr_state_claim(r: Rivals) -> Claim:
    """Fig. 16.5: the state of CTR is flat in N for a fixed number of copies, and grows with
    them.
    """
    flat, low, high = r.flat(PAIR)
    last = r.stored.xs(r.many, level="nodes")
    each = r.each(lambda m: f"{low[m]:.0f} to {high[m]:.0f} and {last.loc[m, HALF]:.0f} tuples")
    grows = r.many <= 4 or (last[HALF] > last[PAIR]).all()
    says = "State of CTR is flat in N for a fixed number of copies, and grows with the copies"
    return _check("16.5", says, f"2 copies, and N/2 at {r.many} nodes: {each}", flat and grows)


def atr_response_claim(r: Rivals) -> Claim:
    """Fig. 16.4: the response time of ATR does not fall with N, for one host does all the work."""
    by = r.took[SHORT].groupby("streams")
    quick, slow = by.min(), by.max()
    found = r.each(lambda m: f"{quick[m]:.3f} to {slow[m]:.3f} s")
    says = "Response time of ATR does not fall with N"
    return _check("16.4", says, found, (slow <= 1.05 * quick).all())


def ctr_response_claim(r: Rivals) -> Claim:
    """Fig. 16.5: the response time of CTR falls with N."""
    begin, end = (r.took.xs(n, level="nodes")[PAIR] for n in (r.few, r.many))
    says = "Response time of CTR falls with N"
    found = r.each(lambda m: f"{begin[m]:.3f} s at {r.few} nodes, {end[m]:.3f} s at {r.many}")
    if r.many == r.few:
        return Claim(PAPER, "16.5", says, found, "not tried", "one length only", must=True)
    return _check("16.5", says, found, (end < begin).all())


def ctr_copies_claim(r: Rivals) -> Claim:
    """Fig. 16.5: more copies mean a longer response time."""
    says = "More copies mean a longer response time"
    wide = r.took[r.took.index.get_level_values("nodes") > 4]
    if wide.empty:
        return Claim(PAPER, "16.5", says, "no length above 4", "not tried")
    slower = (wide[HALF] > wide[PAIR]).groupby("streams").agg(["sum", "size"])
    each = r.each(lambda m: f"{slower.loc[m, 'sum']} of {slower.loc[m, 'size']} lengths above 4")
    why = "greedy covers also send fewer intermediate results when copies abound"
    found = f"slower with N/2 copies than with 2 at {each}"
    return _claim("16.5", says, found, (slower["sum"] == slower["size"]).all(), why)


def interleaved_claim(r: Rivals) -> Claim:
    """Fig. 16.3: the response time of PSP-I is stable in N."""
    by = r.took["PSP-I"].groupby("streams")
    rise = by.max() / by.min() - 1
    why = (
        "a ring's M - 1 rounds of N/2 hops grow with both, and the tuples that wait while others "
        "are under way are not modelled"
    )
    found = r.each(lambda m: f"within {rise[m]:.0%}")
    says = "Response time of PSP-I is pretty stable in N"
    return _claim("16.3", says, found, (rise < 0.25).all(), why)


def best_length_claim(r: Rivals) -> Claim:
    """Fig. 16.2, counted: the best ring has an interior length."""
    lengths = sorted(r.runs["nodes"].unique())
    best = {m: n for m, n in r.took["PSP-D"].groupby("streams").idxmin()}
    found = r.each(lambda m: f"{best[m]} of {', '.join(map(str, lengths))} nodes")
    holds: Verdict = verdict(all(r.few < n < r.many for n in best.values()))
    tried = holds if len(lengths) > 2 else "not tried"
    says = "The best ring has an interior length, whatever the number of streams (counted)"
    return Claim(PAPER, "16.2", says, found, tried)


def ahead_claim(r: Rivals) -> Claim:
    """Fig. 16.4: with its best length PSP is ahead of ATR and CTR."""
    quick = r.took.groupby("streams").min()
    found = r.each(
        lambda m: ", ".join(
            f"{name} {quick.loc[m, scheme]:.3f} s"
            for name, scheme in (("PSP-D", "PSP-D"), ("ATR", SHORT), ("CTR", PAIR))
        )
    )
    why = (
        "CTR has M - 1 hops where a ring has N/2 a round, and is charged nothing for routing and "
        "for keeping hops in step"
    )
    holds = (quick["PSP-D"] < quick[[SHORT, PAIR]].min(axis=1)).all()
    says = "With its best length PSP is ahead of ATR and CTR"
    return _claim("16.4", says, found, holds, why)


def ahead_of_atr_claim(r: Rivals) -> Claim:
    """Fig. 16.4: with its best length PSP is ahead of ATR."""
    quick = r.took.groupby("streams").min()
    found = r.each(lambda m: f"{quick.loc[m, SHORT] / quick.loc[m, 'PSP-D']:.2f} times as fast")
    holds = (quick["PSP-D"] < quick[SHORT]).all()
    return _check("16.4", "With its best length PSP is ahead of ATR", found, holds)


def adaptation_claim(grown: pd.DataFrame, figure: str) -> Claim:
    """Fig. 16.6, 16.7: adaptation flattens the response time when the rates grow
    (``psp.adaptation``).
    """
    end = grown[grown["second"] >= 0.9 * (grown["second"].max() + CHANGES[figure].setting.step)]
    last = end.groupby("adapts")["response_modelled"].mean()
    most = int(grown.loc[grown["adapts"], "nodes"].max())
    found = f"at the end {last[True]:.2f} s, with up to {most} nodes, against {last[False]:.1f} s"
    says = "Adaptation flattens the response time when the rates grow"
    return _check(figure, says, found, last[True] < last[False] / 2)


def agreement_claims(both: pd.DataFrame) -> list[Claim]:
    """A run on Spark beside its model (``psp.agreement``): the same streams, and state that differs
    by a batch of each stream at most.
    """
    by = both.set_index("what")
    same = by.loc["tuples in", "measured"] == by.loc["tuples in", "modelled"]
    count, ratio = by.loc["tuples in", "measured"], by.loc["state at the end", "ratio"]
    return [
        _check("12", "the streams are those of the model", f"{count:,.0f} tuples in", same),
        _check("12", "state is the model's", f"{ratio:.2f} times", abs(ratio - 1) < 0.35),
    ]


@dataclass(frozen=True)
class Figures:
    """The tidy frames that the claims are about: of ``psp.schemes``, ``breakdown``, ``response``,
    ``rivals``, and by figure of ``adaptation``.
    """

    schemes: pd.DataFrame
    parts: pd.DataFrame
    times: pd.DataFrame
    rivals: pd.DataFrame
    grown: dict[str, pd.DataFrame]


def claims(f: Figures) -> list[Claim]:
    """All of them, in the order of the figures."""
    r = Rivals(f.rivals)
    counted = (
        one_copy_claim,
        late_purge_claim,
        copies_claim,
        atr_state_claim,
        ctr_state_claim,
        atr_response_claim,
        ctr_response_claim,
        ctr_copies_claim,
        interleaved_claim,
        best_length_claim,
        ahead_claim,
        ahead_of_atr_claim,
    )
    closed = (interior_claim, grows_claim, theorem_claim, text_claim)
    return [
        *(claim(f.schemes) for claim in (memory_claim, sent_claim)),
        *(claim(f.parts) for claim in (share_claim, probing_claim)),
        *(claim(f.times) for claim in closed),
        *(claim(r) for claim in counted),
        *(adaptation_claim(grown, figure) for figure, grown in f.grown.items()),
    ]
