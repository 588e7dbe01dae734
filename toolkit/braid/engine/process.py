"""A batch in this process: partitions are threads, tuples and partial results stay where they are.

What Spark carries between tasks as bytes is handed over here as it is: tuples are views of the
batch, partial results and reports are objects.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from braid.core.report import Report
from braid.engine.task import Task
from braid.engine.wire import Batch, by_stream, entering, needed, partitions_by_key

Arrived = dict[int, list[pa.RecordBatch]]
"""Tuples by stream."""


class ProcessExecutor:
    """Runs the tasks of a batch on ``threads`` threads of this process (by default one a core).

    ``frame`` is an Arrow table, or has ``toArrow()`` as Spark's DataFrame has, or is the tuples by
    stream (see tables.py), or a function that makes one of these.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.pool = ThreadPoolExecutor(threads or os.cpu_count() or 1, "braid-task")

    def execute(self, frame: Any, batch: Batch) -> list[Report]:
        """Run a batch in this process, a thread for each task, stage by stage."""
        began = time.perf_counter()
        tuples = _tuples(frame() if callable(frame) else frame, batch)
        source = time.perf_counter() - began
        need = partitions_by_key(batch)
        tasks = [Task(batch, p) for p in range(batch.spec.partitions)]

        def first(task: Task) -> None:
            arrived: Arrived = {}
            for s, batches in tuples.items():
                parts = [needed(rows, need[s][task.partition]) for rows in batches]
                if some := [part for part in parts if part.num_rows]:
                    arrived[s] = some
            task.derive()
            task.probe(task.take_in(arrived))

        self.worked = 0.0
        self._each(first, tasks)
        while hand_over(tasks):
            self._each(Task.go_on, [task for task in tasks if task.pending])
        reports = self._each(Task.report, tasks)
        return [*reports, Report({}, source=source, kernels=self.worked)]

    def _each(self, work: Callable[[Task], Any], tasks: Iterable[Task]) -> list[Any]:
        """Do a piece of work for every task. All have ended when one's error is raised."""
        began = time.perf_counter()
        waiting = [self.pool.submit(work, task) for task in tasks]
        for future in waiting:
            future.exception()
        self.worked += time.perf_counter() - began
        return [future.result() for future in waiting]


def _tuples(frame: Any, batch: Batch) -> Arrived:
    if isinstance(frame, dict):
        return {s: [entering(rows, s, batch) for rows in each] for s, each in frame.items()}
    table = frame if isinstance(frame, pa.Table) else frame.toArrow()
    found: Arrived = {}
    for rows in table.to_batches():
        for s, flat in by_stream(rows, batch):
            found.setdefault(s, []).append(flat)
    return found


def hand_over(tasks: list[Task]) -> bool:
    """Give partial results to the tasks that go on with them; whether there were any."""
    some = False
    for task in tasks:
        for partitions, place, partial in task.ship():
            some = True
            for p in partitions:
                tasks[p].pending.setdefault(place, []).append(partial)
        task.leaving = {}
    return some
