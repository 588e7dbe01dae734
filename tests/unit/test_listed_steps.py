"""Steps of shedding and of the lattice: what they say beside what is computed apart from them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from braid.papers.reuse.reuse_lattice import LatticeEntry, ReuseLattice
from braid_lab.reuse import lattice_steps
from braid_lab.reuse.lattice_trace import list_lattice_keys, trace_search
from braid_lab.reuse.pair_steps import OTHERS, PART_OF_Q1, parse_airline_query
from braid_lab.shedding import rate_steps, utility_steps
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.unit


def test_fractions_follow_from_the_rows_that_are_fetched() -> None:
    for text, affordable in (rate_steps.EXAMPLE.texts, *rate_steps.EXAMPLE.variants.values()):
        r, result = 1.0, rate_steps.run_typed(text, affordable)
        rows = dict[str, tuple[str, ...]]()
        for step in result.steps:
            rows |= {row[0]: row for row in step.table[1:]}
        fetched = {m.what for s in result.steps for m in s.moves}
        counts, dropped = {"a": 0, "b": 0}, 0
        for period, row in zip(text.split("/"), rows.values(), strict=True):
            names = []
            for word in period.split():
                counts[word[0]] += 1
                names.append(f"{word[0]}{counts[word[0]]}")
            own = [name in fetched for name in names]
            assert own == sorted(own, reverse=True), "once it is too much, all others are dropped"
            dropped += own.count(False)
            beta = sum(own) / len(own)
            r = beta * r if beta < 1 else min(1.0, 1.2 * r)
            assert row[1:4] == (f"{sum(own)} of {len(own)}", f"{beta:.2f}", f"{r:.2f}")
            assert float(row[4]) + float(row[5]) == pytest.approx(2 * r, abs=0.02)
        assert dropped > 0 and r < 1


def test_a_period_fetches_rows_until_its_comparisons_are_spent() -> None:
    text, affordable = rate_steps.EXAMPLE.texts
    spent, seen = 0, []
    for step in rate_steps.run_typed(text, affordable).steps:
        if found := re.search(r"with (\d+) of (\d+) rows .*; (\d+) of", step.text):
            used, rows, total = map(int, found.groups())
            spent += used
            assert total == spent and used <= rows
            dashed = sum(name.endswith("*") for of in step.stored for names in of for name in names)
            assert dashed >= rows - used
        elif spent:
            seen.append(spent)
            spent = 0
    assert len(seen) == 4 and max(seen) >= int(affordable) and seen[0] < int(affordable)


numbers = st.lists(st.integers(0, 99), min_size=1, max_size=6, unique=True)


@given(numbers, numbers, st.integers(1, 9), st.sampled_from(["0.5", "0.75", "0.25"]), st.data())
def test_a_heap_takes_what_a_run_takes(
    of_a: Any, of_b: Any, worth: int, frequency: str, data: Any
) -> None:
    outputs = f"{' '.join(map(str, of_a))} / {' '.join(map(str, of_b))}"
    types = f"1 {frequency} / {worth} {1 - float(frequency):g}"
    r = data.draw(st.sampled_from(["0.05", "0.3", "0.5", "0.92", "1"]))
    last = utility_steps.run_typed(outputs, types, r).steps[-1]
    assert [row[3] for row in last.table[1:]] == [row[4] for row in last.table[1:]]
    assert last.text.endswith("takes the same shares.")
    taken = sum(
        float(row[2]) * float(row[3]) * (len(of_a) if row[0][0] == "a" else len(of_b))
        for row in last.table[1:]
    )
    assert taken == pytest.approx(float(r) * (len(of_a) + len(of_b)), abs=0.05)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (
            ("4 2", "1 1", "0.4"),
            "found the outputs of 1 window, and r is 0.4; give those of two windows",
        ),
        (
            ("4 / 2", "1 1", "0"),
            "found the outputs of 2 windows, and r is 0; give those of two windows",
        ),
        (("4 / 2", "1 0.5", "0.4"), "has 1 type with frequencies of 0.5 in all; give 1 to 4"),
        (
            ("4 / x", "1 1", "0.4"),
            "'x' is no list of numbers such as 2 or 0.5; give 1 to 6 numbers",
        ),
        (("4 / 2", "1", "0.4"), "'1' is no list of numbers such as 2 or 0.5; give 2 of them"),
    ],
)
def test_items_that_cannot_be_read_are_refused(texts: tuple[str, ...], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        utility_steps.run_typed(*texts)


@pytest.mark.parametrize("affordable", ["0", "1000", "many", ""])
def test_a_period_affords_a_whole_number_of_comparisons(affordable: str) -> None:
    with pytest.raises(ValueError, match="is no number of comparisons; it must be a whole number"):
        rate_steps.run_typed("a:1 b:1", affordable)


SELECTING = (
    "SELECT f.num, f.gate FROM flights [RANGE 2 MIN] f, checkins [RANGE 2 MIN] c "
    "WHERE f.num = c.flight AND f.carrier_code = 'DL' AND c.status = 'OPEN'"
)


@pytest.mark.parametrize("regions", [0b1111, 0b0111, 0b1000])
def test_the_search_ends_at_the_operators_that_the_planner_finds(regions: int) -> None:
    texts = (PART_OF_Q1, *OTHERS, OTHERS[2].replace("f.carrier_code, ", ""))
    entries = []
    for k, text in enumerate(texts):
        definition = parse_airline_query(text)
        entries.append(LatticeEntry(k, definition, (definition,), 1 << k % 4))
    lattice = ReuseLattice(entries)
    keys, served = list_lattice_keys(lattice), set()
    for query in (*texts, SELECTING, lattice_steps.EXAMPLE.texts[1]):
        wanted = parse_airline_query(query)
        visits = trace_search(lattice, wanted, regions)
        ends = [v for v in visits if v.level == "windows" and not v.prune_reason]
        reached = {id for v in ends for id in keys[v.position].operators}
        found = lattice.find_reusable_operators(wanted, regions, relax=False)
        assert {id for id in reached if entries[id].nid & regions} == {e.id for e, _ in found}
        served |= reached
    assert served, "some operator serves some query"


def test_each_key_is_below_the_key_that_leads_to_it() -> None:
    trace = lattice_steps.EXAMPLE.trace()
    places = trace.steps[0].places
    for step in trace.steps[:-1]:
        (move,) = step.moves
        if move.source is not None:
            assert places[move.source][0] + 1 == places[move.target or 0][0]
        assert step.node == move.target
    dashed = [{name for names, _ in s.stored for name in names if "*" in name} for s in trace.steps]
    assert not dashed[0] and dashed[-1] == {"o1 *", "o2 *", "o3 *"}
    assert trace.steps[-1].text == (
        "The planner may reuse o4 unchanged; if relaxed, o1 and o3, too."
    )


@pytest.mark.parametrize(
    ("operators", "regions", "says"),
    [
        (" ; ", "1", "there are 0 operators; give 1 to 6 queries, with ; between"),
        (";".join([PART_OF_Q1] * 7), "1", "there are 7 operators"),
        (PART_OF_Q1, "5", "regions are '5'; give one or more of the numbers 1 to 4"),
        (PART_OF_Q1, "", "regions are ''"),
    ],
)
def test_operators_and_regions_out_of_range_are_refused(
    operators: str, regions: str, says: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        lattice_steps.run_typed(operators, PART_OF_Q1, regions)
