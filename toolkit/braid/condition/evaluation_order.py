"""Which expressions have a value wherever what they read has one, so that they fail on no tuple;
and DuckDB SQL that does not compute those that may fail where Spark does not look at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from braid.condition.duckdb_functions import BITS, COMPARISONS, PARTS
from braid.condition.set_similarity import size_argument


class OverflowFailure(ArithmeticError):
    """A value leaves the type in which Spark computes it; it says so in a sentence."""


_SAFE = {
    *(exp.Column, exp.Identifier, exp.Paren, exp.Literal, exp.Boolean, exp.Null, exp.DataType),
    *(exp.And, exp.Or, exp.Not, exp.In, exp.Between, exp.Is, *COMPARISONS, *BITS),
    *(exp.If, exp.Case, exp.Nullif, exp.Coalesce, exp.Greatest, exp.Least),
    *(exp.Concat, exp.DPipe, exp.Length),
    *(exp.ArrayCompact, exp.ArrayContains, exp.ArrayDistinct),
    *(exp.ArrayIntersect, exp.ArrayExcept),
    *(exp.StartsWith, exp.EndsWith, exp.Contains, exp.StrPosition, exp.Replace),
    *(exp.UnixMicros, exp.UnixDate, exp.TsOrDsToDate, exp.DateDiff, *PARTS),
}
"""Kinds of nodes that have a value wherever their operands have one, of types that the compiler
takes: it casts only what loses nothing.
"""


_SKIPPED = "is skipped"


def is_safe(tree: exp.Expr) -> bool:
    """Whether an expression that the compiler takes fails on no tuple; False: not known."""
    return all(type(n) in _SAFE or _is_safe(n) for n in tree.walk())


def can_fail(tree: exp.Expr) -> list[exp.Expr]:
    """Return the parts of an expression that may have no value of their type, innermost first."""
    parts = [n for n in tree.walk() if isinstance(n, (exp.Binary, exp.Unary, exp.Func))]
    return [n for n in reversed(parts) if type(n) not in _SAFE and not _is_safe(n)]


def find_skipped(node: exp.Expr) -> list[exp.Expr]:
    """Return the operands that Spark evaluates only where those before them do not decide."""
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
    return list(node.expressions) if isinstance(node, exp.Coalesce) else []


def marks_skipped(tree: exp.Expr) -> bool:
    """Mark the parts that may fail where Spark does not look at them. Return whether there are
    some.
    """
    skipped = [part for node in tree.walk() for part in find_skipped(node) if not is_safe(part)]
    for part in skipped:
        for node in part.walk():
            if not is_safe(node):
                node.meta[_SKIPPED] = True
    return bool(skipped)


def is_skipped(node: exp.Expr) -> bool:
    """Whether ``mark_skipped`` has marked it."""
    return _SKIPPED in node.meta


def _is_safe(node: exp.Expr) -> bool:
    """Whether it has a value wherever its operands have one, by what these are."""
    if isinstance(node, exp.Cast):  # sqlglot takes Spark's casts for TryCast, which is one
        return not isinstance(node.this, exp.Literal) or not node.this.is_string
    if isinstance(node, exp.Like):
        pattern = node.expression
        return isinstance(pattern, exp.Literal) and "\\" not in pattern.this
    if isinstance(node, (exp.Substring, exp.Left, exp.Right)):  # numbers of theirs are cast to INT
        return all(map(_is_int, [*node.iter_expressions()][1:]))
    return _is_age(node) or size_argument(node) is not None


def _is_int(node: exp.Expr) -> bool:
    """Whether it is a literal that Spark takes for an INT."""
    return isinstance(node, exp.Literal) and node.is_int and int(node.name) < 1 << 31


def _is_age(node: exp.Expr) -> bool:
    """Whether it is the difference of two event times in microseconds."""
    return isinstance(node, exp.Sub) and _is_time(node.this) and _is_time(node.expression)


def _is_time(node: exp.Expr) -> bool:
    if isinstance(node, exp.Greatest):
        return all(map(_is_time, (node.this, *node.expressions)))
    return isinstance(node, exp.UnixMicros)


def short_circuit(parts: Sequence[str], both: bool) -> str:
    """What AND (``both``) or OR of the parts says; those before a part that decide keep it from
    being computed.
    """
    whole = (" AND " if both else " OR ").join(parts)
    word, end = ("NOT ", "false") if both else ("", "true")
    decided = " ".join(f"WHEN {word}{part} THEN {end}" for part in parts[:-1])
    return f"(CASE {decided} ELSE ({whole}) END)"


def compare_left_first(node: exp.Expr, left: str, made: str, right: Iterable[exp.Expr]) -> str:
    """What a comparison says: nothing, where its left side says nothing, which keeps the ``right``
    from being computed. One over several streams stays as it is: that is what they are joined on.
    """
    several = len({column.table for column in node.find_all(exp.Column)}) > 1
    if several or all(map(is_safe, right)):
        return made
    return f"(CASE WHEN {left} IS NOT NULL THEN {made} END)"
