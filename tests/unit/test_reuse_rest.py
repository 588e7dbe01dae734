"""Stream reuse: a deployment comes to rest, at a lower cost."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import (
    DeployedQuery,
    Deployment,
    NewOperator,
    ReusedOperator,
    StreamLeaf,
    add_query,
    with_operator_moved,
)
from braid.papers.reuse.deployment_changes import (
    diff_deployments,
    is_worthwhile,
    keep_operator_ids,
    replan_in_order,
)
from braid.papers.reuse.network import Network, Node
from braid.papers.reuse.planner import Planner, PlanningService
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.reoptimization import (
    ReviewQueue,
    best_replan,
    place_optimally,
    review_item,
    review_items,
    review_until_stable,
)
from braid.papers.reuse.result_rates import Rates, StreamRate
from braid_lab.reuse.experiments import reoptimization_costs
from braid_lab.reuse.scenario import make_scenario
from reuse_cases import MINUTE, check_consistency, draw_definition, draw_setting, joined
from reuse_cases import draw_query as any_query

pytestmark = pytest.mark.unit


def line() -> tuple[CostModel, Deployment]:
    """Return a network in a row, with both streams in the middle; answers are smaller than
    streams.
    """
    names = ("T1", "A", "M", "B", "T2")
    nodes = tuple(Node(n, "site", (i, 0)) for i, n in enumerate(names))
    links = tuple((a, b, 10.0) for a, b in zip(names, names[1:], strict=False))
    rates = Rates({s: StreamRate(10.0, {"k": 8.0}) for s in "xy"}, default_selectivity=1e-2)
    return CostModel(Network(nodes, links), rates), Deployment({"x": "M", "y": "M"})


def query(name: str, sink: str, minutes: int = 1) -> DeployedQuery:
    definition = Definition.make(
        dict.fromkeys("xy", minutes * MINUTE),
        [joined("x", "k", "y", "k")],
        columns={s: ["k"] for s in "xy"},
        slides=[100 * MINUTE],
    )
    return DeployedQuery(name, definition, sink)


def placed(deployment: Deployment, asked: DeployedQuery, node: str) -> Deployment:
    return add_query(
        deployment, asked, NewOperator(("x", "y"), node, (StreamLeaf("x"), StreamLeaf("y")))
    )


@pytest.mark.parametrize("minutes", [1, 2])
def test_an_operator_that_another_can_stand_in_for_goes(minutes: int) -> None:
    model, empty = line()
    planner = Planner(model)
    both = placed(placed(empty, query("q1", "T1", minutes), "A"), query("q2", "T2"), "M")
    assert review_items(model, both) == [0, 1, "q1", "q2"], "what costs most comes first"
    after = review_item(planner, both, 0)
    assert [(o.id, o.node) for o in after.operators.values()] == [(1, "M")]
    assert model.total_cost(after) < model.total_cost(both) and list(after.queries) == ["q1", "q2"]
    check_consistency(after)
    assert review_item(planner, after, 0) is after and review_item(planner, after, "gone") is after
    assert review_until_stable(planner, both) == after


@pytest.mark.parametrize(("count", "goes"), [(60, True), (61, False)])
def test_an_operator_of_more_than_sixty_queries_is_not_planned_anew(count: int, goes: bool) -> None:
    model, empty = line()
    both = placed(placed(empty, query("q0", "M"), "A"), query("other", "M"), "M")
    for n in range(1, count):
        both = add_query(both, query(f"q{n}", "M"), ReusedOperator(0, "A"))
    assert (0 not in review_item(Planner(model), both, 0).operators) == goes


def test_a_query_goes_where_it_is_cheaper_now() -> None:
    model, empty = line()
    both = placed(placed(empty, query("q1", "T1"), "A"), query("q2", "T2"), "M")
    after = review_item(Planner(model), both, "q1")
    assert after.queries["q1"].operator == 1 and 0 not in after.operators
    check_consistency(after)


def test_what_somebody_has_put_somewhere_stays_until_all_is_planned_anew() -> None:
    model, empty = line()
    planner = Planner(model)
    both = placed(placed(empty, query("q1", "T1", 2), "A"), query("q2", "T2"), "M")
    put = with_operator_moved(both, 0, "B", stays=True)
    for item in (0, "q1"):
        assert review_item(
            planner, with_operator_moved(both, 0, "B"), item, lasts=math.inf
        ).operators.keys() == {1}
        assert review_item(planner, put, item, lasts=math.inf) is put
    assert place_optimally(model, put, 0) is put
    rests = review_until_stable(planner, put, lasts=math.inf)
    assert rests.operators[0].node == "B" and rests.queries["q1"].operator == 0
    anew = best_replan(planner, put)
    assert model.total_cost(anew) < model.total_cost(put)
    assert not any(o.is_pinned or o.node == "B" for o in anew.operators.values())


def test_nothing_changes_that_does_not_save_in_time_what_it_sends() -> None:
    model, empty = line()
    both = placed(placed(empty, query("q1", "T2", 2), "A"), query("q2", "T2"), "B")
    planner = Planner(model)
    after = review_item(planner, both, "q1", lasts=math.inf)
    assert after is not both
    saving = model.total_cost(both) - model.total_cost(after)
    sent = sum(
        model.rates.result_byte_rate(flow.definition)
        * 120
        * model.path_latency_seconds(flow.source_node, flow.target_node)
        for operator in diff_deployments(both, after).build
        for flow in after.operator_inflows(operator, operator.definition)
    )
    assert review_item(planner, both, "q1", lasts=1.01 * sent / saving) == after
    assert review_item(planner, both, "q1", lasts=0.99 * sent / saving) is both


@pytest.mark.parametrize("seed", range(4))
def test_an_operator_settles_where_the_whole_costs_least(seed: int) -> None:
    rng, model, deployment = draw_setting(seed, 6)
    service = PlanningService(Planner(model), deployment)
    for i in range(8):
        service.submit_query(any_query(rng, f"q{i}", model.network))
    before = service.deployment
    nodes = [n.name for n in model.network.nodes if n.can_host_operators]
    for id in before.operators:
        after = place_optimally(model, before, id)
        least = min(model.total_cost(with_operator_moved(before, id, node)) for node in nodes)
        assert model.total_cost(after) == pytest.approx(min(least, model.total_cost(before)))
        saved = model.total_cost(before) - model.total_cost(after)
        assert model.cost_saving(before, after) == pytest.approx(saved, abs=1e-6)
        there = replace(after.operators[id], node=before.operators[id].node)
        assert {**after.operators, id: there} == before.operators


def test_a_move_is_weighed_against_the_state_that_it_sends() -> None:
    model, empty = line()
    far = placed(empty, query("q1", "M"), "T1")
    near = place_optimally(model, far, 0)
    assert near.operators[0].node == "M"
    rate = 2 * 10.0 * 16
    saving = model.total_cost(far) - model.total_cost(near)
    pays = rate * 60 * 0.02 / saving
    assert is_worthwhile(model, far, near, 1.01 * pays) and not is_worthwhile(
        model, far, near, 0.99 * pays
    )


def test_without_reuse_all_is_at_rest_from_the_start() -> None:
    rng, model, deployment = draw_setting(1, 6)
    service = PlanningService(Planner(model, "separate"), deployment)
    for i in range(6):
        service.submit_query(any_query(rng, f"q{i}", model.network))
    assert review_until_stable(service.planner, service.deployment) is service.deployment


def test_at_rest_every_query_is_served_and_less_is_sent() -> None:
    whole = make_scenario("enterprise", 50)
    service = whole.make_service("relaxed")
    for q in whole.queries:
        service.submit_query(q)
    before, planner = service.deployment, service.planner
    after = review_until_stable(planner, before)
    check_consistency(after)
    assert list(after.queries) == [q.name for q in whole.queries]
    for q in whole.queries:
        assert (after.queries[q.name].definition, after.queries[q.name].sink) == (
            q.definition,
            q.sink,
        )
    assert whole.model.total_cost(after) < 0.97 * whole.model.total_cost(before)
    assert review_until_stable(planner, after) is after


@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_looked_at_again_would_not_have_changed(seed: int) -> None:
    rng, model, deployment = draw_setting(seed, 8)
    service = PlanningService(Planner(model), deployment)
    for i in range(30):
        service.submit_query(any_query(rng, f"q{i}", model.network))
    after = review_until_stable(service.planner, service.deployment, lasts=math.inf)
    check_consistency(after)
    for item in review_items(model, after):
        assert review_item(service.planner, after, item, lasts=math.inf) is after


def test_only_what_a_change_is_near_to_is_looked_at_again() -> None:
    rng, model, deployment = draw_setting(0, 6)
    service, looks = PlanningService(Planner(model), deployment), ReviewQueue()
    for i, streams in enumerate(("abc", "ab", "de")):
        definition = draw_definition(rng, tuple(streams), len(streams))
        service.submit_query(DeployedQuery(f"q{i}", definition, model.network.nodes[0].name))
    before = service.deployment
    for item in looks.due_items(model, before):
        looks.mark_reviewed(item)
    looks.note_change(before, before)
    assert looks.due_items(model, before) == []
    near = before.queries["q1"].operator
    elsewhere = next(n.name for n in model.network.nodes if n.name != before.operators[near].node)
    looks.note_change(before, with_operator_moved(before, near, elsewhere))
    assert "q1" in looks.due_items(model, before) and "q2" not in looks.due_items(model, before)
    assert near in looks.due_items(model, before)
    assert before.queries["q2"].operator not in looks.due_items(model, before)


def test_what_comes_out_as_it_was_is_the_same_object() -> None:
    rng, model, deployment = draw_setting(2, 6)
    service = PlanningService(Planner(model), deployment)
    for i in range(12):
        service.submit_query(any_query(rng, f"q{i}", model.network))
    before = service.deployment
    for name in before.queries:
        after = keep_operator_ids(before, replan_in_order(service.planner, before, [name]))
        check_consistency(after)
        saved = model.total_cost(before) - model.total_cost(after)
        assert model.cost_saving(before, after) == pytest.approx(saved, abs=1e-6)
        for id in before.operators.keys() & after.operators.keys():
            if before.operators[id] == after.operators[id]:
                assert after.operators[id] is before.operators[id]


def test_the_study_has_each_way_of_reuse_before_and_at_rest() -> None:
    found = reoptimization_costs("enterprise", 25).set_index(["strategy", "planned"])
    usage = found["network_usage_modelled"]
    for strategy in ("separate", "contained", "relaxed"):
        assert usage[strategy, "re-optimized"] <= usage[strategy, "one by one"]
        assert found["built"][strategy, "one by one"] == 0
    assert usage["separate", "re-optimized"] == usage["separate", "one by one"]
    assert usage["relaxed", "re-optimized"] < usage["contained", "re-optimized"]
