"""The verdict on a run: whether it keeps up with its input, as a function of its events."""

from __future__ import annotations

from collections import deque
from math import inf
from statistics import median
from typing import Any, TypedDict

from braid.core.run_events import BatchCommitted, RunStarted
from braid.util.durations import format_duration

from braid_widgets.base.run_view import RunView

RECENT = 10
"""Number of latest batches whose median decides."""
STEADY = 3
"""Number of batches in a row that must ask for another verdict before it changes."""
NEAR = 0.8
"""Share of the interval from which a run is close to its limit."""
GROWING = 5
"""Number of batches in a row after which a lag that grew in each of them counts."""


class Verdict(TypedDict):
    """A verdict.

    - ``word``: "keeps up", "close to its limit", "falls behind", or empty without an interval.
    - ``figure``: the share of the interval that a batch takes, or the growth of the lag, in words.
    - ``tone``: "good", "near", "bad" or "none", which selects the color.
    """

    word: str
    figure: str
    tone: str


_NO_VERDICT: Verdict = {"word": "", "figure": "", "tone": "none"}
_WORDS = {"good": "keeps up", "near": "close to its limit", "bad": "falls behind"}


class VerdictTracker:
    """A fold of events to a verdict; ``scene`` is up to date with them.

    The time of a batch includes its commit, which the next batch reports; for the newest batch it
    is that of the batch before.

    Events have no count of the rows that a source still holds. The lag stands for it, as for
    ``Shed(speed=1)``: it grows by the time of a batch, less the event time that passed in it. It
    is not measured without event time, for static streams, and in a batch without rows.
    """

    def __init__(self, scene: RunView) -> None:
        self._scene = scene
        self._batches: deque[list[float]] = deque(maxlen=RECENT)
        """Seconds of each batch, of its commit, and of the event time that passed."""
        self._clock: int | None = None
        self._tone = ""
        self._tones: deque[str] = deque(maxlen=STEADY)

    def apply_event(self, event: Any) -> None:
        """Fold in an event; only the start and timed commits matter."""
        if isinstance(event, RunStarted):
            self.__init__(self._scene)  # type: ignore[misc]
        if isinstance(event, BatchCommitted) and "total" in event.seconds_by_phase:
            self._add_batch(event)

    @property
    def _interval(self) -> float | None:
        return self._scene.start.interval_seconds if self._scene.start else None

    def _add_batch(self, event: BatchCommitted) -> None:
        if self._batches:
            self._batches[-1][1] = event.previous_commit_seconds
        spent = event.seconds_by_phase["total"], event.previous_commit_seconds
        self._batches.append([*spent, self._measure_event_time(event)])
        if self._interval is None:
            return
        self._tones.append(_choose_tone(self.used_share, self._lag_growth / self._interval))
        if not self._tone or (len(self._tones) == STEADY and len({*self._tones}) == 1):
            self._tone = self._tones[-1]

    def _measure_event_time(self, event: BatchCommitted) -> float:
        """Return the seconds of event time that passed; infinity where no rows can wait."""
        clock = max((t for t in event.clocks if t is not None), default=None)
        start, before, self._clock = self._scene.start, self._clock, clock
        is_static = start is None or start.planned_batches is not None
        if is_static or clock is None or before is None or not any(event.received_tuples):
            return inf
        return (clock - before) / 1e6

    @property
    def used_share(self) -> float:
        """Return the median share of the interval that the latest batches took."""
        assert self._interval is not None
        return median(total + commit for total, commit, _ in self._batches) / self._interval

    @property
    def _lag_growth(self) -> float:
        """Return the seconds by which the lag grew in the latest batches, if in each of them."""
        latest = [*self._batches][-GROWING:]
        lags = [max(self._interval or 0, total + commit) - t for total, commit, t in latest]
        return sum(lags) if len(lags) == GROWING and min(lags) > 0 else 0.0

    @property
    def verdict(self) -> Verdict:
        """Return the verdict after the events so far."""
        if self._interval is None or not self._batches:
            return _NO_VERDICT
        figure = f"{self.used_share:.0%} of {self._interval:g} s a batch"
        if self.used_share < NEAR and self._lag_growth:
            lag = format_duration(float(f"{1e6 * self._lag_growth:.2g}"))
            figure = f"lag up {lag} in {GROWING} batches"
        return {"word": _WORDS[self._tone], "figure": figure, "tone": self._tone}


def _choose_tone(used: float, growth: float) -> str:
    """Return the tone for a used share of the interval, and the lag's growth in intervals."""
    if used > 1 or growth > 1:
        return "bad"
    return "near" if used >= NEAR or growth > 0 else "good"
