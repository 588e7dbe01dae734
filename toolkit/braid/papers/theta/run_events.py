"""Events of an adaptive grid of hosts. Source: Elseidy 2014."""

from __future__ import annotations

from dataclasses import dataclass
from logging import INFO
from math import ceil
from typing import NamedTuple

from braid.core.plan import ReplicaCopy
from braid.core.run_events import Event, EventContext
from braid.papers.theta.mapping import input_load_factor


class Cell(NamedTuple):
    """The place of a host in a grid."""

    host: int
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class MappingChanged(Event):
    """The grid of a group of hosts changes from (n, m) to (n', m').

    ``cells`` are the places of the group's hosts under the new mapping.

    Source: Elseidy 2014, section 4.2.
    """

    level = INFO
    retention_key = ("group",)

    batch: int
    group: int
    previous_mapping: tuple[int, int]
    mapping: tuple[int, int]
    cells: tuple[Cell, ...]
    estimated_sizes: tuple[int, ...]
    """The controller's estimates of (|R|, |S|), in unit tuples."""

    def describe_decision(self, moment: EventContext) -> str:
        if not any(self.estimated_sizes):
            return f"hosts of group {self.group} begin as the grid {self.mapping}"
        (n, m), (k, j) = self.previous_mapping, self.mapping
        if n * m != k * j:
            return (
                f"the grid grows from {n * m} to {k * j} hosts: {self.previous_mapping} to "
                f"{self.mapping}"
            )
        r, s = self.estimated_sizes
        loads = (
            f"ILF {input_load_factor(r, s, n, m):,.0f} to "
            f"{input_load_factor(r, s, k, j):,.0f} unit tuples"
        )
        sizes = " and ".join(f"{x:,} of {a}" for a, x in zip(moment.streams, (r, s), strict=False))
        return f"{self.previous_mapping} to {self.mapping}, {loads} (estimated: {sizes})"


@dataclass(frozen=True, slots=True)
class MigrationStarted(Event):
    """Blocks start to be exchanged.

    ``tuples_to_copy`` is the total over all hosts; ``discarded_tuples`` are dropped at once.
    """

    level = INFO
    retention_key = ("group",)

    batch: int
    group: int
    tuples_to_copy: int
    discarded_tuples: int

    def describe_decision(self, moment: EventContext) -> str:
        moves = f"moves {self.tuples_to_copy:,} tuples, gives up {self.discarded_tuples:,}"
        changed = [
            e
            for e in moment.batch_events
            if isinstance(e, MappingChanged) and e.group == self.group
        ]
        if not changed or moment.previous_commit is None:
            return moves
        spared = _count_spared_copies(changed[0], moment.previous_commit.received_tuples)
        if spared <= 0 or not self.tuples_to_copy:
            return moves
        batches = ceil(self.tuples_to_copy / spared)
        return f"{moves}, pays back after {batches:,} batch{'es' if batches > 1 else ''} like these"


def _count_spared_copies(change: MappingChanged, received: tuple[int, ...]) -> int:
    """Return the number of copies of fresh tuples that the change saves in a batch.

    A tuple of R goes to m hosts, one of S to n; section 3.3.
    """
    (n, m), (k, j) = change.previous_mapping, change.mapping
    r, s = received[:2]
    return r * (m - j) + s * (n - k)


@dataclass(frozen=True, slots=True)
class MigrationAdvanced(Event):
    """One batch's share of a migration; ``remaining_tuples`` are still to be copied."""

    batch: int
    group: int
    copies: tuple[ReplicaCopy, ...]
    moved_tuples: int
    remaining_tuples: int


@dataclass(frozen=True, slots=True)
class MigrationEnded(Event):
    """All blocks of a group are at the hosts of its mapping."""

    level = INFO
    retention_key = ("group",)

    batch: int
    group: int

    def describe_decision(self, moment: EventContext) -> str:
        return f"group {self.group} has migrated: every tuple is where its mapping has it"
