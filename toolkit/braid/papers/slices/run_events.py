"""Events of chains of state slices. Source: Wang 2008, part I."""

from __future__ import annotations

from dataclasses import dataclass
from logging import INFO
from typing import NamedTuple

from braid.core.run_events import Event, EventContext
from braid.util.durations import format_duration


class HostAgeRange(NamedTuple):
    """The ages that a host holds: from the end of the one before to ``end_age`` (microseconds)."""

    end_age: int
    host: int


@dataclass(frozen=True, slots=True)
class ChainChanged(Event):
    """The chain of a stream: the ages (microseconds, rising) at which its slices end.

    ``reason`` is "memory" or "cpu" (the optimum that it is), "split", "merged" or "given".
    ``host_age_ranges`` lists the stretches of age that hosts hold (chapter 21).

    Source: Wang 2008, chapter 7.
    """

    level = INFO
    retention_key = ("stream",)

    batch: int
    stream: int
    reason: str
    slice_ends: tuple[int, ...]
    host_age_ranges: tuple[HostAgeRange, ...]

    def describe_decision(self, moment: EventContext) -> str:
        why = {"memory": "least state", "cpu": "least work"}.get(self.reason, self.reason)
        shared = [stretch.end_age for stretch in self.host_age_ranges[:-1]]
        verb = "are split between hosts" if shared else "end"
        texts = [*map(format_duration, shared or self.slice_ends)]
        ends = ", ".join(texts if len(texts) <= 4 else [*texts[:2], "…", texts[-1]])
        return f"slices of {moment.streams[self.stream]} {verb} at {ends} ({why})"


@dataclass(frozen=True, slots=True)
class SliceContents(Event):
    """The contents of a stream's slices as a batch begins.

    ``blocks_by_slice`` has the block ids of each slice, youngest first.
    """

    batch: int
    stream: int
    blocks_by_slice: tuple[tuple[int, ...], ...]
