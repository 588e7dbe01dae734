"""Build blocks: sort rows by index keys, merge or gather blocks, describe their event times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from braid.condition.access_paths import Order
from braid.core.reserved_columns import MATCHED, ROUTING, ROW, TIME
from braid.core.stream_clocks import SUPPORT, TimeSpread
from braid.kernels.block_orders import (
    PERMUTATION,
    drop_order_columns,
    make_order_columns,
    sort_within,
)
from braid.kernels.column_views import concat_without_views
from braid.kernels.host_block_rows import BlockRows, concat_rows, take_block_rows
from braid.kernels.match_marks import Bits, look_up_match_bits
from braid.kernels.position_sort import sort_positions, sort_stably

_SOURCE = "__source"


def build_block(
    columns: pa.RecordBatch,
    orders: Sequence[Order],
    ordered: bool = False,
    runs: bool = False,
    stores_orders: bool = True,
    is_ranked: bool | None = None,
) -> pa.RecordBatch:
    """Return a block: the rows sorted in the first order, with columns that store all orders.

    - ``ordered``: the rows are sorted by the column of the first order.
    - ``runs``: they are a few sorted runs, which a stable sort merges.
    - ``stores_orders``: False: without the columns, which as-of joins do not read.
    - ``is_ranked``: whether orders within equal values are stored; None: if it is worth it.
    """
    columns = drop_order_columns(columns)
    if not ordered:
        key = columns.column(orders[0].column).to_numpy(zero_copy_only=False)
        columns = take_block_rows(
            columns, np.argsort(key, kind="stable") if runs else sort_positions(key)
        )
    is_sorted_within, within = sort_within(columns, orders[0], is_ranked)
    if within is not None:
        columns = take_block_rows(columns, within)
    if not stores_orders:
        return columns
    stored = make_order_columns(columns, orders, is_sorted_within, is_ranked)
    for name, values in stored.items():
        columns = replace_column(columns, name, pa.array(values))
    return columns


def replace_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Return the batch with a column replaced, or appended if it is new."""
    at = batch.schema.get_field_index(name)
    return batch.append_column(name, values) if at < 0 else batch.set_column(at, name, values)


def merge_blocks(
    sources: Sequence[BlockRows], orders: Sequence[Order], stores_orders: bool = True
) -> pa.RecordBatch:
    """Return one block of the chosen rows of several; ``stores_orders`` as for ``build_block``."""
    batches = [*map(_take_chosen_rows, sources)]
    merged = concat_without_views(batches)
    return build_block(merged, orders, len(batches) == 1, True, stores_orders)


def copy_numbered_block(source: BlockRows, orders: Sequence[Order]) -> pa.RecordBatch:
    """Return the chosen rows of one block, which keep their numbers."""
    return drop_plain_numbers(build_block(take_numbered_rows(source), orders, ordered=True))


def drop_plain_numbers(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return a block without the numbers of its rows if they are positions."""
    numbers = rows.column(ROW).to_numpy()
    if bool(np.all(numbers == np.arange(len(numbers)))):
        return _drop_column(rows, ROW)
    return rows


def merge_matched_blocks(
    sources: Sequence[BlockRows],
    orders: Sequence[Order],
    bits: Mapping[int | None, Sequence[Bits | None]],
) -> tuple[pa.RecordBatch, dict[int | None, Bits]]:
    """Return one block of the chosen rows of several, and the marks of its rows by query.

    ``bits``: by query, marks of the sources; None: no row is marked.
    """
    batches = []
    columns = {query: f"{MATCHED}{number}" for number, query in enumerate(bits)}
    for place, rows in enumerate(sources):
        batch = take_numbered_rows(rows)
        numbers, batch = batch.column(ROW).to_numpy(), _drop_column(batch, ROW)
        for query, each in bits.items():
            marked = look_up_match_bits(each[place], numbers)
            batch = batch.append_column(columns[query], pa.array(marked))
        batches.append(batch)
    merged, marks = build_block(concat_without_views(batches), orders, runs=True), {}
    for query, name in columns.items():
        marks[query] = merged.column(name).to_numpy(zero_copy_only=False)
        merged = _drop_column(merged, name)
    return merged, marks


def merge_unmatched_rows(
    sources: Sequence[BlockRows], orders: Sequence[Order], bits: Sequence[Bits | None]
) -> tuple[pa.RecordBatch, np.ndarray]:
    """Return one block of those chosen rows that are not marked, and the event times of the others.

    ``bits``: marks of the sources; None: no row is marked.
    """
    batches, times = [], []
    for rows, marks in zip(sources, bits, strict=True):
        batch = take_numbered_rows(rows)
        marked = look_up_match_bits(marks, batch.column(ROW).to_numpy())
        times.append(batch.column(TIME).to_numpy()[marked])
        batches.append(take_block_rows(_drop_column(batch, ROW), np.flatnonzero(~marked)))
    return build_block(concat_without_views(batches), orders, runs=True), np.concatenate(times)


def gather_blocks(
    sources: Sequence[BlockRows],
    orders: Sequence[Order],
    is_numbered: bool = False,
    is_ranked: bool | None = None,
) -> BlockRows:
    """Return the rows of small blocks, to be probed at once. Each row knows its block.

    - ``is_numbered``: each row also knows its number in its birth.
    - ``is_ranked``: whether orders within equal values are stored; None: if it is worth it.
    """
    if is_numbered:
        batches = [*map(take_numbered_rows, sources)]
        gathered, counts = concat_without_views(batches), [b.num_rows for b in batches]
        source = np.repeat(np.arange(len(sources)), counts)
    else:
        gathered, source = _concat_chosen_block_rows(sources)
    if is_ranked is False:
        orders = [*dict.fromkeys(Order(order.column) for order in orders)]
    if len(orders) == 1 and orders[0].within is None and not is_numbered:
        key = gathered.column(orders[0].column).to_numpy(zero_copy_only=False)
        positions = pa.array(sort_stably(key).astype(np.int32))
        rows = replace_column(gathered, PERMUTATION + orders[0].column, positions)
        return BlockRows(rows, None, source)
    gathered = replace_column(gathered, _SOURCE, pa.array(source))
    rows = build_block(gathered, orders, runs=True, is_ranked=is_ranked)
    source = rows.column(_SOURCE).to_numpy()
    rows = _drop_column(rows, _SOURCE)
    if not is_numbered:
        return BlockRows(rows, None, source)
    births = [birth for each in sources for birth in each.births]
    numbers = rows.column(ROW).to_numpy()
    return BlockRows(_drop_column(rows, ROW), None, source, births, numbers)


def _drop_column(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    return batch.remove_column(batch.schema.get_field_index(name))


def take_numbered_rows(rows: BlockRows) -> pa.RecordBatch:
    """Return the host's rows without orders, with their numbers."""
    numbers = pa.array(rows.row_numbers().astype(np.int32))
    batch = replace_column(drop_order_columns(rows.batch), ROW, numbers)
    chosen = rows.key_mask()
    return batch if chosen is None else take_block_rows(batch, np.flatnonzero(chosen))


def _take_chosen_rows(rows: BlockRows) -> pa.RecordBatch:
    """Return the host's rows without orders: those of other blocks may be stored otherwise."""
    chosen, batch = rows.key_mask(), drop_order_columns(rows.batch)
    return batch if chosen is None else take_block_rows(batch, np.flatnonzero(chosen))


def _concat_chosen_block_rows(sources: Sequence[BlockRows]) -> tuple[pa.RecordBatch, np.ndarray]:
    """Return the host's rows of several blocks without orders, and the number of each row's block.

    All rows are put together before those of other hosts are left out, as most blocks have none.
    """
    rows = concat_rows(sources)
    source = np.repeat(np.arange(len(sources)), [each.row_total for each in sources])
    if all(each.keys is None for each in sources):
        return rows, source
    keys = rows.column(ROUTING).to_numpy()
    every = int(keys.min(initial=0)), int(keys.max(initial=0)) + 1
    low, high = np.array([each.keys or every for each in sources]).T
    at = np.flatnonzero((keys >= low[source]) & (keys < high[source]))
    return take_block_rows(rows, at), source[at]


_SAMPLED = 256
"""Maximum number of event times from which a block contributes to the median of a first batch."""
_MOST_LANDMARKS = 1_000
"""A batch that spans ``ahead`` more often than this is reported as a jump of the clock."""


def describe_times(times: np.ndarray, at: int | None, ahead: int) -> TimeSpread:
    """Return the description of a block's event times.

    ``at`` is the stream's clock before the batch.
    """
    ordered = np.sort(times)
    top = tuple(ordered[-SUPPORT:].tolist())
    later = ordered if at is None else ordered[np.searchsorted(ordered, at, "right") :]
    sample = _sample_times(ordered) if at is None else ()
    return TimeSpread(top, _find_landmarks(later, ahead), sample)


def _sample_times(ordered: np.ndarray) -> tuple[int, ...]:
    count = min(_SAMPLED, len(ordered))
    places = (2 * np.arange(count) + 1) * len(ordered) // (2 * count)
    return tuple(ordered[places].tolist())


def _find_landmarks(ordered: np.ndarray, ahead: int) -> tuple[int, ...]:
    landmarks: list[int] = []
    place = 0
    while place < len(ordered) and len(landmarks) < _MOST_LANDMARKS:
        time = int(ordered[place])
        landmarks.append(time)
        furthest = int(np.searchsorted(ordered, time + ahead, "right")) - 1
        if ordered[furthest] == time:  # no later time in reach: continue after the gap
            furthest += 1
        place = furthest
    return tuple(landmarks)
