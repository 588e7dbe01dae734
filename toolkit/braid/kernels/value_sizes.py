"""Bytes of the values of columns, such as text and lists."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def value_bytes(batch: pa.RecordBatch) -> int:
    """Return the bytes of a batch's values, independent of its offset in buffers.

    Equal rows have equal bytes.
    """
    return sum(map(_count_value_bytes, batch.columns))


def _count_value_bytes(column: pa.Array) -> int:
    count, kind = len(column), column.type
    nulls = (count + 7) // 8 if column.null_count else 0
    if pa.types.is_struct(kind):
        return nulls + sum(map(_count_value_bytes, column.flatten()))
    if pa.types.is_list(kind):
        return nulls + 4 * (count + 1) + _count_value_bytes(column.flatten())
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return nulls + 4 * (count + 1) + (pc.sum(pc.binary_length(column)).as_py() or 0)
    try:
        return nulls + (count * kind.bit_width + 7) // 8
    except ValueError:  # variable width
        return int(column.nbytes)


def value_bytes_by_slice(
    batch: pa.RecordBatch, starts: np.ndarray, ends: np.ndarray
) -> npt.NDArray[np.int64]:
    """Return ``value_bytes`` of slices of a batch, which follow one another without gaps."""
    sizes = np.zeros(len(starts), np.int64)
    for column in batch.columns:
        sizes += _count_by_slice(column, starts, ends)
    return sizes


def _count_by_slice(
    column: pa.Array, starts: np.ndarray, ends: np.ndarray
) -> npt.NDArray[np.int64]:
    counts, kind = ends - starts, column.type
    is_text = _is_text(kind)
    if not is_text and not _has_fixed_width(kind):
        bounds = zip(starts.tolist(), counts.tolist(), strict=True)
        return np.array([_count_value_bytes(column.slice(*each)) for each in bounds], np.int64)
    sizes = (counts + 7) // 8 * _find_nulls(column, starts)
    if is_text:
        lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
        return np.asarray(sizes + 4 * (counts + 1) + np.add.reduceat(lengths, starts, dtype=int))
    return np.asarray(sizes + (counts * kind.bit_width + 7) // 8)


def _find_nulls(column: pa.Array, starts: np.ndarray) -> npt.NDArray[np.bool_] | bool:
    """Return, by slice, whether a value is NULL."""
    if not column.null_count:
        return False
    return np.logical_or.reduceat(column.is_null().to_numpy(zero_copy_only=False), starts)


def _has_fixed_width(kind: pa.DataType) -> bool:
    try:
        return kind.bit_width > 0 and not pa.types.is_nested(kind)
    except ValueError:
        return False


def variable_width_columns(schema: pa.Schema) -> list[str]:
    """Return the columns with values of variable width, such as text."""
    return [field.name for field in schema if _is_variable_width(field.type)]


def _is_variable_width(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_is_variable_width(field.type) for field in kind)
    return _is_text(kind) or _is_list(kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_map(kind))


def max_value_bytes(column: pa.Array) -> int:
    """Return the bytes of the longest value of a column of variable width."""
    text = _is_text(column.type)
    before = _value_offsets(column) if text else bytes_before(column, np.arange(len(column) + 1))
    return int((before[1:] - before[:-1]).max())


def bytes_before(column: pa.Array, at: np.ndarray) -> np.ndarray:
    """Return the bytes before the values at these positions, up to a constant.

    Each list element adds one, because their number is limited to 2^31, too.
    """
    kind = column.type
    if pa.types.is_struct(kind):
        fields = (bytes_before(column.field(n), at) for n in range(kind.num_fields))
        return sum(fields, np.zeros(len(at), np.int64))
    if _is_text(kind):
        return _value_offsets(column)[at]
    if _is_list(kind):
        ends = _value_offsets(column)[at].astype(np.int64)
        return ends + bytes_before(column.values, ends)
    try:
        return at * (kind.bit_width // 8)
    except ValueError:  # lists of fixed length, nulls
        return at * 0


def _value_offsets(column: pa.Array) -> np.ndarray:
    """Return the offsets at which the values of text or lists begin, and the end of the last."""
    if not len(column):
        return np.zeros(1, np.int32)
    return np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset)
