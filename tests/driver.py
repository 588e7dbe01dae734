"""A driver process for a test to kill.

Usage: ``python driver.py RUNS [MASTER]``; RUNS is a list of ``Run`` in JSON. It runs all of them at
once. A run without ``held`` starts after the others are held.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import hub_cases
import kafka_cases
import msgspec
from braid.execution import spark_executor as engine
from braid.execution.spark_executor import Stage
from braid.kernels.join_spec import BatchSpec
from braid.papers.shedding.shed import Shed
from braid.spark_session import session
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from input_splitting import hooked_splitter
from oracle import create_frames, make_tables, wait_until
from pyspark import TaskContext
from pyspark.sql import SparkSession
from scatter import Scatter

SPECULATING = {
    "spark_speculation": "true",
    "spark_speculation_interval": "100ms",
    "spark_speculation_task_duration_threshold": "1s",
}
"""Settings that start a second attempt of a task after one second."""
ON = "abs(a.n - b.n) <= 30 AND b.k <> a.k"
WINDOWS = {"a": 300, "b": 250}
STREAMS = make_tables("ab", {"a": 300, "b": 400}, seed=31, batches=8)


class Run(msgspec.Struct):
    """A join of seeded streams in a folder, with a fraction of all pairs if one is given, or a hub.

    ``more`` are further arguments of the join. A run of Kafka has the address of its broker there.

    It creates the file FOLDER.held and waits forever right before the commit of batch ``held``, or
    at the point of ``hub_cases.held``, or before the input of batch ``cuts`` is written, after all
    batches before it are committed. In batch ``stalls`` a task creates the file FOLDER.stalled and
    waits forever after writing its files.
    """

    folder: str
    verb: str
    held: int | None = None
    way: str = "spark"
    fraction: float | None = None
    stalls: int | None = None
    cuts: int | None = None
    more: dict[str, str] = {}

    @property
    def mark(self) -> Path:
        return Path(f"{self.folder}.held")

    @property
    def stalled(self) -> Path:
        """Return the file that exists once a task is stalled."""
        return Path(f"{self.folder}.stalled")

    def begin(self, spark: SparkSession) -> Any:
        if self.verb == "hub":
            return hub_cases.hub_blocked_before_commit(spark, self.folder)
        if self.verb == "kafka":
            return kafka_cases.WaitingRun(spark, self.more["servers"], self.folder, self.mark)
        streams = create_frames(spark, STREAMS)
        if self.verb == "resume":
            return StreamJoin.resume(self.folder, streams, executor=self.way)
        join = make_join(streams, self.fraction, self.way, **self.more)
        return join.start(self.folder, batches="batch")


def make_join(
    streams: Any, fraction: float | None = None, way: str = "auto", **more: Any
) -> StreamJoin:
    """Return the join that all drivers run."""
    windows = {a: f"{w} seconds" for a, w in WINDOWS.items()}
    shed = None if fraction is None else Shed(fraction=fraction)
    return StreamJoin(
        streams, ON, Scatter(), windows, time="ts", check=True, executor=way, shed=shed, **more
    )


def hold_commits(runs: list[Run]) -> None:
    commit, held = RunStore.commit_batch, {run.folder: run for run in runs if run.held is not None}

    def hold_commit(store: RunStore, number: int, *given: Any) -> None:
        run = held.get(str(store.path))
        if run is not None and number == run.held:
            run.mark.touch()
            threading.Event().wait()
        commit(store, number, *given)

    RunStore.commit_batch = hold_commit  # type: ignore[method-assign]


def hold_input(runs: list[Run]) -> AbstractContextManager[None]:
    held = {run.folder: run for run in runs if run.cuts is not None}

    def wait_at_batch(folder: Path, number: int) -> None:
        run = held.get(str(folder.parent))
        if run is not None and number == run.cuts:
            wait_until(
                lambda: len(RunStore(run.folder).log.committed_batches()) == number,
                "batches before",
            )
            run.mark.touch()
            threading.Event().wait()

    return hooked_splitter(wait_at_batch)


def stall_task(one: Run) -> None:
    """Make the first attempt of a task in batch ``stalls`` of a run wait after writing all its
    files.
    """
    mark = one.stalled

    def stall_stage(stage: Callable[[BatchSpec], Stage], batch: BatchSpec) -> Stage:
        def run_stage(given: Iterable[Any]) -> Iterator[Any]:
            done = [*whole(given)]
            task = TaskContext.get()
            if task is not None and not task.partitionId() and not task.attemptNumber():
                mark.touch()
                signal.pause()
            yield from done

        whole = stage(batch)
        return run_stage if (batch.spec.folder, batch.batch) == (one.folder, one.stalls) else whole

    for name in ("single_stage", "join_stage"):
        setattr(engine, name, partial(stall_stage, getattr(engine, name)))


def main(reported: str, master: str = "") -> None:
    runs = msgspec.json.decode(reported, type=list[Run])
    hold_commits(runs)
    alike = {"spark_executor_extraJavaOptions": os.environ.get("SPARK_DAEMON_JAVA_OPTS", "")}
    if master:
        alike |= SPECULATING
        engine._SHORT = -1.0  # run small batches as Spark stages too
    for run in runs:
        if run.stalls is not None:
            stall_task(run)
    spark = session(cores=2, master=master or None, **alike)
    waiting = [
        run for run in runs if {run.held, run.cuts} != {None} or run.verb in ("hub", "kafka")
    ]
    with hold_input(runs):
        begun = [run.begin(spark) for run in waiting]
        wait_until(lambda: all(run.mark.exists() for run in waiting), "moment to be held", 240)
        begun += [run.begin(spark) for run in runs if run not in waiting]
        for one in begun:
            one.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
