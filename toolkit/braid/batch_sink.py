"""Results given to a function of the user's, batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from braid.storage.durable_files import DamagedRunError
from braid.storage.run_store import RunStore
from braid.util.error_summary import summarize_error
from braid.util.validation import format_value

Give = Callable[[Any, int], Any]
"""A function of the results of a batch and its number."""


def check_sink(give: Any, shared: bool) -> Give | None:
    """What is to be called with each batch, if anything. Raises ValueError for what cannot be."""
    if give is None:
        return None
    if not callable(give):
        raise ValueError(
            f"foreachBatch is {format_value(give)}; it must be a function of the results of a "
            "batch and "
            "its number"
        )
    if shared:
        raise ValueError(
            "the results of a shared run are of many queries, so it has no foreachBatch; read one "
            "query's batch by batch with results_since(batch, name)"
        )
    found: Give = give
    return found


class BatchSink:
    """Calls ``give`` with each committed batch, in order: its results, as ``read`` makes them, and
    its number. Only when that has returned is the number written down, so what a crash cut off is
    given again, the same rows under the same number.
    """

    def __init__(self, give: Give, store: RunStore, read: Callable[[int], Any]) -> None:
        self.give, self.store, self.read = give, store, read
        self._next = self._read_last_delivered() + 1
        if self._next < (since := store.log.first_retained_batch):
            raise ValueError(
                f"foreachBatch would begin with batch {self._next}, and results are kept from "
                f"batch {since} on; read those with results(), and leave foreachBatch out"
            )

    def _read_last_delivered(self) -> int:
        """The last batch that has been delivered. Raises Damaged, saying what is to be done."""
        try:
            return self.store.delivered.last_batch
        except DamagedRunError as damaged:
            since, where = self.store.log.first_retained_batch, self.store.where
            mend = "if it is deleted" if self.store.url else f"after `braid repair {where}`"
            what = str(damaged).replace(str(self.store.path), where)
            raise DamagedRunError(
                f"{what}; {mend}, foreachBatch is given the batches from {since} on again, each "
                "with the number and the rows that it had"
            ) from None

    def deliver_until(self, last: int, stopped: Callable[[], bool]) -> None:
        """Give what is left, up to a batch. Raises RuntimeError where the function fails."""
        while self._next <= last and not stopped():
            results = self.read(self._next)
            try:
                self.give(results, self._next)
            except Exception as error:
                raise RuntimeError(
                    f"foreachBatch failed on batch {self._next}: {type(error).__name__}: "
                    f"{summarize_error(error)}"
                ) from error
            self.store.delivered.mark_delivered(self._next)
            self._next += 1
