"""Joins of streams of changes on Spark, by both executors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from braid import AdaptiveGrid
from braid.answer_check import check_answers
from braid.stream_join import StreamJoin
from oracle import create_frames, killed_before
from pyspark.sql import DataFrame, SparkSession
from unit.test_changes import (
    BATCHES,
    CHANGES,
    ON,
    draw_streams,
    join_existing,
    make_tables,
    sum_results,
)

pytestmark = pytest.mark.spark


def read_rows(frame: DataFrame) -> list[dict[str, Any]]:
    return frame.toArrow().to_pylist()


def test_both_executors_and_a_stream_of_results_give_the_same_net(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The run begins by tasks, is killed, and goes on in this process. A second join reads it."""
    streams = draw_streams("ab", 5, 20)
    given = create_frames(spark, make_tables(streams))
    join = StreamJoin(
        given, ON["ab"], AdaptiveGrid(hosts=2), changes=CHANGES, executor="spark", check=True
    )
    with killed_before(3), pytest.raises(OSError, match="killed"):
        join.start(tmp_path / "run", batches="batch").awaitTermination()
    run = StreamJoin.resume(tmp_path / "run", given, executor="process")
    run.awaitTermination()
    expected = join_existing(streams, BATCHES)
    assert sum_results(read_rows(run.results())) == expected
    net = read_rows(run.results(net=True))
    assert len(net) == expected.total() and {row["_change_type"] for row in net} == {"insert"}
    assert check_answers(tmp_path / "run").is_right
    assert run.results_stream().columns == ["a", "b", "_change_type"]
    results = run.results_stream(flat=True)
    assert results.columns == ["a_k", "a_x", "b_k", "b_x", "_change_type"]
    c = spark.createDataFrame([(k,) for k in range(3)], "k int")
    second = StreamJoin(
        {"r": results, "c": c}, "r.a_k = c.k", windows="unbounded", changes={"r": "_change_type"}
    )
    after = second.start(tmp_path / "second", availableNow=True)
    after.awaitTermination()
    kept = sum(n for (a, _), n in expected.items() if a[0] < 3)
    assert len(read_rows(after.results(net=True))) == kept


def test_another_word_fails_the_batch_and_names_the_row_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    a = spark.createDataFrame([(1, "insert"), (2, "upsert")], "k int, op string")
    b = spark.createDataFrame([(1,), (2,)], "k int")
    run = StreamJoin({"a": a, "b": b}, "a.k = b.k", changes={"a": "op"}).start(
        tmp_path / "run", batches=1
    )
    with pytest.raises(
        Exception, match=r'a\.op has another value in the row \{"k":2,"op":"upsert"\}; it must be'
    ):
        run.awaitTermination()
