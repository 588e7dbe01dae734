"""The Spark executor's stages in this process.

They use the same functions, and pass bytes from one stage to the next by partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa
from braid.core.batch_report import report_from_json
from braid.execution import spark_executor
from braid.execution.executor_choice import ExecutionResult, ExecutorChoice
from braid.execution.thread_executor import ThreadExecutor
from braid.execution.wire_format import ExcludedTuples, select_arrivals, split_by_stream
from braid.kernels.join_spec import BatchSpec


class Tuples(NamedTuple):
    """Tuples already assigned to one stream."""

    stream: int
    rows: pa.RecordBatch

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes


class InProcessStages:
    """Runs the tasks of a batch as SparkExecutor does, one after the other, without Spark."""

    def execute_batch(self, frame: Any, batch: BatchSpec) -> ExecutionResult:
        """Execute a batch. ``frame`` is the union of the streams as an Arrow table, or tuples by
        stream.
        """
        frame = frame(batch.shedding) if callable(frame) else frame
        came = (
            [Tuples(s, rows) for s, each in frame.items() for rows in each]
            if isinstance(frame, dict)
            else frame.to_batches()
        )
        if batch.spec.partitions == 1:
            with _without_spark(0), patch.object(spark_executor, "split_by_stream", _by_stream):
                return _make_result([*spark_executor.single_stage(batch)(came)])
        with _without_spark(0), patch.object(spark_executor, "split_by_stream", _by_stream):
            shipped = [*spark_executor.route_stage(batch)(came)]
        for number in range(spark_executor.count_stages(batch)):
            stage = (
                spark_executor.hop_stage(batch, number)
                if number
                else spark_executor.join_stage(batch)
            )
            done = []
            for p in range(batch.spec.partitions):
                with _without_spark(p):
                    done += stage(mine for b in shipped for mine in _select_partition(b, p))
            shipped = done
        return _make_result(shipped)


class AlternatingExecutor:
    """An executor that alternates by batch between two threads and Spark's stages."""

    def __init__(self) -> None:
        self.ways = cycle([ThreadExecutor(2, alone=0), InProcessStages()])
        self.way: Any = None

    def execute_batch(self, frame: Any, batch: BatchSpec) -> ExecutionResult:
        if self.way is None or batch.routes:  # early answers are of the same batch
            self.way = next(self.ways)
        done: ExecutionResult = self.way.execute_batch(frame, batch)
        return done


def _select_partition(shipped: pa.RecordBatch, partition: int) -> list[pa.RecordBatch]:
    """Return the rows of a partition, if there are any."""
    mine = shipped.column("partition").to_numpy() == partition
    if mine.all():
        return [shipped] if len(mine) else []
    return [shipped.filter(pa.array(mine))] if mine.any() else []


def _make_result(shipped: list[pa.RecordBatch]) -> ExecutionResult:
    bodies = [body for b in shipped for body in b.column("body").to_pylist()]
    return ExecutionResult(
        [*map(report_from_json, bodies)], ExecutorChoice("spark", "as asked for")
    )


def _by_stream(
    rows: Any, batch: BatchSpec, excluded: ExcludedTuples
) -> Iterator[tuple[int, pa.RecordBatch]]:
    if not isinstance(rows, Tuples):
        return split_by_stream(rows, batch, excluded)
    return iter([(rows.stream, select_arrivals(rows.rows, rows.stream, batch, excluded))])


@contextmanager
def _without_spark(partition: int) -> Iterator[None]:
    with (
        patch.object(spark_executor, "_current_partition", lambda: partition),
        patch.object(spark_executor, "_freeze_imported_objects", lambda: None),
    ):
        yield
