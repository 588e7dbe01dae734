"""Drivers that run the batches of a run, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from braid.util.cancellation import wait_interruptibly
from braid.util.clock_and_threads import current_workers

RunBatch = Callable[[Any, int], None]
"""A bound method that runs a batch, given its source and its number."""


class BatchDriver(Protocol):
    """Driver of a run's batches: a streaming query of Spark, or a thread."""

    @property
    def handle(self) -> Any:
        """Spark's StreamingQuery; without Spark, the driver itself."""
        ...

    def start(self, run_batch: RunBatch) -> None:
        """Start to pass each batch to ``run_batch``."""

    def wait(self) -> None:
        """Wait until the last batch has ended. Raises the error of a batch that failed."""

    def expect_stop(self) -> None:
        """Take the end of a batch as no error from now on, as the run is about to be stopped."""

    def stop(self) -> None:
        """Pass on no further batch, and wait until the current one has ended."""


class BatchThread:
    """Driver for tables: a thread that passes the numbers of batches on.

    Parameters
    ----------
    numbers
        Numbers of the batches.
    is_stopped
        Return whether no further batch should run.
    read_batch
        Return the source of a batch. Default: its number.
    """

    def __init__(
        self,
        numbers: range,
        is_stopped: Callable[[], bool],
        read_batch: Callable[[int], Any] = lambda number: number,
    ) -> None:
        self._numbers, self._is_stopped, self._read_batch = numbers, is_stopped, read_batch
        self._error: Exception | None = None
        self._ended = threading.Event()

    @property
    def handle(self) -> Any:
        """This driver."""
        return self

    def start(self, run_batch: RunBatch) -> None:
        """Start the thread."""
        current_workers().start_thread("braid-tables", lambda: self._run_batches(run_batch))

    def _run_batches(self, run_batch: RunBatch) -> None:
        try:
            self._pass_batches(run_batch)
        except Exception as error:
            self._error = error
        finally:
            self._ended.set()

    def _pass_batches(self, run_batch: RunBatch) -> None:
        for number in self._numbers:
            if self._is_stopped():
                return
            run_batch(self._read_batch(number), number)

    def wait(self) -> None:
        """Wait for the end. Raises the error of the batch that failed."""
        wait_interruptibly(self._ended)
        if self._error is not None:
            raise self._error

    def expect_stop(self) -> None:
        """Do nothing: this thread prints no error."""

    def stop(self) -> None:
        """Wait for the current batch."""
        wait_interruptibly(self._ended)
