"""Deliver results to a user's function, batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from braid.errors import DamagedRunError
from braid.storage.run_store import RunStore
from braid.util.clock_and_threads import current_environment
from braid.util.error_summary import summarize_error
from braid.util.validation import format_value

Give = Callable[[Any, int], Any]
"""A function that takes the results of a batch and its number."""


def check_sink(give: Any) -> Give | None:
    """Return the function to call with each batch; None: there is none.

    Raises ValueError if it is not a function.
    """
    if give is None:
        return None
    if not callable(give):
        raise ValueError(
            f"foreachBatch is {format_value(give)}; it must be a function of the results of a "
            "batch and "
            "its number"
        )
    sink: Give = give
    return sink


class BatchSink:
    """Delivery of committed batches to the function ``give``, in order.

    ``read`` returns the results of a batch. The batch number is recorded after the function
    returns. After a crash, an unfinished delivery is repeated with the same rows and the same
    number.

    - ``next_batch``: the first batch that is not delivered.
    - ``seconds``: duration of the last delivery of one or several batches.
    """

    seconds = 0.0

    def __init__(self, give: Give, store: RunStore, read: Callable[[int], Any]) -> None:
        self.give, self.store, self.read = give, store, read
        self.next_batch = self._read_last_delivered() + 1
        if self.next_batch < (since := store.log.first_retained_batch):
            raise ValueError(
                f"foreachBatch would begin with batch {self.next_batch}, and results are kept from "
                f"batch {since} on; read those with results(), and leave foreachBatch out"
            )

    def _read_last_delivered(self) -> int:
        """Return the last delivered batch.

        Raises DamagedRunError with the repair if the record is damaged.
        """
        try:
            return self.store.sink_progress.last_batch
        except DamagedRunError as damaged:
            since, where = self.store.log.first_retained_batch, self.store.where
            mend = "if it is deleted" if self.store.url else f"after `braid repair {where}`"
            what = str(damaged).replace(str(self.store.path), where)
            raise DamagedRunError(
                f"{what}; {mend}, foreachBatch is given the batches from {since} on again, each "
                "with the number and the rows that it had"
            ) from None

    def deliver_until(self, last: int, stopped: Callable[[], bool]) -> None:
        """Deliver the remaining batches up to ``last``.

        Raises RuntimeError if the function fails.
        """
        if self.next_batch > last:
            return
        began = current_environment().read_clock()
        while self.next_batch <= last and not stopped():
            results = self.read(self.next_batch)
            try:
                self.give(results, self.next_batch)
            except Exception as error:
                raise RuntimeError(
                    f"foreachBatch failed on batch {self.next_batch}: {type(error).__name__}: "
                    f"{summarize_error(error)}"
                ) from error
            self.store.sink_progress.mark_delivered(self.next_batch)
            self.next_batch += 1
        self.seconds = current_environment().read_clock() - began
