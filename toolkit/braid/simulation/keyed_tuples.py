"""Numbers of simulated tuples by routing key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from braid.core.plan import Keys

Ints = npt.NDArray[np.int64]


class KeyedTuples(NamedTuple):
    """Numbers of tuples by routing key. Keys ascend; those without tuples are left out."""

    keys: Ints
    counts: Ints

    @classmethod
    def from_dense(cls, counts: Ints, first: int = 0) -> KeyedTuples:
        """Return the tuples whose counts are given for all keys from ``first`` on."""
        at = np.flatnonzero(counts)
        return cls(at + first, counts[at])

    @classmethod
    def add_parts(cls, parts: Sequence[KeyedTuples]) -> KeyedTuples:
        """Return the tuples of several blocks together."""
        if len(parts) == 1:
            return parts[0]
        keys, at = np.unique(np.concatenate([p.keys for p in parts]), return_inverse=True)
        counts = np.bincount(at, np.concatenate([p.counts for p in parts]), len(keys))
        return cls(keys, counts.astype(np.int64))

    def select_range(self, keys: Keys) -> KeyedTuples:
        """Return the tuples whose keys are in a range."""
        chosen = slice(*np.searchsorted(self.keys, keys))
        return KeyedTuples(self.keys[chosen], self.counts[chosen])
