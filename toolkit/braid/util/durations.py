"""Spans of time: from what people write to microseconds, and back to a short text."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from fractions import Fraction

from braid.util.validation import format_value

Span = str | timedelta
"""How people write a span: "60 seconds", "1 hour 30 minutes", "5 min", "5s", "INTERVAL 5 MINUTES",
or a ``timedelta``.
"""

UNITS = {
    "microsecond": 1,
    "millisecond": 10**3,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
    "day": 86400 * 10**6,
    "week": 7 * 86400 * 10**6,
}
"""Microseconds of each unit, by its name."""

SYMBOLS = {
    "d": UNITS["day"],
    "h": UNITS["hour"],
    "min": UNITS["minute"],
    "s": UNITS["second"],
    "ms": UNITS["millisecond"],
    "µs": UNITS["microsecond"],
}
"""Microseconds of each unit, by its symbol; the longest first."""

_SHORT = {"sec": "second", "min": "minute", "hr": "hour"}
_SIZES = UNITS | SYMBOLS | {"us": 1} | {short: UNITS[name] for short, name in _SHORT.items()}
_SIZES |= {f"{name}s": _SIZES[name] for name in (*UNITS, *_SHORT)}
_PART = re.compile(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([a-zµ]+)")
_INTERVAL = re.compile(r"interval\s+'?([^']*)'?(\s+[a-z]+)?")
_LONGEST = 10_000 * 366 * UNITS["day"]
"""No two event times lie further apart."""
_DIGITS, _ALL_DIGITS = 4, 15
"""Digits that are shown of a span below a minute, and the most that a float holds."""


def parse_duration(span: Span, what: str, zero: bool = False) -> int:
    """Microseconds of a span: numbers, each with a unit (its name, singular or plural, or its
    symbol).

    Parameters
    ----------
    span
        For instance "90 seconds", "1 hour 30 minutes", "5s" or ``timedelta(minutes=5)``.
    what
        What the span is of, for the error message: "lateness", "window of a".
    zero
        Accept a span of no length.

    Raises ValueError, with one sentence, for anything else.

    >>> micros("1 hour 30 minutes", "window"), micros("1.5 ms", "window")
    (5400000000, 1500)
    """
    found = None
    if isinstance(span, timedelta):
        found = span // timedelta(microseconds=1)
    elif isinstance(span, str):
        found = _parse_duration_text(span.lower())
    if found is None or not 0 <= found <= _LONGEST or (found == 0 and not zero):
        raise ValueError(
            f"the {what} is {format_value(span)}; it must be a positive span such as '60 "
            "seconds' or '1 "
            "hour 30 minutes', of at most 10,000 years"
        )
    return found


def normalize_duration(span: Span, what: str, zero: bool = False) -> str:
    """A span as text: as it was typed, or one that ``micros`` reads as the same; raises as it."""
    found = parse_duration(span, what, zero)
    return span if isinstance(span, str) else format_duration(found, exact=True)


def _parse_duration_text(span: str) -> int | None:
    """None for what is no span."""
    if said := _INTERVAL.fullmatch(span.strip()):
        span = f"{said[1]}{said[2] or ''}"
    parts = _PART.findall(span)
    if not parts or _PART.sub("", span).strip() or any(unit not in _SIZES for _, unit in parts):
        return None
    return int(sum(Fraction(number) * _SIZES[unit] for number, unit in parts))


def format_duration(micros: float, exact: bool = False) -> str:
    """A span as a short text that ``micros`` reads back: below a minute in one unit, to four
    digits; else rounded to two units. ``exact``: in as many units and digits as it takes.

    >>> text(90e6), text(3600e6), text(1500), text(0)
    ('1 min 30 s', '1 h', '1.5 ms', '0 s')
    >>> text(3723.5e6), text(3723.5e6, exact=True)
    ('1 h 2 min', '1 h 2 min 3.5 s')
    """
    rest = micros if exact else _round_duration(micros)
    if rest < UNITS["minute"]:
        return _format_in_one_unit(micros, _ALL_DIGITS if exact else _DIGITS)
    parts: list[str] = []
    for unit in ("d", "h", "min"):
        count, rest = divmod(rest, SYMBOLS[unit])
        parts += [f"{count:.0f} {unit}"] if count or parts else []
    parts.append(f"{rest / SYMBOLS['s']:.{_ALL_DIGITS}g} s")
    return " ".join(part for part in parts[: None if exact else 2] if not part.startswith("0 "))


def format_instant(micros: int) -> str:
    """Return an event time, given in microseconds since 1970, as a short text in UTC.

    >>> instant(0), instant(32_472_144_000_000_000)
    ('1970-01-01 00:00:00 UTC', '2999-01-01 00:00:00 UTC')
    """
    try:
        time = datetime(1970, 1, 1) + timedelta(microseconds=micros)
    except OverflowError:
        return f"{micros:,} µs"
    return f"{time.isoformat(' ', 'seconds')} UTC"


def _round_duration(micros: float) -> int:
    """To the unit below the span's own, from a minute on."""
    for unit, below in (("d", "h"), ("h", "min")):
        if micros >= SYMBOLS[unit]:
            return round(micros / SYMBOLS[below]) * SYMBOLS[below]
    return round(micros / SYMBOLS["s"]) * SYMBOLS["s"]


def _format_in_one_unit(micros: float, digits: int) -> str:
    fitting = (unit for unit, size in SYMBOLS.items() if micros >= size and unit != "min")
    unit = next(fitting, "µs") if micros else "s"
    return f"{micros / SYMBOLS[unit]:.{digits}g} {unit}"
