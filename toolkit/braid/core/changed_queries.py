"""The state of a run that serves many queries, after these or the placement's state have changed.

The functions are pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msgspec import structs

from braid.core.batch_report import (
    BatchReport,
    locate_replicas,
    referenced_files,
    with_reported_size,
)
from braid.core.plan import Keys
from braid.core.query import Query, unite_kinds
from braid.core.query_answers import change_answered_queries
from braid.core.query_releases import change_query_releases, find_unreleased_blocks
from braid.core.query_waiting import add_waiting_counts, keep_waiting_counts
from braid.core.run_state import RunState


def change_state(
    old: RunState,
    queries: tuple[Query, ...],
    policy: Any,
    rewritten: BatchReport | None,
    keys: Keys,
    low: float | None = None,
) -> RunState:
    """Return the state of a batch without tuples that changes the queries or the policy.

    Parameters
    ----------
    old
        The state before it.
    queries, policy
        The queries and the placement's state from now on.
    rewritten
        The merged reports of the rewritten replicas. A block without a report is dropped. None: all
        blocks stay as they are.
    keys
        Routing keys of rewritten blocks.
    low
        The earliest event time still expected of the first stream; None: unknown.
    """
    state = replace(
        old,
        batch=old.batch + 1,
        placement_state=policy,
        queries=queries,
        previous_received=(0,) * len(old.received),
        last_shedding=None,
    )
    if queries != old.queries:  # a routing key is a rank among the queries' windows
        state = replace(state, key_counts=())
    if rewritten is not None:
        blocks = {
            id: structs.replace(with_reported_size(b, rewritten.block_sizes), key_range=keys)
            for id, b in old.blocks.items()
            if id in rewritten.block_sizes
        }
        places = locate_replicas(blocks.values(), {}, rewritten.replica_addresses)
        named = referenced_files(places, {}, rewritten.files)
        state = replace(state, blocks=blocks, replica_addresses=places, block_files=named)
    state = replace(
        state,
        query_releases=change_query_releases(old, queries, low),
        unreleased_blocks=find_unreleased_blocks(old, state.blocks),
    )
    remaining = keep_waiting_counts(old.waiting_by_query, {*queries} & {*old.queries})
    changes = {} if rewritten is None else rewritten.waiting_changes
    state = replace(state, waiting_by_query=add_waiting_counts(remaining, changes))
    if unite_kinds((*old.queries, *queries)).is_inner:
        return state
    answers = change_answered_queries(old, state.blocks, queries)
    files = {name: old.block_files[name] for name in answers.bitmap_files()}
    return replace(state, answers=answers, block_files={**state.block_files, **files})
