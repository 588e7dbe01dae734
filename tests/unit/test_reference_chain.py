"""The state-slice chain tuple by tuple, under any scheduling.

Source: Wang 2008, Table 5.1, Theorems 1 to 4 and Lemmas 1, 2, 5, 6.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from braid.core.query import Query
from braid_lab.common.tuple_models import Tuple, brute_force_join, merge_arrivals
from braid_lab.slices import reference as chains
from braid_lab.slices.reference import ReferenceChain, symmetric_query
from hypothesis import given, settings
from hypothesis import strategies as st

PRINTED = [  # second, state of J1, queue between, state of J2 (newest first, as printed), output
    (1, "a1", "", "", ""),
    (2, "a2 a1", "", "", ""),
    (3, "a3 a2 a1", "", "", ""),
    (4, "a3 a2", "b1 a1", "", "a2b1 a3b1"),
    (5, "a3", "b2 a2 b1 a1", "", "a3b2"),
    (6, "a3", "b2 a2 b1", "a1", ""),
    (7, "a3", "b2 a2", "a1", "a1b1"),
    (8, "a4 a3", "b2 a2", "a1", ""),
    (9, "a4", "a3 b2", "a2 a1", ""),
    (10, "a4", "a3", "a2 a1", "a1b2 a2b2"),
]


def row(step):
    def held(names):
        return " ".join(n.rstrip("ᵇᵖ") for n in reversed(names))

    output = " ".join(f"{a}{b}" for a, b in step.results)
    return (
        step.clock,
        held(step.stored[0][0]),
        held(step.queued[1]),
        held(step.stored[1][0]),
        output,
    )


def test_table_5_1_line_by_line():
    rows = [row(s) for s in chains.chain_example().steps if "arrives" not in s.text]
    assert rows[:8] == PRINTED[:8]
    assert rows[8:] == [(9, "a4 a3", "b2", "a2 a1", ""), (10, "a4 a3", "", "a2 a1", "a1b2 a2b2")]
    for mine, printed in zip(rows[8:], PRINTED[8:], strict=True):
        assert mine[3:] == printed[3:], "states of J2 and results are as printed"
        assert "a3" in printed[2] and "a3" not in mine[2], (
            "the table has a3 purged, though no b came to purge it"
        )


def test_table_5_1_follows_figure_5_2_and_not_definition_1():
    tuples = [Tuple(1, 0, 1), Tuple(2, 0, 2), Tuple(3, 0, 3), Tuple(4, 1, 1), Tuple(5, 1, 2)]
    found = {}
    for inclusive in (True, False):
        chain = ReferenceChain((2, 4), one_way=True, inclusive=inclusive)
        for t in tuples:
            chain.process_tuple(t)
            chain.run_until_empty()
        found[inclusive] = set(chain.recorded_trace.all_results)
    assert found[False] < found[True]
    assert {u.time - t.time for t, u in found[True] - found[False]} == {4}, (
        "a1 b2 is 4 s apart: printed, but not in A[4]"
    )


times = st.lists(st.integers(0, 12), max_size=9)
streams = st.tuples(times, times).map(
    lambda both: merge_arrivals([[(t, 0) for t in ts] for ts in both])
)
cuts = st.sets(st.integers(1, 9), min_size=1, max_size=4).map(lambda w: tuple(sorted(w)))


def scheduled(chain, tuples, data, change=lambda: None):
    """Run arrivals and turns of the slices, interleaved at random; then the rest."""
    waiting = list(tuples)
    while waiting or chain.busy_slices:
        turns = [*chain.busy_slices, *(["arrive"] if waiting else [])]
        turn = data.draw(st.sampled_from(turns))
        if turn == "arrive":
            chain.process_tuple(waiting.pop(0))
        else:
            chain.run_slice(turn)
        change()


def check_disjoint(chain):
    held = [c.tuple for j in chain.slices for state in j.state for c in state]
    assert len(held) == len(set(held)), "Lemma 2, Theorem 3: no tuple is in two states"


@settings(deadline=None)
@given(streams, cuts, st.booleans(), st.data())
def test_results_and_disjoint_states_under_any_scheduling(tuples, boundaries, one_way, data):
    """Definitions 1 and 2, Fig. 5.1 and 5.3, for one-way chains.

    Definition 3, Fig. 5.4 and 5.5, for binary ones.
    """
    chain = ReferenceChain(boundaries, one_way=one_way)
    scheduled(chain, tuples, data, lambda: check_disjoint(chain))
    for window, output in zip(boundaries, chain.results_by_query, strict=True):
        wanted = brute_force_join(tuples, (window, window))
        late = [g for g in wanted if not one_way or tuples.index(g[1]) > tuples.index(g[0])]
        assert sorted(output) == late, "Theorems 1 and 2"


@settings(deadline=None)
@given(streams, cuts, st.data())
def test_lemma_1_a_slice_holds_what_has_its_age_when_it_is_probed(tuples, boundaries, data):
    chain, order = ReferenceChain(boundaries), {t: k for k, t in enumerate(tuples)}
    waiting = list(tuples)
    while waiting or chain.busy_slices:
        turn = data.draw(st.sampled_from([*chain.busy_slices, *(["arrive"] if waiting else [])]))
        if turn == "arrive":
            chain.process_tuple(waiting.pop(0))
            continue
        copy = chain.slices[turn].queue[0]
        chain.run_slice(turn)
        if copy.kind == "probe":
            t, (low, high) = copy.tuple, ((0, *boundaries)[turn], boundaries[turn])
            state = {c.tuple for c in chain.slices[turn].state[1 - t.stream]}
            aged = {
                u
                for u in tuples
                if u.stream != t.stream and order[u] < order[t] and low <= t.time - u.time < high
            }
            assert state == aged


def test_lemma_1_needs_the_probe_to_travel_behind_what_it_purges():
    """The naive slicing of Fig. 2.1 does not forward probes.

    It loses the results of all slices but the first.
    """
    tuples = merge_arrivals([[(1, 0), (5, 0)], [(6, 0)]])
    chain = ReferenceChain((2, 6))
    for t in tuples:
        chain.process_tuple(t)
        while chain.slices[0].queue:
            chain.run_slice(0)
    assert [str(g[0]) for g in chain.recorded_trace.all_results] == ["a2"]
    chain.run_until_empty()
    assert sorted(map(str, (g[0] for g in chain.recorded_trace.all_results))) == ["a1", "a2"]


@settings(
    deadline=None, max_examples=50
)  # each draws a change after every step, which doubles the time
@given(streams, cuts, st.data())
def test_split_and_merge_in_the_middle_lose_and_double_nothing(tuples, boundaries, data):
    """Fig. 7.4 and 7.5."""
    queries = [symmetric_query(w) for w in boundaries]
    chain = ReferenceChain(boundaries, queries)

    def change():
        check_disjoint(chain)
        k = data.draw(st.integers(0, len(chain.slices) - 1))
        low, high = (0, *(j.end for j in chain.slices))[k : k + 2]
        what = data.draw(st.sampled_from(["nothing", "split", "merge"]))
        if what == "split" and high - low > 1:
            chain.split_slice(k, data.draw(st.integers(low + 1, high - 1)))
        if what == "merge" and k + 1 < len(chain.slices):
            chain.merge_slices(k)
            check_disjoint(chain)

    scheduled(chain, tuples, data, change)
    for query, output in zip(queries, chain.results_by_query, strict=True):
        assert sorted(output) == brute_force_join(tuples, query.windows), "Lemmas 5 and 6"
        check_order(output)


def check_order(output):
    latest = [max(t.time for t in g) for g in output]
    assert latest == sorted(latest), "Fig. 5.7: results leave in the order of their time"


def keeps(q, t):
    """Return whether selections keep a tuple.

    Selections of a are written "modulus rest": numbers with at most that rest.
    """
    modulus, rest = map(int, q.selections[0].split())
    return t.stream == 1 or t.number % modulus <= rest


queries = st.lists(
    st.builds(
        lambda w, m, r: Query("q", (w, w), (f"{m} {r}", None)),
        st.integers(1, 9),
        st.integers(1, 3),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=4,
)


@settings(deadline=None)
@given(streams, queries, st.booleans(), st.data())
def test_selections_in_the_chain_change_no_result_and_hold_nothing_useless(
    tuples, queries, merged, data
):
    """Lemma 3; the chains of Fig. 5.6 and 7.6."""
    ends = sorted({q.windows[0] for q in queries})
    boundaries = ends[-1:] if merged else ends
    chain = ReferenceChain(boundaries, queries, keeps=keeps)

    def useful():
        if merged:
            return
        for start, j in zip((0, *ends), chain.slices, strict=False):
            for c in (*j.state[0], *j.state[1]):
                assert any(q.windows[0] > start and keeps(q, c.tuple) for q in queries), "Theorem 6"

    scheduled(chain, tuples, data, useful)
    for query, output in zip(queries, chain.results_by_query, strict=True):
        wanted = [
            g for g in brute_force_join(tuples, query.windows) if all(keeps(query, t) for t in g)
        ]
        assert sorted(output) == wanted, "Theorem 4"
        check_order(output)
    found = chain.recorded_trace.all_results
    assert len(found) == len(set(found)), "no pair is found twice"


def test_a_merged_slice_holds_what_a_selection_would_have_stopped():
    """Fig. 7.7, section 7.4.2: state that the Mem-Opt chain does not have."""
    tuples = merge_arrivals([[(0, 0)], [(4, 0)]])
    wants = (symmetric_query(2), replace(symmetric_query(8), selections=("no", None)))
    held = {}
    for boundaries in ((2, 8), (8,)):
        chain = ReferenceChain(boundaries, wants, keeps=lambda q, t: q.selections[t.stream] != "no")
        for t in tuples:
            chain.process_tuple(t)
            chain.run_until_empty()
        held[boundaries] = sum(len(j.state[0]) for j in chain.slices)
        assert chain.results_by_query == [[], []]
    assert held == {(2, 8): 0, (8,): 1}


def test_the_union_waits_for_the_punctuation():
    chain = ReferenceChain((2, 4))
    for t in merge_arrivals([[(0, 0), (2, 0)], [(3, 0)]]):
        chain.process_tuple(t)
        while chain.slices[0].queue:
            chain.run_slice(0)
    assert [len(o) for o in chain.results_by_query] == [1, 0], (
        "a2 b1 waits for J2 to say what else b1 finds"
    )
    chain.run_until_empty()
    assert [len(o) for o in chain.results_by_query] == [1, 2]


def test_steps_can_be_shown_after_splits_and_merges():
    chain = ReferenceChain((4,))
    for t in merge_arrivals([[(0, 0), (3, 0)], [(1, 0), (5, 0)]]):
        chain.process_tuple(t)
        chain.run_until_empty()
        if t.time == 1:
            chain.split_slice(0, 2)
    chain.merge_slices(0)
    trace = chain.recorded_trace
    assert trace.nodes == 2 and all(len(s.stored) == len(s.queued) == 2 for s in trace.steps)
    texts = " ".join(s.text for s in trace.steps)
    assert "split at 2" in texts and "merged into J1" in texts


def test_theta_and_no_query_that_selects():
    tuples = merge_arrivals([[(0, 1), (1, 2)], [(2, 1)]])
    assert [[str(t) for t in g] for g in chains.run_chain(tuples, (5,)).all_results] == [
        ["a1", "b1"]
    ]
    chain = ReferenceChain((5,), (symmetric_query(5),), keeps=lambda q, t: False)
    chain.process_tuple(tuples[0])
    assert not chain.busy_slices and "no query selects it" in chain.trace.steps[-1].text


@pytest.mark.parametrize(
    "wrong, says",
    [
        (lambda: ReferenceChain(()), "a chain has one or more"),
        (lambda: ReferenceChain((3, 2)), "they rise"),
        (lambda: ReferenceChain((3,), (symmetric_query(4),)), "at most the chain's, 3"),
        (lambda: ReferenceChain((3,)).split_slice(0, 3), "3 is not inside"),
        (lambda: ReferenceChain((3,)).merge_slices(0), "no next one"),
    ],
)
def test_refusals(wrong, says):
    with pytest.raises(ValueError, match=says):
        wrong()
