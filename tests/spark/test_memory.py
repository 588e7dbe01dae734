"""The driver never holds more of a batch than its limit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from braid import HashPartition
from braid.core.run_events import BatchCommitted
from braid.execution.executor_choice import COPIES
from braid.stream_join import JoinRun, StreamJoin
from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("compiled")

ROWS, TEXT = 40_000, 1100
TUPLE = 8 + 8 + TEXT
"""Approximate bytes of a tuple, which has a number, an event time and a text."""


@pytest.fixture(scope="module")
def streams(spark: SparkSession) -> Iterator[dict[str, DataFrame]]:
    """Return two streams whose rows only Spark has; it delivers them some MB at a time.

    One tuple in a thousand has a partner.
    """

    def rows(step: int) -> DataFrame:
        text = f"concat(cast(id AS string), repeat('x', {TEXT} - length(cast(id AS string))))"
        return spark.range(0, ROWS * step, step).selectExpr("id", f"{text} AS text")

    most = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(most)
    spark.conf.set(most, "3000")
    yield {"a": rows(1), "b": rows(1000)}
    spark.conf.set(most, str(before))


def resident(name: str) -> int:
    """Return the memory of this process in bytes: "VmRSS" now, "VmHWM" the maximum since the last
    reset.
    """
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def grown(join: StreamJoin, folder: Path) -> tuple[JoinRun, int]:
    """Return the maximum growth of this process during a run of one batch."""
    pa.default_memory_pool().release_unused()
    run = join.start(folder, batches=2)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the maximum
    run.awaitTermination()
    return run, resident("VmHWM") - before


def commits(run: JoinRun) -> list[BatchCommitted]:
    return [e for e in run.events() if isinstance(e, BatchCommitted)]


@pytest.mark.parametrize("is_announced", [True, False], ids=["announced", "not announced"])
def test_ten_times_what_the_driver_may_hold_goes_to_spark(
    streams: dict[str, DataFrame],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_announced: bool,
) -> None:
    """The driver grows by less than its limit, whether the size was announced or collecting
    stopped.
    """
    bound = ROWS * TUPLE * COPIES // 10  # a batch has half of both streams
    join = StreamJoin(streams, "a.id = b.id", HashPartition(4), partitions=2, driver_memory=bound)
    if not is_announced:
        monkeypatch.setattr("braid.execution.spark_to_arrow.announced_bytes", lambda frame: 0)
    run, growth = grown(join, tmp_path / "run")
    assert run.results().count() == ROWS // 1000
    assert [e.executor for e in commits(run)] == ["spark", "spark"]
    assert growth < bound


def test_what_the_driver_may_hold_it_holds(streams: dict[str, DataFrame], tmp_path: Path) -> None:
    """No copies exist other than those accounted for."""
    bound = ROWS * TUPLE * COPIES * 3 // 2
    join = StreamJoin(streams, "a.id = b.id", HashPartition(4), partitions=2, driver_memory=bound)
    run, growth = grown(join, tmp_path / "run")
    assert run.results().count() == ROWS // 1000
    assert [e.executor for e in commits(run)] == ["process", "process"]
    assert ROWS * TUPLE < growth < bound
