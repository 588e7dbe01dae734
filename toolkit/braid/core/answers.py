"""Answers of outer, semi and anti joins: which stored tuples are final, and which rows matched.

A tuple of a preserved stream is *final* once no batch can give it a result: it is below the horizon
of its stream, and no pending pair concerns its block. It is then answered, once. The answers of a
batch follow from the state before it. All placements therefore answer a tuple in the same batch,
unless a migration defers a pair of its block.

Rows are known by their *birth*: the block in which they were first stored, or the last merge that
rewrote them. A copy or a cut of a block keeps its birth. The functions are pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from braid.core.answer_state import (
    AnswerCount,
    AnswerState,
    Origin,
    split_mark_key,
    to_limit,
)
from braid.core.batch_report import BatchReport
from braid.core.batch_work import BatchWork
from braid.core.horizon import Horizon
from braid.core.join_kinds import INNER, JoinKind
from braid.core.plan import Block, Finding, Plan, Settle
from braid.core.run_state import RunState

Pairs = frozenset[tuple[int, int]]
"""Pending pairs of blocks."""


def find_due_settles(
    kind: JoinKind, state: RunState, horizons: Sequence[Horizon], query: int | None = None
) -> tuple[Settle, ...]:
    """Return the stored tuples that a batch answers.

    Parameters
    ----------
    kind
        The kind of the join.
    state
        The state before the batch.
    horizons
        By stream, the event time below which stored tuples are final; None: none are.
    query
        Bit of the query that they are answered for, in a run that serves many.
    """
    if not kind.preserved:
        return ()
    pending = {*chain.from_iterable(state.pending_pairs)}
    settles = []
    for block in state.blocks.values():
        until = horizons[block.stream]
        if block.stream not in kind.preserved or until is None or block.id in pending:
            continue
        since = find_answered_limit(state, block, query)
        if _may_hold(block, since, until):
            host = _choose_host(block)
            settles.append(Settle(block.id, block.stream, host, since, until, query))
    return tuple(settles)


def find_new_matches(kind: JoinKind, state: RunState) -> tuple[Finding, ...]:
    """Return the blocks with tuples that a batch of a semi join writes: they matched in the last.

    Hosts may find partners of one tuple apart from each other. Therefore only the next batch knows
    that a partner is the first.
    """
    return _find_first_matches(kind, state) if kind.writes_matched else ()


def _find_first_matches(kind: JoinKind, state: RunState) -> tuple[Finding, ...]:
    answers = state.answers
    new = {birth for birth, bitmap in answers.matched.items() if bitmap.new_matches}
    return tuple(
        Finding(block.id, block.stream, _choose_host(block))
        for block in state.blocks.values()
        if block.stream in kind.preserved and answers.find_birth(block.id) in new
    )


def find_unmatched_arrivals(kind: JoinKind, state: RunState) -> tuple[Finding, ...]:
    """Return the blocks of the last batch, whose unmatched tuples are early answers of it."""
    return tuple(
        Finding(block.id, block.stream, _choose_host(block))
        for block in state.blocks.values()
        if block.stream in kind.preserved and block.batch == state.batch
    )


def find_retractions(kind: JoinKind, state: RunState) -> tuple[Finding, ...]:
    """Return the older blocks with tuples that matched first in the last batch.

    They were early answers of the batch in which they came.
    """
    return tuple(
        finding
        for finding in _find_first_matches(kind, state)
        if state.blocks[finding.block].batch != state.batch
    )


def _choose_host(block: Block) -> int:
    """Return the host that answers tuples of a block; hosts with replicas share the work."""
    return block.hosts[block.id % len(block.hosts)]


def find_answered_limit(state: RunState, block: Block, query: int | None = None) -> int | None:
    """Return the event time below which a block's tuples are answered; None: none are.

    A block of the last batch may hold tuples that came later than all that were answered.
    """
    if block.batch == state.batch:
        return None
    answers = state.answers
    return answers.held.get(block.id, answers.find_until(block.stream, query))


def _may_hold(block: Block, since: int | None, until: float) -> bool:
    """Return whether a block may have tuples with these event times."""
    if (span := block.event_time_range) is None:
        return True
    return span[0] < until and (since is None or span[1] >= since)


def follow_pending_pairs(pending: Pairs, plan: Plan) -> Pairs:
    """Return the pending pairs after a plan."""
    pairs = set(pending)
    for route in plan.routes:
        pairs |= {(route.block.id, other) for other in route.deferred_blocks}
    for route in plan.routes:
        for path in route.paths if not route.is_fresh else ():
            for other in path[0].probed_blocks():
                pairs -= {(route.block.id, other), (other, route.block.id)}
    return frozenset(pairs)


def advance_answer_state(
    kind: JoinKind, state: RunState, following: RunState, work: BatchWork, outcome: BatchReport
) -> AnswerState:
    """Return what is known of answers after a batch.

    Parameters
    ----------
    kind
        The kind of the join.
    state, following
        The states before and after the batch.
    work, outcome
        The work of the batch, and the report of its hosts.
    """
    plan, live, is_shared = work.combined_plan, following.blocks, bool(state.queries)
    until = _find_limits(INNER if is_shared else kind, work.horizons)
    kinds = {q.bitmap_position: q.kind for q in state.queries}
    sizes = {id: block.rows for id, block in {**state.blocks, **live}.items()}
    sizes |= {id: size.rows for id, size in outcome.block_sizes.items()}
    origins = _follow_origins(state, live, plan, sizes)
    births = {origins[id].birth if id in origins else id for id in live}
    old = {birth: b._replace(new_matches=0) for birth, b in state.answers.matched.items()}
    bitmaps = {**old, **outcome.matched}
    return AnswerState(
        until,
        dict(_find_held(kind, state, following, until, plan)),
        origins,
        {key: b for key, b in bitmaps.items() if split_mark_key(key, is_shared)[0] in births},
        state.answers.waiting if is_shared else _count_waiting(kind, state, following, outcome),
        {
            key: limit
            for key, limit in work.checked_answers.items()
            if split_mark_key(key, is_shared)[0] in live
        },
        {bit: _find_limits(kinds[bit], each) for bit, each in work.query_horizons.items()},
    )


def _find_limits(kind: JoinKind, horizons: Sequence[Horizon]) -> tuple[int | None, ...]:
    """Return, by stream, the event time below which stored tuples are answered after a batch."""
    return tuple(
        to_limit(horizon) if stream in kind.preserved and horizon is not None else None
        for stream, horizon in enumerate(horizons)
    )


def _count_waiting(
    kind: JoinKind, state: RunState, following: RunState, outcome: BatchReport
) -> tuple[int, ...]:
    """Return, by stream, the stored tuples of preserved streams that are not final."""
    waiting = list(state.answers.waiting)
    for stream in kind.preserved:
        answered = outcome.answers.get(stream, AnswerCount()).answered
        waiting[stream] += following.previous_received[stream] - answered
    return tuple(waiting)


def _find_held(
    kind: JoinKind,
    state: RunState,
    following: RunState,
    until: Sequence[int | None],
    plan: Plan,
) -> Iterator[tuple[int, int | None]]:
    """Yield the blocks with pending pairs, and from where on their tuples are not answered.

    Those whose last pair was settled in this batch are answered in the next.
    """
    before = {*chain.from_iterable(state.pending_pairs)}
    now = {*chain.from_iterable(following.pending_pairs)}
    fresh = {route.block.id for route in plan.routes if route.is_fresh}
    for id in before | now:
        block = following.blocks.get(id)
        if block is None or block.stream not in kind.preserved:
            continue
        if id in fresh:
            yield id, None
        elif id in before:
            yield id, find_answered_limit(state, block)
        else:
            yield id, until[block.stream]


def _follow_origins(
    state: RunState, live: Collection[int], plan: Plan, sizes: Mapping[int, int]
) -> dict[int, Origin]:
    """Return the births of the live blocks that are not their own."""
    origins = dict(state.answers.origins)
    for derivation in plan.derivations:
        id, sources = derivation.block.id, derivation.source_blocks
        if len(sources) == 1 and sources[0] != id:
            source = sources[0]
            origins[id] = origins.get(source, Origin(source, sizes.get(source, 0)))
    return {id: origin for id, origin in origins.items() if id in live}


def list_block_births(answers: AnswerState, plan: Plan) -> dict[int, int]:
    """Return the births of blocks that are not their own, before a batch and in its plan."""
    births = {id: origin.birth for id, origin in answers.origins.items()}
    for derivation in plan.derivations:
        id, sources = derivation.block.id, derivation.source_blocks
        if len(sources) == 1 and sources[0] != id:
            births[id] = births.get(sources[0], sources[0])
    return births


def list_needed_births(
    births: Mapping[int, int], answers: Iterable[Settle | Finding], plan: Plan
) -> set[int]:
    """Return the births whose bitmaps the tasks of a batch read: to answer, and to merge."""
    merged = (d.source_blocks for d in plan.derivations if len(d.source_blocks) > 1)
    blocks = (*(answer.block for answer in answers), *chain.from_iterable(merged))
    return {births.get(block, block) for block in blocks}
