"""The number of partitions on which Spark joins a batch. State is in files, so it may be any
number.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from braid.execution.spark_executor import SHIPPED, choose_partitions
from braid.stream_join import StreamJoin
from oracle import create_frames, make_tables
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame
from scatter import Scatter


def test_a_small_batch_is_one_task(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is shuffled: the job of a batch has one stage of one task."""
    streams = create_frames(spark, make_tables("ab", 80, seed=6, batches=3))
    join = StreamJoin(streams, "a.k = b.k", Scatter(), partitions=2, executor="spark")
    tracker, jobs = spark.sparkContext.statusTracker(), list[tuple[int, ...]]()
    whole = DataFrame.collect

    def collect(frame: DataFrame) -> Any:
        group = spark.sparkContext.getLocalProperty("spark.jobGroup.id")
        known = set(tracker.getJobIdsForGroup(group))
        rows = whole(frame)
        if frame.columns == SHIPPED.fieldNames():  # of a batch, not of the preparation
            for job in set(tracker.getJobIdsForGroup(group)) - known:
                stages = [tracker.getStageInfo(s) for s in tracker.getJobInfo(job).stageIds]
                jobs.append(tuple(s.numTasks for s in stages))
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DataFrame, "collect", collect)
        patch.setattr("braid.execution.spark_executor._SHORT", 60.0)  # on any machine, however slow
        run = join.start(tmp_path / "run", batches="batch")
        run.awaitTermination()
    assert jobs == [(1,)] * 3


def test_partitions_are_chosen_by_what_is_announced_and_what_was_worked() -> None:
    assert choose_partitions(announced=100_000, work=0.01, most=8) == 1
    assert choose_partitions(announced=100_000_000, work=0.01, most=8) == 8
    assert (
        choose_partitions(announced=100_000, work=2.0, most=8) == 8
    )  # few rows, but all their pairs
    assert choose_partitions(announced=0, work=0.0, most=8) == 8  # any size is accepted
    assert choose_partitions(announced=0, work=0.0, most=1) == 1
