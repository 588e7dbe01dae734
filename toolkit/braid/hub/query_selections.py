"""Convert Spark SQL over one stream to a selection.

Comparisons of a column with a literal become domains; all other conditions are opaque.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from fractions import Fraction
from typing import Any

from sqlglot import exp

from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import INTEGRAL, REAL, SqlType
from braid.papers.reuse.selections import (
    NULL,
    SOME,
    ColumnDomain,
    Conjunction,
    OpaqueCondition,
    Selection,
    intersect_selections,
    make_interval,
    make_value_set,
    union_selections,
)
from braid.util.validation import read_natural

Types = Mapping[str, SqlType]
"""Types of a stream's columns by name."""

_DIGITS = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_FLOAT = 2**24
"""Spark may round a whole number beyond this to compare it with a float."""
_EXACT = 18
"""Most digits of decimals that Spark compares without rounding."""

_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DOMAINS: dict[str, Callable[[Any], ColumnDomain]] = {
    "=": lambda v: make_value_set(v),
    "<>": lambda v: ColumnDomain(excluded=frozenset([v])),
    "<": lambda v: make_interval(most=(v, False)),
    "<=": lambda v: make_interval(most=(v, True)),
    ">": lambda v: make_interval((v, False)),
    ">=": lambda v: make_interval((v, True)),
}


def parse_selection(tree: exp.Expr, types: Types) -> Selection:
    """Return the selection of a condition over one stream's columns, which are named exactly."""
    selection = _parse_tree(tree, types, False)
    return _make_opaque_selection(tree, False) if selection is None else selection


def _parse_tree(tree: exp.Expr, types: Types, negated: bool) -> Selection | None:
    """Return the selection of a tree; None if it has too many boxes.

    NOT is pushed down to the comparisons, which keeps the tuples for which the condition is TRUE.
    """
    tree = tree.unnest()
    if isinstance(tree, exp.Not):
        return _parse_tree(tree.this, types, not negated)
    if isinstance(tree, (exp.And, exp.Or)):
        p = _parse_tree(tree.this, types, negated)
        q = _parse_tree(tree.expression, types, negated)
        if p is None or q is None:
            return None
        return (
            intersect_selections(p, q)
            if isinstance(tree, exp.And) != negated
            else union_selections([p, q])
        )
    if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        low = exp.GTE(this=tree.this, expression=tree.args["low"])
        high = exp.LTE(this=tree.this, expression=tree.args["high"])
        return _parse_tree(exp.And(this=low, expression=high), types, negated)
    return _parse_atom(tree, types, negated)


def _parse_atom(tree: exp.Expr, types: Types, negated: bool) -> Selection:
    if type(tree) in _SIGNS:
        atom = _parse_comparison(tree, types, negated)
    elif isinstance(tree, exp.In):
        atom = _parse_in_list(tree, types, negated)
    elif isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
        plain = isinstance(tree.this, exp.Column)
        atom = (tree.this.name, SOME if negated else NULL) if plain else None
    else:
        atom = None
    if atom is None:
        return _make_opaque_selection(tree, negated)
    column, domain = atom
    return Selection.make([] if domain.is_empty else [Conjunction.make({column: domain})])


def _parse_comparison(
    tree: exp.Expr, types: Types, negated: bool
) -> tuple[str, ColumnDomain] | None:
    sign, left, right = _SIGNS[type(tree)], tree.this.unnest(), tree.expression.unnest()
    if not isinstance(left, exp.Column):
        sign, left, right = _TURNED[sign], right, left
    value = _parse_literal(left, right, types)
    if value is None:
        return None
    return left.name, _DOMAINS[_NEGATED[sign] if negated else sign](value)


def _parse_in_list(tree: exp.In, types: Types, negated: bool) -> tuple[str, ColumnDomain] | None:
    column = tree.this.unnest()
    values = [_parse_literal(column, item.unnest(), types) for item in tree.expressions]
    if not values or None in values:
        return None
    return column.name, ColumnDomain(excluded=frozenset(values)) if negated else make_value_set(
        *values
    )


def _parse_literal(column: exp.Expr, literal: exp.Expr, types: Types) -> Any:
    """Return the value of a literal that is compared with a column, in the column's order.

    None if Spark compares in another way, or may do so.
    """
    if not isinstance(column, exp.Column) or isinstance(column.parent, exp.Dot):
        return None
    kind = types.get(column.name)
    if kind is None:
        return None
    if isinstance(literal, exp.Literal) and literal.is_string:
        if kind.name == "string":
            return literal.this
        return literal.this if kind.name == "date" and _is_day(literal.this) else None
    if isinstance(literal, exp.Cast) and literal.to.this == exp.DataType.Type.DATE:
        day = literal.this
        is_day = isinstance(day, exp.Literal) and _is_day(day.this)
        return day.this if kind.name == "date" and is_day else None
    return _parse_number(literal, kind)


def _is_day(text: str) -> bool:
    """Return whether a text is a calendar day: Spark turns any other into NULL or an error."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return bool(_DAY.fullmatch(text))


def _parse_number(literal: exp.Expr, sql_type: SqlType) -> Any:
    sign = 1
    if isinstance(literal, exp.Neg):
        sign, literal = -1, literal.this
    if not isinstance(literal, exp.Literal) or not _DIGITS.fullmatch(literal.this):
        return None
    if sql_type.name in REAL:
        is_large_integer = (
            read_natural(literal.this, most=_FLOAT) is None and "." not in literal.this
        )
        return None if is_large_integer and sql_type.name == "float" else sign * float(literal.this)
    if sql_type.name in INTEGRAL or sql_type.name == "decimal":
        if len(literal.this) > _EXACT or sql_type.precision > _EXACT:
            return None
        value = sign * Fraction(literal.this)
        return int(value) if value.denominator == 1 else value
    return None


def _make_opaque_selection(tree: exp.Expr, negated: bool) -> Selection:
    text = tree.sql(dialect=SparkSql)
    columns = tuple(sorted({c.name for c in tree.find_all(exp.Column)}))
    return Selection.make(
        [Conjunction.make({}, [OpaqueCondition(f"NOT ({text})" if negated else text, columns)])]
    )
