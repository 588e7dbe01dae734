"""Find expressions that may fail, and generate DuckDB SQL that skips them when Spark does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from braid.condition.duckdb_functions import BITS, COMPARISONS, PARTS
from braid.condition.set_similarity import size_argument

_SAFE = {
    *(exp.Column, exp.Identifier, exp.Paren, exp.Literal, exp.Boolean, exp.Null, exp.DataType),
    *(exp.And, exp.Or, exp.Not, exp.In, exp.Between, exp.Is, *COMPARISONS, *BITS),
    *(exp.If, exp.Case, exp.Nullif, exp.Coalesce, exp.Greatest, exp.Least),
    *(exp.Concat, exp.DPipe, exp.Length),
    *(exp.ArrayCompact, exp.ArrayContains, exp.ArrayDistinct),
    *(exp.ArrayIntersect, exp.ArrayExcept),
    *(exp.StartsWith, exp.EndsWith, exp.Contains, exp.StrPosition, exp.Replace, exp.Trim),
    *(exp.UnixMicros, exp.UnixDate, exp.TsOrDsToDate, exp.DateDiff, *PARTS),
}
"""Nodes that never fail if their operands have a value, for the types that the compiler accepts. It
casts only if nothing is lost.
"""


NEVER_FAILING = (
    *(exp.Levenshtein, exp.Lower, exp.Upper, exp.Trim, exp.IsNan),
    *(exp.Pow, exp.Sqrt, exp.Exp, exp.Ln, exp.Sign),
    *(exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Atan2),
)
"""Functions that have a value for all operands in Spark. DuckDB's versions may fail."""

_SKIPPED = "is skipped"


def is_safe(tree: exp.Expr) -> bool:
    """Return whether an expression that the compiler accepts never fails; False: unknown."""
    return all(type(n) in _SAFE or _is_safe(n) for n in tree.walk())


def has_value_in_spark(tree: exp.Expr) -> bool:
    """Return whether an expression never fails in Spark; False: unknown."""
    return all(type(n) in _SAFE or _is_safe(n) or isinstance(n, NEVER_FAILING) for n in tree.walk())


def find_fallible_parts(tree: exp.Expr) -> list[exp.Expr]:
    """Return the parts of an expression that may fail, innermost first."""
    parts = [
        n
        for n in tree.walk()
        if isinstance(n, (exp.Binary, exp.Unary, exp.Func)) and not isinstance(n.parent, exp.Escape)
    ]
    return [n for n in reversed(parts) if type(n) not in _SAFE and not _is_safe(n)]


def find_skipped(node: exp.Expr) -> list[exp.Expr]:
    """Return the operands that Spark evaluates only if those before them do not decide."""
    if isinstance(node, (exp.And, exp.Or)):
        return [node.expression]
    if isinstance(node, exp.If) and isinstance(node.parent, exp.Case):
        is_first = node.parent.args["ifs"][0] is node
        return [node.args["true"]] if is_first else list(node.iter_expressions())
    if isinstance(node, exp.If):
        return [a for name in ("true", "false") if (a := node.args.get(name)) is not None]
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        return [] if default is None else [default]
    if isinstance(node, exp.Between):
        return [node.args["high"]]
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Nullif)) or _is_nested_comparison(node):
        return [node.expression]  # skipped if the left side is NULL
    return list(node.expressions) if isinstance(node, exp.Coalesce) else []


def _is_nested_comparison(node: exp.Expr) -> bool:
    """Return whether the node is a comparison, but not itself a condition of the join."""
    null_safe = (exp.NullSafeEQ, exp.NullSafeNEQ)
    is_comparison = isinstance(node, tuple(COMPARISONS)) and not isinstance(node, null_safe)
    return is_comparison and node.parent is not None


def marks_skipped(tree: exp.Expr) -> bool:
    """Mark the parts that may fail and that Spark may skip. Return whether there are any."""
    skipped = [part for node in tree.walk() for part in find_skipped(node) if not is_safe(part)]
    for part in skipped:
        for node in part.walk():
            if not is_safe(node):
                node.meta[_SKIPPED] = True
    return bool(skipped)


def is_skipped(node: exp.Expr) -> bool:
    """Return whether ``marks_skipped`` has marked the node."""
    return _SKIPPED in node.meta


def _is_safe(node: exp.Expr) -> bool:
    """Return whether the node, with these operands, has a value whenever they have one."""
    if isinstance(node, exp.Cast):  # sqlglot parses Spark's casts as TryCast, a subclass
        return not isinstance(node.this, exp.Literal) or not node.this.is_string
    if isinstance(node, exp.Like):
        pattern = node.expression
        return isinstance(pattern, exp.Literal) and "\\" not in pattern.this
    if isinstance(node, (exp.Substring, exp.Left, exp.Right)):  # their numbers are cast to INT
        return all(map(_is_int, [*node.iter_expressions()][1:]))
    return _is_age(node) or size_argument(node) is not None


def _is_int(node: exp.Expr) -> bool:
    """Return whether the node is a literal of type INT in Spark."""
    return isinstance(node, exp.Literal) and node.is_int and int(node.name) < 1 << 31


def _is_age(node: exp.Expr) -> bool:
    """Return whether the node is the difference of two event times in microseconds."""
    return isinstance(node, exp.Sub) and _is_time(node.this) and _is_time(node.expression)


def _is_time(node: exp.Expr) -> bool:
    if isinstance(node, exp.Greatest):
        return all(map(_is_time, (node.this, *node.expressions)))
    return isinstance(node, exp.UnixMicros)


def list_operands(node: exp.Expr) -> list[exp.Expr]:
    """Return the operands, but for constants, that need a value for arithmetic to have one."""
    node = node.unnest()
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs)):
        return [operand for side in node.iter_expressions() for operand in list_operands(side)]
    return [] if isinstance(node, exp.Literal) else [node]


def short_circuit(parts: Sequence[str], both: bool) -> str:
    """Return SQL for AND (``both``) or OR of the parts.

    It skips parts once an earlier one decides.
    """
    joined = (" AND " if both else " OR ").join(parts)
    word, end = ("NOT ", "false") if both else ("", "true")
    decided = " ".join(f"WHEN {word}{part} THEN {end}" for part in parts[:-1])
    return f"(CASE {decided} ELSE ({joined}) END)"


def compare_left_first(
    node: exp.Expr, left: str, comparison: str, right: Iterable[exp.Expr]
) -> str:
    """Return SQL for a comparison that skips the ``right`` sides if its left side is NULL.

    A comparison over several streams that is itself a condition of the join is unchanged.
    """
    several = len({column.table for column in node.find_all(exp.Column)}) > 1
    if (several and node.parent is None) or all(map(is_safe, right)):
        return comparison
    return f"(CASE WHEN {left} IS NOT NULL THEN {comparison} END)"
