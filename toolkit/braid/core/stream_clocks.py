"""The clock of a stream says how far its event time has come, by tuples that support each other.

The greatest event time ever seen would do, if no timestamp were wrong. A single one of the year
2999 would then make every other tuple late. So a clock starts at the median event time of its
stream's first batch. Tuples at most ``ahead`` past it move it to their greatest time. Tuples
further ahead wait, until eight of them are past ``clock + ahead``: then the clock moves to the
eighth greatest.

Tasks describe the event times of a block in a ``Spread``, which has all that the rule needs,
however the tuples of a batch were divided among blocks. Pure: no tuple, no time of day.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from braid.util.durations import format_instant

SUPPORT = 8
"""Tuples past ``clock + ahead`` move the clock, if there are as many."""


class StreamClock(NamedTuple):
    """How far the event time of a stream has come, in microseconds (None: no tuple came), and the
    event times further ahead that wait for support, rising.
    """

    time: int | None = None
    pending: tuple[int, ...] = ()


class TimeSpread(NamedTuple):
    """Describe the event times of a block for the clock of its stream.

    ``top``: the eight greatest, rising. ``landmarks``: times, rising, from each of which to the
    next it is at most ``ahead``, unless no tuple is between them. ``sample``: of a stream's first
    batch, evenly spaced times in order; each stands for the same share of the tuples.
    """

    latest_times: tuple[int, ...]
    landmarks: tuple[int, ...] = ()
    sample: tuple[int, ...] = ()


class IrregularCounts(msgspec.Struct, frozen=True):
    """How many tuples of each stream did not come at their time.

    ``late`` ones lay behind the time that the other streams' tuples were kept for, so they may have
    missed partners. ``untimed`` ones had no event time where windows need one, and were left out.
    Those ``ahead`` waited for support before they moved their stream's clock; they were joined.
    ``jumps`` counts the events ``ClockJumped``.
    """

    late: tuple[int, ...] = ()
    untimed: tuple[int, ...] = ()
    ahead: tuple[int, ...] = ()
    jumps: tuple[int, ...] = ()

    def count_by_stream(self, names: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return the counts of tuples, without zeros, by kind and name of the stream."""
        kinds = {"late": self.late, "untimed": self.untimed, "ahead": self.ahead}
        return {
            kind: {name: n for name, n in zip(names, counts, strict=False) if n}
            for kind, counts in kinds.items()
        }

    def describe_counts(self, names: Sequence[str], clocks: Sequence[int | None]) -> str:
        """Return the counts and the jumps of clocks in words; empty if there are none."""
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
        """Return the sums; a count that is left out is zero."""
        return self._combine_counts(more, 1)

    def subtract(self, other: IrregularCounts) -> IrregularCounts:
        """Return the differences; a count that is left out is zero."""
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
    """A clock after a batch, the batch's tuples that wait for support (``early``), and, if the
    clock jumped, by how many tuples (``support``; 0: it did not).
    """

    clock: StreamClock
    early: int = 0
    support: int = 0


def needs_spread(span: tuple[int, int], at: int | None, ahead: int | None) -> bool:
    """Return whether the earliest and the latest event time of a block do not suffice."""
    if ahead is None or (at is None and span[0] == span[1]):
        return False
    return at is None or span[1] > at + ahead


def advance_clock(
    clock: StreamClock, blocks: Iterable[tuple[int, int, TimeSpread | None]], ahead: int | None
) -> ClockAdvance:
    """Return the clock of a stream after a batch.

    Parameters
    ----------
    clock
        The clock before it.
    blocks
        The rows, the latest event time and the spread of each block of the batch. A block without a
        spread has no event time that is further ahead, or only one event time.
    ahead
        The most microseconds that a tuple may be past the clock and move it by itself; None: any
        number.
    """
    blocks = list(blocks)
    if not blocks:
        return ClockAdvance(clock)
    latest = max(latest for _, latest, _ in blocks)
    if ahead is None:
        return ClockAdvance(StreamClock(latest if clock.time is None else max(clock.time, latest)))
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
    """Return where rising times move a clock that none of them is too far ahead of."""
    for time in times:
        if time > at + ahead:
            break
        at = max(at, time)
    return at


def find_latest_times(
    clocks: Sequence[int | None], pending: Sequence[Sequence[int]]
) -> tuple[int | None, ...]:
    """Return, by stream, the latest event time that has come, right or wrong."""
    return tuple(max(late) if late else at for at, late in zip(clocks, pending, strict=True))


def find_watermarks(
    clocks: Sequence[int | None], lateness: Sequence[int]
) -> tuple[int | None, ...]:
    """Return, by stream, the earliest event time still expected of the other streams, in
    microseconds; None while one of them is silent. ``lateness`` is by stream.
    """
    expected = [
        None if clock is None else clock - slack
        for clock, slack in zip(clocks, lateness, strict=True)
    ]
    times: list[int | None] = []
    for stream in range(len(expected)):
        others = [time for other, time in enumerate(expected) if other != stream]
        begun = [time for time in others if time is not None]
        times.append(min(begun) if len(begun) == len(others) else None)
    return tuple(times)
