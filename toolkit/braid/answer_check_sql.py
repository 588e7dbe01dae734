"""Translate a condition from Spark SQL to DuckDB, for the check of a run's answers.

This is a second translation: it shares only the syntax tree with ``braid.condition``. DuckDB itself
gives the type of each part. A part whose value may differ from Spark's is refused, so that a right
answer is never reported as wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import sqlglot
from sqlglot import exp

from braid.answer_check_functions import (
    CALLS,
    COMPARISONS,
    COUNT_NULLS,
    DOUBLE_CALLS,
    LOSSLESS_CASTS,
)
from braid.answer_check_text import quote_text
from braid.condition.spark_dialect import SparkSql

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
_TRUNCATED = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK")


def translate_condition(text: str, type_name: Callable[[str], str]) -> str:
    """Return a condition of Spark SQL as DuckDB SQL.

    ``type_name`` returns DuckDB's name of the type of DuckDB SQL. Raises ValueError, which names
    the part, if DuckDB may evaluate it differently.
    """
    return _Translation(type_name).translate(sqlglot.parse_one(text, dialect=SparkSql))


class _Translation:
    """A rule for each class of node. Each returns DuckDB SQL in parentheses or as a call."""

    def __init__(self, type_name: Callable[[str], str]) -> None:
        self.type_name = type_name

    def translate(self, node: exp.Expr) -> str:
        """Return a node as DuckDB SQL."""
        if type(node) in CALLS:
            parts = [self.translate(p) for p in _list_arguments(node)]
            return CALLS[type(node)].format(*parts)
        if type(node) in DOUBLE_CALLS:
            return DOUBLE_CALLS[type(node)].format(self._as_double(node.this))
        if type(node) not in _RULES:
            self._refuse(node)
        return _RULES[type(node)](self, node)

    def _refuse(self, node: exp.Expr) -> NoReturn:
        part = node.sql(dialect=SparkSql).replace("`", "")
        raise ValueError(f"DuckDB may evaluate {part} differently from Spark")

    def _type_family(self, sql: str) -> str:
        """Return the name of a type without its digits, such as DECIMAL."""
        return self.type_name(sql).partition("(")[0]

    def _as_double(self, node: exp.Expr) -> str:
        sql = self.translate(node)
        if self._type_family(sql) not in (*_INTEGERS, "DECIMAL", "FLOAT", "DOUBLE"):
            self._refuse(node)
        return f"CAST({sql} AS DOUBLE)"

    def _align(self, node: exp.Expr, *parts: exp.Expr) -> list[str]:
        """Return the parts, comparable as in Spark."""
        return self._align_sql(node, [self.translate(part) for part in parts])

    def _align_sql(self, node: exp.Expr, sqls: list[str]) -> list[str]:
        """Return the SQL of parts of ``node``, with a float beside another number as a double."""
        names = {self.type_name(sql) for sql in sqls if sql != "NULL"}
        families = {name.partition("(")[0] for name in names}
        numbers = {*_INTEGERS, "DECIMAL", "FLOAT", "DOUBLE"}
        if len(names) > 1 and not (families <= numbers or families <= {*_TIMES}):
            self._refuse(node)
        if "FLOAT" in families and len(families) > 1:
            return [f"CAST({sql} AS DOUBLE)" for sql in sqls]
        return sqls

    # Columns and constants

    def _translate_column(self, node: exp.Column) -> str:
        names = (exp.to_identifier(part.name, quoted=True) for part in node.parts)
        return ".".join(name.sql("duckdb") for name in names)

    def _translate_field(self, node: exp.Dot) -> str:
        return f"{self.translate(node.this)}.{quote_text(node.expression.name)}"

    def _translate_literal(self, node: exp.Literal) -> str:
        text = str(node.this)
        if node.is_string:
            return node.sql("duckdb")
        if re.fullmatch(r"\d+", text) and int(text) < 1 << 63:
            return f"CAST({text} AS {'INTEGER' if int(text) < 1 << 31 else 'BIGINT'})"
        if re.fullmatch(r"[\d.]+[eE][+-]?\d+", text):
            return f"CAST({text} AS DOUBLE)"
        if not re.fullmatch(r"\d*\.\d+", text) or len(text) > 30:
            self._refuse(node)
        return text

    def _translate_negation(self, node: exp.Neg) -> str:
        if isinstance(node.this, exp.Literal) and str(node.this.this) == str(1 << 63):
            return f"CAST(-{1 << 63} AS BIGINT)"
        return f"(-{self.translate(node.this)})"

    def _translate_interval(self, node: exp.Interval) -> str:
        unit = str(node.args.get("unit") or "").upper().removesuffix("S")
        amount = node.this.name if node.this is not None else ""
        if unit not in _UNITS or not re.fullmatch(r"-?\d+", amount):
            self._refuse(node)
        return f"INTERVAL '{amount}' {unit}"

    # Booleans

    def _translate_connector(self, node: Any) -> str:
        word = " AND " if isinstance(node, exp.And) else " OR "
        return f"({word.join(map(self.translate, node.flatten()))})"

    def _translate_comparison(self, node: Any) -> str:
        left, right = self._align(node, node.this, node.expression)
        return f"({left} {COMPARISONS[type(node)]} {right})"

    def _translate_in(self, node: exp.In) -> str:
        if not node.expressions:
            self._refuse(node)
        value, *options = self._align(node, node.this, *node.expressions)
        return f"({value} IN ({', '.join(options)}))"

    def _translate_between(self, node: exp.Between) -> str:
        low, high = node.args["low"], node.args["high"]
        value, least, most = self._align(node, node.this, low, high)
        if node.args.get("symmetric"):
            self._refuse(node)
        return f"({value} BETWEEN {least} AND {most})"

    def _translate_is(self, node: exp.Is) -> str:
        if not isinstance(node.expression, (exp.Null, exp.Boolean)):
            self._refuse(node)
        return f"({self.translate(node.this)} IS {node.expression.sql('duckdb')})"

    def _translate_like(self, node: exp.Like | exp.Escape) -> str:
        like = node.this if isinstance(node, exp.Escape) else node
        escape = node.expression.name if isinstance(node, exp.Escape) else "\\"
        if not isinstance(like, exp.Like) or len(escape) != 1:
            self._refuse(node)
        text, pattern = self.translate(like.this), self.translate(like.expression)
        if like.args.get("negate"):
            self._refuse(node)
        return f"({text} LIKE {pattern} ESCAPE {exp.Literal.string(escape).sql('duckdb')})"

    # Numbers and times

    def _translate_arithmetic(self, node: Any) -> str:
        sign = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}[type(node)]
        sides = [self.translate(node.this), self.translate(node.expression)]
        names = [self._type_family(side) for side in sides]
        if names == ["DATE", "DATE"]:  # Spark returns an interval, DuckDB a number
            sides = [f"CAST({side} AS TIMESTAMP)" for side in sides]
        if "INTERVAL" in names or set(names) <= {*_TIMES} or names[0] == "DATE":
            return f"({sides[0]} {sign} {sides[1]})"
        left, right = self._align_sql(node, sides)
        return f"({left} {sign} {right})"

    def _translate_division(self, node: exp.Div) -> str:
        sides = [self.translate(node.this), self.translate(node.expression)]
        if "DECIMAL" in map(self._type_family, sides):
            self._refuse(node)
        return f"({self._as_double(node.this)} / {self._as_double(node.expression)})"

    def _translate_whole_division(self, node: exp.IntDiv | exp.Mod) -> str:
        left, right = self._align(node, node.this, node.expression)
        if isinstance(node, exp.Mod):
            return f"({left} % {right})"
        if self._type_family(left) not in _INTEGERS or self._type_family(right) not in _INTEGERS:
            self._refuse(node)
        return f"(CAST({left} AS BIGINT) // CAST({right} AS BIGINT))"

    def _translate_bit_operator(self, node: Any) -> str:
        left, right = self._align(node, node.this, node.expression)
        if isinstance(node, exp.BitwiseXor):
            return f"xor({left}, {right})"
        return f"({left} {'&' if isinstance(node, exp.BitwiseAnd) else '|'} {right})"

    def _translate_rounding(self, node: exp.Ceil | exp.Floor) -> str:
        if node.args.get("decimals") or node.args.get("to"):
            self._refuse(node)
        sql, name = self.translate(node.this), type(node).__name__.lower()
        if self._type_family(sql) in ("FLOAT", "DOUBLE"):  # Spark's is a bigint, of NaN 0
            return f"(CASE WHEN isnan({sql}) THEN 0 ELSE CAST({name}({sql}) AS BIGINT) END)"
        return f"{name}({sql})"

    def _translate_cast(self, node: exp.Cast) -> str:
        to = node.to.sql("duckdb")
        if isinstance(node.this, exp.Literal) and to != "DATE" and not to.startswith("TIMESTAMP"):
            if not re.fullmatch(r"[\d.eE+-]+", str(node.this.this)) or to == "TEXT":
                self._refuse(node)
            return f"CAST({node.this.this} AS {to})"
        if isinstance(node.this, exp.Literal):
            day = r"\d{4}-\d\d-\d\d"
            pattern = day if to == "DATE" else rf"{day} \d\d:\d\d:\d\d(\.\d{{1,6}})?"
            if not node.this.is_string or not re.fullmatch(pattern, node.this.name):
                self._refuse(node)
            cast = "TRY_CAST" if node.args.get("safe") else "CAST"
            return f"{cast}({node.this.sql('duckdb')} AS {to if to == 'DATE' else 'TIMESTAMP'})"
        sql = self.translate(node.this)
        given = self.type_name(sql)
        if to not in (given, *LOSSLESS_CASTS.get(given, ())):
            self._refuse(node)
        return f"CAST({sql} AS {to})"

    def _translate_to_date(self, node: exp.TsOrDsToDate) -> str:
        sql = self.translate(node.this)
        if self.type_name(sql) not in _TIMES:
            self._refuse(node)
        return f"CAST({sql} AS DATE)"

    def _translate_date_diff(self, node: exp.DateDiff) -> str:
        if node.args.get("unit"):
            self._refuse(node)
        return f"date_diff('day', {self.translate(node.expression)}, {self.translate(node.this)})"

    def _translate_part_of_time(self, node: Any) -> str:
        inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
        sql = self.translate(inner)
        if self.type_name(sql) not in _TIMES:
            self._refuse(node)
        name = type(node).__name__.lower().removesuffix("ofmonth")
        return f"{name}({sql})"

    def _translate_extract(self, node: exp.Extract) -> str:
        if node.name.upper() != "SECOND":
            self._refuse(node)
        sql = self.translate(node.expression)
        return f"(CAST(microsecond({sql}) AS DECIMAL(9, 0)) * 0.000001)"

    # Conditionals

    def _translate_case(self, node: exp.Case | exp.If) -> str:
        ifs = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        last = node.args.get("default" if isinstance(node, exp.Case) else "false") or exp.Null()
        conditions = [part.this for part in ifs]
        if isinstance(node, exp.Case) and node.this is not None:
            conditions = [exp.EQ(this=node.this, expression=value) for value in conditions]
        values = self._align(node, *(part.args["true"] for part in ifs), last)
        whens = " ".join(
            f"WHEN {self.translate(condition)} THEN {value}"
            for condition, value in zip(conditions, values, strict=False)
        )
        return f"(CASE {whens} ELSE {values[-1]} END)"

    def _translate_alternatives(self, node: Any) -> str:
        """Translate coalesce, greatest, least and nullif."""
        others = [node.expression] if isinstance(node, exp.Nullif) else node.expressions
        parts = self._align(node, node.this, *others)
        return f"{type(node).__name__.lower()}({', '.join(parts)})"

    # Text and arrays

    def _translate_concat(self, node: exp.Concat) -> str:
        parts = [self.translate(part) for part in node.expressions]
        if {self.type_name(part) for part in parts if part != "NULL"} - {"VARCHAR"}:
            self._refuse(node)
        return f"({' || '.join(parts)})"

    def _translate_size(self, node: exp.ArraySize) -> str:
        """Translate the size of an array, of its distinct elements, or of two arrays' common ones.

        NULL is an element to Spark. DuckDB's lists of distinct elements omit it, and its common
        elements of a list and NULL are none.
        """
        inner = node.this
        if isinstance(inner, exp.ArrayIntersect):
            x, y = map(self.translate, inner.expressions)
            both = f"CAST({COUNT_NULLS.format(x)} > 0 AND {COUNT_NULLS.format(y)} > 0 AS INTEGER)"
            size = f"len(list_intersect({x}, {y})) + {both}"
            return f"(CASE WHEN {x} IS NOT NULL AND {y} IS NOT NULL THEN {size} END)"
        if isinstance(inner, exp.ArrayDistinct):
            x = self.translate(inner.this)
            return f"(len(list_distinct({x})) + CAST({COUNT_NULLS.format(x)} > 0 AS INTEGER))"
        return f"len({self.translate(inner)})"

    def _translate_anonymous(self, node: exp.Anonymous) -> str:
        """Translate arrays_overlap and date_trunc, which have no class of their own."""
        if node.name.lower() == "date_trunc" and len(node.expressions) == 2:
            return self._translate_truncation(*node.expressions)
        if node.name.lower() != "arrays_overlap" or len(node.expressions) != 2:
            self._refuse(node)
        x, y = map(self.translate, node.expressions)
        nulls = f"{COUNT_NULLS.format(x)} + {COUNT_NULLS.format(y)}"
        return (
            f"(CASE WHEN {x} IS NULL OR {y} IS NULL THEN NULL "
            f"WHEN len(list_intersect({x}, {y})) > 0 THEN true "
            f"WHEN len({x}) = 0 OR len({y}) = 0 OR {nulls} = 0 THEN false END)"
        )

    def _translate_truncation(self, unit: exp.Expr, time: exp.Expr) -> str:
        sql = self.translate(time)
        if unit.name.upper() not in _TRUNCATED or self.type_name(sql) not in _TIMES:
            self._refuse(time)
        return f"date_trunc('{unit.name.lower()}', CAST({sql} AS TIMESTAMP))"

    def _translate_contains(self, node: exp.ArrayContains) -> str:
        array, value = self.translate(node.this), self.translate(node.expression)
        if self.type_name(array) != f"{self.type_name(value)}[]":
            self._refuse(node)
        unknown = f"({array} IS NULL OR {value} IS NULL OR {COUNT_NULLS.format(array)} > 0)"
        return (
            f"(CASE WHEN list_contains({array}, {value}) THEN true WHEN NOT {unknown} THEN false "
            "END)"
        )


def _list_arguments(node: exp.Expr) -> list[exp.Expr]:
    """Return the arguments of a call in the order of its class."""
    return [a for name in node.arg_types if isinstance(a := node.args.get(name), exp.Expr)]


_T = _Translation
_RULES: Mapping[type[exp.Expr], Callable[[_Translation, Any], str]] = {
    exp.Column: _T._translate_column,
    exp.Dot: _T._translate_field,
    exp.Literal: _T._translate_literal,
    exp.Boolean: lambda _, node: str(node.sql("duckdb")),
    exp.Null: lambda _, node: "NULL",
    exp.Neg: _T._translate_negation,
    exp.Interval: _T._translate_interval,
    **dict.fromkeys((exp.And, exp.Or), _T._translate_connector),
    **dict.fromkeys(COMPARISONS, _T._translate_comparison),
    exp.In: _T._translate_in,
    exp.Between: _T._translate_between,
    exp.Is: _T._translate_is,
    **dict.fromkeys((exp.Like, exp.Escape), _T._translate_like),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _T._translate_arithmetic),
    exp.Div: _T._translate_division,
    **dict.fromkeys((exp.IntDiv, exp.Mod), _T._translate_whole_division),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor), _T._translate_bit_operator),
    **dict.fromkeys((exp.Ceil, exp.Floor), _T._translate_rounding),
    **dict.fromkeys((exp.Cast, exp.TryCast), _T._translate_cast),
    exp.TsOrDsToDate: _T._translate_to_date,
    exp.DateDiff: _T._translate_date_diff,
    **dict.fromkeys(
        (exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.Hour, exp.Minute, exp.Second),
        _T._translate_part_of_time,
    ),
    exp.Extract: _T._translate_extract,
    **dict.fromkeys((exp.Case, exp.If), _T._translate_case),
    **dict.fromkeys(
        (exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif), _T._translate_alternatives
    ),
    exp.Concat: _T._translate_concat,
    exp.Anonymous: _T._translate_anonymous,
    exp.ArraySize: _T._translate_size,
    exp.ArrayContains: _T._translate_contains,
}
