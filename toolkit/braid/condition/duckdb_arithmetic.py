"""Compile arithmetic of Spark SQL to DuckDB SQL: numbers, times and intervals."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from braid.condition.duckdb_functions import BITS, CAPPED, ROUNDED, WHOLE
from braid.condition.overflow_guards import infer_number_type
from braid.condition.sql_types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    INTEGRAL,
    INTERVAL,
    MOST_DIGITS,
    NUMERIC,
    REAL,
    TIMESTAMP,
    VOID,
    SqlType,
    decimal_of_integer,
    decimal_result_type,
    duckdb_type_name,
)
from braid.condition.typed_expressions import Typed, TypedSql
from braid.util.durations import UNITS

CLOCK = SqlType("timestamp_ntz")
"""A timestamp without time zone."""
TIMES = (DATE, TIMESTAMP, CLOCK)
_NEGATED_DIGITS = 34
"""Spark rounds a decimal to this many digits, or fails, when it negates it or takes its absolute
value.
"""


class ArithmeticCompiler(TypedSql):
    """Compilation rules for arithmetic."""

    def _compile_arithmetic(self, node: Any) -> Typed:
        sign = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}[type(node)]
        left, right = self.compile_expression(node.this), self.compile_expression(node.expression)
        names = {left[1].name, right[1].name}
        if left[1] in TIMES and sign != "*":
            return self._compile_time_arithmetic(node, left, right, sign)
        if not names <= {*NUMERIC, "void"}:
            self._raise_unsupported(node, f" calculates with {' and '.join(sorted(names))}")
        if "decimal" in names and not names & {*REAL}:
            return self._compile_decimal_arithmetic(node, left, right, sign)
        (a, b), kind = self._compile_to_common_type(node, node.this, node.expression)
        return f"({a} {sign} {b})", kind

    def _compile_decimal_arithmetic(self, node: Any, left: Typed, right: Typed, sign: str) -> Typed:
        """Compile decimal arithmetic with the digits of Spark's result.

        DuckDB may use fewer and fail.
        """
        if VOID in (left[1], right[1]):
            self._raise_unsupported(node, " calculates with NULL")
        a, b = _to_decimal_type(node.this, left[1]), _to_decimal_type(node.expression, right[1])
        kind = decimal_result_type(sign, a, b)
        if kind is None:
            self._raise_unsupported(node, f" may have more than {MOST_DIGITS} digits")
        scales = (a.scale, b.scale) if sign == "*" else (kind.scale, kind.scale)
        x, y = (
            self._cast_to(typed, SqlType("decimal", kind.precision, scale))
            for typed, scale in zip((left, right), scales, strict=True)
        )
        return f"CAST(({x} {sign} {y}) AS {duckdb_type_name(kind)})", kind

    def _compile_time_arithmetic(self, node: Any, left: Typed, right: Typed, sign: str) -> Typed:
        """Compile a time plus or minus an interval, or the difference of two times."""
        if right[1] == INTERVAL:
            literal = re.fullmatch(r"-?\d+", right[0])
            if left[1] == DATE and (not literal or int(right[0]) % UNITS["day"]):
                self._raise_unsupported(node)
            moved = f"{left[0]} {sign} to_microseconds({right[0]})"
            return f"CAST({moved} AS {duckdb_type_name(left[1])})", left[1]
        if sign == "-" and right[1] in TIMES:
            at = [f"epoch_us({self._cast_to(t, TIMESTAMP)})" for t in (left, right)]
            return f"({at[0]} - {at[1]})", INTERVAL
        if left[1] != DATE or right[1].name not in INTEGRAL[:3]:
            self._raise_unsupported(node)
        return f"({left[0]} {sign} {self._cast_to(right, INT)})", DATE

    def _compile_division(self, node: Any) -> Typed:
        by = node.expression.unnest()
        fixed = isinstance(by, exp.Literal) and not by.is_string and float(by.this) != 0
        if not fixed and not self.by_zero:
            self._raise_unsupported(node, " divides by what may be 0")
        (a, b), kind = self._compile_to_common_type(node, node.this, by)
        is_integral = kind.name in INTEGRAL
        if kind.name not in (*INTEGRAL, *REAL) or (
            isinstance(node, exp.IntDiv) and not is_integral
        ):
            self._raise_unsupported(node, f" divides numbers of type {kind}")
        sign, gives = "%", kind
        if isinstance(node, exp.IntDiv):
            a, b, sign, gives = f"CAST({a} AS BIGINT)", f"CAST({b} AS BIGINT)", "//", BIGINT
        elif isinstance(node, exp.Div):
            a, b, sign, gives = f"CAST({a} AS DOUBLE)", f"CAST({b} AS DOUBLE)", "/", DOUBLE
        if fixed:
            return f"({a} {sign} {b})", gives
        never = f"WHEN {b} = -1 THEN {a} - {a} " if sign == "%" and is_integral else ""
        is_by_zero = f"{b} = 0 AND {a} IS NOT NULL"  # NULL / 0 is NULL
        return f"(CASE WHEN {is_by_zero} THEN {self.by_zero} {never}ELSE {a} {sign} {b} END)", gives

    def _compile_sign(self, node: Any) -> Typed:
        if isinstance(node, exp.Neg) and (kind := infer_number_type(node)) is not None:
            return f"CAST(-{node.this.this} AS {duckdb_type_name(kind)})", kind
        sql, kind = self.compile_expression(node.this)
        if kind.name not in NUMERIC and kind != INTERVAL:
            self._raise_unsupported(node)
        if kind.name == "decimal" and kind.precision > _NEGATED_DIGITS:
            self._raise_unsupported(
                node, f" is of type {kind}, which Spark rounds to {_NEGATED_DIGITS} digits"
            )
        if isinstance(node, exp.Abs):
            return f"abs({sql})", kind
        if kind.name in INTEGRAL:  # DuckDB would use a wider type for a constant
            return f"CAST(-{sql} AS {duckdb_type_name(kind)})", kind
        return f"(-{sql})", kind

    def _compile_bit_operator(self, node: Any) -> Typed:
        parts, kind = self._compile_to_common_type(node, node.this, node.expression)
        if kind.name not in INTEGRAL:
            self._raise_unsupported(node)
        return BITS[type(node)].format(*parts), kind

    def _compile_bitwise_not(self, node: exp.BitwiseNot) -> Typed:
        """Compile a bitwise complement."""
        sql, kind = self.compile_expression(node.this)
        if kind.name not in INTEGRAL:
            self._raise_unsupported(node)
        return f"(~{sql})", kind

    def _compile_ceil_floor(self, node: Any) -> Typed:
        """Compile ceil and floor."""
        sql, kind = self.compile_expression(node.this)
        if node.args.get("decimals") or node.args.get("to"):
            self._raise_unsupported(node)
        if kind.name in INTEGRAL:
            return self._cast_to((sql, kind), BIGINT), BIGINT
        name = "ceil" if isinstance(node, exp.Ceil) else "floor"
        if kind.name == "decimal":
            result_type = SqlType("decimal", min(kind.precision - kind.scale + 1, MOST_DIGITS))
            return f"CAST({name}({sql}) AS {duckdb_type_name(result_type)})", result_type
        if kind.name not in REAL:
            self._raise_unsupported(node)
        template = WHOLE if self.is_ansi else CAPPED
        return template.format(self._cast_to((sql, kind), DOUBLE), name), BIGINT

    def _compile_round(self, node: exp.Round) -> Typed:
        digits = node.args.get("decimals") or exp.Literal.number(0)
        sql, kind = self.compile_expression(node.this)
        is_count = isinstance(digits, exp.Literal) and digits.is_int  # -1 is a Neg
        if kind != DOUBLE or not is_count or int(digits.name) > 20:
            self._raise_unsupported(node)
        return ROUNDED.format(sql, int(digits.name)), kind


def _to_decimal_type(node: exp.Expr, kind: SqlType) -> SqlType:
    """Return the decimal type that Spark converts an exact number to.

    A literal gets its own digits.
    """
    node = node.unnest()
    node = node.this if isinstance(node, exp.Neg) else node
    if kind.name in INTEGRAL and isinstance(node, exp.Literal):
        return SqlType("decimal", len(str(int(node.name))))
    return decimal_of_integer(kind)
