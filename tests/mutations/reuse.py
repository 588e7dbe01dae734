"""Faults of stream reuse (Seshadri 2008)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from braid_lab.reuse import airport_day
from braid_lab.reuse import claims as seshadri
from braid_lab.reuse import experiments as study
from braid_lab.reuse.hierarchy import HierarchicalPlanner
from braid_lab.reuse.scenario import make_scenario

from mutations import Mutation, Tries, call_counting_clock


def deployed(batches: int = 5) -> Tries:
    """Return E4: a short morning at the airport, with some queries submitted again."""
    with TemporaryDirectory() as folder:
        day = airport_day.repeat_queries(airport_day.play_day(Path(folder) / "day", 20, batches))
        told = seshadri.CLAIMS.test_claims(
            deployments=airport_day.deployment_times({"relaxed": day})
        )
    return [lambda: told]


def planned() -> Tries:
    """Return E9: plans of few queries."""
    return [lambda: seshadri.CLAIMS.test_claims(planners=study.planner_comparison(4, (3, 4), (8,)))]


def examples() -> Tries:
    """Return Fig. 1 and 2."""
    return [seshadri.figure_1_claim, seshadri.figure_2_claim]


def saved() -> Tries:
    """Return E1 to E3: few queries, by allowed reuse."""
    some = partial(study.usage_table, "enterprise", (10, 20))
    return [lambda: seshadri.CLAIMS.test_claims(usage={"enterprise": some(study.STRATEGIES[:4])})]


def surfaced() -> Tries:
    """Return E1 and E2: two kinds of queries again and again, whose joins emit hardly anything."""

    def repeated(workload: str, queries: int, *given: Any, **named: Any) -> Any:
        whole = make_scenario(workload, 2, *given, **named)
        names = [n.name for n in whole.model.network.nodes]
        again = [
            replace(whole.queries[k % 2], name=f"q{k}", sink=names[7 * k % len(names)])
            for k in range(queries)
        ]
        return replace(whole, queries=tuple(again))

    few = partial(study.savings_surface, "rfid", (4, 80), (0.00001,))
    with patch("braid_lab.reuse.experiments.make_scenario", repeated):
        found = few()
    with patch("braid_lab.reuse.claims.MANY", 80):
        told = seshadri.CLAIMS.test_claims(surface=found)
    return [lambda: told]


def local() -> Tries:
    """Return E7: few queries, from one region and from all."""
    return [lambda: seshadri.spread_claim(study.locality_table("enterprise", 20, (1, 8)))]


def lived() -> Tries:
    """Return E8: few queries."""
    return [lambda: seshadri.lifetimes_claim(study.lifetime_table("enterprise", 20))]


def searched() -> Tries:
    """Return E5: few operators, by a clock that counts calls."""
    return [lambda: seshadri.search_claim(clocked(lambda: study.search_times((400,), 2)))]


def anew() -> Tries:
    """Return E6: few queries, by the same clock."""
    return [lambda: seshadri.replanning_claim(clocked(lambda: study.replanning_costs("rfid", 28)))]


def answered() -> Tries:
    """Return E4: its first batch, by a clock that counts calls."""
    with call_counting_clock("braid.hub.query_registry.clock.perf_counter"):
        return deployed(1)


def clocked(found: Callable[[], Any]) -> Any:
    """Return figures that are measured by calls."""
    study.make_network()
    with call_counting_clock("braid_lab.reuse.experiments.time.process_time"):
        return found()


def regardless(planner: Any) -> Any:
    """Return a planner that reuses whatever it can, at any cost."""
    return lambda model, reuse: planner(model, "always" if reuse == "relaxed" else reuse)


def nothing(planner: Any) -> Any:
    """Return a planner that reuses nothing."""
    return lambda model, reuse: planner(model, "separate")


def one_by_one(lattice: Any) -> Any:
    """Return a lattice that visits each operator."""
    return lambda offers: SimpleNamespace(
        find_reusable_operators=lambda wanted, regions=-1: study.linear_search(offers, wanted)
    )


def last_alone(planned: Any) -> Any:
    """Re-plan only the last of all queries."""
    return lambda whole, order: planned(whole, order[-1:])


def thirty_times(plan: Any) -> Any:
    """Return planning that computes each plan thirty times and takes the cheapest."""
    return lambda *given: min((plan(*given) for _ in range(30)), key=lambda found: found.cost)


MUTATIONS = [
    Mutation(
        "a planner that reuses nothing, in Fig. 1",
        "braid_lab.reuse.claims.Planner",
        lambda planner: lambda model: planner(model, "separate"),
        examples,
        ("Q2 reuses FLIGHTS",),
    ),
    Mutation(
        "any SLIDE serves any other",
        "braid.papers.reuse.reuse_lattice.slides_contain",
        lambda hold: lambda a, b: True,
        examples,
        ("(RANGE, SLIDE) keys are ordered",),
    ),
    Mutation(
        "reuse whatever it costs",
        "braid_lab.reuse.scenario.Planner",
        regardless,
        saved,
        ("The increase in latency is negligible", "Operators that are similar in part"),
    ),
    Mutation(
        "a planner that reuses nothing, on two kinds of queries",
        "braid_lab.reuse.scenario.Planner",
        nothing,
        surfaced,
        ("Network usage falls", "Computation falls by more than", "Stream query processing"),
    ),
    Mutation(
        "reuse whatever it costs, by how many regions ask",
        "braid_lab.reuse.scenario.Planner",
        regardless,
        local,
        ("The benefit from reuse depends on network locality",),
    ),
    Mutation(
        "a planner that forgets how long operators live",
        "braid.papers.reuse.cost.CostModel.lifetime_extension_cost",
        lambda prolonging: lambda *given: 0.0,
        lived,
        ("Lifetimes are taken into account",),
    ),
    Mutation(
        "a lattice that looks at each operator, by a clock that counts calls",
        "braid_lab.reuse.experiments.ReuseLattice",
        one_by_one,
        searched,
        ("The lattice finds reuse fast",),
    ),
    Mutation(
        "of all queries the last alone is planned anew, by a clock that counts calls",
        "braid_lab.reuse.experiments._compute_planned_cost",
        last_alone,
        anew,
        ("Planning all queries anew at each arrival",),
    ),
    Mutation(
        "a planner that computes each plan thirty times, by a clock that counts calls",
        "braid.hub.query_registry.QueryRegistry.plan_query",
        thirty_times,
        answered,
        ("The increase in time to deployment is negligible",),
    ),
    Mutation(
        "plans from the bottom up for those from the top down",
        "braid_lab.reuse.hierarchy.HierarchicalPlanner.plan_top_down",
        lambda top_down: HierarchicalPlanner.plan_bottom_up,
        planned,
        ("Top-Down over a hierarchy of clusters comes within",),
    ),
    Mutation(
        "one cluster of all nodes",
        "braid_lab.reuse.experiments.HierarchicalPlanner",
        lambda planner: lambda model, most: planner(model, 200),
        planned,
        ("Top-Down looks at less than a hundredth",),
    ),
    Mutation(
        "an exact planner that joins all at the sink",
        "braid_lab.reuse.experiments.plan_exactly",
        lambda exact: study.plan_all_at_sink,
        planned,
        ("No planner finds a cheaper plan",),
    ),
]
