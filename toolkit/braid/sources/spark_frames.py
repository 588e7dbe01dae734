"""Watermarks and triggers of Spark's frames, classic or of Spark Connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as T

from braid.time_arguments import FrameWatermark, Watermarks
from braid.util.durations import UNITS, parse_duration
from braid.util.validation import format_value

_DELAY = "spark.watermarkDelayMs"
"""Spark's metadata of a column with a watermark: the delay in milliseconds."""
_TIMES = (T.TimestampType, T.TimestampNTZType)


def read_frame_watermarks(frames: Mapping[str, Any]) -> Watermarks:
    """Return the watermarks by alias: Spark keeps them in the metadata of columns."""
    return {
        alias: [
            FrameWatermark(field.name, int(field.metadata[_DELAY]) * UNITS["millisecond"])
            for field in frame.schema.fields
            if _DELAY in field.metadata and isinstance(field.dataType, _TIMES)
        ]
        for alias, frame in frames.items()
    }


def parse_spark_trigger(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trigger as Spark's arguments. Raises ValueError if it is invalid."""
    if not given:
        return {}
    (name, value), *more = given.items()
    if not more and name == "processingTime":
        span = parse_duration(value, "processingTime", zero=True)
        return {name: f"{span // 1000} milliseconds"}
    if not more and name in ("availableNow", "once") and value is True:
        return {name: value}
    listed = ", ".join(f"{k}={format_value(v)}" for k, v in given.items())
    raise ValueError(
        f"the trigger is {listed}; it must be one of processingTime='1 second', "
        "availableNow=True, once=True"
    )
