"""Sums of what a harvest gives, which do not depend on the order in which it comes, and sketches of
what was drawn together. NumPy only.
"""

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
"""Sums of a sketch: as many as a number has bits, each of which is a sign."""


@dataclass
class OrderIndependentSum:
    """Sums of values that do not depend on the order in which they come, by type: of few different
    values, how often there was each.
    """

    types: int = 1
    counts: dict[float, Floats] = field(default_factory=dict)

    def add_values(
        self, values: Floats, times: Floats, kinds: npt.NDArray[np.int64] | None = None
    ) -> None:
        """Values, each so many ``times``, a whole number, of these types (None: the first)."""
        if not len(values):
            return
        at: npt.NDArray[np.int64] | int = 0
        known = values[:1]
        if np.any(values != values[0]):
            known, at = np.unique(values, return_inverse=True)
        elif kinds is None:
            self.add_one(float(values[0]), float(np.sum(times)))
            return
        if kinds is not None:
            at = at + kinds * len(known)
        size = len(known) * self.types
        for value, each in zip(
            known.tolist(), np.bincount(at, times, size).reshape(self.types, -1).T, strict=True
        ):
            self.counts[value] = np.asarray(self.counts.get(value, 0.0) + each, np.float64)

    def add_one(self, value: float, times: float) -> None:
        """A value of the first type, so many ``times``."""
        if value not in self.counts:
            self.counts[value] = np.zeros(self.types)
        self.counts[value][0] += times

    def weighted_terms(self, of: Any, item: Item | None = None) -> list[WeightedTerm]:
        """What it is the sum of."""
        return [
            WeightedTerm(of, item, kind, value, n)
            for value, times in sorted(self.counts.items())
            for kind, n in enumerate(times.tolist())
            if n
        ]

    def total_value(self) -> float:
        """The sum of all types."""
        return fsum(value * float(n.sum()) for value, n in self.counts.items())


def sketch_values(thrown: Uint64, values: Floats) -> Floats:
    """Sums of values, each with the signs of the coin that it is of; see core.harvest.squared."""
    sums = np.zeros(SIGNS)
    for start in range(0, len(values), 1 << 14):
        part = slice(start, start + (1 << 14))
        bits = np.unpackbits(mix_bits(thrown[part]).view(np.uint8)).reshape(-1, SIGNS)
        sums += values[part] @ (1.0 - 2.0 * bits)
    return sums
