"""The most valuable part of the work that fits a budget.

An item is the work of a class of tuples against a basic window. Its volume counts pairs; its value
is the output of a pair. The share to take of each item is a fractional knapsack, for which the
greedy choice is optimal.

Source: Gedik 2007, sections 5.2 (Algorithm 4) and 5.3 (Algorithm 5).
"""

from __future__ import annotations

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
