"""Any schema, NULL everywhere, and empty input: only matching tuples are returned, unchanged."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import chain
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid.condition.parser import parse_predicate
from braid.condition.spark_type_checker import SparkAnalyzer
from braid.condition.sql_types import SqlType
from braid.core.run_events import BatchCommitted
from braid.papers.baselines.centralized import Centralized
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.theta.grid import AdaptiveGrid
from braid.sources import static_replay
from braid.stream_join import JoinRun, StreamJoin
from input_splitting import split_input
from oracle import (
    EPOCH,
    committed_ids,
    compute_expected,
    create_frames,
    describe_difference,
    kernel_join,
    make_tables,
)
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from scatter import Scatter

pytestmark = pytest.mark.usefixtures("compiled")

SCHEMA = """
    id long, byte byte, short short, int int, long long, float float, double double, text string, date date,
    `a time` timestamp, ntz timestamp_ntz, money decimal(10,2), wide decimal(38,10), flag boolean, raw binary,
    list array<int>, texts array<string>, pair struct<x: int, y: string>, map map<string, int>,
    deep array<struct<m: map<int, array<double>>, n: struct<o: boolean>>>, `dotted.name` int, `größe` string
"""
FIRST = datetime(1969, 12, 31, 23, 59, 59, 999_999)
ROWS: list[tuple[Any, ...]] = [
    (
        -(2**7),
        -(2**15),
        -(2**31),
        -(2**63),
        -0.0,
        -inf,
        "",
        date(1583, 1, 1),
        FIRST,
        FIRST,
        Decimal("-99999999.99"),
        Decimal("-9999999999999999999999999999.9999999999"),
        False,
        b"",
        [],
        [],
        Row(x=None, y=None),
        {},
        [],
        1,
        "μ",
    ),
    (
        2**7 - 1,
        2**15 - 1,
        2**31 - 1,
        2**63 - 1,
        inf,
        nan,
        "Zoë 日本 🎉\n\t\"'\\",
        date(9999, 12, 31),
        datetime(9999, 12, 31, 23, 59, 59),
        datetime(9999, 12, 31, 23, 59, 59),
        Decimal("0.01"),
        Decimal("1E-10"),
        True,
        b"\x00\xff",
        [1, None, 3],
        ["", None, "é"],
        Row(x=1, y="ÿ"),
        {"": None, "k": 2},
        [Row(m={1: [nan, None], 2: None}, n=Row(o=None)), None, Row(m=None, n=None)],
        -1,
        "",
    ),
    (None,) * 21,
]

EQUAL = Counter((i, j) for i in range(9) for j in range(9) if i % 3 == j % 3 != 2)


def wide(spark: SparkSession, first: int) -> DataFrame:
    rows = [(first + i, *row) for i, row in enumerate(ROWS * 3)]
    return spark.createDataFrame(rows, SCHEMA)


def texts(frame: DataFrame) -> list[str]:
    """Return the rows in a form in which NaN equals itself and -0.0 differs from 0.0."""
    return sorted(map(repr, frame.collect()))


def by_file(frame: DataFrame) -> list[list[str]]:
    """Return the rows of each file that a frame reads, in the order of file names."""
    found: dict[str, list[str]] = {Path(f).name: [] for f in frame.inputFiles()}
    for row in frame.select("_metadata.file_name", F.struct("*")).collect():
        found[row[0]].append(repr(row[1]))
    return [sorted(rows) for _, rows in sorted(found.items())]


def test_types_of_columns_are_those_that_spark_tells(spark: SparkSession) -> None:
    """Spark is asked for the types of expressions, but not for that of a plain column."""
    frame = spark.createDataFrame([], SCHEMA + ", `a``b` date")
    analyser = SparkAnalyzer({"a": frame})
    for field in frame.schema:
        name = f"`{field.name.replace('`', '``')}`"
        reported = frame.select(F.expr(name).alias("it")).schema
        assert name in analyser.columns["a"]
        assert str(analyser.infer_type("a", f"({name})")) == str(
            SqlType.parse(reported[0].dataType.simpleString())
        )
        assert (
            analyser.infer_arrow_type("a", name)
            == to_arrow_schema(reported, timezone="UTC")[0].type
        )
    assert str(analyser.infer_type("a", "`id` + `float`")) == "double"


def test_tuples_come_through_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    streams = {"a": wide(spark, 0), "b": wide(spark, 1000)}
    on = "a.id = b.id - 1000 AND (b.`dotted.name` IS NULL OR a.`größe` IS NOT NULL)"
    join = StreamJoin(streams, on, Scatter(), check=True)
    run = join.start(tmp_path / "run", batches=3)
    run.awaitTermination()
    for alias in ("a", "b"):
        assert texts(run.results().select(f"{alias}.*")) == texts(streams[alias])
        assert run.results().schema[alias].dataType == streams[alias].schema


@pytest.mark.parametrize(("batches", "whole"), [("n", ""), (3, ""), (3, "b")])
def test_static_streams_are_written_alike_here_and_by_spark(
    spark: SparkSession, tmp_path: Path, batches: int | str, whole: str
) -> None:
    """Spark reads the same rows of the same types from files of micro-batches written by either."""
    frames = {a: wide(spark, 0).withColumn("n", F.expr("cast(id % 4 as short)")) for a in "ab"}
    frames["b"] = frames["b"].filter("n = 1")
    spans = frames["a"].withColumn("span", F.expr("interval 3 hours"))
    assert static_replay.StaticReplay({"a": spans}, {}, batches, 1 << 30).tables is None, (
        "no type of Parquet's"
    )
    times = {} if batches == "n" else dict.fromkeys({*frames} - {*whole}, "a time")
    ways = {"spark": 0, "here": 1 << 30}
    replays = {
        way: static_replay.StaticReplay(frames, times, batches, most, whole)
        for way, most in ways.items()
    }
    assert replays["spark"].tables is None and replays["here"].tables is not None
    counts = {way: replay.write_input(tmp_path / way) for way, replay in replays.items()}
    copies = {way: split_input(tmp_path / way) for way in ways}
    assert {each.batches for each in counts.values()} == {4 if batches == "n" else 3}
    for alias, frame in frames.items():
        stream = frame.drop("n") if batches == "n" else frame
        files = {way: sorted((tmp_path / way / alias).iterdir()) for way in ways}
        whole = {way: spark.read.parquet(*map(str, files[way])) for way in ways}
        rows, each = texts(stream), {way: by_file(whole[way]) for way in ways}
        for way in ways:
            assert whole[way].schema == static_replay.stored_schema(copies[way], alias, spark)
            assert whole[way].schema == stream.schema
            assert sorted(chain(*each[way])) == rows
            assert len(files[way]) == counts[way].batches
            filled = [n for n, file in enumerate(files[way]) if pq.read_metadata(file).num_rows]
            assert counts[way].last_batches[alias] == max(filled)
            assert filled == [0] if alias in whole else len(filled) > 1 or alias == "b"
            assert files[way] == sorted(files[way], key=lambda f: f.stat().st_mtime)
        if batches == "n":
            assert each["spark"] == each["here"]


def test_streams_that_are_too_large_together_are_written_by_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone would fit in this process, and their sizes are unknown before they arrive."""
    monkeypatch.setattr(static_replay, "scanned_bytes", lambda frame: 0)
    frames = {a: wide(spark, 0) for a in "ab"}
    tables = static_replay.StaticReplay(frames, {}, 1, 1 << 30).tables
    assert tables is not None
    sizes = [table.nbytes for table in tables.values()]
    replay = static_replay.StaticReplay(frames, {}, 1, (max(sizes) + sum(sizes)) // 2)
    assert replay.tables is None and replay.write_input(tmp_path).batches == 1
    for alias, frame in frames.items():
        assert texts(spark.read.parquet(str(tmp_path / alias))) == texts(frame)


def test_forty_columns_are_planned_in_no_time(spark: SparkSession, tmp_path: Path) -> None:
    """Properties of an expression must not double with every column in Spark's optimizer.

    Otherwise this would not end.
    """
    columns = [
        F.col("id").cast(kind).alias(f"{kind}{i}")
        for i in range(10)
        for kind in ("int", "bigint", "double", "string")
    ]
    streams = {a: spark.range(30).select("id", *columns) for a in "ab"}
    run = StreamJoin(streams, "a.id = b.id AND a.string3 = b.string4", Scatter(), check=True).start(
        tmp_path / "run", batches=1
    )
    run.awaitTermination()
    assert run.results().count() == 30


@pytest.mark.parametrize(
    "column", ["float", "double", "wide", "raw", "text", "`a time`", "ntz", "date", "flag", "größe"]
)
def test_null_never_matches_and_equal_values_do(spark: SparkSession, column: str) -> None:
    """ROWS has each value three times; NaN equals NaN, NULL equals nothing.

    Each type can be indexed and partitioned by.
    """
    streams = {"a": wide(spark, 0), "b": wide(spark, 0)}
    join = StreamJoin(streams, f"a.{column} = b.{column}", HashPartition(2))
    assert join.predicate.next_step(frozenset({0}), 1).access_path is not None
    assert kernel_join(join) == EQUAL


def test_nan_and_null_keys_in_a_run(spark: SparkSession, tmp_path: Path) -> None:
    streams = {"a": wide(spark, 0), "b": wide(spark, 0)}
    join = StreamJoin(
        streams, "a.double = b.double AND a.text = b.text", HashPartition(3), check=True
    )
    run = join.start(tmp_path / "run", batches=2)
    run.awaitTermination()
    assert committed_ids(run) == EQUAL


def test_times_without_a_zone_are_told_apart_in_every_zone(spark: SparkSession) -> None:
    """Clocks in Berlin never show a time between 2 and 3 on that day."""
    reported = "ntz: timestamp_ntz"
    rows = [(EPOCH.replace(day=31, hour=h, minute=30, tzinfo=None),) for h in (2, 3)]
    streams = {alias: spark.createDataFrame(rows, reported) for alias in "ab"}
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        ((key,), _) = (
            k.values() for k in parse_predicate("a.ntz = b.ntz", streams, (None, None)).key_columns
        )
        found = [r.key for r in streams["a"].selectExpr(f"{key} AS key").collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert found == [int(t.replace(tzinfo=UTC).timestamp()) * 1_000_000 for (t,) in rows]


def test_a_tuple_without_event_time_matches_only_without_windows(
    spark: SparkSession, tmp_path: Path
) -> None:
    times = [EPOCH, None, EPOCH + timedelta(seconds=20), None]
    rows = pa.table({"id": range(4), "ts": pa.array(times, pa.timestamp("us", tz="UTC"))})
    streams = {a: spark.createDataFrame(rows) for a in ("a", "b")}
    seen = {}
    for name, windows in (("all", {}), ("windowed", {"a": "10 seconds", "b": "10 seconds"})):
        run = StreamJoin(streams, "a.id = b.id OR true", Scatter(), windows, time="ts").start(
            tmp_path / name, batches=2
        )
        run.awaitTermination()
        seen[name] = committed_ids(run)
    assert seen["all"] == Counter((i, j) for i in range(4) for j in range(4))
    assert seen["windowed"] == Counter({(0, 0): 1, (2, 2): 1})


@pytest.mark.parametrize("time", ["date", "ntz"])
def test_dates_and_local_timestamps_are_event_times_too(
    spark: SparkSession, tmp_path: Path, time: str
) -> None:
    """W = 2 days, strictly: day 1 meets day 2 but not day 3."""
    days = [datetime(2024, 3, d, tzinfo=UTC) for d in (1, 2, 3)]
    naive = pa.array([d.replace(tzinfo=None) for d in days], pa.timestamp("us"))
    column = naive.cast(pa.date32()) if time == "date" else naive
    frame = spark.createDataFrame(pa.table({"id": [1, 2, 3], "t": column}))
    windows = {"a": "2 days", "b": "2 days"}
    run = StreamJoin(
        {"a": frame, "b": frame}, "a.id <= b.id", Centralized(), windows, time="t"
    ).start(tmp_path / "run", batches=2)
    run.awaitTermination()
    assert committed_ids(run) == Counter([(1, 1), (1, 2), (2, 2), (2, 3), (3, 3)])


def test_empty_batches_do_what_is_due(spark: SparkSession, tmp_path: Path) -> None:
    """Blocks of batches 0 to 3 are merged in batch 4, which is empty like 5 to 7 and the last
    one.
    """
    streams = make_tables("ab", 60, seed=8, batches=5)
    for alias, rows in streams.items():
        batch = pa.array([{4: 8}.get(b, b) for b in rows["batch"].to_pylist()], pa.int32())
        streams[alias] = rows.set_column(rows.schema.get_field_index("batch"), "batch", batch)
    on = "a.k = b.k"
    run = StreamJoin(create_frames(spark, streams), on, Centralized(), check=True).start(
        tmp_path / "run", batches="batch"
    )
    run.awaitTermination()
    committed = [e for e in run.events() if isinstance(e, BatchCommitted)]
    assert [sum(e.received_tuples) > 0 for e in committed] == [True] * 4 + [False] * 4 + [True]
    assert len(committed[4].dropped_block_ids) == 8
    assert sum(committed[4].live_tuples) == sum(committed[3].live_tuples)
    assert describe_difference(committed_ids(run), compute_expected(streams, on)) == ""


@pytest.mark.parametrize("empty", ["b", "ab"])
def test_empty_streams(spark: SparkSession, tmp_path: Path, empty: str) -> None:
    streams = {
        a: rows.slice(0, 0) if a in empty else rows
        for a, rows in make_tables("ab", 40, seed=8).items()
    }
    join = StreamJoin(
        create_frames(spark, streams), "a.k = b.k", AdaptiveGrid(4), {"a": "1 minute"}, time="ts"
    )
    run: JoinRun = join.start(tmp_path / "run", batches=3)
    run.awaitTermination()
    assert run.status["state"] == "completed"
    assert run.results().count() == 0
    assert [f.name for f in run.results().schema] == ["a", "b"]
