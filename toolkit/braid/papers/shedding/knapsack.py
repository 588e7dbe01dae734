"""What to process: the most valuable part of the work that fits a budget.

Source: Gedik 2007, sections 5.2 (Algorithm 4) and 5.3 (Algorithm 5). An item is the work of a class
of tuples against a basic window: its volume counts pairs, its value is what a pair brings. Which
share of each item to take is a fractional knapsack; the greedy choice is optimal.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def fill_budget(values: Floats, volumes: Floats, budget: float, floor: float = 0.0) -> Floats:
    """Shares in [floor, 1], one for each item, that use the budget and have the most value.

    ``values`` are by pair, ``volumes`` and ``budget`` in pairs. Of equal values the first comes
    first. A budget of less than the floor takes gets the floor, one of more than all gets 1.

    >>> fill(np.array([1.0, 5.0, 2.0]), np.array([10.0, 10.0, 20.0]), 20.0).tolist()
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
    """r_1 and r_2: the share r of both windows, all of it for the window of more expected output o
    if that can use it (Algorithm 4).

    The printed line 7 divides r_1 w_1 by w_2 but not the rest, which keeps the constraint r (w_1 +
    w_2) = r_1 w_1 + r_2 w_2 only for windows of one size; here r_2 is what the constraint leaves.
    """
    sizes = np.asarray(windows, float)
    return fill_budget(np.asarray(o, float), sizes, r * float(sizes.sum()))


def fill_by_heap(
    lists: Sequence[Sequence[float]], volumes: Sequence[float], budget: float
) -> list[float]:
    """Algorithm 5 as it is printed, but with the frequencies of the probing stream: r_{i,z}, for
    each (window, type) the share of its basic windows.

    ``lists`` has for each the values of its n_i items; ``volumes`` the pairs of one of its items.
    A heap holds the best item that each list has left.
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
