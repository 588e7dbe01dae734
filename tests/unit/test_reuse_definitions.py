"""Stream reuse: selections, definitions, relaxation and compensation (Seshadri 2008, section 3)."""

from __future__ import annotations

import random
from itertools import permutations, product

import pytest
from braid.papers.reuse import relaxation
from braid.papers.reuse.definition import Definition, compensation, holds, may_reuse, slides_hold
from braid.papers.reuse.domains import NOTHING, NULL, SOME, Domain, among, interval
from braid.papers.reuse.lattice import windows_hold
from braid.papers.reuse.relaxation import lifetimes, relax, union
from braid.papers.reuse.selections import Box, Selection, both, either, implies
from hypothesis import given
from hypothesis import strategies as st
from reuse_cases import (
    MINUTE,
    definition_of,
    figure1_queries,
    joined,
    selection_of,
    where,
)

pytestmark = pytest.mark.unit
VALUES = (None, 0, 1, 2, 3, 4, float("nan"))

ends = st.none() | st.tuples(st.integers(0, 4), st.booleans())
domains = st.one_of(
    st.builds(interval, ends, ends, st.frozensets(st.integers(0, 4), max_size=2)),
    st.builds(lambda v: among(*v), st.lists(st.integers(0, 4), max_size=3)),
    st.sampled_from([NULL, SOME, NOTHING]),
)
boxes = st.builds(Box.of, st.dictionaries(st.sampled_from("xy"), domains, max_size=2))
selections = st.builds(Selection.of, st.lists(boxes, max_size=3))
ROWS = [dict(x=x, y=y) for x, y in product(VALUES, VALUES)]


@given(domains, domains)
def test_a_domain_within_another_has_no_value_that_the_other_lacks(p: Domain, q: Domain) -> None:
    if p.within(q):
        assert all(q.holds(v) for v in VALUES if p.holds(v))
    assert [p.both(q).holds(v) for v in VALUES] == [p.holds(v) and q.holds(v) for v in VALUES]
    if (whole := p.either(q)) is not None:
        assert [whole.holds(v) for v in VALUES] == [p.holds(v) or q.holds(v) for v in VALUES]


@given(selections, selections)
def test_an_implication_that_is_found_is_one(p: Selection, q: Selection) -> None:
    if implies(p, q):
        assert all(q.passes(row) for row in ROWS if p.passes(row))
    assert implies(p, p)
    assert implies(p, either([p, q])) and implies(q, either([p, q]))


@given(selections, selections)
def test_covers_and_conjunctions_let_pass_what_they_should(p: Selection, q: Selection) -> None:
    meets = both(p, q)
    assert meets is not None
    for row in ROWS:
        assert either([p, q]).passes(row) == (p.passes(row) or q.passes(row))
        assert meets.passes(row) == (p.passes(row) and q.passes(row))


def test_implications_that_are_easy_are_found() -> None:
    dl, two = where(c=among("DL")), where(c=among("DL", "CO"))
    assert implies(dl, two) and not implies(two, dl)
    assert implies(where(c=among("DL"), t=among("A")), dl)
    assert implies(where(x=interval((3, True), (4, True))), where(x=interval((2, False))))
    assert either([where(c=among("DL"), t=among("A")), two]).text == "c IN ('CO', 'DL')"
    assert either([dl, where(c=among("CO"))]).text == "c IN ('CO', 'DL')"


def test_windows_hold_others_as_in_figure_2() -> None:
    keys = [(5, 1), (5, 3), (5, 2), (6, 2), (6, 4), (5, 6), (4, 2)]
    held = {
        (r, s): {
            k
            for k in keys
            if k != (r, s) and windows_hold(((r,), frozenset([s])), ((k[0],), frozenset([k[1]])))
        }
        for r, s in keys
    }
    assert held[5, 1] == {(5, 2), (5, 3), (5, 6), (4, 2)}
    assert held[6, 2] == {(5, 2), (6, 4), (5, 6), (4, 2)}
    assert held[5, 2] == {(5, 6), (4, 2)}
    assert held[5, 3] == {(5, 6)}
    assert slides_hold(frozenset(), frozenset([5])) and not slides_hold(frozenset([5]), frozenset())


def test_the_relaxation_of_section_3_2_comes_out_as_the_paper_has_it() -> None:
    q1, q2 = figure1_queries()
    part = q1.part(["flights", "checkins"])
    existing = Definition.of(
        dict(zip(part.streams, part.windows, strict=True)), part.joins, dict(zip(part.streams, part.where, strict=True)),
        dict(zip(part.streams, part.columns, strict=True)), [MINUTE],
    )  # fmt: skip
    assert existing.columns == (frozenset({"status"}), frozenset({"num", "gate", "dest"}))
    found = relax(existing, q2, until=8 * 60 * MINUTE, wanted_until=None)
    flights, checkins = found.relaxed.place("flights"), found.relaxed.place("checkins")
    assert found.relaxed.where[flights].text == "carrier_code IN ('CO', 'DL')"
    assert found.relaxed.columns[flights] == {"num", "gate", "dest", "terminal", "carrier_code"}
    assert found.relaxed.columns[checkins] == {"status", "vacant_seats"}
    assert found.relaxed.windows == (5 * MINUTE, 5 * MINUTE)
    assert found.relaxed.slides == {MINUTE}
    assert found.for_existing.where[flights] == existing.where[flights]
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
    part = q1.part(["flights", "checkins"])
    assert may_reuse(part, q2) and not may_reuse(q1, q2)
    other = Definition.of(
        dict(zip(q2.streams, q2.windows, strict=True)),
        [joined("flights", "gate", "checkins", "gate")],
    )
    assert not may_reuse(other, q2) and not may_reuse(q2, other)
    more = Definition.of(
        dict(zip(q2.streams, q2.windows, strict=True)),
        [*q2.joins, joined("flights", "gate", "checkins", "gate")],
    )
    assert may_reuse(q2, more) and not may_reuse(more, q2)
    assert compensation(q2, more).joins == more.joins - q2.joins


@pytest.mark.parametrize("seed", range(40))
def test_a_relaxation_is_minimal_idempotent_and_of_no_order(seed: int) -> None:
    rng = random.Random(seed)
    first = definition_of(rng)
    others = []
    for _ in range(3):
        d = definition_of(rng)
        others.append(
            Definition(
                first.streams, first.joins, tuple(selection_of(rng) for _ in first.streams),
                tuple(rng.choice([1, 3]) * MINUTE for _ in first.streams),
                tuple(frozenset(rng.sample("kxyz", 2)) for _ in first.streams), d.slides,
            )
        )  # fmt: skip
    whole = [first, *others]
    relaxed = union(whole)
    for d in whole:
        assert holds(relaxed, d)
        assert relax(relaxed, d).relaxed == relaxed and not relax(relaxed, d).changes
    for order in permutations(whole):
        step = order[0]
        for d in order[1:]:
            step = relax(step, d).relaxed
        assert step == relaxed == union(order)
    for d in whole[1:]:  # every definition that holds two holds their relaxation
        if holds(relaxed, first) and holds(relaxed, d):
            assert holds(relaxed, union((first, d)))


def test_lifetimes_are_those_of_the_longest_query() -> None:
    assert lifetimes([3, 5]) == 5 and lifetimes([3, None]) is None
    assert [s.__name__ for s in relaxation.STEPS] == ["selections", "columns", "windows"]


def test_a_part_has_the_columns_that_the_rest_needs() -> None:
    q1, _ = figure1_queries()
    assert q1.part(["flights"]).columns == (frozenset({"num", "gate", "dest"}),)
    assert q1.part(["checkins", "baggage"]).columns == (
        frozenset({"area", "flight"}),
        frozenset({"status", "flight"}),
    )
    assert q1.connected and not q1.part(["weather", "baggage"]).connected


def test_what_is_above_an_aggregate_is_compensated_on_its_groups_alone() -> None:
    base = Definition.of(
        {"a": MINUTE, "b": MINUTE}, [joined("a", "k", "b", "k")], {}, {"a": ["k", "x"]}, [MINUTE]
    )
    grouped = Definition(*base.base[:2], base.where, base.windows, base.columns, base.slides, frozenset({("a", "k"), ("a", "x")}), frozenset({"count(*)"}))  # fmt: skip
    fewer = Definition(*base.base[:2], base.where, base.windows, base.columns, base.slides, frozenset({("a", "k")}), frozenset({"count(*)"}))  # fmt: skip
    assert holds(grouped, fewer) and not holds(fewer, grouped)
    on_group = Definition(*base.base[:2], (where(x=among(1)), *base.where[1:]), base.windows, base.columns, base.slides, fewer.groups, fewer.aggregates)  # fmt: skip
    on_other = Definition(*base.base[:2], (where(y=among(1)), *base.where[1:]), base.windows, base.columns, base.slides, fewer.groups, fewer.aggregates)  # fmt: skip
    assert holds(grouped, on_group) and not holds(grouped, on_other)
    shorter = Definition(*base.base[:2], base.where, (1, 1), base.columns, base.slides, fewer.groups, fewer.aggregates)  # fmt: skip
    assert not holds(grouped, shorter)
