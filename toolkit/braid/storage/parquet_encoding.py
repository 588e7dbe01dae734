"""How the columns of result files are encoded, so that they take little to write."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

_DELTA = "DELTA_BINARY_PACKED"
_LOOKED_AT = 1 << 13
"""Rows that tell how a file's columns are encoded."""


def choose_encodings(table: pa.Table) -> dict[str, str]:
    """By path, the encoding of columns that are not written plain: whole numbers and times that lie
    close together are written as differences. These take half of the bytes, and to compress those
    takes longer than to make them. A file's first rows decide for all of it.
    """
    first = table.slice(0, _LOOKED_AT)
    return {
        path: _DELTA for path, column in _list_integer_columns(first) if _has_small_deltas(column)
    }


def _list_integer_columns(table: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """The columns of whole numbers and times in the structs, by paths that mean nothing else."""
    for alias, rows in zip(table.column_names, table.columns, strict=True):
        for n, field in enumerate(rows.type if pa.types.is_struct(rows.type) else ()):
            if "." not in field.name and _is_integer_like(field.type):
                yield f"{alias}.{field.name}", pc.struct_field(rows, [n])


def _is_integer_like(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind)
    )


def _has_small_deltas(column: pa.ChunkedArray) -> bool:
    """Whether differences have fewer than three quarters of the bits: else they take longer."""
    ends = pc.min_max(column)
    if not ends["max"].is_valid:
        return True
    low, high = (_scalar_to_int(ends[end]) for end in ("min", "max"))
    return 4 * (high - low).bit_length() < 3 * int(column.type.bit_width)


def _scalar_to_int(value: pa.Scalar) -> int:
    return int(value.as_py() if pa.types.is_integer(value.type) else value.value)
