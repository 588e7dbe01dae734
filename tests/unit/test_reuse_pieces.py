"""Pieces of stream reuse, each by itself: stored deployments, demands, selections, searches."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from braid.papers.reuse.containment_order import ContainmentOrder
from braid.papers.reuse.cost import CostModel, OperatorCost
from braid.papers.reuse.deployment import (
    DeployedQuery,
    Deployment,
    remove_queries,
    upstream_demand,
)
from braid.papers.reuse.deployment_changes import is_worthwhile
from braid.papers.reuse.deployment_codec import deployment_from_plain, deployment_to_plain
from braid.papers.reuse.network import Network, Node
from braid.papers.reuse.planner import Planner, PlanningService
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.relaxation import relax_all
from braid.papers.reuse.reoptimization import ReviewQueue
from braid.papers.reuse.result_rates import Rates, StreamRate
from braid.papers.reuse.reuse_lattice import ReuseLattice
from braid.papers.reuse.selections import (
    EVERYTHING,
    ColumnDomain,
    Conjunction,
    Selection,
    make_interval,
    make_value_set,
)
from braid_lab.reuse.lattice_trace import trace_search
from reuse_cases import MINUTE, joined, where

pytestmark = pytest.mark.unit
EACH = where(
    k=make_interval((Fraction(1, 3), True), (2, False)),
    v=make_value_set("DL", "CO"),
    w=ColumnDomain(excluded=frozenset([3])),
)
"""A domain of each kind."""


def definition(minutes: int = 1, selection: Selection = EVERYTHING) -> Definition:
    return Definition.make(
        dict.fromkeys("xy", minutes * MINUTE),
        [joined("x", "k", "y", "k")],
        {"x": selection},
        {"x": ["k"], "y": ["k", "v"]},
        [MINUTE],
    )


def row_of_sites() -> tuple[CostModel, Deployment]:
    """Return three sites in a row, with both streams at the first one."""
    nodes = tuple(Node(n, "site") for n in "ABC")
    rates = Rates(
        {s: StreamRate(10.0, dict.fromkeys("kvw", 8.0)) for s in "xy"}, default_selectivity=1e-3
    )
    links = (("A", "B", 1.0), ("B", "C", 1.0))
    return CostModel(Network(nodes, links), rates), Deployment({"x": "A", "y": "A"})


def deploy(*queries: DeployedQuery) -> Deployment:
    model, empty = row_of_sites()
    service = PlanningService(Planner(model), empty)
    for query in queries:
        service.submit_query(query)
    return service.deployment


def test_a_deployment_with_domains_of_each_kind_is_stored_and_read() -> None:
    stored = deploy(DeployedQuery("q", definition(1, EACH), "C"))
    read = deployment_from_plain(json.loads(json.dumps(deployment_to_plain(stored))))
    assert read == stored and read.operators


def test_an_operator_lives_as_long_as_the_queries_that_are_left() -> None:
    short, long = (
        DeployedQuery(name, definition(), "C", ends_at=end) for name, end in (("s", 5), ("l", 9))
    )
    both = deploy(short, long)
    assert {o.until for o in both.operators.values()} == {9}
    assert {o.until for o in remove_queries(both, "l").operators.values()} == {5}


def test_a_relaxed_operator_demands_of_another_what_all_its_queries_read() -> None:
    wide = replace(definition(), columns=(frozenset("kw"), frozenset("kv")))
    (below,) = deploy(DeployedQuery("q", definition(), "C")).operators.values()
    demand = upstream_demand(wide, definition(), below)
    assert demand.columns == wide.columns and demand.selections == definition().selections


def test_a_relaxation_keeps_the_columns_of_joins_that_only_one_query_has() -> None:
    model, _ = row_of_sites()
    more = replace(definition(), joins=definition().joins | {joined("x", "v", "y", "w")})
    (operator,) = deploy(DeployedQuery("q", definition(), "C")).operators.values()
    cost = OperatorCost(operator, model.rates, [("x",), ("y",)], [0.0, 0.0], 1.0)
    assert cost.relaxed_columns(more) == [frozenset("kv"), frozenset("kvw")]
    assert tuple(cost.relaxed_columns(more)) == relax_all([definition(), more]).columns


def test_a_change_that_saves_nothing_is_not_worthwhile() -> None:
    model, _ = row_of_sites()
    near, far = (deploy(DeployedQuery("q", definition(), at)) for at in "AC")
    assert model.cost_saving(far, near) > 0 and is_worthwhile(model, far, near, 1e9)
    assert not is_worthwhile(model, far, near, 0.0)


def test_a_change_of_an_operator_lets_its_readers_be_reviewed_and_no_change_does_not() -> None:
    model, _ = row_of_sites()
    before = deploy(DeployedQuery("q", definition(), "C"))
    ((id, operator),) = before.operators.items()
    beside = replace(operator, id=id + 1)
    queue = ReviewQueue()
    queue.mark_reviewed("q")
    queue.note_change(before, replace(before, operators={**before.operators}))
    assert "q" not in queue.due_items(model, before)
    queue.note_change(before, replace(before, operators={**before.operators, id + 1: beside}))
    assert "q" in queue.due_items(model, before)


def test_keys_of_other_regions_are_passed_but_not_offered() -> None:
    order: ContainmentOrder[int, list[int]] = ContainmentOrder(lambda a, b: a >= b, list)
    for key, nid in ((3, 0b01), (2, 0b10)):
        order.get_or_insert(key).nid = nid
    assert [e.key for e in order.entries_containing(1, 0b10)] == [2]
    assert [e.key for e in order.entries_containing(1, 0b11)] == [3, 2]


def test_a_search_says_which_streams_it_leaves_out() -> None:
    (operator,) = deploy(DeployedQuery("q", definition(), "C")).operators.values()
    others = Definition.make({"x": MINUTE, "z": MINUTE}, [joined("x", "k", "z", "k")])
    (step,) = trace_search(ReuseLattice([operator.lattice_entry(0b1)]), others)
    assert step == type(step)("streams", "x, y", 0b1, "other streams")


def test_links_of_a_node_that_is_down_go_whichever_end_it_is() -> None:
    network = row_of_sites()[0].network
    assert network.without_nodes("B").links == ()
    assert network.without_nodes("A").links == (("B", "C", 1.0),)
    assert network.without_nodes("C").links == (("A", "B", 1.0),)


def test_no_tuple_of_a_sample_passes_an_empty_selection() -> None:
    rates = Rates({"x": StreamRate(1.0, {"k": 8.0}, [{"k": 1}, {"k": 2}])})
    assert rates.sample_mask("x", Selection(frozenset())) == 0
    assert rates.sample_mask("x", where(k=make_value_set(1))) == 0b10


def test_a_box_without_another_is_cut_into_disjoint_boxes() -> None:
    whole, hole = (
        Conjunction.make({c: make_interval((low, True), (high, False)) for c in ("x", "y")})
        for low, high in ((0, 6), (2, 4))
    )
    parts = whole.subtract(hole)
    for x, y in product(range(6), repeat=2):
        inside = [p for p in parts if all(d.contains({"x": x, "y": y}[c]) for c, d in p.domains)]
        assert len(inside) == (not (2 <= x < 4 and 2 <= y < 4))
