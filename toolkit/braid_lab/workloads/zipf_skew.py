"""Zipf skew: keys drawn from a Zipf distribution, by a hash of each row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def zipf_probabilities(size: int, z: float) -> npt.NDArray[np.float64]:
    """Return probabilities of ranks 1 to ``size``: P(rank) proportional to 1 / rank**z.

    They are uniform for z = 0. Raises ValueError if z is negative or not finite.
    """
    if not 0 <= z < np.inf:
        raise ValueError(f"skew z is {z}; it must be a number of at least 0")
    weights: npt.NDArray[np.float64] = np.arange(1, size + 1, dtype=float) ** -z
    return weights / np.sum(weights)


def remap_keys(
    keys: npt.NDArray[np.int64], rows: npt.NDArray[np.uint64], z: float, seed: int
) -> npt.NDArray[np.int64]:
    """Return a key for each row hash: Zipf ranks, assigned to ``keys`` by a seeded permutation.

    ``rows`` are uniform 64-bit hashes; equal hashes get equal keys.
    """
    edges = np.cumsum(zipf_probabilities(len(keys), z))
    dealt = np.random.default_rng(seed).permutation(keys)
    ranks = np.searchsorted(edges, (rows >> np.uint64(11)) * 2.0**-53, side="right")
    return dealt[np.minimum(ranks, len(keys) - 1)]
