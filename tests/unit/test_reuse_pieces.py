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
    NewOperator,
    StreamLeaf,
    remove_queries,
    upstream_demand,
    with_operator_moved,
)
from braid.papers.reuse.deployment_changes import is_worthwhile
from braid.papers.reuse.deployment_codec import deployment_from_plain, deployment_to_plain
from braid.papers.reuse.network import Network, Node
from braid.papers.reuse.planner import Planner, PlanningService, fuse_operators
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.relaxation import format_slide, relax_all
from braid.papers.reuse.reoptimization import ReviewQueue
from braid.papers.reuse.result_rates import Rates, StreamRate
from braid.papers.reuse.reuse_lattice import ReuseLattice
from braid.papers.reuse.selections import (
    EVERYTHING,
    ColumnDomain,
    Conjunction,
    Selection,
    intersect_selections,
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
    u=ColumnDomain(includes_null=True),
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


def test_exact_reuse_takes_operators_with_the_same_definition_only() -> None:
    model, empty = row_of_sites()
    service = PlanningService(Planner(model, "exact"), empty)
    for name, minutes in (("first", 2), ("same", 2), ("shorter", 1)):
        service.submit_query(DeployedQuery(name, definition(minutes), "C"))
    reused = {name: query.operator for name, query in service.deployment.queries.items()}
    assert reused["first"] == reused["same"] != reused["shorter"]


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


def test_a_key_is_put_below_all_keys_that_hold_it_and_below_each_once() -> None:
    order = ContainmentOrder[frozenset[str], None](frozenset.__ge__, lambda: None)
    for key in ("abc", "ab", "ac", "b", "a"):
        order.get_or_insert(frozenset(key))
    by_key = {"".join(sorted(key)): entry for key, entry in order.entries.items()}
    above = {key: sorted(len(e.key) for e in entry.containers) for key, entry in by_key.items()}
    assert above == {"abc": [], "ab": [3], "ac": [3], "b": [2], "a": [2, 2]}
    order.get_or_insert(frozenset())
    assert sorted(map(len, (e.key for e in order.entries[frozenset()].containers))) == [1, 1]


def test_new_operators_of_one_node_are_one_whose_inputs_stay_in_order() -> None:
    x, y, z, far = (StreamLeaf(s) for s in ("x", "y", "z", "w"))
    elsewhere = NewOperator(("w", "z"), "B", (z, far))
    inner = NewOperator(("w", "y", "z"), "A", (y, elsewhere))
    whole = NewOperator(("w", "x", "y", "z"), "A", (x, inner))
    assert fuse_operators(whole) == replace(whole, inputs=(x, y, elsewhere))
    assert fuse_operators(x) is x


def test_the_load_of_a_link_is_the_sum_over_all_that_pass_it() -> None:
    network = row_of_sites()[0].network
    sent = [("A", "C", 3.0), ("C", "B", 4.0), ("B", "B", 9.0)]
    assert network.link_loads(sent) == {("A", "B"): 3.0, ("B", "C"): 7.0}


def test_a_node_that_is_down_hosts_nothing_and_is_of_a_role_that_there_is() -> None:
    roles = [(n.name, n.role) for n in row_of_sites()[0].network.without_nodes("B").nodes]
    assert roles == [("A", "site"), ("B", "sink"), ("C", "site")]


def test_a_deployment_of_another_shape_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="the stored deployment"):
        deployment_from_plain({"operators": 1})


def test_a_slide_reads_as_its_durations_in_order() -> None:
    assert format_slide(frozenset([5 * MINUTE, MINUTE])) == "1 min OR 5 min"
    assert format_slide(frozenset()) == "every match"


def test_selections_with_more_than_64_boxes_in_common_are_not_intersected() -> None:
    def boxes(column: str, count: int) -> Selection:
        parts = (make_interval((10 * k, True), (10 * k + 1, False)) for k in range(count))
        return Selection.make(
            Conjunction.make({column: part, f"{column}{k}": part}) for k, part in enumerate(parts)
        )

    found = intersect_selections(boxes("x", 8), boxes("y", 8))
    assert found is not None and len(found.conjunctions) == 64
    assert intersect_selections(boxes("x", 5), boxes("y", 13)) is None


def test_work_costs_a_thousandth_of_a_byte_in_transit_a_tuple() -> None:
    """On one site nothing is in transit: the cost is that of 20 tuples in and what is joined."""
    model, _ = row_of_sites()
    (operator,) = deploy(DeployedQuery("q", definition(), "A")).operators.values()
    joined_rate = model.rates.result_rate(operator.definition)
    one_site = deploy(DeployedQuery("q", definition(), "A"))
    assert model.network_usage(one_site) == 0
    assert model.total_cost(one_site) == pytest.approx((20 + joined_rate) / 1000)


@pytest.mark.parametrize(("minutes", "pays"), [(50, True), (70, False)])
def test_a_change_pays_off_if_it_saves_within_an_hour_what_it_sends(
    minutes: int, pays: bool
) -> None:
    """Few answers: what moves are windows, and what is saved is the way of their streams."""
    model, _ = row_of_sites()
    model = replace(model, rates=replace(model.rates, default_selectivity=1e-9))
    there = deploy(DeployedQuery("q", definition(minutes), "A"))
    far = with_operator_moved(there, 0, "B")
    assert is_worthwhile(model, far, there) == pays
