"""On how many partitions Spark joins a batch: state lies in files, so it may be any number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from braid.core.events import PARTS
from braid.core.placement import Placement
from braid.engine.spark import SHIPPED, SparkExecutor, partitions
from braid.join import StreamJoin
from oracle import differ, expected, found, frames, tables
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame
from scatter import Scatter
from spark.test_executors import ON, PLACEMENTS, ran, seen


class Packed(SparkExecutor):
    """Packs every batch as ``packing`` says, by number."""

    def __init__(self, packing: Callable[[int], int]) -> None:
        super().__init__()
        self.packing, self.done = packing, list[int]()

    def execute(self, frame: Any, batch: Any) -> Any:
        most = batch.spec.partitions
        with pytest.MonkeyPatch.context() as patch:
            chosen = lambda *_: min(most, self.packing(batch.number))  # noqa: E731
            patch.setattr("braid.engine.spark.partitions", chosen)
            self.done.append(chosen())
            return super().execute(frame, batch)


@pytest.mark.parametrize("placement", PLACEMENTS, ids=repr)
def test_the_partitions_of_a_batch_change_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, placement: Placement
) -> None:
    """One task for a batch, stages of tasks, and the two in turns: blocks, results and counts are
    the same.
    """
    streams, windows = tables("ab", 150, seed=72, batches=4), {"a": 130, "b": 70}
    join = StreamJoin(
        frames(spark, streams),
        ON,
        placement,
        {a: f"{w} seconds" for a, w in windows.items()},
        time="ts",
        lateness="1 minute",
        partitions=2,
        check=True,
    )
    packings = {"stages": lambda _: 2, "one": lambda _: 1, "turns": lambda n: 1 + n % 2}
    ways = {name: Packed(packing) for name, packing in packings.items()}
    runs = {name: ran(join, tmp_path / name, way, monkeypatch) for name, way in ways.items()}
    assert set(ways["one"].done) == {1} and set(ways["turns"].done) == {1, 2}
    for run in runs.values():
        assert differ(found(run), expected(streams, ON, windows)) == ""
        assert seen(run) == seen(runs["stages"])
        assert (run.metrics(by="batch")[list(PARTS)] > 0).all(axis=None)


def test_a_small_batch_is_one_task(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is shuffled: the job of a batch has one stage, of one task."""
    streams = frames(spark, tables("ab", 80, seed=6, batches=3))
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
        run = join.start(tmp_path / "run", batches="batch")
        run.awaitTermination()
    assert jobs == [(1,)] * 3


def test_partitions_are_chosen_by_what_is_announced_and_what_was_worked() -> None:
    assert partitions(announced=100_000, work=0.01, most=8) == 1
    assert partitions(announced=100_000_000, work=0.01, most=8) == 8
    assert partitions(announced=100_000, work=2.0, most=8) == 8  # few rows, but all their pairs
    assert partitions(announced=0, work=0.0, most=8) == 8  # it may be any size
    assert partitions(announced=0, work=0.0, most=1) == 1
