"""Counts of the tuples of a run's queries that wait for their answers.

A query waits for the tuples that it selects on the streams that it answers, from its answer floor
on, until they are final for it. Tasks report by how much each count changes. The functions are
pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from braid.core.answer_state import make_mark_key
from braid.core.query import Query

WaitingCounts = Mapping[int, int]
"""Tuples by ``make_mark_key`` of a stream and the bit of a query."""


def add_waiting_counts(counts: WaitingCounts, changes: WaitingCounts) -> dict[int, int]:
    """Return the counts after these changes."""
    return {key: counts.get(key, 0) + changes.get(key, 0) for key in {**counts, **changes}}


def keep_waiting_counts(counts: WaitingCounts, queries: Iterable[Query]) -> dict[int, int]:
    """Return the counts of these queries."""
    keys = {make_mark_key(s, q.bitmap_position) for q in queries for s in q.answered_streams}
    return {key: tuples for key, tuples in counts.items() if key in keys}


def list_waiting_by_query(
    counts: WaitingCounts, queries: Iterable[Query], streams: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Return the counts by name of the query and of the stream.

    Queries that answer no tuples by themselves, as they are inner joins, are left out.
    """
    return {
        q.name: {
            streams[s]: counts.get(make_mark_key(s, q.bitmap_position), 0)
            for s in q.answered_streams
        }
        for q in queries
        if q.answered_streams
    }
