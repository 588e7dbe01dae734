"""Functions and algorithms of Gedik 2007 that a run does not need: outputs of parts of a window.

Source: Gedik 2007, section 2, section 4.1 (Algorithm 1), sections 5.1 to 5.3 (Algorithms 4, 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from math import ceil
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from braid.papers.shedding.budget import affordable_pairs, fill_budget

Floats = npt.NDArray[np.float64]


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
    full_windows = min(n, int(share / basic + 1e-9))
    rest = share / basic - full_windows if full_windows < n else 0.0
    used = float(
        ranked[:full_windows].sum() + (rest * ranked[full_windows] if full_windows < n else 0.0)
    )
    return used / best_output_share(f, min(1.0, share))


def best_output_share(f: Floats, share: float) -> float:
    """Return g(f, a): the largest part of the area under f in a ``share`` of the window."""
    ranked = np.sort(f)[::-1] / np.sum(f)
    extent = share * len(f)
    full_steps = int(extent + 1e-9)
    return float(
        ranked[:full_steps].sum()
        + ((extent - full_steps) * ranked[full_steps] if full_steps < len(f) else 0)
    )


def newest_output_share(f: Floats, share: float) -> float:
    """Return the part of the area under f in the newest ``share`` of the window.

    This is what age-based window reduction keeps (section 2, and its picture of two densities).
    """
    return float(np.interp(share, np.linspace(0, 1, len(f) + 1), np.r_[0, np.cumsum(f)] / f.sum()))


def split_directions(r: float, windows: tuple[float, float], o: tuple[float, float]) -> Floats:
    """Return r_1 and r_2 for the share r of both windows (Algorithm 4).

    All of it goes to the window with more expected output o, if that can use it. The printed line 7
    divides r_1 w_1 by w_2 but not the rest, which keeps the constraint r (w_1 + w_2) = r_1 w_1 +
    r_2 w_2 only for windows of one size; here r_2 is what the constraint leaves.
    """
    sizes = np.asarray(windows, float)
    return fill_budget(np.asarray(o, float), sizes, r * float(sizes.sum()))


class HeapPick(NamedTuple):
    """An item that Algorithm 5 picks: a basic window for tuples of a type.

    - ``list_index``: index of its list, which is a window and a type.
    - ``rank``: its rank in the list, from 0.
    - ``value``: its value by pair.
    - ``share``: the share of it that is taken.
    - ``left``: the budget after it; less than 0 if only a part of it was left.
    """

    list_index: int
    rank: int
    value: float
    share: float
    left: float


def pick_by_heap(
    lists: Sequence[Sequence[float]], volumes: Sequence[float], budget: float
) -> Iterator[HeapPick]:
    """Yield the items that Algorithm 5 picks until the budget is used.

    It is the algorithm as printed, but with the frequencies of the probing stream. ``lists`` has
    for each the values of its n_i items; ``volumes`` the pairs of one of its items. A heap holds
    the best remaining item of each list.
    """
    ranked = [sorted(values, reverse=True) for values in lists]
    left = budget
    heap = [(-values[0], k, 0) for k, values in enumerate(ranked) if values]
    heapify(heap)
    while heap:
        value, k, j = heappop(heap)
        taken = min(1.0, left / volumes[k]) if volumes[k] > 0 else 1.0
        yield HeapPick(k, j, -value, taken, left - volumes[k])
        left -= taken * volumes[k]
        if taken < 1.0:
            break
        if j + 1 < len(ranked[k]):
            heappush(heap, (-ranked[k][j + 1], k, j + 1))


def fill_by_heap(
    lists: Sequence[Sequence[float]], volumes: Sequence[float], budget: float
) -> list[float]:
    """Return r_{i,z} (Algorithm 5): for each (window, type) the share of its basic windows.

    Parameters as for ``pick_by_heap``.
    """
    shares = [0.0] * len(lists)
    for pick in pick_by_heap(lists, volumes, budget):
        shares[pick.list_index] += pick.share / len(lists[pick.list_index])
    return shares


def adapt_fraction(r: float, beta: float, boost: float = 1.2) -> float:
    """Return the next fraction (Algorithm 1, lines 8 and 9).

    ``beta`` is the part of the input that was fetched, ``boost`` the paper's delta_r.
    """
    return beta * r if beta < 1 else min(1.0, boost * r)


def affordable_fraction(allowance: float, overhead: float, cost: float, volume: float) -> float:
    """Return the fraction r of ``volume``, the pairs of the next batch, that fits.

    This is feed-forward, where Algorithm 1 is feedback: the volume already includes the growth of
    the window in a burst.
    """
    return min(1.0, affordable_pairs(allowance, overhead, cost) / volume) if volume else 1.0
