"""Events of an adaptive grid of hosts. Source: Elseidy 2014."""

from __future__ import annotations

from dataclasses import dataclass
from logging import INFO
from math import ceil
from typing import NamedTuple

from braid.core.plan import ReplicaCopy
from braid.core.plan_sentences import format_count
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
        (n, m), (k, j) = self.previous_mapping, self.mapping
        if not any(self.estimated_sizes):
            return f"the hosts{_name_group(self.group)} begin as the grid {k} × {j}"
        change = f"from {n} × {m} to {k} × {j}"
        if n * m != k * j:
            return f"the grid grows from {n * m} to {k * j} hosts, {change}"
        if moment.previous_commit is None:
            return f"the grid goes {change}"
        r, s = moment.previous_commit.live_tuples[:2]
        old, new = input_load_factor(r, s, n, m), input_load_factor(r, s, k, j)
        sizes = " and ".join(f"{x:,} of {a}" for a, x in zip(moment.streams, (r, s), strict=False))
        saved = f" ({new / old - 1:+.0%})" if old else ""
        return (
            f"the grid goes {change}, as there are {sizes}: a host then holds "
            f"{format_count(round(new), 'row')} instead of {old:,.0f}{saved}"
        )


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
        moves = (
            f"{format_count(self.tuples_to_copy, 'row')} to move, "
            f"{self.discarded_tuples:,} to discard"
        )
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
        return f"{moves}; it pays back after {batches:,} batch{'es' if batches > 1 else ''}"


def _name_group(group: int) -> str:
    """Return the group in words; a grid of one group has only group 0."""
    return f" of group {group}" if group else ""


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
        return f"every row{_name_group(self.group)} is where the new grid has it"
