"""What runs the tasks of a batch: tasks of Spark (spark.py), threads here (process.py), or one of
them from batch to batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

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
    """A way to run the tasks of a batch.

    All ways run the same tasks (task.py), which write the same files, so that a run may go another
    way from batch to batch.
    """

    def execute_batch(self, frame: Any, batch: BatchSpec) -> ExecutionResult:
        """Run all tasks of a batch. ``frame`` has the batch's tuples: the union of the streams as
        layout.py lays it out.
        """
        ...


class AutoExecutor:
    """Goes the way that the cost model expects to be faster (choice.py), but never through this
    process with more than it may hold: ``memory`` bytes. ``events`` gives those of the run so far.
    """

    def __init__(self, events: Callable[[], Sequence[Any]], memory: int) -> None:
        self.events, self.memory = events, memory
        self.process, self.spark = _make_thread_executor(), _make_spark_executor()
        self._machine: Parallelism | None = None

    def execute_batch(self, frame: DataFrame, batch: BatchSpec) -> ExecutionResult:
        """Run a batch one way or the other. What turns out larger than was announced goes to Spark
        after all.
        """
        from braid.execution.driver_collect import (
            ByteBudget,
            CollectLimitExceeded,
            SparkResultLimitExceeded,
            announced_bytes,
            collect_batch,
        )

        self._machine = machine = self._machine or available_parallelism(
            frame.sparkSession, self.memory
        )
        size, derived, came = announced_bytes(frame), batch.derived_bytes(machine.threads), 0
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
                choice, came = ExecutorChoice("spark", str(refused)), refused.size
            except CollectLimitExceeded as overflow:
                came = overflow.size
                choice = ExecutorChoice("spark", driver_memory_excess(came, machine, derived))
            else:
                return ExecutionResult(done.reports, choice, size, parallelism=machine.describe)
        done = self.spark.execute_batch(frame, batch)
        return ExecutionResult(done.reports, choice, size, came, machine.describe)


def available_parallelism(spark: SparkSession, memory: int) -> Parallelism:
    """What the tasks of a batch can be shared among. Spark itself lets no more come to the driver
    than its setting ``spark.driver.maxResultSize``.
    """
    from braid.execution.driver_collect import driver_result_limit

    context = spark.sparkContext
    if (most := driver_result_limit(spark)) > 0:
        memory = min(memory, COPIES * most * 3 // 4)
    local = str(context.master).startswith("local")
    return Parallelism(available_cores(), context.defaultParallelism, local, memory)


def make_executor(
    way: str, events: Callable[[], Sequence[Any]] = tuple, memory: int | None = None
) -> Executor:
    """The executor of that name; for "auto" see Auto. Raises ValueError for an unknown one."""
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
    """The name of an executor. Raises ValueError for an unknown one."""
    return check_choice(way, "executor", WAYS)
