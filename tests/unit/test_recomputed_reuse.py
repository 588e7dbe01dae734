"""Seshadri 2008, recomputed in a few lines that follow the text: answers are simulated."""

from __future__ import annotations

import random
from itertools import product

import duckdb
import pytest
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import DeployedQuery, Deployment
from braid.papers.reuse.network import Network, Node
from braid.papers.reuse.planner import Planner
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.relaxation import relax_operator
from braid.papers.reuse.result_rates import Rates, StreamRate
from braid.papers.reuse.reuse_lattice import windows_contain
from braid.papers.reuse.selections import Selection, make_interval
from reuse_cases import joined, where

pytestmark = pytest.mark.unit
SECOND = 1_000_000
Window = tuple[int, int]


def answers(window: Window, until: int = 61) -> set[tuple[int, int]]:
    """Return (time of the answer, time of a tuple in it): RANGE and SLIDE, one tuple a second."""
    length, slide = window
    return {
        (now, t) for now in range(0, until, slide) for t in range(now - length, now) if now >= 10
    }


@pytest.mark.parametrize("a", list(product((2, 4, 5, 6), (1, 2, 3, 6))))
def test_figure_2_a_window_contains_another_if_its_answers_hold_the_other_s(a: Window) -> None:
    """RANGE r and SLIDE s: (r, s) is above (q, t) in the leaf exactly if r >= q and s divides t."""
    for b in product((2, 4, 5, 6), (1, 2, 3, 6)):
        reported = windows_contain(((a[0],), frozenset([a[1]])), ((b[0],), frozenset([b[1]])))
        assert reported == (answers(b) <= answers(a)), (a, b)


def join(
    tuples: dict[str, list[tuple[int, int, int]]], low: int, high: int, window: int
) -> set[tuple[int, int]]:
    """Return the pairs (index of a, index of b) with equal keys, a's x in [low, high)."""
    return {
        (i, j)
        for (i, (t, k, x)), (j, (u, other, _)) in product(
            enumerate(tuples["a"]), enumerate(tuples["b"])
        )
        if k == other and low <= x < high and abs(t - u) < window
    }


def select_by_sql(selection: Selection) -> list[int]:
    """Return which x from 0 to 11 pass, by DuckDB from the text of a selection."""
    found = duckdb.sql(f"SELECT x FROM range(12) t(x) WHERE {selection.to_sql} ORDER BY x")
    return [x for (x,) in found.fetchall()]


@pytest.mark.parametrize("seed", range(20))
def test_section_3_1_one_relaxed_operator_answers_both_queries(seed: int) -> None:
    """Its answers hold both queries', and each compensation takes out exactly its own."""
    draw = random.Random(seed)
    tuples = {
        s: [(draw.randrange(30), draw.randrange(3), draw.randrange(10)) for _ in range(40)]
        for s in "ab"
    }
    lows = [draw.randrange(6) for _ in range(2)]
    asked = [(low, low + draw.randint(1, 5), draw.randint(1, 9)) for low in lows]
    first, second = (
        Definition.make(
            {"a": w * SECOND, "b": w * SECOND},
            [joined("a", "k", "b", "k")],
            {"a": where(x=make_interval((low, True), (high, False)))},
            {"a": ["k"], "b": ["k"]},
        )
        for low, high, w in asked
    )
    found = relax_operator(first, second)
    place = found.relaxed.stream_index("a")
    window = found.relaxed.windows[place] // SECOND
    assert window == max(w for _, _, w in asked)
    passing = select_by_sql(found.relaxed.selections[place])
    assert passing == [x for x in range(12) if any(low <= x < high for low, high, _ in asked)]
    wide = {(i, j) for i, j in join(tuples, 0, 99, window) if tuples["a"][i][2] in passing}
    for query, own in zip(asked, (found.for_existing, found.for_query), strict=True):
        only = own.where[place]
        chosen = range(12) if only is None else select_by_sql(only)
        least = own.windows[place]
        compensated = {
            (i, j)
            for i, j in wide
            if tuples["a"][i][2] in chosen
            and (least is None or abs(tuples["a"][i][0] - tuples["b"][j][0]) < least // SECOND)
        }
        assert compensated == join(tuples, *query)
    assert found.for_query.required_columns[place] <= found.relaxed.columns[place]


@pytest.mark.parametrize("sink", range(5))
def test_section_2_2_a_query_goes_where_it_has_the_least_bytes_in_transit(sink: int) -> None:
    """All five places of one join on a line, by hand: bytes a second times seconds of latency."""
    ms = [10.0, 40.0, 20.0, 5.0]
    at = [sum(ms[:k]) / 1e3 for k in range(5)]
    names = [f"n{k}" for k in range(5)]
    links = tuple((names[k], names[k + 1], ms[k]) for k in range(4))
    net = Network(tuple(map(Node, names)), links)
    for a_rate, b_rate, matching in product((3.0, 40.0), (5.0, 20.0), (0.001, 0.05)):
        rates = Rates(
            {"a": StreamRate(a_rate, {"k": 8.0}), "b": StreamRate(b_rate, {"k": 8.0})},
            {"a.k = b.k": matching},
        )
        planner = Planner(CostModel(net, rates, work_weight=0.0))
        query = Definition.make(
            dict.fromkeys("ab", 10 * SECOND),
            [joined("a", "k", "b", "k")],
            {},
            dict.fromkeys("ab", "k"),
        )
        decision = planner.plan_query(
            Deployment({"a": "n0", "b": "n3"}), DeployedQuery("q", query, names[sink])
        )
        results = a_rate * b_rate * matching * (10 + 10)
        costs = [
            a_rate * 16 * abs(at[v] - at[0])
            + b_rate * 16 * abs(at[v] - at[3])
            + results * 32 * abs(at[v] - at[sink])
            for v in range(5)
        ]
        assert decision.cost == pytest.approx(min(costs))
        assert costs[names.index(decision.tree.node)] == pytest.approx(min(costs))
