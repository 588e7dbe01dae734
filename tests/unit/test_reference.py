"""The tuple-at-a-time models find what brute force finds, and their steps describe the state."""

from __future__ import annotations

from collections import Counter

import pytest
from braid_lab.common import tuple_models as reference
from braid_lab.common.tuple_models import Tuple, brute_force_join, merge_arrivals
from braid_lab.diffusion import reference_atr as reference_aligned
from braid_lab.diffusion import reference_ctr as reference_coordinated
from braid_lab.psp import reference as reference_ring
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def inputs(draw: st.DrawFn) -> tuple[list[Tuple], tuple[int, ...]]:
    """Return tuples of 2 to 4 streams with few values, so that many match, and windows."""
    streams = draw(st.integers(2, 4))
    pairs = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 1)), max_size=5)
    return merge_arrivals([draw(pairs) for _ in range(streams)]), tuple(
        draw(st.integers(1, 12)) for _ in range(streams)
    )


@given(inputs(), st.integers(1, 5), st.randoms())
def test_the_ring_finds_what_brute_force_finds_in_any_join_order(given_, nodes, random):
    tuples, windows = given_
    orders = [
        random.sample(others, len(others))
        for s in range(len(windows))
        if (others := [t for t in range(len(windows)) if t != s])
    ]
    assert sorted(
        reference_ring.run_ring(tuples, windows, nodes, orders).all_results
    ) == brute_force_join(tuples, windows)


@given(inputs(), st.integers(1, 5), st.integers(1, 8), st.integers(1, 20), st.integers(0, 3))
def test_aligned_routing_finds_it_across_a_change_of_the_master(given_, hosts, length, t_s, new):
    tuples, windows = given_
    switch = (t_s, new) if 0 < new < len(windows) else None
    assert sorted(
        reference_aligned.run_atr(tuples, windows, hosts, length, switch).all_results
    ) == brute_force_join(tuples, windows)


@given(inputs(), st.integers(1, 5), st.integers(1, 8), st.data())
def test_coordinated_routing_finds_it_for_any_number_of_copies(given_, hosts, length, data):
    tuples, windows = given_
    copies = data.draw(st.integers(1, hosts))
    assert sorted(
        reference_coordinated.run_ctr(tuples, windows, hosts, length, copies).all_results
    ) == brute_force_join(tuples, windows)


def test_brute_force_knows_the_window_is_strict_and_the_condition():
    """The joined tuples of Wang 2008, Fig. 3.1 and 3.2."""
    a, b, late = Tuple(0, 0, 1, 7), Tuple(3, 1, 1, 7), Tuple(4, 1, 2, 7)
    assert brute_force_join([a, b, late], (4, 1)) == [(a, b)]
    assert brute_force_join([a, b, late], (5, 1)) == [(a, b), (a, late)]
    assert brute_force_join([a, Tuple(1, 1, 1, 8)], (5, 5)) == []
    assert brute_force_join([a, Tuple(1, 1, 1, 8)], (5, 5), lambda t, u: t.value != u.value) != []


def test_marks_matter_when_a_host_serves_the_old_and_the_new_master():
    """On one host, all copies of both regimes meet; without the marks, groups would be found
    twice.
    """
    tuples, windows = merge_arrivals([[(4, 1), (6, 1)], [(4, 1), (6, 1)]]), (9, 9)
    trace = reference_aligned.run_atr(tuples, windows, 1, 5, (5, 1))
    assert (
        Counter(trace.all_results) == Counter(brute_force_join(tuples, windows))
        and len(trace.all_results) == 4
    )
    assert {text[-1] for step in trace.steps for held in step.stored[0] for text in held} >= {
        "*",
        "#",
    }


@given(inputs(), st.integers(1, 5))
def test_state_is_in_one_place_and_the_last_end_mark_finds_an_empty_ring(given_, nodes):
    """One copy of every tuple (12.2); the (m - 1)-th END mark ends the period (Theorem 7).

    An END mark comes after all results of its schema (Lemma 8).
    """
    tuples, windows = given_
    trace = reference_ring.run_ring(tuples, windows, nodes)
    for step in trace.steps:
        held = Counter(text for node in step.stored for names in node for text in names)
        assert not held or max(held.values()) == 1
    ends = [s for s in trace.steps if "the next tuple may come" in s.text]
    assert len(ends) == len(tuples)
    assert all(f"END{len(windows) - 1}" in s.text and not any(s.queued) for s in ends)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=14), st.integers(1, 12))
def test_lemma_15_2_a_later_result_is_later_in_some_stream(drawn, window):
    """Wang 2008: the output of a sliced join has this order, which bounds the state of a union.

    No two tuples have the same time.
    """
    tuples = [
        Tuple(time, stream, 1 + sum(s == stream for s, _ in drawn[:time]), value)
        for time, (stream, value) in enumerate(drawn)
    ]
    found = reference_ring.run_ring(tuples, (window,) * 2, 1).all_results
    for k, later in enumerate(found):
        for earlier in found[:k]:
            assert any(t.time < u.time for t, u in zip(earlier, later, strict=True))


def test_slices_hold_what_their_window_says_when_they_are_probed():
    """Lemma 7, Definition 4: node k of N has the tuples of each other stream of ages k W / N to (k
    + 1) W / N.
    """
    trace, quarter = reference_ring.ring_example(), 4
    times = {"b1": 1, "b2": 7, "b3": 13, "b4": 16, "b5": 18, "c1": 4, "c2": 10, "c3": 12, "c4": 19}
    for node, streams in enumerate(trace.steps[-1].stored):
        for text in (t for names in streams[1:] for t in names):
            assert node * quarter <= 20 - times[text] < (node + 1) * quarter


def test_the_first_steps_of_figure_12_4():
    """The steps of Wang 2008, Fig. 12.3, on the ring of Fig. 12.1."""
    texts = [s.text for s in reference_ring.ring_example().steps]
    assert texts[1] == "a1 makes a build copy a1ᵇ, which stays at the head, and a probe copy a1ᵖ."
    assert texts[2] == "a1ᵖ purges b4ᵇ at M1, sent ahead, and goes on to M2."
    assert texts[-1].startswith("END2 is back at the head")
    queued = reference_ring.ring_example().steps[2].queued
    assert queued[1] == ("b4ᵇ", "a1ᵖ"), "what is purged goes ahead of the probe tuple"


def test_the_examples_have_results_a_switch_voids_and_tables():
    assert len(reference_ring.ring_example().all_results) == 3 * 2, (
        "b2, b3, b5 and c2, c4 match and are in their windows"
    )
    atr, ctr = reference_aligned.atr_example(), reference_coordinated.ctr_example()
    assert any("b becomes the master" in s.text for s in atr.steps) and any(
        "*" in m.what for s in atr.steps for m in s.moves
    )
    assert any("Void: " in s.text for s in ctr.steps) and any(
        "warm" in s.text or "hold nothing yet" in s.text for s in ctr.steps
    )
    assert atr.steps[-1].table[0] == ("master segment", "host") and len(ctr.steps[-1].table) > 3
    assert atr.all_results and any("intermediate" in s.text for s in ctr.steps)


def test_bad_input_gets_one_sentence():
    with pytest.raises(ValueError, match="windows are"):
        reference_ring.run_ring([], (1,), 3)
    with pytest.raises(ValueError, match="new master"):
        reference_aligned.run_atr([], (5, 5), 2, 3, (4, 2))
    with pytest.raises(ValueError, match="copies from 1 to hosts"):
        reference_coordinated.run_ctr([], (5, 5), 2, 3, copies=3)
    assert reference.NAMES[0] == "a"
