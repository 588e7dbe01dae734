"""The arguments of syntax nodes that rules read.

A node with any other argument is kept as written, and no rule looks into it. Otherwise a rule would
ignore the argument. Spark receives its text, as for a function without a rule. Tables and
conditions over two streams refuse it and name the argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from sqlglot import exp

from braid.condition.duckdb_functions import BITS, CALLS, COMPARISONS, PARTS

Table = dict[type[exp.Expr], tuple[str, ...]]
"""Names of arguments by class of node."""
_ONE, _TWO, _LIST = ("this",), ("this", "expression"), ("this", "expressions")
_CHOICES = (exp.Coalesce, exp.Greatest, exp.Least)
_AGGREGATES = (exp.Count, exp.Min, exp.Max)

READ: Table = {
    **{kind: tuple(kind.arg_types)[: len(call.argument_types)] for kind, call in CALLS.items()},
    **dict.fromkeys((exp.And, exp.Or, *COMPARISONS), _TWO),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, *BITS), _TWO),
    **dict.fromkeys((exp.Not, exp.Neg, exp.Abs, exp.BitwiseNot, exp.Paren, exp.Boolean), _ONE),
    **dict.fromkeys((*PARTS, exp.UnixDate, exp.UnixMicros, exp.TsOrDsToDate, exp.Var), _ONE),
    **dict.fromkeys((exp.Is, exp.Like, exp.ILike, exp.Escape, exp.Nullif, exp.Extract), _TWO),
    **dict.fromkeys((*_CHOICES, exp.In, *_AGGREGATES), _LIST),
    **dict.fromkeys((exp.Sum, exp.Avg, exp.ArraySize, exp.ArrayCompact, exp.ArrayDistinct), _ONE),
    **dict.fromkeys((exp.ArrayContains, exp.ArrayExcept), _TWO),
    **dict.fromkeys((exp.Concat, exp.ArrayIntersect, exp.Distinct), ("expressions",)),
    exp.Null: (),
    exp.Column: ("this", "table", "db", "catalog"),
    exp.Identifier: ("this", "quoted"),
    exp.Literal: ("this", "is_string"),
    exp.Interval: ("this", "unit"),
    exp.Between: ("this", "low", "high", "symmetric"),
    exp.If: ("this", "true", "false"),
    exp.Case: ("this", "ifs", "default"),
    exp.Cast: ("this", "to"),
    exp.TryCast: ("this", "to", "safe"),
    exp.DataType: ("this", "expressions", "nested"),
    exp.IntervalSpan: _TWO,
    exp.DateDiff: ("this", "expression", "unit"),
    **dict.fromkeys((exp.TsOrDsAdd, exp.TimestampAdd, exp.TimestampDiff), (*_TWO, "unit")),
    exp.Ceil: ("this", "decimals", "to"),
    exp.Floor: ("this", "decimals", "to"),
    exp.Round: ("this", "decimals"),
    **dict.fromkeys((exp.MapKeys, exp.Upper, exp.Lower, exp.Trim), _ONE),
    **dict.fromkeys((exp.Dot, exp.RegexpLike, exp.BitwiseLeftShift, exp.BitwiseRightShift), _TWO),
    exp.Reduce: ("this", "initial", "merge"),
    exp.Bracket: ("this", "expressions", "offset", "safe"),
    exp.Anonymous: _LIST,
}
"""By class of node, the arguments that rules read: those of the compiler, of index conditions, of
sets, and of selections and aggregates of a hub.
"""
WRITTEN: Table = {
    **dict.fromkeys((exp.Any, exp.All, exp.DataTypeParam), _ONE),
    **dict.fromkeys((exp.Like, exp.ILike), (*_TWO, "negate")),
    exp.Trim: ("this", "expression", "position"),
    **dict.fromkeys((exp.Transform, exp.Log), _TWO),
    exp.StrPosition: ("this", "substr", "position"),
    exp.Lambda: _LIST,
    exp.Tuple: _LIST,
}
"""By class of nodes that only Spark evaluates, the arguments that are written back unchanged."""
CONSTANT: Mapping[tuple[type[exp.Expr], str], object] = {
    (exp.Concat, "safe"): True,
    (exp.DPipe, "safe"): True,
    (exp.Div, "safe"): True,
    (exp.Greatest, "ignore_nulls"): True,
    (exp.Least, "ignore_nulls"): True,
    (exp.TsOrDsToDate, "safe"): True,
    (exp.Count, "big_int"): True,
}
"""Values that sqlglot sets in each node of a class. With another value it is an argument that no
rule reads.
"""
_PARTS = (exp.DataType, exp.Identifier, exp.Var, exp.Distinct)
"""Nodes that have a meaning only inside their parent."""


_WORDS = {"negate": "NOT", "query": "a query"}
"""User's names of arguments, by name in the tree."""


class AsWritten(exp.Expression, exp.Condition):
    """A node that no rule looks into, because no rule reads its argument ``word``."""

    arg_types: ClassVar[Any] = {"this": True, "word": True}


def find_unread(node: exp.Expr, table: Table = READ) -> str | None:
    """Return the name of an argument that is set and that no rule reads.

    None: there is none, or the table lacks the node's class.
    """
    names = table.get(type(node))
    if names is None:
        return None
    return next((name for name in _list_set_arguments(node) if name not in names), None)


def has_supported_syntax(tree: exp.Expr) -> bool:
    """Return whether all of a tree is written back as it was read."""
    table = READ | WRITTEN
    nodes = (node for node in tree.walk() if not isinstance(node, AsWritten))
    return all(type(n) in table and find_unread(n, table) is None for n in nodes)


def _list_set_arguments(node: exp.Expr) -> Iterator[str]:
    """Yield the names of the arguments that are set."""
    for name, value in node.args.items():
        is_empty = value is None or value is False or (isinstance(value, list) and not value)
        constant = CONSTANT.get((type(node), name))
        if not is_empty and (constant is None or value != constant):
            yield name


def name_for_user(name: str) -> str:
    """Return the user's name of a node's argument."""
    return _WORDS.get(name, name.upper().strip("_"))


def keep_unread(tree: exp.Expr) -> exp.Expr:
    """Return the tree with each node that has an unread argument wrapped in AsWritten."""
    unread = [(node, word) for node in tree.walk() if (word := find_unread(node)) is not None]
    return _wrap_nodes(tree, unread)


def _wrap_nodes(tree: exp.Expr, unread: Iterable[tuple[exp.Expr, str]]) -> exp.Expr:
    for node, word in unread:
        expression = _find_expression(node)
        parent, key, index = expression.parent, expression.arg_key, expression.index
        if isinstance(parent, AsWritten):
            continue
        wrapper = AsWritten(this=expression, word=name_for_user(word))
        if parent is None:
            tree = wrapper
        else:
            parent.set(str(key), wrapper, index)
    return tree


def _find_expression(node: exp.Expr) -> exp.Expr:
    """Return the nearest enclosing node that is an expression by itself."""
    while node.parent is not None and (
        isinstance(node, _PARTS) or (isinstance(node, exp.If) and isinstance(node.parent, exp.Case))
    ):
        node = node.parent
    return node
