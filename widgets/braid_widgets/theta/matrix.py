"""The join matrix: which host joins which part, the joined share of each part, and copies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from braid_widgets.base.join_matrix import tile_rectangles as tiles
from braid_widgets.base.run_view import RunView

STEP = 5
"""Shares are rounded to this many percent."""


class MatrixCell(NamedTuple):
    """A rectangle of the matrix, in shares of the two key spaces.

    ``percent`` is the share of its due pairs that are joined.
    """

    top: float
    bottom: float
    left: float
    right: float
    host: int
    percent: int
    moving: bool


class HostCopies(NamedTuple):
    """Rows of a stream that one host copied to another in a batch."""

    source: int
    target: int
    stream: int
    rows: int


def matrix_cells(scene: RunView) -> list[MatrixCell]:
    """Return the matrix as rectangles.

    Stream 0 runs from top to bottom, stream 1 from left to right. ``percent`` is the share of due
    pairs that are joined. A cell is moving while its pairs are pending or its host receives copies.
    """
    joined = scene.join_matrix
    pending = scene.pending_density()
    due = joined.met + pending
    share = np.divide(joined.met, due, out=np.ones_like(due), where=due > 0)
    percent = np.floor(share * 100 / STEP + 1e-9).astype(int) * STEP
    moving = (pending > 0) | np.isin(joined.host, [c.target for c in scene.copies])
    code = np.where(joined.host < 0, -1, (joined.host * 101 + percent) * 2 + moving)
    code, rows = _merge_equal_rows(code, joined.cuts[0])
    columned, columns = _merge_equal_rows(code.T, joined.cuts[1])
    cells = []
    for r0, r1, c0, c1 in tiles(columned.T):
        value, migrates = divmod(int(columned[c0, r0]), 2)
        host, done = divmod(value, 101)
        corners = (
            *_compute_span_fractions(rows, r0, r1),
            *_compute_span_fractions(columns, c0, c1),
        )
        cells.append(MatrixCell(*corners, host, done, bool(migrates)))
    return cells


def _merge_equal_rows(code: np.ndarray, cuts: list[int]) -> tuple[np.ndarray, list[int]]:
    """Return the rows with equal neighbors merged, and the remaining cuts."""
    if len(code) == 0:
        return code, cuts
    first = np.append(True, (code[1:] != code[:-1]).any(1))
    return code[first], [*(c for c, f in zip(cuts, first, strict=False) if f), cuts[-1]]


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
