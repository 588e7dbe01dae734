"""Sums of what a harvest gives, which do not depend on the order in which it comes, and sketches of
what was drawn together. NumPy only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum
from typing import Any

import numpy as np
import numpy.typing as npt

from braid.core.harvest import Item, Term
from braid.local.mixing import Uint64, mix

Floats = npt.NDArray[np.float64]
SIGNS = 64
"""Sums of a sketch: as many as a number has bits, each of which is a sign."""


@dataclass
class Sums:
    """Sums of values that do not depend on the order in which they come, by type: of few different
    values, how often there was each.
    """

    kinds: int = 1
    times: dict[float, Floats] = field(default_factory=dict)

    def add(
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
            self.note(float(values[0]), float(np.sum(times)))
            return
        if kinds is not None:
            at = at + kinds * len(known)
        size = len(known) * self.kinds
        for value, each in zip(
            known.tolist(), np.bincount(at, times, size).reshape(self.kinds, -1).T, strict=True
        ):
            self.times[value] = np.asarray(self.times.get(value, 0.0) + each, np.float64)

    def note(self, value: float, times: float) -> None:
        """A value of the first type, so many ``times``."""
        if value not in self.times:
            self.times[value] = np.zeros(self.kinds)
        self.times[value][0] += times

    def terms(self, of: Any, item: Item | None = None) -> list[Term]:
        """What it is the sum of."""
        return [
            Term(of, item, kind, value, n)
            for value, times in sorted(self.times.items())
            for kind, n in enumerate(times.tolist())
            if n
        ]

    def total(self) -> float:
        """The sum of all types."""
        return fsum(value * float(n.sum()) for value, n in self.times.items())


def sketched(thrown: Uint64, values: Floats) -> Floats:
    """Sums of values, each with the signs of the coin that it is of; see core.harvest.squared."""
    sums = np.zeros(SIGNS)
    for start in range(0, len(values), 1 << 14):
        part = slice(start, start + (1 << 14))
        bits = np.unpackbits(mix(thrown[part]).view(np.uint8)).reshape(-1, SIGNS)
        sums += values[part] @ (1.0 - 2.0 * bits)
    return sums
