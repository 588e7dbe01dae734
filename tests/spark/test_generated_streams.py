"""Generated streams that Spark reads: they change while batches run, and a run is resumed."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid import GeneratedStream, SharedJoin, StreamJoin
from braid.answer_check import check_answers
from braid.core.run_events import BatchCommitted
from braid.core.touch_events import SettingChanged
from braid.papers.theta.grid import StaticGrid
from oracle import compute_expected, describe_difference, result_ids
from pyspark.sql import SparkSession

BATCHES = 5


def test_a_stream_is_changed_and_the_run_goes_on_after_its_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    streams = {"a": GeneratedStream(30, seed=1), "b": GeneratedStream(40, seed=2)}
    frames = {alias: stream.on_spark(spark) for alias, stream in streams.items()}
    join = StreamJoin(frames, "a.k = b.k", StaticGrid(4), partitions=1, executor="process")
    started = Future[Any]()

    def change_and_die(results: Any, batch: int) -> None:
        if batch == 1:
            started.result(60).adjust(rate=90, stream="a")
            raise InterruptedError("the power goes")

    run = join.start(tmp_path / "run", batches=BATCHES, foreachBatch=change_and_die)
    started.set_result(run)
    with pytest.raises(Exception, match="the power goes"):
        run.awaitTermination()
    run = join.start(tmp_path / "run", foreachBatch=lambda results, batch: None)
    run.awaitTermination()
    commits = [e for e in run.events() if isinstance(e, BatchCommitted)]
    received = [e.received_tuples for e in commits if sum(e.received_tuples)]
    assert received == [(30, 40)] * 2 + [(90, 40)] * 3
    (change,) = [e for e in run.events() if isinstance(e, SettingChanged)]
    assert (change.name, change.before, change.after) == ("rate of a", 30, 90)
    files = {a: sorted((tmp_path / "run" / "input" / a).glob("*.parquet")) for a in streams}
    rows = {a: pa.concat_tables(map(pq.read_table, each)) for a, each in files.items()}
    found = result_ids(run.results().toArrow())
    assert not (wrong := describe_difference(found, compute_expected(rows, "a.k = b.k"))), wrong
    assert check_answers(tmp_path / "run").is_right
    shared = SharedJoin(frames, "a.k = b.k", time="ts", partitions=1)
    shared.add("q", {"a": "2 seconds", "b": "2 seconds"})
    counted = shared.start(tmp_path / "shared", batches=2)
    counted.awaitTermination()
    commits = [e for e in counted.events() if isinstance(e, BatchCommitted)]
    assert [e.received_tuples for e in commits[:2]] == [(30, 40)] * 2
