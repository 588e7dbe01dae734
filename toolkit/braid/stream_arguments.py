"""Validate the streams of a join as the user passes them, with windows and event times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from braid.condition.parser import parse_predicate
from braid.condition.predicate import Predicate
from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import sql_type_of_arrow
from braid.util.durations import Span, normalize_duration, parse_duration
from braid.util.validation import format_value, refuse_nanoseconds

Time = str | Mapping[str, str]
"""The event-time column of all streams, or columns by alias."""
_TIMES = ("timestamp", "timestamp_ntz", "date")


def parse_condition(
    streams: Mapping[str, Any], on: str, windows: Mapping[str, Span], time: Time | None
) -> tuple[tuple[int | None, ...], Predicate]:
    """Return the windows by stream, in microseconds, and the parsed condition.

    Raises ValueError for invalid streams, windows or conditions.
    """
    _check_streams(streams)
    if unknown := [a for a in windows if a not in streams]:
        raise ValueError(f"windows are given for {unknown}; the streams are {', '.join(streams)}")
    _check_times(streams, windows, parse_time_columns(time, streams))
    limits = tuple(
        parse_duration(windows[a], f"window of {a}") if a in windows else None for a in streams
    )
    return limits, parse_predicate(on, streams, limits)


def parse_time_columns(time: Time | None, streams: Mapping[str, Any]) -> dict[str, str]:
    """Return the event-time column of each stream; empty without event time.

    Raises ValueError if it does not name one for each stream.
    """
    if time is None:
        return {}
    if isinstance(time, str):
        return dict.fromkeys(streams, time)
    if not isinstance(time, Mapping) or set(time) != set(streams):
        found = (
            f"for {', '.join(map(str, time))}" if isinstance(time, Mapping) else format_value(time)
        )
        raise ValueError(
            f"time is {found}; it must be the event-time column of all streams, or name one for "
            f"each of {', '.join(streams)}"
        )
    return {alias: time[alias] for alias in streams}


def check_streams(streams: Any) -> dict[str, Any]:
    """Return the streams by alias. Raises ValueError if an alias is invalid."""
    if not isinstance(streams, Mapping):
        raise ValueError(
            f"streams is {format_value(streams)}; it must name each, as "
            f"{{'a': frame_a, 'b': frame_b}}"
        )
    for alias in streams:
        if not isinstance(alias, str) or not re.fullmatch(r"[A-Za-z]\w*", alias):
            raise ValueError(
                f"the alias {format_value(alias)} is not accepted; an alias is a letter, then "
                "letters, "
                "digits or _"
            )
        if not _is_name(alias):
            raise ValueError(
                f"the alias {alias} is not accepted: {alias}.x means something else in Spark SQL"
            )
    return dict(streams)


def _is_name(alias: str) -> bool:
    """Return whether Spark SQL reads ``alias.x`` as a column. It does not for null, true or and."""
    try:
        read = sqlglot.parse_one(f"1 = {alias}.x", dialect=SparkSql).args.get("expression")
    except sqlglot.errors.SqlglotError:
        return False
    return isinstance(read, exp.Column) and [p.name for p in read.parts] == [alias, "x"]


def parse_windows(windows: Any, streams: Mapping[str, Any]) -> dict[str, Span]:
    """Return the windows by alias. One span applies to all streams.

    Raises ValueError if it is neither a span nor spans by alias.
    """
    if windows is None:
        return {}
    if isinstance(windows, str | timedelta):
        return dict.fromkeys(streams, windows)
    if not isinstance(windows, Mapping):
        raise ValueError(
            f"windows is {format_value(windows)}; it must be a span such as '10 minutes' for all "
            "streams, "
            "or spans by alias"
        )
    return dict(windows)


def parse_lateness(lateness: Any, streams: Mapping[str, Any]) -> dict[str, str]:
    """Return the lateness by alias, as text. One span applies to all streams.

    The lateness of a stream without one is 0. Raises ValueError if it is neither a span nor spans
    by alias.
    """
    if not isinstance(lateness, Mapping):
        return dict.fromkeys(streams, normalize_duration(lateness, "lateness", zero=True))
    if unknown := [alias for alias in lateness if alias not in streams]:
        raise ValueError(f"lateness is given for {unknown}; the streams are {', '.join(streams)}")
    given = {
        a: normalize_duration(each, f"lateness of {a}", zero=True) for a, each in lateness.items()
    }
    return {alias: given.get(alias, "0 seconds") for alias in streams}


def _check_streams(streams: Mapping[str, Any]) -> None:
    if len(streams) < 2:
        raise ValueError(
            f"a join needs two or more streams; got {len(streams)}: {', '.join(streams) or 'none'}"
        )
    if len({a.lower() for a in streams}) < len(streams):
        raise ValueError(
            f"the aliases {', '.join(streams)} must differ by more than upper and lower case"
        )
    for alias, frame in streams.items():
        _check_stream(alias, frame)


def _check_stream(alias: str, frame: Any) -> None:
    if not isinstance(frame, pa.Table) and not is_spark_frame(frame):
        raise ValueError(
            f"stream {alias} is {format_value(frame)}; it must be a Spark DataFrame, a pandas "
            "or Polars DataFrame, or an Arrow table"
        )
    if type(frame).__module__.startswith("pyspark.sql.connect."):
        raise ValueError(
            f"stream {alias} is a DataFrame of Spark Connect; it must be one of a session in this "
            "process"
        )
    names = [n.lower() for n in column_names(frame)]
    if "" in names:
        raise ValueError(f"stream {alias} has a column without a name; name it")
    odd = {n for n in names if names.count(n) > 1 or _is_reserved(n) or "`" in n}
    if odd:
        raise ValueError(
            f"columns {sorted(odd)} of stream {alias} are not accepted: names must differ and not "
            "begin with __, or hold a backtick"
        )


def _is_reserved(name: str) -> bool:
    """Return whether a column name, in lower case, is reserved for Braid."""
    return name.startswith("__") and not re.fullmatch(r"__index_level_[0-9]+__", name)


def is_spark_frame(stream: Any) -> bool:
    """Return whether it is a Spark DataFrame, without importing Spark."""
    return type(stream).__module__.startswith("pyspark.sql.")


def column_names(stream: Any) -> list[str]:
    """Return the names of a stream's columns."""
    return list(stream.column_names if isinstance(stream, pa.Table) else stream.columns)


def column_types(stream: Any) -> list[str]:
    """Return Spark's type names of a stream's columns."""
    return [_column_type(stream, column) for column in column_names(stream)]


def _column_type(stream: Any, column: str) -> str:
    """Return Spark's type name of a column."""
    if isinstance(stream, pa.Table):
        return str(sql_type_of_arrow(stream.schema.field(column).type))
    return str(stream.schema[column].dataType.simpleString())


def _check_times(
    streams: Mapping[str, Any], windows: Mapping[str, Span], named: Mapping[str, str]
) -> None:
    if windows and not named:
        raise ValueError("windows are given but no event-time column: name it with time=")
    for alias, time in named.items():
        frame = streams[alias]
        if time not in column_names(frame):
            raise ValueError(
                f"stream {alias} has no event-time column {format_value(time)}; it has: "
                f"{', '.join(column_names(frame))}"
            )
        found = _column_type(frame, time)
        if "timestamp[ns" in found:
            refuse_nanoseconds(alias, time)
        if found not in _TIMES:
            raise ValueError(
                f"the event-time column {alias}.{time} is of type {found}; it must "
                "be a timestamp or a date"
            )
