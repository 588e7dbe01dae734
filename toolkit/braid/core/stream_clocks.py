"""The clock of a stream: how far its event time has come, robust against wrong timestamps.

A clock that took the greatest event time ever seen would fail on one wrong timestamp: a tuple of
the year 2999 would make every other tuple late. A clock therefore starts at the median event time
of its stream's first batch. Tuples at most ``ahead`` past it advance it to their greatest time.
Tuples further ahead wait until eight of them are past ``clock + ahead``. Then the clock jumps to
the eighth greatest.

Tasks describe the event times of a block in a ``TimeSpread``. It suffices for this rule, however
the tuples of a batch are divided among blocks. The functions are pure: they read no tuple and no
time of day.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from math import inf
from typing import NamedTuple

import msgspec

from braid.util.durations import format_instant

SUPPORT = 8
"""Number of tuples past ``clock + ahead`` that make the clock jump."""
END = inf
"""The clock of a stream that has ended: after all event times, also after lateness is taken off."""
Clock = float | None
"""Event time in whole microseconds; ``END``: the stream has ended; None: it is silent."""
FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first microsecond of the year 1, and the last of the year 9999, which stands for ``END``."""


class StreamClock(NamedTuple):
    """How far the event time of a stream has come.

    - ``time``: microseconds; None: no tuple has arrived.
    - ``pending``: event times too far ahead that wait for support, ascending.
    """

    time: int | None = None
    pending: tuple[int, ...] = ()


class TimeSpread(NamedTuple):
    """The event times of a block, as the clock of its stream needs them.

    - ``latest_times``: the eight greatest, ascending.
    - ``landmarks``: ascending times. Two successive ones are at most ``ahead`` apart, unless no
      tuple is between them.
    - ``sample``: for a stream's first batch, evenly spaced times in order. Each stands for the same
      share of the tuples.
    """

    latest_times: tuple[int, ...]
    landmarks: tuple[int, ...] = ()
    sample: tuple[int, ...] = ()


class IrregularCounts(msgspec.Struct, frozen=True):
    """Tuples with irregular event times, by stream.

    - ``late``: behind the watermark. They may have missed partners.
    - ``untimed``: without an event time although windows need one. They were skipped.
    - ``ahead``: waited for support before they advanced the clock. They were joined.
    - ``jumps``: number of ``ClockJumped`` events.
    """

    late: tuple[int, ...] = ()
    untimed: tuple[int, ...] = ()
    ahead: tuple[int, ...] = ()
    jumps: tuple[int, ...] = ()

    def count_by_stream(self, names: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return the counts of tuples by kind and stream name, without zeros."""
        kinds = {"late": self.late, "untimed": self.untimed, "ahead": self.ahead}
        return {
            kind: {name: n for name, n in zip(names, counts, strict=False) if n}
            for kind, counts in kinds.items()
        }

    def describe_counts(self, names: Sequence[str], clocks: Sequence[int | None]) -> str:
        """Return the counts and the jumps of clocks as text; empty if there are none."""
        kinds = self.count_by_stream(names).items()
        phrases = [f"{n:,} of {name} {kind}" for kind, each in kinds for name, n in each.items()]
        for name, jumps, clock in zip(names, self.jumps, clocks, strict=False):
            if jumps and clock is not None:
                times = "once" if jumps == 1 else f"{jumps:,} times"
                phrases.append(
                    f"the clock of {name} has jumped {times}, to {format_instant(clock)}"
                )
        return ", ".join(phrases)

    def add(self, more: IrregularCounts) -> IrregularCounts:
        """Return the sums. A missing count is zero."""
        return self._combine_counts(more, 1)

    def subtract(self, other: IrregularCounts) -> IrregularCounts:
        """Return the differences. A missing count is zero."""
        return self._combine_counts(other, -1)

    def _combine_counts(self, other: IrregularCounts, sign: int) -> IrregularCounts:
        sums = (
            tuple(a + sign * b for a, b in zip_longest(left, right, fillvalue=0))
            for left, right in zip(
                msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True
            )
        )
        return IrregularCounts(*sums)


class ClockAdvance(NamedTuple):
    """The advance of a clock in a batch.

    - ``clock``: the clock after it.
    - ``early``: tuples of the batch that wait for support.
    - ``support``: number of tuples that made the clock jump; 0: it did not jump.
    """

    clock: StreamClock
    early: int = 0
    support: int = 0


def needs_spread(span: tuple[int, int], at: int | None, ahead: int | None) -> bool:
    """Return whether the clock needs more than a block's earliest and latest event time."""
    return ahead is not None and (at is None or span[1] > at + ahead)


def advance_clock(
    clock: StreamClock, blocks: Iterable[tuple[int, int, TimeSpread | None]], ahead: int | None
) -> ClockAdvance:
    """Return the clock of a stream after a batch.

    Parameters
    ----------
    clock
        The clock before it.
    blocks
        Rows, latest event time and spread of each block of the batch. A block has no spread if none
        of its event times is too far ahead.
    ahead
        How far past the clock a single tuple advances it, in microseconds; None: any distance.
    """
    blocks = list(blocks)
    if not blocks:
        return ClockAdvance(clock)
    latest = max(latest for _, latest, _ in blocks)
    if ahead is None:
        return ClockAdvance(StreamClock(latest if clock.time is None else max(clock.time, latest)))
    if clock.time is not None and not clock.pending and not any(s for *_, s in blocks):
        return ClockAdvance(StreamClock(max(clock.time, latest)))  # no time is too far ahead
    at = _find_median(blocks) if clock.time is None else clock.time
    new = [time for block in blocks for time in _list_top_times(*block)]
    supporting = sorted((*clock.pending, *new))
    times = sorted({*supporting, *(t for *_, s in blocks if s for t in s.landmarks)})
    support = 0
    while True:
        at = _follow_times(at, times, ahead)
        waiting = [time for time in supporting if time > at + ahead]
        if len(waiting) < SUPPORT:
            break
        at, support = waiting[-SUPPORT], max(support, len(waiting))
    early = sum(time > at + ahead for time in new)
    return ClockAdvance(StreamClock(at, tuple(waiting)), early, support)


def _list_top_times(rows: int, latest: int, spread: TimeSpread | None) -> Sequence[int]:
    return (latest,) * min(rows, SUPPORT) if spread is None else spread.latest_times


def _find_median(blocks: Iterable[tuple[int, int, TimeSpread | None]]) -> int:
    """Return the lower median event time of a first batch."""
    weighted: list[tuple[int, float]] = []
    for rows, latest, spread in blocks:
        sample = (latest,) if spread is None else spread.sample
        weighted += [(time, rows / len(sample)) for time in sample]
    half, below = sum(weight for _, weight in weighted) / 2, 0.0
    for time, weight in sorted(weighted):
        below += weight
        if below >= half * (1 - 1e-12):
            return time
    raise AssertionError("a block has no tuple")


def _follow_times(at: int, times: Iterable[int], ahead: int) -> int:
    """Return the clock after ascending times, up to the first that is too far ahead of it."""
    for time in times:
        if time > at + ahead:
            break
        at = max(at, time)
    return at


def find_latest_times(
    clocks: Sequence[int | None], pending: Sequence[Sequence[int]]
) -> tuple[int | None, ...]:
    """Return, by stream, the latest event time received, including those that wait for support."""
    return tuple(max(late) if late else at for at, late in zip(clocks, pending, strict=True))


def set_ended_clocks(clocks: Sequence[int | None], ended: Sequence[bool]) -> tuple[Clock, ...]:
    """Return the clocks of streams, ``END`` for those that have ended. Empty: none has."""
    return tuple(
        END if has_ended else clock
        for clock, has_ended in zip(clocks, ended or (False,) * len(clocks), strict=True)
    )


def to_times(clocks: Iterable[Clock]) -> tuple[int | None, ...]:
    """Return clocks or watermarks as microseconds of the years 1 to 9999; ``END`` is the last."""
    return tuple(
        None if clock is None else int(min(max(clock, FIRST_TIME), LAST_TIME)) for clock in clocks
    )


def find_least_time(times: Mapping[str, int | None], streams: Collection[str]) -> int | None:
    """Return the least of the times of some streams; None if there are none or one has none."""
    begun = [time for stream in streams if (time := times.get(stream)) is not None]
    return min(begun) if begun and len(begun) == len(streams) else None


def find_other_times(times: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return, by stream, the least of the times of all others."""
    return {stream: find_least_time(times, times.keys() - {stream}) for stream in times}


def describe_watermarks(watermarks: Mapping[str, int | None]) -> str:
    """Return watermarks, in microseconds, as text.

    >>> describe_watermarks({"a": 0, "b": None, "c": LAST_TIME})
    'a: 1970-01-01 00:00:00 UTC, b: silent, c: ended'
    """
    return ", ".join(
        f"{stream}: "
        + ("silent" if at is None else "ended" if at >= LAST_TIME else format_instant(at))
        for stream, at in watermarks.items()
    )


def advance_idle_clocks(
    clocks: Sequence[int | None], idle: int | None, timeless: Collection[int] = ()
) -> tuple[int | None, ...]:
    """Return the clocks, each at least the greatest of them less ``idle``.

    A stream that is silent for longer is no longer waited for. Silence is measured in the event
    time of the other streams, so a plan repeats.

    Parameters
    ----------
    clocks
        Clocks by stream, in microseconds, as tuples advanced them. That of a stream that has ended
        is its last.
    idle
        Maximum distance behind the greatest clock, in microseconds; None: any.
    timeless
        Streams without event time. They have no clock.
    """
    timed = [s for s in range(len(clocks)) if s not in timeless]
    begun = [clock for s in timed if (clock := clocks[s]) is not None]
    if idle is None or not begun:
        return tuple(clocks)
    least = max(begun) - idle
    return tuple(
        clock if s not in timed else least if clock is None else max(clock, least)
        for s, clock in enumerate(clocks)
    )


def find_watermarks(
    clocks: Sequence[Clock], lateness: Sequence[int], timeless: Collection[int] = ()
) -> tuple[Clock, ...]:
    """Return, by stream, the earliest event time still expected of the other streams.

    The watermark of stream s is the least ``clock - lateness`` of the others, never its own. It is
    in whole microseconds; None: one of the others is silent, or none has event time; ``END``: all
    others that have event time have ended.

    Parameters
    ----------
    clocks
        Clocks by stream, ``END`` for streams that have ended (see ``set_ended_clocks``).
    lateness
        Maximum delay of each stream in microseconds.
    timeless
        Streams without event time. They are not waited for.
    """
    expected = [
        None if clock is None else clock - slack
        for clock, slack in zip(clocks, lateness, strict=True)
    ]
    timed = [stream for stream in range(len(expected)) if stream not in timeless]
    times: list[Clock] = []
    for stream in range(len(expected)):
        others = [expected[other] for other in timed if other != stream]
        begun = [time for time in others if time is not None]
        times.append(min(begun) if begun and len(begun) == len(others) else None)
    return tuple(times)
