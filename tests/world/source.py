"""A run whose source repeats batches, as Spark does after a crash."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from braid.arrow_join import ArrowJoinRun
from braid.core.run_events import BatchCommitted


def repeating(draw: random.Random, reported: Callable[[int], None]) -> type[ArrowJoinRun]:
    """Return a kind of run that receives batches in order, some of them repeatedly.

    It reports the number of each batch once others can know that it is committed.
    """

    class RepeatedRun(ArrowJoinRun):
        def _run_next_batch(self, frame: Any, number: int) -> None:
            for again in offered(draw, number):
                feed = partial(frame.func, frame.args[0], again)
                super()._run_next_batch(feed, again)

        def _publish_events(self, happened: list[Any]) -> None:
            super()._publish_events(happened)
            for event in happened:
                if isinstance(event, BatchCommitted):
                    reported(event.batch)

    return RepeatedRun


def offered(draw: random.Random, number: int) -> list[int]:
    """Return the batches offered in place of one.

    Earlier ones may come before it, and itself again after it.
    """
    before = [max(0, number - draw.randint(1, 3))] if draw.random() < 0.1 and number else []
    return [*before, number, *([number] if draw.random() < 0.1 else [])]
