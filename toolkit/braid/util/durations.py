"""Convert durations between text and microseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from braid.util.validation import format_value

Span = str | timedelta
"""A duration: "60 seconds", "1 hour 30 minutes", "5 min", "5s", "INTERVAL 5 MINUTES", or a
``timedelta``.
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
"""Microseconds of each unit, by name."""

SYMBOLS = {
    "d": UNITS["day"],
    "h": UNITS["hour"],
    "min": UNITS["minute"],
    "s": UNITS["second"],
    "ms": UNITS["millisecond"],
    "µs": UNITS["microsecond"],
}
"""Microseconds of each unit, by symbol; the longest first."""

_SHORT = {"sec": "second", "min": "minute", "hr": "hour"}
_SIZES = UNITS | SYMBOLS | {"us": 1} | {short: UNITS[name] for short, name in _SHORT.items()}
_SIZES |= {f"{name}s": _SIZES[name] for name in (*UNITS, *_SHORT)}
_PART = re.compile(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([a-zµ]+)")
_INTERVAL = re.compile(r"interval\s+'?([^']*)'?(\s+[a-z]+)?")
LONGEST = 10_000 * 366 * UNITS["day"]
"""Maximum distance of two event times."""
_DIGITS, _ALL_DIGITS = 4, 15
"""Digits shown of a duration below a minute, and the maximum that a float holds."""


def parse_duration(span: Span, what: str, zero: bool = False) -> int:
    """Return the microseconds of a duration.

    Parameters
    ----------
    span
        Numbers with a unit each (name, singular or plural, or symbol), for example "90 seconds", "1
        hour 30 minutes" or "5s"; or a ``timedelta``.
    what
        Name of the duration for the error message: "lateness", "window of a".
    zero
        Accept 0. Default: False.

    Raises ValueError for anything else.

    >>> parse_duration("1 hour 30 minutes", "window"), parse_duration("1.5 ms", "window")
    (5400000000, 1500)
    """
    microseconds = None
    if isinstance(span, timedelta):
        microseconds = span // timedelta(microseconds=1)
    elif isinstance(span, str):
        microseconds = _parse_duration_text(span.lower())
    if microseconds is None or not 0 <= microseconds <= LONGEST or (microseconds == 0 and not zero):
        raise ValueError(
            f"the {what} is {format_value(span)}; it must be a positive span such as '60 seconds' "
            "or '1 hour 30 minutes', of at most 10,000 years"
        )
    return microseconds


def normalize_duration(span: Span, what: str, zero: bool = False) -> str:
    """Return a duration as text: as given, or equivalent to the timedelta.

    Raises as ``parse_duration``.
    """
    microseconds = parse_duration(span, what, zero)
    return span if isinstance(span, str) else format_duration(microseconds, exact=True)


def _parse_duration_text(span: str) -> int | None:
    """Return the microseconds of a text; None if it is not a duration."""
    if match := _INTERVAL.fullmatch(span.strip()):
        span = f"{match[1]}{match[2] or ''}"
    parts = _PART.findall(span)
    if not parts or _PART.sub("", span).strip() or any(unit not in _SIZES for _, unit in parts):
        return None
    return int(sum(Fraction(number) * _SIZES[unit] for number, unit in parts))


def format_duration(micros: float, exact: bool = False) -> str:
    """Return a duration as a short text that ``parse_duration`` accepts.

    Below a minute it has one unit and four digits; above, it is rounded to two units. ``exact``: as
    many units and digits as needed.

    >>> format_duration(90e6), format_duration(3600e6), format_duration(1500), format_duration(0)
    ('1 min 30 s', '1 h', '1.5 ms', '0 s')
    >>> format_duration(3723.5e6), format_duration(3723.5e6, exact=True)
    ('1 h 2 min', '1 h 2 min 3.5 s')
    >>> format_duration(60_000_005, exact=True)
    '1 min 0.000005 s'
    """
    rest = micros if exact else _round_duration(micros)
    if rest < UNITS["minute"]:
        return _format_in_one_unit(micros, _ALL_DIGITS if exact else _DIGITS)
    parts: list[str] = []
    for unit in ("d", "h", "min"):
        count, rest = divmod(rest, SYMBOLS[unit])
        parts += [f"{count:.0f} {unit}"] if count or parts else []
    seconds = f"{rest / SYMBOLS['s']:.6f}".rstrip("0").rstrip(".")
    parts.append(f"{seconds} s")
    return " ".join(part for part in parts[: None if exact else 2] if not part.startswith("0 "))


def to_datetime(micros: int) -> datetime:
    """Return an event time, in microseconds since 1970, in UTC.

    Raises OverflowError for a year past 9999.

    >>> to_datetime(1_500_000).isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def format_instant(micros: int) -> str:
    """Return an event time, in microseconds since 1970, as a short text in UTC.

    >>> format_instant(0), format_instant(32_472_144_000_000_000)
    ('1970-01-01 00:00:00 UTC', '2999-01-01 00:00:00 UTC')
    """
    try:
        time = to_datetime(micros)
    except OverflowError:
        return f"{micros:,} µs"
    return f"{time.replace(tzinfo=None).isoformat(' ', 'seconds')} UTC"


def _round_duration(micros: float) -> int:
    """Return the duration rounded to the unit below its own; below a minute, to seconds."""
    for unit, below in (("d", "h"), ("h", "min")):
        if micros >= SYMBOLS[unit]:
            return round(micros / SYMBOLS[below]) * SYMBOLS[below]
    return round(micros / SYMBOLS["s"]) * SYMBOLS["s"]


def _format_in_one_unit(micros: float, digits: int) -> str:
    fitting = (unit for unit, size in SYMBOLS.items() if micros >= size and unit != "min")
    unit = next(fitting, "µs") if micros else "s"
    return f"{micros / SYMBOLS[unit]:.{digits}g} {unit}"
