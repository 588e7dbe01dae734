"""The controller of an adaptive grid: its state, and its decisions in one batch.

Source: Elseidy et al. 2014, Algorithms 1 to 3 and section 4.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from braid.core.facts import Facts
from braid.core.plan import Block, Plan, Route
from braid.core.plan_builder import PlanBuilder
from braid.papers.theta.host_groups import HostGroup, blocks_by_group, grid_routes, mapping_event
from braid.papers.theta.mapping import MappingDecision
from braid.papers.theta.migration import (
    RATE,
    Migration,
    MigrationStep,
    advance_migration,
    arrival_routes,
    begin_migration,
)
from braid.papers.theta.run_events import MigrationAdvanced, MigrationEnded, MigrationStarted


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Settings of the controller; see ``AdaptiveGrid``. ``keys`` is the size of its key space."""

    keys: int
    max_hosts: int
    epsilon: float = 1.0
    statistics: Literal["sample", "exact"] = "sample"
    sizes: tuple[float, float] | None = None
    warmup: int = 0
    capacity: int | None = None


@dataclass(frozen=True, slots=True)
class GroupState:
    """The controller's state of a group between batches.

    ``tuple_counts`` are (|R|, |S|, |Delta R|, |Delta S|), scaled to all J hosts.
    """

    group: HostGroup
    tuple_counts: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    migration: Migration | None = None


@dataclass(frozen=True, slots=True)
class GridState:
    """The state of an adaptive grid between batches.

    ``has_announced``: events have reported the first mappings. ``is_checkpoint_due``: a checkpoint
    or the end of a migration has occurred, so that the grid may grow.
    """

    groups: tuple[GroupState, ...]
    has_announced: bool = False
    is_checkpoint_due: bool = False


@dataclass
class GroupPlan:
    """A group while its batch is planned; see GroupState."""

    number: int
    group: HostGroup
    counts: tuple[float, float, float, float]
    migration: Migration | None

    def next_state(self) -> GroupState:
        """Return the state of the group for the next batch."""
        return GroupState(self.group, self.counts, self.migration)


class Controller:
    """One batch: count, continue migrations, decide, grow, then route the fresh blocks."""

    def __init__(self, settings: ControllerSettings, facts: Facts, state: GridState) -> None:
        self.settings, self.facts, self.draft = settings, facts, PlanBuilder(facts)
        self.announced, self.check = state.has_announced, state.is_checkpoint_due
        self.teams = [
            GroupPlan(k, g.group, g.tuple_counts, g.migration) for k, g in enumerate(state.groups)
        ]
        self.blocks = blocks_by_group([t.group for t in self.teams], facts.blocks)
        self.events: list[Any] = []
        self.steps: list[tuple[GroupPlan, MigrationStep, int]] = []

    def plan_batch(self) -> Plan:
        """Return the plan of the batch."""
        if not self.announced:
            self.events += [
                mapping_event(self.facts.batch, t.number, t.group, t.group, (0, 0))
                for t in self.teams
            ]
        for team in self.teams:
            self._count_fresh_tuples(team)
            if team.migration is not None:
                self._advance_migration(team)
            elif sum(self.facts.received) >= self.settings.warmup:
                self._decide_migration(team)
        self._grow_groups()
        live_blocks = self.draft.live_blocks()
        groups = [t.group for t in self.teams]
        fresh = grid_routes(
            self.facts.batch, next(self.draft.ids), groups, blocks_by_group(groups, live_blocks)
        )
        live = {b.id: b for b in live_blocks}
        settled = [
            r
            for team, step, since in self.steps
            for r in arrival_routes(step, since, live, self.blocks[team.number])
        ]
        state = GridState(tuple(t.next_state() for t in self.teams), True, self.check)
        pinned = self._choose_pinned_blocks(fresh)
        return self.draft.make_plan((*fresh, *settled), state, self.events, pinned)

    def _count_fresh_tuples(self, team: GroupPlan) -> None:
        """Count the fresh tuples of the last batch, from a sample or all (Algorithm 1)."""
        r, s = self.facts.previous_received
        if self.settings.statistics == "sample":
            r, s = self._estimate_cardinalities(
                team, (b for b in self.blocks[team.number] if b.batch == self.facts.batch - 1)
            )
        a, b, dr, ds = team.counts
        team.counts = (a, b, dr + r, ds + s)

    def _estimate_cardinalities(self, team: GroupPlan, blocks: Iterable[Block]) -> tuple[int, int]:
        """Return |R| and |S| as the controller, its group's first host, estimates them.

        These are its partitions R_1 and S_1, scaled to all J.
        """
        rows = [0, 0]
        for b in blocks:
            if team.group.find_partition(b.stream, b.key_range[0]) == 0:
                rows[b.stream] += b.rows
        (n, m), (lo, hi) = team.group.mapping, team.group.keys
        keys = self.settings.keys
        return rows[0] * n * keys // (hi - lo), rows[1] * m * keys // (hi - lo)

    def _count_stored_tuples(self, team: GroupPlan) -> tuple[int, int]:
        """Return the current |R| and |S|.

        In full history these are all received tuples, in a window the tuples that have not expired.
        """
        if self.settings.statistics == "sample":
            return self._estimate_cardinalities(team, self.blocks[team.number])
        r, s = (sum(b.rows for b in self.facts.blocks if b.stream == stream) for stream in (0, 1))
        return r, s

    def _decide_migration(self, team: GroupPlan) -> None:
        """Apply Algorithm 2."""
        decision = MappingDecision(
            len(team.group.hosts),
            team.group.mapping,
            self.settings.epsilon,
            self._estimate_tuple_sizes(),
            *team.counts,
        )
        if not decision.is_checkpoint_due():
            return
        self.check = True
        decision = decision.at_checkpoint(*self._count_stored_tuples(team))
        team.counts = (decision.r, decision.s, 0.0, 0.0)
        if decision.mapping != team.group.mapping:
            self._start_epoch(team, team.group.with_mapping(decision.mapping))

    def _estimate_tuple_sizes(self) -> tuple[float, float]:
        """Return (tau_R, tau_S)."""
        facts = self.facts
        if self.settings.sizes is not None:
            return self.settings.sizes[0], self.settings.sizes[1]
        tau = [
            size / n if n and size else 1.0
            for n, size in zip(facts.received, facts.received_bytes, strict=True)
        ]
        return tau[0], tau[1]

    def _start_epoch(self, team: GroupPlan, new: HostGroup) -> None:
        """Start a new epoch: the new mapping already routes the fresh blocks of this batch."""
        start = begin_migration(
            self.draft, team.group, new, self.blocks[team.number], self._compute_copy_budget(new)
        )
        (r, s, dr, ds), (tau_r, tau_s) = team.counts, self._estimate_tuple_sizes()
        self.events += [
            mapping_event(
                self.facts.batch, team.number, team.group, new, ((r + dr) * tau_r, (s + ds) * tau_s)
            ),
            MigrationStarted(self.facts.batch, team.number, start.tuples, start.discarded),
        ]
        team.group = new
        self._continue_migration(team, start.migration if start.migration.pending_copies else None)

    def _compute_copy_budget(self, group: HostGroup) -> float:
        """Return the tuples that migration may bring to a host with each batch.

        The estimate assumes that batches continue like the last one.
        """
        share = (group.keys[1] - group.keys[0]) / self.settings.keys
        return (
            RATE
            * share
            * sum(
                n / parts
                for n, parts in zip(self.facts.previous_received, group.mapping, strict=True)
            )
        )

    def _advance_migration(self, team: GroupPlan) -> None:
        assert team.migration is not None
        step = advance_migration(
            self.draft, team.migration, team.group, {b.id: b for b in self.blocks[team.number]}
        )
        self.steps.append((team, step, team.migration.since_batch))
        self.events.append(
            MigrationAdvanced(
                self.facts.batch, team.number, step.copies, step.moved, step.remaining_tuples
            )
        )
        self._continue_migration(team, step.remaining)

    def _continue_migration(self, team: GroupPlan, migration: Migration | None) -> None:
        team.migration = migration
        if migration is None:
            self.events.append(MigrationEnded(self.facts.batch, team.number))
            self.check = True

    def _grow_groups(self) -> None:
        """Apply elasticity.

        All groups grow together, so that each keeps its share of the hosts, and only if none
        migrates.
        """
        if (
            not self.check
            or self.steps
            or self.draft.derivations
            or any(t.migration for t in self.teams)
        ):
            return
        self.check = False
        hosts = sum(len(t.group.hosts) for t in self.teams)
        if (
            self.settings.capacity is None
            or hosts * 4 > self.settings.max_hosts
            or self._find_max_stored_tuples() * 2 <= self.settings.capacity
        ):
            return
        numbers = count(hosts)
        for team in self.teams:
            self._start_epoch(team, team.group.split_hosts(numbers))

    def _find_max_stored_tuples(self) -> int:
        """Return the tuples stored on the host that stores most."""
        stored: dict[int, int] = {}
        for b in self.facts.blocks:
            for h in b.hosts:
                stored[h] = stored.get(h, 0) + b.rows
        return max(stored.values(), default=0)

    def _choose_pinned_blocks(self, fresh: list[Route]) -> frozenset[int]:
        """Return blocks that must not be merged.

        These are blocks that move, all that were born in the epoch, and the fresh ones that the
        controller counts next.
        """
        pinned: set[int] = set()
        born = blocks_by_group([t.group for t in self.teams], [r.block for r in fresh])
        for team, newborn in zip(self.teams, born, strict=True):
            if (move := team.migration) is not None:
                pinned.update(copy.block for copy in move.pending_copies)
                pinned.update(
                    b.id
                    for b in (*self.blocks[team.number], *newborn)
                    if b.batch >= move.since_batch
                )
            elif self.settings.statistics == "sample":
                pinned.update(b.id for b in newborn if b.key_range[0] == team.group.keys[0])
        return frozenset(pinned)
