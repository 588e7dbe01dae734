"""The claims of Wang 2008, Part III, chapters 18 to 21, against runs on Spark and DuckDB.

Everything that is not *modelled* is counted. Claims that hold at any settings are required.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from braid_lab.common.claims import ClaimRegistry, Finding, judge, judge_reading
from braid_lab.shared_ring.experiments import QueryAnswers, compute_imbalance

_FLIGHTS = (
    "{queries} dashboards over {streams} streams, {days} days of flights of {month} in {batches} "
    "batches; Chain on Spark, "
)
_ANSWERED = f"{_FLIGHTS}on a ring of {{hosts}} hosts, beside each query by DuckDB"
_ALONE = f"{_FLIGHTS}on {{hosts}} host, all queries in one run and each in its own"
_SELECTED = "windows of {windows} s, the last with a selection of {passing}"
_COMPUTED = (
    "for {nodes:range} nodes; {streams} streams of {rate} tuples/s, "
    f"σ = {{sigma}}, {_SELECTED}"
)
SETTINGS = {
    "18.2": _ANSWERED,
    "19.2, Theorem 11": _ANSWERED,
    "19.2, Theorem 12": _ALONE,
    "19.2, Theorem 13": _ALONE,
    "20.1": "the engine's bitmaps, on the book's example: {queries} queries over {streams} "
    "streams, a tuple in every slice",
    "21.3": "Chain on a ring of {hosts} hosts, on Spark, beside the same tuples in equal stretches "
    f"of age; {{streams}} streams of {{rate}} tuples/s, {_SELECTED}; the last {{batch:count}} of "
    "{batches} batches of a second, seed {seed}",
    "Eq. 21.1": f"computed by Eq. 21.1 {_COMPUTED}",
    "Eq. 21.2": f"computed by Eq. 21.2 {_COMPUTED}, T_n of {{hop_ms:range}} ms",
}
CLAIMS = ClaimRegistry("Wang 2008, III", SETTINGS)
BALANCED = 1.5
"""The fullest host over the mean, below which state counts as balanced."""


@CLAIMS.claim(
    "20.1",
    "A result from B_2 and C_3 has T = (111, 110, 010) and goes to q2 alone",
    is_required=True,
)
def bitmaps_claim(routed: Mapping[str, tuple[str, ...]]) -> Finding:
    """Section 20.1: the queries that a result serves; ``routed`` is of ``route_example``."""
    *members, product = routed["a1 b2 c3"]
    result = f"T = ({', '.join(members)}), product {product}"
    finding = judge(result, (*members, product) == ("111", "110", "010", "010"))
    return replace(finding, ran={"queries": len(product), "streams": len(members)})


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
    return replace(judge(result, answers.actual == answers.expected), ran=answers.values)


@CLAIMS.claim(
    "18.2",
    "Every joined result answers at least one query, and is made once",
    is_required=True,
)
def each_result_once_claim(answers: QueryAnswers, counts: Mapping[str, float]) -> Finding:
    """Section 18.2: every joined result answers at least one query, and is made once."""
    wanted = len(set().union(*answers.expected.values()))
    result = f"{counts['results']:,} results made, {wanted:,} wanted by one query or more"
    return replace(judge(result, counts["results"] == wanted), ran=answers.values)


@CLAIMS.claim(
    "19.2, Theorem 12",
    "Theorem 12: the state holds what some query needs, each tuple once, and no more",
    is_required=True,
    setting=f"{_FLIGHTS}on a ring of {{hosts}} hosts, its tuples beside those that DuckDB counts",
)
def state_claim(use: pd.DataFrame, hours: float) -> Finding:
    """Theorem 12: the state holds what some query needs and no more, except for whole blocks.

    ``use`` is from ``state_usage``; a batch has ``hours`` hours.
    """
    held_by = [k for k in use if isinstance(k, int) and (use["held"] <= use[k]).all()]
    held, needed = use["held"].mean(), use["of use"].mean()
    result = (
        f"{held:,.0f} tuples held at the mean, {needed:,.0f} of use: {held / needed - 1:.0%} more"
    )
    late = min(held_by, default=0)
    reason = (
        f"but for whole blocks: no more at any time than with windows that are {late * hours:g} "
        f"hours longer, as tuples leave with theirs (a batch is {hours:g} hours), and when all "
        "other streams have come so far"
    )
    has_all = (use["held"] >= use["of use"]).all()
    return judge_reading(result, has_all and bool(held_by), reason)


@dataclass(frozen=True)
class IsolatedCosts:
    """Costs of the queries in one run, and the sum of their costs in separate runs.

    ``costs`` are those of ``compare_isolated``; the first row is the shared run.
    """

    costs: pd.DataFrame

    @cached_property
    def shared(self) -> pd.Series:
        """Costs of the shared run."""
        return self.costs.iloc[0]

    @cached_property
    def isolated(self) -> pd.Series:
        """The sums of those of separate runs."""
        return self.costs.iloc[1:].sum(numeric_only=True)

    def savings_factor(self, what: str) -> float:
        """Return the ratio of isolated to shared cost."""
        return float(self.isolated[what] / self.shared[what])


@CLAIMS.claim(
    "19.2, Theorem 12",
    "Theorem 12: sharing needs less state than the queries alone",
    is_required=True,
)
def least_state_claim(cost_sums: IsolatedCosts) -> Finding:
    """Theorem 12: sharing needs less state than the queries alone."""
    texts = [
        f"{cost_sums.shared[what]:,.0f} {name} against {cost_sums.isolated[what]:,.0f} alone "
        f"({cost_sums.savings_factor(what):.1f} times)"
        for what, name in (("held_mean", "tuples"), ("of use", "of use"))
    ]
    holds = all(
        cost_sums.shared[what] < cost_sums.isolated[what] for what in ("held_mean", "of use")
    )
    return judge("; ".join(texts), holds)


@CLAIMS.claim(
    "19.2, Theorem 13",
    "Theorem 13: sharing makes fewer probes than the queries alone",
    is_required=True,
)
def fewest_probes_claim(cost_sums: IsolatedCosts) -> Finding:
    """Theorem 13: sharing makes fewer probes than the queries alone."""
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
    setting=f"{_FLIGHTS}on a ring of {{ring}} hosts and on {{hosts}}",
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
    return replace(judge(result, off < 0.01, reason), ran={"ring": hosts})


@CLAIMS.claim("21.3", "With regard to selectivities, state is balanced among the hosts")
def balance_claim(balances: pd.DataFrame) -> Finding:
    """Section 21.3: with regard to selectivities, state is balanced among the hosts.

    The claim compares the fullest host's share of the mean, in equal stretches of age and by
    selectivity. ``balances`` are from ``compare_balances``, of steady batches.
    """
    before, after = compute_imbalance(balances)
    result = (
        f"the fullest host has {before:.2f} times the mean in equal stretches of age, {after:.2f} "
        "times by selectivity"
    )
    reading = (
        f"no host holds {BALANCED:g} times the mean; the book prints no bound. The rest is tuples "
        "that wait for their block to age, a second on slices of several"
    )
    return judge_reading(result, after < BALANCED, reading)


@CLAIMS.claim("21.3", "Sharing out by selectivities evens the hosts out", is_required=True)
def selectivity_balance_claim(balances: pd.DataFrame) -> Finding:
    """Section 21.3: dividing state by selectivities balances the hosts."""
    before, after = compute_imbalance(balances)
    return judge(f"{before:.2f} to {after:.2f} times the mean", after < before)


@CLAIMS.claim(
    "Eq. 21.1",
    "Selections pushed in lower the work of a tuple at every ring length (modelled)",
    is_required=True,
)
def selection_push_down_claim(lengths: pd.DataFrame) -> Finding:
    """Eq. 21.1: selections pushed in lower the work of a tuple at every ring length.

    ``lengths`` are from ``length_table``.
    """
    by = lengths.groupby(["nodes", "selections"])["work_modelled"].first().unstack()
    less = by["pulled up"] / by["pushed in"]
    result = f"{less.min():.1f} to {less.max():.1f} times less"
    reason = (
        "ours: it follows from the equation, in which the selections have a factor of one at most"
    )
    return judge(result, (less > 1).all(), reason)


@CLAIMS.claim(
    "Eq. 21.2",
    "More nodes lower the processing part; some length between is best (modelled)",
    is_required=True,
)
def length_claim(lengths: pd.DataFrame) -> Finding:
    """Eq. 21.2: neither the shortest nor the longest ring responds first, at any T_n."""
    share, latency = (
        lengths.pivot(index="nodes", columns=["selections", "hop"], values=f"{what}_modelled")
        for what in ("share", "latency")
    )
    best = latency.idxmin()
    is_inner = ((best > latency.index[0]) & (best < latency.index[-1])).all()
    falls = (share.diff().dropna() < 0).all(axis=None)
    each = [f"{n} nodes {name} at {1e3 * hop:g} ms" for (name, hop), n in best.items()]
    return judge(f"least at {', '.join(each)}", is_inner and falls, "less work wants fewer nodes")


@dataclass(frozen=True)
class SharedRingFigures:
    """The data behind the claims.

    - ``routed``: the book's example, by ``route_example``.
    - ``answers``: results of the dashboards.
    - ``counts``: counts of the run on ``hosts`` hosts.
    - ``use``: stored and needed tuples by batches of ``hours`` hours.
    - ``costs``: from ``compare_isolated``; ``has_all_queries``: whether it has all queries.
    - ``balances``: from ``compare_balances``, of steady batches.
    - ``lengths``: Eq. 21.1 and 21.2.
    """

    routed: Mapping[str, tuple[str, ...]]
    answers: QueryAnswers
    counts: Mapping[str, float]
    hosts: int
    use: pd.DataFrame
    hours: float
    costs: pd.DataFrame
    has_all_queries: bool
    balances: pd.DataFrame
    lengths: pd.DataFrame

    @cached_property
    def cost_sums(self) -> IsolatedCosts:
        """Costs of one run beside the sum of separate runs."""
        return IsolatedCosts(self.costs)
