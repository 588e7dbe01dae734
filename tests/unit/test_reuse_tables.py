"""Stream reuse, by tables of values that follow from the text (Seshadri 2008, sections 3 and 4)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from braid.core.match_rules import MatchRule
from braid.core.query import MOST
from braid.papers.reuse.containment_order import ContainmentOrder
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import (
    DeployedQuery,
    Deployment,
    NewOperator,
    ReusedOperator,
    StreamLeaf,
    add_query,
    unpin_operators,
    with_operator_moved,
)
from braid.papers.reuse.network import Network, Node
from braid.papers.reuse.planner import Planner
from braid.papers.reuse.query_definition import Definition, can_serve
from braid.papers.reuse.relaxation import relax_operator
from braid.papers.reuse.reoptimization import _list_planning_orders, review_until_stable
from braid.papers.reuse.result_rates import Rates, StreamRate
from braid.papers.reuse.reuse_lattice import LatticeEntry, ReuseLattice, with_result_columns
from braid.papers.reuse.selections import (
    NO_VALUES,
    ColumnDomain,
    Conjunction,
    OpaqueCondition,
    Selection,
    make_interval,
    make_value_set,
)
from reuse_cases import MINUTE, joined, where

pytestmark = pytest.mark.unit
SECOND = 1_000_000
KEY = joined("a", "k", "b", "k")


def divides(a: int, b: int) -> bool:
    return b % a == 0


def check_divisors(order: ContainmentOrder[int, dict[int, int]]) -> None:
    """Check the order of numbers by division: neighbours, and what contains a number."""
    numbers = sorted(order.entries)
    for n in numbers:
        above = [a for a in numbers if a != n and divides(a, n)]
        least = [a for a in above if not any(divides(a, c) and c != a for c in above)]
        entry = order.entries[n]
        entry.nid = 1 + n % 2
        assert sorted(e.key for e in entry.containers) == least
        assert all(entry in e.contained for e in entry.containers)
        assert all(entry in e.containers for e in entry.contained)
        assert len(entry.contained) == len({e.key for e in entry.contained})
    for wanted in (12, 24, 30, 7):
        for regions, seen in ((-1, numbers), (2, [n for n in numbers if n % 2])):
            found = [e.key for e in order.entries_containing(wanted, regions)]
            assert sorted(found) == [n for n in seen if divides(n, wanted)]


def test_an_order_of_containment_is_that_of_divisors_however_it_came_about() -> None:
    for seed in range(6):
        keys = random.Random(seed).sample(range(1, 25), 18)
        order = ContainmentOrder[int, dict[int, int]](divides, dict)
        for key in keys:
            assert order.get_or_insert(key).key == key
        check_divisors(order)
        for key in keys[::2]:
            order.remove_key(key)
        check_divisors(order)


def make(**other: object) -> Definition:
    """Return a definition over a and b, with the given fields changed."""
    base = Definition.make(
        {"a": 5 * MINUTE, "b": 5 * MINUTE},
        [KEY],
        {"a": where(x=make_interval((0, True), (10, False)))},
        {"a": ["k", "x"], "b": ["k"]},
        [MINUTE],
    )
    return replace(base, **other)  # type: ignore[arg-type]


def ranged(low: int, high: int) -> tuple[Selection, ...]:
    return where(x=make_interval((low, True), (high, False))), make().selections[1]


SETS = frozenset[str]
WITHOUT_X = (SETS("k"), SETS("k"))
MORE = joined("a", "y", "b", "y")


@pytest.mark.parametrize(
    ("existing", "wanted", "serves"),
    [
        (make(), make(), True),
        (make(slides=frozenset()), make(), True),
        (make(), make(slides=frozenset()), False),
        (make(), make(slides=frozenset([2 * MINUTE])), True),
        (make(slides=frozenset([2 * MINUTE])), make(), False),
        (make(), make(windows=(5 * MINUTE, 4 * MINUTE)), True),
        (make(), make(windows=(4 * MINUTE, 6 * MINUTE)), False),
        (make(), make(selections=ranged(0, 9)), True),
        (make(), make(selections=ranged(0, 11)), False),
        (make(columns=WITHOUT_X), make(selections=ranged(0, 9), columns=WITHOUT_X), False),
        (make(columns=WITHOUT_X), make(columns=WITHOUT_X), True),
        (make(columns=WITHOUT_X), make(), False),
        (make(), make(columns=WITHOUT_X), True),
        (make(), make(joins=frozenset([KEY, MORE])), False),
        (
            make(columns=(SETS("kxy"), SETS("ky"))),
            make(joins=frozenset([KEY, MORE])),
            True,
        ),
        (make(joins=frozenset([KEY, MORE])), make(), False),
        (make(streams=("a", "c")), make(), False),
        (make(kind="left", left_stream="a"), make(), False),
        (make(kind="left", left_stream="a"), make(kind="left", left_stream="a"), True),
        (make(kind="left", left_stream="a"), make(kind="left", left_stream="b"), False),
    ],
)
def test_an_operator_serves_a_query_if_compensation_suffices(
    existing: Definition, wanted: Definition, serves: bool
) -> None:
    assert can_serve(existing, wanted) is serves
    for k in (1, 2):
        assert LatticeEntry(k, existing, (existing,)).can_serve(wanted) is serves


def test_a_demand_has_all_of_its_own_but_the_columns_of_results() -> None:
    demand = make(
        groups=frozenset([("a", "k")]),
        aggregates=SETS(["count(*)"]),
        kind="asof",
        left_stream="b",
        match=MatchRule("nearest"),
    )
    assert with_result_columns(demand, WITHOUT_X) == replace(demand, columns=WITHOUT_X)


def test_the_lattice_forgets_the_keys_of_levels_that_are_empty() -> None:
    grouped = frozenset([("a", "k")])
    each = [
        make(),
        make(joins=frozenset([KEY, MORE])),
        make(groups=grouped),
        replace(make(), streams=("a", "c")),
        make(),
    ]
    for order in ((0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 0, 4, 3, 1)):
        lattice = ReuseLattice(LatticeEntry(k, d, (d,)) for k, d in enumerate(each))
        left = set(range(5))
        for gone in order:
            lattice.remove_entry(gone)
            left.discard(gone)
            keys = {
                (streams, joins, groups)
                for streams, by_joins in lattice.groups.items()
                for joins, by_groups in by_joins.items()
                for groups in by_groups
            }
            assert keys == {each[k].base_conditions for k in left}
            assert all(by_joins for by_joins in lattice.groups.values())
            assert all(of for by_joins in lattice.groups.values() for of in by_joins.values())


def test_an_aggregate_serves_those_of_fewer_groups_and_equal_windows() -> None:
    both = frozenset([("a", "k"), ("b", "k")])
    base = make(groups=both, aggregates=SETS(["count(*)", "sum(x)"]))
    asked = make(groups=frozenset([("a", "k")]), aggregates=SETS(["count(*)"]))
    offers = [
        base,
        replace(base, windows=(6 * MINUTE, 5 * MINUTE)),
        replace(base, aggregates=SETS(["sum(x)"])),
        replace(base, groups=frozenset([("b", "k")])),
        replace(base, selections=ranged(0, 11)),
    ]
    lattice = ReuseLattice(LatticeEntry(k, d, (d,)) for k, d in enumerate(offers))
    assert [o.id for o, _ in lattice.find_reusable_operators(asked, relax=False)] == [0]
    found = {o.id: serves for o, serves in lattice.find_reusable_operators(asked)}
    assert found == {0: True, 1: False, 2: False, 4: False}, "the third has other groups"


def test_what_a_relaxation_changes_is_listed_by_step() -> None:
    wider = make(
        selections=ranged(0, 11),
        windows=(5 * MINUTE, 7 * MINUTE),
        columns=(SETS("kxz"), SETS("k")),
        slides=frozenset([2 * MINUTE]),
    )
    changes = dict(relax_operator(make(), wider, 60 * SECOND, 90 * SECOND).changes)
    assert [*changes] == ["selections", "columns", "lifetimes", "windows"]
    assert changes["selections"] == "a: x >= 0 AND x < 10 -> x >= 0 AND x < 11"
    assert changes["columns"] == "+ a.z"
    assert changes["lifetimes"] == "1 min -> 1 min 30 s"
    assert changes["windows"] == ("b 5 min -> 7 min; SLIDE 1 min OR 2 min = 1 min")
    assert relax_operator(make(), make(), None, 5).changes == ()
    (only,) = relax_operator(make(), make(), 5 * SECOND, None).changes
    assert only == ("lifetimes", "5 s -> without end")


@pytest.mark.parametrize(
    ("least", "most", "out", "domain"),
    [
        ((3, True), (3, True), (), make_value_set(3)),
        ((3, True), (3, True), (3,), NO_VALUES),
        ((3, True), (3, True), (4, 1), make_value_set(3)),
        ((3, True), (3, False), (), NO_VALUES),
        ((3, False), (3, True), (), NO_VALUES),
        ((4, True), (3, True), (), NO_VALUES),
        (
            (3, True),
            (4, False),
            (4, 3, 9),
            ColumnDomain((3, True), (4, False), excluded=frozenset([3])),
        ),
        (None, (4, True), (4, 5), ColumnDomain(None, (4, True), excluded=frozenset([4]))),
    ],
)
def test_an_interval_is_in_its_simplest_form(
    least: tuple[int, bool] | None,
    most: tuple[int, bool],
    out: tuple[int, ...],
    domain: ColumnDomain,
) -> None:
    assert make_interval(least, most, frozenset(out)) == domain


def test_intervals_intersect_in_the_narrower_ends() -> None:
    ends = [None, (2, True), (2, False), (5, True), (5, False)]
    values = [1.0, 2.0, 3.0, 5.0, 6.0]
    for low, high, other_low, other_high in (
        (a, b, c, d) for a in ends[:3] for b in ends[3:] for c in ends[:3] for d in ends[3:]
    ):
        first, second = make_interval(low, high), make_interval(other_low, other_high)
        both = first.intersect(second)
        for v in values:
            assert both.contains(v) == (first.contains(v) and second.contains(v))


def test_what_either_domain_excludes_is_not_in_both() -> None:
    low, high = (make_interval((0, True), (9, True), frozenset([v])) for v in (3, 5))
    both = low.intersect(high)
    assert [v for v in range(11) if both.contains(v)] == [0, 1, 2, 4, 6, 7, 8, 9]


def test_both_boxes_conditions_on_their_text_hold_in_both() -> None:
    some, other = (OpaqueCondition(text) for text in ("f(x)", "g(x)"))
    both = Conjunction.make({}, [some]).intersect(Conjunction.make({}, [other]))
    assert both is not None and both.opaque_conditions == {some, other}


def test_a_condition_known_by_its_text_lets_the_same_rows_pass_in_every_run() -> None:
    selection = Selection.make([Conjunction.make({}, [OpaqueCondition("f(x)")])])
    masks = {Rates({"a": StreamRate(1.0, {})}).sample_mask("a", selection) for _ in range(3)}
    (mask,) = masks
    assert 0.25 * 256 < mask.bit_count() < 0.35 * 256


def test_a_link_may_take_no_time() -> None:
    Network((Node("a"), Node("b")), (("a", "b", 0.0),))
    with pytest.raises(ValueError, match="latency of -1.0 ms; it must be 0 or more"):
        Network((Node("a"), Node("b")), (("a", "b", -1.0),))


def row_of_nodes() -> CostModel:
    """Return a source, a near and a far node in a row: 1 ms and 1 s between them."""
    nodes = tuple(Node(n) for n in ("source", "near", "far"))
    network = Network(nodes, (("source", "near", 1.0), ("near", "far", 1000.0)))
    known = {s: StreamRate(10.0, dict.fromkeys("kxyz", 8.0)) for s in "abcd"}
    return CostModel(network, Rates(known, default_selectivity=1e-3))


AT = dict.fromkeys("abcd", "source")


def deploy(definition: Definition, node: str, sink: str, name: str = "q") -> Deployment:
    """Return a deployment of one query, whose operator is at a node."""
    tree = NewOperator(definition.streams, node, tuple(map(StreamLeaf, definition.streams)))
    return add_query(Deployment(AT), DeployedQuery(name, definition, sink), tree)


def test_always_reuses_what_costs_more_than_a_new_operator() -> None:
    model, before = row_of_nodes(), deploy(make(), "far", "far")
    asked = DeployedQuery("r", make(), "near")
    always = Planner(model, "always").plan_query(before, asked)
    relaxed = Planner(model, "relaxed").plan_query(before, asked)
    assert always.tree == ReusedOperator(0, "far")
    assert isinstance(relaxed.tree, NewOperator) and relaxed.cost < always.cost
    assert always.cost == pytest.approx(model.rates.result_byte_rate(make()) * 1.0)


def test_a_left_join_reuses_an_equal_one_from_the_nearest_node() -> None:
    model, left = row_of_nodes(), make(kind="left", left_stream="a")
    one = deploy(left, "near", "near")
    tree = NewOperator(left.streams, "far", tuple(map(StreamLeaf, left.streams)))
    both = add_query(one, DeployedQuery("r", left, "far"), tree)
    planner = Planner(model)
    for sink, operator in (("near", 0), ("far", 1)):
        for tell in (True, False):
            found = planner.plan_query(both, DeployedQuery("s", left, sink), tell=tell)
            assert found.reused_operators == (operator,)
            assert found.cost == 0.0, "less than that of a new one, which is below 1"
    assert (
        0 < Planner(model, "separate").plan_query(both, DeployedQuery("s", left, "near")).cost < 1
    )
    other = replace(left, left_stream="b")
    assert not planner.plan_query(both, DeployedQuery("s", other, "near")).reused_operators
    assert not planner.plan_query(both, DeployedQuery("s", make(), "near")).reused_operators


def test_a_full_operator_two_levels_below_prevents_a_relaxation() -> None:
    windows = dict.fromkeys("abcd", MINUTE)
    joins = [joined("a", "k", s, "k") for s in "bcd"]
    whole = Definition.make(windows, joins, {}, {"a": ["k"]})
    low = NewOperator(("a", "b"), "source", (StreamLeaf("a"), StreamLeaf("b")))
    middle = NewOperator(("a", "b", "c"), "near", (low, StreamLeaf("c")))
    tree = NewOperator(whole.streams, "near", (middle, StreamLeaf("d")))
    before = add_query(Deployment(AT), DeployedQuery("q", whole, "near"), tree)
    lowest, between, top = before.topological_order()
    only = lowest.demands[0]
    more = (
        replace(only, bit=n, definition=replace(only.definition, windows=(n, n)))
        for n in range(1, MOST)
    )
    full = replace(lowest, demands=(only, *more))
    after = replace(before, operators={**before.operators, full.id: full})
    longer = replace(whole, windows=tuple(2 * w for w in whole.windows))
    for operator in (top, between):
        part = longer.restrict_to(operator.definition.streams)
        assert before.can_relax(operator, part) and not after.can_relax(operator, part)
    spans = {"a": 1, "b": 1, "c": 2, "d": 2}
    above = replace(whole, windows=tuple(spans[s] * MINUTE for s in whole.streams))
    for operator in (top, between):
        part = above.restrict_to(operator.definition.streams)
        assert after.can_relax(operator, part), "the full one serves its part"


@pytest.mark.parametrize(
    ("lives", "until", "now", "share"),
    [
        (100, 200, 0, 0.5),
        (100, 200, 150, 1.0),
        (100, 150, 50, 0.5),
        (200, 200, 0, 0.0),
        (300, 200, 0, 0.0),
        (None, 200, 0, 0.0),
        (100, None, 0, 0.0),
    ],
)
def test_a_longer_lifetime_costs_its_share_of_all_that_is_read(
    lives: int | None, until: int | None, now: int, share: float
) -> None:
    model, windows = row_of_nodes(), dict.fromkeys("abc", MINUTE)
    joins = [joined("a", "k", s, "k") for s in "bc"]
    whole = Definition.make(windows, joins, {}, {"a": ["k"]})
    low = NewOperator(("a", "b"), "source", (StreamLeaf("a"), StreamLeaf("b")))
    tree = NewOperator(whole.streams, "near", (low, StreamLeaf("c")))
    query = DeployedQuery("q", whole, "near", ends_at=lives)
    deployed = add_query(Deployment(AT), query, tree)
    _, top = deployed.topological_order()
    costs = sum(model.operator_cost(deployed, o) for o in deployed.operators.values())
    found = model.lifetime_extension_cost(deployed, top, now, until)
    assert found == pytest.approx(share * costs)


def test_queries_are_planned_anew_as_asked_by_bytes_and_at_random() -> None:
    model = row_of_nodes()
    spans = {"few": 1, "most": 9, "some": 3}
    queries = [
        DeployedQuery(name, make(windows=(w * MINUTE,) * 2, slides=frozenset()), "near")
        for name, w in spans.items()
    ]
    first, second, third = _list_planning_orders(model, queries, 0)
    assert first == ["few", "most", "some"] and second == ["most", "some", "few"]
    assert sorted(third) == sorted(first)


def test_nothing_is_pinned_once_all_is_released() -> None:
    one = deploy(make(), "near", "near")
    pinned = with_operator_moved(one, 0, "far", stays=True)
    assert pinned.operators[0].is_pinned
    released = unpin_operators(pinned)
    assert not released.operators[0].is_pinned and released.operators[0].node == "far"
    assert unpin_operators(one).operators[0] is one.operators[0]


def test_reviews_end_and_move_an_operator_that_was_far_away() -> None:
    model = row_of_nodes()
    away = deploy(make(), "far", "near")
    until = 100 * MINUTE
    away = add_query(
        away, DeployedQuery("r", make(), "near", ends_at=until), ReusedOperator(0, "far")
    )
    settled = review_until_stable(Planner(model), away, now=MINUTE)
    assert {o.node for o in settled.operators.values()} <= {"source", "near"}
    assert model.total_cost(settled) < model.total_cost(away)
    assert review_until_stable(Planner(model), settled, now=MINUTE) is settled
