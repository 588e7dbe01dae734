"""A batch in this process: tasks are threads, tuples and partial results stay where they are.

What Spark carries between tasks as bytes is handed over here as it is: fresh blocks are made once,
a share of them by each task, and tasks have the same rows and files; partial results and reports
are objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa

from braid.core.environment import environment
from braid.core.plan import Route
from braid.core.report import Report
from braid.core.work import workers
from braid.engine.choice import Choice, Executed
from braid.engine.fresh import Fresh
from braid.engine.memory import cores, keep_freed
from braid.engine.task import Task
from braid.engine.wire import Batch, complete, entering, parted

T = TypeVar("T")
Arrived = dict[int, list[pa.RecordBatch]]
"""Tuples by stream."""
_SHORT = 0.05
"""Seconds of work that one thread does as fast as several."""


class ProcessExecutor:
    """Runs the tasks of a batch on ``threads`` threads of this process (by default one a core), on
    one when its tuples have fewer than ``alone`` bytes and the last batch was little work: that
    takes as long then.

    ``frame`` is Spark's DataFrame, an Arrow table, a list of record batches, or the tuples by
    stream (see tables.py), or a function that makes one of these for a batch's harvest.
    """

    def __init__(self, threads: int | None = None, alone: int = 1 << 20) -> None:
        self.threads, self.alone = threads or cores(), alone
        self.worked = self.work = 0.0
        self._pool = workers().pool("braid-task", self.threads)
        keep_freed()

    def execute(self, frame: Any, batch: Batch) -> Executed:
        """Run a batch in this process, a thread for each task, stage by stage."""
        began = environment().clock()
        untimed = Counter[int]()
        given = frame(batch.harvest) if callable(frame) else frame
        tuples, size = self._tuples(given, batch, untimed)
        self.worked, source = 0.0, environment().clock() - began
        tasks = self._tasks(tuples, batch)
        shares = _shares(batch.routes, tuples, len(tasks))
        fresh = [*chain(*self._each(partial(_made, tuples, shares), tasks))]
        tuples.clear()  # blocks are copies
        self._each(lambda task: task.probing.probe(task.replicas.take(fresh)), tasks)
        while hand_over(tasks):
            self._each(
                lambda task: task.probing.go_on(), [task for task in tasks if task.probing.pending]
            )
        reports = self._each(Task.report, tasks)
        self.work = sum(did.seconds for r in reports for did in r.hosts.values())
        told = Report({}, source=source, kernels=self.worked, source_bytes=size, untimed=untimed)
        return Executed([*reports, told], Choice("process", "as asked for"))

    def _tuples(self, frame: Any, batch: Batch, untimed: Counter[int]) -> tuple[Arrived, int]:
        """The tuples of a batch by stream, those of each in one piece, and the bytes that came."""
        if isinstance(frame, dict):
            entered = {
                s: [entering(rows, s, batch, untimed) for rows in each] for s, each in frame.items()
            }
            size = sum(rows.nbytes for each in frame.values() for rows in each)
            return {s: [_whole(each)] for s, each in entered.items()}, size
        came: Arrived = {}
        frame = _batches(frame)
        size = sum(rows.nbytes for rows in frame)
        for rows in frame:
            for s, mine in parted(rows, batch):
                came.setdefault(s, []).append(mine)

        def completed(s: int) -> list[pa.RecordBatch]:
            return [complete(_whole(came[s]), s, batch, untimed)]

        found = [*map(completed, came)] if size < self.alone else self._each(completed, [*came])
        return dict(zip(came, found, strict=True)), size

    def _tasks(self, tuples: Arrived, batch: Batch) -> list[Task]:
        """A task for each thread that is worth while. State lies in files, so the hosts of a batch
        may be packed otherwise than those of the last.
        """
        size = sum(rows.nbytes for batches in tuples.values() for rows in batches)
        small = size < self.alone and self.work < _SHORT
        count = 1 if small else max(1, min(self.threads, batch.hosts))
        packed = replace(batch, spec=replace(batch.spec, partitions=count))
        return [Task(packed, p) for p in range(count)]

    def _each(self, work: Callable[[T], Any], several: list[T]) -> list[Any]:
        """Do a piece of work for every task, or stream. All have ended when one's error is
        raised.
        """
        began = environment().clock()
        others = [self._pool.submit(work, one) for one in several[1:]]
        try:
            first = [work(one) for one in several[:1]]
        finally:
            wait(others)
        done = [*first, *(future.result() for future in others)]
        self.worked += environment().clock() - began
        return done


def _shares(routes: Sequence[Route], tuples: Arrived, tasks: int) -> list[list[Route]]:
    """The fresh blocks that each task makes: about as many bytes each, and of few streams, since
    it looks at all tuples of a stream.
    """
    fresh = [r for r in routes if r.fresh and r.block.stream in tuples]
    blocks = Counter(r.block.stream for r in fresh)
    sizes = {s: tuples[s][0].nbytes for s in blocks}
    whole = sum(sizes.values())
    shares: list[list[Route]] = [[] for _ in range(tasks)]
    done = 0.0
    for route in sorted(fresh, key=lambda r: r.block.stream):
        size = sizes[route.block.stream] / blocks[route.block.stream]
        shares[min(tasks - 1, int((done + size / 2) * tasks / max(1, whole)))].append(route)
        done += size
    return shares


def _made(tuples: Arrived, shares: Sequence[Sequence[Route]], task: Task) -> list[Fresh]:
    """What a task does before it probes: its derived blocks, and its share of the fresh ones."""
    task.replicas.derive()
    return task.cutter.cut(tuples, shares[task.partition], lambda host: True)


def _batches(frame: Any) -> list[pa.RecordBatch]:
    if isinstance(frame, pa.Table):
        return list(frame.to_batches())
    if isinstance(frame, list):
        return frame
    from braid.engine.collect import collected

    return collected(frame)


def _whole(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def hand_over(tasks: list[Task]) -> bool:
    """Give partial results to the tasks that go on with them; whether there were any."""
    some = False
    for task in tasks:
        for partitions, place, found in task.probing.ship():
            some = True
            for p in partitions:
                tasks[p].probing.pending.setdefault(place, []).append(found)
        task.probing.leaving = {}
    return some
