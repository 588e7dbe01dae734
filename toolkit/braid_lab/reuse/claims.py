"""The claims of Seshadri 2008 that can be tested without its experiments.

All is modelled, except seconds, which are measured, and the operators of a day at the airport,
which are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from braid.hub.query_parser import parse_stream_query
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import DeployedQuery, Deployment, NewOperator, ReusedOperator
from braid.papers.reuse.planner import Decision, Planner, PlanningService
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.reuse_lattice import windows_contain

from braid_lab.common.claims import (
    Case,
    ClaimRegistry,
    Finding,
    format_values,
    judge,
    judge_reading,
    leave_untested,
)
from braid_lab.reuse.experiments import relative_to_baseline
from braid_lab.reuse.paper_example import Q1, Q2, figure_1_example
from braid_lab.reuse.scenario import workload_schemas
from braid_lab.workloads.query_texts import airline_workload

SURFACE = (
    "the planner, relaxed and separate, on 124 nodes in eight regions; up to 800 queries of each "
    "of two workloads of ours, selectivities of their joins times 1 to 0.0005"
)
SETTINGS = {
    "1": "the planner on 124 nodes in eight regions; 24 queries planned anew, 100 asked of each of "
    "two workloads of ours",
    "2.1": "the planner on 124 nodes in one to eight regions; 25 queries of an airline",
    "2.1, Fig. 1": "the planner on Fig. 1's network, with links and rates of ours; Q1 and Q2",
    "2.2": "the planner on 124 nodes; 50 queries with lifetimes",
    "beyond the paper": "the exact planner, Top-Down and Bottom-Up over clusters of 8 to 32 nodes "
    "and two simple ones, on 124 nodes; 10 queries each of two to five streams",
    "4": "ReuseLattice beside a linear scan; 40 to 4000 operators, 20 searches (measured)",
    "4.2, Fig. 2": "computed: containment of windows, on the seven keys of Fig. 2",
    "5": f"{SURFACE}; a day of 120 flights where times are measured",
}
CLAIMS = ClaimRegistry("Seshadri 2008", SETTINGS)


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


def plan_figure_1() -> tuple[PlanningService, dict[str, Decision]]:
    """Deploy Q1 on figure 1's network. Return the decisions for Q2 at SINK4 and SINK1."""
    network, rates, at = figure_1_example()
    schemas = workload_schemas(airline_workload())
    service = PlanningService(Planner(CostModel(network, rates)), Deployment(at))
    service.submit_query(
        DeployedQuery("Q1", parse_stream_query(Q1, schemas, "ts").definition, "SINK3", sql=Q1)
    )
    q2 = q2_definition()
    plans = {
        sink: service.planner.plan_query(service.deployment, DeployedQuery("Q2", q2, sink))
        for sink in ("SINK4", "SINK1")
    }
    return service, plans


def q2_definition() -> Definition:
    """Return the definition of Q2."""
    return parse_stream_query(Q2, workload_schemas(airline_workload()), "ts").definition


@CLAIMS.claim(
    "2.1, Fig. 1",
    "Q2 reuses FLIGHTS ⋈ CHECK-INS at N1 when asked at SINK4, and has its own at SINK1",
    is_required=True,
)
def figure_1_claim() -> Finding:
    """Section 2.1: whether Q2 reuses Q1's operator depends on its sink."""
    _, plans = plan_figure_1()
    four, one = plans["SINK4"].tree, plans["SINK1"].tree
    holds = isinstance(four, ReusedOperator) and isinstance(one, NewOperator) and four.node == "N1"
    result = f"SINK4: {type(four).__name__}; SINK1: {type(one).__name__} (modelled)"
    reason = "links and rates are ours, chosen so"
    return judge(result, holds, reason)


FIGURE_2 = ((5, 1), (5, 3), (5, 2), (6, 2), (6, 4), (5, 6), (4, 2))
"""The keys of figure 2: RANGE and SLIDE."""


@CLAIMS.claim(
    "4.2, Fig. 2",
    "(RANGE, SLIDE) keys are ordered by containment; (5, 1) is a greatest one",
    is_required=True,
)
def figure_2_claim() -> Finding:
    """Figure 2: the keys of a leaf node by containment."""

    def holds(a: tuple[int, int], b: tuple[int, int]) -> bool:
        return windows_contain(((a[0],), frozenset([a[1]])), ((b[0],), frozenset([b[1]])))

    below = {a: {b for b in FIGURE_2 if a != b and holds(a, b)} for a in FIGURE_2}
    want = {(5, 2), (5, 3), (5, 6), (4, 2)}
    greatest = [a for a in FIGURE_2 if not any(a in held for held in below.values())]
    result = f"greatest: {greatest}; (5, 1) holds {sorted(below[5, 1])}"
    good = below[5, 1] == want and set(greatest) == {(5, 1), (6, 2)}
    return judge(result, good)


def _list_workloads(usage: Mapping[str, pd.DataFrame]) -> list[Case]:
    return [{"workload": workload, "rows": rows} for workload, rows in usage.items()]


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
        f"by {most}% with {_describe_setting(best)}; by 90% and more in {(saved >= 0.9).sum()} of "
        f"{len(many)} settings of the sweep, by {saved.median():.0%} in their median; where joins "
        f"emit more than they take in, by {saved[many['selectivity'] == 1].max():.0%} at most. The "
        "paper's workloads are not to be had, and the setting with all sinks in one region was "
        "added to look for its figure"
    )
    return judge_reading(result, most >= 96, reading)


@CLAIMS.claim("5", "Network usage falls with reuse, and further with more queries")
def more_queries_claim(surface: pd.DataFrame) -> Finding:
    """Section 5: network usage falls; with the number of queries, which the paper calls high."""
    ends = surface.sort_values("queries").groupby(PLACE)["network_usage"]
    falls, used = ends.last() / ends.first(), surface["network_usage"]
    result = (
        f"{used.min():.2f} to {used.max():.2f} of no reuse; at {surface['queries'].max()} queries "
        f"{falls.min():.2f} to {falls.max():.2f} of that at {surface['queries'].min()} (modelled)"
    )
    reason = "the second in the median of the settings: where almost all is saved, no more is"
    return judge(result, (used < 1).all() and falls.median() < 0.9, reason)


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
        f"{compared['compared']:.3f}, {_describe_setting(compared)}. Where joins emit "
        "more than they take in, as many tuples are made as without reuse"
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
        f"node, {_describe_setting(busiest)}. The paper measures throughput on a prototype, with "
        "workloads that are not to be had"
    )
    holds = summed["indexed"] <= 0.1
    quoted = '"an order of magnitude improvement" (section 1): '
    return judge_reading(result, holds, reading if holds else quoted + reading)


@CLAIMS.claim("5", "The increase in latency is negligible", cases=_list_workloads)
def latency_claim(workload: str, rows: pd.DataFrame) -> Finding:
    """Section 5: latency hardly rises."""
    wait = relative_to_baseline(rows, "latency_modelled")["relaxed"]
    last = wait[wait.index.max()]
    result = f"{workload}: {last:.2f} of that without reuse (modelled)"
    return judge(result, last <= 1.1, "the network's part; at most a tenth")


@CLAIMS.claim(
    "1", "Operators that are similar in part are reused to advantage", cases=_list_workloads
)
def partial_similarity_claim(workload: str, rows: pd.DataFrame) -> Finding:
    """Section 1: relaxing operators saves more than reusing those that already serve."""
    use = relative_to_baseline(rows, "network_usage_modelled")
    kinds = "; ".join(
        f"{kind} {format_values(use[kind])}" for kind in ("relaxed", "contained", "exact")
    )
    most = use.index.max()
    never_behind = (use["relaxed"] <= use["contained"]).all()
    ahead = use["relaxed"][most] < use["contained"][most]
    return judge(f"{workload}, of no reuse: {kinds} (modelled)", never_behind and ahead)


@CLAIMS.claim("4", "The lattice finds reuse fast in a large space of operators")
def search_claim(search: pd.DataFrame) -> Finding:
    """Section 4: the lattice makes the search of many operators fast."""
    table = search.pivot(index="operators", columns="search", values="seconds_measured")
    times = table["linear"] / table["lattice"]
    text = f"times quicker than a linear scan, by operators: {format_values(times)} (measured)"
    return judge(text, times.iloc[-1] > 10)


@CLAIMS.claim("1", "Planning all queries anew at each arrival has inordinately large overheads")
def replanning_claim(replanned: pd.DataFrame) -> Finding:
    """Section 1: planning all queries again at each arrival is inordinately expensive."""
    rows = replanned.set_index("planned")
    times = rows["seconds_measured"]["all anew"] / rows["seconds_measured"]["one by one"]
    dearer = rows["cost_modelled"]["one by one"] / rows["cost_modelled"]["all anew"]
    text = f"{times:.0f} times the time (measured); one by one costs {dearer:.2f} (modelled)"
    return judge(text, times > 10)


@CLAIMS.claim("2.1", "The benefit from reuse depends on network locality")
def spread_claim(spread: pd.DataFrame) -> Finding:
    """Section 2.1: the benefit of reuse depends on network locality."""
    table = spread.pivot(index="regions", columns="strategy", values="network_usage_modelled")
    ratio = table["always"] / table["relaxed"]
    most = spread[spread["regions"] == spread["regions"].max()].set_index("strategy")
    always, none = most.loc["always"], most.loc["separate"]
    text = (
        f"reuse whatever it costs, relative to what is cheapest, by regions: {format_values(ratio)}"
    )
    reason = (
        f"with reuse whatever it costs {always['answers_modelled']:.0f} of "
        f"{always['network_usage_modelled']:.0f} bytes in transit are answers, without reuse "
        f"{none['answers_modelled']:.0f}: a join may emit more than it takes in, and then belongs "
        "where its answer goes"
    )
    return judge(f"{text} (modelled)", (ratio > 1).any(), reason)


@CLAIMS.claim("2.2", "Lifetimes are taken into account in minimising cost over time")
def lifetimes_claim(lifetimes: pd.DataFrame) -> Finding:
    """Section 2.2: the cost over time, with long-running queries in mind."""
    costs = lifetimes.set_index("lifetimes")["cost_modelled"]
    ratio = costs["known"] / costs["unknown"]
    text = f"known lifetimes cost {ratio:.3f} of unknown ones (modelled)"
    return judge(text, ratio < 1, "the paper gives no figure")


def _find_least_times(deployments: pd.DataFrame) -> pd.Series:
    """Return the batches that a deployment takes at least, by how the query is answered.

    The least of several times is the one that other processes of the machine have disturbed least.
    """
    relaxed = deployments[deployments["reuse"] == "relaxed"]
    least: pd.Series = relaxed.groupby("match")["batches_measured"].min()
    return least


@CLAIMS.claim("5", "The increase in time to deployment is negligible")
def deployment_time_claim(deployments: pd.DataFrame) -> Finding:
    """Section 5: time to deployment hardly rises (E4)."""
    batches = _find_least_times(deployments)
    result = f"least batches, by how a query is answered: {format_values(batches)} (measured)"
    reason = "each less than a batch, between two of them; the least times of each kind"
    return judge(result, (batches < 1).all(), reason)


MOST = 8
"""Maximum number of nodes of a cluster in the hierarchy that Top-Down plans over (E9)."""
TOP_DOWN = f"top-down, {MOST}"


@CLAIMS.claim(
    "beyond the paper", "No planner finds a cheaper plan than the exact one", is_required=True
)
def exact_planner_claim(planners: pd.DataFrame) -> Finding:
    """The exact planner is exact."""
    ratio = planners["ratio_modelled"]
    result = f"the least cost of any over its: {ratio.min():.3g} (modelled)"
    return judge(result, (ratio > 1 - 1e-6).all(), "without anything to reuse")


@CLAIMS.claim(
    "beyond the paper", "Top-Down over a hierarchy of clusters comes within a tenth of the best"
)
def top_down_cost_claim(planners: pd.DataFrame) -> Finding:
    """Planning over a hierarchy of clusters, as the authors do elsewhere."""
    ratio = planners.groupby("planner")["ratio_modelled"].mean()
    others = ratio.drop([n for n in ratio.index if n.startswith("top-down")])
    result = f"{ratio[TOP_DOWN]:.3g} of its cost; others {format_values(others)} (modelled)"
    reason = "Top-Down and the tenth are of the authors' other work; what it does here is ours"
    return judge(result, ratio[TOP_DOWN] <= 1.1, reason)


@CLAIMS.claim("beyond the paper", "Top-Down looks at less than a hundredth of all plans")
def top_down_search_claim(planners: pd.DataFrame) -> Finding:
    """Planning over a hierarchy examines few plans."""
    looked = planners[planners["planner"] == TOP_DOWN].set_index("streams")["looked"]
    result = f"part that is looked at, by streams: {format_values(looked)} (modelled)"
    reason = "of three streams and more; of two there is only where to join them"
    if (looked < 0.01).all():
        return judge(result, True, reason)
    return judge_reading(result, (looked[looked.index > 2] < 0.01).all(), reason)
