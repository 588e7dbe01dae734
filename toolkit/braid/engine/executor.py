"""What runs the tasks of a batch: tasks of Spark (spark.py), threads here (process.py), or one of
them from batch to batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from braid.engine.choice import COPIES, Choice, Executed, Machine, choose, over, past
from braid.engine.memory import allowed
from braid.engine.wire import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAYS = ("auto", "process", "spark")
_LOOKED_AT = 1000
"""Events that the cost model looks for batches among, the last ones."""


class Executor(Protocol):
    """A way to run the tasks of a batch.

    All ways run the same tasks (task.py), which write the same files, so that a run may go another
    way from batch to batch.
    """

    def execute(self, frame: Any, batch: Batch) -> Executed:
        """Run all tasks of a batch. ``frame`` has the batch's tuples: the union of the streams as
        layout.py lays it out.
        """
        ...


class Auto:
    """Goes the way that the cost model expects to be faster (choice.py), but never through this
    process with more than it may hold: ``memory`` bytes. ``events`` gives those of the run so far.
    """

    def __init__(self, events: Callable[[], Sequence[Any]], memory: int) -> None:
        self.events, self.memory = events, memory
        self.process, self.spark = _process(), _spark()
        self._machine: Machine | None = None

    def execute(self, frame: DataFrame, batch: Batch) -> Executed:
        """Run a batch one way or the other. What turns out larger than was announced goes to Spark
        after all.
        """
        from braid.engine.collect import Overflow, announced, collected

        self._machine = machine = self._machine or machine_of(frame.sparkSession, self.memory)
        size, before = announced(frame), past(self.events()[-_LOOKED_AT:])
        choice = choose(before, size, batch.hosts, machine)
        if choice.way == "process":
            try:
                done = self.process.execute(partial(collected, frame, machine.most), batch)
            except Overflow as overflow:
                choice = Choice("spark", over(overflow.size, machine))
            else:
                return Executed(done.reports, choice, size)
        return Executed(self.spark.execute(frame, batch).reports, choice, size)


def machine_of(spark: SparkSession, memory: int) -> Machine:
    """What the tasks of a batch can be shared among. Spark itself lets no more come to the driver
    than its setting ``spark.driver.maxResultSize``.
    """
    context = spark.sparkContext
    setting = context.getConf().get("spark.driver.maxResultSize", "1g")
    jvm: Any = context._jvm
    limit = jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(setting)
    if limit > 0:
        memory = min(memory, COPIES * limit * 3 // 4)
    local = str(context.master).startswith("local")
    return Machine(os.cpu_count() or 1, context.defaultParallelism, local, memory)


def executor(
    way: str, events: Callable[[], Sequence[Any]] = tuple, memory: int | None = None
) -> Executor:
    """The executor of that name; for "auto" see Auto. Raises ValueError for an unknown one."""
    if checked(way) == "auto":
        return Auto(events, allowed() if memory is None else memory)
    return _spark() if way == "spark" else _process()


def _spark() -> Executor:
    from braid.engine.spark import SparkExecutor

    return SparkExecutor()


def _process() -> Executor:
    from braid.engine.process import ProcessExecutor

    return ProcessExecutor()


def checked(way: str) -> str:
    """The name of an executor. Raises ValueError for an unknown one."""
    if way not in WAYS:
        raise ValueError(f"executor is {way!r}; it must be one of {', '.join(WAYS)}")
    return way
