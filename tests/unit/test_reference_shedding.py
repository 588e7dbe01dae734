"""Algorithms 1 to 3 of Gedik 2007 one tuple at a time, and the inverted indexes of section 4.2."""

from __future__ import annotations

import math
from dataclasses import asdict

import pytest
from braid_lab.shedding import reference
from braid_lab.shedding import set_indexes as inverted
from braid_lab.shedding.reference import SetTuple, brute_force
from braid_lab.shedding.set_indexes import InvertedIndex
from hypothesis import given, settings
from hypothesis import strategies as st

weights = st.dictionaries(st.integers(1, 8), st.sampled_from([0.5, 1.0, 2.0]), max_size=5)
arrivals = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), weights), max_size=40)
PREDICATES = ["equal", "subset", "superset", "overlap", "inner"]


def tuples(steps):
    """Return tuples from (time since the last, stream, items)."""
    time, numbers, found = 0, [0, 0], []
    for wait, stream, items in steps:
        time += wait
        numbers[stream] += 1
        found.append(SetTuple(time, stream, numbers[stream], items))
    return found


def names(join):
    return sorted((str(a), str(b)) for a, b in join.results)


@pytest.mark.parametrize("order", [None, "identifier", "time"])
@pytest.mark.parametrize("predicate", PREDICATES)
@given(steps=arrivals, basic=st.integers(1, 6), inclusive=st.booleans())
@settings(max_examples=30, deadline=None)
def test_all_of_the_window_is_the_join(predicate, order, steps, basic, inclusive):
    """Fig. 2 and 3: with r = 1 the results are those of testing every pair, with either index."""
    some = tuples(steps)
    join = reference.run_join(
        some,
        length=(7, 5),
        basic=basic,
        predicate=predicate,
        threshold=2,
        order=order,
        inclusive=inclusive,
    )
    assert names(join) == brute_force(some, (7, 5), predicate, 2, inclusive)


@given(steps=arrivals, r=st.floats(0.05, 0.95), order=st.sampled_from([None, "time"]))
@settings(max_examples=40, deadline=None)
def test_algorithm_3_uses_r_of_the_window(steps, r, order):
    """Selective processing compares r |W| tuples, rounded; its results are a subset."""
    some = tuples(steps)
    join = reference.SheddingJoin((7, 7), 2, "overlap", 1, r, sample=0.0, order=None)
    for t in some:
        before = join.compared
        join.process_tuple(t)
        size = sum(len(part.tuples) for part in join.windows[1 - t.stream])
        assert abs(join.compared - before - r * size) <= 1
    indexed = reference.run_join(some, length=(7, 7), basic=2, fraction=r, sample=0.0, order=order)
    assert names(indexed) == names(join)
    assert set(names(join)) <= set(brute_force(some, (7, 7), "overlap"))


def test_algorithm_2_ranks_basic_windows_by_what_they_gave():
    """Partners arrive three time units later: the basic window of that age is the best."""
    some = tuples(
        [
            (1, k % 2, {k // 2 % 50 + 1 if k % 2 == 0 else (k - 7) // 2 % 50 + 1: 1.0})
            for k in range(400)
        ]
    )
    join = reference.SheddingJoin((20, 20), 2, "overlap", 1, 1.0, sample=1.0, period=100)
    for t in some:
        join.process_tuple(t)
    best = [ranks[0] for ranks in join.ranks]
    pairs = {abs(a.time - b.time) for a, b in join.results}
    assert 7 in pairs and best[0] in (3, 4)
    assert join.output[0][best[0]] == max(join.output[0])


@given(
    sets=st.lists(st.sets(st.integers(1, 12), max_size=6).map(frozenset), max_size=30),
    query=st.sets(st.integers(1, 12), max_size=6).map(frozenset),
    since=st.integers(0, 30),
)
def test_both_orders_count_common_items(sets, query, since):
    """Fig. 4, and the merge: a set that shares m items is found m times in a row."""
    by = {order: InvertedIndex(order) for order in ("identifier", "time")}
    for k, items in enumerate(sets):
        for index in by.values():
            index.insert_set(k, k, items)
    wanted = {k: len(s & query) for k, s in enumerate(sets) if s & query}
    assert by["identifier"].count_common(query) == by["time"].count_common(query) == wanted
    recent = {k: n for k, n in wanted.items() if k >= since}
    assert by["time"].count_common(query, since) == recent
    run = [k for k, _ in by["time"].merge_lists(query)]
    assert run == [k for k in sorted(wanted, reverse=True) for _ in range(wanted[k])]
    for k, items in enumerate(sets):
        for index in by.values():
            index.remove_set(k, items)
    assert not any(by["time"].lists.values()) and not any(by["identifier"].lists.values())


def test_lists_by_time_take_no_search():
    """Section 4.2.2: one step for each item, in and out; by identifier log n."""
    sets = [frozenset({k % 5, 5 + k % 3}) for k in range(256)]
    moves = {}
    for order in ("identifier", "time"):
        index = InvertedIndex(order)
        for k, items in enumerate(sets):
            index.insert_set(k, k, items)
        for k, items in enumerate(sets):
            index.remove_set(k, items)
        moves[order] = index.moves
    assert moves["time"] == 4 * len(sets)
    assert moves["identifier"] > math.log2(len(sets) / 5) * moves["time"] * 0.7


def test_lists_by_identifier_cannot_stop_at_a_time():
    index = InvertedIndex("identifier")
    index.insert_set(1, 1, frozenset({1}))
    with pytest.raises(ValueError, match="cannot stop at a time"):
        index.count_common(frozenset({1}), 1)


def test_a_share_costs_less_with_lists_by_time():
    """Fig. 14: a part of a basic window is a part of the merge by time, all of it by identifier."""
    some = tuples([(1, k % 2, dict.fromkeys(range(1, 4), 1.0)) for k in range(80)])
    cost = {
        order: reference.run_join(
            some, length=(40, 40), basic=40, fraction=0.2, sample=0.0, order=order
        ).entries
        for order in ("identifier", "time")
    }
    assert cost["time"] < 0.5 * cost["identifier"]


def test_the_example_goes_step_by_step():
    trace = reference.shedding_example()
    assert asdict(trace.steps[0])["arrival"] == "a1" and len(trace.steps) > 15
    assert any("in full" in step.text for step in trace.steps)
    assert any("basic window 2" in step.text for step in trace.steps)
    assert trace.all_results and all(step.table[0][0] == "basic window" for step in trace.steps)


def test_the_index_goes_step_by_step():
    """Fig. 4: a set enters at the front and leaves at the end of its lists.

    One that shares m items is found m times; items older than the processed part are not merged.
    """
    trace = inverted.index_example()
    lists = {row[0]: row[1].split() for row in trace.steps[4].table[1:]}
    assert lists["2"] == ["b5", "b4", "b2", "b1"] and lists["4"] == ["b5", "b3", "b2"]
    gone = [row[1].split() for row in trace.steps[5].table[1:]]
    assert gone == [of[:-1] if of[-1] == "b1" else of for of in lists.values()]
    merged = [b for _, _, some in trace.steps[-1].table[1:] for b in some.split()]
    assert sorted(merged) == ["b3"] * 2 + ["b4"] + ["b5"] * 3
    assert "stops" in trace.steps[-1].text and all(step.stored[0][1] for step in trace.steps)


def test_bad_lengths_are_refused():
    with pytest.raises(ValueError, match="must be above 0"):
        reference.SheddingJoin((0, 5), 1)
