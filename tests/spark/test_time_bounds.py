"""Bounds of event times, against Spark's own evaluation of the conditions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import numpy as np
import pytest
from braid.condition.column_names import parse_condition, resolve_columns
from braid.condition.event_time_offsets import TimeColumn
from braid.condition.time_bounds import find_time_bounds
from braid.core.horizon import Reach
from braid.stream_join import StreamJoin
from braid.util.time_zones import find_zone_spread
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

ZONES = ("UTC", "America/New_York")
UNITS = ("MICROSECOND", "SECOND", "HOUR", "DAY", "MONTH", "YEAR")
SIZES = (1, 7, 1000, 10**6, 60 * 10**6, 3600 * 10**6, 86400 * 10**6, 30 * 86400 * 10**6)
STARTS = (
    datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime(2011, 12, 30, 9, tzinfo=UTC),
    datetime(2024, 2, 29, 12, tzinfo=UTC),
    datetime(2024, 3, 10, 7, tzinfo=UTC),
    datetime(2024, 11, 3, 6, tzinfo=UTC),
)
"""Before 1970, the day that Samoa left out, and days on which New York's clocks change."""
FORMS = [
    *(
        f"timestampdiff({u}, a.ts, b.ts) {op} {n}"
        for u in UNITS
        for op in ("<=", ">", "=")
        for n in (-1, 0, 1)
    ),
    *(f"b.ts <= timestampadd({u}, {n}, a.ts)" for u in UNITS for n in (-2, 1)),
    *(f"b.ts >= a.ts + INTERVAL {n} {u}" for u in UNITS for n in (-2, 1)),
    *(
        f"date_trunc('{u}', a.ts) {op} date_trunc('{u}', b.ts)"
        for u in ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
        for op in ("=", "<")
    ),
    *(
        f"{sql.format('a.ts')} - {sql.format('b.ts')} {op} {n}"
        for sql in (
            "unix_micros({})",
            "unix_millis({})",
            "unix_seconds({})",
            "unix_timestamp({})",
            "to_unix_timestamp({})",
            "CAST({} AS BIGINT)",
            "unix_date(to_date({}))",
            "unix_micros({}) div 7",
        )
        for op, n in (("<=", 3), (">", -2), ("=", 0))
    ),
    *(
        f"b.ts - a.ts {op} INTERVAL {n} {u}"
        for op in ("<", ">=")
        for n in (-1, 2)
        for u in ("SECOND", "DAY")
    ),
    *(f"datediff(b.ts, a.ts) {op} {n}" for op in ("<=", ">", "=") for n in (-1, 0, 2)),
    *(
        f"{one} {op} {other}"
        for one, other in (("to_date(a.ts)", "b.ts"), ("CAST(b.ts AS DATE)", "CAST(a.ts AS DATE)"))
        for op in ("<", ">=", "=")
    ),
    "add_months(a.ts, 1) >= b.ts",
    "trunc(a.ts, 'MM') = trunc(b.ts, 'MM')",
    "date_sub(a.ts, 2) <= b.ts",
    "date_add(a.ts, 2) >= CAST(b.ts AS DATE)",
    "b.ts <= a.ts + INTERVAL '1 02:03:04.5' DAY TO SECOND",
    "b.ts <= a.ts + INTERVAL '1-2' YEAR TO MONTH",
    "b.ts <= a.ts - INTERVAL '-1 day 3 hours'",
    "b.local <= a.local + INTERVAL 1 SECOND",
    "timestampdiff(HOUR, a.local, b.local) <= 0",
    "b.local <= a.ts",
    "unix_micros(a.ts) - pmod(unix_micros(a.ts) - 5, 60000000) = unix_micros(b.ts) - pmod(unix_micros(b.ts) - 5, 60000000)",
]


@pytest.fixture(params=ZONES)
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Set the session's time zone."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


EVENT_TIMES = ("a.ts", "b.ts", "a.local", "b.local")


def draw_times(random: Random) -> list[datetime]:
    """Return event times that are near each other in some unit."""
    return [
        random.choice(STARTS)
        + timedelta(
            microseconds=random.randint(-3, 3) * random.choice(SIZES) + random.randint(-1, 1)
        )
        for _ in range(60)
    ]


def test_what_spark_finds_is_within_the_bounds(spark: SparkSession, zone: str) -> None:
    """Each condition is evaluated on all pairs of times; the differences of those that hold count.

    An event time is what Braid stores: microseconds of the instant.
    """
    times = draw_times(Random(5))
    rows = spark.createDataFrame([(t,) for t in times], "ts timestamp").coalesce(1)
    rows = rows.withColumn("local", F.col("ts").cast("timestamp_ntz"))
    pairs = rows.alias("a").crossJoin(rows.alias("b"))
    times = [F.expr(f"unix_micros(CAST({c} AS TIMESTAMP))").alias(c) for c in EVENT_TIMES]
    found = pairs.select(
        *times, *(F.expr(on).alias(f"{n}") for n, on in enumerate(FORMS))
    ).toArrow()
    micros = {c: np.asarray(found[c]) for c in EVENT_TIMES}
    for n, on in enumerate(FORMS):
        (_, up), (down, _) = find_bounds(on, zone)
        assert up is not None or down is not None, f"nothing is read of {on}"
        a, b = (f"{alias}.{'local' if f'{alias}.local' in on else 'ts'}" for alias in "ab")
        held = (micros[b] - micros[a])[np.asarray(found[f"{n}"].fill_null(False))]
        assert up is None or held.max(initial=up) <= up, (on, held.max(), up)
        assert down is None or (-held).max(initial=down) <= down, (on, held.min(), down)


def find_bounds(on: str, zone: str) -> Reach:
    kinds = {"ts": "timestamp", "local": "timestamp_ntz"}
    columns = {(a, n): TimeColumn(i, k) for i, a in enumerate("ab") for n, k in kinds.items()}
    tree = resolve_columns(parse_condition(on), {"a": [*kinds], "b": [*kinds]})
    return find_time_bounds(tree, 2, columns, find_zone_spread(zone)).reach


def test_windows_in_a_join_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Spark computes the windows of the rows, and joins on them."""
    rows = spark.createDataFrame(
        [(n, t) for n, t in enumerate(draw_times(Random(7)))], "id long, ts timestamp"
    )
    width = "window(ts, '7 minutes', '7 minutes', '3 minutes')"
    windows = rows.selectExpr("id", f"{width}.start AS w", f"{width}.end AS e", "ts")
    both = windows.alias("a").join(windows.alias("b"), on="w").select("a.id", "b.id")
    later = windows.alias("a").join(
        windows.alias("b"), F.expr("a.e <= b.ts AND b.ts < a.e + INTERVAL 1 HOUR")
    )
    call = "window({}.ts, '7 minutes', '7 minutes', '3 minutes')"
    one, other = call.format("a"), call.format("b")
    cases = {
        f"{one} = {other}": both,
        f"{one}.end <= b.ts AND b.ts < {one}.end + INTERVAL 1 HOUR": later.select("a.id", "b.id"),
    }
    for number, (on, truth) in enumerate(cases.items()):
        join = StreamJoin({"a": rows, "b": rows}, on, time="ts")
        assert join._join.effective_windows[0] is not None
        run = join.start(tmp_path / f"{number}", batches=2)
        assert run.awaitTermination()
        found = run.results().selectExpr("a.id", "b.id").collect()
        assert sorted(found) == sorted(truth.collect()), on
