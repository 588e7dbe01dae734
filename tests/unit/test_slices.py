"""Boundaries of slices: Mem-Opt and CPU-Opt of Wang 2008, chapter 7."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from braid.core.facts import Facts
from braid.papers.slices import chain_optimizer as slices
from braid.papers.slices.chain import Chain, merge_slices, split_slice
from braid.papers.slices.chain_optimizer import (
    ChainStatistics,
    chain_cost,
    chain_memory,
    cpu_chain,
    edge_cost,
    edge_memory,
)
from braid_lab.slices.cost import SharedLoad, state_slice_cost, unfiltered_statistics
from hypothesis import given
from hypothesis import strategies as st

ages = st.lists(st.integers(1, 60), min_size=1, max_size=8, unique=True).map(
    lambda w: tuple(map(float, sorted(w)))
)
fraction = st.floats(0.01, 1)


@st.composite
def settings_of_a_stream(draw, filters=True):
    windows = draw(ages)
    n = len(windows)
    falling = st.lists(fraction, min_size=n, max_size=n).map(
        lambda f: tuple(sorted(f, reverse=True))
    )
    surviving = (draw(falling), draw(falling)) if filters else ((1.0,) * n,) * 2
    rates = draw(st.tuples(st.floats(0.1, 100), st.floats(0.1, 100)))
    queries = tuple(draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    return windows, ChainStatistics(
        rates, draw(fraction), surviving, draw(st.floats(0, 100)), queries
    )


def all_chains(windows):
    inner = windows[:-1]
    return [(*some, windows[-1]) for k in range(len(windows)) for some in combinations(inner, k)]


@given(settings_of_a_stream())
def test_cpu_chain_is_the_cheapest_of_all_chains(setting):
    """Costs of edges are independent (Lemma 4), so it is a shortest path."""
    windows, statistics = setting
    chains = all_chains(windows)
    assert len(chains) == 2 ** (len(windows) - 1)
    chain = cpu_chain(windows, statistics)
    least = min(chain_cost(c, windows, statistics) for c in chains)
    assert chain in chains and chain_cost(chain, windows, statistics) == pytest.approx(least)
    assert chain_cost(chain, windows, statistics) <= chain_cost(windows, windows, statistics) * (
        1 + 1e-9
    )


@given(settings_of_a_stream())
def test_no_chain_holds_less_than_mem_opt(setting):
    windows, statistics = setting
    least = chain_memory(slices.memory_chain(windows), windows, statistics)
    assert all(
        chain_memory(c, windows, statistics) >= least * (1 - 1e-9) for c in all_chains(windows)
    ), "Theorem 6"


@given(settings_of_a_stream(filters=False))
def test_without_selections_every_chain_holds_the_longest_window(setting):
    windows, statistics = setting
    for chain in all_chains(windows):
        assert chain_memory(chain, windows, statistics) == pytest.approx(
            statistics.rates[0] * windows[-1]
        ), "Theorem 5"


@given(settings_of_a_stream(filters=False), st.data())
def test_merging_changes_both_streams_together_by_the_difference_of_section_7_2(setting, data):
    windows, s = setting
    i = data.draw(st.integers(0, len(windows) - 1))
    j = data.draw(st.integers(i + 1, len(windows)))
    (a, b), join, c = s.rates, s.join_selectivity, s.slice_overhead
    streams = [unfiltered_statistics(rates, join, c, len(windows)) for rates in ((a, b), (b, a))]
    apart = sum(edge_cost(k, k + 1, windows, x) for k in range(i, j) for x in streams)
    merged = sum(edge_cost(i, j, windows, x) for x in streams)
    width, less = windows[j - 1] - (windows[i - 1] if i else 0), j - i - 1
    # with the C_sys of the j - i slices less that of the one that is left; the book prints it for
    # all of them
    wanted = (a + b) * less - 2 * a * b * width * join * less + c * less * (a + b)
    assert apart - merged == pytest.approx(wanted, rel=1e-6, abs=1e-9 * apart)


@given(st.floats(0.1, 100), st.floats(0.05, 0.95), st.floats(0, 1), st.floats(0, 1))
def test_equation_5_1_but_for_the_purging_that_a_selection_saves(rate, rho, sigma, join):
    windows, passing = (60 * rho, 60.0), (1.0, sigma)
    a = ChainStatistics((rate, rate), join, (passing, (1.0, 1.0)), 0.0, (1, 1))
    b = ChainStatistics((rate, rate), join, ((1.0, 1.0), passing), 0.0, (1, 1))
    book = state_slice_cost(SharedLoad(rate, windows, sigma, join))
    assert sum(chain_memory(windows, windows, s) for s in (a, b)) == pytest.approx(
        book.state_tuples
    )
    saved = rate * (1 - sigma)
    assert sum(chain_cost(windows, windows, s) for s in (a, b)) == pytest.approx(
        book.probe + book.purge + book.route - saved
    )


def test_a_merged_slice_holds_and_probes_what_a_selection_would_have_stopped():
    """Fig. 7.7, section 7.4.2."""
    s = ChainStatistics((10.0, 10.0), 0.1, ((1.0, 0.2), (1.0, 0.2)), 0.0, (1, 1))
    windows = (1.0, 10.0)
    assert edge_memory(0, 2, windows, s) == 100
    assert edge_memory(0, 1, windows, s) + edge_memory(1, 2, windows, s) == pytest.approx(
        10 + 0.2 * 90
    )
    assert edge_cost(0, 2, windows, s) == 10 * (1 + 100 * 1.1)
    assert edge_cost(1, 2, windows, s) == pytest.approx(2 * (1 + 18))


def test_the_graph_of_figure_7_3():
    """Fig. 7.1 is its longest path, Fig. 7.2 an edge over two slices."""
    windows, s = (1.0, 2.0, 3.0), unfiltered_statistics((1.0, 1.0), 0.5, 0.0, 3)
    graph = slices.merge_graph(windows, s)
    assert [(i, j) for i, j, _ in graph] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert dict(((i, j), cost) for i, j, cost in graph)[0, 3] == 1 + 3 * (1 + 0.5 * 2)


def test_more_queries_at_a_window_make_merging_dearer():
    windows = (1.0, 2.0)
    few = ChainStatistics((10.0, 10.0), 0.02, ((1.0, 1.0),) * 2, 0.0, (1, 1))
    many = ChainStatistics((10.0, 10.0), 0.02, ((1.0, 1.0),) * 2, 0.0, (4, 1))
    assert cpu_chain(windows, few) == (2.0,) and cpu_chain(windows, many) == windows


def test_slices_are_split_and_merged_of_one_stream_and_of_both() -> None:
    """Fig. 7.4 and 7.5: the ends after a change, which from then on are as given."""
    state = replace(Chain().initial_state(2), ends=((4, 9), (4, 9)))
    assert split_slice(state, 6).ends == ((4, 6, 9), (4, 6, 9))
    one = split_slice(state, 6, 1)
    assert (one.ends, one.mode, one.reason) == (((4, 9), (4, 6, 9)), "given", "split")
    assert merge_slices(one, 4, 0).ends == ((9,), (4, 6, 9))
    assert merge_slices(one, 4).ends == ((9,), (6, 9))
    assert merge_slices(one, 6).ends == state.ends, "where two slices meet"


def test_choose_takes_cpu_opt_unless_it_holds_too_much():
    windows = (1.0, 10.0)
    cheap = ChainStatistics((10.0, 10.0), 0.001, ((1.0, 0.95),) * 2, 10.0, (1, 1))
    heavy = ChainStatistics((10.0, 10.0), 0.001, ((1.0, 0.5),) * 2, 1000.0, (1, 1))
    assert cpu_chain(windows, cheap) == cpu_chain(windows, heavy) == (10.0,)
    assert slices.choose_chain(windows, cheap) == (10.0,)
    assert slices.choose_chain(windows, heavy) == windows
    assert slices.choose_chain(windows, heavy, extra=1.0) == (10.0,)


@pytest.mark.parametrize(
    "wrong, says",
    [
        (lambda: slices.memory_chain([]), "one or more"),
        (lambda: slices.memory_chain([0, 5]), "all above 0"),
        (lambda: unfiltered_statistics((1.0, 1.0), 2.0, 0.0, 1), "join is at most 1"),
        (lambda: ChainStatistics((1.0, 1.0), 0.1, ((1.0,), (1.0, 1.0)), 0.0, (1,)), "one for each"),
        (
            lambda: ChainStatistics((1.0, 1.0), 0.1, ((0.5, 0.6), (1.0, 1.0)), 0.0, (1, 1)),
            "never rise",
        ),
        (
            lambda: chain_cost((2.0,), (1.0, 3.0), unfiltered_statistics((1.0, 1.0), 0.1, 0.0, 2)),
            "does not rise",
        ),
        (
            lambda: chain_cost((1.0,), (1.0, 3.0), unfiltered_statistics((1.0, 1.0), 0.1, 0.0, 2)),
            "to the last",
        ),
        (
            lambda: chain_memory(
                (3.0, 1.0, 3.0), (1.0, 3.0), unfiltered_statistics((1.0, 1.0), 0.1, 0.0, 2)
            ),
            "does not rise",
        ),
    ],
)
def test_refusals(wrong, says):
    with pytest.raises(ValueError, match=says):
        wrong()


def test_hosts_share_the_ages_of_a_stream_alike_where_nothing_is_selected() -> None:
    facts = Facts(0, ("a", "b"), (), 0, (0, 0), (0, 0), (0, 0))
    assert slices.choose_host_ages(facts, 0, (1, 100), 3) == (33, 66)
    assert slices.choose_host_ages(facts, 0, (1, 100), 1) == ()
