"""Convert pandas and Polars frames and Arrow tables to Arrow tables, column by column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from braid.condition.sql_types import MOST_DIGITS
from braid.errors import RefusedColumnError
from braid.sources.object_column_check import check_objects, is_missing
from braid.util.error_summary import take_first_line
from braid.util.validation import format_value

_MOST_KINDS = 4
"""Most types that an error message lists."""
_STORABLE = frozenset(
    [
        *(pa.bool_(), pa.string(), pa.binary(), pa.date32(), pa.float32(), pa.float64()),
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.timestamp("us"), pa.timestamp("us", "UTC")),
    ]
)
"""Frequent types that Parquet has, so that they need not be tried."""
_RENAME = "name columns by text, as with frame.columns = frame.columns.map(str)"


def convert_frame(stream: str, given: Any) -> pa.Table | None:
    """Return a pandas or Polars frame or an Arrow table as a table of the types tuples have.

    None for anything else. Raises RefusedColumnError.
    """
    kind = type(given).__module__.partition(".")[0], type(given).__name__
    if kind == ("pandas", "DataFrame"):
        columns = _list_pandas_columns(stream, given)
    elif kind == ("polars", "DataFrame"):
        columns = zip(given.columns, given.iter_columns(), strict=True)
    elif isinstance(given, pa.Table):
        columns = zip(given.column_names, given.columns, strict=True)
    else:
        return None
    arrays = [(name, _convert_column(stream, name, values)) for name, values in columns]
    return pa.Table.from_arrays(
        [column for _, column in arrays], names=[name for name, _ in arrays]
    )


def _list_pandas_columns(stream: str, frame: Any) -> Iterator[tuple[str, Any]]:
    """Yield the levels of the index and the columns, by name.

    An unnamed RangeIndex is skipped: pandas creates it for a frame without an index.
    """
    index, columns = frame.index, list(frame.columns)
    is_default = type(index).__name__ == "RangeIndex" and index.name is None
    for level in range(0 if is_default else index.nlevels):
        name = _name_level(index, level, columns)
        if name in columns:
            remedy = "drop the index with frame.reset_index(drop=True), or rename one of them"
            raise RefusedColumnError(
                stream, str(name), "is also a level of the frame's index", remedy
            )
        yield _check_text(stream, name), index.get_level_values(level)
    for place, name in enumerate(columns):
        yield _check_text(stream, name), frame.iloc[:, place]


def _name_level(index: Any, level: int, columns: list[Any]) -> Any:
    """Return the name of a level, or the name ``reset_index`` gives to one that has none."""
    if index.names[level] is not None:
        return index.names[level]
    return "index" if index.nlevels == 1 and "index" not in columns else f"level_{level}"


def _check_text(stream: str, name: Any) -> str:
    if not isinstance(name, str):
        problem = f"is named by a value of type {type(name).__name__}"
        raise RefusedColumnError(stream, format_value(name), problem, _RENAME)
    return name


def _convert_column(stream: str, name: str, values: Any) -> pa.ChunkedArray:
    """Return a column in the type that tuples have. Raises RefusedColumnError."""
    if not name:
        raise ValueError(f"stream {stream} has a column without a name; name it")
    try:
        column = _convert_to_arrow(values)
    except Exception as error:  # pandas, Polars and Arrow raise different ones
        held = _list_held_types(values)
        if len(held) > 1:
            remedy = "give it one type"
            raise RefusedColumnError(stream, name, f"holds {_join_words(held)}", remedy) from error
        problem = f"cannot be read by Arrow: {take_first_line(error)}"
        raise RefusedColumnError(stream, name, problem, "give it another type") from error
    if type(values).__module__.partition(".")[0] == "pandas":
        _check_pandas_objects(stream, name, values, column)
    column = _cast_to_plain_type(stream, name, column)
    _check_storable(stream, name, column)
    return column


def _check_pandas_objects(stream: str, name: str, values: Any, column: pa.ChunkedArray) -> None:
    """Raise RefusedColumnError if Arrow changes an object of a column, or of its categories."""
    categories = getattr(values.dtype, "categories", None)
    if categories is not None:
        values, column = categories, _convert_to_arrow(categories)
    if str(values.dtype) == "object":
        check_objects(stream, name, values, column)


def _convert_to_arrow(values: Any) -> pa.ChunkedArray:
    if isinstance(values, pa.ChunkedArray):
        return values
    if type(values).__module__.partition(".")[0] != "polars":
        column = pa.array(values, from_pandas=True)
    elif str(values.dtype) == "Object":  # Polars would pass addresses to Arrow
        raise TypeError("it holds objects of Python")
    else:
        column = values.to_arrow()
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _cast_to_plain_type(stream: str, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column with times in microseconds, or nanoseconds if they do not fit."""
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    wanted = find_plain_type(column.type)
    if "decimal256(" in str(wanted):
        problem = f"is of type {column.type}; a decimal has {MOST_DIGITS} digits at most"
        raise RefusedColumnError(stream, name, problem, "cast it to fewer")
    try:
        return _cast_column(column, wanted)
    except pa.ArrowException as error:
        problem = f"is of type {column.type} and does not fit {wanted}: {take_first_line(error)}"
        raise RefusedColumnError(stream, name, problem, "cast it") from None


def _cast_column(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    try:
        return column.cast(wanted)
    except pa.ArrowException:
        if not has_nanoseconds(column.type):
            raise
        return column.cast(find_plain_type(column.type, "ns"))


def _check_storable(stream: str, name: str, column: pa.ChunkedArray) -> None:
    """Raise RefusedColumnError unless a run's files can hold the type, as Parquet lacks some."""
    if column.type in _STORABLE:
        return
    written = pa.BufferOutputStream()
    rows = pa.table({name: column.slice(0, 1)})
    try:
        pq.write_table(rows, written)
        read = pq.read_table(pa.BufferReader(written.getvalue()))
        rows.take(pa.array([0] * rows.num_rows, pa.int64()))
    except (pa.ArrowException, NotImplementedError) as error:
        problem = f"is of type {column.type}, which a run cannot store: {take_first_line(error)}"
        raise RefusedColumnError(stream, name, problem, "cast it, or leave it out") from None
    if read.schema.field(0).type != column.type:
        problem = f"is of type {column.type}, which a run stores as {read.schema.field(0).type}"
        raise RefusedColumnError(stream, name, problem, "cast it to that")


def _list_held_types(values: Any) -> list[str]:
    """Return the names of the Python types in a column, in order of appearance."""
    kinds: dict[str, None] = {}
    for value in values:
        if not is_missing(value):
            kinds.setdefault(type(value).__name__)
        if len(kinds) == _MOST_KINDS:
            break
    return [*kinds]


def _join_words(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def has_nanoseconds(kind: pa.DataType) -> bool:
    """Return whether values of the type have times in nanoseconds."""
    return "timestamp[ns" in str(kind)


def find_plain_type(kind: pa.DataType, unit: str = "us") -> pa.DataType:
    """Return the type that tuples have in place of another.

    It has no dictionaries, and none of the long offsets and views that Polars uses. Times are in
    ``unit``. Decimals have 128 bits if they fit.
    """
    if pa.types.is_dictionary(kind):
        return find_plain_type(kind.value_type, unit)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp(unit, "UTC" if kind.tz else None)
    if pa.types.is_decimal(kind) and kind.precision <= MOST_DIGITS:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(find_plain_type(kind.value_type, unit))
    if pa.types.is_map(kind):
        return pa.map_(find_plain_type(kind.key_type, unit), find_plain_type(kind.item_type, unit))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, find_plain_type(f.type, unit)) for f in kind])
    return kind
