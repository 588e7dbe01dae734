"""What runs the tasks of a batch: tasks of Spark (spark.py), or threads here (process.py)."""

from __future__ import annotations

from typing import Any, Protocol

from braid.core.report import Report
from braid.engine.wire import Batch

WAYS = ("spark", "process")


class Executor(Protocol):
    """A way to run the tasks of a batch.

    All ways run the same tasks (task.py), which write the same files, so that a run may go another
    way from batch to batch.
    """

    def execute(self, frame: Any, batch: Batch) -> list[Report]:
        """The reports of all tasks of a batch. ``frame`` has the batch's tuples: the union of the
        streams as layout.py lays it out.
        """
        ...


def executor(way: str) -> Executor:
    """The executor of that name. Raises ValueError for an unknown one."""
    if checked(way) == "spark":
        from braid.engine.spark import SparkExecutor

        return SparkExecutor()
    from braid.engine.process import ProcessExecutor

    return ProcessExecutor()


def checked(way: str) -> str:
    """The name of an executor. Raises ValueError for an unknown one."""
    if way not in WAYS:
        raise ValueError(f"executor is {way!r}; it must be one of {', '.join(WAYS)}")
    return way
