"""The rate of event time, which converts windows to batches for policies that plan by batch."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from braid.core.facts import Facts


@dataclass(frozen=True, slots=True)
class EventTimeRate:
    """The rate of event time and the lifetimes of blocks.

    - ``microseconds_per_batch``: event time that passes in a batch; None: not yet known.
    - ``windows``: W_i by stream, in microseconds; None: full history.
    - ``block_lifetimes``: by stream, in microseconds; None: full history.
    """

    microseconds_per_batch: float | None
    windows: tuple[int | None, ...]
    block_lifetimes: tuple[int | None, ...]

    @staticmethod
    def from_facts(facts: Facts) -> EventTimeRate:
        """Return the average rate since the oldest live block.

        The fastest stream sets the rate, because a stream with silent periods appears slow. A block
        lives for its window plus the lateness that the engine allows. That is estimated from the
        age of the oldest blocks, up to two windows.
        """
        paces, live = [0.0], []
        windows = facts.windows or (None,) * len(facts.streams)
        for stream, window in enumerate(windows):
            now = facts.clocks[stream] if facts.clocks else None
            spans = [
                (b.batch, b.event_time_range)
                for b in facts.blocks
                if b.stream == stream and b.event_time_range
            ]
            age = 0
            if spans and now is not None:
                batch, (since, _) = min(spans)
                paces.append((now - since) / (facts.batch - batch))
                age = now - min(until for _, (_, until) in spans)
            live.append(None if window is None else min(max(window, age), 2 * window))
        return EventTimeRate(max(paces) or None, windows, tuple(live))

    @property
    def seconds_per_batch(self) -> float:
        """Seconds of event time in a batch; 1 if unknown."""
        return (self.microseconds_per_batch or 1e6) / 1e6

    def windows_in_batches(self) -> tuple[float | None, ...]:
        """Return the windows in batches; one batch each if the rate is unknown."""
        return tuple(
            None if w is None else w / (self.microseconds_per_batch or w or 1) for w in self.windows
        )

    def reachable_batches(self, stream: int) -> int | None:
        """Return for how many further batches a fresh block can be met; None: forever."""
        live = self.block_lifetimes[stream]
        return (
            None if live is None else floor(live / (self.microseconds_per_batch or live or 1)) + 1
        )
