"""A batch on Spark: a stage of tasks that spreads tuples over partitions, one that joins, and one
for each further time that partial results change partition.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from braid.core.report import Report, decode
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


class SparkExecutor:
    """Runs the tasks of a batch as Spark's tasks, on any cluster."""

    def execute(self, frame: DataFrame, batch: Batch) -> list[Report]:
        """Run a batch as one Spark job, with a shuffle before every stage."""
        rows = frame.mapInArrow(spread(batch), SHIPPED)
        for stage in (first_stage, *[next_stage] * shuffles(batch)):
            rows = rows.repartitionById(batch.spec.partitions, "partition").mapInArrow(
                stage(batch), SHIPPED
            )
        return [decode(row.body) for row in rows.collect()]


def spread(batch: Batch) -> Stage:
    """The function over the streams' union, the reshuffler: tuples go to the partitions that need
    them.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _quiet_collector()
        need = partitions_by_key(batch)
        for rows in batches:
            for s, flat in by_stream(rows, batch):
                for p, mask in enumerate(need[s]):
                    if (part := needed(flat, mask)).num_rows:
                        yield shipment([(p, f"tuples {s}", arrow_stream(part))])

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
                arrived.setdefault(int(kind.split()[1]), []).extend(
                    pa.ipc.open_stream(body.as_buffer())
                )
        task.derive()
        task.probe(task.take_in(arrived))
        yield from _finish(task)

    return run


def next_stage(batch: Batch) -> Stage:
    """The function over what an earlier stage shipped: reports pass through, partial results go
    on.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = Task(batch, _partition())
        for row in (row for b in batches for row in b.to_pylist()):
            if row["kind"] == "report":
                yield shipment([(row["partition"], "report", row["body"])])
                task.learn(decode(row["body"]))
            else:
                partial, place = unpack(row["body"])
                task.pending.setdefault(place, []).append(partial)
        task.go_on()
        yield from _finish(task)

    return run


def _finish(task: Task) -> Iterator[pa.RecordBatch]:
    """The rows that leave a task: its report, then its partial results."""
    yield shipment([(task.partition, "report", task.report().encode())])
    for partitions, place, partial in task.ship():
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
