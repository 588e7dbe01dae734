"""The event of the answers of an outer, semi, anti or as-of join in a batch."""

from __future__ import annotations

from dataclasses import dataclass

from braid.core.answer_state import AnswerCount
from braid.core.batch_report import BatchReport
from braid.core.join_kinds import JoinKind
from braid.core.run_events import Event
from braid.core.run_state import RunState


@dataclass(frozen=True, slots=True)
class TuplesAnswered(Event):
    """Tuples of preserved streams that a batch answered, and those that wait. By stream.

    In an as-of join, these are the tuples of its first stream.

    - ``answered``: tuples that became final in the batch, or can be in no pair; of semi and anti
      joins, also those that matched and left the state.
    - ``unmatched``: those of them that are in no pair.
    - ``waiting``: stored tuples that are not final after the batch.
    """

    batch: int
    answered: tuple[int, ...]
    unmatched: tuple[int, ...]
    waiting: tuple[int, ...]


def make_answer_events(
    kind: JoinKind, is_asof: bool, following: RunState, outcome: BatchReport
) -> tuple[TuplesAnswered, ...]:
    """Return the event of a batch's answers; none for an inner join, unless it is an as-of join.

    ``following``: the state after the batch.
    """
    if kind.is_inner and not is_asof:
        return ()
    streams = range(len(following.clocks))
    counts = [outcome.answers.get(stream, AnswerCount()) for stream in streams]
    answered = tuple(each.answered for each in counts)
    unmatched = tuple(each.unmatched for each in counts)
    waiting = (following.releases.waiting, 0) if is_asof else following.answers.waiting
    return (TuplesAnswered(following.batch, answered, unmatched, waiting),)
