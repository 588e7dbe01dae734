"""The claims of Wang 2008, Part III, chapters 18 to 21, against runs on Spark and DuckDB.

Everything that is not *modelled* is counted. Claims that hold at any settings are required.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from braid_lab.common.claims import ClaimRegistry, Finding, judge, judge_reading
from braid_lab.shared_ring.experiments import QueryAnswers

SETTINGS = {
    "18.2": "Chain on a ring of 4 hosts and on one, on Spark; 12 dashboards over 3 days of "
    "flights, 18 batches",
    "19.2": "Chain on a ring of 4 hosts, on Spark, beside each dashboard alone; 12 dashboards over "
    "3 days of flights, 18 batches",
    "20.1": "the bitmaps of the stepper, on the book's example",
    "21.3": "Chain on a ring of 4 hosts, on Spark; two streams of 20 tuples/s, windows of 4, 12 "
    "and 32 s, the last with a selection of 0.2; 160 batches of a second",
    "Eq. 21": "computed by Eq. 21.1 and 21.2 for 1 to 24 nodes; windows of 4, 12 and 32 s",
}
CLAIMS = ClaimRegistry("Wang 2008, III", SETTINGS)


@CLAIMS.claim(
    "20.1",
    "A result from B_2 and C_3 has T = (111, 110, 010) and goes to q2 alone",
    is_required=True,
)
def bitmaps_claim(steps: Sequence[Any]) -> Finding:
    """Section 20.1: the queries that a result serves, by the ``steps`` of the book's example."""
    last = {row.results[0]: row.table[-1] for row in steps if row.results}
    routed = {" ".join(map(str, group)): bits for group, bits in last.items()}
    holds = routed["a1 b2 c3"] == ("T", "111", "110", "010", "010") and len(routed) == 7
    return judge("the same; two of nine combinations serve nobody", holds)


@CLAIMS.claim(
    "19.2, Theorem 11",
    "Theorem 11: pushing selections into the ring changes no query's results",
    is_required=True,
)
def results_claim(answers: QueryAnswers) -> Finding:
    """Theorem 11: pushing selections into the ring changes no query's results."""
    same = sum(answers.actual[name] == truth for name, truth in answers.expected.items())
    total = sum(counts.total() for counts in answers.expected.values())
    result = f"{same} of {len(answers.expected)} dashboards as by DuckDB, {total:,} results"
    return judge(result, answers.actual == answers.expected)


@CLAIMS.claim(
    "19.2",
    "Every joined result answers at least one query (18.2), and is made once",
    is_required=True,
)
def each_result_once_claim(answers: QueryAnswers, counts: Mapping[str, float]) -> Finding:
    """Section 18.2: every joined result answers at least one query, and is made once."""
    wanted = len(set().union(*answers.expected.values()))
    result = f"{counts['results']:,} results made, {wanted:,} wanted by one query or more"
    return judge(result, counts["results"] == wanted)


@CLAIMS.claim(
    "19.2, Theorem 12",
    "Theorem 12: the state holds what some query needs, each tuple once, and no more",
    is_required=True,
)
def state_claim(use: pd.DataFrame, hours: float) -> Finding:
    """Theorem 12: the state holds what some query needs and no more, except for whole blocks.

    ``use`` is from ``state_usage``; a batch has ``hours`` hours.
    """
    held, needed = use["held"].mean(), use["of use"].mean()
    result = (
        f"{held:,.0f} tuples held at the mean, {needed:,.0f} of use: {held / needed - 1:.0%} more"
    )
    reason = (
        f"but for whole blocks: tuples leave with theirs (a batch is {hours:g} hours), and when "
        "all other streams have come so far"
    )
    return judge_reading(result, (use["held"] >= use["of use"]).all(), reason)


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


@CLAIMS.claim("19.2, Theorem 12", "Theorem 12: sharing needs the least state", is_required=True)
def least_state_claim(cost_sums: IsolatedCosts) -> Finding:
    """Theorem 12: sharing needs the least state."""
    texts = [
        f"{cost_sums.shared[what]:,.0f} {name} against {cost_sums.isolated[what]:,.0f} alone "
        f"({cost_sums.savings_factor(what):.1f} times)"
        for what, name in (("held_mean", "tuples"), ("of use", "of use"))
    ]
    holds = all(
        cost_sums.shared[what] < cost_sums.isolated[what] for what in ("held_mean", "of use")
    )
    return judge("; ".join(texts), holds)


@CLAIMS.claim("19.2, Theorem 13", "Theorem 13: sharing makes the fewest probes", is_required=True)
def fewest_probes_claim(cost_sums: IsolatedCosts) -> Finding:
    """Theorem 13: sharing makes the fewest probes."""
    one, alone = cost_sums.shared["probed"], cost_sums.isolated["probed"]
    result = (
        f"{one:,.0f} against {alone:,.0f} alone ({cost_sums.savings_factor('probed'):.1f} times)"
    )
    reason = (
        "of queries that share one join order, as chapters 19 and 20 assume; alone, a query has "
        "the best for its own windows"
    )
    return judge(result, one < alone, reason)


@CLAIMS.claim(
    "19.2, Theorem 13", "Theorem 13, taken for pairs compared: fewer than the queries alone"
)
def fewest_pairs_claim(cost_sums: IsolatedCosts) -> Finding:
    """Theorem 13, read as pairs compared: fewer than those of isolated queries."""
    saved = cost_sums.savings_factor("compared")
    one, alone = cost_sums.shared["compared"], cost_sums.isolated["compared"]
    result = f"{one:,.0f} against {alone:,.0f} ({saved:.2f} times)"
    reason = (
        "little is saved, for a probe looks at all tuples of a slice with its key, also at those "
        "that only other queries select"
        if saved < 1.5
        else ""
    )
    return judge(result, saved > 1, reason)


@CLAIMS.claim(
    "18.2",
    "The deployment does not change the probing cost: {hosts} hosts compare as much as one",
    cases=lambda has_all_queries: [{}] if has_all_queries else [],
)
def deployment_claim(cost_sums: IsolatedCosts, counts: Mapping[str, float], hosts: int) -> Finding:
    """Section 18.2: the deployment does not change the probing cost."""
    off = abs(counts["compared"] / cost_sums.shared["compared"] - 1)
    result = (
        f"{counts['compared']:,} pairs on {hosts} hosts, {cost_sums.shared['compared']:,.0f} on one"
    )
    reason = (
        "hosts merge blocks each by itself, so at ends of slices the pairs looked at differ by a "
        "few"
    )
    return judge(result, off < 0.01, reason)


@CLAIMS.claim("21.3", "With regard to selectivities, state is balanced among the hosts")
def balance_claim(before: float, after: float) -> Finding:
    """Section 21.3: with regard to selectivities, state is balanced among the hosts.

    The claim compares the fullest host's share of the mean, in equal stretches of age and by
    selectivity.
    """
    result = (
        f"the fullest host has {before:.2f} times the mean in equal stretches of age, {after:.2f} "
        "times by selectivity"
    )
    reason = "the rest is tuples that wait for their block to age, a second on slices of several"
    return judge(result, after < 1.5, reason)


@CLAIMS.claim("21.3", "Sharing out by selectivities evens the hosts out", is_required=True)
def selectivity_balance_claim(before: float, after: float) -> Finding:
    """Section 21.3: dividing state by selectivities balances the hosts."""
    return judge(f"{before:.2f} to {after:.2f} times the mean", after < before)


@CLAIMS.claim(
    "Eq. 21.1",
    "Selections pushed in lower the work of a tuple at every ring length (modelled)",
    is_required=True,
)
def selection_push_down_claim(lengths: pd.DataFrame) -> Finding:
    """Eq. 21.1: selections pushed in lower the work of a tuple at every ring length.

    A node's share falls with the length; ``lengths`` are from ``length_table``.
    """
    work, share = (
        lengths.pivot(index="nodes", columns="selections", values=f"{what}_modelled")
        for what in ("work", "share")
    )
    less = work["pulled up"] / work["pushed in"]
    falls = bool((share.diff().dropna() < 0).all(axis=None))
    result = f"{less.min():.1f} to {less.max():.1f} times less"
    return judge(result, (less > 1).all() and falls)


@CLAIMS.claim(
    "Eq. 21.2",
    "More nodes lower the processing part and raise the network's; some length is best (modelled)",
    is_required=True,
)
def length_claim(lengths: pd.DataFrame) -> Finding:
    """Eq. 21.2: neither the shortest nor the longest ring responds first."""
    by = lengths.pivot(index="nodes", columns="selections", values="latency_modelled")
    best = by.idxmin()
    inner = all(by.index[0] < n < by.index[-1] for n in best)
    result = (
        f"least at {best['pulled up']} nodes with selections pulled up, at {best['pushed in']} "
        "pushed in"
    )
    return judge(result, inner, "less work wants a shorter ring")


@dataclass(frozen=True)
class SharedRingFigures:
    """The data behind the claims.

    - ``steps``: the book's example.
    - ``answers``: results of the dashboards.
    - ``counts``: counts of the run on ``hosts`` hosts.
    - ``use``: stored and needed tuples by batches of ``hours`` hours.
    - ``costs``: from ``compare_isolated``; ``has_all_queries``: whether it has all queries.
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
    has_all_queries: bool
    imbalance: tuple[float, float]
    lengths: pd.DataFrame

    @cached_property
    def cost_sums(self) -> IsolatedCosts:
        """Costs of one run beside the sum of separate runs."""
        return IsolatedCosts.from_costs(self.costs)

    @property
    def before(self) -> float:
        """The imbalance before deployment."""
        return self.imbalance[0]

    @property
    def after(self) -> float:
        """The imbalance after deployment."""
        return self.imbalance[1]
