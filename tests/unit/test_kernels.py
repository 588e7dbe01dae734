"""Local joins against loops in plain Python over awkward numbers.

They include NaN, infinities, -0.0 and the ends of the integer range.
"""

from __future__ import annotations

import tracemalloc
from collections import Counter
from itertools import product
from math import inf, isnan, nan
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid.condition.access_paths import IndexCondition, Order
from braid.condition.predicate import Predicate, window_conditions
from braid.condition.residual_evaluation import evaluate_residual
from braid.condition.residual_predicate import ResidualPredicate
from braid.core.reserved_columns import TIME
from braid.kernels import range_search
from braid.kernels.block_builder import build_block, gather_blocks, merge_blocks
from braid.kernels.hashing import xxhash64
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.join_spec import RoutingHash
from braid.kernels.meetings import Meetings
from braid.kernels.position_sort import sort_positions
from braid.kernels.probe import BlockJoiner, ProbeInput
from braid.kernels.range_search import search_equal_ranges
from braid.kernels.value_sizes import variable_width_columns
from hypothesis import given
from hypothesis import strategies as st

LEAST, MOST = -(2**63), 2**63 - 1
INTS = st.one_of(
    st.integers(-5, 5), st.sampled_from([LEAST, LEAST + 1, LEAST + 3, MOST, MOST - 1, MOST - 3])
)
FLOATS = st.one_of(
    st.sampled_from([nan, inf, -inf, -0.0, 0.0, 1.0, 1.5, -1e300, 1e300]),
    st.floats(-3, 3, width=16),
)
BOUNDS = st.one_of(st.integers(-4, 4), st.sampled_from([inf, -inf, LEAST, MOST, 2**64, -(2**64)]))


def predicate(
    links: list[IndexCondition], residuals: list[ResidualPredicate] | None = None, streams: int = 2
) -> Predicate:
    names = tuple("abc"[:streams])
    none: tuple[dict[str, str], ...] = tuple({} for _ in names)
    return Predicate(names, (None,) * streams, none, none, tuple(links), tuple(residuals or ()))


def block(p: Predicate, stream: int, **columns: Any) -> BlockRows:
    """Return a sorted block; ``id`` numbers the rows, ``__key`` defaults to the id and ``__time``
    to 0.
    """
    size = len(next(iter(columns.values())))
    filled = {"id": range(size), "__key": range(size), TIME: [0] * size, **columns}
    arrays = {
        n: pa.array(v, pa.float64() if any(isinstance(x, float) for x in v) else None)
        for n, v in filled.items()
    }
    arrays = {n: a.cast(pa.int64()) if pa.types.is_null(a.type) else a for n, a in arrays.items()}
    return BlockRows(build_block(pa.record_batch(arrays), p.stream_orders(stream)))


def join(p: Predicate, *blocks: BlockRows, **more: Any) -> Counter[tuple[int, ...]]:
    """Join the first block with the others, one hop after another."""
    none = (None,) * len(blocks)
    joiner = BlockJoiner(p, more.get("horizons", none))
    count = more.get("count", SimpleNamespace(compared_pairs=0))
    partials = [PartialMatches({0: (blocks[0], blocks[0].row_positions())})]
    for stream in range(1, len(blocks)):
        partials = [
            f
            for p in partials
            for f in joiner.probe_block(p, blocks[stream], stream, more.get("stored", False), count)
        ]
    found: Counter[tuple[int, ...]] = Counter()
    for f in partials:
        found.update(
            zip(*(f.column_values(s, "id").tolist() for s in range(len(blocks))), strict=True)
        )
    return found


def holds(link: IndexCondition, a: float, b: float) -> bool:
    """Return whether lo <= a - b <= hi in exact arithmetic.

    Floats have no offset and an order in which NaN is the largest.
    """
    if isinstance(a, float) or isinstance(b, float):
        a, b = ((1, 0.0) if isnan(x) else (0, x) for x in (a, b))
        low, high = (
            (a > b if link.open_bounds[0] else a >= b),
            (a < b if link.open_bounds[1] else a <= b),
        )
        return (low or link.lower == -inf) and (high or link.upper == inf)
    return link.lower <= a - b <= link.upper


def brute(
    links: list[IndexCondition], a: dict[str, list[Any]], b: dict[str, list[Any]]
) -> Counter[tuple[int, ...]]:
    pairs = product(range(len(a["x"])), range(len(b["x"])))
    return Counter(
        (i, j) for i, j in pairs if all(holds(k, a[k.left[1]][i], b[k.right[1]][j]) for k in links)
    )


def link(
    lo: float,
    hi: float,
    strict: tuple[bool, bool] = (False, False),
    name: str = "x",
    exact: bool = True,
) -> IndexCondition:
    return IndexCondition((0, name), (1, name), lo, hi, strict, exact)


@given(st.lists(INTS, max_size=8), st.lists(INTS, max_size=8), BOUNDS, BOUNDS)
def test_integers_meet_within_bounds_at_the_ends_of_the_range_too(
    a: list[int], b: list[int], lo: float, hi: float
) -> None:
    k = link(lo, hi)
    p = predicate([k])
    assert join(p, block(p, 0, x=a), block(p, 1, x=b)) == brute([k], {"x": a}, {"x": b})


@given(
    st.lists(INTS, max_size=8),
    st.lists(st.integers(0, 40), max_size=8),
    st.sampled_from([LEAST, -20, 0, MOST - 40]),
)
def test_equal_integers_meet_however_close_they_lie(a: list[int], b: list[int], by: int) -> None:
    k = link(0, 0)
    p, mine, theirs = predicate([k]), a + [v + by for v in b[::2]], [v + by for v in b]
    met = join(p, block(p, 0, x=mine), block(p, 1, x=theirs))
    assert met == brute([k], {"x": mine}, {"x": theirs})


def test_few_that_probe_a_large_block_do_not_go_through_it() -> None:
    stored = np.arange(1 << 20) // 2
    tracemalloc.start()
    first, last = search_equal_ranges(probe := np.arange(-5, 1000), stored)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (last - first).tolist() == [2 * (k >= 0) for k in probe.tolist()]
    assert most < stored.nbytes / 10


@given(
    st.one_of(st.lists(INTS), st.lists(st.integers(0, 1 << 20)), st.lists(st.integers(-99, 99))),
    st.sampled_from(["i1", "i4", "i8", "f8"]),
)
def test_keys_of_any_range_come_in_order(keys: list[int], kind: str) -> None:
    array = np.array(keys, np.int64).astype(kind)
    order = sort_positions(array)
    assert array[order].tolist() == sorted(array.tolist())
    assert sorted(order.tolist()) == [*range(len(keys))]


@given(
    st.lists(
        st.tuples(st.one_of(st.integers(-9, 9), st.integers(0, 1 << 32)), st.integers(0, 4)),
        max_size=40,
    ),
    st.sampled_from([1, 1 << 12]),
    st.sampled_from(["i8", "f8"]),
)
def test_keys_come_in_order_group_after_group(
    rows: list[tuple[int, int]], apart: int, kind: str
) -> None:
    keys = np.array([key for key, _ in rows], np.int64).astype(kind)
    groups = np.array([group * apart for _, group in rows], np.int16)
    order = sort_positions(keys, groups)
    found = [*zip(groups[order].tolist(), keys[order].tolist(), strict=True)]
    assert found == sorted(zip(groups.tolist(), keys.tolist(), strict=True))
    assert sorted(order.tolist()) == [*range(len(rows))]


def test_all_rows_of_a_block_are_what_their_positions_say() -> None:
    rows = BlockRows(pa.record_batch({"x": [7, 5, 9]}))
    assert BlockRows(pa.record_batch({"__key": [1, 4, 2]}), (1, 3)).row_positions().tolist() == [
        0,
        2,
    ]
    all_of, copied = (
        PartialMatches({0: (rows, at)}) for at in (rows.row_positions(), np.arange(3))
    )
    chosen = np.array([2, 0, 2])
    for one in (all_of, copied):
        assert one.column_values(0, "x").tolist() == [7, 5, 9]
        assert one.values_at(0, "x", chosen).tolist() == [9, 7, 9]
        assert one.take_positions(chosen).column_values(0, "x").tolist() == [9, 7, 9]
        assert one.take_positions(chosen).take_positions(np.array([1])).column_values(
            0, "x"
        ).tolist() == [7]


@pytest.mark.parametrize("keys", [1, 6, 8])
def test_routing_keys_are_remainders_of_hashes(keys: int) -> None:
    values = np.arange(-50, 50)
    found = RoutingHash("k", 3, keys).routing_keys(pa.array(values))
    assert found.type == pa.int32()
    assert found.to_pylist() == [h % keys for h in xxhash64(3, values).tolist()]


@given(
    st.lists(FLOATS, max_size=8),
    st.lists(FLOATS, max_size=8),
    st.sampled_from([(0, 0), (0, inf), (-inf, 0), (-inf, inf)]),
    st.tuples(st.booleans(), st.booleans()),
)
def test_floats_are_ordered_with_nan_as_the_largest(
    a: list[float], b: list[float], bounds: tuple[float, float], strict: tuple[bool, bool]
) -> None:
    k = link(*bounds, (strict[0] and bounds[0] == 0, strict[1] and bounds[1] == 0))
    p = predicate([k])
    assert join(p, block(p, 0, x=a), block(p, 1, x=b)) == brute([k], {"x": a}, {"x": b})


@given(
    st.lists(st.tuples(INTS, FLOATS), max_size=7),
    st.lists(st.tuples(INTS, FLOATS), max_size=7),
    BOUNDS,
    BOUNDS,
)
def test_further_links_are_checked_on_the_candidates(
    a: list[tuple[int, float]], b: list[tuple[int, float]], lo: float, hi: float
) -> None:
    links = [
        link(0, 0, name="x"),
        link(lo, hi, name="x"),
        link(0, inf, (True, False), "f"),
        link(0, 0, (False, True), "f"),
    ]
    for further in links[1:]:
        p = predicate([links[0], further])
        sides = [{"x": [r[0] for r in side], "f": [r[1] for r in side]} for side in (a, b)]
        assert join(p, block(p, 0, **sides[0]), block(p, 1, **sides[1])) == brute(
            [links[0], further], *sides
        )


@given(
    st.lists(FLOATS, max_size=8),
    st.lists(FLOATS, max_size=8),
    st.sampled_from([0.1, -0.1, 0.5, 1e300]),
)
def test_an_inexact_index_leaves_nothing_out(a: list[float], b: list[float], c: float) -> None:
    """a <= b + c in floats with all roundings: the residual checks what the index found."""
    decides = ResidualPredicate(
        f'"a.x" <= "b.x" + {c}::DOUBLE', frozenset((0, 1)), ((0, "x"), (1, "x"))
    )
    p = predicate([link(-inf, c, exact=False)], [decides])
    want = Counter(
        (i, j) for i, x in enumerate(a) for j, y in enumerate(b) if holds(link(-inf, 0), x, y + c)
    )
    assert join(p, block(p, 0, x=a), block(p, 1, x=b)) == want


@given(st.lists(st.tuples(INTS, INTS), max_size=8), st.lists(INTS, max_size=8))
def test_a_block_is_entered_by_any_of_its_indexes(b: list[tuple[int, int]], c: list[int]) -> None:
    """Stream b meets a by x and c by y.

    Its blocks are sorted by one and hold a permutation for the other.
    """
    links = [IndexCondition((0, "x"), (1, "x"), 0, 0), IndexCondition((1, "y"), (2, "y"), -1, 1)]
    p = predicate(links, streams=3)
    assert p.stream_orders(1) == (Order("x", within="y"), Order("y"))
    mine, theirs = block(p, 1, x=[r[0] for r in b], y=[r[1] for r in b]), block(p, 2, y=c)
    joiner, found = BlockJoiner(p, (None,) * 3), Counter()
    for f in joiner.probe_block(
        PartialMatches({2: (theirs, np.arange(len(c)))}),
        mine,
        1,
        False,
        SimpleNamespace(compared_pairs=0),
    ):
        found.update(
            zip(f.column_values(1, "id").tolist(), f.column_values(2, "id").tolist(), strict=True)
        )
    assert found == Counter(
        (i, j) for i, (_, y) in enumerate(b) for j, z in enumerate(c) if abs(y - z) <= 1
    )


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.integers(0, 9), st.integers(0, 9))
def test_a_view_counts_only_its_range_of_routing_keys(x: list[int], lo: int, hi: int) -> None:
    p = predicate([link(0, 0)])
    mine, whole = block(p, 0, x=[0, 1, 2, 3]), block(p, 1, x=x)
    view = BlockRows(whole.batch, (lo, hi))
    want = Counter((v, i) for i, v in enumerate(x) if lo <= i < hi)
    assert join(p, mine, view) == want
    kept = sorted(i for i in range(len(x)) if lo <= i < hi)
    assert sorted(merge_blocks([view], (Order("x"),)).column("id").to_pylist()) == kept


@given(st.lists(st.lists(st.tuples(INTS, st.integers(0, 3)), max_size=5), min_size=1, max_size=4))
def test_a_merged_block_finds_what_its_sources_found(parts: list[list[tuple[int, int]]]) -> None:
    p = predicate([link(-1, 1)])
    numbers, sources = iter(range(100)), []
    for part in parts:
        ids = [next(numbers) for _ in part]
        sources.append(
            block(p, 1, x=[r[0] for r in part], id=ids, **{"__key": [r[1] for r in part]})
        )
    probe, whole = (
        block(p, 0, x=[-1, 0, 3, LEAST, MOST]),
        BlockRows(merge_blocks(sources, (Order("x"),))),
    )
    assert join(p, probe, whole) == sum((join(p, probe, s) for s in sources), Counter())
    assert np.all(np.diff(whole.numpy_column("x").astype(object)) >= 0)


@given(
    st.lists(st.lists(st.tuples(INTS, st.integers(0, 3)), max_size=5), min_size=1, max_size=4),
    st.lists(st.tuples(INTS, st.integers(0, 3)), max_size=6),
    st.integers(0, 2),
    st.booleans(),
)
def test_gathered_blocks_find_and_count_what_each_finds(
    parts: list[list[tuple[int, int]]], probes: list[tuple[int, int]], reach: int, is_single: bool
) -> None:
    """One of the blocks counts only partly: by index and link, block by block."""
    p = predicate([link(-reach, reach), *([] if is_single else [link(0, 1, name="y")])])
    a = block(p, 0, x=[x for x, _ in probes], y=[y for _, y in probes])
    blocks, first = [], 0
    for rows in parts:
        ids = range(first, first := first + len(rows))
        blocks.append(block(p, 1, x=[x for x, _ in rows], y=[y for _, y in rows], id=[*ids]))
    blocks[0].keys = (1, 3)
    together = gather_blocks(blocks, p.stream_orders(1))
    counts = [SimpleNamespace(compared_pairs=0) for _ in blocks]
    each = [join(p, a, b, count=c) for b, c in zip(blocks, counts, strict=True)]
    count = SimpleNamespace(compared_pairs=np.zeros(len(blocks), int))
    due = Meetings(np.arange(len(blocks))[None, :], len(blocks))
    partial = PartialMatches({0: (a, a.row_positions())})
    probes = [ProbeInput(partial, together, False, count, meetings=due)]
    probe_blocks: Counter[tuple[int, ...]] = Counter()
    for _, f in BlockJoiner(p, (None, None)).probe_blocks(probes, 1):
        ids = zip(*(f.column_values(s, "id").tolist() for s in range(2)), strict=True)
        probe_blocks.update(here := Counter(ids))
        assert due.count_matches(f, 1).sum() == here.total()
    assert probe_blocks == sum(each, Counter())
    if is_single:  # several ranges are checked or searched, which depends on the rows
        assert count.compared_pairs.tolist() == [int(np.sum(c.compared_pairs)) for c in counts]


@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_chunks_do_not_change_the_results(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    draw = np.random.default_rng(chunk)
    a, b = draw.integers(0, 6, 40).tolist(), draw.integers(0, 6, 30).tolist()
    k = link(-1, 1)
    p = predicate([k])
    left, right, sizes = block(p, 0, x=a), block(p, 1, x=b), []
    monkeypatch.setattr("braid.kernels.probe.CHUNK", chunk)
    joiner, count, found = (
        BlockJoiner(p, (None, None)),
        SimpleNamespace(compared_pairs=0),
        Counter(),
    )
    for f in joiner.probe_block(PartialMatches({0: (left, np.arange(40))}), right, 1, False, count):
        sizes.append(len(f))
        found.update(
            zip(f.column_values(0, "id").tolist(), f.column_values(1, "id").tolist(), strict=True)
        )
    assert found == brute([k], {"x": a}, {"x": b})
    assert max(sizes) <= chunk
    assert count.compared_pairs == found.total()


def held_at_once(found: PartialMatches) -> int:
    """Return the bytes of the texts and lists of some results."""
    return sum(
        len(value)
        for rows, at in found.parts.values()
        for name in ("t", "l")
        for value in rows.batch.column(name).take(pa.array(at)).to_pylist()
    )


def words(draw: np.random.Generator, size: int) -> dict[str, list[Any]]:
    """Return columns of variable width; one value is far longer than the others."""
    long = [200 if i == 7 else int(n) for i, n in enumerate(draw.integers(0, 9, size))]
    return {"t": ["x" * n for n in long], "l": [[True] * (n % 7) for n in long]}


RESIDUALS = [
    [],
    [ResidualPredicate('"a.y" <> "b.y"', frozenset((0, 1)), ((0, "y"), (1, "y")))],
    [ResidualPredicate('"a.t" <> "b.t"', frozenset((0, 1)), ((0, "t"), (1, "t")))],
]


@pytest.mark.parametrize("residuals", RESIDUALS)
@pytest.mark.parametrize(("most", "near"), [(1, 0), (150, 0), (150, 99), (2_000, 99)])
def test_chunks_of_few_bytes_do_not_change_the_results(
    monkeypatch: pytest.MonkeyPatch, most: int, near: int, residuals: list[ResidualPredicate]
) -> None:
    """Results do not hold more at once either, nor do the texts that a residual reads."""
    draw, p = np.random.default_rng(most), predicate([link(-1, 1)], residuals)
    a, b = (
        {"x": draw.integers(0, 6, n).tolist(), "y": draw.integers(0, 2, n).tolist()}
        | words(draw, n)
        for n in (40, 30)
    )
    left, blocks = block(p, 0, **a), [block(p, 1, **b), block(p, 1, **b)]

    def mask(
        residual: ResidualPredicate, aliases: Any, columns: dict[Any, Any], measured: Any
    ) -> Any:
        texts = [c for (_, name), c in columns.items() if name == "t"]
        assert sum(len(t) for c in texts for t in c.to_pylist()) <= most or len(texts[0]) == 1
        return evaluate_residual(residual, aliases, columns, measured)

    def found() -> list[PartialMatches]:
        joiner = BlockJoiner(p, (None, None))
        start, count = (
            PartialMatches({0: (left, left.row_positions())}),
            SimpleNamespace(compared_pairs=0),
        )
        meets = [ProbeInput(start, rows, False, count) for rows in blocks]
        return [f for _, f in joiner.probe_blocks(meets, 1)]

    def pairs(several: list[PartialMatches]) -> list[tuple[int, ...]]:
        ids = (
            zip(*(f.column_values(s, "id").tolist() for s in (0, 1)), strict=True) for f in several
        )
        return [pair for each in ids for pair in each]

    whole = found()
    for name, value in (("BYTES", most), ("_LITTLE", most // 8), ("_NEAR", near)):
        monkeypatch.setattr(f"braid.kernels.probe.{name}", value)
    monkeypatch.setattr("braid.kernels.probe.evaluate_residual", mask)
    pieces = found()
    assert len(whole) == 2 < len(pieces) and pairs(pieces) == pairs(whole)
    assert all(held_at_once(f) <= most or len(f) == 1 for f in pieces)


def test_where_all_columns_are_of_fixed_width_nobody_looks_at_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("braid.kernels.probe.BYTES", 1)
    monkeypatch.setattr("braid.kernels.probe._LITTLE", 0)
    for name in ("buffer_bytes", "max_value_bytes", "value_bytes"):
        monkeypatch.setattr(BlockRows, name, None)
    p = predicate([link(0, 0)], RESIDUALS[1])
    a, b = (block(p, s, x=[1] * 9, y=[s] * 9) for s in (0, 1))
    assert join(p, a, b) == Counter(product(range(9), range(9)))


TEXTS = st.one_of(st.none(), st.text(max_size=5))
UNFIXED = [
    (pa.string(), TEXTS),
    (pa.binary(), st.one_of(st.none(), st.binary(max_size=5))),
    (pa.list_(pa.bool_()), st.one_of(st.none(), st.lists(st.booleans(), max_size=5))),
    (pa.list_(pa.string()), st.one_of(st.none(), st.lists(TEXTS, max_size=5))),
    (pa.map_(pa.string(), pa.int16()), st.lists(st.tuples(st.text(max_size=3), st.just(7)))),
    (pa.struct({"t": pa.string(), "n": pa.int32()}), st.fixed_dictionaries({"t": TEXTS})),
]


def count_value_bytes(value: Any, kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return sum(count_value_bytes(value.get(f.name), f.type) for f in kind)
    if pa.types.is_map(kind):
        return sum(1 + len(key.encode()) + kind.item_type.bit_width // 8 for key, _ in value)
    if pa.types.is_list(kind):
        return sum(1 + count_value_bytes(each, kind.value_type) for each in value or ())
    if pa.types.is_string(kind):
        return len((value or "").encode())
    return len(value or b"") if pa.types.is_binary(kind) else kind.bit_width // 8


@pytest.mark.parametrize("n", range(len(UNFIXED)))
@given(data=st.data())
def test_lengths_are_those_of_the_values_wherever_their_array_begins(
    n: int, data: st.DataObject
) -> None:
    kind, some = UNFIXED[n]
    values = data.draw(st.lists(some, min_size=1, max_size=6))
    first = data.draw(st.integers(0, len(values) - 1))
    whole = pa.record_batch({"k": np.arange(len(values)), "x": pa.array(values, kind)})
    assert variable_width_columns(whole.schema) == ["x"]
    rows, want = BlockRows(whole.slice(first)), [count_value_bytes(v, kind) for v in values[first:]]
    at = np.arange(len(want))[::-1]
    assert rows.value_bytes("x", at).tolist() == want[::-1]
    assert rows.max_value_bytes("x") == max(want)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(0, 3))), max_size=8),
    st.integers(0, 3),
)
def test_a_residual_that_is_null_does_not_hold(rows: list[tuple[int, int | None]], y: int) -> None:
    p = predicate(
        [link(0, 0)], [ResidualPredicate('"a.y" <> "b.y"', frozenset((0, 1)), ((0, "y"), (1, "y")))]
    )
    a = block(p, 0, x=[0, 1, 2, 3], y=[y] * 4)
    b = block(
        p, 1, x=[r[0] for r in rows], y=pa.array([r[1] for r in rows], pa.int64()).to_pylist()
    )
    assert join(p, a, b) == Counter(
        (x, j) for j, (x, z) in enumerate(rows) if z is not None and z != y
    )


@given(*[st.lists(st.integers(0, 20), max_size=6)] * 3)
def test_windows_hold_for_every_member_of_a_group(a: list[int], b: list[int], c: list[int]) -> None:
    """W = (5, 8, none): T - T_i < W_i, strictly, T being the latest of the three.

    t   0    5    8
    a   |---->            alive for partners at 0..4
    b   |------->         alive for partners at 0..7
    c   |----------...    alive for ever
    """
    windows = (5, 8, None)
    p = predicate(list(window_conditions(windows)), streams=3)
    blocks = [block(p, s, **{TIME: t}) for s, t in enumerate((a, b, c))]
    want: Counter[tuple[int, ...]] = Counter()
    for (i, x), (j, y), (k, z) in product(*map(enumerate, (a, b, c))):
        latest = max(x, y, z)
        want[i, j, k] += latest - x < 5 and latest - y < 8
    assert join(p, *blocks) == +want


def test_expired_rows_of_a_stored_block_no_longer_count() -> None:
    """W_b = 10 and partners are expected from 15 on:

    b   0 .... 4 5 6 ...... 15
        expired  | alive         for 5 + 10 <= 15
    """
    p = predicate([link(0, 0)])
    a, b = block(p, 0, x=[1]), block(p, 1, x=[1] * 7, **{TIME: [0, 4, 5, 6, 7, 14, 20]})
    more = {"horizons": (None, 6)}
    assert join(p, a, b, stored=True, **more) == Counter((0, j) for j in (3, 4, 5, 6))
    assert join(p, a, b, stored=False, **more) == Counter((0, j) for j in range(7))


@given(*[st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9)), max_size=6)] * 3)
def test_three_streams_by_an_index_a_link_and_a_residual(
    a: list[tuple[int, int]], b: list[tuple[int, int]], c: list[tuple[int, int]]
) -> None:
    links = [
        IndexCondition((0, "x"), (1, "x"), 0, 0),
        IndexCondition((1, "y"), (2, "y"), -2, 3),
        IndexCondition((0, "y"), (2, "x"), 1, inf),
    ]
    over = ResidualPredicate(
        '"a.y" + "b.y" <> "c.y"', frozenset((0, 1, 2)), ((0, "y"), (1, "y"), (2, "y"))
    )
    p = predicate(links, [over], streams=3)
    blocks = [
        block(p, s, x=[r[0] for r in side], y=[r[1] for r in side])
        for s, side in enumerate((a, b, c))
    ]
    want: Counter[tuple[int, ...]] = Counter()
    for (i, x), (j, y), (k, z) in product(*map(enumerate, (a, b, c))):
        want[i, j, k] += (
            x[0] == y[0] and -2 <= y[1] - z[1] <= 3 and x[1] - z[0] >= 1 and x[1] + y[1] != z[1]
        )
    assert join(p, *blocks) == +want


ENDS = st.sampled_from([-(2**63), -(2**63) + 1, -5, -1, 0, 1, 3, 2**63 - 1])
REALS = st.sampled_from([float("nan"), -np.inf, np.inf, -0.0, 0.0, 1.5, -3.0, 7.0])


@given(
    values=st.tuples(st.lists(ENDS, min_size=1, max_size=4), st.lists(ENDS, min_size=1, max_size=4))
    | st.tuples(st.lists(REALS, min_size=1, max_size=4), st.lists(REALS, min_size=1, max_size=4)),
    bounds=st.tuples(st.sampled_from([-np.inf, -3, 0]), st.sampled_from([np.inf, 0, 4])),
    is_exact=st.booleans(),
    left=st.booleans(),
)
def test_a_block_that_is_left_out_has_no_match(
    values: tuple[list[float], list[float]],
    bounds: tuple[float, float],
    is_exact: bool,
    left: bool,
) -> None:
    """The ends of its keys say so, and a search finds the same."""
    probe, stored = (np.array(v) for v in values)
    stored.sort()
    condition = IndexCondition((0, "k"), (1, "k"), *bounds, is_exact=is_exact)
    first, last = range_search.search_ranges(probe, stored, condition, left)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(range_search, "_may_reach", lambda *_: True)
        searched = range_search.search_ranges(probe, stored, condition, left)
    sizes = [np.maximum(b - a, 0).tolist() for a, b in ((first, last), searched)]
    assert sizes[0] == sizes[1]


def test_a_block_out_of_reach_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    condition, probe = IndexCondition((0, "k"), (1, "k"), -5, 5), np.arange(100, 200)
    monkeypatch.setattr(np, "searchsorted", None)
    for stored in (np.arange(50, 95), np.arange(205, 300)):
        first, last = range_search.search_ranges(probe, stored, condition, left=True)
        assert not (last - first).any()
