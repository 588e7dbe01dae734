"""As-of joins on Spark, streaming and static, by both executors, against the tuple-level model."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid.execution import spark_executor
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.theta.grid import StaticGrid
from braid.stream_join import StreamJoin
from models.asof import AsOfAnswer, AsOfRules, run_asof
from models.kinds import Tuple
from oracle import create_frames, make_tables
from pyspark.sql import DataFrame, SparkSession

STREAMS = make_tables("ab", {"a": 120, "b": 160}, seed=43, batches=5)
SECOND, DAY = 1_000_000, 86_400_000_000
RULES = AsOfRules(
    "latest",
    condition=lambda a, b: a.values["k"] == b.values["k"],
    key=lambda t: t.values["k"],
    ties=lambda t: t.id,
    keeps_left=False,
    lateness=(3 * SECOND, 5 * SECOND),
    ahead=DAY,
)
CASES: dict[str, tuple[AsOfRules, dict[str, Any]]] = {
    "latest": (RULES, {"match": "latest"}),
    "first": (
        replace(RULES, match="first", tolerance=SECOND, is_strict=True, keeps_left=True),
        {"match": "first", "tolerance": "1 second", "strict": True, "how": "left"},
    ),
}


def list_tuples(rows: pa.Table, stream: int) -> list[Tuple]:
    found = []
    for row in rows.to_pylist():
        time = row["ts"]
        micros = None if time is None else (time - datetime(1970, 1, 1, tzinfo=time.tzinfo))
        at = None if micros is None else micros.days * DAY + micros.seconds * SECOND
        at = None if at is None or micros is None else at + micros.microseconds
        found.append(Tuple(stream, row["id"], row["batch"], at, row, row["k"] is not None))
    return found


TUPLES = [t for n, alias in enumerate("ab") for t in list_tuples(STREAMS[alias], n)]


def make_live_stream(spark: SparkSession, folder: Path, alias: str) -> DataFrame:
    """Return a stream of one file for each batch."""
    rows, path = STREAMS[alias], folder / alias
    path.mkdir()
    for batch in range(5):
        chosen = rows.filter([b == batch for b in rows["batch"].to_pylist()])
        pq.write_table(chosen, path / f"{batch}.parquet")
        os.utime(path / f"{batch}.parquet", (1_700_000_000 + batch,) * 2)
    schema = spark.createDataFrame(rows.slice(0, 0)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(path))


def read_answers(run: Any) -> list[AsOfAnswer]:
    answers = []
    for batch in range(run.status["batch"] + 1):
        rows = run._read_batch_results(batch).selectExpr("a.id AS a", "b.id AS b").collect()
        answers += [AsOfAnswer(batch, row.a, row.b) for row in rows]
    return sort_answers(answers)


def sort_answers(answers: list[AsOfAnswer]) -> list[AsOfAnswer]:
    return sorted(answers, key=lambda each: each[:2])


@pytest.mark.parametrize(("name", "executor"), [("latest", "process"), ("first", "spark")])
def test_streams_take_their_partners_as_the_watermark_passes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, executor: str
) -> None:
    monkeypatch.setattr(spark_executor, "_SMALL", 0)  # hosts on several partitions
    rules, given = CASES[name]
    streams = {alias: make_live_stream(spark, tmp_path, alias) for alias in "ab"}
    placement = HashPartition(3) if name == "latest" else StaticGrid(4)
    join = StreamJoin(
        streams,
        "a.k = b.k",
        placement,
        time="ts",
        lateness={"a": "3 s", "b": "5 s"},
        ties="id",
        check=True,
        executor=executor,
        partitions=2,
        **given,
    )
    run = join.start(tmp_path / "run", availableNow=True)
    assert run.awaitTermination()
    expected = sort_answers(run_asof(TUPLES, rules))
    assert read_answers(run) == [a for a in expected if a.batch < 5]
    run.close()
    assert read_answers(run) == expected
    assert any(a.batch < 5 for a in expected) and any(a.batch == 5 for a in expected)
    assert rules.keeps_left == any(a.right is None for a in expected)


def test_static_frames_find_their_latest_partner(spark: SparkSession, tmp_path: Path) -> None:
    streams = create_frames(spark, STREAMS)
    given: dict[str, Any] = {"time": "ts", "ties": "id", "executor": "spark", "partitions": 2}
    join = StreamJoin(streams, "a.k = b.k", StaticGrid(4), match="latest", **given)
    run = join.start(tmp_path / "run", batches="batch")
    assert run.awaitTermination()
    ends = tuple(max(t.batch for t in TUPLES if t.stream == s) for s in range(2))
    rules = replace(RULES, lateness=(0, 0), ends=ends)
    assert read_answers(run) == sort_answers(run_asof(TUPLES, rules))


def test_partners_that_may_come_at_any_time_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    streams = {alias: make_live_stream(spark, tmp_path, alias) for alias in "ab"}
    for given, says in (
        ({"match": "nearest"}, "a better partner of a tuple of a may come in b at any later time"),
        ({"match": "latest", "order": "id"}, "give tolerance= or windows="),
    ):
        with pytest.raises(ValueError, match=says):
            StreamJoin(streams, "a.k = b.k", time="ts", **given)
    on = "a.k = b.k AND a.id <> b.id"
    join = StreamJoin(streams, on, HashPartition(2), time="ts", match="latest")
    with pytest.raises(ValueError, match="every tuple of b is held for ever"):
        join.start(tmp_path / "run", availableNow=True)
