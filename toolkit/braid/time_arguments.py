"""Arguments of event time: columns, windows and lateness, given for all streams or by alias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from braid.util.durations import Span, parse_duration
from braid.util.validation import format_value, refuse_nanoseconds

Time = str | Mapping[str, str]
"""The event-time column of all streams, or columns by alias."""
Columns = Mapping[str, Mapping[str, str]]
"""By alias, the columns of a stream with Spark's type names."""

UNBOUNDED = "unbounded"
"""The word for a stream whose full history is asked for."""
_TIMES = ("timestamp", "timestamp_ntz", "date")


class FrameWatermark(NamedTuple):
    """The watermark that a frame declares: its event-time column, and the delay in microseconds."""

    column: str
    delay: int


Watermarks = Mapping[str, Sequence[FrameWatermark]]
"""The watermarks of each stream, by alias."""


def complete_times(time: Any, aliases: Sequence[str], watermarks: Watermarks) -> dict[str, str]:
    """Return event-time columns by alias: those that are given, else those of watermarks.

    Raises ValueError if a stream without a given one has two watermarks.
    """
    if time is not None and not isinstance(time, Mapping):
        return parse_time_columns(time, aliases)
    times = dict(time or {})
    for alias in aliases:
        marks = [mark.column for mark in watermarks.get(alias, ())]
        if alias not in times and len(marks) > 1:
            raise ValueError(
                f"stream {alias} has watermarks on {' and '.join(marks)}; name its event-time "
                "column by time="
            )
        if marks:
            times.setdefault(alias, marks[0])
    if not times.keys() <= {*aliases}:
        return parse_time_columns(times, aliases)
    return {alias: times[alias] for alias in aliases if alias in times}


def parse_time_columns(time: Any, aliases: Sequence[str]) -> dict[str, str]:
    """Return the event-time column of each stream; empty without event time.

    Raises ValueError if it does not name one for each stream.
    """
    if time is None:
        return {}
    if isinstance(time, str):
        return dict.fromkeys(aliases, time)
    if not isinstance(time, Mapping) or set(time) != set(aliases):
        given = (
            f"for {', '.join(map(str, time))}" if isinstance(time, Mapping) else format_value(time)
        )
        raise ValueError(
            f"time is {given}; it must be the event-time column of all streams, or name one for "
            f"each of {', '.join(aliases)}"
        )
    return {alias: time[alias] for alias in aliases}


def parse_windows(windows: Any, aliases: Sequence[str]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the windows by alias, in microseconds, and the aliases that are unbounded.

    One span applies to all streams.

    Raises ValueError if it is neither a span nor spans by alias.
    """
    if windows is None:
        return {}, ()
    if isinstance(windows, str | timedelta):
        windows = dict.fromkeys(aliases, windows)
    if not isinstance(windows, Mapping):
        raise ValueError(
            f"windows is {format_value(windows)}; it must be a span such as '10 minutes' for all "
            "streams, or spans by alias; 'unbounded' is full history"
        )
    if unknown := [a for a in windows if a not in aliases]:
        raise ValueError(f"windows are given for {unknown}; the streams are {', '.join(aliases)}")
    spans = {a: windows[a] for a in aliases if a in windows}
    unbounded = tuple(a for a, span in spans.items() if span == UNBOUNDED)
    limits = {a: span for a, span in spans.items() if a not in unbounded}
    return {a: parse_duration(w, f"window of {a}") for a, w in limits.items()}, unbounded


def check_timed_windows(
    windows: Mapping[str, int], given: Any, times: Mapping[str, str]
) -> dict[str, int]:
    """Return the windows of streams with event time.

    Raises ValueError if a window is ``given`` for a stream without one, or only one stream has
    event time.
    """
    timeless = [alias for alias in windows if alias not in times]
    if timeless and isinstance(given, Mapping):
        raise ValueError(
            f"a window of {timeless[0]} is given but no event-time column of it: name it with time="
        )
    if windows and len(times) < 2:
        raise ValueError(
            f"windows are given but only stream {next(iter(times))} has event time; name that of "
            "another with time="
        )
    return {alias: window for alias, window in windows.items() if alias in times}


def parse_lateness(
    lateness: Any, aliases: Sequence[str], delays: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return the lateness by alias, in microseconds. One span applies to all streams.

    The lateness of a stream without one is its delay in ``delays``, else 0. Raises ValueError if it
    is neither a span nor spans by alias.
    """
    lateness = {} if lateness is None else lateness
    if not isinstance(lateness, Mapping):
        return dict.fromkeys(aliases, parse_duration(lateness, "lateness", zero=True))
    if unknown := [alias for alias in lateness if alias not in aliases]:
        raise ValueError(f"lateness is given for {unknown}; the streams are {', '.join(aliases)}")
    others = dict.fromkeys(aliases, 0) | dict(delays or {})
    given: dict[str, Span] = {alias: lateness[alias] for alias in aliases if alias in lateness}
    return others | {
        a: parse_duration(each, f"lateness of {a}", zero=True) for a, each in given.items()
    }


def check_times(schemas: Columns, times: Mapping[str, str]) -> None:
    """Raise ValueError unless each stream has its event-time column, of a type that is a time."""
    for alias, time in times.items():
        if (kind := schemas[alias].get(time)) is None:
            raise ValueError(
                f"stream {alias} has no event-time column {format_value(time)}; it has: "
                f"{', '.join(schemas[alias])}"
            )
        if "timestamp[ns" in kind:
            refuse_nanoseconds(alias, time)
        if kind not in _TIMES:
            raise ValueError(
                f"the event-time column {alias}.{time} is of type {kind}; it must "
                "be a timestamp or a date"
            )
