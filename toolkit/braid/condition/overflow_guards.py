"""Guards for sums that an index condition takes apart: the range of their types.

An index condition splits the terms of ``a.n + 5 > b.m`` into two keys and a constant. That is exact
for integers, but Spark computes ``a.n + 5`` in a type that may overflow, and then raises
ARITHMETIC_OVERFLOW. A guard holds the range of each such sum's type. If keys that meet may leave
it, the pairs that do are searched for, and fail the run.

The types of guarded sums, with their range in the unit of the keys:

- tinyint, smallint, int, bigint: 8 to 64 bits, also for keys that are scaled as decimals;
- date: 32 bits of days; the difference of two dates: 64 bits of microseconds, in days;
- timestamp, timestamp_ntz and the interval between two: 64 bits of microseconds.

Decimals need no guard: index conditions accept at most 18 digits, and a sum of them has fewer than
38. Floats need none: they do not overflow, and a residual decides on their sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import BIGINT, INT, INTEGRAL, INTERVAL, SqlType, common_type
from braid.condition.term_normalizer import constant_value, split_sum, split_summands
from braid.errors import PredicateError
from braid.util.durations import UNITS

Streams = Callable[[exp.Expr], set[int]]
"""A function that returns the streams that an expression names."""
TypeOf = Callable[[exp.Expr, set[int]], SqlType | None]
"""A function that returns the type of an expression over one stream, or over none."""

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "date": 32}
_TIMES = ("date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class GuardedSum:
    """A sum, difference or negation that an index condition takes apart.

    - ``terms``: signed terms, each with its streams.
    - ``sql_type``: type in which Spark computes the sum.
    - ``is_absolute``: whether Spark also takes its absolute value, which the least number of a type
      lacks.
    """

    node: exp.Expr
    terms: Sequence[tuple[int, exp.Expr, set[int]]]
    sql_type: SqlType
    is_absolute: bool = False

    @property
    def display_text(self) -> str:
        """The sum for a message, such as "a.n + 5 (int)"."""
        node = exp.Abs(this=self.node) if self.is_absolute else self.node
        return describe_with_type(node, self.sql_type)

    def find_limits(self, kind: str) -> tuple[int, int]:
        """Return the least and the greatest value, in the unit of the keys of this kind."""
        bits = _BITS.get(self.sql_type.name, 64)
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        if kind == "date" and self.sql_type == INTERVAL:
            low, high = -(high // UNITS["day"]), high // UNITS["day"]
        return (-high if self.is_absolute else low), high


def describe_with_type(node: exp.Expr, kind: SqlType) -> str:
    """Return an expression and its type for a message."""
    return f"{node.sql(dialect=SparkSql).replace('`', '')} ({kind})"


OVERFLOW = "ARITHMETIC_OVERFLOW"
"""Spark's word for a value that its type cannot hold."""


def describe_failure(text: str, reason: str = OVERFLOW, ansi: bool = True) -> str:
    """Return the sentence for an expression that has no value.

    The caller appends the place.
    """
    if ansi or reason != OVERFLOW:
        return f"{reason} in {text}"
    return (
        "with spark.sql.ansi.enabled=false Spark would wrap around, which a join index cannot "
        f"follow (cast to a wider type to go on): {OVERFLOW} in {text}"
    )


def find_sums(
    node: exp.Expr, streams: Streams, type_of: TypeOf, is_absolute: bool = False
) -> list[GuardedSum]:
    """Return every sum of a limited type that ``split_summands`` takes apart in an expression."""
    return _find_typed_sums(node, streams, type_of, is_absolute)[1]


def _find_typed_sums(
    node: exp.Expr, streams: Streams, type_of: TypeOf, is_absolute: bool
) -> tuple[SqlType | None, list[GuardedSum]]:
    node = node.unnest()
    if (kind := infer_number_type(node)) is not None:
        return kind, []
    terms = split_summands(node, 1, streams)
    if len(terms) == 1 and terms[0][1] is node:
        return _infer_term_type(node, streams, type_of), []
    inner = [_find_typed_sums(part, streams, type_of, False) for _, part in split_sum(node)]
    kind = _infer_sum_type(node, [part for part, _ in inner])
    sums = [s for _, several in inner for s in several]
    if kind is not None:
        sums.append(GuardedSum(node, terms, kind, is_absolute))
    return kind, sums


def infer_number_type(node: exp.Expr) -> SqlType | None:
    """Return the type of an integer literal, with its sign; None for other nodes."""
    inner = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner, exp.Literal) or not inner.is_int:
        return None
    value = -int(inner.this) if inner is not node else int(inner.this)
    return next((k for k in (INT, BIGINT) if _can_hold(k, value)), None)


def _can_hold(kind: SqlType, value: Fraction | int) -> bool:
    low, high = GuardedSum(exp.Null(), (), kind).find_limits("int")
    return low <= value <= high


def _infer_term_type(node: exp.Expr, streams: Streams, type_of: TypeOf) -> SqlType | None:
    owners = streams(node)
    kind = type_of(node, owners)
    if not owners and kind is not None and kind.name in INTEGRAL:
        check_constant(node, type_of)
    return kind


def check_constant(node: exp.Expr, type_of: TypeOf) -> None:
    """Raise PredicateError if a constant, or a part of it, overflows Spark's type."""
    for part in node.find_all(exp.Add, exp.Sub, exp.Mul, exp.Neg):
        kind, value = infer_number_type(part) or type_of(part, set()), constant_value(part)
        if kind is None or kind.name not in INTEGRAL or value is None:
            continue
        if not _can_hold(kind, value):
            refuse_constant(describe_with_type(part, kind))


def refuse_constant(text: str) -> None:
    """Raise PredicateError for a constant that overflows in Spark."""
    raise PredicateError(
        f"{text} in the join condition is ARITHMETIC_OVERFLOW in Spark; write a number that its "
        "type holds, or cast a part of it to a wider type"
    )


def _infer_sum_type(node: exp.Expr, kinds: Sequence[SqlType | None]) -> SqlType | None:
    """Return Spark's type of a sum of parts of these types; None if it needs no guard."""
    if isinstance(node, exp.DateDiff):
        return INT
    if any(kind is None for kind in kinds):
        return None
    operands = [kind for kind in kinds if kind is not None]
    names = [kind.name for kind in operands]
    if all(name in INTEGRAL for name in names):
        return common_type(*operands)
    times = [name for name in names if name in _TIMES]
    if len(times) == 2 or set(names) == {INTERVAL.name}:
        return INTERVAL
    return SqlType(times[0]) if times else None


def scale_limits(low: int, high: int, constant: Fraction, unit: int) -> tuple[int, int]:
    """Return the limits of a sum without its constant, for keys that are multiples of ``unit``."""
    return -((constant - low) * unit // 1), (high - constant) * unit // 1
