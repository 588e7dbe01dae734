"""Values of Spark SQL in Python, by Spark's ANSI rules.

Integers are exact and overflow with an error; decimals are ``decimal.Decimal``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, NamedTuple

import numpy as np

BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
EXACT = Context(prec=200)


class Unsupported(Exception):
    """An operator that is not evaluated here."""


class EvaluationError(Exception):
    """Spark raises an error for this row."""


class Typed(NamedTuple):
    """A value and Spark's name of its type; ``value`` is None for NULL."""

    type: str
    value: Any


# Numbers.


def bring_together(a: Typed, b: Typed) -> tuple[str, Any, Any]:
    """Return the common type of two values, and the values in it."""
    kinds = {a.type, b.type}
    if len(kinds) == 1:
        return a.type, a.value, b.value
    if kinds <= {*BITS}:
        return max(kinds, key=BITS.__getitem__), a.value, b.value
    if kinds <= {*BITS, "decimal"}:
        return "decimal", _decimal(a.value), _decimal(b.value)
    if kinds <= {*BITS, "decimal", "float", "double"}:
        return "double", _double(a.value), _double(b.value)
    if all(kind.startswith("struct<") for kind in kinds) and len({*map(_field_types, kinds)}) == 1:
        return a.type, a.value, b.value
    raise Unsupported(f"{a.type} and {b.type}")


def _field_types(kind: str) -> str:
    """Return a struct's type without the names of its fields."""
    return re.sub(r"\w+:", "", kind)


def _decimal(value: Any) -> Any:
    return value if value is None or isinstance(value, Decimal) else Decimal(value)


def _double(value: Any) -> Any:
    return None if value is None else float(value)


def fitted(kind: str, value: Any) -> Typed:
    """Return a number in a type. Raises EvaluationError on overflow."""
    if (
        kind in BITS
        and value is not None
        and not -(1 << BITS[kind] - 1) <= value < 1 << BITS[kind] - 1
    ):
        raise EvaluationError("ARITHMETIC_OVERFLOW")
    if kind == "float" and value is not None:
        value = float(np.float32(value))
    return Typed(kind, value)


def arithmetic(compute: Callable[[Any, Any], Any], exact: Callable[[Any, Any], Any]) -> Any:
    def rule(a: Typed, b: Typed) -> Typed:
        if b.type in BITS and a.type == "date":
            raise Unsupported("date arithmetic")
        kind, x, y = bring_together(a, b)
        if x is None or y is None:
            return Typed(kind, None)
        with np.errstate(all="ignore"):
            if kind == "float":
                return Typed(kind, float(compute(np.float32(x), np.float32(y))))
            if kind == "double":
                return Typed(kind, float(compute(np.float64(x), np.float64(y))))
        return fitted(kind, (exact if kind == "decimal" else compute)(x, y))

    return rule


def divide(a: Typed, b: Typed) -> Typed:
    if "decimal" in (a.type, b.type) and not {a.type, b.type} & {"float", "double"}:
        raise Unsupported("a quotient of decimals")
    x, y = _double(a.value), _double(b.value)
    if x is None or y is None:
        return Typed("double", None)
    if y == 0:
        raise EvaluationError("DIVIDE_BY_ZERO")
    with np.errstate(all="ignore"):
        return Typed("double", float(np.float64(x) / np.float64(y)))


def divide_whole(a: Typed, b: Typed) -> Typed:
    x, y = a.value, b.value
    if not {a.type, b.type} <= {*BITS}:
        raise Unsupported("div")
    if x is None or y is None:
        return Typed("bigint", None)
    if y == 0:
        raise EvaluationError("DIVIDE_BY_ZERO")
    quotient = abs(x) // abs(y)
    return fitted("bigint", quotient if (x < 0) == (y < 0) else -quotient)


def remainder(a: Typed, b: Typed) -> Typed:
    kind, x, y = bring_together(a, b)
    if kind not in BITS:
        raise Unsupported("%")
    if x is None or y is None:
        return Typed(kind, None)
    if y == 0:
        raise EvaluationError("DIVIDE_BY_ZERO")
    return Typed(
        kind, int(math.copysign(abs(x) % abs(y), x)) if abs(x) < 1 << 53 else _signed(x, y)
    )


def _signed(x: int, y: int) -> int:
    left = abs(x) % abs(y)
    return left if x >= 0 else -left


def negate(a: Typed) -> Typed:
    if a.type not in (*BITS, "decimal", "float", "double"):
        raise Unsupported("-")
    return a if a.value is None else fitted(a.type, -a.value)


def absolute(a: Typed) -> Typed:
    if a.type not in (*BITS, "decimal", "float", "double"):
        raise Unsupported("abs")
    return a if a.value is None else fitted(a.type, abs(a.value))


def round_to_whole(compute: Callable[[float], int]) -> Callable[[Typed], Typed]:
    """ceil or floor of a real."""

    def rule(a: Typed) -> Typed:
        if a.type not in ("float", "double"):
            raise Unsupported("ceil or floor")
        if a.value is None or math.isnan(a.value):
            return Typed("bigint", None if a.value is None else 0)
        if math.isinf(a.value):
            raise EvaluationError("ARITHMETIC_OVERFLOW")
        return fitted("bigint", compute(a.value))

    return rule


def round_half_up(a: Typed, digits: Typed) -> Typed:
    """round of a double, which Spark takes by the digits of its text."""
    if a.type != "double":
        raise Unsupported("round")
    if a.value is None or not math.isfinite(a.value):
        return a
    unit = Decimal(1).scaleb(-digits.value)
    found = Decimal(repr(a.value)).quantize(unit, ROUND_HALF_UP, Context(prec=400))
    return Typed("double", float(found))


def power(a: Typed, b: Typed) -> Typed:
    """A power as in Java, to which NaN as an exponent, and 1 to infinity, is NaN."""
    x, y = _double(a.value), _double(b.value)
    if x is None or y is None:
        return Typed("double", None)
    if math.isnan(y) or (abs(x) == 1 and math.isinf(y)):
        return Typed("double", math.nan)
    with np.errstate(all="ignore"):
        return Typed("double", float(np.float64(x) ** np.float64(y)))


def arc_tangent(a: Typed, b: Typed) -> Typed:
    """atan2, to which Spark passes no negative 0."""
    x, y = _double(a.value), _double(b.value)
    found = None if x is None or y is None else math.atan2(x + 0.0, y + 0.0)
    return Typed("double", found)


def bitwise(compute: Callable[[int, int], int]) -> Callable[[Typed, Typed], Typed]:
    def rule(a: Typed, b: Typed) -> Typed:
        kind, x, y = bring_together(a, b)
        if kind not in BITS:
            raise Unsupported("bits")
        return Typed(kind, None if x is None or y is None else compute(x, y))

    return rule


# Comparisons: NaN equals itself and is the largest, NULL is unknown.


def order_values(x: Any, y: Any) -> int:
    if isinstance(x, dict):  # Spark compares the fields of structs by position
        return order_values([*x.values()], [*y.values()])
    if isinstance(x, list):
        orders = (_order_of_items(*pair) for pair in zip(x, y, strict=False))
        return next((order for order in orders if order), int(len(x) > len(y)) - (len(x) < len(y)))
    if isinstance(x, float):
        x, y = (math.isnan(x), x), (math.isnan(y), y)
        if x[0] or y[0]:
            return x[0] - y[0]
    if isinstance(x, str):
        x, y = x.encode(), y.encode()
    return int(x > y) - int(x < y)


def _order_of_items(x: Any, y: Any) -> int:
    """Return the order of elements, for which NULL is a value: the smallest."""
    if x is None or y is None:
        return int(x is not None) - int(y is not None)
    return order_values(x, y)


def compare(a: Typed, b: Typed) -> int | None:
    """Return -1, 0 or 1; None if one is NULL."""
    _, x, y = bring_together(a, b)
    return None if x is None or y is None else order_values(x, y)


def comparison(holds: Callable[[int], bool]) -> Callable[[Typed, Typed], Typed]:
    def rule(a: Typed, b: Typed) -> Typed:
        found = compare(a, b)
        return Typed("boolean", None if found is None else holds(found))

    return rule


def is_same(a: Typed, b: Typed) -> bool:
    found = compare(a, b)
    return a.value is None and b.value is None if found is None else found == 0


def negate_truth(a: Typed) -> Typed:
    return Typed("boolean", None if a.value is None else not a.value)


def find_in(a: Typed, *options: Typed) -> Typed:
    found = [compare(a, o) for o in options]
    return Typed("boolean", True if 0 in found else None if None in found else False)
