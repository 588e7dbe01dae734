"""The controller of an adaptive grid: what it knows, and what it does in one batch.

Source: Elseidy et al. 2014, Algorithms 1 to 3 and section 4.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Map
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from braid.core.events import Copy
from braid.core.facts import Facts
from braid.core.plan import Block, Plan, Route
from braid.papers.theta.events import MigrationAdvanced, MigrationEnded, MigrationStarted
from braid.papers.theta.groups import Group, by_group, changed
from braid.papers.theta.mapping import Decision
from braid.papers.theta.migration import RATE, Draft, Migration, Step, advance, begin, settle
from braid.papers.theta.routes import routes

if TYPE_CHECKING:
    from braid.papers.theta.grid import AdaptiveGrid


@dataclass
class Team:
    """A group and what its controller remembers; ``counts`` are (|R|, |S|, |Delta R|, |Delta S|),
    scaled to all J hosts.
    """

    number: int
    group: Group
    counts: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    migration: Migration | None = None

    def state(self) -> dict[str, Any]:
        """As a JSON value."""
        move = self.migration
        return {
            "keys": list(self.group.keys),
            "mapping": list(self.group.mapping),
            "hosts": list(self.group.hosts),
            "counts": list(self.counts),
            "migration": move
            and {
                "since": move.since,
                "pending": [list(copy) for copy in move.pending],
                "allowance": [list(item) for item in sorted(move.allowance.items())],
            },
        }

    @staticmethod
    def of(number: int, state: Map[str, Any]) -> Team:
        (lo, hi), (n, m), (r, s, dr, ds) = state["keys"], state["mapping"], state["counts"]
        migration = None
        if (move := state["migration"]) is not None:
            pending = tuple((block, dst, src) for block, dst, src in move["pending"])
            migration = Migration(
                move["since"], pending, {h: tuples for h, tuples in move["allowance"]}
            )
        return Team(
            number, Group((lo, hi), (n, m), tuple(state["hosts"])), (r, s, dr, ds), migration
        )


class Turn:
    """One batch: count, go on with migrations, decide, grow, then route the fresh blocks."""

    def __init__(self, grid: AdaptiveGrid, facts: Facts, state: Any) -> None:
        self.grid, self.facts, self.draft = grid, facts, Draft(facts)
        self.told: bool = state["told"]
        self.check: bool = state["check"]
        self.teams = [Team.of(k, group) for k, group in enumerate(state["groups"])]
        self.blocks = by_group([t.group for t in self.teams], facts.blocks)
        self.events: list[Any] = []
        self.steps: list[tuple[Team, Step, int]] = []

    def plan(self) -> Plan:
        if not self.told:
            self.events += [
                changed(self.facts.batch, t.number, t.group, t.group, (0, 0)) for t in self.teams
            ]
        for team in self.teams:
            self._count(team)
            if team.migration is not None:
                self._advance(team)
            elif sum(self.facts.received) >= self.grid.warmup:
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
            state={"told": True, "check": self.check, "groups": [t.state() for t in self.teams]},
            events=tuple(self.events),
        )

    def _count(self, team: Team) -> None:
        """Algorithm 1: the fresh tuples of the last batch, from the controller's sample or all."""
        r, s = self.facts.last_received
        if self.grid.statistics == "sample":
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
        return rows[0] * n * self.grid.keys // (hi - lo), rows[1] * m * self.grid.keys // (hi - lo)

    def _held(self, team: Team) -> tuple[int, int]:
        """|R| and |S| as held now: in full history all that was received, in a window what has not
        expired.
        """
        if self.grid.statistics == "sample":
            return self._scaled(team, self.blocks[team.number])
        r, s = (sum(b.rows for b in self.facts.blocks if b.stream == stream) for stream in (0, 1))
        return r, s

    def _decide(self, team: Team) -> None:
        """Algorithm 2."""
        decision = Decision(
            len(team.group.hosts),
            team.group.mapping,
            self.grid.epsilon,
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
        if self.grid.sizes is not None:
            return self.grid.sizes[0], self.grid.sizes[1]
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
        share = (group.keys[1] - group.keys[0]) / self.grid.keys
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
        copies = tuple(Copy(block, src, dst) for block, dst, src in step.copies)
        self.events.append(
            MigrationAdvanced(self.facts.batch, team.number, copies, step.moved, step.left)
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
            self.grid.capacity is None
            or hosts * 4 > self.grid.max_hosts
            or self._fullest() * 2 <= self.grid.capacity
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
                pinned.update(block for block, _, _ in move.pending)
                pinned.update(
                    b.id for b in (*self.blocks[team.number], *mine) if b.batch >= move.since
                )
            elif self.grid.statistics == "sample":
                pinned.update(b.id for b in mine if b.keys[0] == team.group.keys[0])
        return frozenset(pinned)
