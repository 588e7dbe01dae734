"""Parse literal intervals of Spark SQL into months and microseconds."""

from __future__ import annotations

import re
from fractions import Fraction

from sqlglot import exp

from braid.util.durations import UNITS

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_FIELDS = ("day", "hour", "minute", "second")
"""Fields of an interval such as ``INTERVAL '1 02:03' DAY TO MINUTE``, in order."""


def parse_interval(node: exp.Interval) -> tuple[Fraction, Fraction] | None:
    """Return the months and the microseconds of a literal interval; None if it is unknown."""
    if node.this is None:
        return None
    unit, sign = node.args.get("unit"), 1
    amount = node.this.unnest()
    while isinstance(amount, exp.Neg):
        amount, sign = amount.this.unnest(), -sign
    if not isinstance(amount, exp.Literal):
        return None
    if unit is None:
        return _sum_units(amount.name, sign)
    if isinstance(unit, exp.IntervalSpan):
        return _parse_fields(amount.name, str(unit.this), sign)
    return _sum_units(f"{amount.name} {unit}", sign)


def _sum_units(text: str, sign: int) -> tuple[Fraction, Fraction] | None:
    """Return months and microseconds of a text such as "1 day 2 hours"."""
    part = r"\s*([+-]?\d{1,20}(?:\.\d{1,20})?)\s*([a-z]+)"
    parts = re.findall(part, text.lower())
    if not parts or re.sub(part, "", text.lower()).strip():
        return None
    months = micros = Fraction(0)
    for number, name in parts:
        unit = name.removesuffix("s")
        if unit in _MONTHS:
            months += Fraction(number) * _MONTHS[unit]
        elif unit in UNITS:
            micros += Fraction(number) * UNITS[unit]
        else:
            return None
    return sign * months, sign * micros


def _parse_fields(text: str, first: str, sign: int) -> tuple[Fraction, Fraction] | None:
    """Return months and microseconds of a text such as "1 02:03:04", whose first field is named."""
    parts = re.fullmatch(r"\s*([+-]?)\s*(.*?)\s*", text)
    assert parts is not None
    numbers, first = re.split(r"[ :-]+", parts[2]), first.lower()
    if not all(re.fullmatch(r"\d{1,18}(\.\d{1,9})?", n) for n in numbers):
        return None
    sign = -sign if parts[1] == "-" else sign
    if first == "year" and len(numbers) == 2:
        return sign * (12 * Fraction(numbers[0]) + Fraction(numbers[1])), Fraction(0)
    if first not in _FIELDS:
        return None
    fields = _FIELDS[_FIELDS.index(first) :]
    if len(numbers) > len(fields):
        return None
    named = zip(numbers, fields, strict=False)
    return Fraction(0), sign * sum((Fraction(n) * UNITS[f] for n, f in named), Fraction(0))
