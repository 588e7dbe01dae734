"""Stream reuse: the lattice finds what a linear scan finds (Seshadri 2008, section 4)."""

from __future__ import annotations

import cProfile
import random
from collections.abc import Callable
from typing import Any

import pytest
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.relaxation import relax_all
from braid.papers.reuse.reuse_lattice import ALL, LatticeEntry, ReuseLattice
from braid.papers.reuse.selections import make_interval
from braid_lab.reuse.lattice_trace import trace_search
from braid_lab.reuse.reference import linear_search
from reuse_cases import MINUTE, draw_definition, draw_selection, joined, where

pytestmark = pytest.mark.unit


def draw_offer(rng: random.Random, id: int, streams: tuple[str, ...]) -> LatticeEntry:
    first = draw_definition(rng, streams)
    demands = [first]
    for _ in range(rng.randrange(3)):
        demands.append(
            Definition(
                first.streams, first.joins, tuple(draw_selection(rng) for _ in first.streams),
                first.windows, first.columns, rng.choice([frozenset(), first.slides]),
            )
        )  # fmt: skip
    return LatticeEntry(id, relax_all(demands), tuple(demands), rng.randrange(1, 16))


@pytest.mark.parametrize("seed", range(12))
def test_the_lattice_finds_what_a_scan_finds(seed: int) -> None:
    rng = random.Random(seed)
    streams = tuple("abc")
    lattice, known = ReuseLattice(), {}
    for _ in range(120):
        if known and rng.random() < 0.35:
            gone = rng.choice(list(known))
            lattice.remove_entry(gone)
            del known[gone]
        else:
            offer = draw_offer(rng, rng.randrange(60), streams)
            known[offer.id] = offer
            lattice.insert_entry(offer)
        wanted = (
            draw_definition(rng, streams)
            if rng.random() < 0.5
            else draw_offer(rng, 0, streams).demands[0]
        )
        if known and rng.random() < 0.6:
            wanted = rng.choice(rng.choice(list(known.values())).demands)
        for regions in (ALL, rng.randrange(16)):
            for relax in (True, False):
                assert lattice.find_reusable_operators(wanted, regions, relax) == linear_search(
                    known.values(), wanted, regions, relax
                )
    assert len(lattice) == len(known)
    for id in list(known):
        lattice.remove_entry(id)
    assert len(lattice) == 0 and lattice.groups == {}


def test_a_query_inside_a_union_of_demands_but_in_none_is_relaxed() -> None:
    def ranged(low: int, high: int) -> Definition:
        on = where(x=make_interval((low, True), (high, True)))
        return Definition.make(
            {"a": MINUTE, "b": MINUTE}, [joined("a", "k", "b", "k")], {"a": on}, {"a": ["x"]}
        )

    whole = where(x=make_interval((0, True), (9, True)))
    low, high, middle = ranged(0, 5), ranged(4, 9), ranged(3, 6)
    both = relax_all((low, high, ranged(0, 0)))
    assert both.selections[0] != whole
    one = Definition.make(
        {"a": MINUTE, "b": MINUTE},
        low.joins,
        {"b": where(x=make_interval((3, True)))},
        {"a": ["x"]},
    )
    other = Definition.make(
        {"a": MINUTE, "b": MINUTE},
        low.joins,
        {"a": where(x=make_interval((3, True)))},
        {"a": ["x"]},
    )
    crossing = Definition.make({"a": MINUTE, "b": MINUTE}, low.joins, {}, {"a": ["x"]})
    offer = LatticeEntry(1, relax_all((one, other)), (one, other))
    # The union of both selects everything of both streams; a pair of which each demand has one
    # member only is made by neither.
    assert offer.definition.selections == crossing.selections
    lattice = ReuseLattice([offer])
    assert lattice.find_reusable_operators(crossing) == [(offer, False)]
    assert lattice.find_reusable_operators(crossing, relax=False) == []
    assert (
        ReuseLattice(
            [LatticeEntry(2, relax_all((low, high)), (low, high))]
        ).find_reusable_operators(middle, relax=False)
        == []
    )


def test_the_nid_of_a_node_is_that_of_its_operators() -> None:
    rng = random.Random(5)
    first = draw_definition(rng, ("a", "b"), 2)
    lattice = ReuseLattice(
        [LatticeEntry(i, first, (first,), nid) for i, nid in enumerate((0b0001, 0b0010, 0b1000))]
    )
    assert {
        v.nid
        for v in trace_search(lattice, first)
        if v.level in ("selections", "columns", "windows")
    } == {0b1011}
    assert lattice.find_reusable_operators(first, regions=0b0100) == []
    assert [o.id for o, _ in lattice.find_reusable_operators(first, regions=0b1010)] == [1, 2]
    lattice.remove_entry(1)
    assert {v.nid for v in trace_search(lattice, first) if v.level == "windows"} == {0b1001}


def count_calls(search: Callable[[Any], Any], wanted: list[Any]) -> tuple[list[Any], int]:
    """Return what a search finds, and the calls of Python and C functions that it takes."""
    with cProfile.Profile() as profile:
        found = [search(w) for w in wanted]
    return found, sum(entry.callcount for entry in profile.getstats())


def test_a_search_for_what_serves_is_much_quicker_than_a_scan() -> None:
    rng = random.Random(1)
    offers = [
        LatticeEntry(i, d, (d,)) for i, d in enumerate(draw_definition(rng) for _ in range(1500))
    ]
    lattice, wanted = ReuseLattice(offers), [draw_definition(rng) for _ in range(20)]
    found, by_search = count_calls(lattice.find_reusable_operators, wanted)
    expected, by_scan = count_calls(lambda w: linear_search(offers, w), wanted)
    assert found == expected and by_scan > 3 * by_search
