"""How long stored tuples can still be joined: bounds of event times, horizons, late tuples.

``Reach`` is a closed difference bound matrix D: in each result, ``t_j - t_i <= D[i][j]``, where t_i
is the event time of its tuple of stream i. A stored tuple of stream i can still be in a result if
some other stream j may send a tuple that is near enough. It is past the *horizon* of its stream if
``t_i < min over j of (clock_j - lateness_j - D[i][j])``. The functions are pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import inf
from typing import NamedTuple

Reach = tuple[tuple[int | None, ...], ...]
"""By stream i and j, the greatest t_j - t_i of a result, in microseconds; None: unbounded."""
Horizon = float | None
"""Event time in microseconds below which tuples have expired; infinite: all; None: none."""


class TimeBounds(NamedTuple):
    """Bounds of event times that a condition implies.

    - ``reach``: by stream i and j, the greatest t_j - t_i of a result.
    - ``dropped``: disjunctions with a branch that contradicts the rest of the condition.
    """

    reach: Reach
    dropped: tuple[str, ...] = ()


def reach_of_windows(windows: Sequence[int | None], timeless: Collection[int] = ()) -> Reach:
    """Return the bounds of windows W_i, in microseconds: t_j - t_i < W_i. None: full history.

    ``timeless``: streams without event time, which nothing bounds.
    """
    streams = range(len(windows))
    return tuple(
        tuple(0 if i == j else None if w is None or j in timeless else w - 1 for j in streams)
        for i, w in enumerate(windows)
    )


def windows_of_reach(reach: Reach) -> tuple[int | None, ...]:
    """Return, by stream, the shortest window W_i that admits all results; None: full history."""
    windows: list[int | None] = []
    for i, row in enumerate(reach):
        others = [most for j, most in enumerate(row) if j != i]
        finite = [most for most in others if most is not None]
        windows.append(max(1, max(finite) + 1) if len(finite) == len(others) else None)
    return tuple(windows)


def close_reach(reach: Reach) -> Reach | None:
    """Return the matrix closed by shortest paths (Floyd, 1962); None: no event times satisfy it."""
    most = [[inf if c is None else c for c in row] for row in reach]
    streams = range(len(most))
    for k in streams:
        for i in streams:
            for j in streams:
                most[i][j] = min(most[i][j], most[i][k] + most[k][j])
    if any(most[i][i] < 0 for i in streams):
        return None
    return tuple(tuple(None if c == inf else int(c) for c in row) for row in most)


def intersect_reach(a: Reach, b: Reach) -> Reach | None:
    """Return the closed bounds that hold if both do; None: no event times satisfy both."""
    pairs = (zip(row, other, strict=True) for row, other in zip(a, b, strict=True))
    return close_reach(
        tuple(
            tuple(min((c for c in pair if c is not None), default=None) for pair in row)
            for row in pairs
        )
    )


def shortest_reach(reach: Reach, stream: int, endless: Sequence[bool]) -> int | None:
    """Return how long a tuple waits for the partners that come first, in microseconds.

    ``endless``: by stream, whether it never ends. None: some endless stream may send a partner at
    any time, or none is endless.
    """
    row = [most for j, most in enumerate(reach[stream]) if j != stream and endless[j]]
    waits = [max(0, most) for most in row if most is not None]
    return min(waits, default=None) if len(waits) == len(row) else None


def is_timed(reach: Reach, stream: int) -> bool:
    """Return whether some bound concerns the event time of a stream."""
    others = [j for j in range(len(reach)) if j != stream]
    return any(reach[stream][j] is not None or reach[j][stream] is not None for j in others)


def find_horizons(
    clocks: Sequence[float | None],
    lateness: Sequence[int],
    reach: Reach,
    ended: Sequence[bool] = (),
) -> tuple[Horizon, ...]:
    """Return the horizon of each stream.

    Parameters
    ----------
    clocks
        Clock of each stream in microseconds; None: it is silent.
    lateness
        Maximum delay of each stream in microseconds.
    reach
        Closed bounds of event times.
    ended
        Whether each stream has ended, so that it sends no more tuples. Empty: none has.
    """
    return tuple(
        _find_horizon(i, clocks, lateness, row, ended or (False,) * len(reach))
        for i, row in enumerate(reach)
    )


def _find_horizon(
    stream: int,
    clocks: Sequence[float | None],
    lateness: Sequence[int],
    row: Sequence[int | None],
    ended: Sequence[bool],
) -> Horizon:
    earliest = inf
    for j, most in enumerate(row):
        if j == stream or ended[j]:
            continue
        clock = clocks[j]
        if most is None or clock is None:
            return None
        earliest = min(earliest, clock - lateness[j] - most)
    return earliest


def find_late_limit(stream: int, horizons: Sequence[Horizon], reach: Reach) -> int | None:
    """Return the event time below which an arriving tuple of a stream is late.

    It may have missed partners, because these have expired. None: no tuple is late.
    """
    limits = [
        int(horizon) + most
        for i, horizon in enumerate(horizons)
        if i != stream
        and horizon is not None
        and horizon != inf
        and (most := reach[i][stream]) is not None
    ]
    return max(limits, default=None)
