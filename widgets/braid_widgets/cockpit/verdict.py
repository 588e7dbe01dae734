"""The verdict on a run: whether it keeps up with its input, as a function of its events."""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import Any, TypedDict

from braid.core.run_events import BatchCommitted, RunStarted

from braid_widgets.base.run_view import RunView

RECENT = 10
"""Number of latest batches whose median decides."""
STEADY = 3
"""Number of batches in a row that must ask for another verdict before it changes."""
NEAR = 0.8
"""Share of the interval from which a run is close to its limit."""


class Verdict(TypedDict):
    """A verdict.

    - ``word``: "keeps up", "close to its limit", "falls behind", or empty without an interval.
    - ``figure``: the share of the interval that a batch takes, in words.
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
    """

    def __init__(self, scene: RunView) -> None:
        self._scene = scene
        self._spent: deque[tuple[float, float]] = deque(maxlen=RECENT)
        self._tone = ""
        self._tones: deque[str] = deque(maxlen=STEADY)

    def apply_event(self, event: Any) -> None:
        """Fold in an event; only the start and timed commits matter."""
        if isinstance(event, RunStarted):
            self.__init__(self._scene)  # type: ignore[misc]
        if isinstance(event, BatchCommitted) and "total" in event.seconds_by_phase:
            self._add_batch(event.seconds_by_phase["total"], event.previous_commit_seconds)

    @property
    def _interval(self) -> float | None:
        return self._scene.start.interval_seconds if self._scene.start else None

    def _add_batch(self, total: float, previous_commit: float) -> None:
        if self._spent:
            self._spent[-1] = self._spent[-1][0], previous_commit
        self._spent.append((total, previous_commit))
        if self._interval is None:
            return
        self._tones.append(_choose_tone(self.used_share))
        if not self._tone or (len(self._tones) == STEADY and len({*self._tones}) == 1):
            self._tone = self._tones[-1]

    @property
    def used_share(self) -> float:
        """Return the median share of the interval that the latest batches took."""
        assert self._interval is not None
        return median(map(sum, self._spent)) / self._interval

    @property
    def verdict(self) -> Verdict:
        """Return the verdict after the events so far."""
        if self._interval is None or not self._spent:
            return _NO_VERDICT
        return {
            "word": _WORDS[self._tone],
            "figure": f"{self.used_share:.0%} of {self._interval:g} s a batch",
            "tone": self._tone,
        }


def _choose_tone(used: float) -> str:
    if used > 1:
        return "bad"
    return "near" if used >= NEAR else "good"
