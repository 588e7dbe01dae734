"""Choose encodings of the columns of result files that are cheap to write."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

_DELTA = "DELTA_BINARY_PACKED"
_LOOKED_AT = 1 << 13
"""Rows that determine the encoding of a file's columns."""
_FEW = 1 << 7
"""Rows of a block of differences. To choose an encoding takes longer than to write fewer."""


def choose_encodings(table: pa.Table) -> dict[str, str]:
    """Return the encoding of columns, by path, that are not written plain.

    Integers and times in a narrow range are written as differences. They take half of the bytes,
    and compression saves more time than the encoding costs. A file's first rows decide for the
    whole file; few rows are written plain.
    """
    if table.num_rows < _FEW:
        return {}
    first = table.slice(0, _LOOKED_AT)
    return {
        path: _DELTA for path, column in _list_integer_columns(first) if _has_small_deltas(column)
    }


def _list_integer_columns(table: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield the integer and time columns in structs, by unambiguous paths."""
    for alias, rows in zip(table.column_names, table.columns, strict=True):
        for n, field in enumerate(rows.type if pa.types.is_struct(rows.type) else ()):
            if "." not in field.name and _is_integer_like(field.type):
                yield f"{alias}.{field.name}", pc.struct_field(rows, [n])


def _is_integer_like(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind)
    )


def _has_small_deltas(column: pa.ChunkedArray) -> bool:
    """Return whether differences need under three quarters of the bits; else they are slower."""
    ends = pc.min_max(column)
    if not ends["max"].is_valid:
        return True
    low, high = (_scalar_to_int(ends[end]) for end in ("min", "max"))
    return 4 * (high - low).bit_length() < 3 * int(column.type.bit_width)


def _scalar_to_int(value: pa.Scalar) -> int:
    return int(value.as_py() if pa.types.is_integer(value.type) else value.value)
