"""Two queries step by step: the steps are those of the relaxation that is deployed."""

from __future__ import annotations

import pytest
from braid.errors import QueryError
from braid_lab.reuse.pair_steps import PART_OF_Q1, explain_typed, pair_example
from braid_lab.reuse.paper_example import Q1, Q2
from braid_widgets.base.stepper import step_frames
from braid_widgets.reuse.pair_stepper import QueryPairStepper

pytestmark = pytest.mark.unit


def test_the_steps_of_the_example_follow_section_3() -> None:
    steps = pair_example().steps
    assert [s.line.split(":")[0] for s in steps] == [
        *["section 3"] * 2,
        *["section 4"] * 8,
        *(f"section 3.1, step {n}" for n in (1, 2, 3, 4, 5)),
        *["section 3.1"] * 2,
    ]
    by_line = {s.line: s for s in steps}
    windows = by_line["section 3.1, step 4: windows"]
    assert windows.places == ("windows",)
    assert ("checkins: RANGE", "5 min") in windows.table
    assert ("checkins: RANGE", "1 min") in windows.before
    own = by_line["section 3.1: compensation for the first query"].table
    assert ("RANGE of checkins", "5 min", "1 min") in own
    assert all(s.line and s.places and s.table and s.before for s in steps)


def test_the_search_goes_through_a_lattice_of_several_operators() -> None:
    """One has other streams; none of the three with Q2's streams serves it as it is."""
    *_, last = (s for s in pair_example().steps if s.line.startswith("section 4"))
    reasons = [row[2] for row in last.table[1:]]
    assert reasons.count("too narrow a selection") == 2
    assert reasons.count("too short") == reasons.count("other streams") == 1


def test_cascading_shows_what_the_sources_select_and_project_instead() -> None:
    """Section 3.2, step 5: the conditions at the source of FLIGHTS are replaced, and columns."""
    (step,) = (s for s in pair_example().steps if s.line.endswith("cascading"))
    before, after = ({row[0]: row[1:] for row in rows} for rows in (step.before, step.table))
    flights, checkins = "flights at its source", "checkins at its source"
    assert before[flights][0] == "carrier_code = 'DL' AND terminal = 'TERMINAL A'"
    assert after[flights][0] == "carrier_code IN ('CO', 'DL')"
    assert set(after[flights][1].split(", ")) > set(before[flights][1].split(", "))
    assert "checkins.vacant_seats" in after[checkins][1]
    assert "checkins.vacant_seats" not in before[checkins][1]
    assert (before[checkins][2], after[checkins][2]) == ("1 min", "5 min")


def test_cascading_reaches_the_operators_that_the_operator_reads() -> None:
    wider = Q1.replace("'DL'", "'CO'").replace("RANGE 1 MIN", "RANGE 3 MIN")
    (step,) = (s for s in explain_typed(Q1, wider).steps if s.line.endswith("cascading"))
    joins = [row for row in step.table if row[0].startswith("the join at")]
    assert len(joins) == 2 and not set(joins) & set(step.before)
    assert all(
        "carrier_code IN ('CO', 'DL')" in where and "3 min" in windows
        for _, where, _, windows in joins
    )


def test_a_frame_has_all_places_and_lights_those_of_its_step() -> None:
    trace = pair_example()
    frames = step_frames(trace)
    assert len({tuple(p["text"] for p in f["places"]) for f in frames}) == 1
    for frame, step in zip(frames, trace.steps, strict=True):
        assert {p["text"] for p in frame["places"] if p["is_new"]} == set(step.places)
        assert frame["before"] == [list(row) for row in step.before]


def test_a_query_that_is_contained_relaxes_nothing_and_the_search_reaches_the_end() -> None:
    steps = explain_typed(PART_OF_Q1, PART_OF_Q1).steps
    assert [s.places for s in steps[2:7]] == [
        ("streams",), ("joins",), ("selections",), ("columns",), ("windows",),
    ]  # fmt: skip
    assert [s.line for s in steps if s.line.startswith("section 3:")][-1] == "section 3: contained"
    assert not any("step" in s.line for s in steps)


def test_other_join_conditions_are_an_operator_of_its_own() -> None:
    other = Q2.replace("f.num = c.flight", "f.num = c.flight AND f.gate = c.status")
    _, last = explain_typed(other, Q2).steps
    assert "an operator of its own" in last.text


def test_another_kind_of_join_is_named_as_what_fails() -> None:
    """Streams, join conditions and groups of both are the same."""
    left = (
        "SELECT f.num, c.status FROM flights [RANGE 5 MIN] f "
        "LEFT JOIN checkins [RANGE 5 MIN] c ON f.num = c.flight"
    )
    first, second = left.replace("LEFT JOIN", "JOIN"), left
    *_, step = explain_typed(first, second).steps
    rows = {row[0]: row[1:] for row in step.table}
    assert rows["kind"] == ("inner", "left from flights")
    assert all(a == b for name, (a, b) in rows.items() if name not in ("", "kind"))
    assert "the kinds of the joins differ" in step.text
    narrower = f"{left} WHERE f.terminal = 'TERMINAL A'"
    assert "is reused as it is" in explain_typed(left, narrower).steps[-1].text


def test_typed_queries_are_explained_and_others_refused_in_a_sentence() -> None:
    stepper = QueryPairStepper(PART_OF_Q1, Q2, explain_typed)
    first = list(stepper.film.frames)
    stepper.second.value = "SELECT 1"
    assert stepper.message.value
    assert stepper.film.frames == first
    stepper.second.value = PART_OF_Q1
    assert not stepper.message.value
    assert stepper.film.frames == step_frames(explain_typed(PART_OF_Q1, PART_OF_Q1))
    stepper.second.value = " "
    assert stepper.film.frames == first, "an empty box stands for the query of the example"
    with pytest.raises(QueryError):
        explain_typed("SELECT 1", Q2)
