"""Conditions evaluated in Python, row by row, by Spark's rules (ANSI, UTC).

Integers are exact and overflow with an error; decimals are ``decimal.Decimal``. It shares no code
with Braid.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np

from fuzz.cases import Case, Tree
from fuzz.column_types import column_type, to_python
from fuzz.outcomes import UNKNOWN, Truth
from fuzz.spark_values import (
    BITS,
    EXACT,
    EvaluationError,
    Typed,
    Unsupported,
    absolute,
    arc_tangent,
    arithmetic,
    bitwise,
    bring_together,
    comparison,
    divide,
    divide_whole,
    find_in,
    is_same,
    negate,
    negate_truth,
    order_values,
    power,
    remainder,
    round_half_up,
    round_to_whole,
)

Row = Mapping[str, Mapping[str, Typed]]
"""Columns by alias and name."""


def evaluate(tree: Tree, row: Row) -> Typed:
    """Return the value of a tree.

    Raises EvaluationError if Spark would, and Unsupported for an operator without a rule.
    """
    name, *operands = tree
    if name == "col":
        return row[operands[0]][operands[1]]
    if name == "lit":
        return _literal(operands[0])
    if name in _LAZY:
        return _LAZY[name](operands, row)
    if name not in _RULES:
        raise Unsupported(name)
    if name in _ARITHMETIC and (after := _after_null_operand(name, operands, row)) is not None:
        return after
    return _RULES[name](*(evaluate(o, row) for o in operands))


def _after_null_operand(name: str, operands: list[Tree], row: Row) -> Typed | None:
    """Return NULL if the left side is NULL and the right one fails: Spark skips it."""
    left = evaluate(operands[0], row)
    try:
        if left.value is None:
            evaluate(operands[1], row)
    except EvaluationError:
        return Typed("boolean" if name in _DISTANCES else left.type, None)
    return None


def _literal(text: str) -> Typed:
    if text in ("true", "false", "NULL"):
        return Typed("boolean", {"true": True, "false": False, "NULL": None}[text])
    if re.fullmatch(r"-?\d+", text):
        return Typed("int" if abs(int(text)) < 1 << 31 else "bigint", int(text))
    if re.fullmatch(r"-?\d*\.\d+", text):
        return Typed("decimal", Decimal(text))
    if re.fullmatch(r"-?[\d.]+(D|e\d+)", text):
        return Typed("double", float(text.rstrip("D")))
    if re.fullmatch(r"'[^'\\]*'", text):
        return Typed("string", text[1:-1])
    if found := re.fullmatch(r"DATE '(.*)'", text):
        return Typed("date", date.fromisoformat(found[1]))
    if found := re.fullmatch(r"X'(.*)'", text):
        return Typed("binary", bytes.fromhex(found[1]))
    raise Unsupported(text)


# What is not evaluated where what stands before it decides.


def _fold_constant(tree: Tree) -> bool | None:
    """Return the truth of a condition that Spark's optimizer replaces by a constant; else None."""
    name, *operands = tree
    if name == "lit":
        return {"true": True, "false": False}.get(operands[0])
    if name in ("and", "or"):
        sides, deciding = [*map(_fold_constant, operands)], name == "or"
        if deciding in sides:
            return deciding
        return None if None in sides else not deciding
    if name in ("not", "bang"):
        inner = _fold_constant(operands[0])
        return None if inner is None else not inner
    if name in ("if", "case") and (chosen := _fold_constant(operands[0])) is not None:
        return _fold_constant(operands[1 if chosen else 2])
    return None


def _after_null(left: Tree, right: Tree, row: Row) -> bool | None:
    """Return the value of the side after one that does not decide.

    Where NULL counts as FALSE, Spark's optimizer drops what follows a literal NULL.
    """
    try:
        found: bool | None = evaluate(right, row).value
        return found
    except EvaluationError:
        if left == ["lit", "NULL"]:
            raise Unsupported("an error after NULL") from None
        raise


def _both(operands: list[Tree], row: Row) -> Typed:
    if _fold_constant(operands[1]) is False:
        return Typed("boolean", False)
    left = evaluate(operands[0], row).value
    if left is False:
        return Typed("boolean", False)
    right = _after_null(*operands, row)
    return Typed("boolean", False if right is False else None if None in (left, right) else True)


def _either(operands: list[Tree], row: Row) -> Typed:
    if _fold_constant(operands[1]) is True:
        return Typed("boolean", True)
    left = evaluate(operands[0], row).value
    if left is True:
        return Typed("boolean", True)
    right = _after_null(*operands, row)
    return Typed("boolean", True if right is True else None if None in (left, right) else False)


def _between(operands: list[Tree], row: Row) -> Typed:
    return _both([["ge", *operands[:2]], ["le", operands[0], operands[2]]], row)


def _choice(operands: list[Tree], row: Row) -> Typed:
    """Return the type of all branches; only branches of one type are evaluated here."""
    kinds = {_static(o, row) for o in operands[1:]}
    if len(kinds) > 1:
        raise Unsupported("branches of several types")
    chosen = evaluate(operands[0], row).value is True
    rest = operands[1 if chosen else 2 :]
    return evaluate(rest[0], row) if rest else Typed(kinds.pop(), None)


def _coalesce(operands: list[Tree], row: Row) -> Typed:
    kinds = {_static(o, row) for o in operands}
    if len(kinds) > 1:
        raise Unsupported("operands of several types")
    found = [evaluate(operands[0], row)]
    return found[0] if found[0].value is not None else evaluate(operands[1], row)


def _static(tree: Tree, row: Row) -> str:
    """Return the type of a leaf; only leaves are branches here."""
    if tree[0] not in ("col", "lit"):
        raise Unsupported("a branch that is computed")
    return evaluate(tree, row).type


def _extreme(sign: int) -> Callable[[Typed, Typed], Typed]:
    def rule(a: Typed, b: Typed) -> Typed:
        kind, x, y = bring_together(a, b)
        if x is None or y is None:
            return Typed(kind, y if x is None else x)
        return Typed(kind, x if order_values(x, y) * sign >= 0 else y)

    return rule


# Text.


def _text(kind: str, compute: Callable[..., Any]) -> Callable[..., Typed]:
    """Return a function of texts that is NULL if one of them is."""

    def rule(*given: Typed) -> Typed:
        values = [g.value for g in given]
        return Typed(kind, None if None in values else compute(*values))

    return rule


def matches(text: str, pattern: str, escape: str = "\\") -> bool:
    """Return whether a text is LIKE a pattern. Raises EvaluationError for an invalid escape."""
    made, place = "", 0
    while place < len(pattern):
        letter = pattern[place]
        if letter == escape:
            place += 1
            if place == len(pattern) or pattern[place] not in ("%", "_", escape):
                raise EvaluationError("INVALID_FORMAT")
            made += re.escape(pattern[place])
        else:
            made += {"%": ".*", "_": "."}.get(letter) or re.escape(letter)
        place += 1
    return re.fullmatch(made, text, re.DOTALL) is not None


def _truncated(count: Any) -> int:
    """Return a number as the count of characters that Spark makes of it."""
    if not math.isfinite(count):
        raise EvaluationError("CAST_OVERFLOW")
    return int(count)


def _ending(text: str, count: int) -> str:
    return text[len(text) - count if count < len(text) else 0 :] if count > 0 else ""


def _day(a: Typed, days: int) -> Typed:
    try:
        return Typed("date", a.value + timedelta(days=days))
    except OverflowError:
        raise Unsupported("a date beyond the calendar") from None


def _date_moved(sign: int) -> Callable[[Typed, Typed], Typed]:
    def rule(a: Typed, b: Typed) -> Typed:
        if a.value is None or b.value is None:
            return Typed("date", None)
        return _day(a, sign * b.value)

    return rule


_LAZY: dict[str, Callable[[list[Tree], Row], Typed]] = {
    "and": _both,
    "or": _either,
    "between": _between,
    "not_between": lambda o, row: negate_truth(_between(o, row)),
    "if": _choice,
    "case": _choice,
    "case_open": _choice,
    "coalesce": _coalesce,
    "ifnull": _coalesce,
    "nvl": _coalesce,
}
_EQ, _LT, _GE = (comparison(h) for h in (lambda c: c == 0, lambda c: c < 0, lambda c: c >= 0))
_NE, _LE, _GT = (comparison(h) for h in (lambda c: c != 0, lambda c: c <= 0, lambda c: c > 0))
_ADD = arithmetic(lambda x, y: x + y, EXACT.add)
_SUBTRACT = arithmetic(lambda x, y: x - y, EXACT.subtract)
_MULTIPLY = arithmetic(lambda x, y: x * y, EXACT.multiply)
_LIKE = _text("boolean", matches)
_LIKE_ESCAPE = _text("boolean", lambda text, pattern: matches(text, pattern, "!"))
_RULES: dict[str, Callable[..., Typed]] = {
    **dict.fromkeys(("not", "bang"), negate_truth),
    **dict.fromkeys(("eq", "eq_numbers", "eqeq"), _EQ),
    **dict.fromkeys(("ne", "bang_eq"), _NE),
    **dict.fromkeys(("lt", "lt_numbers"), _LT),
    "le": _LE,
    "gt": _GT,
    **dict.fromkeys(("ge", "ge_numbers"), _GE),
    **dict.fromkeys(("null_eq", "not_distinct"), lambda a, b: Typed("boolean", is_same(a, b))),
    "distinct": lambda a, b: Typed("boolean", not is_same(a, b)),
    "is_null": lambda a: Typed("boolean", a.value is None),
    "is_not_null": lambda a: Typed("boolean", a.value is not None),
    "is_true": lambda a: Typed("boolean", a.value is True),
    "is_not_true": lambda a: Typed("boolean", a.value is not True),
    "is_false": lambda a: Typed("boolean", a.value is False),
    "is_not_false": lambda a: Typed("boolean", a.value is not False),
    "is_unknown": lambda a: Typed("boolean", a.value is None),
    "in": find_in,
    "not_in": lambda *given: negate_truth(find_in(*given)),
    "within": lambda a, b, c: _LE(absolute(_SUBTRACT(a, b)), c),
    "within_real": lambda a, b, c: _LT(absolute(_SUBTRACT(a, b)), c),
    "farther": lambda a, b, c: _GT(absolute(_SUBTRACT(a, b)), c),
    "isnan": lambda a: Typed("boolean", a.value is not None and math.isnan(a.value)),
    **dict.fromkeys(("add", "add_real", "add_decimal"), _ADD),
    **dict.fromkeys(("subtract", "subtract_real", "subtract_decimal"), _SUBTRACT),
    **dict.fromkeys(("multiply", "multiply_real", "multiply_decimal"), _MULTIPLY),
    **dict.fromkeys(("divide", "divide_real"), divide),
    "div": divide_whole,
    **dict.fromkeys(("mod", "mod_call"), remainder),
    **dict.fromkeys(("negate", "negate_real", "negate_decimal"), negate),
    **dict.fromkeys(("abs", "abs_real", "abs_decimal"), absolute),
    "plus": lambda a: a,
    "ceil": round_to_whole(math.ceil),
    "floor": round_to_whole(math.floor),
    "round": round_half_up,
    "bit_and": bitwise(lambda x, y: x & y),
    "bit_or": bitwise(lambda x, y: x | y),
    "bit_xor": bitwise(lambda x, y: x ^ y),
    "bit_not": lambda a: Typed(a.type, None if a.value is None else ~a.value),
    "greatest": _extreme(1),
    "least": _extreme(-1),
    "like": _LIKE,
    "not_like": lambda a, b: negate_truth(_LIKE(a, b)),
    "like_escape": _LIKE_ESCAPE,
    "not_like_escape": lambda a, b: negate_truth(_LIKE_ESCAPE(a, b)),
    "startswith": _text("boolean", str.startswith),
    "endswith": _text("boolean", str.endswith),
    "contains": _text("boolean", lambda a, b: b in a),
    "length": _text("int", len),
    "position": _text("int", lambda a, b: a.find(b) + 1),
    **dict.fromkeys(("concat", "pipes"), _text("string", lambda a, b: a + b)),
    "left": _text("string", lambda a, n: a[: max(_truncated(n), 0)]),
    "right": _text("string", lambda a, n: _ending(a, _truncated(n))),
    "power": power,
    "power_of": power,
    "atan2": arc_tangent,
    **dict.fromkeys(("eq_arrays", "eq_structs", "eq_pairs"), _EQ),
    **dict.fromkeys(
        ("null_eq_texts", "null_eq_pairs"), lambda a, b: Typed("boolean", is_same(a, b))
    ),
    **dict.fromkeys(("field", "field_apart"), _text("int", lambda struct: struct["k"])),
    "required_field": _text("int", lambda struct: struct["id"]),
    "field_text": _text("string", lambda struct: struct["s"]),
    "replace": _text("string", lambda a: a.replace("a", "b")),
    "size": _text("int", len),
    "year": _text("int", lambda d: d.year),
    "unix_date": _text("int", lambda d: (d - date(1970, 1, 1)).days),
    "datediff": _text("int", lambda later, earlier: (later - earlier).days),
    "date_plus": _date_moved(1),
    "date_minus": _date_moved(-1),
}
"""Evaluation rules by the operator's name."""


_MOST_DIGITS = 38
"""Maximum digits of a decimal in Spark."""
_DISTANCES = {"within", "within_real", "farther"}
_ARITHMETIC = {
    f"{operation}{kind}"
    for operation in ("add", "subtract", "multiply")
    for kind in ("", "_real", "_decimal")
} | _DISTANCES


def supports(tree: Tree) -> bool:
    """Return whether every operator of a tree has a rule."""
    if tree[0] in ("col", "lit"):
        return True
    return (tree[0] in _RULES or tree[0] in _LAZY) and all(
        supports(o) for o in tree[1:] if isinstance(o, list)
    )


def conjuncts(tree: Tree) -> list[Tree]:
    """Return the conditions that AND combines at the top."""
    if tree[0] == "and":
        return [*conjuncts(tree[1]), *conjuncts(tree[2])]
    if tree[0] == "between":
        return [["ge", tree[1], tree[2]], ["le", tree[1], tree[3]]]
    return [tree]


def _value(tree: Tree, row: Row) -> bool | EvaluationError | None:
    try:
        found: bool | None = evaluate(tree, row).value
        return found
    except EvaluationError as error:
        return error


def combine_truths(
    found: list[list[bool | EvaluationError | None]], keys: list[tuple[int, ...]]
) -> Truth:
    """Return the truth that follows from the value of each conjunct for each row."""
    rows: Counter[tuple[int, ...]] = Counter()
    may_fail = must_fail = False
    for key, values in zip(keys, found, strict=True):
        errors = [v for v in values if isinstance(v, EvaluationError)]
        others = [v for v in values if not isinstance(v, EvaluationError)]
        may_fail |= bool(errors)
        must_fail |= bool(errors) and all(others)
        if not errors and all(others):
            rows[key] += 1
    return Truth(rows, may_fail, must_fail)


def _is_rounded(case: Case, tree: Tree) -> bool:
    """Return whether Spark may round decimals because they have more digits than its maximum.

    Compared operands get the most digits of any of them, results of arithmetic at most the sum.
    """
    digits = [found for leaf in _leaves(tree) if (found := _digits(case, leaf)) is not None]
    if not any(kind == "decimal" for kind, _, _ in digits):
        return False
    _, before, after = zip(*digits, strict=True)
    if any(name in _ARITHMETIC for name in _names(tree)):
        return sum(before) + sum(after) > _MOST_DIGITS
    return max(before) + max(after) > _MOST_DIGITS and any(after)


def _leaves(tree: Tree) -> Iterator[Tree]:
    if tree[0] in ("col", "lit"):
        yield tree
    for operand in tree[1:]:
        if isinstance(operand, list):
            yield from _leaves(operand)


def _names(tree: Tree) -> Iterator[str]:
    yield tree[0]
    for operand in tree[1:]:
        if isinstance(operand, list):
            yield from _names(operand)


def _digits(case: Case, leaf: Tree) -> tuple[str, int, int] | None:
    """Return the type of an exact number and its digits before and after the point.

    None for any other value.
    """
    if leaf[0] == "lit":
        found = re.fullmatch(r"-?(\d+)(\.?)(\d*)", str(leaf[1]))
        return found and ("decimal" if found[2] else "int", len(found[1]), len(found[3]))
    kind = case.streams[leaf[1]].columns[leaf[2]]
    if found := re.fullmatch(r"decimal\((\d+),(\d+)\)", kind):
        return "decimal", int(found[1]) - int(found[2]), int(found[2])
    return ("int", 19, 0) if kind in BITS else None


def brute_force(case: Case) -> Truth:
    """Return the right results of a case, if all of its operators have rules."""
    if case.tree is None or not supports(case.tree) or _is_rounded(case, case.tree):
        return UNKNOWN
    streams = []
    for stream in case.streams.values():
        named = list(stream.columns.items())
        rows = []
        for row in stream.rows:
            rows.append(
                {
                    n: Typed("decimal" if k.startswith("decimal") else k, _read(v, k))
                    for (n, k), v in zip(named, row, strict=True)
                }
            )
        streams.append(rows)
    parts, found, keys = conjuncts(case.tree), [], []
    try:
        for key in product(*(range(len(rows)) for rows in streams)):
            row = {a: rows[k] for a, rows, k in zip(case.streams, streams, key, strict=True)}
            found.append([_value(part, row) for part in parts])
            keys.append(key)
    except (Unsupported, TypeError, AttributeError):  # what is shrunk may be of wrong types
        return UNKNOWN
    return combine_truths(found, keys)


def _read(value: Any, kind: str) -> Any:
    found = to_python(value, kind)
    if column_type(kind).arrow == column_type("float").arrow and found is not None:
        return float(np.float32(found))
    return found
