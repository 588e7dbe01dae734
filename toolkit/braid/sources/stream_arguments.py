"""Validate the streams of a join as the user passes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from braid.condition.spark_dialect import SparkSql
from braid.sources.arrow_streams import ArrowStreams
from braid.sources.frame_conversion import convert_frame
from braid.sources.generated_streams import GeneratedStreams, is_generated
from braid.sources.stream_filters import filter_streams
from braid.sources.stream_source import StreamSource
from braid.storage.generated_stream import SCHEMA, GeneratedFrame
from braid.util.validation import format_value


def make_source(
    streams: Mapping[str, Any],
    accepts_tables: bool = True,
    where: Mapping[str, str] | None = None,
    accepts_connect: bool = True,
) -> StreamSource:
    """Return the source of a join's streams.

    ``accepts_tables``: whether streams may be tables, and not Spark DataFrames only. ``where``: see
    ``filter_streams``. ``accepts_connect``: whether they may be DataFrames of Spark Connect. Raises
    ValueError if the streams cannot be joined with each other.
    """
    if any(map(_is_connect_frame, streams.values())):
        _check_connect_frames(streams, accepts_connect and accepts_tables)
        from braid.sources.connect_streams import ConnectStreams

        return ConnectStreams(streams, where)
    if is_generated(streams):
        return _make_generated_source(streams, accepts_tables, accepts_connect, where)
    tables = {a: convert_frame(a, s) for a, s in streams.items()}
    given = [a for a, t in tables.items() if t is not None]
    if given and (not accepts_tables or any(map(is_spark_frame, streams.values()))):
        takes = "the others are" if accepts_tables else "a shared join takes"
        raise ValueError(f"stream {given[0]} is a table, but {takes} Spark DataFrames")
    if accepts_tables and tables and None not in tables.values():
        check_frames(tables)
        return ArrowStreams(filter_streams(tables, where))
    check_frames(streams)
    from braid.sources.spark_streams import SparkStreams  # tables need no Spark

    return SparkStreams(filter_streams(streams, where))


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


def check_frames(streams: Mapping[str, Any]) -> None:
    """Raise ValueError unless two or more streams can be joined, by their names and columns."""
    if len(streams) < 2:
        raise ValueError(
            f"a join needs two or more streams; got {len(streams)}: {', '.join(streams) or 'none'}"
        )
    if len({a.lower() for a in streams}) < len(streams):
        raise ValueError(
            f"the aliases {', '.join(streams)} must differ by more than upper and lower case"
        )
    for alias, frame in streams.items():
        _check_frame(alias, frame)


def _check_frame(alias: str, frame: Any) -> None:
    if not isinstance(frame, pa.Table) and not is_spark_frame(frame):
        raise ValueError(
            f"stream {alias} is {format_value(frame)}; it must be a Spark DataFrame, a pandas "
            "or Polars DataFrame, or an Arrow table"
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


def _check_connect_frames(streams: Mapping[str, Any], is_accepted: bool) -> None:
    """Raise ValueError unless all streams are DataFrames of Spark Connect, and may be."""
    first = next(alias for alias, stream in streams.items() if _is_connect_frame(stream))
    if not is_accepted:
        raise ValueError(
            f"stream {first} is a DataFrame of Spark Connect, which only StreamJoin joins; give "
            "those of a session in this process"
        )
    if others := [alias for alias, stream in streams.items() if not _is_connect_frame(stream)]:
        raise ValueError(
            f"stream {first} is a DataFrame of Spark Connect, but {others[0]} is not; all streams "
            "of a join must be of one session"
        )
    check_frames(streams)


def _make_generated_source(
    streams: Mapping[str, Any], accepts_tables: bool, is_join: bool, where: Any
) -> StreamSource:
    """Return the source of generated streams. Raises ValueError unless they can be joined."""
    first, is_frame = next(iter(streams)), isinstance(next(iter(streams.values())), GeneratedFrame)
    if not is_join:
        raise ValueError(f"stream {first} is generated, which a hub does not take")
    if not accepts_tables and not is_frame:
        raise ValueError(
            f"stream {first} is generated, but a shared join is of Spark; give its on_spark(spark)"
        )
    if where:
        raise ValueError(
            f"where is {format_value(where)}, but the streams are generated; put it in on"
        )
    check_frames(dict.fromkeys(streams, SCHEMA.empty_table()))
    if not is_frame:
        return GeneratedStreams(streams)
    from braid.sources.generated_frames import GeneratedSparkStreams  # others need no Spark

    return GeneratedSparkStreams(streams)


def _is_reserved(name: str) -> bool:
    """Return whether a column name, in lower case, is reserved for Braid."""
    return name.startswith("__") and not re.fullmatch(r"__index_level_[0-9]+__", name)


def is_spark_frame(stream: Any) -> bool:
    """Return whether it is a Spark DataFrame, without importing Spark."""
    return type(stream).__module__.startswith("pyspark.sql.")


def _is_connect_frame(stream: Any) -> bool:
    return type(stream).__module__.startswith("pyspark.sql.connect.")


def column_names(stream: Any) -> list[str]:
    """Return the names of a stream's columns."""
    return list(stream.column_names if isinstance(stream, pa.Table) else stream.columns)
