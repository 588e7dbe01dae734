"""Conditions with OR: their branches, the candidates of several indexes, and whole runs.

Runs are compared with a loop in Python over all pairs, and with DuckDB's nested loops.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations, product
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from braid.condition.access_paths import Branch, Disjunction, IndexCondition
from braid.condition.disjunctions import MOST_BRANCHES, BranchSplitter, Literals
from braid.condition.parser import parse_predicate
from braid.condition.predicate import Predicate
from braid.condition.residual_predicate import ResidualPredicate
from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import INT
from braid.core.reserved_columns import ROUTING, TIME
from braid.core.run_events import BatchCommitted
from braid.errors import EvaluationFailure
from braid.kernels.block_builder import build_block, gather_blocks, merge_blocks
from braid.kernels.disjunction_pairs import find_disjunction_pairs
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.stream_join import StreamJoin
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_runs import make_table, nested_loops, run_indexed
from oracle import result_ids
from sqlglot import exp

pytestmark = pytest.mark.unit
MOST = 2**31 - 1


def _find_aliases(node: exp.Expr) -> set[int]:
    return {ord(column.table) for column in node.find_all(exp.Column)}


SPLITTER = BranchSplitter(_find_aliases, lambda node, streams: INT)


def parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect=SparkSql)


def written(branch: Literals | list[exp.Expr]) -> str:
    return " AND ".join(literal.sql(dialect=SparkSql) for literal in branch)


BRANCHES = {
    "a.k = b.k OR a.v = b.v": ["a.k = b.k", "a.v = b.v"],
    "a.k = b.k OR a.k = b.k": ["a.k = b.k"],
    "NOT (a.k <> b.k AND NOT a.v < b.v)": ["a.k = b.k", "a.v < b.v"],
    "NOT (a.k = b.k AND a.v < b.v)": ["NOT (a.k = b.k)", "a.v >= b.v"],
    "a.k IN (b.x, b.y)": ["a.k = b.x", "a.k = b.y"],
    "a.k NOT IN (b.x, b.y)": ["NOT (a.k = b.x) AND NOT (a.k = b.y)"],
    "a.k NOT BETWEEN b.x AND b.y": ["a.k < b.x", "a.k > b.y"],
    "a.k = b.k OR a.k IS NULL AND b.k IS NULL": ["a.k IS NOT DISTINCT FROM b.k"],
    "(b.k IS NULL AND a.k IS NULL) OR a.v = b.v OR a.k = b.k": [
        "a.v = b.v",
        "a.k IS NOT DISTINCT FROM b.k",
    ],
    "NOT a.k IS DISTINCT FROM b.k": ["a.k IS NOT DISTINCT FROM b.k"],
    "a.k = b.k AND (a.v = b.v OR a.w = b.w)": [
        "a.k = b.k AND a.v = b.v",
        "a.k = b.k AND a.w = b.w",
    ],
    "(a.k = b.k OR a.v = b.v) IS TRUE": ["a.k = b.k", "a.v = b.v"],
    "(a.x = 1 OR a.x = 2) AND a.k = b.k OR a.v = b.v": [
        "a.x = 1 OR a.x = 2 AND a.k = b.k",
        "a.v = b.v",
    ],
}


@pytest.mark.parametrize("text", BRANCHES)
def test_a_condition_is_brought_to_branches(text: str) -> None:
    assert [*map(written, SPLITTER.find_branches(parsed(text)))] == BRANCHES[text]


def test_more_than_eight_branches_or_64_literals_are_none() -> None:
    many = [f"a.k = b.c{n}" for n in range(MOST_BRANCHES + 1)]
    assert len(SPLITTER.find_branches(parsed(" OR ".join(many[:-1])))) == MOST_BRANCHES
    assert SPLITTER.find_branches(parsed(" OR ".join(many))) == []
    long = " AND ".join(f"a.c{n} = b.c{n}" for n in range(33))
    assert len(SPLITTER.find_branches(parsed(f"({long}) OR a.c0 = b.c1"))) == 2
    assert SPLITTER.find_branches(parsed(f"({long}) OR ({long} AND a.k = b.k)")) == []


CONJUNCTS = {
    "(a.k = b.k AND a.v = b.v) OR (a.w = b.w AND a.k = b.k)": [
        "a.k = b.k",
        "(a.v = b.v) OR (a.w = b.w)",
    ],
    "a.k = b.k OR (a.k = b.k AND a.v = b.v)": ["a.k = b.k"],
    "NOT (a.k <> b.k OR a.v < b.v)": ["a.k = b.k", "a.v >= b.v"],
    "a.k = b.k OR a.v = b.v": ["a.k = b.k OR a.v = b.v"],
    "(a.k = b.k AND a.x > 1) OR (a.k = b.k AND NOT a.x > 1) OR (a.k = b.k AND (a.x > 1) IS NULL)": [
        "a.k = b.k",
        "(a.x > 1) OR (NOT a.x > 1) OR ((a.x > 1) IS NULL)",
    ],
}


@pytest.mark.parametrize("text", CONJUNCTS)
def test_shared_literals_become_conjuncts(text: str) -> None:
    found = [e.sql(dialect=SparkSql) for e in SPLITTER.split_conjunct(parsed(text))]
    assert found == CONJUNCTS[text]


COLUMNS = ("a.x", "a.y", "b.x", "b.y")
TRUTH = {
    exp.EQ: lambda x, y: x == y,
    exp.NEQ: lambda x, y: x != y,
    exp.LT: lambda x, y: x < y,
    exp.LTE: lambda x, y: x <= y,
    exp.GT: lambda x, y: x > y,
    exp.GTE: lambda x, y: x >= y,
}


def decide(node: exp.Expr, row: dict[str, int | None]) -> bool | None:
    """Return the value of a condition in three-valued logic, by its definition."""
    node = node.unnest()
    if isinstance(node, (exp.And, exp.Or)):
        sides = [decide(side, row) for side in (node.this, node.expression)]
        strong = isinstance(node, exp.Or)
        return strong if strong in sides else None if None in sides else not strong
    if isinstance(node, exp.Not):
        inner = decide(node.this, row)
        return None if inner is None else not inner
    if isinstance(node, exp.Between):
        low = exp.GTE(this=node.this, expression=node.args["low"])
        return decide(
            exp.And(this=low, expression=exp.LTE(this=node.this, expression=node.args["high"])), row
        )
    if isinstance(node, exp.In):
        equal = [decide(exp.EQ(this=node.this, expression=e), row) for e in node.expressions]
        return True if True in equal else None if None in equal else False
    values = [
        row[side.sql()] if isinstance(side, exp.Column) else None
        for side in (node.this, node.expression)
    ]
    if isinstance(node, exp.Is):
        return values[0] is None
    if isinstance(node, (exp.NullSafeEQ, exp.NullSafeNEQ)):
        return (values[0] == values[1]) is isinstance(node, exp.NullSafeEQ)
    return None if None in values else bool(TRUTH[type(node)](*values))


def random_text(draw: random.Random, depth: int) -> str:
    x, y, z = (draw.choice(COLUMNS) for _ in range(3))
    if depth and draw.random() < 0.8:
        parts = [random_text(draw, depth - 1) for _ in range(2)]
        return (
            f"NOT ({parts[0]})"
            if draw.random() < 0.3
            else f"({draw.choice((' AND ', ' OR ')).join(parts)})"
        )
    sign = draw.choice(("=", "<>", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM"))
    forms = (
        f"{x} {sign} {y}",
        f"{x} {sign} {y}",
        f"{x} BETWEEN {y} AND {z}",
        f"{x} NOT BETWEEN {y} AND {z}",
    )
    return draw.choice((*forms, f"{x} IN ({y}, {z})", f"{x} NOT IN ({y}, {z})", f"{x} IS NULL"))


@settings(max_examples=15)
@given(st.randoms(use_true_random=False))
def test_branches_and_conjuncts_are_true_where_the_condition_is(draw: random.Random) -> None:
    node = parsed(random_text(draw, 3))
    branches, conjuncts = SPLITTER.find_branches(node), SPLITTER.split_conjunct(node)
    for values in product((None, 0, 1), repeat=4):
        row = dict(zip(COLUMNS, values, strict=True))
        truth = decide(node, row) is True
        assert all(decide(c, row) is True for c in conjuncts) == truth
        if branches:
            assert any(all(decide(e, row) is True for e in b) for b in branches) == truth


# Candidates of several indexes

NUMBERS = {
    pa.int64(): [None, -(2**63), -1, 0, 1, 2, 2**53 + 1, 2**53, 2**63 - 1],
    pa.float64(): [None, nan, -inf, -1.0, -0.0, 0.0, 0.5, 1e300, inf],
}
RESIDUAL = ResidualPredicate("true", frozenset({0, 1}), ())


def holds(link: IndexCondition, a: Any, b: Any) -> bool:
    """Return whether a branch holds; NaN is the largest number, and equals itself."""
    if a is None or b is None:
        return False
    if isinstance(a, float):
        (a, b), low, high = ((x != x, 0.0 if x != x else x) for x in (a, b)), link.lower, link.upper
        return (low == -inf or a >= b) and (high == inf or a <= b)
    return bool(link.lower <= a - b <= link.upper)


@settings(max_examples=40)
@given(st.data())
def test_each_pair_of_some_branch_is_found_once(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from([*NUMBERS]), min_size=1, max_size=3))
    spans = st.sampled_from([(0, 0), (-inf, 0), (0, inf), (-1, 2)])
    conditions = []
    for n, kind in enumerate(kinds):
        low, high = data.draw(
            spans if kind == pa.int64() else st.sampled_from([(0, 0), (-inf, 0), (0, inf)])
        )
        conditions.append(IndexCondition((0, f"k{n}"), (1, f"k{n}"), low, high))
    chosen = st.lists(st.sampled_from(conditions), min_size=1, max_size=2, unique=True)
    branches = [Branch(tuple(each)) for each in data.draw(st.lists(chosen, min_size=1, max_size=3))]
    is_exact = all(len(branch.conditions) == 1 for branch in branches)
    either = Disjunction(tuple(branches), RESIDUAL, is_exact)
    none: tuple[dict[str, str], ...] = ({}, {})
    p = Predicate(("a", "b"), (None, None), none, none, (), (RESIDUAL,), disjunctions=(either,))
    sides = []
    for stream in (0, 1):
        size = data.draw(st.integers(1, 12))
        columns = {
            f"k{n}": pa.array(
                data.draw(st.lists(st.sampled_from(NUMBERS[kind]), min_size=size, max_size=size)),
                kind,
            )
            for n, kind in enumerate(kinds)
        }
        base = {
            "id": pa.array(range(size)),
            ROUTING: pa.array([0] * size, pa.int32()),
            TIME: pa.array([0] * size, pa.int64()),
        }
        sides.append((pa.record_batch(base | columns), p.stream_orders(stream)))
    (left, names), (right, indexes) = sides
    want = {
        (i, j)
        for i, x in enumerate(left.to_pylist())
        for j, y in enumerate(right.to_pylist())
        if any(all(holds(c, x[c.left[1]], y[c.right[1]]) for c in b.conditions) for b in branches)
    }
    possible = {
        (i, j)
        for i, x in enumerate(left.to_pylist())
        for j, y in enumerate(right.to_pylist())
        if any(
            None not in [r[k] for s, r in ((0, x), (1, y)) for k in b.list_keys(s)]
            for b in branches
        )
    }
    whole = BlockRows(build_block(left, names))
    middle = right.num_rows // 2
    parts = [BlockRows(build_block(part, indexes)) for part in (right[:middle], right[middle:])]
    for rows in (
        BlockRows(build_block(right, indexes)),
        BlockRows(merge_blocks(parts, indexes)),
        gather_blocks(parts, indexes),
    ):
        for probing, block, stream in ((whole, rows, 1), (rows, whole, 0)):
            partial = PartialMatches({1 - stream: (probing, probing.row_positions())})
            most = data.draw(st.integers(1, 20))
            ids = [r.numpy_column("id") for r in (probing, block)]
            found = Counter(
                pair
                for chunk in find_disjunction_pairs(partial, block, stream, either, most)
                for pair in zip(ids[0][chunk[0]].tolist(), ids[1][chunk[1]].tolist(), strict=True)
            )
            pairs = found if stream == 1 else Counter({pair[::-1]: n for pair, n in found.items()})
            assert pairs == Counter(want) if is_exact else want <= set(pairs) <= possible
            assert set(pairs.values()) <= {1}


INDEXED = [
    "a.k = b.k OR a.v = b.v",
    "a.k = b.k OR a.s = b.s",
    "a.k <=> b.k",
    "a.f <=> b.f",
    "a.s <=> b.s AND a.v <=> b.w",
    "a.k = b.k OR (a.k IS NULL AND b.k IS NULL)",
    "a.k <=> b.k OR a.s = b.s",
    "a.k IN (b.k, b.v)",
    "a.f = b.f OR a.k = b.k",
    "a.f < b.f OR a.k = b.k",
    "abs(a.f - b.f) <= 0.5 OR a.k = b.k",
    "abs(a.v - b.w) <= 1 OR a.k = b.k",
    "a.v BETWEEN b.v - 1 AND b.v + 1 OR a.s = b.s",
    "a.t BETWEEN b.t - INTERVAL 1 SECOND AND b.t OR a.k = b.k",
    "(a.k = b.k AND a.v > 2) OR (a.v = b.v AND b.w IS NULL)",
    "(a.k = b.k AND a.v <> b.v) OR (a.v = b.v AND a.s < b.s)",
    "NOT (a.k <> b.k AND a.v <> b.v)",
    "(a.k = b.k OR a.v = b.v) AND (a.s = b.s OR a.w = b.w)",
    "a.w < b.w AND (a.k = b.k OR a.v = b.v)",
    "a.k = b.k AND (a.v = b.v OR a.s = b.s)",
    "a.k = b.k AND (a.v = b.v OR abs(a.w - b.w) <= 1)",
    "(a.k = b.k AND a.t BETWEEN b.t AND b.t + INTERVAL 1 SECOND) OR a.s = b.s",
    "(a.v <= b.w AND b.v <= a.w - 4) OR a.k = b.k",
    "(a.f < b.f AND a.v > b.v + 2 AND b.w = 1) OR (a.k = b.k AND a.w <= b.w)",
    "abs(a.v - b.v) <= 1 AND (a.k = b.k OR a.f = b.f)",
]


@pytest.mark.parametrize("on", INDEXED)
def test_a_condition_with_or_is_found_by_indexes(tmp_path: Path, on: str) -> None:
    draw = random.Random(on)
    streams = [make_table(draw, rows) for rows in (60, 50)]
    found, compared = run_indexed(tmp_path, on, *streams)
    assert found == nested_loops(on, *streams)
    assert compared < 60 * 50


@pytest.mark.parametrize(
    "on",
    [
        "a.k = b.k OR a.v > 3",  # no index for a branch
        "a.k = b.k OR a.s < b.s || 'a'",
        "a.k * 2 = b.k OR a.v = b.v",  # may fail
        "a.k = b.k OR a.v = b.v OR " + " OR ".join(f"a.w = b.w AND a.v = {n}" for n in range(8)),
    ],
)
def test_other_conditions_with_or_stay_residuals(tmp_path: Path, on: str) -> None:
    streams = [make_table(random.Random(on), 20) for _ in "ab"]
    assert run_indexed(tmp_path, on, *streams) == (nested_loops(on, *streams), 20 * 20)


_MAY_FAIL = "a.k * 2 = b.k may fail, and Spark may not evaluate it for every pair"


@pytest.mark.parametrize(
    ("on", "reason"),
    [
        ("a.k = b.k OR a.v > 3", "no index finds a.v > 3"),
        ("a.k * 2 = b.k OR a.v = b.v", _MAY_FAIL),
        (
            "a.k = b.k AND (a.v < b.v OR a.w = b.w)",
            "a.v < b.v narrows the other conditions too little",
        ),
        (
            " OR ".join(f"a.k = b.k + {n}" for n in range(9)),
            "it has more than 8 branches or 64 literals",
        ),
    ],
)
def test_a_run_says_why_an_or_has_no_index(on: str, reason: str) -> None:
    rows = make_table(random.Random(1), 3)
    text = str(StreamJoin({"a": rows, "b": rows}, on).explain())
    assert f"none for {on.split(' AND (')[-1].rstrip(')')}: {reason}" in text


def test_branches_that_narrow_another_index_little_are_no_index() -> None:
    schema = make_table(random.Random(1), 1).schema
    for on in ("a.k = b.k AND (a.v < b.v OR a.w = b.w)", "a.v < b.v AND (a.w < b.w OR a.k < b.k)"):
        predicate = parse_predicate(on, dict.fromkeys("ab", schema), (None, None))
        assert not predicate.disjunctions and predicate.computed_columns == ({}, {})


def test_branches_also_have_the_other_index_conditions(tmp_path: Path) -> None:
    """Few values of the equality and of each branch alone; few pairs of both together."""
    draw, rows = np.random.default_rng(4), 3_000
    columns = {"k": 10, "v": 1_000, "t": 10_000}

    def table() -> pa.Table:
        values = {
            n: pa.array(draw.integers(0, m, rows), mask=draw.random(rows) < 0.2)
            for n, m in columns.items()
        }
        return pa.table({"id": np.arange(rows), **values})

    on = "a.k = b.k AND (a.v = b.v OR a.t BETWEEN b.t - 5 AND b.t + 5)"
    streams = table(), table()
    results, compared = run_indexed(tmp_path, on, *streams)
    assert results == nested_loops(on, *streams)
    assert compared < 1.2 * len(results)


def test_a_window_does_not_replace_the_branches_unless_they_are_as_wide() -> None:
    schema = make_table(random.Random(1), 1).schema
    paths = []
    for on in ("a.k = b.k OR abs(a.v - b.v) <= 1", "a.k = b.k OR a.v < b.v"):
        predicate = parse_predicate(on, dict.fromkeys("ab", schema), (60_000_000,) * 2)
        paths.append(predicate.next_step(frozenset({0}), 1).access_path)
    assert isinstance(paths[0], Disjunction)
    assert isinstance(paths[1], IndexCondition) and paths[1].left == (0, TIME)


def test_in_a_join_of_three_streams_an_or_works_in_its_hop(tmp_path: Path) -> None:
    streams = [make_table(random.Random(n), 12) for n in range(3)]
    on = "(a.k = b.k OR a.v = b.v) AND (b.k = c.v OR b.s = c.s)"
    assert run_indexed(tmp_path, on, *streams)[0] == nested_loops(on, *streams)
    schemas = {alias: rows.schema for alias, rows in zip("abc", streams, strict=True)}
    assert len(parse_predicate(on, schemas, (None,) * 3).disjunctions) == 2
    over_three = parse_predicate("a.k = b.k OR a.v = c.v", schemas, (None,) * 3)
    assert not over_three.disjunctions and len(over_three.residuals) == 1


def test_a_tuple_is_kept_if_some_branch_may_find_its_partner(tmp_path: Path) -> None:
    nulls = [(1, None), (None, 1), (None, None), (1, 1)]
    rows = pa.table({"id": range(4), "k": [k for k, _ in nulls], "v": [v for _, v in nulls]})
    joined = StreamJoin({"a": rows, "b": rows}, "a.k = b.k OR a.v = b.v")
    done = joined.start(str(tmp_path / "run"), batches=1)
    done.awaitTermination()
    last = [e for e in done.events() if isinstance(e, BatchCommitted)][-1]
    assert list(last.live_tuples) == [3, 3]
    assert result_ids(done.results()) == nested_loops("a.k = b.k OR a.v = b.v", rows, rows)


@settings(max_examples=2)
@given(st.randoms(use_true_random=False))
def test_a_condition_equals_its_cases(tmp_path_factory: Any, draw: random.Random) -> None:
    """p is (p AND q) OR (p AND NOT q) OR (p AND q IS NULL), in any order, also repeated."""
    p = draw.choice(["a.k = b.k", "abs(a.v - b.w) <= 1", "a.s = b.s", "a.f <= b.f"])
    q = draw.choice(["a.v > 2", "b.s = 'a'", "a.v < b.v", "a.w = b.k"])
    cases = [f"({p} AND {q})", f"({p} AND NOT {q})", f"({p} AND ({q}) IS NULL)"]
    order = draw.choice([*permutations(cases)])
    streams = [make_table(random.Random(draw.getrandbits(16)), 30) for _ in "ab"]
    truth, compared = run_indexed(tmp_path_factory.mktemp("p"), p, *streams)
    for parts in (order, (*order, order[0])):
        found, more = run_indexed(tmp_path_factory.mktemp("q"), " OR ".join(parts), *streams)
        assert found == truth
        assert more <= 3 * compared


def test_two_equalities_compare_little_more_than_the_results(tmp_path: Path) -> None:
    draw, rows = np.random.default_rng(3), 20_000

    def table() -> pa.Table:
        missing = draw.random(rows) < 0.3
        columns = {n: pa.array(draw.integers(0, rows, rows), mask=missing) for n in "kv"}
        return pa.table({"id": np.arange(rows), **columns})

    found, compared = run_indexed(tmp_path, "a.k = b.k OR a.v = b.v", table(), table())
    assert compared == len(found) < 2 * rows


@pytest.mark.parametrize("on", ["a.v + 1 = b.v OR a.k = b.k", "a.k = b.k OR b.v < a.v + 1"])
def test_a_sum_in_a_branch_fails_where_spark_computes_it(tmp_path: Path, on: str) -> None:
    def rows(k: list[int], v: list[int]) -> pa.Table:
        numbers = {"k": pa.array(k, pa.int64()), "v": pa.array(v, pa.int32())}
        return pa.table({"id": pa.array(range(len(k)), pa.int64()), **numbers})

    with pytest.raises(EvaluationFailure, match=r"ARITHMETIC_OVERFLOW in a\.v \+ 1 \(int\)"):
        run_indexed(tmp_path, on, rows([1, 2], [MOST, 0]), rows([3, 3], [0, 0]))
    # Not computed if an earlier branch decides, or for no pair.
    if on.startswith("a.k"):
        found, _ = run_indexed(
            tmp_path / "decided", on, rows([3, 4], [MOST, 0]), rows([3, 3], [0, 0])
        )
        assert found == Counter({(0, 0): 1, (0, 1): 1, (1, 0): 1, (1, 1): 1})
    assert not run_indexed(tmp_path / "empty", on, rows([1], [MOST]), rows([], []))[0]


@pytest.mark.parametrize("more", ["", "a.k = b.k AND "])
def test_a_sum_beside_an_or_fails_although_no_branch_finds_its_pair(
    tmp_path: Path, more: str
) -> None:
    """Pairs are searched within equal keys by the sum, too, so the overflowing one is not found."""
    on = f"{more}a.v + b.v < 0 AND (a.w = b.w OR a.x = b.x)"

    def rows(first: int, others: int, x: int) -> pa.Table:
        numbers = {"v": [first, *[others] * 19], "w": [1] * 20, "x": [x] * 20, "k": [0] * 20}
        columns = {name: pa.array(values, pa.int32()) for name, values in numbers.items()}
        return pa.table({"id": pa.array(range(20), pa.int64()), **columns})

    a, b = rows(MOST, -MOST, 1), rows(5, 5, 2)
    with pytest.raises(EvaluationFailure, match=r"ARITHMETIC_OVERFLOW in a\.v \+ b\.v \(int\)"):
        run_indexed(tmp_path / "fails", on, a, b)
    other = a.set_column(2, "w", pa.array([0, *[1] * 19], pa.int32()))
    assert run_indexed(tmp_path / "holds", on, other, b)[0].total() == 19 * 20


def test_a_run_says_what_finds_the_branches() -> None:
    rows = make_table(random.Random(1), 3)
    text = str(StreamJoin({"a": rows, "b": rows}, "a.k = b.k OR abs(a.v - b.v) <= 2").explain())
    assert "index: any of equality; band: a.k = b.k OR ABS(a.v - b.v) <= 2" in text
    assert "all pairs" not in text
