"""Build blocks: sort rows by index keys, merge or gather blocks, describe their event times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from braid.core.stream_clocks import SUPPORT, TimeSpread
from braid.kernels.host_block_rows import BlockRows, take_block_rows

_DIGIT, _MOST_BITS = 16, 32
"""NumPy sorts 16-bit integers by counting, in a third of the time of a comparison sort. Integers of
up to two such digits are therefore sorted digit by digit.
"""


def sort_positions(
    keys: npt.NDArray[np.generic], groups: npt.NDArray[np.integer] | None = None
) -> npt.NDArray[np.intp]:
    """Return the positions that sort the keys.

    With ``groups`` (integers from 0), keys are sorted by group first.
    """
    above, bits = _offsets_from_minimum(keys)
    if above is not None and groups is not None:
        more = int(groups.max()).bit_length()
        if bits + more <= _MOST_BITS:
            above |= groups.astype(np.uint32) << np.uint32(bits)
            bits, groups = bits + more, None
    order = np.argsort(keys) if above is None else _sort_by_digits(above, bits)
    return order if groups is None else order[np.argsort(groups[order], kind="stable")]


def _offsets_from_minimum(
    keys: npt.NDArray[np.generic],
) -> tuple[npt.NDArray[np.uint32] | None, int]:
    """Return the distance of integers from the least, and its bits; None if it is too large."""
    if keys.dtype.kind != "i" or not len(keys):
        return None, 0
    low, high = int(keys.min()), int(keys.max())
    bits = (high - low).bit_length()
    if bits > _MOST_BITS:
        return None, bits
    return (keys.astype(np.int64, copy=False) - low).astype(np.uint32), bits


def _sort_by_digits(numbers: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.intp]:
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    if bits > _DIGIT:
        digit = (numbers >> np.uint32(_DIGIT)).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
    return order


_SOURCE = "__source"


def build_block(
    columns: pa.RecordBatch, indexes: Sequence[str], ordered: bool = False, runs: bool = False
) -> pa.RecordBatch:
    """Return a block: the rows sorted by the first index, with a permutation for each further one.

    ``ordered``: the rows are sorted already. ``runs``: they are a few sorted runs, which a stable
    sort merges.
    """
    if not ordered:
        key = columns.column(indexes[0]).to_numpy(zero_copy_only=False)
        columns = take_block_rows(
            columns, np.argsort(key, kind="stable") if runs else sort_positions(key)
        )
    for name in indexes[1:]:
        order = _sort_column(columns.column(name))
        columns = replace_column(columns, f"__p:{name}", pa.array(order.astype(np.int32)))
    return columns


def _sort_column(column: pa.Array) -> npt.NDArray[np.intp]:
    """Return the positions that sort a column. NULL comes last."""
    if not column.null_count:
        return np.argsort(column.to_numpy(zero_copy_only=False), kind="stable")
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    there = np.flatnonzero(valid)
    order = np.argsort(column.drop_null().to_numpy(), kind="stable")
    return np.concatenate([there[order], np.flatnonzero(~valid)])


def replace_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Return the batch with a column replaced, or appended if it is new."""
    at = batch.schema.get_field_index(name)
    return batch.append_column(name, values) if at < 0 else batch.set_column(at, name, values)


def merge_blocks(sources: Sequence[BlockRows], indexes: Sequence[str]) -> pa.RecordBatch:
    """Return one block of the chosen rows of several."""
    batches = [*map(_take_chosen_rows, sources)]
    merged = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    return build_block(merged, indexes, ordered=len(batches) == 1, runs=True)


def gather_blocks(sources: Sequence[BlockRows], indexes: Sequence[str]) -> BlockRows:
    """Return the rows of small blocks, to be probed at once. Each row knows its block."""
    batches = [*map(_take_chosen_rows, sources)]
    source = np.repeat(np.arange(len(batches)), [b.num_rows for b in batches])
    gathered = replace_column(pa.concat_batches(batches), _SOURCE, pa.array(source))
    rows = build_block(gathered, indexes, runs=True)
    at = rows.schema.get_field_index(_SOURCE)
    return BlockRows(rows.remove_column(at), None, rows.column(at).to_numpy(), len(batches))


def _take_chosen_rows(rows: BlockRows) -> pa.RecordBatch:
    chosen = rows.key_mask()
    return rows.batch if chosen is None else take_block_rows(rows.batch, np.flatnonzero(chosen))


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
