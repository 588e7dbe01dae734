"""Execute a batch on Spark.

One stage of tasks spreads tuples over partitions, one joins, and one follows each further time that
partial results change partition. A small batch is one task, so nothing is shuffled.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from traceback import clear_frames
from typing import Any
from weakref import WeakMethod

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from braid.core.batch_report import TaskReport, report_from_json
from braid.execution.asof_probing import count_release_stages
from braid.execution.executor_choice import ExecutionResult, ExecutorChoice
from braid.execution.host_task import HostTask
from braid.execution.spark_to_arrow import announced_bytes
from braid.execution.wire_format import (
    ExcludedTuples,
    count_shuffles,
    decode_partials,
    encode_arrow,
    encode_partials,
    find_needed_keys,
    make_shipment,
    split_by_stream,
)
from braid.kernels.column_views import drop_views, restore_views
from braid.kernels.join_spec import BatchSpec
from braid.util.clock_and_threads import current_environment

SHIPPED = (
    T.StructType()
    .add("partition", T.IntegerType())
    .add("kind", T.StringType())
    .add("body", T.BinaryType())
)
Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function for ``mapInArrow``."""


_PLAIN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
}


def disable_adaptive_execution(frame: DataFrame) -> None:
    """Disable adaptive execution and shuffle checksums in the session of a micro-batch.

    A repeated task sends the same tuples, but its report has other seconds and file names. Spark
    would compare the bytes and fail the batch if another stage has read those of the first attempt.
    """
    for name, value in _PLAIN.items():
        frame.sparkSession.conf.set(name, value)


def clone_session(spark: SparkSession) -> SparkSession:
    """Return a session with another's settings and functions, as Spark makes for each query."""
    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())


class SparkExecutor:
    """Executor that runs the tasks of a batch as Spark tasks, on any cluster."""

    def __init__(self) -> None:
        self.work = 0.0
        """Seconds of work of all tasks of the last batch."""

    def execute_batch(self, frame: DataFrame, batch: BatchSpec) -> ExecutionResult:
        """Run a batch as one Spark job: one task, or stages with a shuffle before each."""
        if choose_partitions(announced_bytes(frame), self.work, batch.spec.partitions) == 1:
            rows = frame.coalesce(1).mapInArrow(single_stage(pack_on_one_partition(batch)), SHIPPED)
        else:
            rows = frame.mapInArrow(route_stage(batch), SHIPPED)
            for number in range(count_stages(batch)):
                stage = hop_stage(batch, number) if number else join_stage(batch)
                rows = rows.repartitionById(batch.spec.partitions, "partition").mapInArrow(
                    stage, SHIPPED
                )
        reports = [report_from_json(row.body) for row in rows.collect()]
        self.work = sum(report.kernel_seconds for report in reports)
        return ExecutionResult(reports, ExecutorChoice("spark", "as asked for"))


_SMALL = 4 << 20
"""Announced bytes up to which one task is faster than a reading and a joining stage.

Estimated, not measured.
"""
_SHORT = 0.2
"""Seconds of work up to which one task is used: about the overhead of a second stage."""


def choose_partitions(announced: int, work: float, most: int) -> int:
    """Return the number of partitions for a batch: 1 or ``most``.

    State is in files, so the number may change from batch to batch.

    - ``announced``: bytes that the source announces; 0: unknown.
    - ``work``: seconds of work in the last batch.
    """
    return 1 if 0 < announced <= _SMALL and work <= _SHORT else most


def count_stages(batch: BatchSpec) -> int:
    """Return the number of stages that join the tuples of a batch, with a shuffle before each."""
    return 1 + max(count_shuffles(batch), count_release_stages(batch))


def pack_on_one_partition(batch: BatchSpec) -> BatchSpec:
    """Return the batch with all hosts on one partition."""
    return replace(batch, spec=replace(batch.spec, partitions=1))


def single_stage(batch: BatchSpec) -> Stage:
    """Return the stage over the streams' union in which one task does everything."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task, source, excluded = (
            HostTask(batch, _current_partition()),
            TimedIterator(batches),
            ExcludedTuples(),
        )
        arrived: dict[int, list[pa.RecordBatch]] = {}
        need = find_needed_keys(batch)
        for rows in source:
            for s, flat in split_by_stream(rows, batch, excluded):
                if (part := need[s][0].filter_rows(flat)).num_rows:
                    arrived.setdefault(s, []).append(part)
        excluded.write_untimed_rows(task.irregular)
        task.answers.answer_rejected_tuples(excluded.rejected)
        began = current_environment().read_clock()
        task.prepare_blocks()
        task.probing.probe_paths(task.build_fresh_blocks(arrived))
        yield _make_report_shipment(source.make_report(excluded.untimed), 0)
        yield from _make_shipments(task, 0, began)

    return run


def route_stage(batch: BatchSpec) -> Stage:
    """Return the stage that sends tuples of the streams' union to the partitions that need them."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _freeze_imported_objects()
        need, source, excluded = (
            find_needed_keys(batch),
            TimedIterator(batches),
            ExcludedTuples(),
        )
        for rows in source:
            for s, flat in split_by_stream(rows, batch, excluded):
                for p, needed in enumerate(need[s]):
                    if (part := needed.filter_rows(flat)).num_rows:
                        yield make_shipment([(p, f"tuples {s}", encode_arrow(drop_views(part)))])
        yield _make_report_shipment(source.make_report(excluded.untimed), 0)
        if excluded.rejected or excluded.untimed_rows:
            task = HostTask(batch, _current_partition())
            excluded.write_untimed_rows(task.irregular)
            task.answers.answer_rejected_tuples(excluded.rejected)
            yield _make_report_shipment(task.make_report(), 0)

    return run


def join_stage(batch: BatchSpec) -> Stage:
    """Return the stage that joins the tuples sent by ``route_stage``."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = HostTask(batch, _current_partition())
        arrived: dict[int, list[pa.RecordBatch]] = {}
        for rows in batches:
            for kind, body in zip(
                rows.column("kind").to_pylist(), rows.column("body"), strict=True
            ):
                if kind == "report":
                    yield make_shipment([(task.partition, kind, body.as_py())])
                else:
                    sent = pa.ipc.open_stream(body.as_buffer())
                    arrived.setdefault(int(kind.split()[1]), []).extend(map(restore_views, sent))
        began = current_environment().read_clock()
        task.prepare_blocks()
        task.probing.probe_paths(task.build_fresh_blocks(arrived))
        yield from _make_shipments(task, 0, began)

    return run


def hop_stage(batch: BatchSpec, number: int) -> Stage:
    """Return the stage that continues partial results and passes earlier reports on."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = HostTask(batch, _current_partition())
        for row in (row for b in batches for row in b.to_pylist()):
            if row["kind"] == "report":
                yield make_shipment([(row["partition"], "report", row["body"])])
                task.replicas.register(report_from_json(row["body"]))
            else:
                partial, place = decode_partials(row["body"])
                task.receive(place, partial)
        began = current_environment().read_clock()
        if number <= count_release_stages(batch):
            task.releasing.run_release_stage(number)
        task.probing.probe_pending()
        yield from _make_shipments(task, number, began)

    return run


class TimedIterator:
    """Iterator over record batches that counts their bytes and the seconds of waiting."""

    def __init__(self, items: Iterable[pa.RecordBatch]) -> None:
        self.items, self.seconds, self.bytes = iter(items), 0.0, 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def make_report(self, untimed: Counter[int]) -> TaskReport:
        """Return the report of the source, including the number of ``untimed`` tuples."""
        return TaskReport({}, source_seconds=self.seconds, source_bytes=self.bytes, untimed=untimed)

    def __next__(self) -> pa.RecordBatch:
        began = current_environment().read_clock()
        try:
            rows = next(self.items)
            self.bytes += rows.nbytes
            return rows
        finally:
            self.seconds += current_environment().read_clock() - began


def _make_report_shipment(report: TaskReport, partition: int) -> pa.RecordBatch:
    return make_shipment([(partition, "report", report.to_json())])


def _make_shipments(task: HostTask, stage: int, began: float) -> Iterator[pa.RecordBatch]:
    """Yield the rows that leave a task: its report, then its partial results.

    ``began``: when the hosts of the task began to work.
    """
    report = task.make_report()
    report.stage, report.kernel_seconds = stage, current_environment().read_clock() - began
    yield _make_report_shipment(report, task.partition)
    for partitions, place, partial in task.shipments():
        body = encode_partials(partial, place)
        for p in partitions:
            yield make_shipment([(p, "partial", body)])


def _current_partition() -> int:
    _freeze_imported_objects()
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


@cache
def _freeze_imported_objects() -> None:
    """Exclude the objects of imported modules from garbage collection, once per worker."""
    gc.collect()
    gc.freeze()


def weak_callback(turn: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
    """Return a callback that refers to its owner weakly, so that a finished run can be freed.

    Py4J's callback table keeps the callback. An exception keeps its lines but not the variables of
    its frames. The callback raises RuntimeError if the owner is gone.
    """
    owned = WeakMethod(turn)

    def turned(frame: Any, number: int) -> None:
        owner = owned()
        if owner is None:
            raise RuntimeError(f"micro-batch {number} belongs to a run that no longer exists")
        try:
            owner(frame, number)
        except BaseException as error:
            _clear_exception_frames(error)
            raise
        finally:
            owner = None

    return turned


def _clear_exception_frames(error: BaseException | None) -> None:
    """Clear the variables of the frames that an exception and its causes went through."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
