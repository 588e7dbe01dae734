"""Workers and batches are interrupted; the results equal those of an undisturbed run."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from braid.errors import DamagedRunError
from braid.execution import spark_executor as executor
from braid.storage.run_store import RunStore
from braid.stream_join import JoinRun, StreamJoin
from oracle import committed_ids, compute_expected, create_frames, describe_difference, make_tables
from pyspark import TaskContext
from pyspark.sql import SparkSession
from scatter import Scatter


def ended(run: JoinRun) -> JoinRun:
    run.awaitTermination()
    return run


def test_a_batch_that_is_cut_off_right_after_its_commit_is_not_done_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark considers batch 1 failed and repeats it in the resumed run, which has it already."""
    streams, on = make_tables("ab", 150, seed=51, batches=3), "a.k = b.k"
    join = StreamJoin(create_frames(spark, streams), on, Scatter(), partitions=2, check=True)
    with monkeypatch.context() as patch:
        real = RunStore.remove_old_files

        def tidy(store: RunStore, *given: Any) -> None:
            if store.log.committed_batches()[-1] == 1:
                raise OSError("right after the commit")
            real(store, *given)

        patch.setattr(RunStore, "remove_old_files", tidy)
        run = join.start(tmp_path / "run", batches="batch")
        with pytest.raises(OSError, match="right after the commit"):
            run.awaitTermination()
    assert RunStore(tmp_path / "run").log.committed_batches() == [0, 1]
    run = ended(StreamJoin.resume(tmp_path / "run", join.streams))
    assert describe_difference(committed_ids(run), compute_expected(streams, on)) == ""
    assert sum(run.metrics()["results"]) == committed_ids(run).total()
    shutil.rmtree(
        tmp_path / "run" / "checkpoint"
    )  # Spark would restart from the beginning, the run would not
    with pytest.raises(
        DamagedRunError, match="finished micro-batch -1 and begun -1, the run has committed 2"
    ):
        StreamJoin.resume(tmp_path / "run", join.streams)


def test_python_workers_killed_in_the_middle_of_their_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each task of two stages stops after writing its files; its worker is killed and Spark retries
    it.
    """
    streams, on = make_tables("abc", 60, seed=41, batches=2), "a.k = b.k AND b.k = c.k"
    monkeypatch.setattr(executor, "choose_partitions", lambda announced, work, most: most)
    for stage in ("join_stage", "hop_stage"):
        monkeypatch.setattr(executor, stage, stopped(getattr(executor, stage), tmp_path / stage))
    join = StreamJoin(
        create_frames(spark, streams), on, Scatter(), partitions=2, check=True, executor="spark"
    )
    run, killed = join.start(tmp_path / "run", batches="batch"), set()
    while run.isActive:
        for mark in {*tmp_path.glob("*.pid")} - killed:
            os.kill(int(mark.read_text()), signal.SIGKILL)
            killed.add(mark)
        run.awaitTermination(0.02)
    assert len(killed) == 2 * 2 * 2, "stages, batches, tasks"
    assert describe_difference(committed_ids(run), compute_expected(streams, on)) == ""
    assert run.metrics()["results"].sum() == run.results().count()


def stopped(stage: Callable[..., Any], mark: Path) -> Callable[..., Any]:
    """Return a stage whose tasks stop once in each batch."""
    return lambda batch, *more: stopping(
        stage(batch, *more), mark.with_name(f"{mark.name}-{batch.batch}")
    )


def stopping(kernel: Callable[[Any], Iterator[Any]], mark: Path) -> Callable[[Any], Iterator[Any]]:
    """Return the kernel, whose first attempt of each task reports its process id and waits
    forever.
    """

    def run(batches: Any) -> Iterator[Any]:
        done = list(kernel(batches))
        mine = mark.with_name(f"{mark.name}-{TaskContext.get().partitionId()}.pid")
        if not mine.exists():
            mine.with_suffix(".new").write_text(str(os.getpid()))
            mine.with_suffix(".new").rename(mine)
            signal.pause()
        yield from done

    return run
