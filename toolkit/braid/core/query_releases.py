"""Releases of the as-of queries of a run that serves many.

Each query releases tuples as if it ran alone: it has its own limits, within its own windows. Its
tuples and their partners are those with its bit. A query that comes later answers the tuples that
come from then on. The functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from braid.core.asof_releases import LEFT, ReleaseFacts, ReleaseState, plan_releases, to_limit
from braid.core.batch_work import BatchWork, RunRules
from braid.core.plan import Block, Release
from braid.core.query import Query
from braid.core.query_answers import find_answer_floors
from braid.core.release_coverage import check_releases
from braid.core.run_state import RunState


def list_release_facts(rules: RunRules, state: RunState) -> Iterator[ReleaseFacts]:
    """Yield the facts that the next releases of each as-of query are planned from."""
    for q in state.queries:
        if q.match is not None:
            yield rules.make_query_release_facts(state, q, find_answer_floors(q)[LEFT])


def plan_query_releases(rules: RunRules, state: RunState) -> tuple[Release, ...]:
    """Return the releases of all as-of queries in the next batch."""
    each = list_release_facts(rules, state)
    return tuple(release for facts in each for release in plan_releases(facts))


def advance_query_releases(rules: RunRules, state: RunState) -> dict[int, ReleaseState]:
    """Return what is released and forgotten after the next batch, by the bit of an as-of query."""
    after = {}
    for q in state.queries:
        if q.match is not None:
            before = rules.make_query_release_facts(state, q, None).state
            retention = rules.find_query_retention(state, q)
            after[q.bitmap_position] = before.advance_with_retention(retention)
    return after


def check_query_releases(rules: RunRules, state: RunState, work: BatchWork) -> None:
    """Raise CoverageError unless the releases of each as-of query obey the rule."""
    for facts in list_release_facts(rules, state):
        releases = [release for release in work.releases if release.query == facts.query]
        check_releases(facts, releases, work.combined_plan)


def change_query_releases(
    state: RunState, queries: tuple[Query, ...], low: float | None
) -> dict[int, ReleaseState]:
    """Return what is released and forgotten after the queries have changed.

    ``low``: the earliest event time that is still expected of the first stream.
    """
    return {
        q.bitmap_position: state.query_releases.get(q.bitmap_position, ReleaseState())
        if q in state.queries
        else ReleaseState(low=to_limit(low))
        for q in queries
        if q.match is not None
    }


def find_unreleased_blocks(state: RunState, blocks: Mapping[int, Block]) -> frozenset[int]:
    """Return the live ``blocks`` whose tuples no batch has released, after a change of queries."""
    fresh = {id for id, block in state.blocks.items() if block.batch == state.batch}
    return frozenset(id for id in {*fresh, *state.unreleased_blocks} if id in blocks)
