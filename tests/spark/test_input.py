"""Spark's file source lists the files of all micro-batches at its start and reads each when
written.

The run ends after the last file, however slowly they arrive.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest
from braid.core.run_events import BatchCommitted
from braid.storage.integrity import check_run
from braid.storage.run_store import RunStore
from braid.stream_join import JoinRun, StreamJoin
from input_splitting import SplitterGate, fail_at, hooked_splitter, list_input, list_threads
from oracle import (
    committed_ids,
    compute_expected,
    create_frames,
    describe_difference,
    make_tables,
    wait_until,
)
from pyspark.sql import SparkSession
from scatter import Scatter

ON, LAST = "a.k = b.k", 4
STREAMS = make_tables("ab", 60, seed=18, batches=LAST + 1)
WANTED = compute_expected(STREAMS, ON)
ALL = {"whole": [], "cut": {a: [*range(LAST + 1)] for a in "ab"}}


def start(spark: SparkSession, folder: Path) -> JoinRun:
    join = StreamJoin(create_frames(spark, STREAMS), ON, Scatter(), check=True)
    return join.start(folder, batches="batch", durability="process")


def ends_equal(run: JoinRun) -> None:
    """Check the end of a run with matching tuples in the numbered batches."""
    assert run.awaitTermination()
    assert describe_difference(committed_ids(run), WANTED) == ""
    came = [e.received_tuples for e in run.events() if isinstance(e, BatchCommitted)]
    numbered = [STREAMS[a].filter(pc.is_valid(STREAMS[a]["k"]))["batch"].to_pylist() for a in "ab"]
    assert came == [tuple(n.count(k) for n in numbered) for k in range(LAST + 1)]
    assert (
        list_input(run.store.path) == ALL
        and check_run(run.store.path)[0] == []
        and list_threads() == []
    )


def test_the_first_batch_is_committed_before_the_last_file_is_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Each file is written after all batches before it are committed."""

    def after(folder: Path, number: int) -> None:
        wait_until(
            lambda: len(RunStore(tmp_path).log.committed_batches()) >= number, "batches before"
        )
        assert all(list_input(tmp_path)["cut"][a] == [*range(number)] for a in "ab")

    with hooked_splitter(after):
        ends_equal(start(spark, tmp_path))


def test_a_run_is_stopped_while_its_input_is_written(spark: SparkSession, tmp_path: Path) -> None:
    hold = SplitterGate(2)
    with hold.on():
        run = start(spark, tmp_path)
        wait_until(lambda: run.status["batch"] == 2, "batches")
        run.stop()
    assert run.status["state"] == "stopped" and list_threads() == []
    assert list_input(tmp_path)["whole"] == ["a", "b"]
    ends_equal(StreamJoin.resume(tmp_path, create_frames(spark, STREAMS), durability="process"))


def test_input_that_cannot_be_written_fails_the_run(spark: SparkSession, tmp_path: Path) -> None:
    with hooked_splitter(fail_at(1)):
        run = start(spark, tmp_path)
        with pytest.raises(
            RuntimeError, match="^the run's input could not be written: .* No space"
        ):
            run.awaitTermination()
    assert RunStore(tmp_path).log.committed_batches() == [0] and list_threads() == []
    ends_equal(StreamJoin.resume(tmp_path, create_frames(spark, STREAMS), durability="process"))
