"""What an adaptive grid of hosts has to tell: Elseidy 2014."""

from __future__ import annotations

from dataclasses import dataclass
from logging import INFO
from math import ceil
from typing import NamedTuple

from braid.core.events import Copy, Event, Moment
from braid.papers.theta.mapping import ilf


class Cell(NamedTuple):
    """The place of a host in a grid."""

    host: int
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class MappingChanged(Event):
    """The grid of a group of hosts changes from (n, m) to (n', m'); Elseidy 2014, section 4.2.

    ``cells`` lists [host, row, column] of the group under the new mapping.
    """

    level = INFO
    lasting = ("group",)

    batch: int
    group: int
    before: tuple[int, int]
    after: tuple[int, int]
    cells: tuple[Cell, ...]
    estimate: tuple[int, ...]
    """The controller's estimates of (|R|, |S|), in unit tuples."""

    def decided(self, moment: Moment) -> str:
        if not any(self.estimate):
            return f"hosts of group {self.group} begin as the grid {self.after}"
        (n, m), (k, j) = self.before, self.after
        if n * m != k * j:
            return f"the grid grows from {n * m} to {k * j} hosts: {self.before} to {self.after}"
        r, s = self.estimate
        loads = f"ILF {ilf(r, s, n, m):,.0f} to {ilf(r, s, k, j):,.0f} unit tuples"
        sizes = " and ".join(f"{x:,} of {a}" for a, x in zip(moment.streams, (r, s), strict=False))
        return f"{self.before} to {self.after}, {loads} (estimated: {sizes})"


@dataclass(frozen=True, slots=True)
class MigrationStarted(Event):
    """Blocks start to be exchanged: ``tuples`` to copy in all, over all hosts; ``discarded`` tuples
    given up at once.
    """

    level = INFO
    lasting = ("group",)

    batch: int
    group: int
    tuples: int
    discarded: int

    def decided(self, moment: Moment) -> str:
        moves = f"moves {self.tuples:,} tuples, gives up {self.discarded:,}"
        changed = [
            e for e in moment.beside if isinstance(e, MappingChanged) and e.group == self.group
        ]
        if not changed or moment.before is None:
            return moves
        spared = _spared(changed[0], moment.before.received)
        if spared <= 0 or not self.tuples:
            return moves
        batches = ceil(self.tuples / spared)
        return f"{moves}, pays back after {batches:,} batch{'es' if batches > 1 else ''} like these"


def _spared(change: MappingChanged, received: tuple[int, ...]) -> int:
    """Copies of fresh tuples that a batch is sent less: a tuple of R goes to m hosts, one of S to
    n; section 3.3.
    """
    (n, m), (k, j) = change.before, change.after
    r, s = received[:2]
    return r * (m - j) + s * (n - k)


@dataclass(frozen=True, slots=True)
class MigrationAdvanced(Event):
    """One batch's share of a migration. ``copies`` lists [block id, from host, to host]; ``left``
    tuples wait.
    """

    batch: int
    group: int
    copies: tuple[Copy, ...]
    moved: int
    left: int


@dataclass(frozen=True, slots=True)
class MigrationEnded(Event):
    """All blocks of a group are where its mapping has them."""

    level = INFO
    lasting = ("group",)

    batch: int
    group: int

    def decided(self, moment: Moment) -> str:
        return f"group {self.group} has migrated: every tuple is where its mapping has it"
