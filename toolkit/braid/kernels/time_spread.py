"""Describe the event times of a block for its stream's clock (``core.stream_clocks``)."""

from __future__ import annotations

import numpy as np

from braid.core.stream_clocks import SUPPORT, TimeSpread

_SAMPLED = 256
"""Maximum number of event times from which a block contributes to the median of a first batch."""
_MOST_LANDMARKS = 1_000
"""A batch that spans ``ahead`` more often than this is reported as a jump of the clock."""


def describe_times(times: np.ndarray, at: int | None, ahead: int) -> TimeSpread:
    """Return the description of a block's event times.

    ``at`` is the stream's clock before the batch.
    """
    ordered = np.sort(times)
    top = tuple(ordered[-SUPPORT:].tolist())
    later = ordered if at is None else ordered[np.searchsorted(ordered, at, "right") :]
    sample = _sample_times(ordered) if at is None else ()
    return TimeSpread(top, _find_landmarks(later, ahead), sample)


def _sample_times(ordered: np.ndarray) -> tuple[int, ...]:
    count = min(_SAMPLED, len(ordered))
    places = (2 * np.arange(count) + 1) * len(ordered) // (2 * count)
    return tuple(ordered[places].tolist())


def _find_landmarks(ordered: np.ndarray, ahead: int) -> tuple[int, ...]:
    landmarks: list[int] = []
    place = 0
    while place < len(ordered) and len(landmarks) < _MOST_LANDMARKS:
        time = int(ordered[place])
        landmarks.append(time)
        furthest = int(np.searchsorted(ordered, time + ahead, "right")) - 1
        if ordered[furthest] == time:  # no later time in reach: continue after the gap
            furthest += 1
        place = furthest
    return tuple(landmarks)
