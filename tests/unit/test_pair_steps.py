"""Two queries step by step: the steps are those of the relaxation that is deployed."""

from __future__ import annotations

import pytest
from braid.errors import QueryError
from braid_lab.reuse.pair_steps import PART_OF_Q1, explain_typed, pair_example
from braid_lab.reuse.paper_example import Q2
from braid_widgets.base.stepper import step_frames
from braid_widgets.reuse.pair_stepper import QueryPairStepper

pytestmark = pytest.mark.unit


def test_the_steps_of_the_example_follow_section_3() -> None:
    steps = pair_example().steps
    assert [s.line.split(":")[0] for s in steps] == [
        "section 3",
        *["section 4"] * 3,
        *(f"section 3.1, step {n}" for n in (1, 2, 3, 4, 5)),
        *["section 3.1"] * 2,
    ]
    by_line = {s.line: s for s in steps}
    windows = by_line["section 3.1, step 4: windows"]
    assert windows.places == ("windows",)
    assert ("checkins: RANGE", "1 min", "5 min") in windows.table
    assert ("checkins: RANGE", "1 min") in windows.before
    own = by_line["section 3.1: compensation for the first query"].table
    assert ("RANGE of checkins", "1 min") in own
    assert all(s.line and s.places and s.table for s in steps)


def test_a_query_that_is_contained_relaxes_nothing_and_the_search_reaches_the_end() -> None:
    steps = explain_typed(PART_OF_Q1, PART_OF_Q1).steps
    assert [s.places for s in steps[1:6]] == [
        ("streams",), ("joins",), ("selections",), ("columns",), ("windows",),
    ]  # fmt: skip
    assert steps[6].line == "section 3: contained"
    assert not any("step" in s.line for s in steps)


def test_other_join_conditions_are_an_operator_of_its_own() -> None:
    other = Q2.replace("f.num = c.flight", "f.num = c.flight AND f.gate = c.status")
    (only,) = explain_typed(other, Q2).steps
    assert "an operator of its own" in only.text


def test_typed_queries_are_explained_and_others_refused_in_a_sentence() -> None:
    stepper = QueryPairStepper(PART_OF_Q1, Q2, explain_typed)
    first = list(stepper.film.frames)
    stepper.second.value = "SELECT 1"
    assert stepper.message.value
    assert stepper.film.frames == first
    stepper.second.value = PART_OF_Q1
    assert not stepper.message.value
    assert stepper.film.frames == step_frames(explain_typed(PART_OF_Q1, PART_OF_Q1))
    with pytest.raises(QueryError):
        explain_typed("SELECT 1", Q2)
