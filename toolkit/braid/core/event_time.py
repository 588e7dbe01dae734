"""Event time from batch to batch: advance clocks, find jumps, count irregular tuples."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from braid.core.batch_report import BatchReport
from braid.core.clock_events import ClockJumped
from braid.core.plan import Block
from braid.core.run_state import RunState
from braid.core.stream_clocks import (
    SUPPORT,
    ClockAdvance,
    IrregularCounts,
    StreamClock,
    TimeSpread,
    advance_clock,
)


def advance_clocks(
    state: RunState,
    outcome: BatchReport,
    new: Sequence[Block],
    ahead: int | None,
    seen: Sequence[int | None],
    timeless: Collection[int] = (),
) -> tuple[ClockAdvance, ...]:
    """Return, by stream, the clock after a batch that stored the ``new`` blocks.

    ``seen`` has clocks from another source, by stream. If it is given, the result is the greater of
    it and the clock before the batch. ``timeless`` streams have no event time, and no clock.
    """
    if seen:
        pairs = zip(state.clocks, seen, strict=True)
        return tuple(
            ClockAdvance(
                StreamClock(max((time for time in pair if time is not None), default=None))
            )
            for pair in pairs
        )
    blocks: list[list[tuple[int, int, TimeSpread | None]]] = [[] for _ in state.clocks]
    for block in new:
        if block.event_time_range is not None and block.stream not in timeless:
            spread = outcome.block_sizes[block.id].spread
            blocks[block.stream].append((block.rows, block.event_time_range[1], spread))
    clocks = zip(state.clocks, state.pending, blocks, strict=True)
    return tuple(
        advance_clock(StreamClock(at, pending), each, ahead) for at, pending, each in clocks
    )


def count_irregular(
    outcome: BatchReport, new: Sequence[Block], advances: Sequence[ClockAdvance]
) -> IrregularCounts:
    """Return the late, untimed and early tuples of a batch, by stream."""
    late = [0] * len(advances)
    for block in new:
        late[block.stream] += outcome.block_sizes[block.id].late_tuples
    untimed = tuple(outcome.untimed.get(stream, 0) for stream in range(len(advances)))
    early = tuple(each.early for each in advances)
    return IrregularCounts(tuple(late), untimed, early)


def find_jumps(
    names: Sequence[str],
    state: RunState,
    following: RunState,
    advances: Sequence[ClockAdvance],
    ahead: int | None,
) -> Iterator[ClockJumped]:
    """Yield the clocks that eight tuples far ahead of them moved.

    If a stream begins in this batch, also yield the clocks that fewer tuples set far ahead of
    another stream's. Which of the two is right cannot be decided yet.
    """
    running = [clock for clock in following.clocks if clock is not None]
    begun = following.clocks.count(None) < state.clocks.count(None)
    for stream, each in enumerate(advances):
        support, after = each.support, each.clock.time
        if after is None:
            continue
        taken = following.received[stream]
        if not support and begun and ahead is not None and after > min(running) + ahead:
            support = taken if taken < SUPPORT else 0
        if support:
            before = state.clocks[stream] if each.support else None
            yield ClockJumped(following.batch, names[stream], before, after, support)


def count_jumps(state: RunState, names: Sequence[str], jumps: Sequence[ClockJumped]) -> RunState:
    """Return the state with these jumps counted."""
    counts = tuple(sum(jump.stream == name for jump in jumps) for name in names)
    return replace(state, irregular=state.irregular.add(IrregularCounts(jumps=counts)))
