"""Functions that DuckDB evaluates as Spark does, each as a line of DuckDB SQL.

At edges where the two differ (a root of a negative number, a logarithm of 0, NaN as an integer),
the line returns Spark's value. The last digit of a sine, an exponential and the like may differ
between machines, and also here.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from braid.condition.sql_types import BOOLEAN, DOUBLE, INT, STRING, SqlType


@dataclass(frozen=True)
class FunctionRule:
    """The rule for a function.

    - ``argument_types``: types of the arguments.
    - ``sql``: DuckDB SQL with {0}, {1} for the arguments.
    - ``result_type``: type of the result.
    - ``cast``: whether other numbers are cast to the argument's type, if the cast rounds nothing;
      if not, types must be equal.
    """

    argument_types: tuple[SqlType, ...]
    sql: str
    result_type: SqlType
    cast: bool = False


def _make_double_rule(sql: str, arguments: int = 1) -> FunctionRule:
    return FunctionRule((DOUBLE,) * arguments, sql, DOUBLE, cast=True)


def _nan_outside_domain(edge: str, function: str) -> FunctionRule:
    """Return a rule that yields NaN outside the function's domain, where DuckDB might fail."""
    return _make_double_rule(f"(CASE WHEN {edge} THEN 'nan'::DOUBLE ELSE {function}({{0}}) END)")


_ASCII = "".join(map(chr, range(33, 127)))
_BOTH = "array_to_string(list_distinct(string_split({0} || {1}, '')), '')"
"""The distinct characters of two texts."""
_PLAIN = exp.Literal.string(_ASCII).sql("duckdb").replace("{", "{{").replace("}", "}}")
_LEVENSHTEIN = (
    "CAST((CASE WHEN strlen({0}) = length({0}) AND strlen({1}) = length({1}) "
    "THEN levenshtein({0}, {1}) "
    f"WHEN length({_BOTH}) > {len(_ASCII)} "
    f"THEN error('More than {len(_ASCII)} different characters') "
    f"ELSE levenshtein(translate({{0}}, {_BOTH}, {_PLAIN}), translate({{1}}, {_BOTH}, {_PLAIN})) "
    "END) AS INTEGER)"
)
"""DuckDB counts bytes, Spark characters. Non-ASCII characters are replaced by ASCII ones, alike in
both texts.
"""
_POWER = (
    "(CASE WHEN isnan({1}) OR (abs({0}) = 1 AND isinf({1})) THEN {0} * 'nan'::DOUBLE "
    "ELSE pow({0}, {1}) END)"
)
"""To Java, a power of 1 to NaN or infinity is NaN, and to C it is 1. That of NULL is NULL."""
_OTHER_LOWER = "0130 03A3 1C89 A7CB-A7DC 10D50-10D65 16EA0-16EB8"
_OTHER_UPPER = (
    "0149 019B 01F0 0264 0390 03B0 0587 1C8A 1E96-1E9A 1F50-1F56 1F80-1FFC A7CD-A7DB FB00-FB17 "
    "10D70-10D85 16EBB-16ED3"
)
"""Ranges of letters that Spark and DuckDB convert in two ways: DuckDB changes one letter at a time,
without regard to its place, and knows no letters of the last years. A test compares all others.
"""


def _convert_letters(function: str, others: str, sql: str) -> str:
    """Return a rule for lower or upper that fails for letters which are not converted alike."""
    ranges = (each.partition("-") for each in others.split())
    letters = "".join(
        rf"\x{{{{{first}}}}}" + (rf"-\x{{{{{last}}}}}" if last else "") for first, _, last in ranges
    )
    problem = f"{function}() of this text is not known to mean the same without Spark"
    return (
        f"(CASE WHEN regexp_matches({{0}}, '[{letters}]') THEN error('{problem}') ELSE {sql} END)"
    )


_SIGN = "(CASE WHEN isnan({0}) THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END)"

CALLS: dict[type[exp.Expr], FunctionRule] = {
    exp.Levenshtein: FunctionRule((STRING, STRING), _LEVENSHTEIN, INT),
    exp.Replace: FunctionRule((STRING,) * 3, "replace({0}, {1}, {2})", STRING),
    exp.Substring: FunctionRule(
        (STRING, INT, INT),
        "substring({0}, CASE WHEN {1} = 0 THEN 1 ELSE {1} END, greatest({2}, 0))",
        STRING,
        cast=True,
    ),
    exp.Left: FunctionRule((STRING, INT), "left({0}, greatest({1}, 0))", STRING, cast=True),
    exp.Right: FunctionRule((STRING, INT), "right({0}, greatest({1}, 0))", STRING, cast=True),
    exp.Lower: FunctionRule(
        (STRING,), _convert_letters("lower", _OTHER_LOWER, "lower({0})"), STRING
    ),
    exp.Upper: FunctionRule(
        (STRING,), _convert_letters("upper", _OTHER_UPPER, "upper(replace({0}, 'ß', 'SS'))"), STRING
    ),
    exp.Trim: FunctionRule((STRING,), "trim({0}, ' ')", STRING),
    exp.Sign: _make_double_rule(_SIGN),
    exp.Length: FunctionRule((STRING,), "CAST(length({0}) AS INTEGER)", INT),
    exp.StartsWith: FunctionRule((STRING, STRING), "starts_with({0}, {1})", BOOLEAN),
    exp.EndsWith: FunctionRule((STRING, STRING), "ends_with({0}, {1})", BOOLEAN),
    exp.Contains: FunctionRule((STRING, STRING), "contains({0}, {1})", BOOLEAN),
    exp.DPipe: FunctionRule((STRING, STRING), "({0} || {1})", STRING),
    exp.StrPosition: FunctionRule((STRING, STRING), "CAST(strpos({0}, {1}) AS INTEGER)", INT),
    exp.IsNan: FunctionRule((DOUBLE,), "coalesce(isnan({0}), false)", BOOLEAN, cast=True),
    exp.Sqrt: _nan_outside_domain("{0} < 0", "sqrt"),
    exp.Ln: _make_double_rule("(CASE WHEN {0} > 0 THEN ln({0}) END)"),
    exp.Exp: _make_double_rule("exp({0})"),
    exp.Pow: _make_double_rule(_POWER, 2),
    exp.Sin: _nan_outside_domain("isinf({0})", "sin"),
    exp.Cos: _nan_outside_domain("isinf({0})", "cos"),
    exp.Tan: _nan_outside_domain("isinf({0})", "tan"),
    exp.Asin: _nan_outside_domain("abs({0}) > 1", "asin"),
    exp.Acos: _nan_outside_domain("abs({0}) > 1", "acos"),
    exp.Atan: _make_double_rule("atan({0})"),
    exp.Atan2: _make_double_rule("atan2({0} + 0::DOUBLE, {1} + 0::DOUBLE)", 2),
}
"""Rules by class of node."""

WHOLE = "(CASE WHEN isnan({0}) THEN 0 ELSE CAST({1}({0}) AS BIGINT) END)"
"""The integer at or above ({1} is ceil) or below (floor) a double. Beyond BIGINT the cast fails, as
Spark does under ANSI.
"""
CAPPED = (
    "(CASE WHEN {0} >= 9223372036854775807 AND NOT isnan({0}) THEN 9223372036854775807 "
    "WHEN {0} <= -9223372036854775808 THEN -9223372036854775808 ELSE " + WHOLE + " END)"
)
"""The same without ANSI, where Spark takes the nearest BIGINT."""
ROUNDED = (
    "(CASE WHEN abs({0}) < 1e15 THEN CAST(CAST(CAST({0} AS VARCHAR) AS DECIMAL(38, {1})) "
    "AS DOUBLE) ELSE {0} END)"
)
"""A double rounded to {1} digits of its text, halves away from zero. From 1e15 on there are no
digits to round.
"""
BITS = {
    exp.BitwiseAnd: "({0} & {1})",
    exp.BitwiseOr: "({0} | {1})",
    exp.BitwiseXor: "xor({0}, {1})",
}
"""Bit operators of two integers of one type."""
PARTS = {
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
"""Parts of dates and timestamps; the last three of timestamps only."""
TRUNCATED = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""Units to which both truncate a time alike."""
COMPARISONS = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
WIDENS = {
    "tinyint": {"smallint", "int", "bigint", "float", "double", "string"},
    "smallint": {"int", "bigint", "float", "double", "string"},
    "int": {"bigint", "double", "string"},
    "bigint": {"string"},
    "float": {"double"},
    "boolean": {"int", "bigint"},
    "date": {"timestamp", "timestamp_ntz"},
    "timestamp": {"date", "timestamp_ntz"},
    "timestamp_ntz": {"date", "timestamp"},
}
"""Casts that agree in both systems and lose nothing but a time of day."""
