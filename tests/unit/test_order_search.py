"""Searches by several index conditions at once find exactly the pairs that fulfill all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import inf, nan
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from braid.condition.access_paths import IndexCondition, Order, OrderSearch, OverflowGuard
from braid.condition.predicate import Predicate, window_conditions
from braid.core.reserved_columns import ROUTING, TIME
from braid.kernels import order_search
from braid.kernels.block_builder import build_block, gather_blocks, merge_blocks
from braid.kernels.block_orders import PERMUTATION, RANKS, rank_values
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.merge_sort_tree import MergeSortTree
from braid.kernels.probe import BlockJoiner
from braid.kernels.zone_tree import ZoneTree

Columns = dict[str, np.ndarray]
SIZES = (0, 1, 2, 3, 4, 5, 7, 15, 16, 17, 63, 64, 65, 100, 255, 256, 257, 300)
LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
K = IndexCondition((0, "k"), (1, "k"), 0, 0)
OVERLAP = (
    IndexCondition((0, "s"), (1, "e"), -inf, 0),
    IndexCondition((0, "e"), (1, "s"), 0, inf),
)


def find_by_mask(
    ranks: np.ndarray, first: np.ndarray, last: np.ndarray, low: np.ndarray, high: np.ndarray
) -> set[tuple[int, int]]:
    rows = np.arange(len(ranks))
    inside = (rows >= first[:, None]) & (rows < last[:, None])
    return set(
        zip(*np.nonzero(inside & (ranks >= low[:, None]) & (ranks < high[:, None])), strict=True)
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("most", [1, 50, 1 << 20])
@pytest.mark.parametrize("ties", [1, 5, 1000])
def test_trees_find_what_a_mask_finds(size: int, most: int, ties: int) -> None:
    draw = np.random.default_rng([size, most, ties])
    ranks = rank_values(draw.integers(0, ties, size))
    first, last, low, high = draw.integers(0, size + 1, (4, 40))
    first[:3], last[:3], low[:2], high[:2] = 0, size, 0, size
    zones, sorted_ranks = ZoneTree(ranks), MergeSortTree(ranks)
    pieces = [*zones.find_pairs(first, last, low, most)]
    pairs = [pair for probes, rows in pieces for pair in zip(probes, rows, strict=True)]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == find_by_mask(ranks, first, last, low, np.full(40, size))
    pieces = [*sorted_ranks.find_pairs(first, last, low, high, most)]
    pairs = [pair for probes, rows in pieces for pair in zip(probes, rows, strict=True)]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == find_by_mask(ranks, first, last, low, high)
    assert all(len(probes) <= most for probes, _ in pieces)


def test_narrow_ranges_are_covered_by_few_nodes_and_rows() -> None:
    size, width = 1 << 14, 700
    draw = np.random.default_rng(0)
    tree = MergeSortTree(rank_values(draw.permutation(size)))
    first, low = draw.integers(0, size - width, (2, 1000))
    pairs = tree.find_pairs(first, first + width, low, low + 100, 1 << 20)
    assert sum(len(probes) for probes, _ in pairs) > 4000
    assert tree.looked_at < 10 * len(first)


def test_a_tree_looks_at_few_nodes_if_there_are_few_results() -> None:
    size = 1 << 14
    ranks = rank_values(np.random.default_rng(0).permutation(size))
    all_rows = np.zeros(100, np.int64), np.full(100, size)
    zones, sorted_ranks = ZoneTree(ranks), MergeSortTree(ranks)
    assert sum(len(p) for p, _ in zones.find_pairs(*all_rows, np.full(100, size - 2), 1000)) == 200
    assert zones.looked_at < 100 * 2 * 8 * 4
    low = np.full(100, 5000)
    found = sorted_ranks.find_pairs(*all_rows, low, low + 2, 1000)
    assert sum(len(p) for p, _ in found) == 200
    assert sorted_ranks.looked_at <= 100 * 8


def make_predicate(*conditions: IndexCondition, streams: int = 2) -> Predicate:
    none: tuple[dict[str, str], ...] = ({},) * streams
    return Predicate(tuple("abc"[:streams]), (None,) * streams, none, none, conditions, ())


def make_rows(columns: Columns, first: int = 0) -> pa.RecordBatch:
    size = len(next(iter(columns.values())))
    number = np.arange(first, first + size)
    filled = {TIME: np.zeros(size, np.int64), "id": number, ROUTING: number % 10} | columns
    return pa.record_batch({name: pa.array(values) for name, values in filled.items()})


def make_block(p: Predicate, stream: int, columns: Columns, first: int = 0) -> BlockRows:
    return BlockRows(build_block(make_rows(columns, first), p.stream_orders(stream)))


def join_blocks(p: Predicate, *blocks: BlockRows) -> tuple[Counter[tuple[int, ...]], int]:
    """Return the ids of results, and the number of compared pairs."""
    none = [None] * len(blocks)
    joiner, count = BlockJoiner(p, none), SimpleNamespace(compared_pairs=0)
    partials = [PartialMatches({0: (blocks[0], blocks[0].row_positions())})]
    for stream, rows in enumerate(blocks[1:], 1):
        partials = [
            found
            for partial in partials
            for found in joiner.probe_block(partial, rows, stream, False, count)
        ]
    ids: Counter[tuple[int, ...]] = Counter()
    for found in partials:
        columns = (found.column_values(s, "id").tolist() for s in range(len(blocks)))
        ids.update(zip(*columns, strict=True))
    return ids, int(np.sum(count.compared_pairs))


def holds_for_pairs(condition: IndexCondition, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the matrix of pairs that fulfill a condition, in exact arithmetic."""
    if a.dtype.kind == "f":
        codes = np.unique(np.concatenate([a, b]), return_inverse=True)[1]
        a, b = codes[: len(a)], codes[len(a) :]
    difference = a.astype(object)[:, None] - b.astype(object)
    above = (
        difference > condition.lower if condition.open_bounds[0] else difference >= condition.lower
    )
    below = (
        difference < condition.upper if condition.open_bounds[1] else difference <= condition.upper
    )
    return np.asarray(above & below, bool)


def expect_pairs(p: Predicate, a: Columns, b: Columns) -> Counter[tuple[int, ...]]:
    holds = np.ones((len(next(iter(a.values()))), len(next(iter(b.values())))), bool)
    for condition in p.index_conditions:
        holds &= holds_for_pairs(condition, a[condition.left[1]], b[condition.right[1]])
    return Counter(zip(*(each.tolist() for each in np.nonzero(holds)), strict=True))


def draw_column(draw: np.random.Generator, kind: str, size: int) -> np.ndarray:
    if kind == "float":
        odd = np.array([nan, inf, -inf, -0.0, 0.0, 1.5])
        return np.where(draw.random(size) < 0.4, draw.choice(odd, size), draw.integers(-9, 9, size))
    if kind == "ends":
        return draw.choice(np.array([LEAST, LEAST + 2, -1, 0, 3, MOST - 2, MOST]), size)
    return draw.integers(-20, 20, size)


def draw_conditions(
    draw: np.random.Generator, shape: str, kinds: dict[str, str]
) -> tuple[IndexCondition, ...]:
    """Return conditions of a shape: "k" an equality, "1" a range of one bound, "2" of two."""
    conditions = []
    for n, letter in enumerate(shape):
        name = "k" if letter == "k" else "xyz"[n - shape.count("k")]
        is_float = kinds[name] == "float"
        bounds = (0, 0) if is_float else sorted(draw.choice([-3, -1, 0, 2, 4], 2).tolist())
        strict = (bool(draw.integers(2)), bool(draw.integers(2))) if is_float else (False, False)
        if letter == "k":
            conditions.append(replace(K, open_bounds=(False, False)))
            continue
        if letter == "1":
            bounds = (-inf, bounds[1]) if draw.integers(2) else (bounds[0], inf)
        elif is_float:
            bounds, strict = (-inf, 0), (False, strict[1])
        if bounds[0] == bounds[1]:
            bounds = (bounds[0], bounds[0] + 1)
        conditions.append(IndexCondition((0, name), (1, name), *bounds, strict))
    return tuple(conditions)


SHAPES = ("k1", "k2", "k11", "k12", "k22", "11", "12", "22", "111", "k112")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("way", ["sample", "tree", "check"])
def test_searches_find_what_brute_force_finds(
    shape: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way != "sample":
        monkeypatch.setattr(order_search, "_should_check", lambda *_: way == "check")
    for seed in range(12):
        draw = np.random.default_rng([seed, len(shape), *map(ord, shape)])
        kinds = {name: str(draw.choice(["small", "float", "ends"])) for name in "xyz"}
        kinds["k"] = str(draw.choice(["small", "float"]))
        p = make_predicate(*draw_conditions(draw, shape, kinds))
        sizes = draw.integers(0, 90, 2)
        a, b = (
            {name: draw_column(draw, kind, size) for name, kind in kinds.items()} for size in sizes
        )
        for columns, size in ((a, sizes[0]), (b, sizes[1])):
            if draw.integers(2) and kinds["k"] == "small":
                columns["k"] = draw.integers(0, 3, size)  # skewed: ranges within keys
        expected = expect_pairs(p, a, b)
        rows, whole = make_block(p, 0, a), make_block(p, 1, b)
        assert join_blocks(p, rows, whole)[0] == expected, (shape, seed)
        cuts = sorted(draw.integers(0, sizes[1] + 1, 3).tolist())
        spans = list(zip([0, *cuts], [*cuts, int(sizes[1])], strict=True))
        parts = [make_block(p, 1, {n: v[i:j] for n, v in b.items()}, i) for i, j in spans if i < j]
        if not parts:
            continue
        merged = BlockRows(merge_blocks(parts, p.stream_orders(1)))
        assert join_blocks(p, rows, merged)[0] == expected, (shape, seed)
        assert join_blocks(p, rows, gather_blocks(parts, p.stream_orders(1)))[0] == expected
        merged.keys = (2, 6)
        some = Counter({pair: n for pair, n in expected.items() if 2 <= pair[1] % 10 < 6})
        assert join_blocks(p, rows, merged)[0] == some, (shape, seed)


def test_a_range_is_searched_within_frequent_keys_only() -> None:
    p = make_predicate(K, IndexCondition((0, "x"), (1, "x"), -5, 5))
    order = Order("k", within="x")
    assert p.stream_orders(1) == (order,)
    x = np.random.default_rng(0).permutation(1000)
    rare, frequent = ({"k": x % keys, "x": x} for keys in (500, 10))
    blocks = [make_block(p, 1, columns) for columns in (rare, frequent)]
    names = [block.batch.schema.names for block in blocks]
    assert [RANKS + order.name in each for each in names] == [False, True]
    probes = make_block(p, 0, frequent)
    ids, compared = join_blocks(p, probes, blocks[1])
    assert compared == len(ids)
    merged = BlockRows(merge_blocks([blocks[1], blocks[0]], p.stream_orders(1)))
    assert join_blocks(p, probes, merged)[0] == sum(
        (join_blocks(p, probes, block)[0] for block in blocks), Counter()
    )


def test_two_probe_columns_bound_one_stored_column() -> None:
    """A point is searched between the ends of its interval; the other side uses a tree."""
    p = make_predicate(
        IndexCondition((0, "x"), (1, "s"), 0, inf), IndexCondition((0, "x"), (1, "e"), -inf, 0)
    )
    assert p.stream_orders(0) == (Order("x"),)
    assert p.stream_orders(1) == (Order("s"), Order("e"))
    draw = np.random.default_rng(0)
    s = draw.integers(0, 10_000, 1000)
    points, intervals = {"x": draw.integers(0, 10_000, 1000)}, {"s": s, "e": s + 20}
    expected = expect_pairs(p, points, intervals)
    ids, compared = join_blocks(p, make_block(p, 0, points), make_block(p, 1, intervals))
    assert ids == expected
    assert compared <= 3 * (len(expected) + 2000)
    turned = make_predicate(
        IndexCondition((0, "s"), (1, "x"), -inf, 0), IndexCondition((0, "e"), (1, "x"), 0, inf)
    )
    blocks = make_block(turned, 0, intervals), make_block(turned, 1, points)
    ids, compared = join_blocks(turned, *blocks)
    assert Counter((j, i) for i, j in ids.elements()) == expected
    assert compared == len(expected)


def test_key_and_range_come_from_different_streams() -> None:
    links = (
        IndexCondition((0, "k"), (2, "k"), 0, 0),
        IndexCondition((1, "x"), (2, "x"), -2, 2),
        IndexCondition((0, "k"), (1, "k"), 0, 0),
    )
    p = make_predicate(*links, streams=3)
    assert Order("k", within="x") in p.stream_orders(2)
    step = p.next_step(frozenset({0, 1}), 2)
    assert isinstance(step.access_path, OrderSearch)
    assert not step.conditions
    draw = np.random.default_rng(0)
    a, b, c = ({"k": draw.integers(0, 4, 60), "x": draw.integers(0, 50, 60)} for _ in range(3))
    ids, _ = join_blocks(p, *(make_block(p, s, each) for s, each in enumerate((a, b, c))))
    same = a["k"][:, None] == b["k"]
    expected = Counter(
        (int(i), int(j), n)
        for i, j in zip(*np.nonzero(same), strict=True)
        for n in range(60)
        if c["k"][n] == a["k"][i] and abs(b["x"][j] - c["x"][n]) <= 2
    )
    assert ids == expected


def test_every_order_of_a_block_is_searched() -> None:
    """A stream has an order for each neighbor; the second is a permutation with its own ranks."""
    p = make_predicate(
        IndexCondition((0, "s"), (1, "e"), -inf, 0),
        IndexCondition((0, "e"), (1, "s"), 0, inf),
        IndexCondition((1, "k"), (2, "k"), 0, 0),
        IndexCondition((1, "x"), (2, "x"), -1, 1),
        streams=3,
    )
    assert {Order("k", "x"), Order("k", "e"), Order("e"), Order("s")} <= {*p.stream_orders(1)}
    draw = np.random.default_rng(0)
    s = draw.integers(0, 500, 80)
    b = {"s": s, "e": s + 5, "k": draw.integers(0, 3, 80), "x": draw.integers(0, 40, 80)}
    a = {"s": s[:40], "e": s[:40] + 3}
    c = {"k": b["k"][:50], "x": b["x"][:50]}
    two = Counter[tuple[int, ...]]()
    for i, j in expect_pairs(make_predicate(*OVERLAP), a, b):
        two[i, j] += 1
    near = expect_pairs(make_predicate(K, IndexCondition((0, "x"), (1, "x"), -1, 1)), b, c)
    expected = Counter((i, j, n) for i, j in two for m, n in near if m == j)
    ids, _ = join_blocks(p, *(make_block(p, n, each) for n, each in enumerate((a, b, c))))
    assert ids == expected


def test_an_inexact_range_is_left_to_the_residual() -> None:
    """No check drops pairs that only the residual can judge."""
    rough = IndexCondition((0, "x"), (1, "x"), 0, 0, is_exact=False)
    p = make_predicate(K, replace(rough, lower=-1.0, upper=1.0))
    values = np.array([0.0, 1.0, 1.0 + 1e-9, 3.0])
    sparse, dense = ({"k": np.arange(4) % keys, "x": values} for keys in (4, 1))
    for columns in (sparse, dense, {n: np.tile(v, 20) for n, v in dense.items()}):
        ids, _ = join_blocks(p, make_block(p, 0, columns), make_block(p, 1, columns))
        pairs = expect_pairs(make_predicate(K), columns, columns)
        near = {(i, j) for i, j in pairs if abs(columns["x"][i] - columns["x"][j]) <= 1 + 1e-9}
        assert near <= set(ids)


def test_a_guarded_sum_is_not_among_what_finds_its_pairs() -> None:
    links = (K, IndexCondition((0, "x"), (1, "x"), -1, 1))
    guard = OverflowGuard(((0, "x", 1), (1, "x", 1)), -5, 5, "too large", links[1].ends)
    p = replace(make_predicate(*links), guards=(guard,))
    (guarded,) = p.next_step(frozenset({0}), 1).guarded_steps
    assert isinstance(guarded.access_path, OrderSearch)
    assert guarded.access_path == OrderSearch(K, ())
    p = replace(p, guards=(replace(guard, link=K.ends),))
    (guarded,) = p.next_step(frozenset({0}), 1).guarded_steps
    assert guarded.access_path is None
    assert guarded.required_links == links[1:]


def test_a_window_is_a_range_within_keys_but_no_ranked_column() -> None:
    windows = window_conditions([1000, 1000])
    assert make_predicate(K, *windows).stream_orders(0) == (Order("k", within=TIME),)
    band = IndexCondition((0, "x"), (1, "x"), -1, 1)
    assert make_predicate(band, *windows).stream_orders(0) == (Order("x"),)
    below = IndexCondition((0, "x"), (1, "x"), -inf, 0)
    assert make_predicate(below, *windows).stream_orders(0) == (Order(TIME), Order("x"))


def test_ranks_of_a_source_are_not_those_of_the_merged_block() -> None:
    p = make_predicate(K, *OVERLAP)
    draw = np.random.default_rng(0)
    blocks = []
    for n in range(3):
        s = draw.integers(0, 100, 30)
        columns = {"k": draw.integers(0, 2, 30), "s": s, "e": s + draw.integers(0, 9, 30)}
        blocks.append(make_block(p, 1, columns, 30 * n))
    merged = merge_blocks(blocks, p.stream_orders(1))
    stored = [n for n in merged.schema.names if n.startswith((PERMUTATION, RANKS))]
    assert len(stored) == 3
    for name in stored:
        assert sorted(merged.column(name).to_pylist()) == list(range(90))


@pytest.mark.parametrize("key", [(), (K,)], ids=["no key", "key"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_useless_range_finds_the_same_pairs_at_little_cost(
    key: tuple[IndexCondition, ...], place: int
) -> None:
    useless = IndexCondition((0, "u"), (1, "u"), -inf, 10**6)
    draw = np.random.default_rng(0)
    s = draw.integers(0, 20_000, (2, 2000))
    a, b = (
        {"k": draw.integers(0, 2, 2000), "s": each, "e": each + 20, "u": draw.permutation(2000)}
        for each in s
    )
    few = make_predicate(*key, *OVERLAP)
    more = make_predicate(*key, *OVERLAP[:place], useless, *OVERLAP[place:])
    ids, compared = join_blocks(few, make_block(few, 0, a), make_block(few, 1, b))
    same, compared_more = join_blocks(more, make_block(more, 0, a), make_block(more, 1, b))
    assert same == ids == expect_pairs(few, a, b)
    assert compared_more <= 3 * compared <= 3 * 3 * (len(ids) + 4000)
