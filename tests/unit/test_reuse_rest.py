"""Stream reuse: what is deployed comes to rest, and costs less for it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from braid.papers.reuse.changes import changes, kept, planned, worth
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.definition import Definition
from braid.papers.reuse.deployment import Asked, Deployment, New, Source, moved, submitted
from braid.papers.reuse.network import Network, Node
from braid.papers.reuse.planner import Planner, Service
from braid.papers.reuse.rates import Rates, StreamRate
from braid.papers.reuse.rest import Looks, again, items, replanned, rested, settled
from braid.studies.reuse import resting, scene
from reuse_cases import MINUTE, consistent, definition_of, joined, setting
from reuse_cases import asked as any_query

pytestmark = pytest.mark.unit


def line() -> tuple[CostModel, Deployment]:
    """A network in a row, with both streams in the middle; answers are smaller than streams."""
    names = ("T1", "A", "M", "B", "T2")
    nodes = tuple(Node(n, "site", (i, 0)) for i, n in enumerate(names))
    links = tuple((a, b, 10.0) for a, b in zip(names, names[1:], strict=False))
    rates = Rates({s: StreamRate(10.0, {"k": 8.0}) for s in "xy"}, unknown=1e-2)
    return CostModel(Network(nodes, links), rates), Deployment({"x": "M", "y": "M"})


def query(name: str, sink: str, minutes: int = 1) -> Asked:
    definition = Definition.of(
        dict.fromkeys("xy", minutes * MINUTE),
        [joined("x", "k", "y", "k")],
        columns={s: ["k"] for s in "xy"},
        slides=[100 * MINUTE],
    )
    return Asked(name, definition, sink)


def placed(deployment: Deployment, asked: Asked, node: str) -> Deployment:
    return submitted(deployment, asked, New(("x", "y"), node, (Source("x"), Source("y"))))


@pytest.mark.parametrize("minutes", [1, 2])
def test_an_operator_that_another_can_stand_in_for_goes(minutes: int) -> None:
    model, empty = line()
    planner = Planner(model)
    both = placed(placed(empty, query("q1", "T1", minutes), "A"), query("q2", "T2"), "M")
    assert items(model, both) == [0, 1, "q1", "q2"], "what costs most comes first"
    after = again(planner, both, 0)
    assert [(o.id, o.node) for o in after.operators.values()] == [(1, "M")]
    assert model.total(after) < model.total(both) and list(after.queries) == ["q1", "q2"]
    consistent(after)
    assert again(planner, after, 0) is after and again(planner, after, "gone") is after
    assert rested(planner, both) == after


def test_a_query_goes_where_it_is_cheaper_now() -> None:
    model, empty = line()
    both = placed(placed(empty, query("q1", "T1"), "A"), query("q2", "T2"), "M")
    after = again(Planner(model), both, "q1")
    assert after.queries["q1"].operator == 1 and 0 not in after.operators
    consistent(after)


def test_what_somebody_has_put_somewhere_stays_until_all_is_planned_anew() -> None:
    model, empty = line()
    planner = Planner(model)
    both = placed(placed(empty, query("q1", "T1", 2), "A"), query("q2", "T2"), "M")
    put = moved(both, 0, "B", stays=True)
    for item in (0, "q1"):
        assert again(planner, moved(both, 0, "B"), item, lasts=math.inf).operators.keys() == {1}
        assert again(planner, put, item, lasts=math.inf) is put
    assert settled(model, put, 0) is put
    rests = rested(planner, put, lasts=math.inf)
    assert rests.operators[0].node == "B" and rests.queries["q1"].operator == 0
    anew = replanned(planner, put)
    assert model.total(anew) < model.total(put)
    assert not any(o.stays or o.node == "B" for o in anew.operators.values())


def test_nothing_changes_that_does_not_save_in_time_what_it_sends() -> None:
    model, empty = line()
    both = placed(placed(empty, query("q1", "T2", 2), "A"), query("q2", "T2"), "B")
    planner = Planner(model)
    after = again(planner, both, "q1", lasts=math.inf)
    assert after is not both
    saving = model.total(both) - model.total(after)
    sent = sum(
        model.rates.bytes(flow.definition) * 120 * model.latency(flow.source, flow.target)
        for operator in changes(both, after).build
        for flow in after.inflows(operator, operator.definition)
    )
    assert again(planner, both, "q1", lasts=1.01 * sent / saving) == after
    assert again(planner, both, "q1", lasts=0.99 * sent / saving) is both


@pytest.mark.parametrize("seed", range(4))
def test_an_operator_settles_where_the_whole_costs_least(seed: int) -> None:
    rng, model, deployment = setting(seed, 6)
    service = Service(Planner(model), deployment)
    for i in range(8):
        service.submit(any_query(rng, f"q{i}", model.network))
    before = service.deployment
    nodes = [n.name for n in model.network.nodes if n.works]
    for id in before.operators:
        after = settled(model, before, id)
        least = min(model.total(moved(before, id, node)) for node in nodes)
        assert model.total(after) == pytest.approx(min(least, model.total(before)))
        saved = model.total(before) - model.total(after)
        assert model.saving(before, after) == pytest.approx(saved, abs=1e-6)
        there = replace(after.operators[id], node=before.operators[id].node)
        assert {**after.operators, id: there} == before.operators


def test_a_move_is_weighed_against_the_state_that_it_sends() -> None:
    model, empty = line()
    far = placed(empty, query("q1", "M"), "T1")
    near = settled(model, far, 0)
    assert near.operators[0].node == "M"
    rate = 2 * 10.0 * 16
    saving = model.total(far) - model.total(near)
    pays = rate * 60 * 0.02 / saving
    assert worth(model, far, near, 1.01 * pays) and not worth(model, far, near, 0.99 * pays)


def test_without_reuse_all_is_at_rest_from_the_start() -> None:
    rng, model, deployment = setting(1, 6)
    service = Service(Planner(model, "separate"), deployment)
    for i in range(6):
        service.submit(any_query(rng, f"q{i}", model.network))
    assert rested(service.planner, service.deployment) is service.deployment


def test_at_rest_every_query_is_served_and_less_is_sent() -> None:
    whole = scene("enterprise", 50)
    service = whole.service("relaxed")
    for q in whole.queries:
        service.submit(q)
    before, planner = service.deployment, service.planner
    after = rested(planner, before)
    consistent(after)
    assert list(after.queries) == [q.name for q in whole.queries]
    for q in whole.queries:
        assert (after.queries[q.name].definition, after.queries[q.name].sink) == (
            q.definition,
            q.sink,
        )
    assert whole.model.total(after) < 0.97 * whole.model.total(before)
    assert rested(planner, after) is after


@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_looked_at_again_would_not_have_changed(seed: int) -> None:
    rng, model, deployment = setting(seed, 8)
    service = Service(Planner(model), deployment)
    for i in range(30):
        service.submit(any_query(rng, f"q{i}", model.network))
    after = rested(service.planner, service.deployment, lasts=math.inf)
    consistent(after)
    for item in items(model, after):
        assert again(service.planner, after, item, lasts=math.inf) is after


def test_only_what_a_change_is_near_to_is_looked_at_again() -> None:
    rng, model, deployment = setting(0, 6)
    service, looks = Service(Planner(model), deployment), Looks()
    for i, streams in enumerate(("abc", "ab", "de")):
        definition = definition_of(rng, tuple(streams), len(streams))
        service.submit(Asked(f"q{i}", definition, model.network.nodes[0].name))
    before = service.deployment
    for item in looks.due(model, before):
        looks.at(item)
    looks.note(before, before)
    assert looks.due(model, before) == []
    near = before.queries["q1"].operator
    elsewhere = next(n.name for n in model.network.nodes if n.name != before.operators[near].node)
    looks.note(before, moved(before, near, elsewhere))
    assert "q1" in looks.due(model, before) and "q2" not in looks.due(model, before)
    assert near in looks.due(model, before)
    assert before.queries["q2"].operator not in looks.due(model, before)


def test_what_comes_out_as_it_was_is_the_same_object() -> None:
    rng, model, deployment = setting(2, 6)
    service = Service(Planner(model), deployment)
    for i in range(12):
        service.submit(any_query(rng, f"q{i}", model.network))
    before = service.deployment
    for name in before.queries:
        after = kept(before, planned(service.planner, before, [name]))
        consistent(after)
        saved = model.total(before) - model.total(after)
        assert model.saving(before, after) == pytest.approx(saved, abs=1e-6)
        for id in before.operators.keys() & after.operators.keys():
            if before.operators[id] == after.operators[id]:
                assert after.operators[id] is before.operators[id]


def test_the_study_has_each_way_of_reuse_before_and_at_rest() -> None:
    found = resting("enterprise", 25).set_index(["strategy", "planned"])
    usage = found["usage_modelled"]
    for strategy in ("separate", "contained", "relaxed"):
        assert usage[strategy, "at rest"] <= usage[strategy, "one by one"]
        assert found["built"][strategy, "one by one"] == 0
    assert usage["separate", "at rest"] == usage["separate", "one by one"]
    assert usage["relaxed", "at rest"] < usage["contained", "at rest"]
