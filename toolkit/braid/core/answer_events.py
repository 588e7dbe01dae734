"""The event of the answers of an outer, semi or anti join in a batch."""

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

    - ``answered``: tuples that became final in the batch, or can be in no pair.
    - ``unmatched``: those of them that are in no pair.
    - ``waiting``: stored tuples that are not final after the batch.
    """

    batch: int
    answered: tuple[int, ...]
    unmatched: tuple[int, ...]
    waiting: tuple[int, ...]


def make_answer_events(
    kind: JoinKind, following: RunState, outcome: BatchReport
) -> tuple[TuplesAnswered, ...]:
    """Return the event of a batch's answers; none for an inner join.

    ``following``: the state after the batch.
    """
    if kind.is_inner:
        return ()
    streams = range(len(following.clocks))
    counts = [outcome.answers.get(stream, AnswerCount()) for stream in streams]
    answered = tuple(each.answered for each in counts)
    unmatched = tuple(each.unmatched for each in counts)
    return (TuplesAnswered(following.batch, answered, unmatched, following.answers.waiting),)
