"""Functions of Spark SQL as DuckDB SQL, for the check of a run's answers.

They are written apart from those of the compiler, so that a mistake is not made twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

COUNT_NULLS = "len(list_filter({0}, lambda x: x IS NULL))"
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
LOSSLESS_CASTS = {
    "TINYINT": ("SMALLINT", "INT", "BIGINT", "REAL", "DOUBLE", "TEXT"),
    "SMALLINT": ("INT", "BIGINT", "REAL", "DOUBLE", "TEXT"),
    "INTEGER": ("INT", "BIGINT", "DOUBLE", "TEXT"),
    "BIGINT": ("TEXT",),
    "FLOAT": ("REAL", "DOUBLE"),
    "BOOLEAN": ("INT", "BIGINT"),
    "VARCHAR": ("TEXT",),
}
"""Names of types as sqlglot writes them for DuckDB, by DuckDB's own name of what is cast."""
_ASCII_ONLY = (
    "(CASE WHEN strlen({0}) = length({0}) AND strlen({1}) = length({1}) THEN levenshtein({0}, {1}) "
    "WHEN {0} IS NOT NULL AND {1} IS NOT NULL "
    "THEN error('DuckDB takes levenshtein of bytes, Spark of characters') END)"
)
_LOWER = (
    "(CASE WHEN regexp_matches({0}, '[^\\x00-\\x{{012F}}\\x{{0131}}-\\x{{024F}}]') "
    "THEN error('lower() of other letters') ELSE lower({0}) END)"
)
_UPPER = (
    "(CASE WHEN regexp_matches({0}, '[^\\x00-\\x{{00DE}}\\x{{00E0}}-\\x{{0148}}]') "
    "THEN error('upper() of other letters') ELSE upper({0}) END)"
)
"""Letters that Spark and DuckDB convert alike; others are not judged."""
CALLS: Mapping[type[exp.Expr], str] = {
    exp.Paren: "({0})",
    exp.Not: "(NOT {0})",
    exp.Abs: "abs({0})",
    exp.BitwiseNot: "(~{0})",
    exp.Levenshtein: _ASCII_ONLY,
    exp.Lower: _LOWER,
    exp.Upper: _UPPER,
    exp.Trim: "trim({0}, ' ')",
    exp.Replace: "replace({0}, {1}, {2})",
    exp.Substring: "substring({0}, CASE WHEN {1} = 0 THEN 1 ELSE {1} END, greatest({2}, 0))",
    exp.Left: "left({0}, greatest({1}, 0))",
    exp.Right: "right({0}, greatest({1}, 0))",
    exp.Length: "length({0})",
    exp.StartsWith: "starts_with({0}, {1})",
    exp.EndsWith: "ends_with({0}, {1})",
    exp.Contains: "contains({0}, {1})",
    exp.DPipe: "({0} || {1})",
    exp.StrPosition: "strpos({0}, {1})",
    exp.UnixDate: "date_diff('day', DATE '1970-01-01', {0})",
    exp.UnixMicros: "epoch_us({0})",
}
_NAN = "CAST('nan' AS DOUBLE)"
DOUBLE_CALLS: Mapping[type[exp.Expr], str] = {
    exp.IsNan: "coalesce(isnan({0}), false)",
    exp.Sign: f"(CASE WHEN isnan({{0}}) THEN {_NAN} ELSE CAST(sign({{0}}) AS DOUBLE) END)",
    exp.Sqrt: f"(CASE WHEN {{0}} < 0 THEN {_NAN} ELSE sqrt({{0}}) END)",
    exp.Ln: "(CASE WHEN {0} > 0 THEN ln({0}) END)",
    exp.Exp: "exp({0})",
    exp.Sin: f"(CASE WHEN isinf({{0}}) THEN {_NAN} ELSE sin({{0}}) END)",
    exp.Cos: f"(CASE WHEN isinf({{0}}) THEN {_NAN} ELSE cos({{0}}) END)",
    exp.Tan: f"(CASE WHEN isinf({{0}}) THEN {_NAN} ELSE tan({{0}}) END)",
    exp.Asin: f"(CASE WHEN abs({{0}}) > 1 THEN {_NAN} ELSE asin({{0}}) END)",
    exp.Acos: f"(CASE WHEN abs({{0}}) > 1 THEN {_NAN} ELSE acos({{0}}) END)",
    exp.Atan: "atan({0})",
}
"""Functions of a double. POWER and ATAN2 are not among them: DuckDB differs at NaN and zeros."""
