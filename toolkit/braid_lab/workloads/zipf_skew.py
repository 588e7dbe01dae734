"""Zipf skew: keys drawn from a Zipf distribution, by a hash of each row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from braid.storage.generated_stream import zipf_probabilities as zipf_probabilities


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
