"""The controller of an adaptive grid: what it knows, and what it does in one batch.

Source: Elseidy et al. 2014, Algorithms 1 to 3 and section 4.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from braid.core.draft import Draft
from braid.core.facts import Facts
from braid.core.plan import Block, Plan, Route
from braid.papers.theta.events import MigrationAdvanced, MigrationEnded, MigrationStarted
from braid.papers.theta.groups import Group, by_group, changed
from braid.papers.theta.mapping import Decision
from braid.papers.theta.migration import RATE, Migration, Step, advance, begin, settle
from braid.papers.theta.routes import routes


@dataclass(frozen=True, slots=True)
class Settings:
    """What the controller goes by; see ``AdaptiveGrid``. ``keys`` is the size of its key space."""

    keys: int
    max_hosts: int
    epsilon: float = 1.0
    statistics: Literal["sample", "exact"] = "sample"
    sizes: tuple[float, float] | None = None
    warmup: int = 0
    capacity: int | None = None


@dataclass(frozen=True, slots=True)
class GroupState:
    """What the controller remembers of a group; ``counts`` are (|R|, |S|, |Delta R|, |Delta S|),
    scaled to all J hosts.
    """

    group: Group
    counts: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    migration: Migration | None = None


@dataclass(frozen=True, slots=True)
class GridState:
    """``announced``: events have given the first mappings. ``check``: a checkpoint or the end of a
    migration has come, so that the grid may grow.
    """

    groups: tuple[GroupState, ...]
    announced: bool = False
    check: bool = False


@dataclass
class Team:
    """A group while its batch is planned; see GroupState."""

    number: int
    group: Group
    counts: tuple[float, float, float, float]
    migration: Migration | None

    def state(self) -> GroupState:
        """What the next batch needs to know of the group."""
        return GroupState(self.group, self.counts, self.migration)


class Controller:
    """One batch: count, go on with migrations, decide, grow, then route the fresh blocks."""

    def __init__(self, settings: Settings, facts: Facts, state: GridState) -> None:
        self.settings, self.facts, self.draft = settings, facts, Draft(facts)
        self.announced, self.check = state.announced, state.check
        self.teams = [Team(k, g.group, g.counts, g.migration) for k, g in enumerate(state.groups)]
        self.blocks = by_group([t.group for t in self.teams], facts.blocks)
        self.events: list[Any] = []
        self.steps: list[tuple[Team, Step, int]] = []

    def plan(self) -> Plan:
        """The plan of the batch: count, migrate, route."""
        if not self.announced:
            self.events += [
                changed(self.facts.batch, t.number, t.group, t.group, (0, 0)) for t in self.teams
            ]
        for team in self.teams:
            self._count(team)
            if team.migration is not None:
                self._advance(team)
            elif sum(self.facts.received) >= self.settings.warmup:
                self._decide(team)
        self._grow()
        known = self.draft.live()
        groups = [t.group for t in self.teams]
        fresh = routes(self.facts.batch, next(self.draft.ids), groups, by_group(groups, known))
        live = {b.id: b for b in known}
        settled = [
            r
            for team, step, since in self.steps
            for r in settle(step, since, live, self.blocks[team.number])
        ]
        return Plan(
            routes=(*fresh, *settled),
            derivations=tuple(self.draft.derivations),
            drops=self.draft.drops,
            pinned=self._pinned(fresh),
            state=GridState(tuple(t.state() for t in self.teams), True, self.check),
            events=tuple(self.events),
        )

    def _count(self, team: Team) -> None:
        """Algorithm 1: the fresh tuples of the last batch, from the controller's sample or all."""
        r, s = self.facts.last_received
        if self.settings.statistics == "sample":
            r, s = self._scaled(
                team, (b for b in self.blocks[team.number] if b.batch == self.facts.batch - 1)
            )
        a, b, dr, ds = team.counts
        team.counts = (a, b, dr + r, ds + s)

    def _scaled(self, team: Team, blocks: Iterable[Block]) -> tuple[int, int]:
        """|R| and |S| as the controller, its group's first host, sees them: its partitions R_1 and
        S_1, scaled to all J.
        """
        rows = [0, 0]
        for b in blocks:
            if team.group.part(b.stream, b.keys[0]) == 0:
                rows[b.stream] += b.rows
        (n, m), (lo, hi) = team.group.mapping, team.group.keys
        keys = self.settings.keys
        return rows[0] * n * keys // (hi - lo), rows[1] * m * keys // (hi - lo)

    def _held(self, team: Team) -> tuple[int, int]:
        """|R| and |S| as held now: in full history all that was received, in a window what has not
        expired.
        """
        if self.settings.statistics == "sample":
            return self._scaled(team, self.blocks[team.number])
        r, s = (sum(b.rows for b in self.facts.blocks if b.stream == stream) for stream in (0, 1))
        return r, s

    def _decide(self, team: Team) -> None:
        """Algorithm 2."""
        decision = Decision(
            len(team.group.hosts),
            team.group.mapping,
            self.settings.epsilon,
            self._sizes(),
            *team.counts,
        )
        if not decision.due():
            return
        self.check = True
        decision = decision.decide(*self._held(team))
        team.counts = (decision.r, decision.s, 0.0, 0.0)
        if decision.mapping != team.group.mapping:
            self._start(team, team.group.remap(decision.mapping))

    def _sizes(self) -> tuple[float, float]:
        """(tau_R, tau_S)."""
        facts = self.facts
        if self.settings.sizes is not None:
            return self.settings.sizes[0], self.settings.sizes[1]
        tau = [
            size / n if n and size else 1.0
            for n, size in zip(facts.received, facts.received_bytes, strict=True)
        ]
        return tau[0], tau[1]

    def _start(self, team: Team, new: Group) -> None:
        """A new epoch: the fresh blocks of this very batch are routed by the new mapping."""
        start = begin(self.draft, team.group, new, self.blocks[team.number], self._budget(new))
        (r, s, dr, ds), (tau_r, tau_s) = team.counts, self._sizes()
        self.events += [
            changed(
                self.facts.batch, team.number, team.group, new, ((r + dr) * tau_r, (s + ds) * tau_s)
            ),
            MigrationStarted(self.facts.batch, team.number, start.tuples, start.discarded),
        ]
        team.group = new
        self._continue(team, start.migration if start.migration.pending else None)

    def _budget(self, group: Group) -> float:
        """Tuples that migration may bring to a host of the group with each batch, if batches go on
        as the last one was.
        """
        share = (group.keys[1] - group.keys[0]) / self.settings.keys
        return (
            RATE
            * share
            * sum(
                n / parts for n, parts in zip(self.facts.last_received, group.mapping, strict=True)
            )
        )

    def _advance(self, team: Team) -> None:
        assert team.migration is not None
        step = advance(
            self.draft, team.migration, team.group, {b.id: b for b in self.blocks[team.number]}
        )
        self.steps.append((team, step, team.migration.since))
        self.events.append(
            MigrationAdvanced(self.facts.batch, team.number, step.copies, step.moved, step.left)
        )
        self._continue(team, step.rest)

    def _continue(self, team: Team, migration: Migration | None) -> None:
        team.migration = migration
        if migration is None:
            self.events.append(MigrationEnded(self.facts.batch, team.number))
            self.check = True

    def _grow(self) -> None:
        """Elasticity. All groups grow together, so that each keeps its share of the hosts, and only
        when none migrates.
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
            or self._fullest() * 2 <= self.settings.capacity
        ):
            return
        numbers = count(hosts)
        for team in self.teams:
            self._start(team, team.group.grow(numbers))

    def _fullest(self) -> int:
        """Tuples stored on the host that stores most."""
        stored: dict[int, int] = {}
        for b in self.facts.blocks:
            for h in b.hosts:
                stored[h] = stored.get(h, 0) + b.rows
        return max(stored.values(), default=0)

    def _pinned(self, fresh: list[Route]) -> frozenset[int]:
        """Blocks that move, all that were born in the epoch, and the fresh ones that the controller
        counts next.
        """
        pinned: set[int] = set()
        born = by_group([t.group for t in self.teams], [r.block for r in fresh])
        for team, mine in zip(self.teams, born, strict=True):
            if (move := team.migration) is not None:
                pinned.update(copy.block for copy in move.pending)
                pinned.update(
                    b.id for b in (*self.blocks[team.number], *mine) if b.batch >= move.since
                )
            elif self.settings.statistics == "sample":
                pinned.update(b.id for b in mine if b.keys[0] == team.group.keys[0])
        return frozenset(pinned)
