"""Stream reuse: selections, definitions, relaxation and compensation (Seshadri 2008, section 3)."""

from __future__ import annotations

import random
from itertools import permutations, product

import pytest
from braid.papers.reuse import relaxation
from braid.papers.reuse.query_definition import (
    Definition,
    can_serve,
    make_compensation,
    may_reuse,
    slides_contain,
)
from braid.papers.reuse.relaxation import relax_all, relax_lifetimes, relax_operator
from braid.papers.reuse.reuse_lattice import windows_contain
from braid.papers.reuse.selections import (
    NO_VALUES,
    NULL,
    SOME,
    ColumnDomain,
    Conjunction,
    Selection,
    implies_selection,
    intersect_selections,
    make_interval,
    make_value_set,
    union_selections,
)
from braid_lab.reuse.reference import accepts_row
from hypothesis import given
from hypothesis import strategies as st
from reuse_cases import (
    MINUTE,
    OPAQUE,
    draw_definition,
    draw_selection,
    figure1_queries,
    joined,
    where,
)

pytestmark = pytest.mark.unit
VALUES = (None, 0, 1, 2, 3, 4, float("nan"))

ends = st.none() | st.tuples(st.integers(0, 4), st.booleans())
domains = st.one_of(
    st.builds(make_interval, ends, ends, st.frozensets(st.integers(0, 4), max_size=2)),
    st.builds(lambda v: make_value_set(*v), st.lists(st.integers(0, 4), max_size=3)),
    st.sampled_from([NULL, SOME, NO_VALUES]),
)
boxes = st.builds(Conjunction.make, st.dictionaries(st.sampled_from("xy"), domains, max_size=2))
selections = st.builds(Selection.make, st.lists(boxes, max_size=3))
ROWS = [dict(x=x, y=y) for x, y in product(VALUES, VALUES)]
DENSE = (None, float("nan"), *(half / 2 for half in range(-1, 10)))
DENSE_ROWS = [dict(x=x, y=y) for x, y in product(DENSE, DENSE)]
"""A row for every way in which a value can lie to the ends and values of ``domains``."""


@given(domains, domains)
def test_a_domain_within_another_has_no_value_that_the_other_lacks(
    p: ColumnDomain, q: ColumnDomain
) -> None:
    if p.is_subset(q):
        assert all(q.contains(v) for v in VALUES if p.contains(v))
    assert [p.intersect(q).contains(v) for v in VALUES] == [
        p.contains(v) and q.contains(v) for v in VALUES
    ]
    if (whole := p.union(q)) is not None:
        assert [whole.contains(v) for v in VALUES] == [
            p.contains(v) or q.contains(v) for v in VALUES
        ]


@given(selections, selections)
def test_an_implication_that_is_found_is_one(p: Selection, q: Selection) -> None:
    if implies_selection(p, q):
        assert all(accepts_row(q, row) for row in ROWS if accepts_row(p, row))
    assert implies_selection(p, p)
    assert implies_selection(p, union_selections([p, q])) and implies_selection(
        q, union_selections([p, q])
    )


@given(selections, selections)
def test_an_implication_is_found_exactly_if_brute_force_finds_no_row_against_it(
    p: Selection, q: Selection
) -> None:
    found = all(accepts_row(q, row) for row in DENSE_ROWS if accepts_row(p, row))
    assert implies_selection(p, q) == found


def test_overlapping_and_adjacent_intervals_are_merged() -> None:
    low, high = make_interval((0, True), (5, False)), make_interval((3, True), (8, False))
    inside, between = make_interval((1, True), (7, False)), make_interval((1, True), (9, False))
    both = union_selections([where(x=low), where(x=high)])
    assert implies_selection(where(x=inside), both)
    assert not implies_selection(where(x=between), both)
    halves = [where(x=make_interval(None, (5, False))), where(x=make_interval((5, True)))]
    assert implies_selection(where(x=SOME), union_selections(halves))
    assert not implies_selection(where(y=SOME), union_selections(halves))
    assert implies_selection(where(y=SOME), union_selections([*halves, where(x=NULL)]))
    corners = [where(x=low, y=SOME), where(x=high, y=low), where(x=high, y=high)]
    assert implies_selection(where(x=inside, y=inside), union_selections(corners))


def test_an_opaque_condition_of_the_cover_must_hold_in_what_is_covered() -> None:
    halves = [make_interval(None, (5, False)), make_interval((5, True))]
    cover = Selection.make(Conjunction.make({"x": half}, [OPAQUE]) for half in halves)
    assert implies_selection(Selection.make([Conjunction.make({"x": SOME}, [OPAQUE])]), cover)
    assert not implies_selection(where(x=SOME), cover)


@given(selections, selections)
def test_covers_and_conjunctions_let_pass_what_they_should(p: Selection, q: Selection) -> None:
    meets = intersect_selections(p, q)
    assert meets is not None
    for row in ROWS:
        assert accepts_row(union_selections([p, q]), row) == (
            accepts_row(p, row) or accepts_row(q, row)
        )
        assert accepts_row(meets, row) == (accepts_row(p, row) and accepts_row(q, row))


def test_implications_that_are_easy_are_found() -> None:
    dl, two = where(c=make_value_set("DL")), where(c=make_value_set("DL", "CO"))
    assert implies_selection(dl, two) and not implies_selection(two, dl)
    assert implies_selection(where(c=make_value_set("DL"), t=make_value_set("A")), dl)
    assert implies_selection(
        where(x=make_interval((3, True), (4, True))), where(x=make_interval((2, False)))
    )
    assert (
        union_selections([where(c=make_value_set("DL"), t=make_value_set("A")), two]).to_sql
        == "c IN ('CO', 'DL')"
    )
    assert union_selections([dl, where(c=make_value_set("CO"))]).to_sql == "c IN ('CO', 'DL')"


def test_windows_hold_others_as_in_figure_2() -> None:
    keys = [(5, 1), (5, 3), (5, 2), (6, 2), (6, 4), (5, 6), (4, 2)]
    held = {
        (r, s): {
            k
            for k in keys
            if k != (r, s) and windows_contain(((r,), frozenset([s])), ((k[0],), frozenset([k[1]])))
        }
        for r, s in keys
    }
    assert held[5, 1] == {(5, 2), (5, 3), (5, 6), (4, 2)}
    assert held[6, 2] == {(5, 2), (6, 4), (5, 6), (4, 2)}
    assert held[5, 2] == {(5, 6), (4, 2)}
    assert held[5, 3] == {(5, 6)}
    assert slides_contain(frozenset(), frozenset([5])) and not slides_contain(
        frozenset([5]), frozenset()
    )


def test_the_relaxation_of_section_3_2_comes_out_as_the_paper_has_it() -> None:
    q1, q2 = figure1_queries()
    part = q1.restrict_to(["flights", "checkins"])
    existing = Definition.make(
        dict(zip(part.streams, part.windows, strict=True)), part.joins, dict(zip(part.streams, part.selections, strict=True)),
        dict(zip(part.streams, part.columns, strict=True)), [MINUTE],
    )  # fmt: skip
    assert existing.columns == (frozenset({"status"}), frozenset({"num", "gate", "dest"}))
    found = relax_operator(existing, q2, until=8 * 60 * MINUTE, wanted_until=None)
    flights, checkins = (
        found.relaxed.stream_index("flights"),
        found.relaxed.stream_index("checkins"),
    )
    assert found.relaxed.selections[flights].to_sql == "carrier_code IN ('CO', 'DL')"
    assert found.relaxed.columns[flights] == {"num", "gate", "dest", "terminal", "carrier_code"}
    assert found.relaxed.columns[checkins] == {"status", "vacant_seats"}
    assert found.relaxed.windows == (5 * MINUTE, 5 * MINUTE)
    assert found.relaxed.slides == {MINUTE}
    assert found.for_existing.where[flights] == existing.selections[flights]
    assert found.for_existing.windows[checkins] == MINUTE
    assert found.for_query.where == (None, None)
    assert found.for_query.slides == {5 * MINUTE}
    assert found.changes == (
        (
            "selections",
            "flights: carrier_code = 'DL' AND terminal = 'TERMINAL A' -> carrier_code IN ('CO', 'DL')",
        ),
        ("columns", "+ checkins.vacant_seats, flights.carrier_code, flights.terminal"),
        ("lifetimes", "8 h -> without end"),
        ("windows", "checkins 1 min -> 5 min; SLIDE 1 min OR 5 min = 1 min"),
    )


def test_the_base_conditions_are_streams_joins_and_groups() -> None:
    q1, q2 = figure1_queries()
    part = q1.restrict_to(["flights", "checkins"])
    assert may_reuse(part, q2) and not may_reuse(q1, q2)
    other = Definition.make(
        dict(zip(q2.streams, q2.windows, strict=True)),
        [joined("flights", "gate", "checkins", "gate")],
    )
    assert not may_reuse(other, q2) and not may_reuse(q2, other)
    more = Definition.make(
        dict(zip(q2.streams, q2.windows, strict=True)),
        [*q2.joins, joined("flights", "gate", "checkins", "gate")],
    )
    assert may_reuse(q2, more) and not may_reuse(more, q2)
    assert make_compensation(q2, more).joins == more.joins - q2.joins


@pytest.mark.parametrize("seed", range(40))
def test_a_relaxation_is_minimal_idempotent_and_of_no_order(seed: int) -> None:
    rng = random.Random(seed)
    first = draw_definition(rng)
    others = []
    for _ in range(3):
        d = draw_definition(rng)
        others.append(
            Definition(
                first.streams, first.joins, tuple(draw_selection(rng) for _ in first.streams),
                tuple(rng.choice([1, 3]) * MINUTE for _ in first.streams),
                tuple(frozenset(rng.sample("kxyz", 2)) for _ in first.streams), d.slides,
            )
        )  # fmt: skip
    whole = [first, *others]
    relaxed = relax_all(whole)
    for d in whole:
        assert can_serve(relaxed, d)
        assert (
            relax_operator(relaxed, d).relaxed == relaxed and not relax_operator(relaxed, d).changes
        )
    for order in permutations(whole):
        step = order[0]
        for d in order[1:]:
            step = relax_operator(step, d).relaxed
        assert step == relaxed == relax_all(order)
    for d in whole[1:]:  # every definition that holds two holds their relaxation
        if can_serve(relaxed, first) and can_serve(relaxed, d):
            assert can_serve(relaxed, relax_all((first, d)))


def test_lifetimes_are_those_of_the_longest_query() -> None:
    assert relax_lifetimes([3, 5]) == 5 and relax_lifetimes([3, None]) is None
    assert [s.__name__ for s in relaxation.STEPS] == [
        "relax_selections",
        "relax_columns",
        "relax_windows",
    ]


def test_a_part_has_the_columns_that_the_rest_needs() -> None:
    q1, _ = figure1_queries()
    assert q1.restrict_to(["flights"]).columns == (frozenset({"num", "gate", "dest"}),)
    assert q1.restrict_to(["checkins", "baggage"]).columns == (
        frozenset({"area", "flight"}),
        frozenset({"status", "flight"}),
    )
    assert q1.is_connected and not q1.restrict_to(["weather", "baggage"]).is_connected


def test_what_is_above_an_aggregate_is_compensated_on_its_groups_alone() -> None:
    base = Definition.make(
        {"a": MINUTE, "b": MINUTE}, [joined("a", "k", "b", "k")], {}, {"a": ["k", "x"]}, [MINUTE]
    )
    grouped = Definition(*base.base_conditions[:2], base.selections, base.windows, base.columns, base.slides, frozenset({("a", "k"), ("a", "x")}), frozenset({"count(*)"}))  # fmt: skip
    fewer = Definition(*base.base_conditions[:2], base.selections, base.windows, base.columns, base.slides, frozenset({("a", "k")}), frozenset({"count(*)"}))  # fmt: skip
    assert can_serve(grouped, fewer) and not can_serve(fewer, grouped)
    on_group = Definition(*base.base_conditions[:2], (where(x=make_value_set(1)), *base.selections[1:]), base.windows, base.columns, base.slides, fewer.groups, fewer.aggregates)  # fmt: skip
    on_other = Definition(*base.base_conditions[:2], (where(y=make_value_set(1)), *base.selections[1:]), base.windows, base.columns, base.slides, fewer.groups, fewer.aggregates)  # fmt: skip
    assert can_serve(grouped, on_group) and not can_serve(grouped, on_other)
    shorter = Definition(*base.base_conditions[:2], base.selections, (1, 1), base.columns, base.slides, fewer.groups, fewer.aggregates)  # fmt: skip
    assert not can_serve(grouped, shorter)
