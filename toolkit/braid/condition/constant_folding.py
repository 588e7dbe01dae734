"""Fold TRUE, FALSE and NULL in a condition, as Spark's optimizer does.

A part that a constant decides is not evaluated, so it cannot fail. Spark's rules are
BooleanSimplification, SimplifyConditionals and ReplaceNullWithFalseInPredicate. Only operands of
AND, OR, NOT, if and CASE that are conditions themselves are folded: the type of another value
depends on all branches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

_CONSTANTS = (exp.Boolean, exp.Null)


def fold_constants(tree: exp.Expr) -> exp.Expr:
    """Return the condition of a join, which NULL satisfies no more than FALSE does."""
    return _fold_boolean_node(tree, True)


def _fold_boolean_node(node: exp.Expr, is_filter: bool) -> exp.Expr:
    """Return a folded boolean; with ``is_filter`` NULL is replaced by FALSE."""
    if isinstance(node, exp.Null) and is_filter:
        return exp.false()
    rule = _RULES.get(type(node))
    if rule is None or node.find(*_CONSTANTS) is None:
        return node
    return rule(node, is_filter)


def _enclose_in_parentheses(node: exp.Expr) -> exp.Expr:
    is_enclosed = isinstance(node, (*_CONSTANTS, exp.Paren))
    return node if is_enclosed else exp.paren(node, copy=False)


def _fold_parenthesis(node: exp.Paren, is_filter: bool) -> exp.Expr:
    return _enclose_in_parentheses(_fold_boolean_node(node.this, is_filter))


def _fold_and_or(node: Any, is_filter: bool) -> exp.Expr:
    left, right = (_fold_boolean_node(side, is_filter) for side in (node.this, node.expression))
    deciding = isinstance(node, exp.Or)
    for side, other in ((left, right), (right, left)):
        if isinstance(side, exp.Boolean):
            return side if side.this is deciding else other
    rest: exp.Expr = type(node)(this=left, expression=right)
    return rest


def _fold_negation(node: exp.Not, is_filter: bool) -> exp.Expr:
    inner = _fold_boolean_node(node.this, False)
    if isinstance(inner, exp.Boolean):
        return exp.false() if inner.this else exp.true()
    if isinstance(inner, exp.Null):
        return _fold_boolean_node(inner, is_filter)
    return exp.Not(this=inner)


def _fold_if_or_case(node: exp.If | exp.Case, is_filter: bool) -> exp.Expr:
    """Return if or CASE without the branches that are never reached."""
    if isinstance(node, exp.If):
        ifs, default = [node], node.args.get("false")
    elif node.this is None:
        ifs, default = node.args["ifs"], node.args.get("default")
    else:
        return node
    branches = []
    for branch in ifs:
        condition = _fold_boolean_node(branch.this, True)
        if isinstance(condition, exp.Boolean) and not condition.this:
            continue
        value = _fold_boolean_node(branch.args["true"], is_filter)
        if isinstance(condition, exp.Boolean):
            default = value
            break
        branches.append(exp.If(this=condition, true=value))
    last = _fold_boolean_node(exp.Null() if default is None else default, is_filter)
    return exp.Case(ifs=branches, default=last) if branches else _enclose_in_parentheses(last)


_RULES: Mapping[type[exp.Expr], Callable[[Any, bool], exp.Expr]] = {
    exp.Paren: _fold_parenthesis,
    exp.And: _fold_and_or,
    exp.Or: _fold_and_or,
    exp.Not: _fold_negation,
    exp.If: _fold_if_or_case,
    exp.Case: _fold_if_or_case,
}
