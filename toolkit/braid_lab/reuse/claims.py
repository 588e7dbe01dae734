"""The claims of Seshadri 2008 that can be tested without its experiments.

All is modelled. Others are in ``lattice_claims`` and ``planning_claims``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import pandas as pd
from braid.hub.query_parser import parse_stream_query
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import DeployedQuery, Deployment, NewOperator, ReusedOperator
from braid.papers.reuse.planner import Decision, Planner, PlanningService
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.result_rates import Rates

from braid_lab.common.claims import (
    ClaimRegistry,
    Finding,
    format_values,
    judge,
    judge_reading,
    leave_untested,
)
from braid_lab.reuse import lattice_claims, planning_claims
from braid_lab.reuse.experiments import relative_to_baseline
from braid_lab.reuse.paper_example import Q1, Q2, figure_1_example
from braid_lab.reuse.scenario import workload_schemas
from braid_lab.workloads.query_texts import airline_workload

NETWORK = "{nodes} nodes in {network_regions} regions"
SURFACE = (
    f"the planner, policies {{strategy}}, on {NETWORK}; {{queries}} queries of ours by workload "
    "({workload}), sinks {sinks}, selectivities of their joins times {selectivity}; seed {seed}"
)
"""The template of the setting of a savings surface."""
CLAIMS = ClaimRegistry("Seshadri 2008", {"5": SURFACE})


@dataclass(frozen=True)
class ReuseFigures:
    """Results of the studies: ``usage`` by workload, and those of ``experiments``.

    ``surface`` has the savings of all workloads, by selectivity and number of queries.
    """

    usage: Mapping[str, pd.DataFrame]
    surface: pd.DataFrame
    search: pd.DataFrame
    replanned: pd.DataFrame
    spread: pd.DataFrame
    lifetimes: pd.DataFrame
    planners: pd.DataFrame
    deployments: pd.DataFrame | None = None
    """Deployments of a day at the airport, and of queries submitted ``again``; None: not played."""


SINKS = ("SINK4", "SINK1")
"""Where Q2 is asked."""
FACTORS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""By which the rates of Fig. 1's streams, and the selectivities of its joins, are multiplied."""


def plan_figure_1(
    rate: float = 1.0, selectivity: float = 1.0
) -> tuple[PlanningService, dict[str, Decision]]:
    """Deploy Q1 on figure 1's network. Return the decisions for Q2 at SINK4 and SINK1.

    ``rate`` and ``selectivity`` are factors of those of ``figure_1_example``.
    """
    network, rates, at = figure_1_example()
    schemas = workload_schemas(airline_workload())
    model = CostModel(network, _scale_rates(rates, rate, selectivity))
    service = PlanningService(Planner(model), Deployment(at))
    service.submit_query(
        DeployedQuery("Q1", parse_stream_query(Q1, schemas, "ts").definition, "SINK3", sql=Q1)
    )
    q2 = q2_definition()
    plans = {
        sink: service.planner.plan_query(service.deployment, DeployedQuery("Q2", q2, sink))
        for sink in SINKS
    }
    return service, plans


def _scale_rates(rates: Rates, rate: float, selectivity: float) -> Rates:
    streams = {
        name: replace(stream, tuples_per_second=rate * stream.tuples_per_second)
        for name, stream in rates.streams.items()
    }
    return Rates(streams, {text: selectivity * of for text, of in rates.selectivity.items()})


def q2_definition() -> Definition:
    """Return the definition of Q2."""
    return parse_stream_query(Q2, workload_schemas(airline_workload()), "ts").definition


@CLAIMS.claim(
    "2.1, Fig. 1",
    "Q2 may reuse FLIGHTS ⋈ CHECK-INS at N1 when asked at SINK4, and have its own at SINK1",
    is_required=True,
    setting="the planner on the {nodes} nodes of Fig. 1's network, with links and rates of ours; "
    "Q1 at SINK3, then Q2 at {sinks}; rates and selectivities times {factors}",
)
def figure_1_claim() -> Finding:
    """Section 2.1: whether Q2 reuses Q1's operator depends on its sink."""
    decided = {f: _decide_figure_1(*f) for f in product(FACTORS, FACTORS)}
    both = [f for f, at in decided.items() if at == ("at N1", "own")]
    shared = sum(at == ("at N1", "at N1") for at in decided.values())
    neither = sum(at == ("own", "own") for at in decided.values())
    result = f"SINK4: {decided[1, 1][0]}; SINK1: {decided[1, 1][1]} (modelled)"
    reading = (
        "with links, rates and selectivities of ours, of which the paper prints none: so in "
        f"{len(both)} of {len(decided)} settings; in {shared}, where little is sent, Q2 reuses it "
        f"at both, and in {neither}, where joins emit most, at neither"
    )
    ran = {"factors": FACTORS, "sinks": SINKS, "nodes": len(figure_1_example()[0].nodes)}
    finding = judge_reading(result, (1, 1) in both, reading)
    return replace(finding, ran=ran)


def _decide_figure_1(rate: float, selectivity: float) -> tuple[str, ...]:
    """Return what Q2 gets at each sink: an operator of its "own", or one by its place."""
    _, plans = plan_figure_1(rate, selectivity)
    trees = [plans[sink].tree for sink in SINKS]
    assert all(isinstance(tree, NewOperator | ReusedOperator) for tree in trees)
    return tuple(f"at {tree.node}" if isinstance(tree, ReusedOperator) else "own" for tree in trees)


MANY = 800
"""Number of queries that decides claims about many ones."""
PLACE = ["workload", "sinks", "selectivity"]
"""The columns of a savings surface that tell its rows by number of queries apart."""


def _format_surface(surface: pd.DataFrame, column: str) -> str:
    """Return what is left of a quantity, by workload, output / input and number of queries."""
    rows = surface.sort_values("queries")
    return "; ".join(
        f"{workload}, sinks {sinks}, output / input {part['output'].median():.2g}: "
        f"{format_values(part.set_index('queries')[column])}"
        for (workload, sinks, _), part in rows.groupby(PLACE, sort=False)
    )


def _describe_setting(row: pd.Series) -> str:
    """Return the policy and the setting of a row of a savings surface."""
    return (
        f"policy 'relaxed' against no reuse, {int(row['queries'])} queries of the "
        f"{row['workload']} workload, sinks {row['sinks']}, joins that emit "
        f"{row['output']:.2g} of what they take in"
    )


def _count_settings(surface: pd.DataFrame, column: str) -> str:
    """Return in how many settings, with most queries, a tenth of a quantity is left and less."""
    left = surface.loc[surface["queries"] == surface["queries"].max(), column]
    return f"{(left <= 0.1).sum()} of {len(left)} settings"


@CLAIMS.claim("5", "Network usage falls by as much as 96%")
def network_usage_claim(surface: pd.DataFrame) -> Finding:
    """Section 5: "reduce network usage by as much as 96%", over all settings tried."""
    result = f"left of it (modelled): {_format_surface(surface, 'network_usage')}"
    if surface["queries"].max() < MANY:
        return leave_untested(result, f"it takes {MANY} queries")
    best = surface.loc[surface["network_usage"].idxmin()]
    most = round(100 * (1 - best["network_usage"]))
    many = surface[surface["queries"] == best["queries"]]
    saved = 1 - many["network_usage"]
    reading = (
        f"by {most}% with {_describe_setting(best)}; to a tenth and less in "
        f"{_count_settings(many, 'network_usage')} of the sweep, by {saved.median():.0%} in "
        "their median; where joins emit more than they take in, by "
        f"{saved[many['selectivity'] == 1].max():.0%} at most. The paper's "
        "workloads are not to be had, and the setting with all sinks in one region was "
        "added to look for its figure"
    )
    return judge_reading(result, most >= 96, reading)


@CLAIMS.claim("5", "Network usage falls with reuse")
def less_usage_claim(surface: pd.DataFrame) -> Finding:
    """Section 5: network usage falls, in each setting."""
    used = surface["network_usage"]
    result = f"{used.min():.2f} to {used.max():.2f} of no reuse (modelled)"
    return judge(result, (used < 1).all())


@CLAIMS.claim("beyond the paper", "More is saved with more queries", setting=SURFACE)
def more_queries_claim(surface: pd.DataFrame) -> Finding:
    """Section 5.1 aims at "a high number" of queries; how savings grow with it is not printed."""
    ends = surface.sort_values("queries").groupby(PLACE)["network_usage"]
    falls = ends.last() / ends.first()
    result = (
        f"usage left at {surface['queries'].max()} queries over that left at "
        f"{surface['queries'].min()}: {falls.min():.2f} to {falls.max():.2f} (modelled)"
    )
    reading = (
        f"in {(falls < 1).sum()} of {len(falls)} settings; in the median it is {falls.median():.2f}"
    )
    return judge_reading(result, falls.median() < 1, reading)


@CLAIMS.claim("5", "Computation falls by more than an order of magnitude")
def computation_claim(surface: pd.DataFrame) -> Finding:
    """Section 5: "computation costs can be reduced by more than an order of magnitude"."""
    result = (
        f"left of tuples and intermediate results: {_format_surface(surface, 'indexed')}; of pairs "
        f"compared: {_format_surface(surface, 'compared')} (modelled)"
    )
    if surface["queries"].max() < MANY:
        return leave_untested(result, f"it takes {MANY} queries")
    touched, compared = (surface.loc[surface[c].idxmin()] for c in ("indexed", "compared"))
    reading = (
        f"as tuples and intermediate results to {touched['indexed']:.3f}, "
        f"{_describe_setting(touched)}; as pairs compared by nested loops to "
        f"{compared['compared']:.3f}, {_describe_setting(compared)}; to less than a tenth in "
        f"{_count_settings(surface, 'indexed')}, and as pairs in "
        f"{_count_settings(surface, 'compared')}. "
        "Where joins emit more than they take in, as many tuples are made as without reuse"
    )
    return judge_reading(result, max(touched["indexed"], compared["compared"]) < 0.1, reading)


@CLAIMS.claim(
    "1",
    "Stream query processing throughput improves by an order of magnitude",
    setting=SURFACE,
)
def throughput_claim(surface: pd.DataFrame) -> Finding:
    """Section 1: "an order of magnitude improvement in stream query processing throughput"."""
    result = (
        f"left of the work: {_format_surface(surface, 'indexed')}; of that of the busiest node: "
        f"{_format_surface(surface, 'busiest')} (modelled)"
    )
    if surface["queries"].max() < MANY:
        return leave_untested(result, f"it takes {MANY} queries")
    summed, busiest = (surface.loc[surface[c].idxmin()] for c in ("indexed", "busiest"))
    reading = (
        "as the tuples and intermediate results that the same answers take: "
        f"{1 / summed['indexed']:.3g} times fewer in the sum of all nodes, "
        f"{_describe_setting(summed)}; {1 / busiest['busiest']:.3g} times fewer on the busiest "
        f"node, {_describe_setting(busiest)}, where it is to a tenth and less in "
        f"{_count_settings(surface, 'busiest')}. The paper measures throughput on a prototype, "
        "with workloads that are not to be had"
    )
    holds = busiest["busiest"] <= 0.1
    quoted = '"an order of magnitude improvement" (section 1): '
    return judge_reading(result, holds, reading if holds else quoted + reading)


@CLAIMS.claim("5", "The increase in latency is negligible")
def latency_claim(surface: pd.DataFrame) -> Finding:
    """Section 5: latency hardly rises, in each setting."""
    waits = surface["latency"]
    result = f"{waits.min():.3f} to {waits.max():.3f} of that without reuse (modelled)"
    reading = (
        f"of the mean latency on the network, which rises by {waits.max() - 1:.1%} at most and by "
        f"{waits.median() - 1:.1%} in the median setting; negligible is read as less than a tenth"
    )
    return judge_reading(result, waits.max() <= 1.1, reading)


@CLAIMS.claim(
    "1",
    "Operators that are similar in part are reused to advantage",
    setting=f"the planner, policies {{strategy}}, on {NETWORK}; {{queries}} queries of ours by "
    "workload ({workload}); seed {seed}",
)
def partial_similarity_claim(usage: Mapping[str, pd.DataFrame]) -> Finding:
    """Section 1: relaxing operators saves more than reusing those that already serve."""
    kinds = ["relaxed", "contained", "exact"]
    use = {
        workload: relative_to_baseline(rows, "network_usage_modelled")[kinds]
        for workload, rows in usage.items()
    }
    result = "; ".join(
        f"{workload}, {kind}: {format_values(left[kind])}"
        for workload, left in use.items()
        for kind in kinds
    )
    is_ahead = all((left["relaxed"] < left["contained"]).all() for left in use.values())
    finding = judge(f"usage left, by number of queries: {result} (modelled)", is_ahead)
    return replace(finding, ran={"strategy": (*kinds, "separate")})


@CLAIMS.claim(
    "2.1",
    "The benefit from reuse depends on network locality",
    setting=f"the planner, policies {{strategy}}, on {NETWORK}; {{queries}} queries of the "
    "{workload} workload of ours with sinks in {regions} regions; seeds {seeds}",
)
def spread_claim(spread: pd.DataFrame) -> Finding:
    """Section 2.1: the nearer to each other queries are asked, the more is saved."""
    table = spread.pivot(
        index="regions", columns=["strategy", "seed"], values="network_usage_modelled"
    )
    left, forced = (table[how] / table["separate"] for how in ("relaxed", "always"))
    near, far = left.loc[left.index.min()], left.loc[left.index.max()]
    result = (
        f"usage left, by regions with sinks, mean of seeds: {format_values(left.mean(axis=1))}; if "
        f"whatever can be is reused: {format_values(forced.mean(axis=1))} (modelled)"
    )
    return judge(result, ((near < far) & (near < 1)).all())


@CLAIMS.claim(
    "2.2",
    "Lifetimes are taken into account in minimising cost over time",
    setting=f"the planner, policy relaxed, on {NETWORK}; {{queries}} queries of the {{workload}} "
    "workload of ours, {arrival_seconds} s apart, that live {minutes} minutes in the mean; seeds "
    "{seeds}",
)
def lifetimes_claim(lifetimes: pd.DataFrame) -> Finding:
    """Section 2.2: the cost over time, with long-running queries in mind."""
    costs = lifetimes.pivot(index=["minutes", "seed"], columns="lifetimes", values="cost_modelled")
    ratio = costs["known"] / costs["unknown"]
    by_mean = ratio.groupby("minutes").mean()
    result = f"cost with known lifetimes over that with unknown ones: {format_values(by_mean)}"
    reading = (
        f"in the mean; in {(ratio < 1).sum()} of {len(ratio)} settings, {ratio.min():.3f} to "
        f"{ratio.max():.3f}: each query is planned for the least cost at its arrival, which does "
        "not foresee those that come. The paper gives no figure"
    )
    return judge_reading(f"{result} (modelled)", (by_mean < 1).all(), reading)


for part in (lattice_claims, planning_claims):
    CLAIMS.include_claims(part.CLAIMS)
