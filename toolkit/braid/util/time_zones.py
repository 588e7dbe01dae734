"""How far apart the offsets of a time zone are, over all of its history."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from braid.util.durations import UNITS

UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")
"""Names of UTC."""
_WIDEST = 27 * UNITS["hour"]
"""No zone's offsets are further apart. Those of Alaska, Guam and Samoa are a day and a few hours
apart.
"""
_FIXED = re.compile(r"((UTC|GMT|UT)?[+-]\d{1,2}(:?\d{2}){0,2}|UTC|GMT|UT|Z|Etc/.*)")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})((?::?\d{2}){0,2})")
_FIRST, _LAST = datetime(1840, 1, 1), datetime(2040, 1, 1)
"""Years with different offsets. Before them a zone has local mean time, after them it repeats."""


def name_duckdb_zone(zone: str) -> str:
    """Return DuckDB's name of a time zone of Spark.

    DuckDB reads the minutes of an offset only if its hour has two digits.

    >>> name_duckdb_zone("Z"), name_duckdb_zone("+05:30"), name_duckdb_zone("Europe/Berlin")
    ('UTC', 'GMT+05:30', 'Europe/Berlin')
    >>> name_duckdb_zone("UTC+5:30"), name_duckdb_zone("UT-3"), name_duckdb_zone("UT")
    ('GMT+05:30', 'GMT-03', 'UTC')
    """
    if offset := _OFFSET.fullmatch(zone):
        sign, hour, rest = offset.groups()
        return f"GMT{sign}{hour:0>2}{rest}"
    return "UTC" if zone in (*UTC, "UT") else zone


@lru_cache
def find_zone_spread(zone: str) -> int:
    """Return the greatest less the least offset of a time zone, in microseconds.

    An unrules zone has the spread of any.

    >>> find_zone_spread("UTC"), find_zone_spread("+05:30"), find_zone_spread("Nowhere") // 10**6
    (0, 0, 97200)
    """
    if _FIXED.fullmatch(zone):
        return 0
    try:
        rules = ZoneInfo(zone)
    except (OSError, ValueError, KeyError):
        return _WIDEST
    weeks = range((_LAST - _FIRST).days // 7)
    offsets = {(_FIRST + timedelta(7 * week)).replace(tzinfo=rules).utcoffset() for week in weeks}
    present = [offset for offset in offsets if offset is not None]
    return (max(present) - min(present)) // timedelta(microseconds=1) if present else _WIDEST
