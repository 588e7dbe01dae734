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
from braid.papers.reuse.definition import Definition
from braid.papers.reuse.deployment import DeployedQuery, Deployment, NewOperator, ReusedOperator
from braid.papers.reuse.planner import Decision, Planner, PlanningService
from braid.papers.reuse.reuse_lattice import windows_contain

from braid_lab.common.claims import Claim, format_values, make_verdict
from braid_lab.reuse.experiments import relative_to_baseline, workload_schemas
from braid_lab.reuse.paper_example import Q1, Q2, figure_1_example
from braid_lab.workloads.query_texts import airline_workload

PAPER = "Seshadri 2008"


@dataclass(frozen=True)
class ReuseFigures:
    """Results of the studies: ``usage`` by workload, and those of ``experiments``."""

    usage: Mapping[str, pd.DataFrame]
    search: pd.DataFrame
    anew: pd.DataFrame
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


def figure_1_claim() -> Claim:
    """Section 2.1: whether Q2 reuses Q1's operator depends on its sink."""
    _, plans = plan_figure_1()
    four, one = plans["SINK4"].tree, plans["SINK1"].tree
    holds = isinstance(four, ReusedOperator) and isinstance(one, NewOperator) and four.node == "N1"
    says = "Q2 reuses FLIGHTS ⋈ CHECK-INS at N1 when asked at SINK4, and has its own at SINK1"
    found = f"SINK4: {type(four).__name__}; SINK1: {type(one).__name__} (modelled)"
    reason = "links and rates are ours, chosen so"
    return Claim(PAPER, "2.1, Fig. 1", says, found, make_verdict(holds), reason, is_required=True)


FIGURE_2 = ((5, 1), (5, 3), (5, 2), (6, 2), (6, 4), (5, 6), (4, 2))
"""The keys of figure 2: RANGE and SLIDE."""


def figure_2_claim() -> Claim:
    """Figure 2: the keys of a leaf node by containment."""

    def holds(a: tuple[int, int], b: tuple[int, int]) -> bool:
        return windows_contain(((a[0],), frozenset([a[1]])), ((b[0],), frozenset([b[1]])))

    below = {a: {b for b in FIGURE_2 if a != b and holds(a, b)} for a in FIGURE_2}
    want = {(5, 2), (5, 3), (5, 6), (4, 2)}
    says = "(RANGE, SLIDE) keys are ordered by containment; (5, 1) is a greatest one"
    greatest = [a for a in FIGURE_2 if not any(a in held for held in below.values())]
    found = f"greatest: {greatest}; (5, 1) holds {sorted(below[5, 1])}"
    good = below[5, 1] == want and set(greatest) == {(5, 1), (6, 2)}
    return Claim(PAPER, "4.2, Fig. 2", says, found, make_verdict(good), is_required=True)


def usage_claims(found: Mapping[str, pd.DataFrame]) -> list[Claim]:
    """Section 5: network usage and work fall, latency hardly rises."""
    claims = []
    for workload, rows in found.items():
        use, work = (
            relative_to_baseline(rows, c) for c in ("network_usage_modelled", "work_modelled")
        )
        wait = relative_to_baseline(rows, "latency_modelled")
        most = use.index.max()
        fell = 1 - use["relaxed"][most]
        claims += [
            Claim(
                PAPER, "5", "Network usage falls by as much as 96%",
                f"{workload}: by {fell:.0%} at {most} queries (modelled)",
                make_verdict(fell >= 0.96),
                "against no reuse, on a workload of ours; the paper's is not to be had",
            ),
            Claim(
                PAPER, "5", "Computation falls by more than an order of magnitude",
                f"{workload}: to {work['relaxed'][most]:.2f} of its tuples (modelled)",
                make_verdict(work["relaxed"][most] < 0.1),
                "tuples that operators take in and give out",
            ),
            Claim(
                PAPER, "5", "The increase in latency is negligible",
                f"{workload}: {wait['relaxed'][most]:.2f} of that without reuse (modelled)",
                make_verdict(wait["relaxed"][most] <= 1.1), "the network's part; at most a tenth",
            ),
            Claim(
                PAPER, "1", "Operators that are similar in part are reused to advantage",
                f"{workload}, of no reuse: relaxed {format_values(use['relaxed'])}; contained "
                f"{format_values(use['contained'])}; exact {format_values(use['exact'])} "
                "(modelled)",
                make_verdict(
                    (use["relaxed"] <= use["contained"]).all()
                    and use["relaxed"][most] < use["contained"][most]
                ),
            ),
        ]  # fmt: skip
    return claims


def search_claim(found: pd.DataFrame) -> Claim:
    """Section 4: the lattice makes the search of many operators fast."""
    table = found.pivot(index="operators", columns="search", values="seconds_measured")
    times = table["linear"] / table["lattice"]
    says = "The lattice finds reuse fast in a large space of operators"
    text = f"times quicker than a linear scan, by operators: {format_values(times)} (measured)"
    return Claim(PAPER, "4", says, text, make_verdict(times.iloc[-1] > 10))


def replanning_claim(found: pd.DataFrame) -> Claim:
    """Section 1: planning all queries again at each arrival is inordinately expensive."""
    rows = found.set_index("planned")
    times = rows["seconds_measured"]["all anew"] / rows["seconds_measured"]["one by one"]
    dearer = rows["cost_modelled"]["one by one"] / rows["cost_modelled"]["all anew"]
    says = "Planning all queries anew at each arrival has inordinately large overheads"
    text = f"{times:.0f} times the time (measured); one by one costs {dearer:.2f} (modelled)"
    return Claim(PAPER, "1", says, text, make_verdict(times > 10))


def spread_claim(found: pd.DataFrame) -> Claim:
    """Section 2.1: the benefit of reuse depends on network locality."""
    table = found.pivot(index="regions", columns="strategy", values="network_usage_modelled")
    ratio = table["always"] / table["relaxed"]
    most = found[found["regions"] == found["regions"].max()].set_index("strategy")
    always, none = most.loc["always"], most.loc["separate"]
    says = "The benefit from reuse depends on network locality"
    text = (
        f"reuse whatever it costs, relative to what is cheapest, by regions: {format_values(ratio)}"
    )
    reason = (
        f"{always['answers_modelled']:.0f} of its {always['network_usage_modelled']:.0f} bytes "
        "in transit "
        f"are answers, {none['answers_modelled']:.0f} without reuse: a join may tell more than it "
        "takes in, and then belongs where its answer goes"
    )
    holds = make_verdict((ratio > 1).any())
    return Claim(PAPER, "2.1", says, text + " (modelled)", holds, reason)


def lifetimes_claim(found: pd.DataFrame) -> Claim:
    """Section 2.2: the cost over time, with long-running queries in mind."""
    costs = found.set_index("lifetimes")["cost_modelled"]
    ratio = costs["known"] / costs["unknown"]
    says = "Lifetimes are taken into account in minimising cost over time"
    text = f"known lifetimes cost {ratio:.3f} of unknown ones (modelled)"
    return Claim(PAPER, "2.2", says, text, make_verdict(ratio < 1), "the paper gives no figure")


def deployment_claims(found: pd.DataFrame) -> list[Claim]:
    """Section 5: time to deployment hardly rises (E4)."""
    rows = found[found["reuse"] == "relaxed"].groupby("match")
    took, built = rows["batches_measured"].median(), rows["built_counted"].agg(["min", "max"])
    others, held = took.drop("holds", errors="ignore"), "holds" in took
    planned = held and built["max"]["holds"] == 0 < built["min"][others.index].min()
    times = f"median batches, by how a query is answered: {format_values(took)} (measured)"
    operators = format_values(rows["built_counted"].mean())
    return [
        Claim(
            PAPER, "5", "The increase in time to deployment is negligible", times,
            make_verdict((took < 1).all()), "each less than a batch, between two of them",
        ),
        Claim(
            PAPER, "5", "A contained query is deployed in less time than a relaxed or a new one",
            times, make_verdict(held and took["holds"] < others.min()), "our reading of section 3",
        ),
        Claim(
            PAPER, "5", "A contained query is deployed by planning alone",
            f"operators built for a query, by how it is answered: {operators} (counted)",
            make_verdict(planned), "our reading of section 3",
        ),
    ]  # fmt: skip


def planners_claims(found: pd.DataFrame, most: int = 8) -> list[Claim]:
    """Section 2.2: planning over a hierarchy of clusters, here of at most ``most`` nodes (E9)."""
    ratio = found.groupby("planner")["ratio_modelled"].mean()
    name = f"top-down, {most}"
    looked = found[found["planner"] == name].set_index("streams")["looked"]
    others = ratio.drop([n for n in ratio.index if n.startswith("top-down")])
    return [
        Claim(
            PAPER, "2.2", "No planner finds a cheaper plan than the exact one",
            f"the least cost of any over its: {found['ratio_modelled'].min():.3g} (modelled)",
            make_verdict((found["ratio_modelled"] > 1 - 1e-6).all()),
            "without anything to reuse", True,
        ),
        Claim(
            PAPER, "2.2", "Top-Down over a hierarchy of clusters comes within a tenth of the best",
            f"{ratio[name]:.3g} of its cost; others {format_values(others)} (modelled)",
            make_verdict(ratio[name] <= 1.1),
            "named in the paper; what it does is ours, and the tenth is of the authors' other work",
        ),
        Claim(
            PAPER, "2.2", "Top-Down looks at less than a hundredth of all plans",
            f"part that is looked at, by streams: {format_values(looked)} (modelled)",
            "yes" if (looked < 0.01).all() else
            "under reading" if (looked[looked.index > 2] < 0.01).all() else "no",
            "of three streams and more; of two there is only where to join them",
        ),
    ]  # fmt: skip


def reuse_claims(found: ReuseFigures) -> list[Claim]:
    """Return all claims, in the paper's order."""
    return [
        figure_1_claim(),
        figure_2_claim(),
        *usage_claims(found.usage),
        search_claim(found.search),
        replanning_claim(found.anew),
        spread_claim(found.spread),
        lifetimes_claim(found.lifetimes),
        *planners_claims(found.planners),
        *([] if found.deployments is None else deployment_claims(found.deployments)),
    ]
