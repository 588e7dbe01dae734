"""Conditions on common elements of two arrays in Spark SQL, reduced to one measure.

The measure is the number of distinct common elements.

| meaning | Spark SQL |
|---|---|
| overlap | ``size(array_intersect(X, Y)) >= c``, also ``cardinality`` and ``array_size`` |
| any common element | ``arrays_overlap(X, Y)`` |
| X within Y | ``size(array_except(X, Y)) = 0`` |
| Jaccard | ``size(array_intersect(X, Y)) / size(array_union(X, Y)) >= q`` |
| inner product of maps from elements to weights | the text of ``inner_product(X, Y)``, ``>= q`` |

X and Y are expressions over one stream each. Equality is ``array_sort(array_distinct(X)) =
array_sort(array_distinct(Y))`` and needs no measure. As in Spark, NULL is an element that equals
NULL, except in ``arrays_overlap``. A NULL array matches nothing, unless Spark is set to return -1
for its size (not ``array_size``).

Source of the five predicates: Gedik 2007, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlglot
from sqlglot import exp

from braid.condition.residual_predicate import Function
from braid.condition.spark_dialect import SparkSql
from braid.errors import PredicateError

OVERLAP = "set_overlap"
"""Name of the measure between parsing and evaluation."""
INNER = "set_inner"
"""Name of the measure of maps."""
MEASURES: dict[str, Function] = {OVERLAP: "set_overlap", INNER: "set_inner"}
_EXACT = ("tinyint", "smallint", "int", "bigint")
_ELEMENTS = (*_EXACT, "string", "binary", "boolean", "date", "timestamp", "timestamp_ntz")

Streams = Callable[[exp.Expr], set[Any]]
"""A function that returns the streams that an expression names, by number or alias."""


def inner_product(x: str, y: str) -> str:
    """Return Spark SQL for the inner product of two maps from elements to weights.

    It sums, over the keys of ``x``, its weight times that of ``y``, or 0 if ``y`` lacks the key. A
    join recognizes the product by this text.

    >>> inner_product("a.w", "b.w")
    'aggregate(map_keys(a.w), 0D, (s, e) -> s + a.w[e] * coalesce(try_element_at(b.w, e), 0D))'
    """
    return (
        f"aggregate(map_keys({x}), 0D, (s, e) -> s + {x}[e] * coalesce(try_element_at({y}, e), 0D))"
    )


def _match_inner_product(node: exp.Expr | None) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the maps of an inner product; None for any other node."""
    if not isinstance(node, exp.Reduce) or not isinstance(node.this, exp.MapKeys):
        return None
    looked = next((b for b in node.find_all(exp.Bracket) if b.args.get("safe")), None)
    if looked is None:
        return None
    x, y = node.this.this, looked.this
    text = inner_product(x.sql(dialect=SparkSql), y.sql(dialect=SparkSql))
    return (x, y) if sqlglot.parse_one(text, dialect=SparkSql) == node else None


def rewrite_to_overlap(node: exp.Expr, streams: Streams, sized_null: bool = False) -> exp.Expr:
    """Return the expression with conditions on two streams' arrays rewritten to OVERLAP.

    ``sized_null``: the size of a NULL array is -1; its ``array_size`` is NULL.
    """
    return node.transform(lambda n: _rewrite_node_to_overlap(n, streams, sized_null))


def _rewrite_node_to_overlap(node: exp.Expr, streams: Streams, sized_null: bool) -> exp.Expr:
    if is_call_to(node, "arrays_overlap"):
        x, y = node.expressions
        return _make_any_common(x, y) if _are_from_two_streams(x, y, streams) else node
    if (maps := _match_inner_product(node)) is not None and _are_from_two_streams(*maps, streams):
        return exp.Anonymous(this=INNER, expressions=[side.copy() for side in maps])
    operation = _match_set_operation(size_argument(node))
    if operation is None or not _are_from_two_streams(*operation[1:], streams):
        return node
    function, x, y = operation
    size = _overlap_call(x, y)
    if function == "except":
        size = exp.paren(exp.Sub(this=_count_distinct_call(x), expression=size))
    if function == "union":
        both = exp.Add(this=_count_distinct_call(x), expression=_count_distinct_call(y))
        size = exp.paren(exp.Sub(this=both, expression=size))
    if sized_null and not is_call_to(node, "array_size"):
        return exp.Coalesce(this=size, expressions=[exp.Neg(this=exp.Literal.number(1))])
    return size


def is_call_to(node: exp.Expr | None, function: str) -> bool:
    """Return whether the node calls this function, for functions that sqlglot has no class for."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == function


def _match_set_operation(node: exp.Expr | None) -> tuple[str, exp.Expr, exp.Expr] | None:
    """Return the set operation and its two arrays; None for any other node."""
    if isinstance(node, exp.ArrayIntersect) and len(node.expressions) == 2:
        return "intersect", *node.expressions
    if isinstance(node, exp.ArrayExcept):
        return "except", node.this, node.expression
    return ("union", *node.expressions) if is_call_to(node, "array_union") and node else None


def size_argument(node: exp.Expr) -> exp.Expr | None:
    """Return the argument of a size function; None for any other node."""
    inner: exp.Expr | None = None
    if isinstance(node, exp.ArraySize):
        inner = node.this
    if is_call_to(node, "cardinality") or is_call_to(node, "array_size"):
        inner = node.expressions[0]
    return inner


def _are_from_two_streams(x: exp.Expr, y: exp.Expr, streams: Streams) -> bool:
    return len(streams(x)) == len(streams(y)) == 1 and streams(x) != streams(y)


def _overlap_call(x: exp.Expr, y: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=OVERLAP, expressions=[x.copy(), y.copy()])


def _count_distinct_call(x: exp.Expr) -> exp.Expr:
    return _array_size_call(exp.ArrayDistinct(this=x.copy()))


def _make_any_common(x: exp.Expr, y: exp.Expr) -> exp.Expr:
    """Return the condition for any common element.

    It is unknown if a NULL may be the common element.
    """
    common = exp.GTE(
        this=_overlap_call(_drop_nulls_call(x), _drop_nulls_call(y)),
        expression=exp.Literal.number(1),
    )
    missing = (exp.Is(this=each.copy(), expression=exp.null()) for each in (x, y))
    unknown = exp.or_(*missing, _make_null_test(x, y), _make_null_test(y, x))
    whens = [exp.If(this=common, true=exp.true()), exp.If(this=unknown, true=exp.null())]
    return exp.paren(exp.Case(ifs=whens, default=exp.false()))


def _drop_nulls_call(x: exp.Expr) -> exp.Expr:
    """Return the array without NULL."""
    return exp.func("array_compact", x.copy(), dialect=SparkSql)


def _make_null_test(x: exp.Expr, y: exp.Expr) -> exp.Expr:
    """Return the condition that x contains NULL and y is not empty."""
    has_null = exp.GT(this=_array_size_call(x), expression=_array_size_call(_drop_nulls_call(x)))
    return exp.and_(has_null, exp.GT(this=_array_size_call(y), expression=exp.Literal.number(0)))


def _array_size_call(x: exp.Expr) -> exp.Expr:
    """Return the size, which is NULL for a NULL array under any setting."""
    return exp.Anonymous(this="array_size", expressions=[x.copy()])


def min_common_elements(
    node: exp.Expr, streams: Streams, sized_null: bool = False
) -> tuple[exp.Expr, exp.Expr, int, bool] | None:
    """Return (X, Y, c, exact) of a conjunct that requires c >= 1 common elements.

    Return None for any other.

    ``exact``: the conjunct holds for all such pairs. ``sized_null`` as above; then -1 / -1 may
    satisfy it.
    """
    if is_call_to(node, "arrays_overlap"):
        x, y = map(_drop_nulls_call, node.expressions)
        return (x, y, 1, True) if _are_from_two_streams(x, y, streams) else None
    mirrored = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ}
    op, left, right = type(node), node.args.get("this"), node.args.get("expression")
    if op not in mirrored or left is None or right is None:
        return None
    if isinstance(left, exp.Literal):
        op, left, right = mirrored[op], right, left
    if not isinstance(right, exp.Literal) or right.is_string or op not in (exp.GT, exp.GTE, exp.EQ):
        return None
    bound = float(right.name)
    if (maps := _match_inner_product(left)) is not None:
        needs = (bound > 0 or op is exp.GT) and _are_from_two_streams(*maps, streams)
        return (*maps, 1, False) if needs else None
    pair = size_argument(left)
    if isinstance(left, exp.Div) and bound >= 0 and (op is exp.GT or bound > 0) and not sized_null:
        pair, op, bound = size_argument(left.this), exp.GT, 0.0
        exact = False
    else:
        exact = op is not exp.EQ
    if not isinstance(pair, exp.ArrayIntersect) or len(pair.expressions) != 2:
        return None
    x, y = pair.expressions
    count = int(bound) + 1 if op is exp.GT or bound != int(bound) else int(bound)
    return (x, y, count, exact) if count >= 1 and _are_from_two_streams(x, y, streams) else None


def check_element_types(kinds: tuple[str, str], text: str) -> None:
    """Raise PredicateError unless the elements of two arrays can be compared exactly.

    ``kinds`` are Spark's names of the arrays' types.
    """
    if all(k.startswith("map<") for k in kinds):
        return _check_maps(kinds, text)
    element_types = [k.removeprefix("array<").removesuffix(">") for k in kinds]
    alike = element_types[0] == element_types[1] or all(k in _EXACT for k in element_types)
    if not alike or any(k not in _ELEMENTS and not k.startswith("decimal") for k in element_types):
        raise PredicateError(
            f"{text!r} in the join condition compares elements of type {element_types[0]} with "
            f"{element_types[1]}; both must be integers, or of one type: string, binary, boolean, "
            "date, timestamp or decimal"
        )


def _check_maps(kinds: tuple[str, str], text: str) -> None:
    parts = [k.removeprefix("map<").removesuffix(">").rpartition(",") for k in kinds]
    keys, weights = [p[0] for p in parts], {p[2].strip() for p in parts}
    check_element_types((f"array<{keys[0]}>", f"array<{keys[1]}>"), text)
    if not weights <= {*_EXACT, "float", "double"}:
        raise PredicateError(
            f"{text!r} in the join condition multiplies weights of type "
            f"{' and '.join(sorted(weights))}; they must be integers, floats or doubles"
        )
