"""The search for best partners, against brute force and ``pandas.merge_asof``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from braid.condition.access_paths import IndexCondition
from braid.core.match_rules import MATCHES, MatchRule
from braid.kernels.asof_search import (
    BestRows,
    Probes,
    SortedRows,
    find_best_rows,
    mirror_orders,
)
from braid.kernels.partner_choice import BestSoFar, choose_best_rows, choose_nearer_side
from braid.kernels.tie_ranks import rank_rows
from hypothesis import given
from hypothesis import strategies as st

EQUAL = IndexCondition((0, "k"), (1, "k"), 0, 0)
WIDE = (-(2**63), 2**63 - 1)

Row = tuple[int, Any, int]
"""Key, order and value by which ties are decided."""


def find_model(left: Row, right: Sequence[Row], rule: MatchRule, residual: bool) -> Any:
    """Return the order and the tie value of the best partner; None: there is none."""
    key, order, value = left
    ranked = []
    for other, its_order, its_value in right:
        if other != key or (rule.is_strict and its_order == order):
            continue
        if (its_order > order and True not in rule.directions) or (
            its_order < order and False not in rule.directions
        ):
            continue
        distance = abs(its_order - order)
        if rule.tolerance is not None and distance > rule.tolerance:
            continue
        if residual and (its_value + value) % 3:
            continue
        ranked.append(((-distance, its_order, its_value), (its_order, its_value)))
    return max(ranked)[1] if ranked else None


def search(
    left: Sequence[Row], blocks: Sequence[Sequence[Row]], rule: MatchRule, residual: bool
) -> list[Any]:
    """Return the same for all left rows by the kernel."""
    dtype = float if any(isinstance(row[1], float) for row in left) else np.int64
    keys = np.array([row[0] for row in left], np.int64)
    orders = np.array([row[1] for row in left], dtype)
    values = np.array([row[2] for row in left], np.int64)
    found, rows = [], []
    for block in blocks:
        its_keys = np.array([row[0] for row in block], np.int64)
        its_orders = np.array([row[1] for row in block], dtype)
        its_values = np.array([row[2] for row in block], np.int64)

        def admits(probes: Any, at: Any, its: Any = its_values) -> Any:
            return (its[at] + values[probes]) % 3 == 0

        for forward in rule.directions:
            turned = [mirror_orders(each) if forward else each for each in (orders, its_orders)]
            ordered = SortedRows.sort_rows(its_keys, turned[1], lambda at, v=its_values: v[at])
            groups = ordered.find_probe_groups(keys, EQUAL, len(keys))
            probes = Probes(groups, turned[0])
            best = find_best_rows(probes, ordered, rule, admits if residual else None)
            found.append(best._replace(orders=its_orders[best.rows]))
            rows += [block[at] for at in best.rows.tolist()]
    answers: list[Any] = [None] * len(left)
    every = np.array([row[2] for row in rows], np.int64)
    if found:
        probe = np.concatenate([each.probes for each in found])
        for at in choose_best_rows(found, orders, rule, lambda some: every[some]).tolist():
            answers[probe[at]] = rows[at][1:]
    return answers


def search_in_turn(
    left: Sequence[Row], blocks: Sequence[Sequence[Row]], rule: MatchRule
) -> list[Any]:
    """Return the same by one block after the other, each for the probes that it may improve."""
    keys, orders = (np.array([row[n] for row in left], np.int64) for n in range(2))
    each = [np.array([row[:3] for row in block], np.int64).reshape(-1, 3).T for block in blocks]
    sides = []
    for forward in rule.directions:
        best = BestSoFar(len(left), orders.dtype)
        turned = mirror_orders(orders) if forward else orders
        for number, (its_keys, its_orders, its_values) in enumerate(each):
            its_orders = mirror_orders(its_orders) if forward else its_orders
            ordered = SortedRows.sort_rows(its_keys, its_orders, lambda at, v=its_values: v[at])
            at = best.list_open_probes(ordered)
            groups = ordered.find_probe_groups(keys[at], EQUAL, len(at))
            found = find_best_rows(Probes(groups, turned[at]), ordered, rule)
            best.add_block(number, found._replace(probes=at[found.probes]))
        best.decide_ties(
            lambda numbers, at: np.array(
                [each[n][2][row] for n, row in zip(numbers, at, strict=True)]
            )
        )
        sides.append(best)
    after = (
        choose_nearer_side(sides[0], sides[1], orders)
        if len(sides) == 2
        else np.zeros(len(left), bool)
    )
    answers: list[Any] = []
    for n, is_after in enumerate(after.tolist()):
        side = sides[is_after]
        found = side.blocks[n] >= 0
        answers.append(blocks[side.blocks[n]][side.rows[n]][1:] if found else None)
    return answers


def draw_row_lists(orders: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[list[Row]]:
    return st.lists(st.tuples(st.integers(0, 2), orders, st.integers(0, 4)), max_size=most)


RULES = st.builds(
    MatchRule,
    st.sampled_from(MATCHES),
    st.just(("o", "o")),
    st.sampled_from([None, 0, 3, 15]),
    st.booleans(),
)


@given(data=st.data(), rule=RULES, residual=st.booleans(), kind=st.sampled_from(["int", "float"]))
def test_the_best_rows_of_several_blocks_are_those_of_brute_force(
    data: st.DataObject, rule: MatchRule, residual: bool, kind: str
) -> None:
    order: st.SearchStrategy[Any] = st.integers(-20, 20)
    order = order.map(float) if kind == "float" else order
    left = data.draw(draw_row_lists(order, 12))
    blocks = data.draw(st.lists(draw_row_lists(order, 40), min_size=1, max_size=4))
    right = [row for block in blocks for row in block]
    expected = [find_model(row, right, rule, residual) for row in left]
    assert search(left, blocks, rule, residual) == expected
    if kind == "int" and not residual:
        assert search_in_turn(left, blocks, rule) == expected


@given(data=st.data(), rule=RULES)
def test_orders_may_be_any_64_bit_integers(data: st.DataObject, rule: MatchRule) -> None:
    order = st.one_of(st.sampled_from([*WIDE, WIDE[0] + 1, -1, 0]), st.integers(*WIDE))
    left, right = data.draw(draw_row_lists(order, 6)), data.draw(draw_row_lists(order, 12))
    expected = [find_model(row, right, rule, False) for row in left]
    assert search(left, [right], rule, False) == expected


@pytest.mark.parametrize("match", MATCHES)
def test_a_residual_that_only_a_far_row_fulfils_is_found_outward(match: Any) -> None:
    rule = MatchRule(match, ("o", "o"))
    right = [(1, order, 1 if order in (0, 400) else 0) for order in range(401)]
    left = [(1, 200, 2), (1, 60, 2)]
    expected = [find_model(row, right, rule, True) for row in left]
    assert search(left, [right], rule, True) == expected


@pytest.mark.parametrize(
    ("match", "direction"), [*zip(MATCHES, ("backward", "forward", "nearest"), strict=True)]
)
@pytest.mark.parametrize("tolerance", [None, 40])
@pytest.mark.parametrize("strict", [False, True])
def test_distances_are_those_of_merge_asof(
    match: Any, direction: Any, tolerance: int | None, strict: bool
) -> None:
    draw = np.random.default_rng(3)
    rule = MatchRule(match, ("o", "o"), tolerance, strict)
    sides = []
    for size in (500, 700):
        order = np.sort(draw.integers(0, 10_000, size))
        sides.append(pd.DataFrame({"o": order, "k": draw.integers(0, 9, size), "v": order}))
    merged = pd.merge_asof(
        *sides,
        on="o",
        by="k",
        direction=direction,
        tolerance=tolerance,
        allow_exact_matches=not strict,
        suffixes=("", "_right"),
    )
    left, right = (
        [*zip(f["k"].tolist(), f["o"].tolist(), [0] * len(f), strict=True)] for f in sides
    )
    answers = search(left, [right[::2], right[1::2]], rule, False)
    got = [None if a is None else abs(a[0] - row[1]) for a, row in zip(answers, left, strict=True)]
    known = (merged["v_right"] - merged["o"]).abs()
    assert got == [None if np.isnan(d) else int(d) for d in known]


def test_keys_that_are_nan_are_equal() -> None:
    keys = np.array([np.nan, 1.0, np.nan])
    rows = SortedRows.sort_rows(keys, np.array([5, 5, 7]), lambda at: at * 0)
    groups = rows.find_probe_groups(np.array([np.nan, 2.0]), EQUAL, 2)
    best = find_best_rows(Probes(groups, np.array([6, 6])), rows, MatchRule("latest", ("o", "o")))
    assert [each.tolist() for each in best] == [[0], [0], [5]]


def test_an_empty_block_has_no_best_row() -> None:
    for empty in (np.array([], np.int64), np.array([], float)):
        rows = SortedRows.sort_rows(empty.astype(np.int64), empty, lambda at: at)
        groups = rows.find_probe_groups(np.array([1]), EQUAL, 1)
        rule = MatchRule("latest", ("o", "o"))
        best = find_best_rows(Probes(groups, np.ones(1, empty.dtype)), rows, rule)
        assert len(best.probes) == 0
    assert isinstance(best, BestRows)


ASCENDING: dict[str, list[Any]] = {
    "int32": [None, -1, 0, 5],
    "float64": [None, float("-inf"), 0.0, 3.5, float("inf"), float("nan")],
    "string": [None, "", "B", "a", "é"],
    "binary": [None, b"", b"a"],
    "bool": [None, False, True],
    "date32": [None, dt.date(1969, 1, 1), dt.date(2024, 1, 1)],
    "timestamp[us]": [None, dt.datetime(1969, 1, 1), dt.datetime(2024, 1, 1)],
    "decimal": [None, Decimal("-1.0"), Decimal("2.5")],
    "list": [None, [], [None], [1], [1, 2], [2]],
    "struct": [None, {"x": None, "y": 9}, {"x": 1, "y": None}, {"x": 1, "y": 2}],
}
TYPES = {
    "decimal": pa.decimal128(5, 1),
    "list": pa.list_(pa.int64()),
    "struct": pa.struct([("x", pa.int64()), ("y", pa.int64())]),
}


@pytest.mark.parametrize("name", ASCENDING)
def test_values_of_each_type_are_ranked(name: str) -> None:
    values = ASCENDING[name]
    column = pa.array(values[::-1] + values, TYPES.get(name) or pa.type_for_alias(name))
    ranks = rank_rows([column], len(column)).tolist()
    assert ranks == [*range(len(values))][::-1] + [*range(len(values))]


def test_earlier_columns_decide_first_and_zeros_are_equal() -> None:
    columns = [pa.array([0.0, -0.0, 1.0]), pa.array(["b", "a", None])]
    assert rank_rows(columns, 3).tolist() == [1, 0, 2]
    assert rank_rows(columns[:1], 3).tolist() == [0, 0, 1]
    assert rank_rows([], 2).tolist() == [0, 0]
    assert all(a <= b for a, b in pairwise(rank_rows([pa.nulls(2)], 2).tolist()))
