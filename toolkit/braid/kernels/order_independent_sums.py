"""Sums of sampled values that do not depend on order, and sketches of draws. NumPy only."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum
from typing import Any

import numpy as np
import numpy.typing as npt

from braid.core.shedding_plan import Item, WeightedTerm
from braid.kernels.hashing import Uint64, mix_bits

Floats = npt.NDArray[np.float64]
SIGNS = 64
"""Sums of a sketch. A 64-bit hash has one sign bit for each."""


@dataclass
class OrderIndependentSum:
    """Sums of values by type that do not depend on order.

    They are stored as the count of each distinct value, because there are few.
    """

    types: int = 1
    counts: dict[float, Floats] = field(default_factory=dict)

    def add_values(
        self, values: Floats, times: Floats, kinds: npt.NDArray[np.int64] | None = None
    ) -> None:
        """Add each value ``times`` times (integers), for these types; None: the first."""
        if not len(values):
            return
        at: npt.NDArray[np.int64] | int = 0
        distinct = values[:1]
        if np.any(values != values[0]):
            distinct, at = np.unique(values, return_inverse=True)
        elif kinds is None:
            self.add_one(float(values[0]), float(np.sum(times)))
            return
        if kinds is not None:
            at = at + kinds * len(distinct)
        size = len(distinct) * self.types
        for value, each in zip(
            distinct.tolist(), np.bincount(at, times, size).reshape(self.types, -1).T, strict=True
        ):
            self.counts[value] = np.asarray(self.counts.get(value, 0.0) + each, np.float64)

    def add_one(self, value: float, times: float) -> None:
        """Add a value of the first type ``times`` times."""
        if value not in self.counts:
            self.counts[value] = np.zeros(self.types)
        self.counts[value][0] += times

    def weighted_terms(self, of: Any, item: Item | None = None) -> list[WeightedTerm]:
        """Return the terms of the sum."""
        return [
            WeightedTerm(of, item, kind, value, n)
            for value, times in sorted(self.counts.items())
            for kind, n in enumerate(times.tolist())
            if n
        ]

    def total_value(self) -> float:
        """Return the sum over all types."""
        return fsum(value * float(n.sum()) for value, n in self.counts.items())


def sketch_values(thrown: Uint64, values: Floats) -> Floats:
    """Return sums of values, each with random signs that its draw determines.

    See ``core.shedding_plan.estimate_variances``.
    """
    sums = np.zeros(SIGNS)
    for start in range(0, len(values), 1 << 14):
        part = slice(start, start + (1 << 14))
        bits = np.unpackbits(mix_bits(thrown[part]).view(np.uint8)).reshape(-1, SIGNS)
        sums += values[part] @ (1.0 - 2.0 * bits)
    return sums
