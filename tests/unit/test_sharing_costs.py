"""The closed forms of Wang 2008: Eq. 4.1, 4.2, 5.1, 5.2, 21.1 and 21.2.

It also tests chapter 6 with its printed numbers.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

import pytest
from braid_lab.psp import cost as ring_cost
from braid_lab.shared_ring.cost import node_latency, shared_ring_workload
from braid_lab.slices import cost as costs
from braid_lab.slices import join_tree_costs as tree_costs
from braid_lab.slices.cost import SharedLoad
from braid_lab.slices.counted_plans import plan_joins
from braid_lab.slices.join_tree_costs import MEGABYTES, JoinTree
from hypothesis import given
from hypothesis import strategies as st

GRID = [0.05 + 0.1 * k for k in range(10)]
TWO = SharedLoad(20.0, (10.0, 60.0), 0.2, 0.1)


def test_the_equations_for_two_queries_as_printed():
    """Eq. 4.1 for the plan of Fig. 4.2, 4.2 for Fig. 4.3, 5.1 for Fig. 5.6, in the terms of Table
    4.1.
    """
    rate, (w1, w2), s, join = TWO.rate, TWO.windows, TWO.selection_selectivity, TWO.join_selectivity
    pull, split, chain = (
        costs.pull_up_cost(TWO),
        costs.partition_cost(TWO),
        costs.state_slice_cost(TWO),
    )
    assert pull.state_tuples == pytest.approx(2 * rate * w2)
    assert pull.comparisons == pytest.approx(2 * rate**2 * w2 + 2 * rate + 4 * rate**2 * w2 * join)
    assert split.state_tuples == pytest.approx((2 - s) * rate * w1 + (1 + s) * rate * w2)
    probing = 2 * (1 - s) * rate**2 * w1 + 2 * s * rate**2 * w2
    assert split.comparisons == pytest.approx(
        4 * rate + probing + 2 * s * rate**2 * w2 * join + 2 * rate**2 * w1 * join
    )
    assert chain.state_tuples == pytest.approx(2 * rate * w1 + (1 + s) * rate * (w2 - w1))
    probing = 2 * rate**2 * w1 + 2 * rate**2 * s * (w2 - w1)
    assert chain.comparisons == pytest.approx(7 * rate + probing + 2 * rate**2 * join * w1)


@given(st.floats(1, 100), st.floats(0.02, 0.98), st.floats(0.02, 1), st.floats(0.01, 1))
def test_equation_5_2_follows_without_the_terms_linear_in_lambda(rate, rho, sigma, join):
    q = SharedLoad(rate, (60 * rho, 60.0), sigma, join)
    pull, split, chain = costs.pull_up_cost(q), costs.partition_cost(q), costs.state_slice_cost(q)
    said = costs.chain_savings(rho, sigma, join)
    assert 1 - chain.state_tuples / pull.state_tuples == pytest.approx(
        said.memory_pull_up, abs=1e-9
    )
    assert 1 - chain.state_tuples / split.state_tuples == pytest.approx(said.memory_partition)
    chain2, pull2, split2 = (
        chain.comparisons - 7 * rate,
        pull.comparisons - 2 * rate,
        split.comparisons - 4 * rate,
    )
    assert 1 - chain2 / pull2 == pytest.approx(said.cpu_pull_up)
    assert 1 - chain2 / split2 == pytest.approx(said.cpu_partition)


def test_with_the_linear_terms_slow_streams_are_better_off_without_a_chain():
    slow, fast = (SharedLoad(rate, (10.0, 60.0), 0.2, 0.025) for rate in (1.0, 20.0))
    assert costs.state_slice_cost(slow).comparisons > costs.partition_cost(slow).comparisons
    assert costs.state_slice_cost(fast).comparisons < costs.partition_cost(fast).comparisons


def test_all_savings_are_positive_and_reach_what_the_book_says():
    said = [costs.chain_savings(*x) for x in product(GRID, repeat=3)]
    assert all(
        min(s.memory_pull_up, s.memory_partition, s.cpu_pull_up, s.cpu_partition) > 0 for s in said
    )
    edge = costs.chain_savings(0.001, 0.001, 0.001)
    assert edge.memory_pull_up == pytest.approx(
        0.5, abs=0.01
    ) and edge.cpu_pull_up == pytest.approx(1, abs=0.01)
    none = costs.chain_savings(0.5, 1.0, 0.1)
    assert none.memory_pull_up == 0 and none.cpu_pull_up == pytest.approx(1.5 * 0.1 / 1.2), (
        "(2 - rho) S / (1 + 2 S)"
    )


def test_three_queries_of_8_2():
    q = SharedLoad(20.0, (5.0, 10.0, 30.0), 0.2, 0.1)
    chain, pull, split = costs.state_slice_cost(q), costs.pull_up_cost(q), costs.partition_cost(q)
    assert (
        chain.state_tuples == pytest.approx(2 * 20 * 5 + 1.2 * 20 * 25)
        and chain.purge == 6 * 20
        and chain.route == 0
    )
    assert pull.route == pytest.approx(2 * pull.filter), (
        "two windows to compare with, one selection"
    )
    assert split.route == pytest.approx(2 * 0.2 * pull.filter)
    assert chain.state_tuples < min(
        pull.state_tuples, split.state_tuples
    ) and chain.comparisons < min(pull.comparisons, split.comparisons)


def test_queries_without_selections_of_8_3():
    windows = tuple(range(1, 13))
    q = SharedLoad(20.0, windows, join_selectivity=0.1, unselected_queries=12)
    memory, one, some = (
        costs.state_slice_cost(q),
        costs.state_slice_cost(q, (12,)),
        costs.state_slice_cost(q, (3, 12)),
    )
    pull = costs.pull_up_cost(q)
    assert (
        memory.state_tuples
        == one.state_tuples
        == some.state_tuples
        == pull.state_tuples
        == 2 * 20 * 12
    )
    assert memory.probe == one.probe == some.probe == pull.probe
    assert one.route == pull.route and one.purge == pull.purge, (
        "all merged is pull-up (section 7.2)"
    )
    assert memory.route == 0 < some.route < one.route
    assert costs.isolated_cost(q).state_tuples == 2 * 20 * sum(windows)


def test_isolated_queries_hold_most_when_windows_overlap():
    """The plans of Fig. 4.1."""
    assert costs.isolated_cost(TWO).state_tuples == pytest.approx(2 * 20 * 10 + 1.2 * 20 * 60)
    assert costs.isolated_cost(TWO).state_tuples > costs.state_slice_cost(TWO).state_tuples


def total(parts):
    return sum(parts.values())


def test_memory_of_chapter_6_as_printed():
    """Eq. 6.1 to 6.3 at the values of Table 6.2, for the plans of Fig. 6.1 to 6.3."""
    q1, q2 = map(total, tree_costs.isolated_memory(JoinTree()))
    assert q1 * MEGABYTES == pytest.approx(75.8) and q2 * MEGABYTES == pytest.approx(2253.375)
    assert total(tree_costs.pull_up_memory(JoinTree())) * MEGABYTES == pytest.approx(6484.5)
    parts = [x * MEGABYTES for x in tree_costs.slice_memory(JoinTree()).values()]
    assert sorted(parts) == pytest.approx(
        sorted([0.03, 1.475, 0.03, 1.475, 0.45, 0.375, 0.375, 54, 37.5, 2212.5])
    )
    assert sum(parts) == pytest.approx(2308.21)


def test_the_sum_of_section_6_3_4_leaves_out_the_states_of_q2_but_ab():
    q1, q2 = tree_costs.isolated_memory(JoinTree())
    assert (total(q1) + total(q2)) * MEGABYTES == pytest.approx(2329.175)
    assert (total(q1) + q2["AB"]) * MEGABYTES == pytest.approx(2325.8), "as printed"


def test_work_of_chapter_6_as_printed():
    """Eq. 6.5 to 6.7 at the values of Table 6.2."""
    q1, q2 = map(total, tree_costs.isolated_cpu(JoinTree()))
    assert q1 == pytest.approx(187.64e6, abs=5e3) and q2 == pytest.approx(5633.25e6, abs=5e3)
    assert q1 + q2 == pytest.approx(5820.89e6, abs=1e4)
    assert total(tree_costs.pull_up_cpu(JoinTree())) == pytest.approx(27227.88e6, abs=1e4)
    parts = tree_costs.slice_cpu(JoinTree())
    assert parts["probe AB3"] == pytest.approx(5531.25e6) and parts["union"] == pytest.approx(
        595e6, rel=1e-3
    )
    assert total(parts) == pytest.approx(6422.66e6, abs=1e4)


@pytest.mark.parametrize("m, n", list(product((0.1, 0.5, 1.0), repeat=2)))
def test_equation_6_4_follows_from_the_states_ab_and_windows_of_30_and_30_n(m, n):
    t = tree_costs.ratio_tree(m, n)
    assert t.ab == (60 * m, 60) and t.bc == (30, 30 * n), "the book prints 30 n and 60"
    q1, q2 = tree_costs.isolated_memory(t)
    sliced = sum(v for k, v in tree_costs.slice_memory(t).items() if k.startswith("AB"))
    said = tree_costs.memory_ratios(m, n)
    assert said.isolated == pytest.approx(sliced / (q1["AB"] + q2["AB"]))
    assert said.pull_up == pytest.approx(sliced / tree_costs.pull_up_memory(t)["AB"])
    assert said.isolated == pytest.approx(
        total(tree_costs.slice_memory(t)) / (total(q1) + total(q2)), abs=0.01
    )
    assert said.isolated < 1 and said.pull_up <= 1


def test_the_windows_as_rewritten_break_the_order_that_the_chapter_assumes():
    m, n = 0.5, 0.5
    with pytest.raises(ValueError, match="Q2's the shorter"):
        JoinTree(ab=(m * 60, 60.0), bc=(n * 30, 60.0))


@pytest.mark.parametrize("m, n", list(product((0.1, 0.5, 1.0), repeat=2)))
def test_equation_6_8_lacks_the_probing_by_ab3(m, n):
    t = tree_costs.ratio_tree(m, n)
    parts = tree_costs.slice_cpu(t)
    printed, whole = tree_costs.printed_cpu_ratios(m, n), tree_costs.cpu_ratios(m, n)
    without = (total(parts) - parts["probe AB3"]) / total(tree_costs.pull_up_cpu(t))
    assert printed.pull_up == pytest.approx(without, abs=1e-3)
    assert whole.pull_up * 453.798 == pytest.approx(
        41.1 * m * n + 206.35 * m + 206.25 * n + 0.1375, rel=1e-4
    )
    assert 1.1 < whole.isolated < 1.22, "the chains cost more than isolated execution, everywhere"
    isolated = sum(total(q) - q["filter"] - q["purge"] for q in tree_costs.isolated_cpu(t)) / 60e6
    assert isolated == pytest.approx(187.5 * (m + n) + 0.125 * m + 0.125), (
        "the denominator is as printed"
    )


def test_ratios_at_table_6_2():
    m, n = 1 / 60, 0.5
    assert tree_costs.cpu_ratios(m, n).isolated == pytest.approx(6422.66 / 5820.89, rel=1e-4)
    assert tree_costs.printed_cpu_ratios(m, n).isolated == pytest.approx(0.153, abs=1e-3)


LOAD = ring_cost.Workload(
    (50.0, 40.0, 30.0),
    (10.0, 5.0, 8.0),
    (0.1, 0.05, 0.2),
    join=5e-6,
    send=5e-5,
    hop=2e-3,
    insert=1e-6,
    purge=1e-6,
)


def test_equation_21_1_with_selections_is_13_1_with_smaller_states():
    passing = (0.5, 0.25, 1.0)
    shared = shared_ring_workload(LOAD, passing)
    factors = [
        rate * w * s * p
        for rate, w, s, p in zip(LOAD.rates, LOAD.windows, LOAD.selectivities, passing, strict=True)
    ]

    def work(stream):
        order = shared.best_join_order(stream)
        steps = [prod(factors[s] for s in order[:k]) for k in range(len(order))]
        sizes = [LOAD.rates[s] * LOAD.windows[s] * passing[s] for s in order]
        pairs = sum(n * size for n, size in zip(steps, sizes, strict=True))
        return LOAD.insert + LOAD.purge + LOAD.join * pairs, LOAD.send * sum(steps)

    wanted = [
        sum(rate * work(s)[k] for s, rate in enumerate(LOAD.rates)) / sum(LOAD.rates)
        for k in (0, 1)
    ]
    assert ring_cost.centralized_work(shared) == pytest.approx(wanted[0])
    assert ring_cost.ring_work(shared, 4) == pytest.approx(wanted[0] + 4 * wanted[1])
    assert shared_ring_workload(LOAD, (1.0,) * 3) == LOAD
    assert ring_cost.ring_work(shared, 4) < ring_cost.ring_work(LOAD, 4)


@pytest.mark.parametrize("nodes", [1, 4, 12])
def test_equation_21_2_has_the_mean_of_13_5(nodes):
    free = replace(LOAD, insert=0.0, purge=0.0)
    mean = sum(node_latency(free, nodes, i) for i in range(1, nodes + 1)) / nodes
    assert mean == pytest.approx(ring_cost.mean_latency_seconds(free, (nodes,) * 3))


@pytest.mark.parametrize(
    "wrong, says",
    [
        (lambda: SharedLoad(0.0, (1.0,)), "rate is above 0"),
        (lambda: SharedLoad(1.0, (2.0, 1.0)), "windows rise"),
        (lambda: SharedLoad(1.0, (1.0, 2.0), unselected_queries=3), "the number of queries, 2"),
        (
            lambda: costs.partition_cost(SharedLoad(1.0, (1.0, 2.0), unselected_queries=2)),
            "nothing|partitioned",
        ),
        (lambda: costs.state_slice_cost(TWO, (10.0,)), "does not rise"),
        (lambda: costs.state_slice_cost(TWO, (20.0, 60.0)), "does not rise"),
        (lambda: costs.chain_savings(1.0, 0.5, 0.5), "between 0 and 1"),
        (lambda: shared_ring_workload(LOAD, (1.0,)), "each of 3 streams"),
        (lambda: node_latency(LOAD, 4, 5), "nodes 1 to 4"),
        (lambda: tree_costs.ratio_tree(0.0, 1.0), "above 0"),
        (lambda: plan_joins(TWO, "cheapest"), "strategy is 'cheapest'; it must be one of pull-up"),
    ],
)
def test_refusals(wrong, says):
    with pytest.raises(ValueError, match=says):
        wrong()
