"""The join matrix of a run: which host joined which part, accumulated over all batches."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


class JoinMatrix:
    """The join matrix over the routing keys of two streams.

    Both axes are cut at every begin and end of a block's key range. ``host`` is the host that
    joined a cell last, -1 for none. Memory is the product of the numbers of distinct cuts, whatever
    the length of the run.

    Source: Elseidy 2014, section 3.1.
    """

    def __init__(self) -> None:
        self.cuts: tuple[list[int], list[int]] = ([], [])
        self.host = np.full((0, 0), -1)

    def split_axis(self, axis: int, bounds: Iterable[int]) -> None:
        """Cut an axis at more keys, in any order; keys that are already cut change nothing."""
        old = self.cuts[axis]
        new = sorted(set(old).union(bounds))
        if len(new) == len(old):
            return
        source = np.searchsorted(old, new[:-1], "right") - 1
        source[(source >= len(old) - 1)] = -1
        margin = [(0, 0), (0, 0)]
        margin[axis] = (0, 1)
        self.host = np.pad(self.host, margin, constant_values=-1).take(source, axis)
        self.cuts[axis][:] = new

    def add_pairs(self, boxes: np.ndarray, pairs: np.ndarray, hosts: np.ndarray) -> None:
        """Add joined pairs; of boxes that overlap, the one with most pairs sets the host.

        - ``boxes`` (k, 4): keys [r0, r1, s0, s1).
        - ``pairs`` (k,): row pairs of each box.
        - ``hosts`` (k,): the host of each box.
        """
        if not len(boxes):
            return
        columns = [*self._find_cell_indices(boxes).T, hosts]
        sides = [1 + int(c.max()) for c in columns]
        places, which = np.unique(np.ravel_multi_index(columns, sides), return_inverse=True)
        order = np.argsort(np.bincount(which.ravel(), pairs, len(places)), kind="stable")
        for r0, r1, s0, s1, host in np.transpose(np.unravel_index(places[order], sides)):
            self.host[r0:r1, s0:s1] = host

    def _find_cell_indices(self, boxes: np.ndarray) -> np.ndarray:
        rows, columns = (np.searchsorted(self.cuts[a], boxes[:, 2 * a : 2 * a + 2]) for a in (0, 1))
        return np.hstack([rows, columns])


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
