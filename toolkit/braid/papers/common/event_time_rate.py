"""How fast event time passes: what a window means to a policy that plans batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from braid.core.facts import Facts


@dataclass(frozen=True, slots=True)
class EventTimeRate:
    """``micros`` of event time for a batch, None before any is known; ``windows`` W_i and how long
    blocks of each stream ``live``, in microseconds, None for full history.
    """

    microseconds_per_batch: float | None
    windows: tuple[int | None, ...]
    block_lifetimes: tuple[int | None, ...]

    @staticmethod
    def from_facts(facts: Facts) -> EventTimeRate:
        """As the live blocks show it, on average since the oldest.

        Of several streams the fastest tells the pace: one that falls silent now and then seems
        slow. A block lives for its window and for what the engine allows late tuples, which shows
        in how old blocks are; no more than two windows are believed.
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
        """Of event time for a batch; one, while none is known."""
        return (self.microseconds_per_batch or 1e6) / 1e6

    def windows_in_batches(self) -> tuple[float | None, ...]:
        """The windows in batches; while the pace is unknown, as if each were one batch."""
        return tuple(
            None if w is None else w / (self.microseconds_per_batch or w or 1) for w in self.windows
        )

    def reachable_batches(self, stream: int) -> int | None:
        """For how many batches to come a fresh block of a stream may be met; None for ever."""
        live = self.block_lifetimes[stream]
        return (
            None if live is None else floor(live / (self.microseconds_per_batch or live or 1)) + 1
        )
