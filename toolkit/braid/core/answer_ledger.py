"""Check the answers of every plan: each stored tuple of a preserved stream is answered once.

The ledger keeps its own record of what was answered, by block, beside that of ``core.answers``. It
is used where the cover rule is checked: with ``check=True``, in simulations and in tests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from braid.core.answer_state import LAST, Limit, make_mark_key, to_limit
from braid.core.asof_releases import LEFT
from braid.core.horizon import Horizon
from braid.core.join_kinds import JoinKind
from braid.core.plan import Block, Derivation, Plan, Settle, apply_derivations_and_drops
from braid.core.query_waiting import list_waiting_by_query
from braid.core.run_state import RunState
from braid.errors import CoverageError


@dataclass
class AnswerLedger:
    """A checker of the answers of a run's plans, in order.

    - ``kind``: kind of the join.
    - ``limits``: by block, the event time below which its tuples are answered; a block without one
      has no answered tuple.
    """

    kind: JoinKind
    limits: dict[int, Limit]

    def check_plan(
        self,
        blocks: Collection[Block],
        pending: Iterable[tuple[int, int]],
        settles: Iterable[Settle],
        plan: Plan,
        horizons: tuple[Horizon, ...],
    ) -> None:
        """Check a plan, and record its answers.

        Parameters
        ----------
        blocks
            Live blocks of the state before the batch.
        pending
            Pending pairs of that state.
        settles
            Answers of the batch, which precede all else.
        plan
            Plan of the batch, with its compaction.
        horizons
            By stream, the event time below which stored tuples are final.

        Raises CoverageError if a tuple is answered twice, too early, not at all, or lost.
        """
        preserved = {b.id: b for b in blocks if b.stream in self.kind.preserved}
        pinned = {*chain.from_iterable(pending)}
        for settle in settles:
            self._record_settle(settle, preserved, pinned, horizons)
        for block in preserved.values():
            if block.id not in pinned:
                self._check_complete(block, horizons[block.stream])
        for derivation in plan.derivations:
            if derivation.block.stream in self.kind.preserved:
                self._record_derivation(derivation, pinned)
        self._check_removed(preserved, tuple(blocks), plan)

    def _record_settle(
        self,
        settle: Settle,
        preserved: Mapping[int, Block],
        pinned: set[int],
        horizons: tuple[Horizon, ...],
    ) -> None:
        block, horizon = preserved.get(settle.block), horizons[settle.stream]
        if block is None or settle.host not in block.hosts:
            raise CoverageError(
                f"block {settle.block} is answered on host {settle.host}: not there", settle.block
            )
        if block.id in pinned:
            raise CoverageError(f"block {block.id} is answered, but a pair is pending", block.id)
        if horizon is None or settle.until > horizon:
            raise CoverageError(
                f"block {block.id} is answered until {settle.until}, but tuples from {horizon} on "
                "may get a partner",
                block.id,
            )
        limit = self.limits.get(block.id)
        if limit != settle.since and not _is_empty_between(block, limit, settle.since):
            raise CoverageError(
                f"block {block.id} is answered from {settle.since} on, but it was answered until "
                f"{limit}",
                block.id,
            )
        self.limits[block.id] = to_limit(settle.until)

    def _check_complete(self, block: Block, horizon: Horizon) -> None:
        """Raise CoverageError if a block has final tuples that are not answered."""
        if horizon is None:
            return
        until, limit = to_limit(horizon), self.limits.get(block.id)
        if limit != until and not _is_empty_between(block, limit, until):
            raise CoverageError(
                f"block {block.id} has final tuples from {limit} until {until} that are not "
                "answered",
                block.id,
            )
        self.limits[block.id] = until

    def _record_derivation(self, d: Derivation, pinned: set[int]) -> None:
        others = [source for source in d.source_blocks if source != d.block.id]
        if moved := sorted(pinned.intersection(others)):
            raise CoverageError(
                f"block {d.block.id} replaces blocks {moved}, which have pending pairs", *moved
            )
        limits = {self.limits.get(source) for source in d.source_blocks}
        if len(limits) > 1:
            raise CoverageError(
                f"block {d.block.id} merges blocks {d.source_blocks}, which are answered until "
                f"different times: {limits}",
                *d.source_blocks,
            )
        if (limit := limits.pop()) is not None:
            self.limits[d.block.id] = limit

    def _check_removed(
        self, preserved: Mapping[int, Block], blocks: tuple[Block, ...], plan: Plan
    ) -> None:
        """Raise CoverageError if a block is removed whose tuples are neither answered nor kept."""
        live = {b.id for b in apply_derivations_and_drops(blocks, plan)}
        derived = {d.block.id: d.block for d in plan.derivations}
        for id in plan.drops:
            block = preserved.get(id) or derived.get(id)
            if block is None or id in live or block.stream not in self.kind.preserved:
                continue
            heirs = [d.block.key_range for d in plan.derivations if id in d.source_blocks]
            if not _is_answered(block, self.limits.get(id)) and not _covers_keys(block, heirs):
                raise CoverageError(
                    f"block {id} is dropped, but its tuples are answered only until "
                    f"{self.limits.get(id)}",
                    id,
                )
        self.limits = {id: limit for id, limit in self.limits.items() if id in live}


def check_all_answered(kind: JoinKind, streams: Sequence[str], state: RunState) -> None:
    """Raise CoverageError if tuples are not answered after the last batch of ended streams.

    ``streams``: names of the streams. The counts of the tasks are compared with what was stored, so
    this finds a task that forgets a tuple, which no plan shows.
    """
    answers = state.answers
    waiting = dict(zip(streams, answers.waiting, strict=True))
    waiting[streams[LEFT]] = max(waiting[streams[LEFT]], state.releases.waiting)
    by_query = list_waiting_by_query(state.waiting_by_query, state.queries, streams)
    each = [waiting, *by_query.values()]
    if left := [{a: n for a, n in one.items() if n} for one in each if any(one.values())]:
        raise CoverageError(f"all streams have ended, but tuples are not answered: {left[0]}")
    marked = {q.bitmap_position: q.kind.preserved for q in state.queries if q.has_marks}
    answered = marked.items() if state.queries else ((None, kind.preserved),)
    for query, preserved in answered:
        for block in state.blocks.values() if answers.checked else ():
            limit = answers.checked.get(make_mark_key(block.id, query))
            if block.stream in preserved and not _is_empty_between(block, limit, LAST):
                raise CoverageError(
                    f"all streams have ended, but block {block.id} is answered only until {limit}",
                    block.id,
                )


def _is_empty_between(block: Block, since: Limit | None, until: Limit | None) -> bool:
    """Return whether a block has no tuple from one event time until another."""
    span = block.event_time_range
    if span is None or until is None or (since is not None and until < since):
        return False
    return span[0] >= until or (since is not None and span[1] < since)


def _is_answered(block: Block, limit: Limit | None) -> bool:
    span = block.event_time_range
    return limit is not None and span is not None and span[1] < limit


def _covers_keys(block: Block, ranges: Iterable[tuple[int, int]]) -> bool:
    """Return whether ranges of routing keys together contain those of a block."""
    end = block.key_range[0]
    for low, high in sorted(ranges):
        if low > end:
            return False
        end = max(end, high)
    return end >= block.key_range[1]
