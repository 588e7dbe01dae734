"""The time that a run has left, from the time between its batches as they came."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

KEPT = 10
"""Batches from which the time is taken, the last ones."""


class TimeLeftEstimator:
    """Notes when batches were done. ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._seen: deque[tuple[int, float]] = deque(maxlen=KEPT + 1)

    def note_batches(self, done: int) -> None:
        """So many batches are done now."""
        if not self._seen or done > self._seen[-1][0]:
            self._seen.append((done, self.clock()))

    def seconds_since_batch(self) -> float | None:
        """Seconds since a batch was seen to be done; None as long as there was none."""
        seen = self._seen and self._seen[-1]
        return self.clock() - seen[1] if seen and seen[0] else None

    def seconds_left(self, batches: int) -> float | None:
        """Seconds until so many batches are done; None as long as it cannot be known: the first
        batches that are seen may have been done before, so two must have come since.

        A batch that has been going for longer than the others took counts as it is.
        """
        if len(self._seen) < 2:
            return None
        (first, began), (last, then) = self._seen[0], self._seen[-1]
        each = (then - began) / (last - first)
        waited = self.clock() - then
        return max(0.0, each * (batches - last) - min(waited, each)) if batches > last else 0.0
