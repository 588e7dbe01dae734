"""The most valuable part of the work that fits a budget.

An item is the work of a class of tuples against a basic window. Its volume counts pairs; its value
is the output of a pair. The share to take of each item is a fractional knapsack, for which the
greedy choice is optimal.

Source: Gedik 2007, sections 5.2 (Algorithm 4) and 5.3 (Algorithm 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def fill_budget(values: Floats, volumes: Floats, budget: float, floor: float = 0.0) -> Floats:
    """Return shares in [floor, 1], one for each item, that use the budget and have the most value.

    ``values`` are by pair, ``volumes`` and ``budget`` in pairs. Of equal values the first is taken
    first. A budget below the volume of the floor gets the floor; one above all volumes gets 1.

    >>> fill_budget(np.array([1.0, 5.0, 2.0]), np.array([10.0, 10.0, 20.0]), 20.0).tolist()
    [0.0, 1.0, 0.5]
    """
    order = np.argsort(-values, kind="stable")
    room = (1 - floor) * volumes[order]
    left = budget - floor * volumes.sum()
    taken = np.clip(left - (np.cumsum(room) - room), 0.0, room)
    shares = np.full(len(values), floor)
    shares[order] += np.divide(
        taken, volumes[order], out=np.zeros(len(values)), where=volumes[order] > 0
    )
    return np.asarray(np.minimum(shares, 1.0))


def split_directions(r: float, windows: tuple[float, float], o: tuple[float, float]) -> Floats:
    """Return r_1 and r_2 for the share r of both windows (Algorithm 4).

    All of it goes to the window with more expected output o, if that can use it. The printed line 7
    divides r_1 w_1 by w_2 but not the rest, which keeps the constraint r (w_1 + w_2) = r_1 w_1 +
    r_2 w_2 only for windows of one size; here r_2 is what the constraint leaves.
    """
    sizes = np.asarray(windows, float)
    return fill_budget(np.asarray(o, float), sizes, r * float(sizes.sum()))


def fill_by_heap(
    lists: Sequence[Sequence[float]], volumes: Sequence[float], budget: float
) -> list[float]:
    """Return r_{i,z} (Algorithm 5): for each (window, type) the share of its basic windows.

    It is the algorithm as printed, but with the frequencies of the probing stream. ``lists`` has
    for each the values of its n_i items; ``volumes`` the pairs of one of its items. A heap holds
    the best remaining item of each list.
    """
    ranked = [sorted(values, reverse=True) for values in lists]
    shares, left = [0.0] * len(lists), budget
    heap = [(-values[0], k, 0) for k, values in enumerate(ranked) if values]
    heapify(heap)
    while heap:
        _, k, j = heappop(heap)
        taken = min(1.0, left / volumes[k]) if volumes[k] > 0 else 1.0
        left -= taken * volumes[k]
        shares[k] += taken / len(ranked[k])
        if taken < 1.0:
            break
        if j + 1 < len(ranked[k]):
            heappush(heap, (-ranked[k][j + 1], k, j + 1))
    return shares
