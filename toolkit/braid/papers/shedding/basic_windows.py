"""Basic windows: the pieces of a window that are processed or not.

Here a basic window is a set of blocks: windows slide block by block, and no block is merged across
the end of a basic window.

Source: Gedik 2007, section 5.1.
"""

from __future__ import annotations

from math import ceil

import numpy as np
import numpy.typing as npt

from braid.core.plan import Block

Floats = npt.NDArray[np.float64]
PARTS = 20
"""Default number of basic windows in a window: the paper has 1 of 20 seconds."""


def basic_window_length(window: int, basic: int | None) -> int:
    """Return b, in microseconds: as given, or a twentieth of the window."""
    return basic if basic is not None else max(1, window // PARTS)


def basic_window_ends(window: int | None, basic: int | None) -> tuple[int, ...]:
    """Return the ages b, 2b, .., w_i (microseconds) across which blocks are not merged.

    There are none in full history.
    """
    if window is None:
        return ()
    b = basic_window_length(window, basic)
    return (*range(b, window, b), window)


def locate_basic_window(
    block: Block, batch: int, window: int | None, basic: int | None, now: int | None
) -> int:
    """Return j, the basic window of the middle of a block's event times; 0: the youngest.

    ``now`` is the latest event time of the other streams, in microseconds. In full history, or
    while the others are silent, basic windows double: j is the number of doublings in the number of
    batches since the block's first.
    """
    if window is None or block.event_time_range is None or now is None:
        return max(0, batch - block.batch).bit_length()
    b = basic_window_length(window, basic)
    return min(ceil(window / b), max(0, (now - sum(block.event_time_range) // 2) // b))


def output_optimality(f: Floats, basic: float, share: float) -> float:
    """Return phi: the output of whole basic windows relative to the best ``share`` of a window.

    ``f`` is the density of matches by age, at equal steps over the window from its start; ``basic``
    is b / w_i, ``share`` the paper's r', which may exceed 1. The first basic window fills from 0 to
    b, so p_{i,j} is the mean over its fill x; section 5.1.1.
    """
    cumulated = np.concatenate([[0.0], np.cumsum(f) / np.sum(f)])
    grid = np.linspace(0.0, 1.0, len(cumulated))
    n = 1 + ceil(1 / basic - 1e-9)
    x = (np.arange(64) + 0.5) / 64
    ends = np.clip((x[:, None] + np.arange(-1, n)) * basic, 0.0, 1.0)
    p = np.diff(np.interp(ends, grid, cumulated), axis=1).mean(axis=0)
    ranked = np.sort(p)[::-1]
    whole = min(n, int(share / basic + 1e-9))
    rest = share / basic - whole if whole < n else 0.0
    used = float(ranked[:whole].sum() + (rest * ranked[whole] if whole < n else 0.0))
    return used / best_output_share(f, min(1.0, share))


def best_output_share(f: Floats, share: float) -> float:
    """Return g(f, a): the largest part of the area under f in a ``share`` of the window."""
    ranked = np.sort(f)[::-1] / np.sum(f)
    extent = share * len(f)
    whole = int(extent + 1e-9)
    return float(ranked[:whole].sum() + ((extent - whole) * ranked[whole] if whole < len(f) else 0))


def newest_output_share(f: Floats, share: float) -> float:
    """Return the part of the area under f in the newest ``share`` of the window.

    This is what age-based window reduction keeps (section 2, and its picture of two densities).
    """
    return float(np.interp(share, np.linspace(0, 1, len(f) + 1), np.r_[0, np.cumsum(f)] / f.sum()))
