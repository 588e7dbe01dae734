"""Column types of fuzzed streams: their Arrow types, their edge values, and their form in JSON."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

Value = Any
"""A value in its JSON form; ``to_arrow`` converts values to Arrow."""

_INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_EPOCH = datetime(1970, 1, 1)


class ColumnType(NamedTuple):
    """A column type.

    - ``kind``: its name in the grammar.
    - ``common``: values that several rows share.
    - ``edges``: values at which evaluation is known to go wrong.
    """

    kind: str
    arrow: pa.DataType
    common: Sequence[Value]
    edges: Sequence[Value]


def _integer(bits: int) -> ColumnType:
    top = (1 << (bits - 1)) - 1
    kind = pa.int64() if bits == 64 else {8: pa.int8(), 16: pa.int16(), 32: pa.int32()}[bits]
    return ColumnType("int", kind, (0, 1, 2, 3), (-1, top, top - 1, -top - 1, -7, 100))


_REALS = (-1.0, 1e9, -1e9, 0.1, "nan", "inf", "-inf", -0.0, 9007199254740993.0, 1e-300)
_TEXTS = ("a", "b", "ab", "abc")
_DAYS = ("2024-03-01", "2024-03-02", "2024-03-31", "2024-02-29")
_OLD_DAYS = ("0001-01-01", "1582-10-15", "1582-10-04", "1969-12-31", "9999-12-31", "1970-01-01")


def _micros(*texts: str) -> list[int]:
    return [(datetime.fromisoformat(t) - _EPOCH) // timedelta(microseconds=1) for t in texts]


_TIMES = _micros("2024-03-01", "2024-03-01T00:00:01", "2024-03-01T12:30:00.000007")
# Hours at which clocks change, the ends of the calendar, and times before 1970.
_ODD_TIMES = _micros(
    "2024-03-31T01:30", "2024-03-31T02:30", "2024-10-27T02:30", "1969-12-31T23:59:59.999999",
    "0001-01-01", "1582-10-15T00:00:01", "9999-12-31T23:59:59.999999",
)  # fmt: skip

TYPES: dict[str, ColumnType] = {
    **{name: _integer(bits) for name, bits in _INTEGERS.items()},
    "boolean": ColumnType("bool", pa.bool_(), (True, False), (True,)),
    "float": ColumnType(
        "real", pa.float32(), (0.0, 0.5, 1.0, 2.0), (*_REALS[:-2], 16777216.0, 0.10000000149011612)
    ),
    "double": ColumnType("real", pa.float64(), (0.0, 0.5, 1.0, 2.0), _REALS),
    "string": ColumnType(
        "text",
        pa.string(),
        _TEXTS,
        ("", "A", "é", "Zoë", "日本", "a%", "%", "_", "a\\b", "a b ", "'", "💡"),
    ),
    "binary": ColumnType("bytes", pa.binary(), ("61", "6162"), ("", "00", "ff")),
    "date": ColumnType("date", pa.date32(), _DAYS, _OLD_DAYS),
    "timestamp_ntz": ColumnType("clock", pa.timestamp("us"), _TIMES, _ODD_TIMES),
    "timestamp": ColumnType("instant", pa.timestamp("us", "UTC"), _TIMES, _ODD_TIMES),
    "array<int>": ColumnType(
        "ints", pa.list_(pa.int32()), ([1, 2], [2], [1, 2, 3]), ([], [None], [1, None], [1, 1])
    ),
    "array<string>": ColumnType(
        "texts", pa.list_(pa.string()), (["a"], ["a", "b"]), ([], [None, "a"], ["a", "a"])
    ),
    "struct<k:int,s:string>": ColumnType(
        "struct",
        pa.struct({"k": pa.int32(), "s": pa.string()}),
        ({"k": 1, "s": "a"}, {"k": 2, "s": "b"}),
        ({"k": None, "s": None}, {"k": 1, "s": None}),
    ),
    "struct<k:int,j:int>": ColumnType(
        "pair",
        pa.struct({"k": pa.int32(), "j": pa.int32()}),
        ({"k": 1, "j": 2}, {"k": 2, "j": 1}),
        ({"k": 1, "j": None}, {"k": None, "j": None}),
    ),
    "struct<j:int,k:int>": ColumnType(
        "turned",
        pa.struct({"j": pa.int32(), "k": pa.int32()}),
        ({"j": 1, "k": 2}, {"j": 2, "k": 1}),
        ({"j": 1, "k": None}, {"j": None, "k": None}),
    ),
    "struct<id:int not null>": ColumnType(
        "required",
        pa.struct([pa.field("id", pa.int32(), nullable=False)]),
        ({"id": 1}, {"id": 2}),
        ({"id": 7},),
    ),
}
"""Types by Spark's name, without decimals; see ``column_type``."""
DECIMALS = ((5, 2), (10, 2), (9, 9), (18, 0), (18, 6), (19, 4), (38, 0), (38, 10), (38, 37))
LETTERS = {
    "y": "tinyint", "h": "smallint", "i": "int", "l": "bigint", "q": "boolean", "g": "float",
    "f": "double", "s": "string", "p": "string", "z": "binary", "d": "date", "n": "timestamp_ntz",
    "t": "timestamp", "v": "array<int>", "w": "array<string>", "r": "struct<k:int,s:string>",
    "k": "int",
    "u": "struct<id:int not null>", "o": "struct<k:int,j:int>", "e": "struct<j:int,k:int>",
}  # fmt: skip
"""Columns of every stream by name, without its decimals ``m`` and ``x``."""


def decimal_name(precision: int, scale: int) -> str:
    """Return Spark's name of a decimal type."""
    return f"decimal({precision},{scale})"


def column_type(name: str) -> ColumnType:
    """Return the type with Spark's name."""
    if not name.startswith("decimal("):
        return TYPES[name]
    precision, scale = map(int, name[8:-1].split(","))
    top, unit = (Decimal((0, digits, -scale)) for digits in ((9,) * precision, (1,)))
    near = [v for v in ("0", "1", "2", "0.5") if Decimal(v) <= top and _fits(v, scale)]
    edges = tuple(f"{sign}{v:f}" for v in (top, unit) for sign in ("", "-"))
    return ColumnType("decimal", pa.decimal128(precision, scale), near or ["0"], edges)


def _fits(text: str, scale: int) -> bool:
    return len(text.partition(".")[2]) <= scale


def random_value(draw: random.Random, name: str) -> Value:
    """Return a value of a type: mostly one that other rows have too, else NULL or an edge."""
    kind = column_type(name)
    turn = draw.random()
    if turn < 0.1:
        return None
    return draw.choice(kind.edges if turn < 0.25 else kind.common)


_READERS: dict[str, Callable[[Any], Any]] = {
    "real": float,
    "decimal": Decimal,
    "bytes": bytes.fromhex,
    "date": date.fromisoformat,
}


def to_python(value: Value, name: str) -> Any:
    """Return the Python value; a time is its microseconds since 1970."""
    reader = _READERS.get(column_type(name).kind)
    return value if value is None or reader is None else reader(value)


def to_arrow(values: Sequence[Value], name: str) -> pa.Array:
    """Return an Arrow column."""
    kind = column_type(name)
    if kind.kind == "decimal":  # of Decimal objects Arrow takes the first one's digits for all
        return pa.array(values, pa.string()).cast(kind.arrow)
    found = [to_python(v, name) for v in values]
    if kind.kind in ("clock", "instant"):
        return pa.array(found, pa.int64()).cast(kind.arrow)
    return pa.array(found, kind.arrow)


def to_json(value: Any, name: str) -> Value:
    """Return a Python value in its JSON form."""
    if value is None:
        return None
    kind = column_type(name).kind
    if kind == "real":
        return value if math.isfinite(value) else str(value)
    if kind in ("decimal", "date"):
        return str(value)
    return value.hex() if kind == "bytes" else value
