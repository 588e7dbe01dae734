"""Numbers that look random, made of others: pure functions, so that they can be made again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Uint64 = npt.NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The step of splitmix64's counter."""


def mix(values: Uint64) -> Uint64:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014): a bijection that makes counters
    look random.
    """
    values = values + GOLDEN
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
