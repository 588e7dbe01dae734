"""The model of time: clocks of streams, watermarks and horizons, from lists of event times.

Times and spans are whole numbers of one unit. END is after all times.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

END = inf
SUPPORT = 8

Reach = Sequence[Sequence[int | None]]
"""By stream i and j, the greatest t_j - t_i of a pair; None: unbounded."""
Time = float | None
"""A time, END, or None: before all times."""


class Clock:
    """The clock of one stream.

    - ``time``: None: no tuple with an event time has come.
    - ``waiting``: times too far ahead, which have not moved the clock.
    """

    def __init__(self, ahead: int | None) -> None:
        self.ahead, self.time = ahead, None
        self.waiting: list[int] = []

    def take_batch(self, times: Sequence[int]) -> list[int]:
        """Advance the clock by the times of a batch. Return those that are too far ahead."""
        if not times:
            return []
        if self.ahead is None:
            self.time = max([*times, *([] if self.time is None else [self.time])])
            return []
        if self.time is None:
            self.time = sorted(times)[(len(times) - 1) // 2]
        self.waiting += times
        while True:
            near = [t for t in self.waiting if t <= self.time + self.ahead]
            self.waiting = [t for t in self.waiting if t > self.time + self.ahead]
            if near:
                self.time = max(self.time, *near)
            elif len(self.waiting) >= SUPPORT:
                self.time = sorted(self.waiting)[-SUPPORT]
            else:
                return [t for t in times if t > self.time + self.ahead]


def find_effective_clocks(
    clocks: Sequence[int | None], ended: Sequence[bool], idle: int | None
) -> list[Time]:
    """Return the clocks with END for ended streams, and none further behind than ``idle``."""
    effective: list[Time] = []
    for stream, time in enumerate(clocks):
        others = [t for s, t in enumerate(clocks) if s != stream and t is not None]
        if idle is not None and others:
            time = max([max(others) - idle, *([] if time is None else [time])])
        effective.append(END if ended[stream] else time)
    return effective


def find_watermarks(
    clocks: Sequence[Time], lateness: Sequence[int], timeless: Sequence[int] = ()
) -> list[Time]:
    """Return, by stream, the earliest time still expected of the other streams."""
    watermarks: list[Time] = []
    for stream in range(len(clocks)):
        others = [s for s in range(len(clocks)) if s != stream and s not in timeless]
        expected = [None if clocks[s] is None else clocks[s] - lateness[s] for s in others]
        watermarks.append(None if not expected or None in expected else min(expected))
    return watermarks


def find_horizons(clocks: Sequence[Time], lateness: Sequence[int], reach: Reach) -> list[Time]:
    """Return, by stream, the time from which tuples can still be in a pair of a later batch."""
    horizons: list[Time] = []
    for i, row in enumerate(reach):
        expiries: list[Time] = []
        for j, most in enumerate(row):
            if j == i or clocks[j] == END:
                continue
            expiries.append(
                None if most is None or clocks[j] is None else clocks[j] - lateness[j] - most
            )
        horizons.append(None if None in expiries else min(expiries, default=END))
    return horizons


def find_late_limit(stream: int, horizons: Sequence[Time], reach: Reach) -> int | None:
    """Return the time below which a tuple that comes may have missed a partner."""
    limits = [
        horizon + reach[i][stream]
        for i, horizon in enumerate(horizons)
        if i != stream and horizon not in (None, END) and reach[i][stream] is not None
    ]
    return max(limits, default=None)


def reach_of_windows(windows: Sequence[int | None]) -> list[list[int | None]]:
    """Return the bounds of windows: latest time of a pair - t_i < W_i."""
    return [
        [0 if i == j else None if w is None else w - 1 for j in range(len(windows))]
        for i, w in enumerate(windows)
    ]
