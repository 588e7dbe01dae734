"""Each column of a frame is joined unchanged, or refused before anything starts.

It is used as a key, carried along, and as event time. A refusal names the stream and the column.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from braid.errors import RefusedColumnError
from braid.hub.hub import QueryHub
from braid.papers.baselines.centralized import Centralized
from braid.sources.frame_conversion import convert_frame
from braid.stream_join import StreamJoin

ROWS = 4
AT = datetime(2024, 3, 1, 12, 30, 15, 250)
TIMES = [AT, AT + timedelta(seconds=1), None, AT]
AWARE = [t and t.replace(tzinfo=UTC) for t in TIMES]
FINE = np.array([1, 1001, 2001, 1], "datetime64[ns]")
NUMBERS = [1, 2, 3, 1]


def pandas_columns() -> dict[str, Any]:
    texts, fives = ["x", None, "é", "x"], [1, None, 3, 1]
    decimals = [Decimal("1.5"), None, Decimal("-2.25"), Decimal("1.5")]
    return {
        **{kind: pd.Series(NUMBERS, dtype=kind) for kind in ("int8", "int16", "int32", "int64")},
        **{kind: pd.Series(NUMBERS, dtype=kind) for kind in ("uint8", "uint16", "uint32")},
        "uint64": pd.Series([1, 2**64 - 1, 3, 1], dtype="uint64"),
        "nullable": pd.Series(fives, dtype="Int64"),
        "nullable_float": pd.Series([0.5, None, 2, 0.5], dtype="Float64"),
        "half": pd.Series([0.5, nan, 2, 0.5], dtype="float16"),
        "single": pd.Series([0.5, nan, -0.0, 0.5], dtype="float32"),
        "double": pd.Series([0.5, nan, -0.0, 0.5]),
        "flag": pd.Series([True, False, True, True]),
        "nullable_flag": pd.Series([True, None, False, True], dtype="boolean"),
        "object_flag": pd.Series([True, None, False, True], dtype=object),
        "text": pd.Series(texts, dtype=object),
        "string": pd.Series(texts, dtype="string"),
        "arrow_string": pd.Series(texts, dtype="string[pyarrow]"),
        "category": pd.Series(texts, dtype="category"),
        "number_category": pd.Series(NUMBERS, dtype="category"),
        "ns": pd.Series(TIMES, dtype="datetime64[ns]"),
        "fine": pd.Series(FINE),
        "fine_zone": pd.Series(FINE).dt.tz_localize("Europe/Berlin"),
        **{
            f"t_{unit}": pd.Series(TIMES, dtype=f"datetime64[{unit}]") for unit in ("us", "ms", "s")
        },
        "zone": pd.Series(AWARE).dt.tz_convert("Europe/Berlin"),
        "objects_in_time": pd.Series(AWARE, dtype=object),
        "two_zones": pd.Series(
            [t and t.astimezone(Z) for t, Z in zip(AWARE, ZONES, strict=True)], dtype=object
        ),
        "delta": pd.Series([timedelta(seconds=s) for s in NUMBERS]),
        "fine_delta": pd.Series(np.array([1, 2, 3, 1], "timedelta64[ns]")),
        "period": pd.Series(pd.period_range("2024-01", periods=ROWS, freq="M")),
        "interval": pd.Series(pd.interval_range(0, ROWS)),
        "day": pd.Series([date(2024, 2, 29), None, date(1, 1, 1), date(2024, 2, 29)], dtype=object),
        "clock": pd.Series([time(1, 2, 3), None, time(4), time(1, 2, 3)], dtype=object),
        "decimal": pd.Series(decimals, dtype=object),
        "wide_decimal": pd.Series([Decimal(10**45), None, Decimal(1), Decimal(2)], dtype=object),
        "raw": pd.Series([b"\x00", None, b"", b"\x00"], dtype=object),
        "lists": pd.Series([[1, None], None, [], [1, None]], dtype=object),
        "dicts": pd.Series([{"x": 1}, None, {"x": None}, {"x": 1}], dtype=object),
        "day_and_time": pd.Series([date(2024, 1, 1), AT, None, AT], dtype=object),
        "time_and_day": pd.Series([AT, date(2024, 1, 1), None, AT], dtype=object),
        "days_and_times": pd.Series([[date(2024, 1, 1)], [AT], None, []], dtype=object),
        "day_or_time": pd.Series([{"x": date(2024, 1, 1)}, {"x": AT}, None, {}], dtype=object),
        "days_in_categories": pd.Series([date(2024, 1, 1), AT, None, AT], dtype="category"),
        "fine_objects": pd.Series([pd.Timestamp(1), pd.Timestamp(2), None, AT], dtype=object),
        "fine_deltas": pd.Series([pd.Timedelta(1), pd.Timedelta(2), None, None], dtype=object),
        "raw_and_text": pd.Series([b"a", "a", None, b""], dtype=object),
        "text_and_raw": pd.Series(["a", b"a", None, ""], dtype=object),
        "with_and_without_zone": pd.Series([AT, AT.replace(tzinfo=UTC), None, AT], dtype=object),
        "int_and_decimal": pd.Series([1, Decimal("0.5"), None, 1], dtype=object),
        "vectors": pd.Series([np.array([0.5, nan]), np.array([]), None, np.ones(1)], dtype=object),
        "numpy_times": pd.Series([np.datetime64(AT), None, None, np.datetime64(AT)], dtype=object),
        "tuples": pd.Series([(1, 2), None, (), (1, None)], dtype=object),
        "int_and_str": pd.Series([1, "x", None, 1], dtype=object),
        "int_and_list": pd.Series([1, [2], None, 1], dtype=object),
        "array_and_int": pd.Series([np.array([1, 2]), 1, pd.NA, nan], dtype=object),
        "huge": pd.Series([2**70, 1, 2, 3], dtype=object),
        "complex": pd.Series([1j, 2, 3, 1j]),
        "uuid": pd.Series([uuid.UUID(int=i) for i in NUMBERS], dtype=object),
        "sparse": pd.Series(pd.arrays.SparseArray(NUMBERS)),
        "void": pd.Series([None] * ROWS, dtype=object),
        "any": pd.Series([object()] * ROWS, dtype=object),
        "with space": pd.Series(NUMBERS),
        "__index_level_0__": pd.Series(NUMBERS),
    }


ZONES = [timezone(timedelta(hours=h)) for h in (1, 2, 3, 1)]


def arrow_columns() -> dict[str, Any]:
    lists = [[1, None], None, [], [1, None]]
    required = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    structs = pa.array([{"x": 1}, None, {"x": 2}, {"x": 1}], pa.struct({"x": pa.int32()}))
    mask = pa.array([False, True, False, False])
    fields = [required.field(0)]
    fine = pa.array(FINE.astype("int64")).cast(pa.timestamp("ns"))
    kinds: dict[str, tuple[list[Any], pa.DataType]] = {
        "fixed_raw": ([b"ab", None, b"cd", b"ab"], pa.binary(2)),
        "time32": ([1, None, 3, 1], pa.time32("ms")),
        "time64": ([1, None, 3, 1], pa.time64("ns")),
        "duration": ([1, None, 3, 1], pa.duration("us")),
        "date64": ([date(2024, 2, 29), None, date(1, 1, 1), date(2024, 2, 29)], pa.date64()),
        "large_list": (lists, pa.large_list(pa.int32())),
        "list_view": (lists, pa.list_view(pa.int32())),
        "fixed_list": ([[1, 2], None, [3, 4], [1, 2]], pa.list_(pa.int32(), 2)),
        "map": ([[("k", 1)], None, [], [("k", 1)]], pa.map_(pa.string(), pa.int32())),
        "months": ([(1, 2, 3), None, (0, 0, 1), (1, 2, 3)], pa.month_day_nano_interval()),
        "null": ([None] * ROWS, pa.null()),
        "far": ([2**60, None, 1, 2**60], pa.timestamp("s")),
        "decimal256": ([Decimal(1), None, Decimal(2), Decimal(1)], pa.decimal256(20, 2)),
        "too_wide": ([Decimal(1), None, Decimal(2), Decimal(1)], pa.decimal256(50, 2)),
        "decimal32": ([Decimal(1), None, Decimal(2), Decimal(1)], pa.decimal32(5, 2)),
        "string_view": (["x", None, "é", "x"], pa.string_view()),
    }
    return {
        **{name: pa.array(values, kind) for name, (values, kind) in kinds.items()},
        "required": pa.StructArray.from_arrays([structs.field(0)], fields=fields, mask=mask),
        "dictionary": pa.array(["x", None, "é", "x"]).dictionary_encode(),
        "run_ends": pa.RunEndEncodedArray.from_arrays([2, ROWS], pa.array([1, 2])),
        "fine_in_list": pa.ListArray.from_arrays([0, 1, 2, 3, 4], fine),
        "far_and_fine": pa.StructArray.from_arrays(
            [fine, pa.array([2**40] * ROWS, pa.timestamp("s"))], ["at", "far"]
        ),
        "fine_in_struct": pa.StructArray.from_arrays([fine], ["at"]),
        "union": pa.UnionArray.from_sparse(
            pa.array([0, 1, 0, 0], pa.int8()), [pa.array(NUMBERS), pa.array(["x"] * ROWS)]
        ),
    }


def polars_columns() -> dict[str, Any]:
    return {
        "int128": pl.Series([1, 2**100, 3, 1], dtype=pl.Int128),
        "time": pl.Series([time(1), None, time(2), time(1)]),
        "duration": pl.Series([timedelta(seconds=s) for s in NUMBERS]),
        "object": pl.Series([object()] * ROWS, dtype=pl.Object),
        "array": pl.Series([[1, 2], None, [3, 4], [1, 2]], dtype=pl.Array(pl.Int32, 2)),
        "struct": pl.Series([{"x": 1, "y": ["a"]}, None, {"x": None, "y": None}, None]),
        "category": pl.Series(["x", None, "y", "x"], dtype=pl.Categorical),
        "decimal": pl.Series([Decimal("1.5"), None, Decimal(2), Decimal("1.5")]),
        "null": pl.Series([None] * ROWS),
        "fine": pl.Series(FINE),
        "zone": pl.Series(AWARE).dt.convert_time_zone("Europe/Berlin"),
    }


COLUMNS = {
    "pandas": (pandas_columns(), lambda c, v: pd.DataFrame({"id": range(ROWS), c: v})),
    "arrow": (arrow_columns(), lambda c, v: pa.table({"id": pa.array(range(ROWS)), c: v})),
    "polars": (polars_columns(), lambda c, v: pl.DataFrame({"id": range(ROWS), c: v})),
}
CASES = [(kind, column) for kind, (columns, _) in COLUMNS.items() for column in columns]
REFUSED = {
    ("pandas", "day_and_time"): "column day_and_time of stream a has the value datetime.datetime(",
    ("pandas", "time_and_day"): "column time_and_day of stream a holds datetime and date; give it",
    ("pandas", "text_and_raw"): "column text_and_raw of stream a has the value 'a', which Arrow w",
    ("pandas", "int_and_decimal"): "column int_and_decimal of stream a holds int and Decimal; giv",
    ("pandas", "days_and_times"): "column days_and_times of stream a has the value [datetime.date",
    ("pandas", "day_or_time"): "column day_or_time of stream a has the value {'x': datetime.date",
    ("pandas", "days_in_categories"): "column days_in_categories of stream a has the value datet",
    ("pandas", "fine_objects"): "column fine_objects of stream a has the value Timestamp('1970-01",
    ("pandas", "fine_deltas"): "column fine_deltas of stream a has the value Timedelta('0 days 00",
    ("pandas", "raw_and_text"): "column raw_and_text of stream a has the value 'a', which Arrow w",
    ("pandas", "with_and_without_zone"): "column with_and_without_zone of stream a has the value",
    ("pandas", "int_and_str"): "column int_and_str of stream a holds int and str; give it one type",
    ("pandas", "int_and_list"): "column int_and_list of stream a holds int and list; give it one",
    ("pandas", "array_and_int"): "column array_and_int of stream a holds ndarray and int; give it",
    ("pandas", "wide_decimal"): "column wide_decimal of stream a is of type decimal256",
    ("pandas", "complex"): "column complex of stream a cannot be read by Arrow",
    ("pandas", "any"): "column any of stream a cannot be read by Arrow",
    ("pandas", "huge"): "column huge of stream a cannot be read by Arrow",
    ("arrow", "too_wide"): "column too_wide of stream a is of type decimal256(50, 2); a decimal",
    (
        "arrow",
        "far",
    ): "column far of stream a is of type timestamp[s] and does not fit timestamp[us]",
    ("arrow", "far_and_fine"): "column far_and_fine of stream a is of type struct",
    ("arrow", "union"): "column union of stream a is of type sparse_union",
    ("pandas", "sparse"): "column sparse of stream a cannot be read by Arrow",
    (
        "arrow",
        "months",
    ): "column months of stream a is of type month_day_nano_interval, which a run",
    ("polars", "int128"): "column int128 of stream a cannot be read by Arrow",
    (
        "polars",
        "object",
    ): "column object of stream a cannot be read by Arrow: it holds objects of P",
}
FINE_COLUMNS = {("pandas", "fine"), ("pandas", "fine_zone"), ("polars", "fine")}


def frames(kind: str, column: str) -> dict[str, Any]:
    columns, make = COLUMNS[kind]
    frame = make(column, columns[column])
    return {"a": frame, "b": frame}


def run_or_refusal(join: Any, path: Path, column: str) -> Any:
    """Return the finished run, or the sentence of a refusal, which names the stream and the
    column.
    """
    try:
        run = join().start(path, batches=1, durability="process")
    except ValueError as error:
        said = str(error)
        names = rf"column {re.escape(column)} of stream [ab]\b|\b[ab]\.`?{re.escape(column)}\b"
        assert re.search(names, said), said
        return said
    run.awaitTermination()
    return run


@pytest.mark.parametrize(("kind", "column"), CASES)
def test_a_column_is_carried_as_it_is_or_refused(tmp_path: Path, kind: str, column: str) -> None:
    streams = frames(kind, column)
    run = run_or_refusal(
        lambda: StreamJoin(streams, "a.id = b.id", Centralized()), tmp_path / "run", column
    )
    if (kind, column) in REFUSED:
        assert REFUSED[kind, column] in run
        return
    assert not isinstance(run, str), run
    came = run.results()["a"].combine_chunks().flatten()
    order = np.argsort(came[0])
    expected = read_values(kind, column)
    assert texts(came[1].take(pa.array(order)).to_pylist()) == texts(expected)


def read_values(kind: str, column: str) -> list[Any]:
    """Return the values in Python, read by an independent method."""
    values = COLUMNS[kind][0][column]
    if kind == "pandas" and values.dtype == object:
        return [from_python(value) for value in values]
    if kind == "pandas":
        values = pa.array(values, from_pandas=True)
    if kind == "polars":
        values = values.to_arrow()
    return list(values.to_pylist())


def from_python(value: Any) -> Any:
    """Return an object of a pandas column as Arrow returns it: lists, and None for NULL."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [from_python(item) for item in value]
    if isinstance(value, np.generic) and not np.isnan(value):
        return value.item()
    is_missing = value is None or value is pd.NaT or (isinstance(value, float) and value != value)
    return None if is_missing else value


def texts(values: list[Any]) -> list[str]:
    """Return values in a form in which NaN equals itself, and a time is the same in all zones."""
    return [repr(in_utc(value)) for value in values]


def in_utc(value: Any) -> Any:
    if isinstance(value, pd.Timestamp):
        value = value.tz_convert(None) if value.tzinfo else value
        return value if value.nanosecond else value.to_pydatetime()
    if isinstance(value, Decimal):
        return value.normalize()
    if isinstance(value, pd.Timedelta):
        return value.value
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, dict):
        return {name: in_utc(field) for name, field in value.items()}
    return [in_utc(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("kind", "column"), CASES)
def test_a_column_is_a_key_or_refused(tmp_path: Path, kind: str, column: str) -> None:
    streams = frames(kind, column)
    run = run_or_refusal(
        lambda: StreamJoin(streams, f"a.`{column}` = b.`{column}`", Centralized()),
        tmp_path / "run",
        column,
    )
    if (kind, column) in FINE_COLUMNS:
        assert "has nanoseconds" in run and f"use {column}.dt.floor('us')" in run
    if isinstance(run, str):
        return
    values = texts(read_values(kind, column))
    zero = [value.replace("-0.0", "0.0") for value in values]
    pairs = [(i, j) for i in range(ROWS) for j in range(ROWS) if zero[i] == zero[j] != "None"]
    found = run.results().to_pylist()
    assert Counter((row["a"]["id"], row["b"]["id"]) for row in found) == Counter(pairs)


@pytest.mark.parametrize(("kind", "column"), CASES)
def test_a_column_is_an_event_time_or_refused(tmp_path: Path, kind: str, column: str) -> None:
    streams = frames(kind, column)
    run = run_or_refusal(
        lambda: StreamJoin(streams, "a.id = b.id", Centralized(), "1 hour", time=column),
        tmp_path / "run",
        column,
    )
    if (kind, column) in FINE_COLUMNS:
        assert "has nanoseconds" in run and f"use {column}.dt.floor('us')" in run
    if isinstance(run, str):
        return
    timed = [i for i, value in enumerate(read_values(kind, column)) if value is not None]
    late = {0, 3} if column == "day" else set()
    assert {row["a"]["id"] for row in run.results().to_pylist()} | late == {*timed} | late


def test_the_types_that_a_run_joins_stay_so() -> None:
    """A refusal is valid, but not for types that have always been keys or event times."""
    keys = {"int8", "int64", "double", "text", "category", "ns", "zone", "day", "decimal", "flag"}
    for column in keys:
        StreamJoin(frames("pandas", column), f"a.{column} = b.{column}", Centralized())
    for column in ("ns", "t_s", "zone", "objects_in_time", "day"):
        StreamJoin(frames("pandas", column), "a.id = b.id", Centralized(), "1 hour", time=column)


def test_levels_of_an_index_with_names_are_columns() -> None:
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.Index([7, 8], name="t"))
    table = convert_frame("a", frame)
    assert table is not None and table.to_pydict() == {"t": [7, 8], "x": [1, 2]}
    several = pd.DataFrame(
        {"x": [1, 2]}, index=pd.MultiIndex.from_tuples([(1, "p"), (2, "q")], names=["n", None])
    )
    table = convert_frame("a", several)
    assert table is not None
    assert table.to_pydict() == {"n": [1, 2], "level_1": ["p", "q"], "x": [1, 2]}


def test_only_an_index_that_nobody_gave_is_left_out() -> None:
    frame = pd.DataFrame({"x": [1, 2]})
    assert convert_frame("a", frame).column_names == ["x"]  # type: ignore[union-attr]
    frame.index.name = "row"
    assert convert_frame("a", frame).to_pydict() == {"row": [0, 1], "x": [1, 2]}  # type: ignore[union-attr]


def test_a_level_without_a_name_is_named_as_reset_index_names_it() -> None:
    frame = pd.DataFrame({"x": [1, 2, 3]})
    for given in (
        frame[frame.x > 1],
        frame[frame.x > 1].rename(columns={"x": "index"}),
        frame.set_index([[4, 5, 6], [7, 8, 9]]),
    ):
        expected = given.reset_index()
        table = convert_frame("a", given)
        assert table is not None and table.column_names == [*expected.columns]
        assert table.to_pydict() == expected.to_dict("list")
    odd = frame[frame.x > 1].assign(index=1, level_0=2)
    with pytest.raises(
        RefusedColumnError, match="column level_0 of stream a is also a level of the"
    ):
        convert_frame("a", odd)


def test_a_level_with_the_name_of_a_column_is_refused() -> None:
    frame = pd.DataFrame({"t": [1, 2]}, index=pd.Index([7, 8], name="t"))
    said = "column t of stream a is also a level of the frame's index; drop the index with "
    with pytest.raises(RefusedColumnError, match=re.escape(said)):
        convert_frame("a", frame)


def test_names_that_are_no_text_are_refused() -> None:
    said = "column 0 of stream a is named by a value of type int; name columns by text"
    with pytest.raises(RefusedColumnError, match=said):
        convert_frame("a", pd.DataFrame([[1]]))


@pytest.mark.parametrize(
    "frame", [pd.DataFrame({"": [1]}), pa.table({"": [1]}), pl.DataFrame({"": [1]})]
)
def test_a_column_without_a_name_is_refused(frame: Any) -> None:
    with pytest.raises(ValueError, match="stream a has a column without a name; name it"):
        StreamJoin({"a": frame, "b": frame}, "true", Centralized())


def test_a_hub_refuses_columns_by_the_same_sentences() -> None:
    odd = pd.DataFrame({"ts": [AT, AT], "z": pd.Series([1, "x"], dtype=object)})
    with pytest.raises(ValueError, match="column z of stream s holds int and str; give it one"):
        QueryHub({"s": odd}, time="ts")
