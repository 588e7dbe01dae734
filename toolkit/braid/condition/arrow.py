"""Spark SQL over Arrow tables, without Spark: a part of the language that DuckDB is known to
evaluate alike.

Every expression is typed by Spark's rules (ANSI, time zone UTC) and turned into DuckDB SQL in which
each operand is cast to the type that Spark would give it. What is not listed here is refused:

- columns and literals of boolean, tinyint to bigint, float, double, string, date and timestamp;
  decimals only to be compared;
- comparisons, ``<=>``, IN, BETWEEN, IS NULL, AND, OR, NOT, CASE, if, coalesce;
- ``+ - *``, negation and abs of numbers that are no decimals, ``/`` and ``%`` by a literal that is
  not 0, a date plus or minus days, a timestamp or date plus or minus an INTERVAL of fixed length;
- length, startswith, endswith, contains, LIKE without a backslash, ``||``, year, month, day, hour,
  minute, second, unix_date, unix_micros, to_date, and casts that lose nothing.

``tests/spark/test_arrow.py`` holds each against Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import sqlglot
from sqlglot import exp

from braid.condition.predicate import PredicateError
from braid.condition.sqltypes import INTEGRAL, REAL, SqlType
from braid.core.spans import UNITS

Typed = tuple[str, SqlType]
"""DuckDB SQL and Spark's type."""
BOOLEAN, INT, BIGINT, DOUBLE = (SqlType(n) for n in ("boolean", "int", "bigint", "double"))
STRING, DATE, TIMESTAMP = (SqlType(n) for n in ("string", "date", "timestamp"))
VOID = SqlType("void")

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
}
_WIDENS = {
    "tinyint": {"smallint", "int", "bigint", "float", "double", "string"},
    "smallint": {"int", "bigint", "float", "double", "string"},
    "int": {"bigint", "double", "string"},
    "bigint": {"string"},
    "float": {"double"},
    "boolean": {"int", "bigint"},
    "date": {"timestamp"},
    "timestamp": {"date"},
    "timestamp_ntz": {"timestamp"},
}
"""Casts that mean the same in both and lose nothing but a time of day."""
_COMPARISONS = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_PARTS = {
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
_TEXT = {exp.StartsWith: "starts_with", exp.EndsWith: "ends_with", exp.Contains: "contains"}


def type_of(kind: pa.DataType) -> SqlType:
    """Spark's type for a column of Arrow; of what expressions do not take it is Arrow's name."""
    if pa.types.is_decimal(kind):
        return SqlType("decimal", kind.precision, kind.scale)
    return SqlType(_ARROW.get(kind, str(kind)))


def duckdb_type(kind: SqlType) -> str:
    """DuckDB's name of a type."""
    return _DUCKDB.get(kind.name, str(kind).upper())


class ArrowAnalyser:
    """Types and judges expressions over tables of these schemas."""

    def __init__(self, streams: Mapping[str, pa.Table | pa.Schema]) -> None:
        self.schemas = {a: s if isinstance(s, pa.Schema) else s.schema for a, s in streams.items()}
        self.names: Mapping[str, Sequence[str]] = {a: s.names for a, s in self.schemas.items()}

    def judge(self, tree: exp.Expr, on: str) -> None:
        """Raises PredicateError for a condition that is not boolean, or not known to mean the same
        in DuckDB as in Spark.
        """
        columns = {(a, f.name): type_of(f.type) for a, s in self.schemas.items() for f in s}
        kind = Compiler(columns).compile(tree)[1]
        if kind != BOOLEAN:
            raise PredicateError(f"the join condition {on!r} is of type {kind}; it must be boolean")

    def compiled(self, alias: str, sql: str) -> Typed:
        """DuckDB SQL for Spark SQL over a stream's own columns."""
        columns = {("", f.name): type_of(f.type) for f in self.schemas[alias]}
        return Compiler(columns, ours=True).compile(sqlglot.parse_one(sql, dialect="spark"))

    def type_of(self, alias: str, sql: str) -> SqlType | None:
        """Spark's type of an expression; None where it has none that is known."""
        try:
            return self.compiled(alias, sql)[1]
        except PredicateError:
            return None

    def arrow_type(self, alias: str, sql: str) -> pa.DataType:
        """The type of the column in Arrow."""
        kind = self.compiled(alias, sql)[1]
        if kind.name == "decimal":
            return pa.decimal128(kind.precision, kind.scale)
        return next(arrow for arrow, name in _ARROW.items() if name == kind.name)


class Compiler:
    """Turns Spark SQL into DuckDB SQL. ``columns`` are types by (alias, name); ``ours`` says that
    the text is made by the parser, which also uses hashes and exact decimals.
    """

    def __init__(self, columns: Mapping[tuple[str, str], SqlType], ours: bool = False) -> None:
        self.columns, self.ours = columns, ours

    def compile(self, node: exp.Expr) -> Typed:
        """Raises PredicateError for what is not listed above."""
        for kinds, method in self._methods():
            if isinstance(node, kinds):
                return method(node)
        if self.ours and node.name == "xxhash64":
            parts = ", ".join(self.compile(e)[0] for e in node.expressions)
            return f"CAST(hash({parts}) % 9223372036854775807 AS BIGINT)", BIGINT
        self._refuse(node)

    def _methods(self) -> list[tuple[Any, Callable[[Any], Typed]]]:
        return [
            (exp.Column, self._column),
            (exp.Paren, lambda n: self.compile(n.this)),
            (exp.Literal, self._literal),
            (exp.Boolean, lambda n: (n.sql("duckdb"), BOOLEAN)),
            (exp.Null, lambda n: ("NULL", VOID)),
            ((exp.And, exp.Or), self._logic),
            (exp.Not, lambda n: (f"(NOT {self._as(n.this, BOOLEAN)})", BOOLEAN)),
            (tuple(_COMPARISONS), self._compare),
            (exp.In, self._in),
            (exp.Between, self._between),
            (exp.Is, self._is),
            ((exp.Add, exp.Sub, exp.Mul), self._arithmetic),
            ((exp.Div, exp.Mod), self._divide),
            ((exp.Neg, exp.Abs), self._sign),
            ((exp.If, exp.Case, exp.Coalesce), self._choice),
            (exp.Cast, self._cast),
            (exp.TsOrDsToDate, lambda n: (self._to_date(n.this), DATE)),
            (exp.Length, lambda n: (f"length({self._as(n.this, STRING)})", INT)),
            (tuple(_TEXT), self._text),
            (exp.Like, self._like),
            (exp.DPipe, self._concat),
            (tuple(_PARTS), self._part),
            (exp.UnixDate, lambda n: (f"({self._as(n.this, DATE)} - DATE '1970-01-01')", INT)),
            (exp.UnixMicros, lambda n: (f"epoch_us({self._as(n.this, TIMESTAMP)})", BIGINT)),
        ]

    def _refuse(self, node: exp.Expr, why: str = "") -> NoReturn:
        text = node.sql(dialect="spark").replace("`", "")
        raise PredicateError(
            f"{text!r} in the join condition{why} is not known to mean the same without Spark; "
            "give the streams as Spark DataFrames, or write what it says into a column"
        )

    def _as(self, node: exp.Expr, kind: SqlType) -> str:
        sql, found = self.compile(node)
        if found != kind:
            self._refuse(node, f" is of type {found} where {kind} is needed and")
        return sql

    def _column(self, node: exp.Column) -> Typed:
        kind = self.columns.get((node.table, node.name))
        if kind is None:
            self._refuse(node)
        return exp.column(node.name, table=node.table or None, quoted=True).sql("duckdb"), kind

    def _literal(self, node: exp.Literal) -> Typed:
        if node.is_string:
            return node.sql("duckdb"), STRING
        text = str(node.this)
        if re.fullmatch(r"\d+", text) and int(text) < 1 << 63:
            kind = INT if int(text) < 1 << 31 else BIGINT
        elif re.fullmatch(r"\d*\.\d*", text) and 1 < len(text) < 30:
            whole, _, part = text.partition(".")
            kind = SqlType("decimal", max(1, len(whole.lstrip("0")) + len(part)), len(part))
        elif re.fullmatch(r"[\d.]+[eE][+-]?\d+", text):
            kind = DOUBLE
        else:
            self._refuse(node)
        return f"CAST({text} AS {duckdb_type(kind)})", kind

    def _logic(self, node: exp.And | exp.Or) -> Typed:
        word = "AND" if isinstance(node, exp.And) else "OR"
        left, right = (self._as(n, BOOLEAN) for n in (node.this, node.expression))
        return f"({left} {word} {right})", BOOLEAN

    def _common(self, source: exp.Expr, *kinds: SqlType) -> SqlType:
        """The type in which Spark compares and calculates."""
        names = {k.name for k in kinds} - {"void"}
        if len(set(kinds) - {VOID}) == 1:
            return next(k for k in kinds if k != VOID)
        if names <= {*INTEGRAL}:
            return SqlType(max(names, key=INTEGRAL.index))
        if names <= {*INTEGRAL, *REAL, "decimal"} and names & {*REAL}:
            return DOUBLE
        if names <= {*INTEGRAL, "decimal"}:
            digits = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
            scale = max(k.scale for k in kinds)
            whole = max(digits.get(k.name, k.precision) - k.scale for k in kinds)
            if whole + scale <= 38:
                return SqlType("decimal", whole + scale, scale)
        listed = " and ".join(sorted(map(str, kinds)))
        self._refuse(source, f" brings together {listed} and")

    def _cast_to(self, typed: Typed, kind: SqlType) -> str:
        sql, found = typed
        return sql if found == kind else f"CAST({sql} AS {duckdb_type(kind)})"

    def _together(self, node: exp.Expr, *parts: exp.Expr) -> tuple[list[str], SqlType]:
        typed = [self.compile(part) for part in parts]
        kind = self._common(node, *(k for _, k in typed))
        return [self._cast_to(t, kind) for t in typed], kind

    def _compare(self, node: Any) -> Typed:
        (left, right), kind = self._together(node, node.this, node.expression)
        if kind.name not in {*_ARROW.values(), "decimal"} - {"binary"}:
            self._refuse(node, f" compares values of type {kind} and")
        return f"({left} {_COMPARISONS[type(node)]} {right})", BOOLEAN

    def _in(self, node: exp.In) -> Typed:
        constant = (exp.Literal, exp.Neg, exp.Cast)
        if not node.expressions or any(not isinstance(e, constant) for e in node.expressions):
            self._refuse(node)
        (value, *options), _ = self._together(node, node.this, *node.expressions)
        return f"({value} IN ({', '.join(options)}))", BOOLEAN

    def _between(self, node: exp.Between) -> Typed:
        if node.args.get("symmetric"):
            self._refuse(node)
        low = exp.GTE(this=node.this, expression=node.args["low"])
        high = exp.LTE(this=node.this, expression=node.args["high"])
        return f"({self._compare(low)[0]} AND {self._compare(high)[0]})", BOOLEAN

    def _is(self, node: exp.Is) -> Typed:
        if not isinstance(node.expression, exp.Null):
            self._refuse(node)
        return f"({self.compile(node.this)[0]} IS NULL)", BOOLEAN

    def _arithmetic(self, node: Any) -> Typed:
        sign = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}[type(node)]
        left = self.compile(node.this)
        if left[1] in (DATE, TIMESTAMP) and sign != "*":
            return self._moved(node, left, sign)
        (a, b), kind = self._together(node, node.this, node.expression)
        if kind.name not in (*INTEGRAL, *REAL) and not self.ours:
            self._refuse(node)
        if kind.name == "decimal":  # the parser's own: a decimal key times a power of ten
            return f"({left[0]} {sign} {b})", SqlType("decimal", 38, kind.scale)
        return f"({a} {sign} {b})", kind

    def _moved(self, node: Any, left: Typed, sign: str) -> Typed:
        """A date or a timestamp, so much later or earlier."""
        by = node.expression
        if isinstance(by, exp.Interval):
            unit = str(by.args.get("unit") or "").lower().removesuffix("s")
            amount = by.this.name if by.this is not None else ""
            if unit not in UNITS or not re.fullmatch(r"-?\d+", amount):
                self._refuse(node)
            if left[1] == DATE and unit != "day":
                self._refuse(node)
            micros = int(amount) * UNITS[unit]
            moved = f"{left[0]} {sign} to_microseconds({micros})"
            return f"CAST({moved} AS {duckdb_type(left[1])})", left[1]
        if left[1] != DATE:
            self._refuse(node)
        return f"({left[0]} {sign} {self._as(by, INT)})", DATE

    def _divide(self, node: Any) -> Typed:
        by = node.expression.unnest()
        if not isinstance(by, exp.Literal) or by.is_string or float(by.this) == 0:
            self._refuse(node, " divides by what may be 0 and")
        (a, b), kind = self._together(node, node.this, by)
        if isinstance(node, exp.Mod) and kind.name in INTEGRAL:
            return f"({a} % {b})", kind
        if isinstance(node, exp.Mod) or kind.name == "decimal":
            self._refuse(node)
        return f"(CAST({a} AS DOUBLE) / CAST({b} AS DOUBLE))", DOUBLE

    def _sign(self, node: Any) -> Typed:
        sql, kind = self.compile(node.this)
        if kind.name not in (*INTEGRAL, *REAL) and not (
            kind.name == "decimal" and isinstance(node.this.unnest(), exp.Literal)
        ):
            self._refuse(node)
        return (f"(-{sql})" if isinstance(node, exp.Neg) else f"abs({sql})"), kind

    def _choice(self, node: Any) -> Typed:
        """If, CASE with conditions, coalesce."""
        if isinstance(node, exp.Coalesce):
            parts, kind = self._together(node, node.this, *node.expressions)
            return f"coalesce({', '.join(parts)})", kind
        ifs = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        last = node.args.get("default" if isinstance(node, exp.Case) else "false") or exp.Null()
        if isinstance(node, exp.Case) and node.this is not None:
            self._refuse(node)
        parts, kind = self._together(node, *(i.args["true"] for i in ifs), last)
        when = " ".join(
            f"WHEN {self._as(i.this, BOOLEAN)} THEN {part}"
            for i, part in zip(ifs, parts, strict=False)
        )
        return f"(CASE {when} ELSE {parts[-1]} END)", kind

    def _cast(self, node: exp.Cast) -> Typed:
        wanted = SqlType.of(node.to.sql("spark").lower().replace("long", "bigint"))
        if isinstance(node.this, exp.Literal) and node.this.is_number and wanted == DOUBLE:
            return f"CAST({node.this.this} AS DOUBLE)", DOUBLE
        if isinstance(node.this, exp.Literal) and node.this.is_string:
            pattern = {
                "date": r"\d{4}-\d\d-\d\d",
                "timestamp": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?",
            }.get(wanted.name)
            if pattern and re.fullmatch(pattern, node.this.name):
                return f"CAST({node.this.sql('duckdb')} AS {duckdb_type(wanted)})", wanted
        sql, kind = self.compile(node.this)
        exact = self.ours and {kind.name, wanted.name} <= {*INTEGRAL, "decimal", "double", "float"}
        if kind == wanted or wanted.name in _WIDENS.get(kind.name, ()) or exact:
            return self._cast_to((sql, kind), wanted), wanted
        self._refuse(node)

    def _to_date(self, node: exp.Expr) -> str:
        typed = self.compile(node)
        if typed[1] not in (DATE, TIMESTAMP):
            self._refuse(node)
        return self._cast_to(typed, DATE)

    def _text(self, node: Any) -> Typed:
        both = [self._as(n, STRING) for n in (node.this, node.expression)]
        return f"{_TEXT[type(node)]}({', '.join(both)})", BOOLEAN

    def _like(self, node: exp.Like) -> Typed:
        pattern = node.expression
        if not isinstance(pattern, exp.Literal) or not pattern.is_string or "\\" in pattern.name:
            self._refuse(node)
        return f"({self._as(node.this, STRING)} LIKE {pattern.sql('duckdb')})", BOOLEAN

    def _concat(self, node: exp.DPipe) -> Typed:
        both = [self._as(n, STRING) for n in (node.this, node.expression)]
        return f"({both[0]} || {both[1]})", STRING

    def _part(self, node: Any) -> Typed:
        inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
        sql, kind = self.compile(inner)
        clock = _PARTS[type(node)] in ("hour", "minute", "second")
        if kind != TIMESTAMP and (clock or kind != DATE):
            self._refuse(node)
        return f"CAST({_PARTS[type(node)]}({sql}) AS INTEGER)", INT
