"""The claims of Wang 2008, Part III, chapters 18 to 21, against runs on Spark and DuckDB.

Everything that is not *modelled* is counted. Claims that hold at any settings are required.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from braid_lab.common.claims import Claim, Verdict, make_verdict
from braid_lab.shared_ring.experiments import QueryAnswers

PAPER = "Wang 2008, III"


def _make_claim(where: str, says: str, found: str, holds: object, reason: str = "") -> Claim:
    """Return a claim that is only reported."""
    return Claim(PAPER, where, says, found, make_verdict(holds), reason)


def _make_required_claim(
    where: str, says: str, found: str, holds: object, reason: str = ""
) -> Claim:
    """Return a claim that must hold."""
    return Claim(PAPER, where, says, found, make_verdict(holds), reason, is_required=True)


def bitmaps_claim(steps: Sequence[Any]) -> Claim:
    """Section 20.1: the queries that a result serves, by the ``steps`` of the book's example."""
    last = {row.results[0]: row.table[-1] for row in steps if row.results}
    routed = {" ".join(map(str, group)): bits for group, bits in last.items()}
    holds = routed["a1 b2 c3"] == ("T", "111", "110", "010", "010") and len(routed) == 7
    says = "A result from B_2 and C_3 has T = (111, 110, 010) and goes to q2 alone"
    return _make_required_claim(
        "20.1", says, "the same; two of nine combinations serve nobody", holds
    )


def results_claim(answers: QueryAnswers) -> Claim:
    """Theorem 11: pushing selections into the ring changes no query's results."""
    same = sum(answers.actual[name] == truth for name, truth in answers.expected.items())
    total = sum(found.total() for found in answers.expected.values())
    found = f"{same} of {len(answers.expected)} dashboards as by DuckDB, {total:,} results"
    says = "Theorem 11: pushing selections into the ring changes no query's results"
    return _make_required_claim("19.2, Theorem 11", says, found, answers.actual == answers.expected)


def each_result_once_claim(answers: QueryAnswers, counts: Mapping[str, float]) -> Claim:
    """Section 18.2: every joined result answers at least one query, and is made once."""
    wanted = len(set().union(*answers.expected.values()))
    found = f"{counts['results']:,} results made, {wanted:,} wanted by one query or more"
    says = "Every joined result answers at least one query (18.2), and is made once"
    return _make_required_claim("19.2", says, found, counts["results"] == wanted)


def state_claim(use: pd.DataFrame, hours: float) -> Claim:
    """Theorem 12: the state holds what some query needs and no more, except for whole blocks.

    ``use`` is from ``state_usage``; a batch has ``hours`` hours.
    """
    held, needed = use["held"].mean(), use["of use"].mean()
    found = (
        f"{held:,.0f} tuples held at the mean, {needed:,.0f} of use: {held / needed - 1:.0%} more"
    )
    reason = (
        f"but for whole blocks: tuples leave with theirs (a batch is {hours:g} hours), and when "
        "all other streams have come so far"
    )
    says = "Theorem 12: the state holds what some query needs, each tuple once, and no more"
    enough = (use["held"] >= use["of use"]).all()
    holds: Verdict = "under reading" if enough else "no"
    return Claim(PAPER, "19.2, Theorem 12", says, found, holds, reason, is_required=True)


@dataclass(frozen=True)
class IsolatedCosts:
    """Costs of the queries in one run, and the sum of their costs in separate runs.

    The data are those of ``compare_isolated``.
    """

    shared: pd.Series
    isolated: pd.Series

    @classmethod
    def from_costs(cls, costs: pd.DataFrame) -> IsolatedCosts:
        """Return the costs; the first row is the shared run."""
        return cls(costs.iloc[0], costs.iloc[1:].sum(numeric_only=True))

    def savings_factor(self, what: str) -> float:
        """Return the ratio of isolated to shared cost."""
        return float(self.isolated[what] / self.shared[what])


def least_state_claim(a: IsolatedCosts) -> Claim:
    """Theorem 12: sharing needs the least state."""
    texts = [
        f"{a.shared[what]:,.0f} {name} against {a.isolated[what]:,.0f} alone "
        f"({a.savings_factor(what):.1f} times)"
        for what, name in (("held_mean", "tuples"), ("of use", "of use"))
    ]
    holds = all(a.shared[what] < a.isolated[what] for what in ("held_mean", "of use"))
    says = "Theorem 12: sharing needs the least state"
    return _make_required_claim("19.2, Theorem 12", says, "; ".join(texts), holds)


def fewest_probes_claim(a: IsolatedCosts) -> Claim:
    """Theorem 13: sharing makes the fewest probes."""
    one, apart = a.shared["probed"], a.isolated["probed"]
    found = f"{one:,.0f} against {apart:,.0f} alone ({a.savings_factor('probed'):.1f} times)"
    says = "Theorem 13: sharing makes the fewest probes"
    return _make_required_claim("19.2, Theorem 13", says, found, one < apart)


def fewest_pairs_claim(a: IsolatedCosts) -> Claim:
    """Theorem 13, read as pairs compared: fewer than those of isolated queries."""
    saved = a.savings_factor("compared")
    found = f"{a.shared['compared']:,.0f} against {a.isolated['compared']:,.0f} ({saved:.2f} times)"
    reason = (
        "little is saved, for a probe looks at all tuples of a slice with its key, also at those "
        "that only other queries select"
        if saved < 1.5
        else ""
    )
    says = "Theorem 13, taken for pairs compared: fewer than the queries alone"
    return _make_claim("19.2, Theorem 13", says, found, saved > 1, reason)


def deployment_claim(a: IsolatedCosts, counts: Mapping[str, float], hosts: int) -> Claim:
    """Section 18.2: the deployment does not change the probing cost."""
    off = abs(counts["compared"] / a.shared["compared"] - 1)
    found = f"{counts['compared']:,} pairs on {hosts} hosts, {a.shared['compared']:,.0f} on one"
    says = f"The deployment does not change the probing cost: {hosts} hosts compare as much as one"
    reason = (
        "hosts merge blocks each by itself, so at ends of slices a few pairs more or less are "
        "looked at"
    )
    return _make_claim("18.2", says, found, off < 0.01, reason)


def balance_claim(before: float, after: float) -> Claim:
    """Section 21.3: with regard to selectivities, state is balanced among the hosts.

    The claim compares the fullest host's share of the mean, in equal stretches of age and by
    selectivity.
    """
    short = "" if after < 1.5 else ", and a run too short to fill its windows"
    found = (
        f"the fullest host has {before:.2f} times the mean in equal stretches of age, {after:.2f} "
        "times by selectivity"
    )
    reason = f"the rest is tuples that wait for their block to age{short}"
    says = "With regard to selectivities, state is balanced among the hosts"
    return _make_claim("21.3", says, found, after < 1.5, reason)


def selectivity_balance_claim(before: float, after: float) -> Claim:
    """Section 21.3: dividing state by selectivities balances the hosts."""
    says = "Sharing out by selectivities evens the hosts out"
    return _make_required_claim(
        "21.3", says, f"{before:.2f} to {after:.2f} times the mean", after < before
    )


def selection_push_down_claim(lengths: pd.DataFrame) -> Claim:
    """Eq. 21.1: selections pushed in lower the work of a tuple at every ring length.

    A node's share falls with the length; ``lengths`` are from ``length_table``.
    """
    work, share = (
        lengths.pivot(index="nodes", columns="selections", values=f"{what}_modelled")
        for what in ("work", "share")
    )
    less = work["pulled up"] / work["pushed in"]
    falls = bool((share.diff().dropna() < 0).all(axis=None))
    says = "Selections pushed in lower the work of a tuple at every ring length (modelled)"
    found = f"{less.min():.1f} to {less.max():.1f} times less"
    return _make_required_claim("Eq. 21.1", says, found, (less > 1).all() and falls)


def length_claim(lengths: pd.DataFrame) -> Claim:
    """Eq. 21.2: neither the shortest nor the longest ring responds first."""
    by = lengths.pivot(index="nodes", columns="selections", values="latency_modelled")
    best = by.idxmin()
    inner = all(by.index[0] < n < by.index[-1] for n in best)
    says = "More nodes lower the processing part and raise the network's; some length is best"
    found = (
        f"least at {best['pulled up']} nodes with selections pulled up, at {best['pushed in']} "
        "pushed in"
    )
    return _make_required_claim(
        "Eq. 21.2", f"{says} (modelled)", found, inner, "less work wants a shorter ring"
    )


@dataclass(frozen=True)
class SharedRingFigures:
    """The data behind the claims.

    - ``steps``: the book's example.
    - ``answers``: results of the dashboards.
    - ``counts``: counts of the run on ``hosts`` hosts.
    - ``use``: stored and needed tuples by batches of ``hours`` hours.
    - ``costs``: from ``compare_isolated``; ``whole``: it has all queries.
    - ``imbalance``: before and after deployment.
    - ``lengths``: Eq. 21.1 and 21.2.
    """

    steps: Sequence[Any]
    answers: QueryAnswers
    counts: Mapping[str, float]
    hosts: int
    use: pd.DataFrame
    hours: float
    costs: pd.DataFrame
    whole: bool
    imbalance: tuple[float, float]
    lengths: pd.DataFrame


def shared_ring_claims(f: SharedRingFigures) -> list[Claim]:
    """Return all claims, in the order of the chapters."""
    apart = IsolatedCosts.from_costs(f.costs)
    return [
        bitmaps_claim(f.steps),
        results_claim(f.answers),
        each_result_once_claim(f.answers, f.counts),
        state_claim(f.use, f.hours),
        least_state_claim(apart),
        fewest_probes_claim(apart),
        fewest_pairs_claim(apart),
        *([deployment_claim(apart, f.counts, f.hosts)] if f.whole else []),
        balance_claim(*f.imbalance),
        selectivity_balance_claim(*f.imbalance),
        selection_push_down_claim(f.lengths),
        length_claim(f.lengths),
    ]
