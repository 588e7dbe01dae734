"""The event of the answers of an outer, semi, anti or as-of join in a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from braid.core.answer_state import AnswerCount
from braid.core.batch_report import BatchReport
from braid.core.batch_work import RunRules
from braid.core.query_waiting import list_waiting_by_query
from braid.core.run_events import Event
from braid.core.run_state import RunState


@dataclass(frozen=True, slots=True)
class TuplesAnswered(Event):
    """Tuples of preserved streams that a batch answered, and those that wait. By stream.

    In an as-of join, these are the tuples of its first stream.

    - ``answered``: tuples that became final in the batch, or can be in no pair; of semi and anti
      joins, also those that matched and left the state.
    - ``unmatched``: those of them that are in no pair.
    - ``waiting``: stored tuples that are not final after the batch. In a run that serves many
      queries they differ from query to query, and are in ``waiting_by_query`` by name and stream.
    """

    batch: int
    answered: tuple[int, ...]
    unmatched: tuple[int, ...]
    waiting: tuple[int, ...]
    waiting_by_query: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def make_answer_events(
    rules: RunRules, following: RunState, outcome: BatchReport
) -> tuple[TuplesAnswered, ...]:
    """Return the event of a batch's answers; none for an inner join, unless it is an as-of join.

    ``following``: the state after the batch.
    """
    is_asof, aliases = rules.match is not None, rules.streams
    by_query = list_waiting_by_query(following.waiting_by_query, following.queries, aliases)
    if rules.kind.is_inner and not is_asof and not by_query:
        return ()
    streams = range(len(following.clocks))
    counts = [outcome.answers.get(stream, AnswerCount()) for stream in streams]
    answered = tuple(each.answered for each in counts)
    unmatched = tuple(each.unmatched for each in counts)
    waiting = (following.releases.waiting, 0) if is_asof else following.answers.waiting
    return (TuplesAnswered(following.batch, answered, unmatched, waiting, by_query),)
