"""Common elements of sets: the kernel against Python's own sets."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from braid import Centralized, inner_product
from braid.condition.access_paths import CommonElements
from braid.kernels import set_overlap as kernel
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.set_overlap import SetColumn, pairs_sharing, pairwise_overlap
from braid.stream_join import StreamJoin
from hypothesis import given, settings
from hypothesis import strategies as st

some = st.lists(
    st.none() | st.lists(st.none() | st.integers(0, 9), max_size=5), min_size=1, max_size=12
)


def alike(values):
    return set(values or [])


@pytest.mark.parametrize("heavy", [(1, 1), (2, 4), (64, 4)])
@given(a=some, b=some, least=st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_common_elements_are_counted_as_python_does(heavy, a, b, least):
    """NULL is an element; a NULL set has no count; duplicates count once.

    Sets with few elements per word are mostly counted by their lists, or in several words.
    """
    before = kernel.WORD, kernel._WORDS
    kernel.WORD, kernel._WORDS = heavy
    try:
        x, y = (SetColumn.from_arrow(pa.array(s, pa.list_(pa.int32()))) for s in (a, b))
        left, right = (m.ravel() for m in np.meshgrid(range(len(a)), range(len(b)), indexing="ij"))
        counted = pairwise_overlap(x, left, y, right).to_pylist()
        pairs = sorted(
            (i, j)
            for lefts, rights in pairs_sharing(x, np.arange(len(a)), y, least)
            for i, j in zip(lefts.tolist(), rights.tolist(), strict=True)
        )
    finally:
        kernel.WORD, kernel._WORDS = before
    wanted = [
        None if a[i] is None or b[j] is None else float(len(alike(a[i]) & alike(b[j])))
        for i, j in zip(left, right, strict=True)
    ]
    assert counted == wanted
    assert pairs == [
        (i, j)
        for i, j, n in zip(left.tolist(), right.tolist(), wanted, strict=True)
        if n is not None and n >= least
    ]


def test_tiles_are_put_together(monkeypatch):
    monkeypatch.setattr(kernel, "_CELLS", 7)
    a = SetColumn.from_arrow(pa.array([[i, i + 1] for i in range(9)]))
    b = SetColumn.from_arrow(pa.array([[i] for i in range(5)]))
    found = {
        (i, j) for x, y in pairs_sharing(a, np.arange(9), b, 1) for i, j in zip(x, y, strict=True)
    }
    assert found == {(i, j) for i in range(9) for j in range(5) if j in (i, i + 1)}


@pytest.mark.parametrize(
    "values",
    [
        ["x", "yy"],
        [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)],
        [True, False],
        [b"1", b"2"],
    ],
)
def test_elements_of_all_kinds(values):
    a = SetColumn.from_arrow(pa.array([values, values[:1], []]))
    b = SetColumn.from_arrow(pa.array([values[1:], values]))
    at = np.arange(3)
    assert pairwise_overlap(a, at, b, np.ones(3, int)).to_pylist() == [2.0, 1.0, 0.0]
    assert pairwise_overlap(a, at, b, np.zeros(3, int)).to_pylist() == [1.0, 0.0, 0.0]


def test_integers_of_two_widths():
    a = SetColumn.from_arrow(pa.array([[1, 300]], pa.list_(pa.int64())))
    b = SetColumn.from_arrow(pa.array([[1, 44]], pa.list_(pa.int8())))
    one = np.zeros(1, int)
    assert (
        pairwise_overlap(a, one, b, one).to_pylist()
        == pairwise_overlap(b, one, a, one).to_pylist()
        == [1.0]
    )


def test_a_set_that_many_partial_results_have_is_counted_once():
    from braid.kernels.candidate_pairs import find_sharing_pairs

    rows = BlockRows(pa.record_batch({"x": pa.array([[1], [2]])}))
    stored = BlockRows(pa.record_batch({"y": pa.array([[2, 1], [2]])}))
    partial = PartialMatches({0: (rows, np.array([1, 0, 1]))})
    found = [
        pair
        for left, right in find_sharing_pairs(
            *partial.set_column(0, "x"), stored.set_column("y"), 1
        )
        for pair in zip(left.tolist(), right.tolist(), strict=True)
    ]
    assert sorted(found) == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)]


def _any(x, y):
    """Return arrays_overlap; None is unknown."""
    if (x - {None}) & (y - {None}):
        return True
    return None if x and y and None in x | y else False


OF_TABLES = {
    "size(array_intersect(a.x, b.x)) >= 2": lambda x, y: len(x & y) >= 2,
    "array_size(array_union(a.x, b.x)) = 3": lambda x, y: len(x | y) == 3,
    "cardinality(array_except(b.x, a.x)) = 0": lambda x, y: not y - x,
    "NOT arrays_overlap(a.x, b.x)": lambda x, y: _any(x, y) is False,
    "size(a.x) > 1 AND arrays_overlap(a.x, b.x)": lambda x, y: _any(x, y) is True,
}


@pytest.mark.parametrize("on", OF_TABLES)
def test_tables_are_joined_on_sets_without_spark(on, tmp_path):
    """NULL is an element; a NULL array matches nothing."""
    draw = np.random.default_rng(3)
    sets = [
        None
        if draw.random() < 0.1
        else draw.choice([1, 2, 3, 4, None], int(draw.integers(0, 5))).tolist()
        for _ in range(120)
    ]
    both = {}
    for n, alias in enumerate("ab"):
        mine = pa.array(sets[60 * n : 60 * n + 60], pa.list_(pa.int32()))
        both[alias] = pa.table({"id": range(60), "x": mine})
    run = StreamJoin(both, on, Centralized()).start(tmp_path / "run", batches=2)
    run.awaitTermination()
    found = run.results()
    ids = zip(*(found[a].combine_chunks().field("id").to_pylist() for a in "ab"), strict=True)
    holds = OF_TABLES[on]
    wanted = {
        (i, j)
        for i, x in enumerate(sets[:60])
        for j, y in enumerate(sets[60:])
        if x is not None and y is not None and holds(set(x), set(y))
        if "size(a.x)" not in on or len(x) > 1
    }
    assert set(ids) == wanted and 0 < len(wanted) == found.num_rows


@pytest.mark.parametrize(
    ("on", "sentence"),
    [
        ("array_distinct(a.x) = b.x", "is not known to mean the same without Spark"),
        ("size(a.id) = b.id", "is of type bigint where an array is needed"),
        ("size(array_intersect(a.x, b.id)) > 1", "is of type bigint where an array is needed"),
    ],
)
def test_what_is_not_known_of_arrays_is_refused(on, sentence):
    rows = pa.table({"id": [1], "x": pa.array([[1]], pa.list_(pa.int32()))})
    with pytest.raises(ValueError, match=sentence):
        StreamJoin({"a": rows, "b": rows}, on, Centralized())


def test_inner_products_of_weighted_sets_are_found_by_common_elements(tmp_path):
    """A key missing on the other side adds nothing; a NULL weight on the left gives NULL."""
    draw = np.random.default_rng(5)

    def weighed(n):
        def some():
            keys = draw.choice(8, int(draw.integers(0, 5)), replace=False).tolist()
            return [(k, None if draw.random() < 0.05 else round(draw.normal(), 2)) for k in keys]

        return [None if draw.random() < 0.1 else some() for _ in range(n)]

    held = {a: weighed(60) for a in "ab"}
    kinds = {"a": pa.map_(pa.int32(), pa.float32()), "b": pa.map_(pa.int64(), pa.float64())}
    tables = {a: pa.table({"id": range(60), "w": pa.array(held[a], kinds[a])}) for a in "ab"}

    def product(x, y):
        if x is None or None in [w for _, w in x]:
            return None
        known = dict(y or ())
        return sum(float(np.float32(w)) * (known.get(k) or 0.0) for k, w in x)

    for op, index in ((">= 0.5", True), ("> 0", True), ("< 0.25", False), (">= 0", False)):
        join = StreamJoin(tables, f"{inner_product('a.w', 'b.w')} {op}", Centralized())
        assert (
            isinstance(join.predicate.next_step(frozenset({0}), 1).access_path, CommonElements)
            == index
        )
        run = join.start(tmp_path / f"run {op}", batches=2)
        run.awaitTermination()
        rows = run.results()
        ids = set(
            zip(*(rows[a].combine_chunks().field("id").to_pylist() for a in "ab"), strict=True)
        )
        wanted = {
            (i, j)
            for i, x in enumerate(held["a"])
            for j, y in enumerate(held["b"])
            if (p := product(x, y)) is not None and eval(f"p {op}", {"p": p})
        }
        assert ids == wanted and 0 < len(wanted) == rows.num_rows


def test_other_aggregates_are_no_inner_products():
    maps = pa.table({"w": pa.array([[(1, 1.0)]], pa.map_(pa.int32(), pa.float64()))})
    text = inner_product("a.w", "b.w")
    others = [("s + ", "s - "), ("0D", "1D"), ("map_keys(a.w)", "map_keys(b.w)")]
    for other in (text.replace(*change) for change in others):
        with pytest.raises(ValueError, match="not known to mean the same|cannot be evaluated"):
            StreamJoin({"a": maps, "b": maps}, f"{other} > 1", Centralized())
    words = pa.table({"w": pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string()))})
    with pytest.raises(ValueError, match="multiplies weights of type string"):
        StreamJoin({"a": words, "b": words}, f"{text} > 1", Centralized())


def test_sets_of_hundreds_of_elements_are_counted():
    """More than a byte holds; a word of common elements, and rare ones."""
    draw = np.random.default_rng(7)
    several = [draw.choice(700, size, replace=False).tolist() for size in (600, 500, 3, 0, 650)]
    x = SetColumn.from_arrow(pa.array(several, pa.list_(pa.int32())))
    every = np.arange(5)
    found = {
        (left, right): int(counts[left - tile.start, right])
        for tile, counts in kernel.count_common_elements(x, every, x)
        for left in range(tile.start, tile.stop)
        for right in range(5)
    }
    assert found == {
        (i, j): len(set(a) & set(b)) for i, a in enumerate(several) for j, b in enumerate(several)
    }
    assert max(found.values()) == 650 and len(x.bits) == kernel._WORDS
