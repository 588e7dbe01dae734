"""The step of a batch: from a state to the work, and from the hosts' report to the next state.

The engine, the simulation and the tests' models all use this step; they differ in how the work is
executed. The functions are pure: the same arguments give the same plan, state and events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import add, sub
from typing import NamedTuple

from braid.core import batch_history
from braid.core.answer_events import make_answer_events
from braid.core.answer_state import AnswerCount
from braid.core.answers import advance_answer_state, follow_pending_pairs
from braid.core.asof_releases import LEFT, ReleaseState, plan_releases, remove_planned_probes
from braid.core.batch_report import (
    BatchReport,
    locate_replicas,
    referenced_files,
    with_reported_size,
)
from braid.core.batch_work import BatchWork, RunRules
from braid.core.compaction import plan_compaction
from braid.core.comparison_watch import watch_comparisons
from braid.core.coverage import CoverageChecker
from braid.core.event_time import advance_clocks, count_irregular, count_jumps, find_jumps
from braid.core.facts import Facts, block_ages
from braid.core.plan import Block, Plan, apply_derivations_and_drops
from braid.core.plan_checks import check_derivations, check_key_partition
from braid.core.plan_sentences import describe_block_state
from braid.core.query_answers import (
    check_answers,
    find_findings,
    find_settles,
    list_answered_queries,
)
from braid.core.query_releases import (
    advance_query_releases,
    check_query_releases,
    plan_query_releases,
)
from braid.core.query_waiting import add_waiting_counts
from braid.core.release_coverage import check_releases
from braid.core.run_events import BatchCommitted, BatchPlanned, BatchQueryResults, BatchShed, Event
from braid.core.run_state import Place, RunState
from braid.core.shedding_plan import SheddingOutcome, estimate_variances
from braid.core.stream_clocks import Clock, ClockAdvance, to_times
from braid.errors import CoverageError
from braid.util import json_codec
from braid.util.batch_numbers import display_batch
from braid.util.garbage_collection import pause_garbage_collection

_MOST_DESCRIBED = 8
"""Maximum number of blocks that an error describes."""


class BatchStep(NamedTuple):
    """The outcome of a batch: the next state, and its events. The last event is the commit."""

    state: RunState
    events: tuple[Event, ...]


@pause_garbage_collection()
def plan_batch(rules: RunRules, state: RunState) -> BatchWork:
    """Return the work of the next batch.

    Raises CoverageError if the plan breaks the cover rule. Notes of the error describe the blocks
    concerned.
    """
    placement = rules.placement
    retention = rules.find_retention(state)
    policy = json_codec.round_trip(
        state.placement_state, placement.State
    )  # so a restart makes the same plan
    slices = _merge_slice_bounds(rules, placement.merge_boundaries(policy))
    blocks = tuple(state.blocks.values())
    compaction = plan_compaction(blocks, state.next_id, state.pinned_blocks, retention, slices)
    facts = _make_facts(rules, state, compaction, tuple(retention.watermarks))
    planned, shedding = placement.plan_batch(facts, policy), None
    if (shedder := rules.shedder) is not None:
        before = json_codec.round_trip(state.shedder_state, shedder.State)
        planned, shedding = shedder.plan_shedding(facts, planned, before, state.last_shedding)
    if rules.match is not None:
        planned = remove_planned_probes(planned)
    live = apply_derivations_and_drops(facts.blocks, planned)
    by_id = block_ages(live, facts.batch, rules.windows, state.clocks)
    work = BatchWork(
        facts,
        compaction,
        planned,
        live,
        by_id,
        tuple(retention.horizons),
        shedder_state=shedding,
        settles=find_settles(rules, state, retention.horizons),
        findings=find_findings(rules, state),
        query_horizons={q.bit: q.horizons for q in list_answered_queries(rules, state)},
    )
    if not rules.kind.is_inner:
        work = replace(work, pending_pairs=follow_pending_pairs(state.pending_pairs, planned))
    if rules.match is not None:
        releases = plan_releases(rules.make_release_facts(state, retention))
        until = state.releases.advance_with_retention(retention)
        work = replace(work, releases=releases, release_state=until)
    elif state.queries:
        releases, after = plan_query_releases(rules, state), advance_query_releases(rules, state)
        work = replace(work, releases=releases, query_releases=after)
    return _check_work(rules, state, work) if rules.checks_coverage else work


def _make_facts(
    rules: RunRules, state: RunState, compaction: Plan, watermarks: tuple[Clock, ...]
) -> Facts:
    """Return the placement's facts, after compaction."""
    return Facts(
        batch=state.batch + 1,
        streams=rules.streams,
        blocks=apply_derivations_and_drops(state.blocks.values(), compaction),
        next_id=state.next_id + len(compaction.derivations),
        received=state.received,
        received_bytes=state.received_bytes,
        previous_received=state.previous_received,
        windows=rules.windows,
        clocks=state.clocks,
        host_usage=state.host_usage,
        match_counts=batch_history.sum_matches_by_step(state.match_counts),
        watermarks=watermarks,
        queries=state.queries,
        key_counts=state.key_counts,
        match_counts_by_age=state.match_counts,
        compacted_blocks=frozenset(d.block.id for d in compaction.derivations),
    )


def _merge_slice_bounds(
    rules: RunRules, bounds: Sequence[Sequence[int]]
) -> Sequence[Sequence[int]]:
    """Return, by stream, the ages across which blocks are not merged, for placement and shedder."""
    if rules.shedder is None:
        return bounds
    bounds = bounds or tuple(() if w is None else (w,) for w in rules.windows)
    more = rules.shedder.merge_boundaries(rules.windows)
    return tuple(tuple(sorted({*a, *b})) for a, b in zip(bounds, more, strict=True))


def _check_work(rules: RunRules, state: RunState, work: BatchWork) -> BatchWork:
    placement, streams = rules.placement, len(rules.streams)
    space = placement.key_space(work.plan.state)
    check_key_partition(work.plan, streams, space.key_end, space.first)
    if rules.match is not None:
        check_derivations(tuple(state.blocks.values()), work.combined_plan)
        due = rules.make_release_facts(state, rules.find_retention(state))
        check_releases(due, work.releases, work.combined_plan)
        return work
    rest = placement.delivery_guarantee, (), space.keys_per_value, space.boxes
    ledger = CoverageChecker(streams, space.routing_key_source, set(state.pending_pairs), *rest)
    try:
        ledger.check_plan(state.blocks.values(), work.combined_plan)
        check_query_releases(rules, state, work)
        if not rules.kind.is_inner and rules.match is None:
            work = replace(work, checked_answers=check_answers(rules, state, work))
    except CoverageError as error:
        error.add_note(f"The plan of batch {display_batch(work.facts.batch)}, block by block:")
        for id in dict.fromkeys(error.blocks[:_MOST_DESCRIBED]):
            error.add_note(
                describe_block_state(
                    id,
                    state.blocks.values(),
                    work.combined_plan,
                    rules.streams,
                    state.pending_pairs,
                )
            )
        raise
    return replace(work, pending_pairs=frozenset(ledger.pending_pairs), uncovered=ledger.uncovered)


@pause_garbage_collection()
def commit_batch(
    rules: RunRules,
    state: RunState,
    work: BatchWork,
    outcome: BatchReport,
    epoch: int | None = None,
    seen: Sequence[int | None] = (),
) -> BatchStep:
    """Return the next state and the events for the outcome of a batch's work.

    ``seen`` has clocks by stream. It is given if the stored tuples do not determine them: more
    tuples arrived, or they are results of other joins, which may run ahead of one of their streams.

    Raises RuntimeError if a host lacks a replica that the plan stores there.
    """
    fresh = {r.block.id for r in work.plan.routes if r.is_fresh}
    blocks = _find_live_blocks(state, work, outcome, fresh)
    new = [b for id, b in blocks.items() if id in fresh]
    advances = advance_clocks(state, outcome, new, rules.ahead, seen, rules.timeless)
    following = _make_next_state(rules, state, work, outcome, blocks, fresh, advances)
    jumps = tuple(find_jumps(rules.streams, state, following, advances, rules.ahead))
    following = count_jumps(following, rules.streams, jumps)
    history, reports = watch_comparisons(
        state.comparisons, following.batch, outcome.step_counts, rules.condition_parts
    )
    following = replace(following, comparisons=history)
    epoch = state.epoch if epoch is None else epoch
    following = replace(following, epoch=epoch, ended=rules.find_ended_streams(state.ended, epoch))
    rows: dict[int, int] = {}
    if work.uncovered:
        rows = {id: size.rows for id, size in outcome.block_sizes.items()}
        rows |= {b.id: b.rows for b in work.facts.blocks}
    committed = replace(
        make_commit_event(rules, state, following, work, outcome),
        missed_combinations=sum(left.count_tuple_combinations(rows) for left in work.uncovered),
    )
    plan = work.combined_plan
    planned = BatchPlanned(
        following.batch, plan.routes, plan.derivations, plan.drops, work.releases
    )
    return BatchStep(
        replace(following, host_usage=batch_history.host_usages(committed)),
        (
            planned,
            *work.plan.events,
            *jumps,
            *reports,
            *_make_shedding_events(following),
            *_make_query_events(state, following, outcome),
            *make_answer_events(rules, following, outcome),
            committed,
        ),
    )


def _make_next_state(
    rules: RunRules,
    state: RunState,
    work: BatchWork,
    outcome: BatchReport,
    blocks: Mapping[int, Block],
    fresh: set[int],
    advances: Sequence[ClockAdvance],
) -> RunState:
    """Return the next state, without the epoch and the usage of hosts."""
    new = [b for id, b in blocks.items() if id in fresh]
    last, size = _sum_by_stream(rules, new, "rows"), _sum_by_stream(rules, new, "size_bytes")
    places = locate_replicas(blocks.values(), state.replica_addresses, outcome.replica_addresses)
    created = {*fresh, *(d.block.id for d in work.combined_plan.derivations)}
    gone = (state.blocks.keys() | created) - blocks.keys()
    following = replace(
        state,
        batch=work.facts.batch,
        blocks=blocks,
        replica_addresses=places,
        block_files=referenced_files(places, state.block_files, outcome.files),
        next_id=1 + max([state.next_id - 1, *blocks, *created]),
        placement_state=work.plan.state,
        received=tuple(map(add, state.received, last)),
        received_bytes=tuple(map(add, state.received_bytes, size)),
        previous_received=last,
        clocks=tuple(a.clock.time for a in advances),
        pending=tuple(a.clock.pending for a in advances),
        irregular=state.irregular.add(count_irregular(outcome, new, advances)),
        pinned_blocks=frozenset(work.plan.pinned_blocks),
        pending_pairs=_drop_removed_pairs(work.pending_pairs, gone),
        match_counts=batch_history.fade_match_counts(state.match_counts, outcome.matches),
        key_counts=batch_history.fade_key_counts(
            state.key_counts, outcome.key_counts, rules.placement.keys_per_value
        ),
        shedder_state=work.shedder_state,
        last_shedding=_finish_shedding_outcome(rules, work, outcome),
        releases=_count_waiting(rules, work, outcome, last),
        query_releases=work.query_releases,
        waiting_by_query=add_waiting_counts(state.waiting_by_query, outcome.waiting_changes),
        unreleased_blocks=frozenset(),
    )
    if rules.kind.is_inner:
        return following
    answers = advance_answer_state(rules.kind, state, following, work, outcome)
    files = {name: {**state.block_files, **outcome.files}[name] for name in answers.bitmap_files()}
    return replace(following, answers=answers, block_files={**following.block_files, **files})


def _count_waiting(
    rules: RunRules, work: BatchWork, outcome: BatchReport, received: Sequence[int]
) -> ReleaseState:
    if rules.match is None:
        return work.release_state
    released = outcome.answers.get(LEFT, AnswerCount()).answered
    return work.release_state.count_waiting(received[LEFT], released)


def _finish_shedding_outcome(
    rules: RunRules, work: BatchWork, outcome: BatchReport
) -> SheddingOutcome | None:
    """Return the outcome of shedding, with the variance estimated from sketches.

    Sketches are kept if the draws of a batch continue in later ones, that is, if tuples were
    skipped at arrival.
    """
    if (shed := outcome.shedding) is None or (harvest := work.plan.shedding) is None:
        return None
    variance = None if shed.variance is None else shed.variance + estimate_variances(shed.sketches)
    return replace(shed, variance=variance, sketches=shed.sketches if harvest.keep_shares else ())


def _make_shedding_events(state: RunState) -> tuple[BatchShed, ...]:
    if (h := state.last_shedding) is None:
        return ()
    sums = (h.estimated_results, h.variance, h.utility, h.estimated_utility)
    shed = BatchShed(state.batch, h.considered_pairs, h.skipped_pairs, *sums, h.yields, h.sketches)
    return (shed,)


def _make_query_events(
    state: RunState, following: RunState, outcome: BatchReport
) -> tuple[BatchQueryResults, ...]:
    if not state.queries or outcome.results_by_query is None:
        return ()
    results = {q.name: outcome.results_by_query.get(q.bitmap_position, 0) for q in state.queries}
    return (BatchQueryResults(following.batch, results),)


def _drop_removed_pairs(pending: frozenset[Place], gone: set[int]) -> frozenset[Place]:
    """Return the pending pairs without those of removed blocks."""
    return (
        pending.difference([(a, b) for a, b in pending if a in gone or b in gone])
        if gone
        else pending
    )


def commit_amendment(
    rules: RunRules, state: RunState, following: RunState, outcome: BatchReport
) -> BatchStep:
    """Return a batch without tuples that commits a given state, such as one with other queries."""
    nothing = BatchWork(Facts(following.batch, (), (), 0, (), (), ()), Plan(), Plan(), (), {})
    committed = make_commit_event(rules, state, following, nothing, outcome)
    return BatchStep(following, (committed,))


def _find_live_blocks(
    state: RunState, work: BatchWork, outcome: BatchReport, fresh: set[int]
) -> dict[int, Block]:
    """Return the live blocks with their reported sizes, without new blocks that are empty."""
    live = {b.id: b for b in work.live_blocks}
    live |= {r.block.id: r.block for r in work.plan.routes if r.is_fresh}
    created = {d.block.id for d in work.combined_plan.derivations} | fresh
    sized = {
        id: with_reported_size(b, outcome.block_sizes) if id in created else b
        for id, b in live.items()
    }
    return {
        id: b
        for id, b in sized.items()
        if id not in created or (b.rows and (id in outcome.block_sizes or id in state.blocks))
    }


def _sum_by_stream(rules: RunRules, blocks: Iterable[Block], what: str) -> tuple[int, ...]:
    sums = [0] * len(rules.streams)
    for b in blocks:
        sums[b.stream] += getattr(b, what)
    return tuple(sums)


def make_commit_event(
    rules: RunRules, old: RunState, new: RunState, work: BatchWork, outcome: BatchReport
) -> BatchCommitted:
    """Return the commit event of a batch, without its durations."""
    before, now = old.blocks, new.blocks
    irregular = new.irregular.subtract(old.irregular)
    return BatchCommitted(
        batch=new.batch,
        received_tuples=new.previous_received,
        total_received_tuples=new.received,
        live_tuples=_sum_by_stream(rules, now.values(), "rows"),
        results=sum(counts.results for counts in outcome.hosts.values()),
        seconds_by_phase={},
        changed_blocks=tuple(
            b for b in now.values() if (was := before.get(b.id)) is not b and was != b
        ),
        dropped_block_ids=tuple(sorted(before.keys() - now.keys())),
        host_metrics=batch_history.measure_hosts(
            rules.placement.hosts, work.facts.blocks, work.plan, before, now, outcome.hosts
        ),
        received_bytes=tuple(map(sub, new.received_bytes, old.received_bytes)),
        late_tuples=irregular.late,
        untimed=irregular.untimed,
        ahead=irregular.ahead,
        irregular_counts=new.irregular,
        clocks=new.clocks,
        watermarks=to_times(rules.find_state_watermarks(new)),
        step_counts=outcome.step_counts,
        symptoms=batch_history.measure_symptoms(rules.placement, rules.windows, new, outcome),
        micro_batch=new.epoch if new.epoch > old.epoch else None,
    )
