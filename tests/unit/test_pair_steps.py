"""Two queries step by step: the steps are those of the relaxation that is deployed."""

from __future__ import annotations

import pytest
from braid.errors import QueryError
from braid_lab.common.tuple_models import Line
from braid_lab.reuse.pair_steps import PART_OF_Q1, explain_typed, pair_example
from braid_lab.reuse.paper_example import Q1, Q2
from braid_widgets.base.stepper import step_frames

pytestmark = pytest.mark.unit

CASCADE = Line("Section 3.1", 5, 5)


def test_the_steps_of_the_example_follow_section_3() -> None:
    steps = pair_example().steps
    assert [(s.line.algorithm, s.line.first) for s in steps if s.line] == [
        ("Section 3", 1),
        *(("Section 4.1", level) for level in (1, 2, 4, 4, 4, 5, 6, 1)),
        *(("Section 3.1", step) for step in (1, 2, 3, 4, 5)),
        *[("Section 3", 4)] * 2,
    ]
    by_parts = {s.parts: s for s in steps}
    windows = by_parts["windows",]
    assert ("checkins: RANGE", "5 min") in windows.table
    own = by_parts["the first query",].table
    assert ("RANGE of checkins", "5 min", "1 min") in own
    assert all(s.line and s.parts and s.table and s.table_before for s in steps)


def test_the_search_goes_through_a_lattice_of_several_operators() -> None:
    """One has other streams; none of the three with Q2's streams serves it as it is."""
    *_, last = (s for s in pair_example().steps if s.line and s.line.algorithm == "Section 4.1")
    reasons = [row[2] for row in last.table[1:]]
    assert reasons.count("too narrow a selection") == 2
    assert reasons.count("too short") == reasons.count("other streams") == 1


def test_cascading_shows_what_the_sources_select_and_project_instead() -> None:
    """Section 3.2, step 5: the conditions at the source of FLIGHTS are replaced, and columns."""
    (step,) = (s for s in pair_example().steps if s.line == CASCADE)
    before, after = ({row[0]: row[1:] for row in rows} for rows in (step.table_before, step.table))
    flights, checkins = "flights at its source", "checkins at its source"
    assert before[flights][0] == "carrier_code = 'DL' AND terminal = 'TERMINAL A'"
    assert after[flights][0] == "carrier_code IN ('CO', 'DL')"
    assert set(after[flights][1].split(", ")) > set(before[flights][1].split(", "))
    assert "checkins.vacant_seats" in after[checkins][1]
    assert "checkins.vacant_seats" not in before[checkins][1]
    assert (before[checkins][2], after[checkins][2]) == ("1 min", "5 min")


def test_cascading_reaches_the_operators_that_the_operator_reads() -> None:
    wider = Q1.replace("'DL'", "'CO'").replace("RANGE 1 MIN", "RANGE 3 MIN")
    (step,) = (s for s in explain_typed(Q1, wider).steps if s.line == CASCADE)
    joins = [row for row in step.table if row[0].startswith("the join at")]
    assert len(joins) == 2 and not set(joins) & set(step.table_before)
    assert all(
        "carrier_code IN ('CO', 'DL')" in where and "3 min" in windows
        for _, where, _, windows in joins
    )


def test_a_frame_has_all_parts_and_lights_those_of_its_step() -> None:
    trace = pair_example()
    frames = step_frames(trace)
    assert len({tuple(p["text"] for p in f["parts"]) for f in frames}) == 1
    for frame, step in zip(frames, trace.steps, strict=True):
        assert {p["text"] for p in frame["parts"] if p.get("is_new")} == set(step.parts)


def test_what_is_added_goes_from_the_query_to_the_operator_and_on_to_the_source() -> None:
    trace = pair_example()
    at = {name: k for k, name in enumerate(trace.names)}
    moves = {s.parts[0]: s.moves[0] for s in trace.steps if s.moves}
    added = "checkins.vacant_seats, flights.carrier_code, flights.terminal"
    columns = moves["columns"]
    assert (columns.what, columns.source, columns.target) == (
        added, at["the second query"], at["the operator"],
    )  # fmt: skip
    assert moves["the first query"].target == at["the first query"]
    last, operator = trace.steps[-1], at["the operator"]
    assert "vacant_seats" in last.stored[operator][0]
    assert "vacant_seats" not in trace.steps[0].stored[operator][0]


def test_a_query_that_is_contained_relaxes_nothing_and_the_search_reaches_the_end() -> None:
    steps = explain_typed(PART_OF_Q1, PART_OF_Q1).steps
    assert [s.parts for s in steps[1:6]] == [
        ("streams",), ("joins",), ("selections",), ("columns",), ("windows",),
    ]  # fmt: skip
    lines = [s.line for s in steps]
    assert Line("Section 3", 2, 2) in lines and CASCADE not in lines


def test_other_join_conditions_are_an_operator_of_its_own() -> None:
    other = Q2.replace("f.num = c.flight", "f.num = c.flight AND f.gate = c.status")
    (last,) = explain_typed(other, Q2).steps
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


def test_what_is_no_query_is_refused() -> None:
    with pytest.raises(QueryError):
        explain_typed("SELECT 1", Q2)
