"""Normalize the terms of a comparison: summands, constants, and the common numeric type.

Each rule is exact in its own type, which may be wider than Spark's:

- ``split_summands`` takes a sum apart. It is exact for integers and decimals; a residual decides on
  floats. ``overflow_guards`` checks the sums against Spark's types.
- ``TermSum`` and ``sum_type`` add the terms of one stream in BIGINT or DECIMAL(18, s), which hold
  every sum of the types they accept. A sum of BIGINTs is refused.
- ``constant_value`` and ``interval_microseconds`` compute exactly, in fractions.
  ``overflow_guards`` checks constants against Spark's types.
- ``key_sql`` is a BIGINT: days of a date, microseconds of a time, units of the last digit of a
  decimal of at most 18 digits. Every value of the type has a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, inf

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import BIGINT, INTEGRAL, NUMERIC, REAL, SqlType
from braid.util.durations import UNITS

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


Term = tuple[int, exp.Expr]
"""A summand: its sign (1 or -1) and its expression."""


def nan_may_satisfy(op: type, left: int, right: int, capped: bool) -> bool | None:
    """Return whether floats that sum to NaN, the largest number, may satisfy a comparison.

    ``left`` and ``right`` are the numbers of streams that its sides name. None: neither names two,
    so the order of the keys decides. Infinities of equal sign differ by NaN.
    """
    if left < 2 and right < 2:
        return None
    safe = (exp.LT, exp.LTE, exp.EQ) if left == 2 else (exp.GT, exp.GTE, exp.EQ)
    return left + right > 2 or (op not in safe and not capped)


def split_name(column: exp.Expr) -> tuple[str, str]:
    """Return the alias and the name of "alias.column". A name may contain dots."""
    alias, _, name = column.name.partition(".")
    return alias, name


def split_parts(tree: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that AND combines."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*split_parts(tree.this), *split_parts(tree.expression)]
    return [tree]


def split_conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that AND and BETWEEN combine."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*split_conjuncts(tree.this), *split_conjuncts(tree.expression)]
    if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        low, high = tree.args["low"], tree.args["high"]
        both: list[exp.Expr] = [
            exp.GTE(this=tree.this, expression=low),
            exp.LTE(this=tree.this.copy(), expression=high),
        ]
        if not low.find(exp.Column) and not high.find(exp.Column):
            both[0].meta["capped"] = True
        return both
    return [tree]


def split_summands(
    node: exp.Expr, sign: int, streams: Callable[[exp.Expr], set[int]]
) -> list[tuple[int, exp.Expr, set[int]]]:
    """Return the signed summands of an expression, each with its streams.

    A part over one stream stays whole, so that its own types decide its value and whether it fails.
    An exception is one term plus constants. A difference of days becomes one of day numbers.
    """
    node = node.unnest()
    summands = [s for g, part in split_sum(node) for s in split_summands(part, g * sign, streams)]
    if not summands:
        return [(sign, node, streams(node))]
    owners = [owner for _, _, owner in summands if owner]
    both = set().union(*owners)
    shifted = len(owners) == 1 < len(summands)
    return summands if shifted or len(both) != 1 else [(sign, node, both)]


def split_sum(node: exp.Expr) -> list[tuple[int, exp.Expr]]:
    """Return the signed parts of a sum; empty if the node is not a sum."""
    if isinstance(node, (exp.Add, exp.Sub)):
        return [(1, node.this), (1 if isinstance(node, exp.Add) else -1, node.expression)]
    if isinstance(node, exp.Neg):
        return [(-1, node.this)]
    if isinstance(node, exp.DateDiff) and not node.args.get("unit"):
        days = (
            exp.func("unix_date", exp.cast(_strip_date_cast(side).copy(), "date"))
            for side in (node.this, node.expression)
        )
        return list(zip((1, -1), days, strict=True))
    return []


def _strip_date_cast(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.TsOrDsToDate) else node


def constant_value(node: exp.Expr) -> Fraction | None:
    """Return the value of a constant expression; None for any other expression."""
    node = simplify(node.copy())
    if isinstance(node, exp.Neg):
        inner = constant_value(node.this)
        return None if inner is None else -inner
    return Fraction(node.this) if isinstance(node, exp.Literal) and node.is_number else None


def real_value(node: exp.Expr) -> Fraction | None:
    """Return the value of a constant, also of a double such as 0.5D; None for others."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        inner = real_value(node.this)
        return None if inner is None else -inner
    is_double = isinstance(node, exp.Cast) and node.to.is_type("double")
    return constant_value(node.this if is_double else node)


def interval_microseconds(node: exp.Expr) -> Fraction | None:
    """Return the microseconds of a literal interval; None for other expressions."""
    sign = 1
    while isinstance(node, (exp.Neg, exp.Paren)):
        sign, node = (-sign if isinstance(node, exp.Neg) else sign), node.this
    if not isinstance(node, exp.Interval) or node.this is None:
        return None
    unit = str(node.args.get("unit") or "").lower().removesuffix("s")
    try:
        return sign * Fraction(str(node.this.name)) * UNITS[unit]
    except (KeyError, ValueError):
        return None


def interval_days(node: exp.Expr) -> Fraction | None:
    """Return the days of an interval or a number; None if it is not a whole number of days."""
    span = interval_microseconds(node)
    days = constant_value(node) if span is None else span / UNITS["day"]
    return days if days is not None and days.denominator == 1 else None


def sum_constants(kind: str, terms: Sequence[Term]) -> Fraction | None:
    """Return the sum of constants in the unit of a kind's keys; None if unknown."""
    of = {
        "date": interval_days,
        "timestamp": interval_microseconds,
        "timestamp_ntz": interval_microseconds,
        "float": real_value,
    }.get(kind, constant_value)
    values = [(sign, of(term)) for sign, term in terms]
    constants = [sign * value for sign, value in values if value is not None]
    return sum(constants, Fraction(0)) if len(constants) == len(terms) else None


def comparison_domain(a: SqlType, b: SqlType) -> str | None:
    """Return the kind of numbers in which two types are compared; None: not comparable."""
    pair = {a.name, b.name}
    if pair == {"boolean"}:
        return "bool"
    if pair <= {*INTEGRAL}:
        return "int"
    if len(pair) == 1 and pair <= {"date", "timestamp", "timestamp_ntz"}:
        return a.name
    if not pair <= {*NUMERIC}:
        return None
    if pair & {*REAL}:
        return "float"
    return "decimal" if sum(_count_digits(a, b)) <= 18 else None


def sum_type(kinds: Sequence[SqlType]) -> SqlType | None:
    """Return a type that holds every sum of values of these types, with any signs.

    None: there may be none, because floats round and a sum of two BIGINTs may overflow.
    """
    if len(kinds) == 1:
        return kinds[0]
    if not {k.name for k in kinds} <= {*INTEGRAL[:3], "decimal"}:
        return None
    if all(k.name in INTEGRAL for k in kinds):
        return BIGINT
    integral_digits, scale = _count_digits(*kinds)
    return SqlType("decimal", integral_digits + scale + len(kinds) - 1, scale)


def hash_type(a: SqlType, b: SqlType) -> str | None:
    """Return the type in which values of two types are hashed to find equal ones.

    None: they are numbers, or never equal.
    """
    pair = {a.name, b.name}
    if len(pair) == 1 and pair <= {"string", "binary"}:
        return a.name
    if comparison_domain(a, b) is not None or not pair <= {"decimal", *INTEGRAL}:
        return None
    digits, scale = _count_digits(a, b)
    return f"decimal({digits + scale}, {scale})" if digits + scale <= 38 else None


def _count_digits(*kinds: SqlType) -> tuple[int, int]:
    """Return the digits before and after the point that hold the values of exact types."""
    scale = max(k.scale for k in kinds)
    return max(_DIGITS.get(k.name, k.precision) - k.scale for k in kinds), scale


def negate_terms(terms: Sequence[Term]) -> list[Term]:
    """Return the terms with opposite signs."""
    return [(-sign, term) for sign, term in terms]


def key_sql(kind: str, sql: str, scale: int) -> str:
    """Return Spark SQL for the key: a BIGINT that preserves the order, or a DOUBLE."""
    return {
        "bool": f"cast(cast({sql} as int) as bigint)",
        "int": f"cast({sql} as bigint)",
        "date": f"cast(unix_date({sql}) as bigint)",
        "timestamp": f"unix_micros({sql})",
        # Independent of the session's time zone, unlike timestampdiff.
        "timestamp_ntz": f"(((cast(unix_date(cast({sql} as date)) as bigint) * 24 + hour({sql})) "
        f"* 60 + minute({sql})) * 60000000 + cast(extract(SECOND FROM {sql}) * 1000000 as bigint))",
        "decimal": f"cast(cast(({sql}) as decimal(18, {scale})) * {10**scale} as bigint)",
        "float": f"cast({sql} as double)",
    }[kind]


def find_local_time(node: exp.Paren) -> exp.Expr | None:
    """Return the timestamp without time zone whose key an expression is; None: it is no key."""
    date = node.find(exp.UnixDate)
    if date is None or not isinstance(date.this, exp.Cast):
        return None
    time = date.this.this
    key = key_sql("timestamp_ntz", time.sql(dialect=SparkSql), 0)
    return time if node == sqlglot.parse_one(key, dialect=SparkSql) else None


def null_safe_key_sql(a: SqlType, b: SqlType, sql: str) -> str | None:
    """Return Spark SQL for a BIGINT that is equal for equal values of two types, and for NULL.

    None: the types are not compared by such a key.
    """
    kind, hashed = comparison_domain(a, b), hash_type(a, b)
    if kind == "float":  # 0.0 equals -0.0
        return f"xxhash64(cast({sql} as double) + cast(0 as double))"
    if kind is not None:
        return f"xxhash64({key_sql(kind, sql, max(a.scale, b.scale))})"
    return None if hashed is None else f"xxhash64(cast({sql} as {hashed}))"


def offset_interval(
    op: type, offset: Fraction, real: bool
) -> tuple[float, float, tuple[bool, bool]]:
    """Return the interval of ``left - right`` for ``left - right op offset``.

    Integers get closed integer bounds.
    """
    strict = op in (exp.LT, exp.GT)
    below, above = op in (exp.LT, exp.LTE, exp.EQ), op in (exp.GT, exp.GTE, exp.EQ)
    if real:
        value = float(offset)
        return (
            value if above else -inf,
            value if below else inf,
            (strict and above, strict and below),
        )
    hi = (ceil(offset) - 1 if strict else floor(offset)) if below else inf
    lo = (floor(offset) + 1 if strict else ceil(offset)) if above else -inf
    return lo, hi, (False, False)


def strip_alias(node: exp.Expr) -> str:
    """Return Spark SQL over the stream's own columns, without the alias."""
    bare = node.copy().transform(
        lambda n: exp.column(n.name, quoted=True) if isinstance(n, exp.Column) else n
    )
    return bare.sql(dialect=SparkSql)


@dataclass
class TermSum:
    """One stream's part of a comparison: the sum of its signed terms."""

    stream: int
    terms: list[Term]

    @property
    def is_plain(self) -> bool:
        """Whether it is a single positive term."""
        return len(self.terms) == 1 and self.terms[0][0] > 0

    def to_sql(self, kind: str = "", scale: int = 0) -> str:
        """Return its Spark SQL; each term of a sum is cast to the numeric type of the kind."""
        if self.is_plain:
            return f"({strip_alias(self.terms[0][1])})"
        number = {"int": "bigint", "decimal": f"decimal(18, {scale})", "float": "double"}[kind]
        parts = (f"{'-' * (g < 0)}cast(({strip_alias(t)}) as {number})" for g, t in self.terms)
        return " + ".join(parts)

    def complement_negated_bits(self, of: SqlType) -> int:
        """Replace a negated BIGINT -x by its complement ~x, and return the difference to add.

        -x may overflow; ~x equals -x - 1 and never does.
        """
        if of != BIGINT or self.is_plain or len(self.terms) > 1:
            return 0
        self.terms = [(1, exp.BitwiseNot(this=exp.paren(self.terms[0][1])))]
        return 1
