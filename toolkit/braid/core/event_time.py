"""Event time from one batch to the next: where clocks go, which of them jump, and how many tuples
did not come at their time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from braid.core.clocks import SUPPORT, Advance, Clock, Irregular, Spread, advance
from braid.core.events import ClockJumped
from braid.core.plan import Block
from braid.core.report import Outcome
from braid.core.state import State


def advance_clocks(
    state: State,
    outcome: Outcome,
    new: Sequence[Block],
    ahead: int | None,
    seen: Sequence[int | None],
) -> tuple[Advance, ...]:
    """Return, by stream, the clock after a batch that stored the ``new`` blocks. Where clocks were
    ``seen`` elsewhere, it is the greater of the two.
    """
    if seen:
        pairs = zip(state.clocks, seen, strict=True)
        return tuple(
            Advance(Clock(max((time for time in pair if time is not None), default=None)))
            for pair in pairs
        )
    blocks: list[list[tuple[int, int, Spread | None]]] = [[] for _ in state.clocks]
    for block in new:
        if block.span is not None:
            spread = outcome.sizes[block.id].spread
            blocks[block.stream].append((block.rows, block.span[1], spread))
    clocks = zip(state.clocks, state.pending, blocks, strict=True)
    return tuple(advance(Clock(at, pending), each, ahead) for at, pending, each in clocks)


def count_irregular(
    outcome: Outcome, new: Sequence[Block], advances: Sequence[Advance]
) -> Irregular:
    """Count the tuples of a batch, by stream, that were late, untimed or ahead."""
    late = [0] * len(advances)
    for block in new:
        late[block.stream] += outcome.sizes[block.id].late
    untimed = tuple(outcome.untimed.get(stream, 0) for stream in range(len(advances)))
    early = tuple(each.early for each in advances)
    return Irregular(tuple(late), untimed, early)


def find_jumps(
    names: Sequence[str],
    state: State,
    following: State,
    advances: Sequence[Advance],
    ahead: int | None,
) -> Iterator[ClockJumped]:
    """Yield the clocks that eight tuples far ahead of them moved. If a stream begins in this batch,
    also yield the clocks that fewer tuples set far ahead of another stream's: there is no telling
    yet which of the two is right.
    """
    running = [clock for clock in following.clocks if clock is not None]
    begun = following.clocks.count(None) < state.clocks.count(None)
    for stream, each in enumerate(advances):
        support, after = each.support, each.clock.at
        if after is None:
            continue
        taken = following.received[stream]
        if not support and begun and ahead is not None and after > min(running) + ahead:
            support = taken if taken < SUPPORT else 0
        if support:
            before = state.clocks[stream] if each.support else None
            yield ClockJumped(following.batch, names[stream], before, after, support)


def with_jumps(state: State, names: Sequence[str], jumps: Sequence[ClockJumped]) -> State:
    """Return the state with these jumps counted."""
    counts = tuple(sum(jump.stream == name for jump in jumps) for name in names)
    return replace(state, irregular=state.irregular.plus(Irregular(jumps=counts)))
