"""Read SQL expressions as event times of streams plus a constant and an interval of error.

Each rule returns a superset of the values that Spark may compute. Where a rule depends on the time
zone, its error is widened by the *spread* of the zone: its greatest offset less its least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from sqlglot import exp

from braid.condition.interval_literals import parse_interval
from braid.condition.term_normalizer import constant_value
from braid.util.durations import UNITS
from braid.util.validation import read_natural

DAY = UNITS["day"]
_SHORTEST = UNITS | {"month": 28 * DAY, "quarter": 90 * DAY, "year": 365 * DAY}
"""Least microseconds of each unit."""
_LONGEST = UNITS | {"month": 31 * DAY, "quarter": 92 * DAY, "year": 366 * DAY}
"""Greatest microseconds of each unit."""
_TRUNCATED = _LONGEST | {"yyyy": 366 * DAY, "yy": 366 * DAY, "mon": 31 * DAY, "mm": 31 * DAY}
_TRUNCATED |= {"dd": DAY}
"""Greatest microseconds of each unit of ``date_trunc``."""
_TYPES = exp.DataType.Type
_DATES = (_TYPES.DATE, _TYPES.DATE32)
_INSTANTS = (_TYPES.TIMESTAMP, _TYPES.TIMESTAMPTZ, _TYPES.TIMESTAMPLTZ)
Kind = Literal["time", "date", "span", "number"]


class TimeColumn(NamedTuple):
    """An event-time column: the position of its stream, and its type in Spark."""

    stream: int
    type: str


class UnitSize(NamedTuple):
    """Least and greatest microseconds of a unit of time."""

    shortest: int
    longest: int


class ElapsedUnits(NamedTuple):
    """A count of whole units of time in ``span``, rounded toward zero, as ``timestampdiff``."""

    span: TimeReading
    unit: UnitSize


@dataclass(frozen=True)
class TimeReading:
    """An expression: ``unit * value = sum of terms + constant + error``, in microseconds.

    - ``kind``: what the value is.
    - ``terms``: by stream, the factor of its event time; without zeros.
    - ``constant``: exact part.
    - ``low``, ``high``: least and greatest error.
    - ``unit``: microseconds of 1; None: a number without a unit.
    """

    kind: Kind
    terms: Mapping[int, int] = field(default_factory=dict)
    constant: Fraction = Fraction(0)
    low: int = 0
    high: int = 0
    unit: int | None = 1

    def add_error(self, low: int, high: int) -> TimeReading:
        """Return the reading with additional error between ``low`` and ``high``."""
        return replace(self, low=self.low + low, high=self.high + high)

    def negate_reading(self) -> TimeReading:
        """Return the reading of the negated expression."""
        terms = {stream: -factor for stream, factor in self.terms.items()}
        return replace(self, terms=terms, constant=-self.constant, low=-self.high, high=-self.low)

    def convert_unit(self, unit: int | None) -> TimeReading | None:
        """Return a number with this unit; None if it has another."""
        if self.unit == unit or unit is None:
            return self
        if self.unit is not None:
            return None
        return replace(self, constant=self.constant * unit, unit=unit)

    def add_reading(self, other: TimeReading, kind: Kind) -> TimeReading | None:
        """Return the reading of the sum; None if the units differ."""
        a, b = self.convert_unit(other.unit), other.convert_unit(self.unit)
        if a is None or b is None:
            return None
        streams = {*a.terms, *b.terms}
        terms = {s: n for s in streams if (n := a.terms.get(s, 0) + b.terms.get(s, 0))}
        constant = a.constant + b.constant
        return TimeReading(kind, terms, constant, a.low + b.low, a.high + b.high, a.unit)


def subtract_readings(a: TimeReading, b: TimeReading) -> TimeReading | None:
    """Return the difference of two values that Spark compares; None if they are not comparable."""
    kinds = {"time" if each.kind == "date" else each.kind for each in (a, b)}
    return a.add_reading(b.negate_reading(), "span") if len(kinds) == 1 else None


class TimeReader:
    """Reads expressions over streams with these event-time columns, by (alias, column).

    ``zone_spread``: greatest less least offset of the session's time zone, in microseconds.
    """

    def __init__(self, columns: Mapping[tuple[str, str], TimeColumn], zone_spread: int) -> None:
        self.columns, self.zone_spread = columns, zone_spread

    def read_expression(self, node: exp.Expr) -> TimeReading | None:
        """Return the reading of an expression; None if no rule reads it."""
        node = node.unnest()
        if (number := read_integer(node)) is not None:
            return TimeReading("number", constant=Fraction(number), unit=None)
        if isinstance(node, exp.Anonymous):
            rule = _CALLS.get(str(node.this).lower())
            return rule(self, node.expressions) if rule and node.expressions else None
        by_type = _RULES.get(type(node))
        return by_type(self, node) if by_type else None

    def read_elapsed(self, node: exp.Expr) -> ElapsedUnits | None:
        """Return the reading of ``timestampdiff(unit, x, y)``; None for other expressions."""
        node = node.unnest()
        if not isinstance(node, (exp.TimestampDiff, exp.DateDiff)) or not node.args.get("unit"):
            return None
        start, end = self.read_expression(node.expression), self.read_expression(node.this)
        if (unit := _find_unit(node)) is None or start is None or end is None:
            return None
        if (span := subtract_readings(end, start)) is None:
            return None
        return ElapsedUnits(self._widen_by_zone(span), unit)

    def _widen_by_zone(self, reading: TimeReading) -> TimeReading:
        return reading.add_error(-self.zone_spread, self.zone_spread)

    def _read_column(self, node: exp.Column) -> TimeReading | None:
        column = self.columns.get((node.table, node.name))
        if column is None:
            return None
        is_local = column.type != "timestamp"
        kind: Kind = "date" if column.type == "date" else "time"
        return TimeReading(kind, {column.stream: 1}, high=self.zone_spread if is_local else 0)

    def _read_negation(self, node: exp.Neg) -> TimeReading | None:
        inner = self.read_expression(node.this)
        return None if inner is None or inner.kind in ("time", "date") else inner.negate_reading()

    def _read_sum(self, node: exp.Add | exp.Sub) -> TimeReading | None:
        left, right = self.read_expression(node.this), self.read_expression(node.expression)
        if left is None or right is None:
            return None
        if isinstance(node, exp.Sub):
            if right.kind in ("time", "date"):
                difference = subtract_readings(left, right)
                return None if difference is None else self._widen_by_zone(difference)
            right = right.negate_reading()
        return self._add_span(left, right)

    def _add_span(self, left: TimeReading, right: TimeReading) -> TimeReading | None:
        """Return the sum of two readings; at most one of them is a time."""
        if right.kind in ("time", "date"):
            left, right = right, left
        if left.kind == "date" and right.kind == "number" and not right.terms:
            return self._add_constant(left, right.constant * DAY)
        if left.kind in ("time", "date") and right.kind == "span":
            if right.terms:
                return None
            kind: Kind = "time" if right.constant % DAY or right.low or right.high else left.kind
            total = left.add_reading(right, kind)
            is_local = abs(float(right.constant)) + max(-right.low, right.high) >= DAY
            return self._widen_by_zone(total) if total and is_local else total
        return left.add_reading(right, left.kind) if left.kind == right.kind else None

    def _add_constant(self, time: TimeReading, micros: Fraction | int) -> TimeReading:
        moved = replace(time, constant=time.constant + micros)
        return self._widen_by_zone(moved) if abs(float(micros)) >= DAY else moved

    def _read_product(self, node: exp.Mul) -> TimeReading | None:
        sides = [self.read_expression(node.this), self.read_expression(node.expression)]
        factors = [s for s in sides if s is not None and s.unit is None]
        others = [s for s in sides if s is not None and s.unit is not None]
        if len(factors) != 1 or len(others) != 1:
            return None
        factor, (other,) = factors[0].constant, others
        if other.kind == "span" and not other.terms and other.low == other.high == 0:
            return replace(other, constant=other.constant * factor)
        if other.kind != "number" or factor <= 0 or (other.unit or 1) % factor:
            return None
        return replace(other, unit=int((other.unit or 1) / factor))

    def _read_integer_division(self, node: exp.IntDiv) -> TimeReading | None:
        """Return ``x div k``, which is rounded toward zero."""
        value, by = self.read_expression(node.this), read_integer(node.expression)
        if value is None or value.kind != "number" or value.unit is None:
            return None
        if by is None or by < 1:
            return None
        unit = value.unit * by
        return replace(value.add_error(1 - unit, unit - 1), unit=unit)

    def _read_remainder(self, arguments: list[exp.Expr]) -> TimeReading | None:
        """Return ``pmod(x, k)``, which is between 0 and k - 1."""
        value, by = self.read_expression(arguments[0]), read_integer(arguments[1])
        if value is None or value.kind != "number" or by is None or by < 1:
            return None
        unit = value.unit or 1
        return TimeReading("number", high=unit * (by - 1), unit=unit)

    def _read_signed_remainder(self, node: exp.Mod) -> TimeReading | None:
        """Return ``x % k``, which has the sign of x."""
        value, by = self.read_expression(node.this), read_integer(node.expression)
        if value is None or value.kind != "number" or by is None or by < 1:
            return None
        unit = value.unit or 1
        is_positive = not value.terms and value.constant + value.low >= 0
        low = 0 if is_positive else unit * (1 - by)
        return TimeReading("number", low=low, high=unit * (by - 1), unit=unit)

    def _read_interval(self, node: exp.Interval) -> TimeReading | None:
        if (length := parse_interval(node)) is None:
            return None
        months, micros = length
        ends = sorted(int(months * days * DAY) for days in (28, 31))
        return TimeReading("span", constant=micros, low=ends[0], high=ends[1])

    def _read_cast(self, node: exp.Cast) -> TimeReading | None:
        inner, target = self.read_expression(node.this), node.to.this
        if inner is not None and inner.kind == "number" and target == _TYPES.BIGINT:
            return inner
        if inner is None or inner.kind not in ("time", "date"):
            return None
        if target in _DATES:
            return self._truncate_to_date(inner)
        if target in _INSTANTS:
            return replace(inner, kind="time")
        if target == _TYPES.TIMESTAMPNTZ:
            return replace(self._widen_by_zone(inner), kind="time")
        if target == _TYPES.BIGINT:
            return self._count_seconds([node.this])
        return None

    def _truncate_to_date(self, time: TimeReading) -> TimeReading:
        if time.kind == "date":
            return time
        return replace(self._widen_by_zone(time.add_error(1 - DAY, 0)), kind="date")

    def _read_date(self, node: exp.Expr) -> TimeReading | None:
        inner = self.read_expression(node.this)
        is_time = inner is not None and inner.kind in ("time", "date")
        return self._truncate_to_date(inner) if inner and is_time else None

    def _read_date_difference(self, node: exp.DateDiff) -> TimeReading | None:
        """Return ``datediff(end, start)``, the difference of two dates in days."""
        end, start = self.read_expression(node.this), self.read_expression(node.expression)
        if node.args.get("unit") or end is None or start is None:
            return None
        if not {end.kind, start.kind} <= {"time", "date"}:
            return None
        ends = (self._truncate_to_date(each) for each in (end, start))
        difference = subtract_readings(*ends)
        if difference is None:
            return None
        return replace(self._widen_by_zone(difference), kind="number", unit=DAY)

    def _read_day_number(self, node: exp.UnixDate) -> TimeReading | None:
        """Return ``unix_date``: days of a local date, so its error is that of a local time."""
        day = self.read_expression(node.this)
        if day is None or day.kind != "date":
            return None
        return replace(self._widen_by_zone(day), kind="number", unit=DAY)

    def _read_added_units(self, node: exp.TimestampAdd | exp.TsOrDsAdd) -> TimeReading | None:
        """Return ``timestampadd(unit, n, x)`` and ``date_add(x, n)``."""
        time, count = self.read_expression(node.this), read_integer(node.expression)
        unit = _find_unit(node)
        if time is None or time.kind not in ("time", "date") or count is None or unit is None:
            return None
        if isinstance(node, exp.TsOrDsAdd):
            time = self._truncate_to_date(time)
        if unit.shortest == unit.longest:
            kind: Kind = time.kind if unit.shortest >= DAY else "time"
            return replace(self._add_constant(time, count * unit.longest), kind=kind)
        ends = sorted((int(count * unit.shortest), int(count * unit.longest)))
        return self._widen_by_zone(time.add_error(*ends))

    def _subtract_days(self, arguments: list[exp.Expr]) -> TimeReading | None:
        """Return ``date_sub(x, n)``."""
        time, days = self.read_expression(arguments[0]), read_integer(arguments[1])
        if time is None or time.kind not in ("time", "date") or days is None:
            return None
        return self._add_constant(self._truncate_to_date(time), -days * DAY)

    def _add_months(self, arguments: list[exp.Expr]) -> TimeReading | None:
        time, months = self.read_expression(arguments[0]), read_integer(arguments[1])
        if time is None or time.kind not in ("time", "date") or months is None:
            return None
        ends = sorted(int(months * days * DAY) for days in (28, 31))
        return self._widen_by_zone(self._truncate_to_date(time).add_error(*ends))

    def _count_units(
        self, node: exp.Expr, unit: int, rounds_up: bool = False
    ) -> TimeReading | None:
        """Return a time as a number of whole units since 1970."""
        time = self.read_expression(node)
        if time is None or time.kind not in ("time", "date"):
            return None
        counted = time.add_error(1 - unit, unit - 1 if rounds_up else 0)
        return replace(counted, kind="number", unit=unit)

    def _count_seconds(self, arguments: list[exp.Expr]) -> TimeReading | None:
        return self._count_units(arguments[0], UNITS["second"])

    def _make_time(self, arguments: list[exp.Expr]) -> TimeReading | None:
        """Return ``timestamp_micros(n)``."""
        number = self.read_expression(arguments[0])
        if number is None or number.kind != "number" or number.unit != 1:
            return None
        return replace(number, kind="time")

    def _truncate(self, time: TimeReading | None, name: exp.Expr) -> TimeReading | None:
        unit = _TRUNCATED.get(name.name.lower()) if isinstance(name, exp.Literal) else None
        if unit is None or time is None or time.kind not in ("time", "date"):
            return None
        truncated = replace(time.add_error(1 - unit, 0), kind="time")
        return self._widen_by_zone(truncated) if unit >= UNITS["minute"] else truncated

    def _read_truncation(self, arguments: list[exp.Expr]) -> TimeReading | None:
        """Return ``date_trunc(unit, x)``."""
        return self._truncate(self.read_expression(arguments[1]), arguments[0])

    def _read_date_truncation(self, arguments: list[exp.Expr]) -> TimeReading | None:
        """Return ``trunc(x, unit)``, a date."""
        time = self.read_expression(arguments[0])
        day = self._truncate_to_date(time) if time and time.kind in ("time", "date") else None
        truncated = self._truncate(day, arguments[1])
        return None if truncated is None else replace(truncated, kind="date")


def read_integer(node: exp.Expr) -> int | None:
    """Return the value of an expression of whole numbers; None for others."""
    if node.find(exp.Column, exp.Div) is not None:
        return None
    if any(read_natural(str(each.this)) is None for each in node.find_all(exp.Literal)):
        return None
    value = constant_value(node)
    return None if value is None or value.denominator > 1 else int(value)


def _find_unit(node: exp.Expr) -> UnitSize | None:
    name = str(node.args.get("unit") or "day").lower()
    return UnitSize(_SHORTEST[name], _LONGEST[name]) if name in _SHORTEST else None


_R = TimeReader
_RULES: Mapping[type[exp.Expr], Callable[[TimeReader, Any], TimeReading | None]] = {
    exp.Column: _R._read_column,
    exp.Neg: _R._read_negation,
    exp.Add: _R._read_sum,
    exp.Sub: _R._read_sum,
    exp.Mul: _R._read_product,
    exp.IntDiv: _R._read_integer_division,
    exp.Mod: _R._read_signed_remainder,
    exp.Interval: _R._read_interval,
    exp.Cast: _R._read_cast,
    exp.TryCast: _R._read_cast,
    exp.TsOrDsToDate: _R._read_date,
    exp.DateDiff: _R._read_date_difference,
    exp.UnixDate: _R._read_day_number,
    exp.TimestampAdd: _R._read_added_units,
    exp.TsOrDsAdd: _R._read_added_units,
    exp.UnixMicros: lambda self, node: self._count_units(node.this, 1),
}
_CALLS: Mapping[str, Callable[[TimeReader, list[exp.Expr]], TimeReading | None]] = {
    "unix_millis": lambda self, a: self._count_units(a[0], UNITS["millisecond"]),
    "unix_seconds": _R._count_seconds,
    "unix_timestamp": lambda self, a: self._count_units(a[0], UNITS["second"], rounds_up=True),
    "to_unix_timestamp": lambda self, a: self._count_units(a[0], UNITS["second"], rounds_up=True),
    "timestamp_micros": _R._make_time,
    "pmod": _R._read_remainder,
    "date_trunc": _R._read_truncation,
    "trunc": _R._read_date_truncation,
    "date_sub": _R._subtract_days,
    "add_months": _R._add_months,
}
"""Rules by function that sqlglot keeps as written."""
