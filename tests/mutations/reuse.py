"""Faults of stream reuse (Seshadri 2008)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from braid.papers.reuse.reuse_lattice import ALL
from braid_lab.reuse import airport_day, rival_planners
from braid_lab.reuse import claims as seshadri
from braid_lab.reuse import experiments as study
from braid_lab.reuse.hierarchy import HierarchicalPlanner
from braid_lab.reuse.lattice_claims import figure_2_claim, location_claim, search_claim
from braid_lab.reuse.planning_claims import replanning_claim
from braid_lab.reuse.reference import linear_search
from braid_lab.reuse.scenario import make_scenario

from mutations import Mutation, Tries, call_counting_clock


def deployed(batches: int = 5) -> Tries:
    """Return E4: a short morning at the airport, with some queries submitted again."""
    with TemporaryDirectory() as folder:
        days = {
            how: airport_day.play_day(Path(folder) / how, 20, batches, how)
            for how in ("relaxed", "separate")
        }
        times = airport_day.deployment_times(
            {how: airport_day.repeat_queries(day) for how, day in days.items()}
        )
        judged_claims = seshadri.CLAIMS.test_claims(deployments=times)
    return [lambda: judged_claims]


def planned() -> Tries:
    """Return E9: plans of few queries."""
    return [
        lambda: seshadri.CLAIMS.test_claims(
            planners=rival_planners.planner_comparison(4, (3, 4), (8,))
        )
    ]


def examples() -> Tries:
    """Return Fig. 1 and 2."""
    return [seshadri.figure_1_claim, figure_2_claim, location_claim]


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
        judged_claims = seshadri.CLAIMS.test_claims(surface=found)
    return [lambda: judged_claims]


def waited() -> Tries:
    """Return E3: few queries, whose joins emit more than they take in."""
    return [lambda: seshadri.latency_claim(study.savings_surface("enterprise", (10, 20), (1.0,)))]


def local() -> Tries:
    """Return E7: few queries, from one region and from all."""
    return [lambda: seshadri.spread_claim(study.locality_table("enterprise", 20, (1, 8), (0, 1)))]


def lived() -> Tries:
    """Return E8: few queries."""
    return [lambda: seshadri.lifetimes_claim(study.lifetime_table("enterprise", 20, (0,), (30,)))]


def searched() -> Tries:
    """Return E5: few operators, by a clock that counts calls."""
    return [lambda: search_claim(clocked(lambda: study.search_times((40, 400), 2)))]


def anew() -> Tries:
    """Return E6: few queries, by the same clock."""
    return [lambda: replanning_claim(clocked(lambda: study.replanning_costs("enterprise", 32)))]


def answered() -> Tries:
    """Return E4: its first batch, by a clock that counts calls."""
    with call_counting_clock("braid.hub.query_registry.clock.perf_counter"):
        return deployed(1)


def clocked(found: Callable[[], Any]) -> Any:
    """Return figures that are measured by calls."""
    study.make_network()
    with call_counting_clock("braid_lab.reuse.experiments.time.process_time"):
        return found()


def reusing(reuse: str) -> Callable[[Any], Any]:
    """Return a fault: a planner that may relax operators does this instead."""

    def fault(begin: Any) -> Any:
        def begin_otherwise(planner: Any, model: Any, asked: str = "relaxed", *more: Any) -> None:
            begin(planner, model, reuse if asked == "relaxed" else asked, *more)

        return begin_otherwise

    return fault


def one_by_one(find: Any) -> Any:
    """Return a search that visits each operator."""

    def find_in_all(lattice: Any, wanted: Any, regions: int = ALL, relax: bool = True) -> Any:
        offers = [group.offers[id] for id, group in lattice._homes.items()]
        return linear_search(offers, wanted, regions, relax)

    return find_in_all


def in_any_region(find: Any) -> Any:
    """Return a search that does not look at locations."""
    return lambda lattice, wanted, regions=ALL, relax=True: find(lattice, wanted, ALL, relax)


def remembered(plan: Any) -> Any:
    """Return planning that takes the plan of an earlier search for the same query."""
    known: dict[Any, Any] = {}

    def plan_once(planner: Any, deployment: Any, asked: Any, *more: Any, **named: Any) -> Any:
        key = asked.name, tuple(deployment.queries)
        if key not in known:
            known[key] = plan(planner, deployment, asked, *more, **named)
        return known[key]

    return plan_once


def two_hundred_times(plan: Any) -> Any:
    """Return planning that computes each plan with reuse 200 times and takes the cheapest."""
    return lambda planner, *given, **named: min(
        (plan(planner, *given, **named) for _ in range(1 if planner.reuse == "separate" else 200)),
        key=lambda found: found.cost,
    )


def from_its_best_place(solve: Any) -> Any:
    """Send each part of a query from the place where it costs least by itself."""

    def solve_part(table: Any, mask: int) -> None:
        solve(table, mask)
        if mask != table.all_leaves and mask & (mask - 1):
            node = int(table.cheapest[mask].argmin())
            rate = table.tuples[mask] * table.model.rates.result_width(table.parts[mask])
            table.there[mask] = table.cheapest[mask][node] + table.far[node] * rate

    return solve_part


PLANNER = "braid.papers.reuse.planner.Planner"
SEARCH = "braid.papers.reuse.reuse_lattice.ReuseLattice.find_reusable_operators"
MUTATIONS = [
    Mutation(
        "a planner that reuses nothing, in Fig. 1",
        f"{PLANNER}.__init__",
        reusing("separate"),
        examples,
        ("Q2 may reuse FLIGHTS",),
    ),
    Mutation(
        "any SLIDE serves any other",
        "braid.papers.reuse.reuse_lattice.slides_contain",
        lambda hold: lambda a, b: True,
        examples,
        ("Keys (RANGE, SLIDE) of a node",),
    ),
    Mutation(
        "keys without an order, all searched",
        "braid.papers.reuse.containment_order.ContainmentOrder._find_lowest_fitting",
        lambda find: lambda self, *given: [],
        examples,
        ("Keys (RANGE, SLIDE) of a node",),
    ),
    Mutation(
        "a search that does not look at regions",
        SEARCH,
        in_any_region,
        examples,
        ("The NID of key (5, 1)",),
    ),
    Mutation(
        "reuse whatever it costs",
        f"{PLANNER}.__init__",
        reusing("always"),
        saved,
        ("Overlaps of queries that are partially similar",),
    ),
    Mutation(
        "reuse whatever it costs, where joins emit much",
        f"{PLANNER}.__init__",
        reusing("always"),
        waited,
        ("The increase in latency is negligible",),
    ),
    Mutation(
        "a planner that reuses nothing, on two kinds of queries",
        f"{PLANNER}.__init__",
        reusing("separate"),
        surfaced,
        (
            "Network usage falls by",
            "Network usage falls with",
            "More is saved with",
            "Computation falls by more than",
            "Stream query processing",
        ),
    ),
    Mutation(
        "reuse whatever it costs, by how many regions ask",
        f"{PLANNER}.__init__",
        reusing("always"),
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
        SEARCH,
        one_by_one,
        searched,
        ("The lattice finds reuse fast",),
    ),
    Mutation(
        "a planner that knows the plans of earlier searches, by a clock that counts calls",
        f"{PLANNER}.plan_query",
        remembered,
        anew,
        ("Planning all queries anew at each arrival",),
    ),
    Mutation(
        "a planner that computes each plan 200 times, by a clock that counts calls",
        f"{PLANNER}.plan_query",
        two_hundred_times,
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
        "braid_lab.reuse.hierarchy.build_hierarchy",
        lambda build: lambda network, most: build(network, 200),
        planned,
        ("Top-Down looks at less than a hundredth",),
    ),
    Mutation(
        "an exact planner that sends each part from where it costs least by itself",
        "braid.papers.reuse.plan_search.PlanTable._solve_part",
        from_its_best_place,
        planned,
        ("No planner finds a cheaper plan",),
    ),
]
