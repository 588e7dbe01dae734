"""A batch on Spark: a stage of tasks that spreads tuples over partitions, one that joins, and one
for each further time that partial results change partition. A small batch is one task, so that
nothing is shuffled.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from braid.core.environment import environment
from braid.core.report import Report, decode
from braid.engine.choice import Choice, Executed
from braid.engine.collect import announced
from braid.engine.task import Task
from braid.engine.wire import (
    Batch,
    arrow_stream,
    by_stream,
    needed,
    pack,
    partitions_by_key,
    shipment,
    shuffles,
    unpack,
)

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


def plainly(frame: DataFrame) -> None:
    """Have Spark run the stages of a micro-batch as they are, by the query's own session. A task
    that is tried again sends the same tuples, but its report has other seconds and names; Spark
    would compare the bytes, and fail the batch when another stage has read the first attempt's.
    """
    for name, value in _PLAIN.items():
        frame.sparkSession.conf.set(name, value)


def copied(spark: SparkSession) -> SparkSession:
    """A session with the settings and functions of another, as Spark makes one for each query."""
    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())


class SparkExecutor:
    """Runs the tasks of a batch as Spark's tasks, on any cluster."""

    def __init__(self) -> None:
        self.work = 0.0
        """Seconds that the tasks of the last batch worked, added up."""

    def execute(self, frame: DataFrame, batch: Batch) -> Executed:
        """Run a batch as one Spark job: one task, or stages with a shuffle before each."""
        if partitions(announced(frame), self.work, batch.spec.partitions) == 1:
            rows = frame.coalesce(1).mapInArrow(only_stage(on_one(batch)), SHIPPED)
        else:
            rows = frame.mapInArrow(spread(batch), SHIPPED)
            for number in range(1 + shuffles(batch)):
                stage = next_stage(batch, number) if number else first_stage(batch)
                rows = rows.repartitionById(batch.spec.partitions, "partition").mapInArrow(
                    stage, SHIPPED
                )
        reports = [decode(row.body) for row in rows.collect()]
        self.work = sum(report.kernels for report in reports)
        return Executed(reports, Choice("spark", "as asked for"))


_SMALL = 4 << 20
"""Bytes that a source announces of a batch which one task takes faster than two stages of tasks,
the first of which reads it and the second of which joins. Judged, not measured."""
_SHORT = 0.2
"""Seconds of work that one task may have: about what a second stage costs by itself."""


def partitions(announced: int, work: float, most: int) -> int:
    """On how many partitions a batch is best joined, 1 or ``most``: by the bytes that its source
    announces (0: it does not, and it may have any size) and the seconds that the tasks of the last
    batch worked. State lies in files, so it may be another number from batch to batch.
    """
    return 1 if 0 < announced <= _SMALL and work <= _SHORT else most


def on_one(batch: Batch) -> Batch:
    """The batch with all hosts on one partition."""
    return replace(batch, spec=replace(batch.spec, partitions=1))


def only_stage(batch: Batch) -> Stage:
    """The function over the streams' union when one task takes all of it."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task, source, untimed = Task(batch, _partition()), Awaited(batches), Counter[int]()
        arrived: dict[int, list[pa.RecordBatch]] = {}
        need = partitions_by_key(batch)
        for rows in source:
            for s, flat in by_stream(rows, batch, untimed):
                if (part := needed(flat, need[s][0])).num_rows:
                    arrived.setdefault(s, []).append(part)
        began = environment().clock()
        task.replicas.derive()
        task.probing.probe(task.take_in(arrived))
        yield _told(source.report(untimed), 0)
        yield from _finish(task, 0, began)

    return run


def spread(batch: Batch) -> Stage:
    """The function over the streams' union, the reshuffler: tuples go to the partitions that need
    them.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _quiet_collector()
        need, source, untimed = partitions_by_key(batch), Awaited(batches), Counter[int]()
        for rows in source:
            for s, flat in by_stream(rows, batch, untimed):
                for p, mask in enumerate(need[s]):
                    if (part := needed(flat, mask)).num_rows:
                        yield shipment([(p, f"tuples {s}", arrow_stream(part))])
        yield _told(source.report(untimed), 0)

    return run


def first_stage(batch: Batch) -> Stage:
    """The function over what ``spread`` sent: the joiners."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = Task(batch, _partition())
        arrived: dict[int, list[pa.RecordBatch]] = {}
        for rows in batches:
            for kind, body in zip(
                rows.column("kind").to_pylist(), rows.column("body"), strict=True
            ):
                if kind == "report":
                    yield shipment([(task.partition, kind, body.as_py())])
                else:
                    arrived.setdefault(int(kind.split()[1]), []).extend(
                        pa.ipc.open_stream(body.as_buffer())
                    )
        began = environment().clock()
        task.replicas.derive()
        task.probing.probe(task.take_in(arrived))
        yield from _finish(task, 0, began)

    return run


def next_stage(batch: Batch, number: int) -> Stage:
    """The function over what an earlier stage shipped: reports pass through, partial results go
    on.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = Task(batch, _partition())
        for row in (row for b in batches for row in b.to_pylist()):
            if row["kind"] == "report":
                yield shipment([(row["partition"], "report", row["body"])])
                task.replicas.learn(decode(row["body"]))
            else:
                partial, place = unpack(row["body"])
                task.probing.pending.setdefault(place, []).append(partial)
        began = environment().clock()
        task.probing.go_on()
        yield from _finish(task, number, began)

    return run


class Awaited:
    """What another iterable gives, the seconds that it was waited for, and the bytes that came."""

    def __init__(self, items: Iterable[pa.RecordBatch]) -> None:
        self.items, self.seconds, self.bytes = iter(items), 0.0, 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def report(self, untimed: Counter[int]) -> Report:
        """Return the report of what came, ``untimed`` tuples among it."""
        return Report({}, source=self.seconds, source_bytes=self.bytes, untimed=untimed)

    def __next__(self) -> pa.RecordBatch:
        began = environment().clock()
        try:
            rows = next(self.items)
            self.bytes += rows.nbytes
            return rows
        finally:
            self.seconds += environment().clock() - began


def _told(report: Report, partition: int) -> pa.RecordBatch:
    return shipment([(partition, "report", report.encode())])


def _finish(task: Task, stage: int, began: float) -> Iterator[pa.RecordBatch]:
    """The rows that leave a task: its report, then its partial results. Its hosts began to work at
    ``began``.
    """
    report = task.report()
    report.stage, report.kernels = stage, environment().clock() - began
    yield _told(report, task.partition)
    for partitions, place, partial in task.probing.ship():
        body = pack(partial, place)
        for p in partitions:
            yield shipment([(p, "partial", body)])


def _partition() -> int:
    _quiet_collector()
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


@cache
def _quiet_collector() -> None:
    """Once per worker: leave the objects of imported modules out of every later garbage
    collection.
    """
    gc.collect()
    gc.freeze()
