"""Measure stream reuse as ratios within one run: planning, searching, and network usage.

It does not use Spark. Seconds are measured, network usage is modelled.

Required: a query of five streams on 124 nodes with 1,000 operators is planned in 10 ms (median). A
search for reuse in a lattice of 10,000 operators takes at most a twentieth of a linear scan. After
re-optimization, 400 queries of an airline use at most 0.40 of the network usage without reuse, and
at most 0.75 of that with reuse of unchanged operators only.
"""

from __future__ import annotations

import random
import statistics
import time

from _common import Measure, parse_arguments, write_figures
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import DeployedQuery, Deployment, add_query
from braid.papers.reuse.planner import Planner
from braid.papers.reuse.result_rates import Rates, StreamRate
from braid_lab.reuse import experiments as study
from braid_lab.reuse.scenario import make_network

USAGE_NAME = "network usage, modelled"


def time_planning(operators: int, plans: int = 60) -> float:
    """Return the median seconds to plan a query of five streams with this many deployed operators.

    Half of them were deployed by a planner with reuse, half by one without.
    """
    rng, network = random.Random(1), make_network()
    names = [n.name for n in network.nodes]
    rates = Rates(
        {
            f"s{i}": StreamRate(
                rng.uniform(1, 50),
                {c: 8.0 for c in "kxyz"},
                [{c: rng.randrange(11) for c in "kxyz"} for _ in range(60)],
            )
            for i in range(10)
        },
        default_selectivity=1e-3,
    )
    model = CostModel(network, rates)
    deployment = Deployment({f"s{i}": rng.choice(names) for i in range(10)})
    planners = [Planner(model, "separate"), Planner(model)]
    count = 0
    while len(deployment.operators) < operators:
        query = DeployedQuery(f"q{count}", study.random_chain_query(rng), rng.choice(names))
        tree = planners[count % 2].plan_query(deployment, query).tree
        deployment, count = add_query(deployment, query, tree), count + 1
    planner, taken = planners[1], []
    planner.sync_lattice(deployment)
    for _ in range(plans):
        query = DeployedQuery("new", study.random_chain_query(rng, 5, 5), rng.choice(names))
        began = time.perf_counter()
        planner.plan_query(deployment, query)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def main() -> None:
    args = parse_arguments(
        __doc__ or "",
        operators=1000,
        searched=10_000,
        queries=400,
        quick={"operators": 40, "searched": 200, "queries": 20},
    )
    plan = time_planning(args.operators)
    searches = study.search_times([args.searched])
    seconds = searches.set_index("search")["seconds_measured"]
    costs = study.reoptimization_costs("enterprise", args.queries)
    usage = costs.set_index(["strategy", "planned"])["network_usage_modelled"]
    none, contained, relaxed = (usage[how] for how in ("separate", "contained", "relaxed"))
    tables = {"Search (measured)": searches, "Network usage (modelled)": costs.round(4)}
    write_figures(
        args,
        tables,
        [
            Measure("median plan, in 10 ms", plan / 0.010, 1.0, most=True),
            Measure("linear scan / lattice", seconds["linear"] / seconds["lattice"], 20),
            Measure(
                f"{USAGE_NAME}: relaxed / no reuse",
                relaxed["re-optimized"] / none["re-optimized"],
                0.40,
                most=True,
            ),
            Measure(
                f"{USAGE_NAME}: relaxed / no reuse, one by one",
                relaxed["one by one"] / none["one by one"],
                most=True,
            ),
            Measure(
                f"{USAGE_NAME}: relaxed / contained",
                relaxed["re-optimized"] / contained["re-optimized"],
                0.75,
                most=True,
            ),
        ],
    )


if __name__ == "__main__":
    main()
