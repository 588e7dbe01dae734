"""Segments: blocks measured, merged and copied together are those made one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid.condition.access_paths import Order
from braid.core.plan import Block, Derivation
from braid.execution import merge_pools
from braid.execution.merge_pools import Merge, intersect_key_ranges, merge_together
from braid.kernels.block_builder import (
    build_block,
    gather_blocks,
    merge_blocks,
)
from braid.kernels.block_orders import drop_order_columns
from braid.kernels.host_block_rows import BlockRows, concat_rows, order_by_segment
from braid.kernels.segment_rows import Segment
from braid.kernels.value_sizes import value_bytes
from braid.storage.block_files import BlockFileWriter
from braid.storage.block_readers import open_replica
from hypothesis import given
from hypothesis import strategies as st

ORDERS = {
    "one order": (Order("k"),),
    "ordered within": (Order("k", "__time"),),
    "several orders": (Order("k"), Order("__time")),
}


def _make_rows(values: list[tuple[Any, ...]]) -> pa.RecordBatch:
    k, time, key, text, lists = ([v[n] for v in values] for n in range(5))
    columns = {
        "k": pa.array(k, pa.int64()),
        "__time": pa.array(time, pa.int64()),
        "__key": pa.array(key, pa.int32()),
        "t": pa.array(text, pa.string()),
        "f": pa.array([None if t is None else t == "a" for t in text], pa.bool_()),
        "l": pa.array(lists, pa.list_(pa.int16())),
        "s": pa.array([None if t is None else {"x": t} for t in text]),
    }
    columns["s"] = columns["s"].cast(pa.struct([("x", pa.string())]))
    return pa.record_batch(columns)


ROWS = st.tuples(
    st.integers(0, 4),
    st.integers(0, 99),
    st.integers(0, 9),
    st.sampled_from([None, "", "a", "ä", "long"]),
    st.sampled_from([None, [], [1], [1, 2, 3]]),
)
PARTS = st.lists(st.lists(ROWS, min_size=1, max_size=9), min_size=1, max_size=6)


@given(PARTS, st.integers(0, 3))
def test_blocks_of_a_segment_are_measured_at_once(parts: list[Any], skipped: int) -> None:
    batch = _make_rows([(0, 0, 0, "x", [1])] * skipped + [row for part in parts for row in part])
    segment = Segment(batch.slice(skipped), np.cumsum([len(part) for part in parts]))
    for rows, part in zip(segment.slice_blocks(), parts, strict=True):
        times = [row[1] for row in part]
        assert rows.event_time_range() == (min(times), max(times))
        assert rows.nbytes == value_bytes(rows.batch) == value_bytes(_make_rows(part))
        assert rows.batch.to_pylist() == _make_rows(part).to_pylist()


@given(PARTS, st.data())
def test_neighbors_in_segments_are_put_together_as_they_are(
    parts: list[Any], data: st.DataObject
) -> None:
    halves = [parts[: len(parts) // 2], parts[len(parts) // 2 :]]
    blocks = []
    for half in filter(None, halves):
        batch = _make_rows([row for part in half for row in part])
        blocks += Segment(batch, np.cumsum([len(part) for part in half])).slice_blocks()
    some = data.draw(st.permutations(blocks))[: data.draw(st.integers(1, len(blocks)))]
    for chosen in (some, [some[n] for n in order_by_segment(some)]):
        found = concat_rows(chosen).to_pylist()
        assert found == [row for rows in chosen for row in rows.batch.to_pylist()]
    assert concat_rows(blocks[:1]).column(0).buffers()[1] is not None
    whole = concat_rows([blocks[n] for n in order_by_segment(blocks)])
    assert whole.num_rows == sum(map(len, parts))


@pytest.mark.parametrize("name", ORDERS)
@given(st.lists(PARTS, min_size=1, max_size=4), st.integers(1, 2000))
def test_blocks_merged_together_are_those_merged_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, name: str, several: list[list[Any]], most: int
) -> None:
    """Rows outside of the key range of a merged block are left out, and so are empty blocks.

    From the first source, which is a view, two pieces are cut.
    """
    orders, folder = ORDERS[name], tmp_path_factory.mktemp("blocks")
    merges, want = [], {}
    for number, parts in enumerate(several):
        sources = [BlockRows(build_block(_make_rows(part), orders)) for part in parts]
        sources[0] = BlockRows(sources[0].batch, (2, 8))
        made = [((1, 9), sources), ((2, 5), sources[:1]), ((5, 8), sources[:1])]
        for n, (keys, some) in enumerate(made, 3 * number):
            block = Block(n, number % 2, keys, 0, (n,))
            size = sum(rows.nbytes for rows in some)
            total = sum(rows.row_total for rows in some)
            merges.append(Merge(Derivation(block, (), {}), {n: n}, some, size, total))
            cut = [BlockRows(r.batch, intersect_key_ranges(r.keys, keys)) for r in some]
            if (merged := merge_blocks(cut, orders)).num_rows:
                want[n] = merged
    files = BlockFileWriter(folder, "000000-0-0000cafe", False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_pools, "_MOST_BYTES", most)
        found = [*merge_together(merges, {0: orders, 1: orders}, files)]
    checksums = files.close_files()
    assert sorted(each.block for each in found) == sorted(want)
    for block, hosts, address, rows in found:
        stored = open_replica(str(Path(folder) / address.file), address, checksums[address.file])
        assert hosts == {block: block} and stored.batch.equals(rows.batch)
        assert sorted(map(repr, rows.batch.to_pylist())) != [] and rows.nbytes == stored.nbytes
        _compare_blocks(rows.batch, want[block])


def _compare_blocks(one: pa.RecordBatch, other: pa.RecordBatch) -> None:
    """Equal keys may be in any order, so ranks and permutations are compared by what they say."""
    assert one.schema.names == other.schema.names
    names = [n for n in one.schema.names if not n.startswith("__p:") and not n.startswith("__r:")]
    rows, others = (sorted(map(repr, each.select(names).to_pylist())) for each in (one, other))
    assert rows == others
    assert one.column("k").equals(other.column("k"))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=40))
def test_blocks_built_together_are_those_built_one_by_one(keys: list[Any]) -> None:
    """Whether a block is sorted within equal values depends on its own rows alone."""
    keys = sorted(keys)
    batch = _make_rows([(k, n * 7 % 40, 0, "", None) for n, (_, k) in enumerate(keys)])
    ends = np.searchsorted([group for group, _ in keys], np.unique([g for g, _ in keys]), "right")
    segment = Segment(batch, ends)
    assert segment.build_blocks(ORDERS["several orders"]) is None
    cases = [(ORDERS["ordered within"], True), *((orders, False) for orders in ORDERS.values())]
    for orders, stores_orders in cases:
        found: dict[int, pa.RecordBatch] = {}
        for part, numbers in segment.build_blocks(orders, stores_orders) or ():
            blocks = [rows.batch for rows in part.slice_blocks()]
            found |= zip(numbers.tolist(), blocks, strict=True)
        for number, rows in enumerate(segment.slice_blocks()):
            alone = build_block(rows.batch, orders, True, stores_orders=stores_orders)
            assert alone.equals(found[number])


@given(PARTS, st.lists(st.none() | st.tuples(st.integers(0, 4), st.integers(5, 9)), min_size=9))
def test_gathered_views_have_the_rows_of_their_keys(parts: list[Any], views: list[Any]) -> None:
    orders = (Order("k"),)
    each = zip(parts, views, strict=False)
    blocks = [BlockRows(build_block(_make_rows(part), orders), keys) for part, keys in each]
    gathered = gather_blocks(blocks, orders)
    assert gathered.sources is not None
    rows = drop_order_columns(gathered.batch).to_pylist()
    found = zip(gathered.sources.tolist(), map(repr, rows), strict=True)
    keys, positions = gathered.sorted_keys("k")
    assert keys.tolist() == sorted(row["k"] for row in rows)
    assert keys.tolist() == [rows[n]["k"] for n in (positions if positions is not None else ())]
    taken = ((n, b.batch.take(pa.array(b.row_positions()))) for n, b in enumerate(blocks))
    assert sorted(found) == sorted((n, repr(row)) for n, rows in taken for row in rows.to_pylist())
