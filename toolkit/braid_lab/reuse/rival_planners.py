"""Other planners to compare with the exact one, in experiment E9; none reuses anything."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import DeployedQuery, Deployment, NewOperator, StreamLeaf, Tree
from braid.papers.reuse.network import ONE_SITE
from braid.papers.reuse.plan_search import PlanLeaf, PlanTable
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.result_rates import Rates, StreamRate

from braid_lab.common.recorded_settings import record_values, records_arguments
from braid_lab.reuse.experiments import random_chain_query, record_network
from braid_lab.reuse.hierarchy import HierarchicalPlanner, count_plans
from braid_lab.reuse.scenario import make_network

Rival = Callable[[CostModel, Definition, Sequence[PlanLeaf], int], Tree]
"""A planner: costs, the query, its streams at their nodes, the node of the sink."""


def stream_leaves(model: CostModel, deployment: Deployment, wanted: Definition) -> list[PlanLeaf]:
    """Return the streams of a query at their source nodes."""
    place = model.network.find_node_index
    return [
        PlanLeaf(frozenset([s]), place(deployment.source_node(s)), StreamLeaf(s))
        for s in wanted.streams
    ]


def tree_cost(model: CostModel, deployment: Deployment, query: DeployedQuery, tree: Tree) -> float:
    """Return the cost of a plan of new operators for one query."""
    from braid.papers.reuse.deployment import add_query

    return model.total_cost(add_query(Deployment(deployment.stream_nodes), query, tree))


def plan_exactly(
    model: CostModel, wanted: Definition, leaves: Sequence[PlanLeaf], sink: int
) -> Tree:
    """Return the join order and places, chosen together, with the least cost."""
    return PlanTable(model, wanted, leaves, model.network.hosting_mask).best_tree(sink)


def plan_then_deploy(
    model: CostModel, wanted: Definition, leaves: Sequence[PlanLeaf], sink: int
) -> Tree:
    """Return the best places of the join order with the fewest tuples, network ignored."""
    blind = CostModel(ONE_SITE, model.rates, work_weight=1.0)
    here = [PlanLeaf(k.streams, 0, k.tree) for k in leaves]
    order = PlanTable(blind, wanted, here, ONE_SITE.hosting_mask).best_tree(0)
    return _place_operators(model, wanted, order, {k.tree: k for k in leaves}, sink)


def _place_operators(
    model: CostModel, wanted: Definition, order: Tree, leaves: dict[Tree, PlanLeaf], sink: int
) -> Tree:
    """Return the best places for the operators of a fixed join order."""
    far = model.network.latency_ms / 1e3
    barred = np.where(model.network.hosting_mask, 0.0, np.inf)

    def costs(tree: Tree) -> tuple[np.ndarray, Definition]:
        if tree in leaves:
            least = np.full(len(far), np.inf)
            least[leaves[tree].node] = 0.0
            return least, wanted.restrict_to(leaves[tree].streams)
        assert isinstance(tree, NewOperator)
        least = sum((there(read)[0] for read in tree.inputs), barred)
        return least, wanted.restrict_to(tree.streams)

    def there(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
        least, part = costs(tree)
        with_transfer = least[:, None] + far * model.rates.result_byte_rate(part)
        return with_transfer.min(0), with_transfer.argmin(0)

    def at(tree: Tree, target: int) -> Tree:
        if tree in leaves or not isinstance(tree, NewOperator):
            return tree
        node = int(there(tree)[1][target])
        return NewOperator(
            tree.streams, model.network.nodes[node].name, tuple(at(i, node) for i in tree.inputs)
        )

    return at(order, sink)


def plan_all_at_sink(
    model: CostModel, wanted: Definition, leaves: Sequence[PlanLeaf], sink: int
) -> Tree:
    """Return a plan with every operator at the working node nearest to the sink."""
    near = np.where(model.network.hosting_mask, model.network.latency_ms[sink], np.inf)
    only = np.zeros(len(near), np.bool_)
    only[int(near.argmin())] = True
    return PlanTable(model, wanted, leaves, only).best_tree(sink)


def make_top_down(most: int) -> Rival:
    """Return Top-Down over clusters of at most ``most`` nodes."""
    return lambda model, wanted, leaves, sink: HierarchicalPlanner(model, most).plan_top_down(
        wanted, leaves, sink
    )


def make_bottom_up(most: int) -> Rival:
    """Return Bottom-Up over clusters of at most ``most`` nodes."""
    return lambda model, wanted, leaves, sink: HierarchicalPlanner(model, most).plan_bottom_up(
        wanted, leaves, sink
    )


def enumerate_plans(
    wanted: Definition, trees: Sequence[Tree], nodes: Sequence[str]
) -> Iterator[Tree]:
    """Yield every bushy tree without a product, with its operators at all places.

    It is for tests, on small networks. ``trees`` are the streams.
    """
    if len(trees) == 1:
        yield trees[0]
        return
    first, *rest = trees
    for bits in range(1 << len(rest)):
        left = [first, *(t for i, t in enumerate(rest) if bits >> i & 1)]
        right = [t for i, t in enumerate(rest) if not bits >> i & 1]
        if not right or not (_are_connected(wanted, left) and _are_connected(wanted, right)):
            continue
        streams = tuple(sorted(t.stream for t in trees if isinstance(t, StreamLeaf)))
        for a, b in product(
            list(enumerate_plans(wanted, left, nodes)), list(enumerate_plans(wanted, right, nodes))
        ):
            for node in nodes:
                yield NewOperator(streams, node, (a, b))


def _are_connected(wanted: Definition, trees: Sequence[Tree]) -> bool:
    return wanted.restrict_to(t.stream for t in trees if isinstance(t, StreamLeaf)).is_connected


@records_arguments
def planner_comparison(
    queries: int = 40, streams: Sequence[int] = (2, 3, 4, 5), most: Sequence[int] = (8, 16, 32)
) -> pd.DataFrame:
    """Return E9: cost of one query's plan by other planners, relative to the exact planner's.

    They are Top-Down and Bottom-Up over clusters of ``most`` nodes, and simpler ones. Ratios are
    means of queries; ``least_modelled`` is the least of any. ``looked`` is the fraction of all
    plans that was considered.
    """
    net, rows = make_network(), []
    for count in streams:
        rng = random.Random(count)
        rates = Rates(
            {f"s{i}": StreamRate(rng.uniform(1, 50), {"k": 8.0, "x": 8.0}) for i in range(10)},
            default_selectivity=1e-3,
        )
        model = CostModel(net, rates, work_weight=0.0)
        names = [n.name for n in net.nodes]
        at = {f"s{i}": rng.choice(names) for i in range(10)}
        for n in range(queries):
            query = DeployedQuery(f"q{n}", random_chain_query(rng, count, count), rng.choice(names))
            rows += list(_compare_planners(model, Deployment(at), query, most))
    by = pd.DataFrame(rows).groupby(["streams", "planner"], as_index=False)
    means = by[["ratio_modelled", "looked"]].mean()
    table = means.assign(least_modelled=by["ratio_modelled"].min()["ratio_modelled"])
    return record_values(record_network(table), working=int(net.hosting_mask.sum()))


def _compare_planners(
    model: CostModel, deployment: Deployment, query: DeployedQuery, most: Sequence[int]
) -> Iterator[dict[str, Any]]:
    wanted, sink = query.definition, model.network.find_node_index(query.sink)
    leaves = stream_leaves(model, deployment, wanted)
    best = tree_cost(model, deployment, query, plan_exactly(model, wanted, leaves, sink))
    every = count_plans(len(leaves), int(model.network.hosting_mask.sum()))
    simple = {"plan then deploy": plan_then_deploy, "all to the sink": plan_all_at_sink}
    plans = {
        name: (plan(model, wanted, leaves, sink), float("nan")) for name, plan in simple.items()
    }
    for size in most:
        for name in ("top_down", "bottom_up"):
            planner = HierarchicalPlanner(model, size)
            tree = getattr(planner, f"plan_{name}")(wanted, leaves, sink)
            plans[f"{name.replace('_', '-')} of {size}"] = tree, planner.looked / every
    for name, (tree, looked) in plans.items():
        cost = tree_cost(model, deployment, query, tree)
        yield {
            "streams": len(leaves),
            "planner": name,
            "ratio_modelled": cost / best,
            "looked": looked,
        }
