"""What runs the tasks of a batch: tasks of Spark (spark.py), threads here (process.py), or one of
them from batch to batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from braid.core.accept import one_of
from braid.engine.choice import COPIES, Choice, Executed, Machine, choose, over, past
from braid.engine.memory import allowed, cores
from braid.engine.wire import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAYS = ("auto", "process", "spark")


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
        from braid.engine.collect import Allowance, Overflow, Refused, announced, collected

        self._machine = machine = self._machine or machine_of(frame.sparkSession, self.memory)
        size, derived, came = announced(frame), batch.derived(machine.threads), 0
        choice = choose(past(self.events()), size, batch.hosts, machine, derived)
        if choice.way == "process":
            most = machine.most - derived
            try:
                done = self.process.execute(lambda _: collected(frame, Allowance(most)), batch)
            except Refused as refused:
                choice, came = Choice("spark", str(refused)), refused.size
            except Overflow as overflow:
                came = overflow.size
                choice = Choice("spark", over(came, machine, derived))
            else:
                return Executed(done.reports, choice, size, machine=machine.name)
        done = self.spark.execute(frame, batch)
        return Executed(done.reports, choice, size, came, machine.name)


def machine_of(spark: SparkSession, memory: int) -> Machine:
    """What the tasks of a batch can be shared among. Spark itself lets no more come to the driver
    than its setting ``spark.driver.maxResultSize``.
    """
    from braid.engine.collect import limit

    context = spark.sparkContext
    if (most := limit(spark)) > 0:
        memory = min(memory, COPIES * most * 3 // 4)
    local = str(context.master).startswith("local")
    return Machine(cores(), context.defaultParallelism, local, memory)


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
    return one_of(way, "executor", WAYS)
