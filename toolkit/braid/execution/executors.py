"""Execute the tasks of a batch with Spark, on threads, or with either from batch to batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from braid.errors import CollectLimitExceeded, SparkResultLimitExceeded
from braid.execution.executor_choice import (
    COPIES,
    ExecutionResult,
    ExecutorChoice,
    Parallelism,
    choose_executor,
    driver_memory_excess,
    recent_timings,
)
from braid.kernels.join_spec import BatchSpec
from braid.util.machine import available_cores, parse_memory_limit
from braid.util.validation import check_choice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAYS = ("auto", "process", "spark")


class Executor(Protocol):
    """Interface for executing the tasks of a batch.

    All executors run the same tasks (``host_task``), which write the same files. A run may change
    the executor from batch to batch.
    """

    def execute_batch(self, frame: Any, batch: BatchSpec) -> ExecutionResult:
        """Run all tasks of a batch.

        ``frame``: the batch's tuples, as a union of the streams laid out by ``stream_layout``.
        """
        ...


class AutoExecutor:
    """Executor that the cost model expects to be faster (see ``executor_choice``).

    A batch runs in this process only if it needs at most ``memory`` bytes. ``events`` returns the
    events of the run so far.
    """

    def __init__(self, events: Callable[[], Sequence[Any]], memory: int) -> None:
        self.events, self.memory = events, memory
        self.process, self.spark = _make_thread_executor(), _make_spark_executor()
        self._machine: Parallelism | None = None

    def execute_batch(self, frame: DataFrame, batch: BatchSpec) -> ExecutionResult:
        """Run a batch in this process or on Spark.

        A batch that exceeds the memory limit moves to Spark.
        """
        from braid.execution.spark_to_arrow import ByteBudget, announced_bytes, collect_batch

        self._machine = machine = self._machine or available_parallelism(
            frame.sparkSession, self.memory
        )
        size, derived, collected_bytes = (
            announced_bytes(frame),
            batch.derived_bytes(machine.threads),
            0,
        )
        choice = choose_executor(
            recent_timings(self.events()), size, batch.active_hosts, machine, derived
        )
        if choice.executor == "process":
            most = machine.collect_limit_bytes - derived
            try:
                done = self.process.execute_batch(
                    lambda _: collect_batch(frame, ByteBudget(most)), batch
                )
            except SparkResultLimitExceeded as refused:
                choice, collected_bytes = ExecutorChoice("spark", str(refused)), refused.size
            except CollectLimitExceeded as overflow:
                collected_bytes = overflow.size
                choice = ExecutorChoice(
                    "spark", driver_memory_excess(collected_bytes, machine, derived)
                )
            else:
                return ExecutionResult(done.reports, choice, size, parallelism=machine.describe)
        done = self.spark.execute_batch(frame, batch)
        return ExecutionResult(done.reports, choice, size, collected_bytes, machine.describe)


def available_parallelism(spark: SparkSession, memory: int) -> Parallelism:
    """Return the parallelism available to a batch.

    Spark's setting ``spark.driver.maxResultSize`` also limits the memory.
    """
    from braid.execution.spark_to_arrow import driver_result_limit

    context = spark.sparkContext
    if (most := driver_result_limit(spark)) > 0:
        memory = min(memory, COPIES * most * 3 // 4)
    local = str(context.master).startswith("local")
    return Parallelism(available_cores(), context.defaultParallelism, local, memory)


def make_executor(
    way: str, events: Callable[[], Sequence[Any]] = tuple, memory: int | None = None
) -> Executor:
    """Return the executor of that name. Raises ValueError if it is unknown.

    "auto": see AutoExecutor.
    """
    if check_executor(way) == "auto":
        return AutoExecutor(events, parse_memory_limit() if memory is None else memory)
    return _make_spark_executor() if way == "spark" else _make_thread_executor()


def _make_spark_executor() -> Executor:
    from braid.execution.spark_executor import SparkExecutor

    return SparkExecutor()


def _make_thread_executor() -> Executor:
    from braid.execution.thread_executor import ThreadExecutor

    return ThreadExecutor()


def check_executor(way: str) -> str:
    """Return the name of an executor. Raises ValueError if it is unknown."""
    return check_choice(way, "executor", WAYS)
