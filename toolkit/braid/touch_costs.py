"""Modelled costs of a change of a run's generated streams: rows or results, and seconds of a batch.

They are shown before the change is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from braid.core.run_events import BatchCommitted
from braid.storage.generated_stream import GeneratedStream, zipf_probabilities

RECENT = 10
"""Number of batches from whose seconds later ones are modelled."""
POINTS = 31
"""Points of a curve of costs."""

Curve = list[list[float]]
"""Points (value of a setting, rows or results of a batch, its seconds)."""


class BatchPace(NamedTuple):
    """Mean costs of recent batches.

    - ``fixed_seconds``: seconds that do not depend on the rows.
    - ``row_seconds``: seconds of a row.
    - ``kernel_seconds``: seconds of joining, a part of the others.
    """

    fixed_seconds: float
    row_seconds: float
    kernel_seconds: float
    rows: float
    results: float

    @classmethod
    def measure(cls, commits: Sequence[BatchCommitted]) -> BatchPace:
        """Return the pace of the last batches.

        A line is fitted to their seconds by rows. If all have equally many rows, each row takes its
        share of the seconds.
        """
        if not (recent := commits[-RECENT:]):
            return cls(0.0, 0.0, 0.0, 0.0, 0.0)
        rows = np.array([sum(e.received_tuples) for e in recent], float)
        seconds = np.array([e.seconds_by_phase.get("total", 0.0) for e in recent])
        kernels = [e.seconds_by_phase.get("kernels", 0.0) for e in recent]
        share = seconds.mean() / max(1.0, rows.mean())
        varies = len(recent) > 2 and np.ptp(rows) > 0.1 * rows.mean()
        slope = float(np.polyfit(rows, seconds, 1)[0]) if varies else share
        slope = min(max(slope, 0.0), share)
        fixed = seconds.mean() - slope * rows.mean()
        results = np.mean([e.results for e in recent])
        return cls(fixed, slope, float(np.mean(kernels)), float(rows.mean()), float(results))


def model_rate_cost(
    sources: Mapping[str, GeneratedStream], alias: str, highest: float, pace: BatchPace
) -> Curve:
    """Return rows and seconds of a batch by the rate of a stream, from 0 to ``highest``."""
    means = {a: s.last_settings.rate * float(np.mean(s.profile)) for a, s in sources.items()}
    others = sum(means.values()) - means[alias]
    points = [(rate, others + rate * np.mean(sources[alias].profile)) for rate in (0.0, highest)]
    return [[r, float(n), pace.fixed_seconds + pace.row_seconds * float(n)] for r, n in points]


def model_skew_cost(
    sources: Mapping[str, GeneratedStream], alias: str, highest: float, pace: BatchPace
) -> Curve:
    """Return results and seconds of a batch by the skew of a stream, from 0 to ``highest``.

    The results of an equality of ``k`` grow with the share of pairs that have equal keys, and the
    seconds of joining with them. Rows that are held already have the skew with which they came.
    """
    skews = {a: (s.keys, s.last_settings.skew) for a, s in sources.items()}
    now = compute_equal_share(*skews.values())
    seconds, curve = pace.fixed_seconds + pace.row_seconds * pace.rows, []
    for skew in np.linspace(0.0, highest, POINTS).tolist():
        changed = {**skews, alias: (sources[alias].keys, skew)}
        more = compute_equal_share(*changed.values()) / now
        curve.append([skew, pace.results * more, seconds + pace.kernel_seconds * (more - 1)])
    return curve


@lru_cache(maxsize=4096)
def compute_equal_share(*keys_and_skews: tuple[int, float]) -> float:
    """Return the share of combinations of tuples, one of each stream, that have equal keys."""
    fewest = min(keys for keys, _ in keys_and_skews)
    each = [zipf_probabilities(keys, skew)[:fewest] for keys, skew in keys_and_skews]
    return float(np.prod(each, axis=0).sum())


def list_recent_commits(run: Any) -> list[BatchCommitted]:
    """Return the last batches of a run that are in memory."""
    return [e for e in run.store.events.recent_events() if isinstance(e, BatchCommitted)][-RECENT:]
