"""Answers of a run that serves many queries: each query has its own kind, windows and matches.

A query that is added while the run is active answers the tuples that come from then on: stored
tuples count as matched for it, since nobody knows whether they had partners. The functions are
pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from braid.core.answer_ledger import AnswerLedger
from braid.core.answer_state import (
    AnswerState,
    Limit,
    MatchedRows,
    Origin,
    make_mark_key,
    split_mark_key,
    to_limit,
)
from braid.core.answers import Pairs, find_due_settles, find_new_matches
from braid.core.batch_work import BatchWork, RunRules
from braid.core.horizon import Horizon, find_horizons, reach_of_windows
from braid.core.join_kinds import JoinKind
from braid.core.plan import Block, Finding, Plan, Settle
from braid.core.query import Query
from braid.core.run_state import RunState


class AnsweredQuery(NamedTuple):
    """A query that is an outer, semi or anti join.

    - ``bit``: bit of the query.
    - ``horizons``: by stream, the event time below which its tuples are final; None: none are.
    - ``floors``: by stream, the event time below which it answers no tuple; None: it answers all.
    - ``ranks``: by stream, the lowest routing key of its tuples.
    """

    bit: int
    kind: JoinKind
    horizons: tuple[Horizon, ...]
    floors: tuple[int | None, ...]
    ranks: tuple[int, ...]


def find_answer_floors(query: Query) -> tuple[int | None, ...]:
    """Return, by stream, the event time below which a query answers no tuple.

    The state may have lacked partners of earlier ones when the query was added. None: it answers
    all.
    """
    since = query.complete_since or (None,) * len(query.windows)
    reached = [None if t is None else t + w for t, w in zip(since, query.windows, strict=True)]
    limits = {stream: t for stream, t in enumerate(reached) if t is not None}
    return tuple(
        max((t for other, t in limits.items() if other != stream), default=None)
        for stream in range(len(reached))
    )


def find_query_ranks(queries: Sequence[Query], query: Query) -> tuple[int, ...]:
    """Return, by stream, the rank of a query's window among the distinct windows of all."""
    return tuple(
        sorted({q.windows[stream] for q in queries}).index(window)
        for stream, window in enumerate(query.windows)
    )


def list_answered_queries(rules: RunRules, state: RunState) -> tuple[AnsweredQuery, ...]:
    """Return the queries that are not inner joins, with what is final for them after a batch."""
    lateness = rules.lateness or (0,) * len(rules.streams)
    clocks = rules.find_state_clocks(state)
    return tuple(
        AnsweredQuery(
            q.bitmap_position,
            q.kind,
            find_horizons(clocks, lateness, reach_of_windows(q.windows), state.ended),
            find_answer_floors(q),
            find_query_ranks(state.queries, q),
        )
        for q in state.queries
        if q.has_marks
    )


def find_settles(
    rules: RunRules, state: RunState, horizons: Sequence[Horizon]
) -> tuple[Settle, ...]:
    """Return the stored tuples that the next batch answers. In an as-of join, releases do.

    ``horizons``: by stream, the event time below which stored tuples are final.
    """
    if rules.match is not None:
        return ()
    if not state.queries:
        return find_due_settles(rules.kind, state, horizons)
    return tuple(
        settle
        for q in list_answered_queries(rules, state)
        for each in find_due_settles(q.kind, state, q.horizons, q.bit)
        if (settle := _raise_start(each, q.floors[each.stream])) is not None
    )


def _raise_start(settle: Settle, floor: int | None) -> Settle | None:
    """Return an answer without tuples below a floor; None: nothing is left."""
    if floor is None or (settle.since is not None and settle.since >= floor):
        return settle
    return settle._replace(since=floor) if floor < settle.until else None


def check_answers(rules: RunRules, state: RunState, work: BatchWork) -> dict[int, Limit]:
    """Return, by block (and query), the event time below which tuples are answered.

    Raises CoverageError if the plan answers some tuple twice, or loses one.
    """
    blocks, pending = tuple(state.blocks.values()), state.pending_pairs
    checked, plan = state.answers.checked, work.combined_plan
    if state.queries:
        answered = list_answered_queries(rules, state)
        return _check_query_answers(answered, checked, blocks, pending, work.settles, plan)
    ledger = AnswerLedger(rules.kind, dict(checked))
    ledger.check_plan(blocks, pending, work.settles, plan, work.horizons)
    return ledger.limits


def _check_query_answers(
    answered: Sequence[AnsweredQuery],
    checked: Mapping[int, Limit],
    blocks: Sequence[Block],
    pending: Pairs,
    settles: Sequence[Settle],
    plan: Plan,
) -> dict[int, Limit]:
    """Return, by block and query, the event time below which tuples are answered.

    Raises CoverageError if the plan answers some tuple of a query twice, or loses one.
    """
    limits: dict[int, Limit] = {}
    for q in answered:
        recorded = {
            split_mark_key(key, True)[0]: t for key, t in checked.items() if key % 64 == q.bit
        }
        for block in blocks:
            floor, horizon = q.floors[block.stream], q.horizons[block.stream]
            if floor is not None and horizon is not None:
                lowest = min(floor, to_limit(horizon))
                recorded[block.id] = max(recorded.get(block.id, lowest), lowest)
        ledger = AnswerLedger(q.kind, recorded)
        clipped = [_clip_ranks(block, q.ranks[block.stream]) for block in blocks]
        answers = [settle for settle in settles if settle.query == q.bit]
        ledger.check_plan(clipped, pending, answers, plan, q.horizons)
        limits |= {make_mark_key(block, q.bit): t for block, t in ledger.limits.items()}
    return limits


def _clip_ranks(block: Block, lowest: int) -> Block:
    """Return a block without the routing keys that no tuple of a query has."""
    low, high = block.key_range
    return structs.replace(block, key_range=(min(max(low, lowest), high), high))


def find_findings(rules: RunRules, state: RunState) -> tuple[Finding, ...]:
    """Return the blocks with tuples that the next batch of a semi join writes."""
    if not state.queries:
        return find_new_matches(rules.kind, state)
    return tuple(_find_query_findings(state.queries, state))


def _find_query_findings(queries: Sequence[Query], state: RunState) -> Iterator[Finding]:
    answers = state.answers
    new = [split_mark_key(key, True) for key, m in answers.matched.items() if m.new_matches]
    for q in queries:
        births = {birth for birth, bit in new if bit == q.bitmap_position}
        for block in state.blocks.values() if q.kind.writes_matched else ():
            if block.stream in q.kind.preserved and answers.find_birth(block.id) in births:
                host = block.hosts[block.id % len(block.hosts)]
                yield Finding(block.id, block.stream, host, q.bitmap_position)


def change_answered_queries(
    state: RunState, blocks: Mapping[int, Block], queries: Sequence[Query]
) -> AnswerState:
    """Return what is known of answers after the queries have changed.

    Parameters
    ----------
    state
        The state before the change.
    blocks
        Live blocks after it. Those that were rewritten have kept their ids and the numbers of rows.
    queries
        The queries from now on.
    """
    answers, live = state.answers, {id: state.blocks[id] for id in blocks}
    origins = {id: answers.origins.get(id, Origin(id, b.rows)) for id, b in live.items()}
    births = {origin.birth: origin.rows for origin in origins.values()}
    bits = {q.bitmap_position for q in queries if q in state.queries}
    old = {
        key: m
        for key, m in answers.matched.items()
        if split_mark_key(key, True)[1] in bits and split_mark_key(key, True)[0] in births
    }
    new = {
        make_mark_key(birth, q.bitmap_position): MatchedRows(rows, rows)
        for q in queries
        if q not in state.queries and q.has_marks
        for birth, rows in births.items()
    }
    until = {bit: t for bit, t in answers.until_by_query.items() if bit in bits}
    # The next batch must not take blocks of the last one for older ones.
    fresh = {id: None for id, block in live.items() if block.batch == state.batch}
    checked = {key: t for key, t in answers.checked.items() if key % 64 in bits}
    held = {id: limit for id, limit in answers.held.items() if id in live} | fresh
    return replace(
        answers,
        origins=origins,
        matched=old | new,
        until_by_query=until,
        checked=checked,
        held=held,
    )
