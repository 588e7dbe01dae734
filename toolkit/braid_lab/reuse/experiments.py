"""The savings of reuse on a network, modelled: experiments E1 to E8.

They replace those of Seshadri 2008, section 5, which are not available to us. Numbers of the paper
are those of its text alone.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import pandas as pd
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import DeployedQuery, Deployment
from braid.papers.reuse.deployment_changes import diff_deployments
from braid.papers.reuse.planner import PlanningService, Reuse
from braid.papers.reuse.query_definition import Definition, JoinCondition
from braid.papers.reuse.reoptimization import review_until_stable
from braid.papers.reuse.reuse_lattice import LatticeEntry, ReuseLattice
from braid.papers.reuse.selections import Conjunction, Selection, make_interval, make_value_set

from braid_lab.common.recorded_settings import (
    RunValues,
    describe_machine,
    record_values,
    records_arguments,
)
from braid_lab.reuse.join_work import JoinWork, work_by_node
from braid_lab.reuse.reference import linear_search
from braid_lab.reuse.scenario import ReuseScenario, make_network, make_scenario
from braid_lab.reuse.total_cost import integrate_cost

STRATEGIES: tuple[Reuse, ...] = ("separate", "exact", "contained", "relaxed", "always")


def current_cost(service: PlanningService) -> float:
    """Return C(G, Σ(t)) now, modelled."""
    return service.planner.model.total_cost(service.deployment)


def answer_latency(model: CostModel, deployment: Deployment, query: DeployedQuery) -> float:
    """Return the seconds on the network from the farthest source to the sink of a query."""

    def there(id: int) -> float:
        operator = deployment.operators[id]
        return max(
            model.path_latency_seconds(deployment.source_node(i), operator.node)
            if isinstance(i, str)
            else there(i) + model.path_latency_seconds(deployment.operators[i].node, operator.node)
            for i in operator.inputs
        )

    node = deployment.operators[query.operator].node
    return there(query.operator) + model.path_latency_seconds(node, query.sink)


@records_arguments
def usage_table(
    workload: str,
    counts: Sequence[int],
    strategies: Sequence[Reuse] = STRATEGIES,
    seed: int = 0,
    regions: int | None = None,
    selectivity: float = 1.0,
) -> pd.DataFrame:
    """Return E1, E2 and E3: network usage, work, and latency of answers by number of queries.

    Rows are by what may be reused. ``answers_modelled`` is the part of the usage for answers on
    their way to sinks. Work is counted in three ways: tuples at the boundary of operators (work),
    the same with the intermediate results inside them (indexed; busiest: of the node with most),
    and pairs compared by nested loops (compared). ``selectivity`` is a factor of the selectivities
    of all joins.
    """
    rows = []
    scenario = make_scenario(workload, max(counts), seed, regions, selectivity)
    for strategy in strategies:
        service = scenario.make_service(strategy)
        began = time.process_time()
        for i, query in enumerate(scenario.queries, 1):
            service.submit_query(query)
            if i in counts:
                rows.append(
                    _make_usage_row(workload, strategy, i, service, time.process_time() - began)
                )
    return record_network(pd.DataFrame(rows))


def record_network(frame: pd.DataFrame) -> pd.DataFrame:
    """Add to a frame how large the network of the studies is."""
    net = make_network()
    return record_values(frame, nodes=len(net.nodes), network_regions=len(net.regions))


def _make_usage_row(
    workload: str, strategy: str, count: int, service: PlanningService, seconds: float
) -> dict[str, Any]:
    model, deployment = service.planner.model, service.deployment
    works = work_by_node(model, deployment).values()
    work = sum(works, JoinWork())
    waits = [answer_latency(model, deployment, q) for q in deployment.queries.values()]
    return {
        "workload": workload,
        "strategy": strategy,
        "queries": count,
        "operators": len(deployment.operators),
        "network_usage_modelled": model.network_usage(deployment),
        "answers_modelled": model.delivery_usage(deployment),
        "work_modelled": work.received + work.emitted,
        "indexed_modelled": work.indexed,
        "busiest_modelled": max(node.indexed for node in works),
        "compared_modelled": work.compared,
        "output_modelled": work.emitted / work.received,
        "latency_modelled": sum(waits) / len(waits),
        "planning_measured": seconds / count,
    }


SELECTIVITIES = (1.0, 0.2, 0.05, 0.005, 0.0005)
"""Factors of the selectivities of all joins, for a savings surface."""


@records_arguments
def savings_surface(
    workload: str,
    counts: Sequence[int],
    selectivities: Sequence[float] = SELECTIVITIES,
    regions: int | None = None,
) -> pd.DataFrame:
    """Return what relaxation leaves of usage and work, by output / input and number of queries.

    ``output`` is the tuples that joins emit for each one they take in, without reuse;
    ``more_planning_measured`` the seconds that planning a query takes longer with relaxation. Each
    other column is the quantity with relaxation over that without reuse. ``regions``: as of
    ``make_scenario``; the column ``sinks`` says which.
    """
    frames = []
    for factor in selectivities:
        outcomes = usage_table(workload, counts, SAVING, SEED, regions, factor)
        ratios = {
            name: relative_to_baseline(outcomes, f"{name}_modelled")["relaxed"] for name in COMPARED
        }
        alone, shared = (
            outcomes[outcomes["strategy"] == name].set_index("queries") for name in SAVING
        )
        planning = shared["planning_measured"] - alone["planning_measured"]
        ratios |= {"output": alone["output_modelled"], "more_planning_measured": planning}
        frames.append(pd.DataFrame(ratios).assign(selectivity=factor))
    total = len(make_network().regions)
    sinks = "everywhere" if regions is None else f"in {regions} of {total} regions"
    surface = pd.concat(frames).reset_index().assign(workload=workload, sinks=sinks)
    factors = RunValues(tuple(sorted(selectivities)))
    swept = f"sinks {sinks} with selectivities of their joins times {factors}"
    return record_values(record_network(surface), strategy=SAVING, seed=SEED, swept=swept)


SAVING: tuple[Reuse, ...] = ("separate", "relaxed")
"""The deployments that a savings surface compares."""
SEED = 0
"""The seed of its workloads and sinks."""


COMPARED = ("network_usage", "work", "indexed", "busiest", "compared", "latency")
"""The quantities of a savings surface, as ``usage_table`` names them."""


def relative_to_baseline(usage: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a column relative to that without reuse, by number of queries and strategy."""
    table = usage.pivot(index="queries", columns="strategy", values=column)
    return table.div(table["separate"], axis=0)


@records_arguments
def search_times(
    counts: Sequence[int], searches: int = 20, seed: int = 0, times: int = 3
) -> pd.DataFrame:
    """Return E5: search times for operators that a query can reuse; seconds are measured.

    These have its base conditions. The search is in the lattice, in the lattice of one region, and
    operator by operator. Each is timed ``times`` times; the least time is returned.
    """
    rows = []
    for count in counts:
        offers = list(_generate_lattice_entries(count, seed))
        lattice, wanted = (
            ReuseLattice(offers),
            [o.definition for o in _generate_lattice_entries(searches, seed + 1)],
        )
        rows += [
            _time_searches(count, "lattice", lattice.find_reusable_operators, wanted, times),
            _time_searches(
                count,
                "lattice, one region",
                partial(lattice.find_reusable_operators, regions=1),
                wanted,
                times,
            ),
            _time_searches(count, "linear", partial(linear_search, offers), wanted, times),
        ]
    return record_values(pd.DataFrame(rows), machine=describe_machine())


def _time_searches(
    count: int,
    name: str,
    search: Callable[[Definition], Sized],
    wanted: Sequence[Definition],
    times: int,
) -> dict[str, Any]:
    took = []
    for _ in range(times):
        began = time.process_time()
        hits = [search(w) for w in wanted]
        took.append((time.process_time() - began) / len(wanted))
    return {
        "operators": count,
        "search": name,
        "seconds_measured": min(took),
        "found": sum(map(len, hits)) / len(wanted),
    }


def _generate_lattice_entries(count: int, seed: int) -> Iterator[LatticeEntry]:
    """Yield operators for queries over ten streams, joined in chains of two to five."""
    rng = random.Random(seed)
    for id in range(count):
        definition = random_chain_query(rng)
        yield LatticeEntry(id, definition, (definition,), 1 << rng.randrange(8))


def random_chain_query(rng: random.Random, least: int = 2, most: int = 5) -> Definition:
    """Return a query over a chain of some of ten streams, with selections on two columns."""
    streams = rng.sample([f"s{i}" for i in range(10)], rng.randint(least, most))
    joins = []
    for a, b in pairwise(streams):
        left, right = sorted((a, b))
        columns = frozenset([(left, "k"), (right, "k")])
        joins.append(JoinCondition(f"{left}.k = {right}.k", columns))
    where = {}
    for s in streams:
        if rng.random() < 0.7:
            low = rng.randrange(8)
            domain = (
                make_value_set(low)
                if rng.random() < 0.5
                else make_interval((low, True), (low + 3, False))
            )
            where[s] = Selection.make([Conjunction.make({rng.choice("xy"): domain})])
    return Definition.make(
        {s: rng.choice((1, 2, 5)) * 60_000_000 for s in streams},
        joins,
        where,
        {s: rng.sample(("k", "x", "y", "z"), 2) for s in streams},
    )


@records_arguments
def replanning_costs(workload: str, queries: int, seed: int = 0) -> pd.DataFrame:
    """Return E6: queries planned one by one, against all planned again at each arrival.

    Rows are by number of queries: a quarter of them, half and all. Seconds are measured: those of
    planning anew are of the order of arrival alone; its cost is that of the cheapest of three
    orders.
    """
    scenario, rows = make_scenario(workload, queries, seed), []
    service, spent, spent_anew = scenario.make_service("relaxed"), 0.0, 0.0
    for i, query in enumerate(scenario.queries, 1):
        began = time.process_time()
        service.submit_query(query)
        spent += time.process_time() - began
        began = time.process_time()
        arrived = _compute_planned_cost(scenario, scenario.queries[:i])
        spent_anew += time.process_time() - began
        if i in (queries // 4, queries // 2, queries):
            others = _list_other_orders(scenario, i, seed)
            best = min(arrived, *(_compute_planned_cost(scenario, order) for order in others))
            rows += [("one by one", i, spent, current_cost(service))]
            rows += [("all anew", i, spent_anew, best)]
    names = ["planned", "queries", "seconds_measured", "cost_modelled"]
    table = record_network(pd.DataFrame(rows, columns=names))
    return record_values(table, queries=queries, machine=describe_machine())


def _list_other_orders(
    scenario: ReuseScenario, count: int, seed: int
) -> Iterator[list[DeployedQuery]]:
    here = list(scenario.queries[:count])
    yield sorted(here, key=lambda q: -scenario.model.rates.result_byte_rate(q.definition))
    yield random.Random(seed).sample(here, count)


def _compute_planned_cost(scenario: ReuseScenario, order: Sequence[DeployedQuery]) -> float:
    service = scenario.make_service("relaxed")
    for query in order:
        service.submit_query(query)
    return current_cost(service)


def reoptimization_costs(
    workload: str,
    queries: int,
    strategies: Sequence[Reuse] = ("separate", "contained", "relaxed"),
    seed: int = 0,
) -> pd.DataFrame:
    """Return E6: network usage of queries planned one by one, and after re-optimization.

    Re-optimization ignores how long changes take to pay; ``built`` are the operators that it
    builds. Without reuse nothing changes: each plan is already the best.
    """
    scenario, rows = make_scenario(workload, queries, seed), []
    for strategy in strategies:
        service = scenario.make_service(strategy)
        for query in scenario.queries:
            service.submit_query(query)
        before = service.deployment
        for planned in ("one by one", "re-optimized"):
            after = (
                before
                if planned == "one by one" or strategy == "separate"
                else review_until_stable(service.planner, before, lasts=math.inf)
            )
            rows.append(
                {
                    "strategy": strategy,
                    "planned": planned,
                    "operators": len(after.operators),
                    "built": len(diff_deployments(before, after).build),
                    "network_usage_modelled": scenario.model.network_usage(after),
                }
            )
    return pd.DataFrame(rows)


@records_arguments
def locality_table(
    workload: str,
    queries: int,
    regions: Sequence[int] = (1, 2, 4, 8),
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
) -> pd.DataFrame:
    """Return E7: costs of reuse with and without the network, by regions with sinks and seed."""
    strategies: tuple[Reuse, ...] = ("separate", "always", "relaxed")
    frames = [
        usage_table(workload, [queries], strategies, seed, count).assign(regions=count, seed=seed)
        for seed, count in product(seeds, regions)
    ]
    return record_network(pd.concat(frames))


@records_arguments
def lifetime_table(
    workload: str,
    queries: int,
    seeds: Sequence[int] = (0, 1, 2),
    minutes: Sequence[int] = (10, 30, 120),
) -> pd.DataFrame:
    """Return E8: cost over time of queries with random arrivals and lifetimes, by seed and mean.

    Queries arrive ``ARRIVAL_SECONDS`` apart in the mean and live for ``minutes``. Lifetimes are
    known to the planner, or unknown. The cost is until the last query has left.
    """
    rows = [
        {
            "seed": seed,
            "minutes": mean,
            "lifetimes": "known" if is_known else "unknown",
            "cost_modelled": _compute_lifetime_cost(workload, queries, seed, mean, is_known),
        }
        for seed, mean, is_known in product(seeds, minutes, (True, False))
    ]
    return record_values(record_network(pd.DataFrame(rows)), arrival_seconds=ARRIVAL_SECONDS)


ARRIVAL_SECONDS = 60
"""How far apart queries with lifetimes arrive in the mean."""


def _compute_lifetime_cost(
    workload: str, queries: int, seed: int, minutes: int, is_known: bool
) -> float:
    scenario, rng = make_scenario(workload, queries, seed), random.Random(seed)
    service, now, ends, costs = scenario.make_service("relaxed"), 0.0, dict[str, float](), []
    for query in (*scenario.queries, None):
        now = now + rng.expovariate(1 / ARRIVAL_SECONDS) if query else max(ends.values())
        for name in sorted((n for n, e in ends.items() if e <= now), key=lambda n: ends[n]):
            service.withdraw_query(name)
            costs.append((ends.pop(name), current_cost(service)))
        if query:
            ends[query.name] = now + rng.expovariate(1 / (60 * minutes))
            until = int(ends[query.name] * 1e6) if is_known else None
            service.submit_query(replace(query, ends_at=until), int(now * 1e6))
            costs.append((now, current_cost(service)))
    return integrate_cost(costs, now)
