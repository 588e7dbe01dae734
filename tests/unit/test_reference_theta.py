"""Algorithms 1 to 3 of Elseidy 2014, tuple by tuple, against brute force."""

from __future__ import annotations

import pytest
from braid.papers.theta.mapping import input_load_factor, optimal_mapping
from braid_lab.common.tuple_models import Tuple, brute_force_join
from braid_lab.theta.reference import (
    MARKS,
    find_partition,
    golden_ratio_key,
    grid_example,
    next_place,
    run_grid,
)
from braid_widgets.base.stepper import step_frames
from hypothesis import given, settings
from hypothesis import strategies as st

FOREVER = 10**6


def tuples(letters: list[tuple[int, int]]) -> list[Tuple]:
    """Return tuples from (stream, value), in order of arrival."""
    seen, made = [0, 0], []
    for time, (stream, value) in enumerate(letters):
        seen[stream] += 1
        made.append(Tuple(time, stream, seen[stream], value))
    return made


runs = st.lists(st.tuples(st.sampled_from([0, 1, 1, 1]), st.integers(0, 1)), max_size=36)


@given(runs, st.sampled_from([1, 2, 4, 8, 16]), st.integers(0, 5), st.integers(0, 8), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_result_is_found_once_however_often_the_grid_changes(
    letters, hosts, delay, warmup, other
):
    """Theorem 4.3 and Lemma 4.6, for correct migrations (Definition 4.2).

    Tuples before and after a migration are joined as without it.
    """
    came = tuples([(1 - s, v) if other else (s, v) for s, v in letters])
    trace = run_grid(came, hosts, delay, warmup)
    assert sorted(trace.all_results) == brute_force_join(came, (FOREVER, FOREVER))


@given(runs, st.sampled_from([2, 4, 8]), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_in_the_end_each_joiner_holds_what_its_place_has(letters, hosts, delay):
    """Theorem 4.3: the state is consistent with the mapping outside of migrations."""
    came = tuples(letters)
    trace = run_grid(came, hosts, delay)
    if not came:
        return
    last = trace.steps[-1]
    n, m = eval(last.table[1][0])
    for held in last.stored:
        rows, columns = (
            {
                find_partition(golden_ratio_key(t), k)
                for t in came
                if str(t) in held[t.stream] and t.stream == s
            }
            for s, k in ((0, n), (1, m))
        )
        assert len(rows) <= 1 and len(columns) <= 1, "one part of each stream"
    for s, k in ((0, n), (1, m)):
        copies = sum(len(held[s]) for held in last.stored)
        assert copies == sum(t.stream == s for t in came) * (hosts // k)


def test_a_step_of_a_mapping_keeps_the_parts_nested():
    """Fig. 3: after a step, a joiner's part of one stream is a subset of its previous part."""
    for before, after in (((2, 2), (1, 4)), ((2, 2), (4, 1)), ((8, 2), (4, 4))):
        places = [(r, c) for r in range(before[0]) for c in range(before[1])]
        moved = [next_place(place, before, after) for place in places]
        assert sorted(moved) == [(r, c) for r in range(after[0]) for c in range(after[1])]
        for (r, c), (row, column) in zip(places, moved, strict=True):
            if after[0] < before[0]:
                assert row == r // 2 and column // 2 == c
            else:
                assert row // 2 == r and column == c // 2


def test_the_example_shows_every_part_of_the_algorithms():
    trace = grid_example()
    texts = " ".join(step.text for step in trace.steps)
    lines = {(line.algorithm[-1], line.first, line.last) for s in trace.steps if (line := s.line)}
    assert lines >= {("1", 2, 2), ("1", 3, 3), ("2", 2, 6), ("3", 2, 3), ("3", 4, 5), ("3", 20, 23)}
    for words in ("of Δ meets", "of Δ′ meets", "of μ meets"):
        assert words in texts
    changed = [step for step in trace.steps if "migrate" in step.text]
    assert len(changed) == 1 and "under (2, 2)" in changed[0].text
    assert trace.steps[-1].table[1][0] == "(1, 4)"
    marks = {
        text.lstrip("ab0123456789")
        for step in trace.steps
        for held in step.stored
        for s in held
        for text in s
    }
    assert marks == {mark.rstrip() for mark in MARKS.values()}


def test_a_decision_has_the_figures_of_algorithm_2():
    (step,) = (s for s in grid_example().steps if "migrate" in s.text)
    r, s, dr, ds = map(int, step.table[1][1:])
    assert (dr, ds) == (0, 0) and optimal_mapping(r, s, 4) == (1, 4)
    assert (
        f"ILF {input_load_factor(r, s, 2, 2):g} under (2, 2), {input_load_factor(r, s, 1, 4):g} under (1, 4)"
        in step.text
    )


def test_it_is_drawn_like_the_other_examples():
    pictures = step_frames(grid_example(), "J")
    assert [node["name"] for node in pictures[0]["nodes"]] == ["J1", "J2", "J3", "J4"]
    chips = [c for p in pictures for node in p["nodes"] for held in node["stored"] for c in held]
    assert {chip["stream"] for chip in chips} == {0, 1}


def test_what_cannot_be_joined_is_refused():
    with pytest.raises(ValueError, match="c1 is of stream 2; a grid joins streams 0 and 1"):
        run_grid([Tuple(0, 2, 1)])
    with pytest.raises(ValueError):
        run_grid([], hosts=3)
