"""The join matrix: which host joins which part, and copies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
    """Return the matrix as rectangles. Source: Elseidy 2014, section 3.1.

    Stream 0 runs from top to bottom, stream 1 from left to right.
    """
    size = scene.start.key_space_size if scene.start else 1
    rows, columns = (
        sorted({0, size}.union(*(keys[k : k + 2] for keys in scene.joined_keys))) for k in (0, 2)
    )
    hosts = np.full((len(rows) - 1, len(columns) - 1), -1)
    for (r0, r1, s0, s1), host in scene.joined_keys.items():
        down = slice(rows.index(r0), rows.index(r1))
        hosts[down, columns.index(s0) : columns.index(s1)] = host
    return [
        MatrixCell(
            round(rows[r0] / size, 5),
            round(rows[r1] / size, 5),
            round(columns[c0] / size, 5),
            round(columns[c1] / size, 5),
            int(hosts[r0, c0]),
        )
        for r0, r1, c0, c1 in tile_rectangles(hosts)
    ]


def tile_rectangles(cells: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return maximal rectangles [r0, r1, c0, c1) of equal cells that tile a matrix of integers.

    They are found row by row. Cells of -1 are left out.
    """
    done = cells < 0
    tiles = []
    for r, c in zip(*np.nonzero(~done), strict=True):
        if done[r, c]:
            continue
        same = (cells[r, c:] != cells[r, c]) | done[r, c:]
        c1 = c + (int(same.argmax()) if same.any() else len(same))
        below = ((cells[r:, c:c1] != cells[r, c]) | done[r:, c:c1]).any(1)
        r1 = r + (int(below.argmax()) if below.any() else len(below))
        done[r:r1, c:c1] = True
        tiles.append((int(r), int(r1), int(c), int(c1)))
    return tiles


def host_copies(scene: RunView) -> list[HostCopies]:
    """Return the blocks copied in the last batch, summed by stream and pair of hosts."""
    rows: dict[tuple[int, int, int], int] = {}
    for block, source, target in scene.copies:
        if (moved := scene.moving.get(block)) is not None:
            key = (source, target, moved.stream)
            rows[key] = rows.get(key, 0) + moved.rows
    return [HostCopies(*key, n) for key, n in sorted(rows.items())]
