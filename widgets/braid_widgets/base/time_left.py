"""Estimate the time left of a run from the intervals between its batches."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

LATEST_BATCHES = 10
"""Number of latest batches used for the estimate."""


class TimeLeftEstimator:
    """Records when batches finish and estimates the time left. ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._seen: deque[tuple[int, float]] = deque(maxlen=LATEST_BATCHES + 1)

    def note_batches(self, done: int) -> None:
        """Record the number of finished batches."""
        if not self._seen or done > self._seen[-1][0]:
            self._seen.append((done, self.clock()))

    def seconds_since_batch(self) -> float | None:
        """Return the seconds since a batch was seen to finish; None before the first."""
        seen = self._seen and self._seen[-1]
        return self.clock() - seen[1] if seen and seen[0] else None

    def seconds_left(self, batches: int) -> float | None:
        """Return the estimated seconds until this many batches are finished.

        None until a batch has finished after the first observation, because batches seen first may
        have finished earlier. The time already spent on the current batch is subtracted, up to the
        average duration.
        """
        if len(self._seen) < 2:
            return None
        (first, began), (last, then) = self._seen[0], self._seen[-1]
        each = (then - began) / (last - first)
        waited = self.clock() - then
        return max(0.0, each * (batches - last) - min(waited, each)) if batches > last else 0.0
