"""The join matrix: which host joins which part, and copies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from braid_widgets.base.join_matrix import tile_rectangles
from braid_widgets.base.run_view import RunView


class MatrixCell(NamedTuple):
    """A rectangle of the matrix, in shares of the two key spaces."""

    top: float
    bottom: float
    left: float
    right: float
    host: int


class HostCopies(NamedTuple):
    """Rows of a stream that one host copied to another in a batch."""

    source: int
    target: int
    stream: int
    rows: int


def matrix_cells(scene: RunView) -> list[MatrixCell]:
    """Return the matrix as rectangles.

    Stream 0 runs from top to bottom, stream 1 from left to right.
    """
    joined = scene.join_matrix
    hosts, rows = _merge_equal_rows(joined.host, joined.cuts[0])
    columned, columns = _merge_equal_rows(hosts.T, joined.cuts[1])
    return [
        MatrixCell(
            *_compute_span_fractions(rows, r0, r1),
            *_compute_span_fractions(columns, c0, c1),
            int(columned[c0, r0]),
        )
        for r0, r1, c0, c1 in tile_rectangles(columned.T)
    ]


def _merge_equal_rows(hosts: np.ndarray, cuts: list[int]) -> tuple[np.ndarray, list[int]]:
    """Return the rows with equal neighbors merged, and the remaining cuts."""
    if len(hosts) == 0:
        return hosts, cuts
    first = np.append(True, (hosts[1:] != hosts[:-1]).any(1))
    return hosts[first], [*(c for c, f in zip(cuts, first, strict=False) if f), cuts[-1]]


def _compute_span_fractions(cuts: list[int], low: int, high: int) -> tuple[float, float]:
    span = cuts[-1] - cuts[0]
    return round((cuts[low] - cuts[0]) / span, 5), round((cuts[high] - cuts[0]) / span, 5)


def host_copies(scene: RunView) -> list[HostCopies]:
    """Return the blocks copied in the last batch, summed by stream and pair of hosts."""
    rows: dict[tuple[int, int, int], int] = {}
    for block, source, target in scene.copies:
        if (moved := scene.moving.get(block)) is not None:
            key = (source, target, moved.stream)
            rows[key] = rows.get(key, 0) + moved.rows
    return [HostCopies(*key, n) for key, n in sorted(rows.items())]
