"""Real processes, really killed: the results are those of a run that nobody disturbed."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import driver
import pytest
from braid.engine import spark as executor
from braid.engine.durable import Damaged
from braid.engine.store import Store
from braid.join import JoinRun, StreamJoin
from killing import kill, launch
from oracle import differ, expected, found, frames, tables, until
from pyspark import TaskContext
from pyspark.sql import SparkSession
from scatter import Scatter


def ended(run: JoinRun) -> JoinRun:
    run.awaitTermination()
    return run


def test_a_driver_killed_twice(spark: SparkSession, tmp_path: Path) -> None:
    """In the middle of batch 2's tasks, and right before the commit of batch 4."""
    folder, store = tmp_path / "run", Store(tmp_path / "run")
    held, log = Path(f"{folder}.held"), Path(f"{folder}.log")

    process = launch(folder, "start")
    until(lambda: list(store.blocks.glob("000002-*")) or process.poll(), "block of batch 2", 120)
    kill(process, log)
    assert store.committed() in ([0, 1], [0, 1, 2])

    process = launch(folder, "resume", "4")
    until(lambda: held.exists() or process.poll(), "batch 4 before its commit", 120)
    kill(process, log)
    assert store.committed() == [0, 1, 2, 3]
    assert list(store.output.new.glob("000004-*"))
    assert not list(store.results.glob("000004-*"))

    run = ended(StreamJoin.resume(folder, frames(spark, driver.STREAMS)))
    assert store.committed() == list(range(8))
    assert differ(found(run), expected(driver.STREAMS, driver.ON, driver.WINDOWS)) == ""
    named = {Path(f).name for f in store.result_files()}
    assert {f.name for f in store.results.glob("*.parquet")} == named
    assert not list(store.output.new.iterdir())


def test_a_batch_that_is_cut_off_right_after_its_commit_is_not_done_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark takes batch 1 for failed and gives it again to the run that is resumed, which has it
    already.
    """
    streams, on = tables("ab", 150, seed=51, batches=3), "a.k = b.k"
    join = StreamJoin(frames(spark, streams), on, Scatter(), partitions=2, check=True)
    with monkeypatch.context() as patch:
        real = Store.tidy

        def tidy(store: Store, *given: Any) -> None:
            if store.committed()[-1] == 1:
                raise OSError("right after the commit")
            real(store, *given)

        patch.setattr(Store, "tidy", tidy)
        run = join.start(tmp_path / "run", batches="batch")
        with pytest.raises(OSError, match="right after the commit"):
            run.awaitTermination()
    assert Store(tmp_path / "run").committed() == [0, 1]
    run = ended(StreamJoin.resume(tmp_path / "run", join.streams))
    assert differ(found(run), expected(streams, on)) == ""
    assert sum(run.metrics()["results"]) == found(run).total()
    shutil.rmtree(tmp_path / "run" / "checkpoint")  # Spark would begin anew, the run would not
    with pytest.raises(
        Damaged, match="finished micro-batch -1 and begun -1, the run has committed 2"
    ):
        StreamJoin.resume(tmp_path / "run", join.streams)


@pytest.mark.parametrize("stage", ["first_stage", "next_stage"])
def test_python_workers_killed_in_the_middle_of_their_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """Each task of a stage stops when all its files are written; its worker is killed, and the task
    tried again.
    """
    streams, on = tables("abc", 60, seed=41, batches=3), "a.k = b.k AND b.k = c.k"
    real = getattr(executor, stage)
    monkeypatch.setattr(executor, "partitions", lambda announced, work, most: most)
    monkeypatch.setattr(
        executor,
        stage,
        lambda batch, *more: stopping(real(batch, *more), tmp_path / f"{batch.number}"),
    )
    join = StreamJoin(
        frames(spark, streams), on, Scatter(), partitions=2, check=True, executor="spark"
    )
    run, killed = join.start(tmp_path / "run", batches="batch"), set()
    while run.isActive:
        for mark in {*tmp_path.glob("*.pid")} - killed:
            os.kill(int(mark.read_text()), signal.SIGKILL)
            killed.add(mark)
        run.awaitTermination(0.02)
    assert len(killed) >= 6
    assert differ(found(run), expected(streams, on)) == ""
    assert run.metrics()["results"].sum() == run.results().count()


def stopping(kernel: Callable[[Any], Iterator[Any]], mark: Path) -> Callable[[Any], Iterator[Any]]:
    """The kernel, but the first attempt of each task tells its process id when its work is done and
    then waits for ever.
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
