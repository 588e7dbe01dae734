"""Times of two streams in a session outside UTC: Spark's own join is the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from braid.stream_join import StreamJoin
from oracle import committed_ids, create_frames
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from scatter import Scatter

SPRING = datetime(2024, 3, 10, 0, tzinfo=UTC)
"""In New York, clocks go forward from 2 to 3 at 7 UTC on that day, and back on November 3."""
AUTUMN = datetime(2024, 11, 3, 0, tzinfo=UTC)


@pytest.fixture
def streams(spark: SparkSession) -> Iterator[dict[str, DataFrame]]:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    hours = [timedelta(hours=n) for n in range(-30, 30)]
    times = [start + hour for start in (SPRING, AUTUMN) for hour in hours]
    rows = pa.table(
        {
            "id": [*range(len(times))],
            "k": [n % 3 for n in range(len(times))],
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "d": [
                date(2024, *((3, 9 + n % 3) if n < len(hours) else (11, 2 + n % 3)))
                for n in range(len(times))
            ],
        }
    )
    yield create_frames(spark, {"a": rows, "b": rows})
    spark.conf.set("spark.sql.session.timeZone", str(zone))


@pytest.mark.parametrize(
    "on",
    [
        "b.ts > a.ts AND b.ts <= a.ts + INTERVAL 1 DAY",
        "a.ts + INTERVAL 24 HOURS >= b.ts AND a.ts < b.ts AND a.k = b.k",
        "b.ts - INTERVAL 2 DAYS = a.ts",
        "b.ts BETWEEN a.ts - INTERVAL 3 HOURS AND a.ts + INTERVAL 23 HOURS",
        "hour(a.ts) = hour(b.ts) AND datediff(a.ts, b.ts) = 1",
        "b.ts >= timestamp(a.d) AND b.ts < timestamp(a.d) + INTERVAL 1 DAY",
        "a.k = b.k OR greatest(a.ts, b.ts) = a.ts",
        "a.ts <= b.ts + INTERVAL 20 HOURS 600 MINUTES AND b.ts < a.ts",
        "unix_micros(greatest(a.ts, b.ts)) = unix_micros(a.ts) AND a.k = b.k",
    ],
)
def test_what_is_taken_is_what_spark_finds(
    spark: SparkSession, streams: dict[str, DataFrame], tmp_path: Path, on: str
) -> None:
    run = StreamJoin(streams, on, Scatter(), executor="process").start(tmp_path / "run", batches=2)
    run.awaitTermination()
    a, b = (streams[alias].alias(alias) for alias in "ab")
    want = a.join(b, F.expr(on)).select("a.id", "b.id").collect()
    assert want and committed_ids(run) == Counter(tuple(row) for row in want)


@pytest.mark.parametrize(
    "on",
    [
        "a.k = b.k AND b.ts >= a.d",
        "a.ts - b.ts <= INTERVAL 1 HOUR",
        "b.ts - a.ts BETWEEN INTERVAL 0 HOURS AND INTERVAL 1 DAY",
        "hour(greatest(a.ts, b.ts)) = 3",
        "cast(greatest(a.ts, b.ts) AS DATE) = a.d",
    ],
)
def test_what_goes_by_the_zones_clocks_is_refused(streams: dict[str, DataFrame], on: str) -> None:
    with pytest.raises(ValueError, match="goes by the session's time zone, which is not UTC"):
        StreamJoin(streams, on, Scatter())
