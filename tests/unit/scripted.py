"""A small run written by hand: two hosts, one migration from (2, 1) to (1, 2), four tuples of R and
ten of S.
"""

from __future__ import annotations

from typing import Any

from braid.core.events import (
    BatchCommitted,
    BatchPlanned,
    MappingChanged,
    MigrationAdvanced,
    MigrationEnded,
    MigrationStarted,
    RunEnded,
    RunStarted,
)


def started(
    batches: int | None = 3,
    placement: str = "AdaptiveGrid",
    hosts: int = 2,
    clock: str = "measured",
) -> RunStarted:
    return RunStarted(("r", "s"), "r.x < s.y", {}, placement, {}, hosts, hosts, batches, clock)


def committed(
    batch: int,
    received: list[int],
    total: list[int],
    blocks: list[list[Any]] | None = None,
    dropped: list[int] | None = None,
    stored: list[int] | None = None,
    moved: list[int] | None = None,
    hosts: int = 2,
) -> BatchCommitted:
    none = [0] * hosts
    stored, moved = stored or none, moved or none
    return BatchCommitted(
        batch,
        received,
        total,
        total,
        7,
        {"plan": 0.01, "execute": 0.4, "commit": 0.09, "total": 0.5},
        blocks or [],
        dropped or [],
        [sum(received)] * hosts,
        [9 * sum(received)] * hosts,
        stored,
        [9 * s for s in stored],
        moved,
        [9 * m for m in moved],
        none,
        none,
        none,
        [0.0] * hosts,
    )


MIGRATION: list[Any] = [
    started(),
    BatchPlanned(
        0,
        [
            [0, 0, [0, 1], [0], [], True, []],
            [1, 0, [1, 2], [1], [], True, []],
            [2, 1, [0, 1], [0, 1], [[[0, {"0": [0], "1": [1]}]]], True, []],
            [3, 1, [1, 2], [0, 1], [[[0, {"0": [0], "1": [1]}]]], True, []],
        ],
        [],
        {},
    ),
    MappingChanged(0, 0, (2, 1), (2, 1), [[0, 0, 0], [1, 1, 0]], [0, 0]),
    committed(
        0,
        [4, 6],
        [4, 6],
        [
            [0, 0, [0, 1], 0, [0], 2, 18],
            [1, 0, [1, 2], 0, [1], 2, 18],
            [2, 1, [0, 1], 0, [0, 1], 3, 27],
            [3, 1, [1, 2], 0, [0, 1], 3, 27],
        ],
        stored=[8, 8],
    ),
    BatchPlanned(
        1,
        [
            [4, 1, [0, 1], [0], [[[0, {"0": [0]}]]], True, [1]],
            [5, 1, [1, 2], [1], [[[0, {"1": [0, 1]}]]], True, []],
        ],
        [[0, [0, 1], [0], {"1": 0}]],
        {"2": [1], "3": [0]},
    ),
    MappingChanged(1, 0, (2, 1), (1, 2), [[0, 0, 0], [1, 0, 1]], [4, 10]),
    MigrationStarted(1, 0, 4, 6),
    MigrationAdvanced(1, 0, [[0, 0, 1]], 2, 2),
    committed(
        1,
        [0, 4],
        [4, 10],
        [
            [0, 0, [0, 1], 0, [0, 1], 2, 18],
            [2, 1, [0, 1], 0, [0], 3, 27],
            [3, 1, [1, 2], 0, [1], 3, 27],
            [4, 1, [0, 1], 1, [0], 2, 18],
            [5, 1, [1, 2], 1, [1], 2, 18],
        ],
        stored=[7, 9],
        moved=[0, 2],
    ),
    BatchPlanned(
        2,
        [[1, 0, [1, 2], [0, 1], [[[1, {"0": [4]}]]], False, []]],
        [[1, [1, 2], [1], {"0": 1}]],
        {},
    ),
    MigrationAdvanced(2, 0, [[1, 1, 0]], 2, 0),
    MigrationEnded(2, 0),
    committed(2, [0, 0], [4, 10], [[1, 0, [1, 2], 0, [0, 1], 2, 18]], stored=[9, 9], moved=[2, 0]),
    RunEnded(2, "completed"),
]
