"""Counts of the tuples of frequent join values, from batch to batch.

A count is never too high. It is too low by the tuples of batches in which the value was not kept.
Source: Misra and Gries 1982, with decay.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

OTHERS = -1
"""Number under which counts have the tuples of all values that are not counted."""
EARLIER_WEIGHT = 0.6
"""Weight of all earlier batches' counts, relative to those of the last batch."""
MOST_VALUES = 256
"""Most values of a stream whose counts are kept from batch to batch."""
LEAST_SHARE = 1024
"""A value is counted if it has more than one part in ``LEAST_SHARE`` of a stream's tuples."""
LEAST_TUPLES, SMALL_BATCH = 3, 64
"""Least tuples of a counted value, in a batch of a stream that has more than ``SMALL_BATCH``. Rare
values come once or twice in a batch of a thousand.
"""


def select_frequent_values(tuples: npt.NDArray[np.int64]) -> dict[int, int]:
    """Return the counts of frequent values, and of all others, from the tuples of every value."""
    total = int(tuples.sum())
    least = LEAST_TUPLES if total > SMALL_BATCH else 1
    frequent = np.flatnonzero(tuples >= max(least, total // LEAST_SHARE + 1))
    counts = dict(zip(frequent.tolist(), tuples[frequent].tolist(), strict=True))
    return {**counts, OTHERS: total - sum(counts.values())}


def keep_frequent_values(counts: Mapping[int, float]) -> dict[int, float]:
    """Return the counts of the most frequent values; all other tuples count as ``OTHERS``."""
    total = sum(counts.values())
    large = [(-n, v) for v, n in counts.items() if v != OTHERS and n * LEAST_SHARE > total]
    frequent = {value: -n for n, value in sorted(large)[:MOST_VALUES]}
    return {**frequent, OTHERS: total - sum(frequent.values())} if total else {}
