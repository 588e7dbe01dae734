"""Records of a batch's planning: the settings of a run, and the work of one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from braid.core.asof_releases import (
    LEFT,
    NOTHING_RELEASED,
    MayJoin,
    ReleaseFacts,
    ReleaseState,
    limit_asof_retention,
    retain_for_releases,
    to_limit,
)
from braid.core.compaction import Retention
from braid.core.coverage import UncoveredCombinations, may_join
from braid.core.facts import Facts
from braid.core.horizon import (
    Horizon,
    Reach,
    find_horizons,
    reach_of_windows,
    shortest_reach,
    windows_of_reach,
)
from braid.core.join_kinds import INNER, JoinKind
from braid.core.match_rules import MatchRule
from braid.core.placement import Placement, Shedder
from braid.core.plan import Block, Finding, Plan, Release, Settle, combine_plans
from braid.core.query import Query
from braid.core.run_state import Place, RunState
from braid.core.stream_clocks import (
    Clock,
    advance_idle_clocks,
    find_watermarks,
    set_ended_clocks,
)


@dataclass(frozen=True)
class RunRules:
    """Settings that stay the same from batch to batch.

    - ``placement``: the placement policy.
    - ``streams``: names of the streams.
    - ``reach``: bounds of event times; they say how long tuples are held.
    - ``lateness``: by stream, maximum delay in microseconds; empty: 0.
    - ``ahead``: how far past its clock, in microseconds, a single tuple advances it; None: any
      distance.
    - ``checks_coverage``: whether plans are checked against the cover rule. Default: True.
    - ``shedder``: the load shedder; None: no load is shed.
    - ``condition_parts``: conjuncts of the condition as written, for reports.
    - ``last_epochs``: by stream, the micro-batch with its last tuple, -1 if it has none; None: it
      is endless. Empty: all are endless.
    - ``timeless``: streams without event time.
    - ``idle``: how far, in microseconds, a stream's clock may be behind that of another before it
      is no longer waited for; None: any distance.
    - ``kind``: kind of the join. Default: inner.
    - ``match``: the rule of an as-of join; None: tuples join with all partners.
    """

    placement: Placement
    streams: tuple[str, ...]
    reach: Reach
    lateness: tuple[int, ...] = ()
    ahead: int | None = None
    checks_coverage: bool = True
    shedder: Shedder | None = None
    condition_parts: tuple[str, ...] = ()
    last_epochs: tuple[int | None, ...] = ()
    timeless: tuple[int, ...] = ()
    idle: int | None = None
    kind: JoinKind = INNER
    match: MatchRule | None = None

    @cached_property
    def windows(self) -> tuple[int | None, ...]:
        """By stream, the window W_i in microseconds; None: full history."""
        return windows_of_reach(self.reach)

    def find_ended_streams(self, ended: Sequence[bool], epoch: int) -> tuple[bool, ...]:
        """Return, by stream, whether it has ended with a micro-batch, or had before (``ended``)."""
        last = self.last_epochs or (None,) * len(ended)
        return tuple(
            was or (end is not None and epoch >= end) for was, end in zip(ended, last, strict=True)
        )

    def find_state_watermarks(self, state: RunState) -> tuple[Clock, ...]:
        """Return, by stream, the earliest event time still expected of the others.

        As of the state after a batch; see ``stream_clocks.find_watermarks``.
        """
        lateness = self.lateness or (0,) * len(self.streams)
        return find_watermarks(self.find_state_clocks(state), lateness, self.timeless)

    def find_state_clocks(self, state: RunState) -> tuple[Clock, ...]:
        """Return the clocks by which tuples expire: with ends, and without idle streams."""
        clocks = advance_idle_clocks(state.clocks, self.idle, self.timeless)
        return set_ended_clocks(clocks, state.ended)

    def find_retention(self, state: RunState) -> Retention:
        """Return how long tuples are held, as of the state after a batch.

        A stored tuple of stream s with event time t can be in no result of a later batch if ``t <
        horizons[s]``. This concerns partners that are not late, and those of blocks that it has
        met; pending pairs are apart. ``END``: all other streams have ended. None: another stream
        may send a partner at any time.
        """
        retention = self._retain_within(self.reach, state)
        if self.match is not None:
            return limit_asof_retention(retention, self.reach, state.releases)
        asof = [q for q in state.queries if q.match is not None]
        return retain_for_releases(retention, (self.find_query_retention(state, q) for q in asof))

    def find_query_retention(self, state: RunState, query: Query) -> Retention:
        """Return how long a run of an as-of query alone would hold tuples."""
        reach = reach_of_windows(query.windows)
        before = state.query_releases.get(query.bitmap_position, NOTHING_RELEASED)
        return limit_asof_retention(self._retain_within(reach, state), reach, before)

    def _retain_within(self, reach: Reach, state: RunState) -> Retention:
        """Return how long an inner join of these bounds of event times holds tuples."""
        lateness = self.lateness or (0,) * len(self.streams)
        endless = [end is None for end in self.last_epochs]
        if not any(endless):
            endless = [True] * len(self.streams)
        return Retention(
            windows_of_reach(reach),
            self.find_state_watermarks(state),
            find_horizons(self.find_state_clocks(state), lateness, reach, state.ended),
            tuple(shortest_reach(reach, s, endless) for s in range(len(endless))),
        )

    def make_release_facts(self, state: RunState, retention: Retention) -> ReleaseFacts:
        """Return the facts that the releases of an as-of join are planned from."""
        return ReleaseFacts(
            tuple(state.blocks.values()),
            state.batch,
            state.releases,
            to_limit(retention.horizons[LEFT]),
            self.reach,
            self._make_join_test(state),
            self.match is not None and self.match.forgets_dominated,
        )

    def make_query_release_facts(
        self, state: RunState, query: Query, floor: int | None
    ) -> ReleaseFacts:
        """Return the facts that the releases of an as-of query are planned from.

        ``floor``: event time below which it answers no tuple; None: it answers all.
        """
        bit = query.bitmap_position
        return ReleaseFacts(
            tuple(state.blocks.values()),
            state.batch,
            state.query_releases.get(bit, NOTHING_RELEASED),
            to_limit(self.find_query_retention(state, query).horizons[LEFT]),
            reach_of_windows(query.windows),
            self._make_join_test(state),
            False,
            bit,
            floor,
            state.unreleased_blocks,
        )

    def _make_join_test(self, state: RunState) -> MayJoin:
        space = self.placement.key_space(state.placement_state)
        by = space.routing_key_source, space.keys_per_value, space.boxes
        return lambda a, b: may_join(a, b, *by)


@dataclass(frozen=True)
class BatchWork:
    """The work of a batch: compaction, then the placement's plan.

    - ``facts``: facts that the plan was made from.
    - ``compaction``, ``plan``: the two plans.
    - ``live_blocks``: blocks that can be probed, after both plans' derivations and drops.
    - ``block_ages``: their ages by id.
    - ``horizons``: by stream, the event time below which stored tuples have expired.
    - ``pending_pairs``, ``uncovered``: deferred pairs and omitted combinations, from the coverage
      check.
    - ``shedder_state``: the shedder's next state.
    - ``settles``: stored tuples that are answered before anything else is done.
    - ``releases``: stored tuples of an as-of join that take their partners.
    - ``release_state``: what is released and forgotten after the batch.
    - ``query_releases``: the same by the bit of an as-of query, in a run that serves many.
    - ``findings``: stored tuples of a semi join that are written, likewise.
    - ``checked_answers``: by block (and query; see ``AnswerState.checked``), the event time below
      which its tuples are answered, from the check of answers.
    - ``query_horizons``: by the bit of a query that is not an inner join, and by stream, the event
      time below which its stored tuples have expired.
    """

    facts: Facts
    compaction: Plan
    plan: Plan
    live_blocks: tuple[Block, ...]
    block_ages: Mapping[int, int]
    horizons: tuple[Horizon, ...] = ()
    pending_pairs: frozenset[Place] = frozenset()
    uncovered: tuple[UncoveredCombinations, ...] = ()
    shedder_state: Any = None
    settles: tuple[Settle, ...] = ()
    releases: tuple[Release, ...] = ()
    release_state: ReleaseState = NOTHING_RELEASED
    query_releases: Mapping[int, ReleaseState] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    checked_answers: Mapping[int, int] = field(default_factory=dict)
    query_horizons: Mapping[int, tuple[Horizon, ...]] = field(default_factory=dict)

    @cached_property
    def combined_plan(self) -> Plan:
        """Compaction and the placement's plan as one plan."""
        return combine_plans(self.compaction, self.plan)

    def find_source_bytes(self, stored: Mapping[int, Block]) -> dict[int, int]:
        """Return the bytes of the blocks that derivations read, including derived blocks.

        ``stored``: blocks of the state before the batch.
        """
        derivations = self.combined_plan.derivations
        blocks = {**stored, **{d.block.id: d.block for d in derivations}}
        sources = (s for d in derivations for s in d.source_blocks)
        return {s: blocks[s].size_bytes for s in sources if s in blocks}
