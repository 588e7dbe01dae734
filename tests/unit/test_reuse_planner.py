"""Stream reuse: the planner is exact, and the cost that it states for a query is correct."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from braid.core.query import MOST
from braid.errors import PlanningError
from braid.papers.reuse import result_rates as rates_module
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import (
    DeployedQuery,
    Deployment,
    NewOperator,
    ReusedOperator,
    StreamLeaf,
    Tree,
    add_query,
    remove_queries,
    with_operator_moved,
)
from braid.papers.reuse.network import Network
from braid.papers.reuse.planner import REUSES, Planner, PlanningService, Reuse
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.result_rates import Rates
from braid_lab.reuse.experiments import current_cost
from braid_lab.reuse.hierarchy import HierarchicalPlanner, build_hierarchy, count_plans
from braid_lab.reuse.rival_planners import (
    enumerate_plans,
    plan_all_at_sink,
    plan_exactly,
    plan_then_deploy,
    stream_leaves,
    tree_cost,
)
from braid_lab.workloads.networks import make_figure_1, transit_stub
from reuse_cases import (
    STREAMS,
    check_consistency,
    draw_definition,
    draw_query,
    draw_rates,
    draw_setting,
    figure1_queries,
)

pytestmark = pytest.mark.unit


def everything(
    model: CostModel, deployment: Deployment, wanted: Definition, streams: tuple[str, ...]
) -> Iterator[Tree]:
    """Yield every plan of a part: bushy trees, all nodes, all reusable operators."""
    part = wanted.restrict_to(streams)
    if len(streams) == 1:
        yield StreamLeaf(streams[0])
        return
    if not part.is_connected:
        return
    for o in deployment.operators.values():
        if o.definition.streams == part.streams and o.definition.joins <= part.joins:
            yield ReusedOperator(o.id, o.node)
    first, *rest = streams
    for bits in range(2 ** len(rest) - 1):
        left = (first, *(s for i, s in enumerate(rest) if bits >> i & 1))
        right = tuple(s for s in streams if s not in left)
        for a, b in product(
            everything(model, deployment, wanted, left),
            list(everything(model, deployment, wanted, right)),
        ):
            for node in model.network.nodes:
                if node.can_host_operators:
                    yield NewOperator(part.streams, node.name, (a, b))


@pytest.mark.parametrize("seed", range(12))
def test_the_planner_is_as_good_as_trying_everything(seed: int) -> None:
    rng, model, deployment = draw_setting(seed, 3)
    streams = STREAMS[:4]
    planner = Planner(model)
    names = [n.name for n in model.network.nodes]
    for i in range(6):
        query = DeployedQuery(f"q{i}", draw_definition(rng, streams, 3), rng.choice(names))
        before = model.total_cost(deployment)
        tried = [
            model.total_cost(add_query(deployment, query, tree)) - before
            for tree in everything(model, deployment, query.definition, query.definition.streams)
        ]
        decision = planner.plan_query(deployment, query)
        deployment = add_query(deployment, query, decision.tree)
        assert decision.cost == pytest.approx(min(tried))
        assert model.total_cost(deployment) - before == pytest.approx(decision.cost)


@pytest.mark.parametrize("streams", [3, 4])
def test_without_anything_to_reuse_it_equals_all_trees_and_places(streams: int) -> None:
    for seed in range(3):
        rng, model, deployment = draw_setting(seed, 6 if streams == 3 else 3)
        query = draw_query(rng, "q", model.network, streams)
        names = [n.name for n in model.network.nodes]
        leaves = stream_leaves(model, deployment, query.definition)
        costs = [
            tree_cost(model, deployment, query, tree)
            for tree in enumerate_plans(query.definition, [k.tree for k in leaves], names)
        ]
        chosen = plan_exactly(
            model, query.definition, leaves, model.network.find_node_index(query.sink)
        )
        assert tree_cost(model, deployment, query, chosen) == pytest.approx(min(costs))
        assert len(costs) <= count_plans(len(leaves), len(names))


def test_an_operator_more_makes_no_plan_dearer_and_relaxed_is_the_best() -> None:
    for seed in range(6):
        rng, model, deployment = draw_setting(seed, 8)
        planners = {r: Planner(model, r) for r in REUSES}
        for i in range(25):
            query = draw_query(rng, f"q{i}", model.network)
            costs = {r: p.plan_query(deployment, query).cost for r, p in planners.items()}
            assert costs["relaxed"] <= costs["contained"] + 1e-9
            assert costs["contained"] <= costs["exact"] + 1e-9
            assert costs["exact"] <= costs["separate"] + 1e-9
            deployment = add_query(
                deployment, query, planners["relaxed"].plan_query(deployment, query).tree
            )


def test_names_of_nodes_change_nothing() -> None:
    rng, model, deployment = draw_setting(3, 7)
    query = draw_query(rng, "q", model.network)
    names = [n.name for n in model.network.nodes]
    new = dict(zip(names, random.Random(1).sample(names, len(names)), strict=True))
    turned = Network(
        tuple(
            sorted(
                (replace(n, name=new[n.name]) for n in model.network.nodes), key=lambda n: n.name
            )
        ),
        tuple((new[a], new[b], ms) for a, b, ms in model.network.links),
    )
    other = Planner(CostModel(turned, model.rates)).plan_query(
        Deployment({s: new[n] for s, n in deployment.stream_nodes.items()}),
        replace(query, sink=new[query.sink]),
    )
    assert other.cost == pytest.approx(Planner(model).plan_query(deployment, query).cost)


@pytest.mark.parametrize("seed", range(8))
def test_what_queries_leave_behind_is_nothing(seed: int) -> None:
    rng, model, deployment = draw_setting(seed, 6)
    service = PlanningService(Planner(model), deployment)
    here: list[DeployedQuery] = []
    for i in range(40):
        if here and rng.random() < 0.4:
            gone = here.pop(rng.randrange(len(here)))
            service.withdraw_query(gone.name)
        else:
            here.append(draw_query(rng, f"q{i}", model.network))
            service.submit_query(here[-1])
        check_consistency(service.deployment)
        names = {q.name for q in here}
        assert set(service.deployment.queries) == names
    for query in here:
        service.withdraw_query(query.name)
    assert service.deployment.operators == {} and current_cost(service) == 0


@pytest.mark.parametrize("reuse", REUSES)
def test_a_plan_costs_the_same_whether_it_tells_the_others_or_not(reuse: Reuse) -> None:
    rng, model, deployment = draw_setting(5, 8)
    service = PlanningService(Planner(model, reuse), deployment)
    for i in range(40):
        new, plan = draw_query(rng, f"q{i}", model.network), service.planner.plan_query
        quick = plan(service.deployment, new, tell=False)
        reported = plan(service.deployment, new)
        assert quick.cost == reported.cost and not quick.alternatives
        before = model.total_cost(service.deployment)
        service.deployment = add_query(service.deployment, new, quick.tree)
        if reuse != "always":
            assert model.total_cost(service.deployment) - before == pytest.approx(quick.cost)


def test_q1_is_deployed_as_the_paper_has_it_and_q2_by_where_it_is_asked() -> None:
    from braid_lab.reuse.paper_example import figure_1_example

    network, rates, at = figure_1_example()
    q1, q2 = figure1_queries()
    service = PlanningService(Planner(CostModel(network, rates)), Deployment(at))
    service.submit_query(DeployedQuery("Q1", q1, "SINK3"))
    nodes = {o.definition.streams: o.node for o in service.deployment.operators.values()}
    assert nodes[("checkins", "flights")] == "N1"
    assert nodes[q1.streams] == "N3"
    for sink, reuses, node in (("SINK4", True, "N1"), ("SINK1", False, "N2")):
        decision = service.planner.plan_query(service.deployment, DeployedQuery("Q2", q2, sink))
        assert isinstance(decision.tree, ReusedOperator if reuses else NewOperator)
        assert decision.tree.node == node
        assert len(decision.alternatives) == 2


def test_hierarchies_have_clusters_of_at_most_so_many_and_one_top() -> None:
    network = transit_stub()
    for most in (4, 16, 32):
        levels = build_hierarchy(network, most)
        assert all(len(c) <= most for level in levels for c in level.clusters.values())
        assert len(levels[-1].clusters) == 1
        assert sorted(n for c in levels[0].clusters.values() for n in c) == list(range(124))
    with pytest.raises(ValueError, match="at most 1 nodes; it must be 2 or more"):
        build_hierarchy(network, 1)


def test_the_rivals_make_valid_plans_that_are_no_better_than_the_exact_one() -> None:
    network = transit_stub(seed=2)
    model, rng = CostModel(network, draw_rates(2)), random.Random(2)
    names = [n.name for n in network.nodes]
    deployment = Deployment({s: rng.choice(names) for s in STREAMS})
    for i in range(12):
        query = DeployedQuery(f"q{i}", draw_definition(rng, most=5), rng.choice(names))
        leaves, sink = (
            stream_leaves(model, deployment, query.definition),
            network.find_node_index(query.sink),
        )
        best = tree_cost(
            model, deployment, query, plan_exactly(model, query.definition, leaves, sink)
        )
        plans = {
            "top down": HierarchicalPlanner(model, 16).plan_top_down(
                query.definition, leaves, sink
            ),
            "bottom up": HierarchicalPlanner(model, 16).plan_bottom_up(
                query.definition, leaves, sink
            ),
            "plan then deploy": plan_then_deploy(model, query.definition, leaves, sink),
            "all to the sink": plan_all_at_sink(model, query.definition, leaves, sink),
        }
        for name, tree in plans.items():
            found = add_query(deployment, query, tree)
            check_consistency(found)
            assert (
                found.operators[found.queries[query.name].operator].definition == query.definition
            ), name
            assert tree_cost(model, deployment, query, tree) >= best - 1e-9, name
        assert best == pytest.approx(Planner(model).plan_query(deployment, query).cost)


def test_lifetimes_that_are_known_count_what_an_operator_must_live_longer() -> None:
    rng, model, deployment = draw_setting(1, 4)
    query = draw_query(rng, "q", model.network)
    planner = Planner(model)
    first = replace(query, ends_at=100)
    deployment = add_query(deployment, first, planner.plan_query(deployment, first).tree)
    whole = model.total_cost(deployment)
    same = planner.plan_query(deployment, replace(query, name="r", ends_at=100))
    longer = planner.plan_query(deployment, replace(query, name="s", ends_at=200), now=0)
    unknown = planner.plan_query(deployment, replace(query, name="t"))
    assert same.cost == unknown.cost < longer.cost <= whole
    assert with_operator_moved(deployment, 0, "n0").operators[0].node == "n0"
    assert remove_queries(deployment, "q").queries == {}


def test_an_operator_is_not_relaxed_when_one_that_it_reads_is_full_and_must_be_relaxed() -> None:
    network, q = make_figure_1(), figure1_queries()[0]
    at = {s: s.upper() for s in q.streams}
    model = CostModel(network, Rates({s: draw_rates().stream_rate("a") for s in at}))
    first, second = q.streams[:2], q.streams[2:]
    low = NewOperator(first, "N1", tuple(map(StreamLeaf, first)))
    tree = NewOperator(q.streams, "N3", (low, *map(StreamLeaf, second)))
    deployment = add_query(Deployment(at), DeployedQuery("Q1", q, "SINK3"), tree)
    upstream, whole = deployment.topological_order()
    longer = replace(q, windows=tuple(2 * w for w in q.windows))
    assert deployment.can_relax(whole, longer)
    only = upstream.demands[0]
    windows = [replace(only.definition, windows=(n, n)) for n in range(1, MOST)]
    full = replace(
        upstream,
        demands=(only, *(replace(only, bit=n, definition=d) for n, d in enumerate(windows, 1))),
    )
    deployment = replace(deployment, operators={**deployment.operators, full.id: full})
    assert not deployment.can_relax(whole, longer)
    assert not deployment.can_relax(full, longer.restrict_to(first))
    for reuse in ("relaxed", "always"):
        asked = DeployedQuery("Q", longer, "SINK3")
        found = add_query(
            deployment, asked, Planner(model, reuse).plan_query(deployment, asked).tree
        )
        assert found.queries["Q"].operator != whole.id
    more = {s: (2 if s in second else 1) for s in q.streams}
    wider = replace(
        q, windows=tuple(more[s] * w for s, w in zip(q.streams, q.windows, strict=True))
    )
    assert deployment.can_relax(whole, wider), "the full one holds its part"
    found = add_query(
        deployment, DeployedQuery("Q", wider, "SINK3"), ReusedOperator(whole.id, whole.node)
    )
    assert found.operators[full.id].demands[1:] == full.demands[1:]
    assert found.operators[full.id].find_demand(0).consumers == only.consumers + 1


def test_what_cannot_be_planned_is_refused_in_a_sentence() -> None:
    network = make_figure_1().without_nodes("N3")
    q1, q2 = figure1_queries()
    at = {s: s.upper() for s in q1.streams}
    planner = Planner(CostModel(network, Rates({s: draw_rates().stream_rate("a") for s in at})))
    with pytest.raises(
        PlanningError, match="there is no path from BAGGAGE, where baggage comes from, to SINK3"
    ):
        planner.plan_query(Deployment(at), DeployedQuery("Q1", q1, "SINK3"))
    assert planner.plan_query(Deployment(at), DeployedQuery("Q2", q2, "SINK4")).tree.node == "N1"
    many = Definition.make({f"s{i}": 1 for i in range(9)})
    with pytest.raises(PlanningError, match="joins 9 streams; at most 8 can be planned"):
        planner.plan_query(Deployment(at), DeployedQuery("Q", many, "SINK4"))


def test_rates_remember_so_much_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries come and go; evicted rates are computed again, with the same value."""
    monkeypatch.setattr(rates_module, "_MOST", 8)
    rng, known = random.Random(5), draw_rates()
    wanted = [draw_definition(rng) for _ in range(60)]
    for definition in wanted * 2:
        assert known.result_byte_rate(definition) == draw_rates().result_byte_rate(definition)
        for kept in (known._tuples, known._masks, known._boxes, known._joint, known._widths):
            assert len(kept) <= 8
    assert len(set(wanted)) > 30
