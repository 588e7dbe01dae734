"""What an adaptive grid of hosts has to tell: Elseidy 2014."""

from __future__ import annotations

from dataclasses import dataclass
from logging import INFO
from typing import NamedTuple

from braid.core.events import Copy, Event


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

    batch: int
    group: int
    before: tuple[int, int]
    after: tuple[int, int]
    cells: tuple[Cell, ...]
    estimate: tuple[int, ...]
    """The controller's estimates of (|R|, |S|), in unit tuples."""


@dataclass(frozen=True, slots=True)
class MigrationStarted(Event):
    """Blocks start to be exchanged: ``tuples`` to copy in all, over all hosts; ``discarded`` tuples
    given up at once.
    """

    level = INFO

    batch: int
    group: int
    tuples: int
    discarded: int


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

    batch: int
    group: int
