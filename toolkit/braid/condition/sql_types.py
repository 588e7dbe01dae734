"""Types of Spark SQL by name, with their Arrow and DuckDB counterparts, and how they are inferred.

Spark is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from sqlglot import exp


@dataclass(frozen=True)
class SqlType:
    """A type by Spark's name, such as "bigint".

    ``precision`` and ``scale`` are the total and fractional digits of a decimal.
    """

    name: str
    precision: int = 0
    scale: int = 0

    @classmethod
    def parse(cls, text: str) -> SqlType:
        """Return the type from Spark's simple string, such as "decimal(10,2)" or "array<int>".

        "string collate X" is another type than "string", because it compares differently.
        """
        name = re.match(r"(array|map|struct)<.*|\w+( collate \w+)?", text)
        digits = re.fullmatch(r"decimal\((\d+), ?(\d+)\)", text)
        assert name is not None
        return cls(name[0], *(map(int, digits.groups()) if digits else ()))

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name


INTEGRAL = ("tinyint", "smallint", "int", "bigint")
REAL = ("float", "double")
NUMERIC = (*INTEGRAL, *REAL, "decimal")
BOOLEAN, INT, BIGINT, DOUBLE = (SqlType(n) for n in ("boolean", "int", "bigint", "double"))
STRING, DATE, TIMESTAMP = (SqlType(n) for n in ("string", "date", "timestamp"))
INTERVAL = SqlType("interval")
"""An interval of fixed length, between two times. DuckDB calculates with its microseconds."""
VOID = SqlType("void")

MOST_DIGITS = 38
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""Digits of the decimals that Spark converts integers to."""
_TIMES = ("date", "timestamp_ntz", "timestamp")
"""Types of times. Two are compared in the later one."""
_ARROW = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
    pa.timestamp("us", "UTC"): "timestamp",
}
_DUCKDB = {
    "int": "INTEGER",
    "string": "VARCHAR",
    "binary": "BLOB",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "interval": "BIGINT",
}


def sql_type_of_arrow(kind: pa.DataType) -> SqlType:
    """Return Spark's type for an Arrow type.

    A type that expressions do not support keeps Arrow's name.
    """
    if pa.types.is_decimal(kind):
        return SqlType("decimal", kind.precision, kind.scale)
    if pa.types.is_list(kind):
        return SqlType(f"array<{sql_type_of_arrow(kind.value_type)}>")
    if pa.types.is_map(kind):
        return SqlType(
            f"map<{sql_type_of_arrow(kind.key_type)},{sql_type_of_arrow(kind.item_type)}>"
        )
    if pa.types.is_struct(kind):
        fields = (f"{f.name}:{sql_type_of_arrow(f.type)}" for f in kind)
        return SqlType(f"struct<{','.join(fields)}>")  # DuckDB compares by name, Spark by position
    return SqlType(_ARROW.get(kind, str(kind)))


def list_struct_fields(kind: SqlType) -> list[tuple[str, SqlType]]:
    """Return names and types of the fields of a struct; none if a name has other characters than
    letters, digits and underscores, or the type is no struct.
    """
    if not (inner := re.fullmatch(r"struct<(.*)>", kind.name)):
        return []
    texts, depth = [""], 0
    for letter in inner[1]:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            texts.append("")
        else:
            texts[-1] += letter
    fields = [re.fullmatch(r"(\w+):(.*)", text) for text in texts]
    if not all(fields):
        return []
    return [(field[1], SqlType.parse(field[2])) for field in fields if field]


def arrow_type_of_sql(kind: SqlType) -> pa.DataType | None:
    """Return the Arrow type; None for NULL and for types without one."""
    if kind.name == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    if inner := re.fullmatch(r"array<(.*)>", kind.name):
        items = arrow_type_of_sql(SqlType.parse(inner[1]))
        return None if items is None else pa.list_(items)
    return next((arrow for arrow, name in _ARROW.items() if name == kind.name), None)


def duckdb_type_name(kind: SqlType) -> str:
    """Return DuckDB's name of a type."""
    return _DUCKDB.get(kind.name, str(kind).upper())


def compares_alike(kind: SqlType, equality: bool = False) -> bool:
    """Return whether Spark and DuckDB compare values of the type alike.

    With ``equality``, only equality matters.
    """
    nested = equality and kind.name.startswith(("array<", "struct<"))
    return nested or kind.name in {*_ARROW.values(), "decimal", "interval"}


def decimal_of_integer(kind: SqlType) -> SqlType:
    """Return the decimal type that Spark converts an integer to."""
    return kind if kind.name == "decimal" else SqlType("decimal", _DIGITS[kind.name])


def common_type(*kinds: SqlType) -> SqlType | None:
    """Return the type in which Spark compares values of these types and chooses between them.

    None: unknown, as for text and numbers.
    """
    names = {k.name for k in kinds} - {"void"}
    if len(set(kinds) - {VOID}) == 1:
        return next(k for k in kinds if k != VOID)
    if names <= {*INTEGRAL}:
        return SqlType(max(names, key=INTEGRAL.index))
    if names <= {*_TIMES}:
        return SqlType(max(names, key=_TIMES.index))
    if names <= {*NUMERIC} and names & {*REAL}:
        return DOUBLE
    if names <= {*INTEGRAL, "decimal"}:
        exact = [decimal_of_integer(k) for k in kinds if k != VOID]
        scale = max(k.scale for k in exact)
        digits = max(k.precision - k.scale for k in exact) + scale
        return SqlType("decimal", digits, scale) if digits <= MOST_DIGITS else None
    return None


def decimal_result_type(sign: str, a: SqlType, b: SqlType) -> SqlType | None:
    """Return Spark's type of a sum, difference or product of exact numbers; None if it rounds."""
    a, b = decimal_of_integer(a), decimal_of_integer(b)
    scale = a.scale + b.scale if sign == "*" else max(a.scale, b.scale)
    integral_digits = max(a.precision - a.scale, b.precision - b.scale)
    digits = a.precision + b.precision + 1 if sign == "*" else integral_digits + scale + 1
    return SqlType("decimal", digits, scale) if digits <= MOST_DIGITS else None


class Analyzer(Protocol):
    """A type checker for expressions over the streams.

    - ``names``: columns by alias.
    - ``is_ansi``: whether a failed calculation is an error; otherwise it is NULL.
    - ``sized_null``: whether the size of a NULL array is -1, as in Spark without ANSI; otherwise it
      is NULL.
    - ``has_time_zone``: whether the session's time zone differs from UTC.
    - ``zone_spread``: greatest less least offset of that zone, in microseconds.
    """

    names: Mapping[str, Sequence[str]]
    is_ansi: bool
    sized_null: bool
    has_time_zone: bool
    zone_spread: int

    def check_condition(self, tree: exp.Expr, on: str) -> None:
        """Raise PredicateError if the condition is not supported."""
        ...

    def infer_type(self, alias: str, sql: str) -> SqlType | None:
        """Return the type of Spark SQL over a stream's own columns; None if it is invalid."""
        ...

    def infer_arrow_type(self, alias: str, sql: str) -> pa.DataType:
        """Return the column's type in Arrow."""
        ...


_CHOOSE = (exp.Paren, exp.Coalesce, exp.Greatest, exp.Least, exp.Case, exp.If, exp.Nullif)
"""Functions that return one of their operands unchanged."""
_COMPARE = (exp.Predicate, exp.ArrayContains, exp.UnixMicros)
"""Functions for which only the instant of a timestamp matters."""


def depends_on_time_zone(tree: exp.Expr, kind: Callable[[exp.Column], str]) -> bool:
    """Return whether a timestamp is used other than in a comparison with timestamps.

    Its hour, the day before, or a comparison with a date depends on the zone. ``kind`` returns a
    column's type.
    """
    if any(
        str(cast.to).upper().startswith(("TIMESTAMP", "DATE")) for cast in tree.find_all(exp.Cast)
    ):
        return True
    for column in tree.find_all(exp.Column):
        if kind(column) != "timestamp":
            continue
        node = column.parent
        while isinstance(node, _CHOOSE):
            node = node.parent
        if not isinstance(node, _COMPARE):
            return True
        if any(kind(c) in ("date", "timestamp_ntz") for c in node.find_all(exp.Column)):
            return True
    return False
