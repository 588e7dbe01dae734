"""A batch in this process: tasks are threads, tuples and partial results stay where they are.

What Spark carries between tasks as bytes is handed over here as it is: tuples are views of the
batch, partial results and reports are objects.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from braid.core.report import Report
from braid.engine.choice import Choice, Executed
from braid.engine.task import Task
from braid.engine.wire import Batch, by_stream, entering

Arrived = dict[int, list[pa.RecordBatch]]
"""Tuples by stream."""


class ProcessExecutor:
    """Runs the tasks of a batch on ``threads`` threads of this process (by default one a core), on
    one when its tuples have fewer than ``alone`` bytes: that takes as long then.

    ``frame`` is Spark's DataFrame, an Arrow table, a list of record batches, or the tuples by
    stream (see tables.py), or a function that makes one of these.
    """

    def __init__(self, threads: int | None = None, alone: int = 1 << 20) -> None:
        self.threads, self.alone = threads or os.cpu_count() or 1, alone
        self.pool = ThreadPoolExecutor(self.threads, "braid-task")
        self.worked = 0.0

    def execute(self, frame: Any, batch: Batch) -> Executed:
        """Run a batch in this process, a thread for each task, stage by stage."""
        began = time.perf_counter()
        tuples = _tuples(frame() if callable(frame) else frame, batch)
        self.worked, source = 0.0, time.perf_counter() - began
        tasks = self._tasks(tuples, batch)
        self._each(partial(_first, tuples), tasks)
        while hand_over(tasks):
            self._each(Task.go_on, [task for task in tasks if task.pending])
        reports = self._each(Task.report, tasks)
        told = Report({}, source=source, kernels=self.worked)
        return Executed([*reports, told], Choice("process", "as asked for"))

    def _tasks(self, tuples: Arrived, batch: Batch) -> list[Task]:
        """A task for each thread that is worth while. State lies in files, so the hosts of a batch
        may be packed otherwise than those of the last.
        """
        size = sum(rows.nbytes for batches in tuples.values() for rows in batches)
        count = 1 if size < self.alone else max(1, min(self.threads, batch.hosts))
        packed = replace(batch, spec=replace(batch.spec, partitions=count))
        return [Task(packed, p) for p in range(count)]

    def _each(self, work: Callable[[Task], Any], tasks: list[Task]) -> list[Any]:
        """Do a piece of work for every task. All have ended when one's error is raised."""
        began = time.perf_counter()
        if len(tasks) == 1:
            done = [work(tasks[0])]
        else:
            waiting = [self.pool.submit(work, task) for task in tasks]
            for future in waiting:
                future.exception()
            done = [future.result() for future in waiting]
        self.worked += time.perf_counter() - began
        return done


def _first(tuples: Arrived, task: Task) -> None:
    task.derive()
    task.probe(task.take_in(tuples))


def _tuples(frame: Any, batch: Batch) -> Arrived:
    """The tuples of a batch by stream, those of each in one piece."""
    if isinstance(frame, dict):
        return {s: _whole([entering(rows, s, batch) for rows in each]) for s, each in frame.items()}
    if isinstance(frame, pa.Table):
        frame = frame.to_batches()
    elif not isinstance(frame, list):
        from braid.engine.collect import collected

        frame = collected(frame)
    found: Arrived = {}
    for rows in frame:
        for s, flat in by_stream(rows, batch):
            found.setdefault(s, []).append(flat)
    return {s: _whole(batches) for s, batches in found.items()}


def _whole(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return batches if len(batches) == 1 else [pa.concat_batches(batches)]


def hand_over(tasks: list[Task]) -> bool:
    """Give partial results to the tasks that go on with them; whether there were any."""
    some = False
    for task in tasks:
        for partitions, place, found in task.ship():
            some = True
            for p in partitions:
                tasks[p].pending.setdefault(place, []).append(found)
        task.leaving = {}
    return some
