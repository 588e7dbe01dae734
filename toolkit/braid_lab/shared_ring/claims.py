"""The claims of Wang 2008, Part III, chapters 18 to 21, against runs on Spark and DuckDB.

Everything that is not *modelled* is counted. Claims that hold at any settings are required.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from braid_lab.common.claims import ClaimRegistry, Finding, judge, judge_reading
from braid_lab.shared_ring.experiments import AS_RUN, EVENLY, QueryAnswers, compute_imbalance

_FLIGHTS = (
    "{queries} dashboards over {streams} streams, windows of {window_hours:range} h, {selecting} "
    "with selections; {days} days of flights and weather of {month} in {batches} batches; Chain "
    "(Mem-Opt) on Spark, "
)
_ANSWERED = f"{_FLIGHTS}on a ring of {{hosts}} hosts, beside each query by DuckDB"
_ALONE = f"{_FLIGHTS}on {{hosts}} host, all queries in one run and each in its own"
_SELECTED = "windows of {windows} s, the last with a selection of {passing} of each stream"
SETTINGS = {
    "18.1": _ALONE,
    "18.2": _ANSWERED,
    "19.2, Theorem 11": _ANSWERED,
    "20.1": "the engine's bitmaps, on the book's example: {queries} queries over {streams} "
    "streams, a tuple in every slice",
    "21.3": "Chain (Mem-Opt) on a ring of {hosts} hosts, on Spark, beside the same tuples in equal "
    f"stretches of age; {{streams}} Poisson streams of {{rate}} tuples/s, {_SELECTED}; the last "
    "{batch:count} of {batches} batches of a second, seeds {seed}",
    "Eq. 21.2": "computed by Eq. 21.1 and Eq. 21.2 for the last node, i = N, of {nodes:range}; "
    f"{{streams}} streams of {{rate}} tuples/s, S⋈ = {{sigma}}, {_SELECTED}; T_j = {{pair_us}} µs "
    "(the {join} join), T_s = {send_ms} ms, T_n of {hop_ms} ms",
}
CLAIMS = ClaimRegistry("Wang 2008, III", SETTINGS)
BALANCED = 1.5
"""The fullest host over the mean, below which state counts as balanced."""
SAME = 0.01
"""The part of the pairs by which two runs may differ that compare "as much"."""


@CLAIMS.claim(
    "20.1",
    "A result from B_2 and C_3, for a new tuple of A, has T = (111, 110, 010) and goes to q2 alone",
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
    return replace(judge(result, answers.actual == answers.expected, result), ran=answers.values)


@CLAIMS.claim(
    "18.2, Theorem 8",
    "Every joined result answers at least one query, and is made once",
    is_required=True,
)
def each_result_once_claim(answers: QueryAnswers, counts: Mapping[str, float]) -> Finding:
    """Section 18.2: every joined result answers at least one query, and is made once."""
    actual, wanted = (set().union(*of.values()) for of in (answers.actual, answers.expected))
    result = (
        f"{counts['results']:,} results written, after pairs that serve no query are dropped; "
        f"{len(wanted):,} wanted by some query"
    )
    is_each_once = counts["results"] == len(wanted) and actual == wanted
    return replace(judge_reading(result, is_each_once, result), ran=answers.values)


@CLAIMS.claim(
    "19.2, Theorem 12",
    "Theorem 12: the state holds what some query needs, and no more",
    is_required=True,
    setting=f"{_FLIGHTS}on a ring of {{hosts}} hosts, its tuples beside those that DuckDB counts",
)
def state_claim(use: pd.DataFrame, hours: float) -> Finding:
    """Theorem 12: the state holds what some query needs, and what windows need a little longer.

    ``use`` is from ``state_usage``; a batch has ``hours`` hours.
    """
    held_by = [k for k in use if isinstance(k, int) and (use["held"] <= use[k]).all()]
    held, needed = use["held"].mean(), use["of use"].mean()
    result = (
        f"{held:,.0f} tuples held in the mean of the batches, {needed:,.0f} needed, "
        f"{held / needed - 1:.0%} more"
    )
    late = min(held_by, default=0)
    reading = (
        f"by number of tuples: {result}; at no batch fewer than needed, nor more than windows need "
        f"that are {late * hours:g} hours longer, {late:g} batches, where up to "
        f"{max(k for k in use if isinstance(k, int)):g} batches count"
    )
    has_all = (use["held"] >= use["of use"]).all()
    return judge_reading(result, has_all and bool(held_by), reading if held_by else result)


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

    def compare_costs_with_isolated(self, what: str, name: str) -> Finding:
        """Return whether sharing has less of a cost, and both figures, with its name."""
        times = self.savings_factor(what)
        result = (
            f"{self.shared[what]:,.0f} {name} against "
            f"{self.isolated[what]:,.0f} alone, in the sum of their runs, {times:.2f} times"
        )
        return judge(result, times > 1, result)


@CLAIMS.claim("18.1", "Sharing saves memory, beside the queries alone", is_required=True)
def least_state_claim(cost_sums: IsolatedCosts) -> Finding:
    """Section 18.1: sharing needs less state than the queries alone."""
    return cost_sums.compare_costs_with_isolated(
        "held_mean", "tuples held in the mean of the batches"
    )


@CLAIMS.claim(
    "18.1",
    "Sharing saves CPU, beside the queries alone: fewer {name}",
    cases=lambda: [
        {"what": "probed", "name": "probes"},
        {"what": "compared", "name": "pairs compared"},
    ],
)
def least_work_claim(cost_sums: IsolatedCosts, what: str, name: str) -> Finding:
    """Section 18.1: sharing needs fewer probes, or pairs compared, than the queries alone."""
    return cost_sums.compare_costs_with_isolated(what, name)


@CLAIMS.claim(
    "18.2",
    "The deployment does not change the probing cost: {hosts} hosts compare as much as one",
    setting=f"{_FLIGHTS}on a ring of {{ring}} hosts and on {{hosts}}",
    cases=lambda has_all_queries: [{}] if has_all_queries else [],
)
def deployment_claim(cost_sums: IsolatedCosts, counts: Mapping[str, float], hosts: int) -> Finding:
    """Section 18.2: the deployment does not change the probing cost."""
    one, ring = cost_sums.shared["compared"], counts["compared"]
    off = abs(ring / one - 1)
    result = f"{ring:,.0f} pairs on {hosts} hosts, {one:,.0f} on one: {off:.2%} apart"
    reading = f"within {SAME:.0%}: {result}"
    return replace(judge_reading(result, off < SAME, reading), ran={"ring": hosts})


@CLAIMS.claim("21.3", "With regard to selectivities, state is balanced among the hosts")
def balance_claim(balances: pd.DataFrame) -> Finding:
    """Section 21.3: with regard to selectivities, state is balanced among the hosts.

    The claim compares the fullest host's share of the mean, in equal stretches of age and by
    selectivity. ``balances`` are from ``compare_balances``, of steady batches.
    """
    by = compute_imbalance(balances)
    pairs = ", ".join(
        f"{run:.2f} and {even:.2f}" for run, even in zip(by[AS_RUN], by[EVENLY], strict=True)
    )
    reading = (
        "the fullest host of a stream over the mean of hosts, by selectivity and in equal "
        f"stretches: {pairs} by seed, in the mean of streams and batches. The book prints no "
        f"bound: here {BALANCED:g}, and less than in equal stretches"
    )
    holds = (by[AS_RUN] < by[EVENLY]).all() and (by[AS_RUN] < BALANCED).all()
    return judge_reading(pairs, holds, reading)


@CLAIMS.claim(
    "Eq. 21.2",
    "More nodes lower a node's processing part; some length between is best (modelled)",
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
    each = "; ".join(
        f"{', '.join(map(str, few))} nodes with selections {name}"
        for name, few in best.groupby("selections")
    )
    least = share.iloc[-1] / share.iloc[0]
    result = (
        f"best by T_n: {each}; the processing part, L / N, with {share.index[-1]} nodes is "
        f"{least.min():.2%} to {least.max():.2%} of that with {share.index[0]}"
        + (", and falls with each node more" if falls else "")
    )
    return judge(result, is_inner and falls, result)


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
