"""Execute a batch in this process. Tasks are threads that share tuples and partial results.

Fresh blocks are made once, a share of them by each task. Partial results and reports are passed as
objects, without the encoding that Spark needs. If there are fewer hosts than threads, each task
probes for all hosts with a share of the rows.
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

from braid.core.batch_report import TaskReport
from braid.core.plan import Route
from braid.execution.asof_probing import count_release_stages
from braid.execution.executor_choice import ExecutionResult, ExecutorChoice
from braid.execution.fresh_blocks import FreshBlock, serves_all_hosts
from braid.execution.host_task import HostTask
from braid.execution.wire_format import (
    ExcludedTuples,
    complete_tuples,
    select_arrivals,
    split_columns_by_stream,
)
from braid.kernels.join_spec import BatchSpec
from braid.util.clock_and_threads import current_environment, current_workers
from braid.util.garbage_collection import pause_garbage_collection
from braid.util.machine import available_cores, retain_freed_memory

T = TypeVar("T")
Arrived = dict[int, list[pa.RecordBatch]]
"""Tuples by stream."""
_SHORT = 0.05
"""Seconds of work up to which one thread is as fast as several."""


class ThreadExecutor:
    """Executor that runs the tasks of a batch on threads of this process.

    - ``threads``: number of threads. Default: one per core.
    - ``alone``: bytes of tuples below which one thread is used, if the last batch was little work.
    """

    def __init__(self, threads: int | None = None, alone: int = 1 << 20) -> None:
        self.threads, self.alone = threads or available_cores(), alone
        self.worked = self.work = 0.0
        self._pool = current_workers().open_pool("braid-task", self.threads)
        retain_freed_memory()

    def execute_batch(self, frame: Any, batch: BatchSpec) -> ExecutionResult:
        """Run a batch on threads, one per task, stage by stage.

        ``frame``: a Spark DataFrame, an Arrow table, a list of record batches, or tuples by stream
        (see ``arrow_join``). It may be a function that returns one of these for a shedding plan.
        """
        began = current_environment().read_clock()
        excluded = ExcludedTuples()
        given = frame(batch.shedding) if callable(frame) else frame
        tuples, size = self._collect_tuples(given, batch, excluded)
        self.worked, source = 0.0, current_environment().read_clock() - began
        with pause_garbage_collection():
            reports = self._run_tasks(self._make_tasks(tuples, batch), tuples, excluded)
        self.work = sum(host_metrics.seconds for r in reports for host_metrics in r.hosts.values())
        report = TaskReport(
            {},
            source_seconds=source,
            kernel_seconds=self.worked,
            source_bytes=size,
            untimed=excluded.untimed,
        )
        return ExecutionResult([*reports, report], ExecutorChoice("process", "as asked for"))

    def _run_tasks(
        self, tasks: list[HostTask], tuples: Arrived, excluded: ExcludedTuples
    ) -> list[TaskReport]:
        """Run the tasks of a batch stage by stage. Return their reports."""
        excluded.write_untimed_rows(tasks[0].irregular)
        tasks[0].answers.answer_rejected_tuples(excluded.rejected)
        shares = _assign_fresh_blocks(tasks[0].batch.routes, tuples, len(tasks))
        fresh = [*chain(*self._map_on_threads(partial(_build_task_blocks, tuples, shares), tasks))]
        tuples.clear()  # blocks are copies
        self._continue_releases(tasks)
        self._probe_blocks(tasks, fresh)
        return self._map_on_threads(HostTask.make_report, tasks)

    def _probe_blocks(self, tasks: list[HostTask], fresh: list[FreshBlock]) -> None:
        """Store the fresh blocks and probe: each task for its hosts, or for a share of all rows."""
        if tasks[0].batch.spec.shares_hosts:
            self._probe_shares(tasks, fresh)
            return
        self._map_on_threads(
            lambda task: task.probing.probe_paths(task.replicas.store_fresh(fresh)), tasks
        )
        while exchange_partials(tasks):
            self._map_on_threads(
                lambda task: task.probing.probe_pending(),
                [task for task in tasks if task.probing.pending],
            )

    def _probe_shares(self, tasks: list[HostTask], fresh: list[FreshBlock]) -> None:
        """Store the fresh blocks, and let each task probe with a share of the rows of all hosts."""
        here = [task.replicas.store_fresh(fresh) for task in tasks]
        for task in tasks:
            task.replicas.share_replicas(other.replicas for other in tasks)
        blocks = dict(chain.from_iterable(each.items() for each in here))
        self._map_on_threads(
            lambda task: task.probing.probe_share(blocks, task.partition, len(tasks)), tasks
        )

    def _collect_tuples(
        self, frame: Any, batch: BatchSpec, excluded: ExcludedTuples
    ) -> tuple[Arrived, int]:
        """Return a batch's tuples by stream, each as one record batch, and the bytes received."""
        if isinstance(frame, dict):
            entered = {
                s: [select_arrivals(rows, s, batch, excluded) for rows in each]
                for s, each in frame.items()
            }
            size = sum(rows.nbytes for each in frame.values() for rows in each)
            return {s: [_concat_batches(each)] for s, each in entered.items()}, size
        arrived: Arrived = {}
        frame = _to_record_batches(frame)
        size = sum(rows.nbytes for rows in frame)
        for rows in frame:
            for s, stream_rows in split_columns_by_stream(rows, batch):
                arrived.setdefault(s, []).append(stream_rows)

        def completed(s: int) -> list[pa.RecordBatch]:
            return [complete_tuples(_concat_batches(arrived[s]), s, batch, excluded)]

        columns = (
            [*map(completed, arrived)]
            if size < self.alone
            else self._map_on_threads(completed, [*arrived])
        )
        return dict(zip(arrived, columns, strict=True)), size

    def _make_tasks(self, tuples: Arrived, batch: BatchSpec) -> list[HostTask]:
        """Return one task for each thread: one for little work, or if few hosts shed load.

        State is in files, so hosts may be assigned to tasks differently in each batch.
        """
        size = sum(rows.nbytes for batches in tuples.values() for rows in batches)
        small = size < self.alone and self.work < _SHORT
        can_share = batch.shedding is None
        most = self.threads if can_share else min(self.threads, batch.active_hosts)
        count = 1 if small else max(1, most)
        shares_hosts = can_share and 1 < count > batch.active_hosts
        spec = replace(batch.spec, partitions=count, shares_hosts=shares_hosts)
        packed = replace(batch, spec=spec)
        return [HostTask(packed, p) for p in range(count)]

    def _continue_releases(self, tasks: list[HostTask]) -> None:
        """Run the further stages of releases that take several tasks."""
        for stage in range(1, 1 + count_release_stages(tasks[0].batch)):
            exchange_partials(tasks)
            release = [partial(task.releasing.run_release_stage, stage) for task in tasks]
            self._map_on_threads(lambda run: run(), release)

    def _map_on_threads(self, work: Callable[[T], Any], several: list[T]) -> list[Any]:
        """Run a function on every item in parallel.

        If one raises, wait for all before raising its error.
        """
        began = current_environment().read_clock()
        others = [self._pool.submit(work, one) for one in several[1:]]
        try:
            first = [work(one) for one in several[:1]]
        finally:
            wait(others)
        done = [*first, *(future.result() for future in others)]
        self.worked += current_environment().read_clock() - began
        return done


def _assign_fresh_blocks(routes: Sequence[Route], tuples: Arrived, tasks: int) -> list[list[Route]]:
    """Return the fresh blocks that each task makes.

    Each share has about the same bytes and few streams, since a task scans all tuples of its
    streams.
    """
    fresh = [r for r in routes if r.is_fresh and r.block.stream in tuples]
    blocks = Counter(r.block.stream for r in fresh)
    sizes = {s: tuples[s][0].nbytes for s in blocks}
    total = sum(sizes.values())
    shares: list[list[Route]] = [[] for _ in range(tasks)]
    done = 0.0
    for route in sorted(fresh, key=lambda r: r.block.stream):
        size = sizes[route.block.stream] / blocks[route.block.stream]
        shares[min(tasks - 1, int((done + size / 2) * tasks / max(1, total)))].append(route)
        done += size
    return shares


def _build_task_blocks(
    tuples: Arrived, shares: Sequence[Sequence[Route]], task: HostTask
) -> list[FreshBlock]:
    """Build the task's derived blocks and its share of the fresh ones."""
    task.prepare_blocks()
    return task.cutter.build_blocks(tuples, shares[task.partition], serves_all_hosts)


def _to_record_batches(frame: Any) -> list[pa.RecordBatch]:
    if isinstance(frame, pa.Table):
        return list(frame.to_batches())
    if isinstance(frame, list):
        return frame
    from braid.execution.spark_to_arrow import collect_batch

    return collect_batch(frame)


def _concat_batches(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def exchange_partials(tasks: list[HostTask]) -> int:
    """Move partial results to the tasks that continue them. Return the number of shipments."""
    count = 0
    for task in tasks:
        for partitions, place, partials in task.shipments():
            count += 1
            for p in partitions:
                tasks[p].receive(place, partials)
        task.probing.leaving, task.releasing.leaving = {}, []
    return count
