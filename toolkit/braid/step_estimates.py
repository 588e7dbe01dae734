"""Estimate the pairs that a join compares from a sample of its tuples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from braid.condition.predicate import Predicate
from braid.core.step_counts import CheckCounts, StepCounts
from braid.errors import EvaluationFailure
from braid.kernels.block_builder import build_block
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.probe import BlockJoiner
from braid.sources.stream_source import TupleSample

SAMPLED_TUPLES = 500
"""Tuples of each stream in a sample. All pairs of two samples take about a tenth of a second."""


@dataclass
class _Counter:
    compared_pairs: Any = field(default_factory=lambda: np.zeros(1, np.int64))


def estimate_steps(predicate: Predicate, samples: Sequence[TupleSample]) -> list[StepCounts]:
    """Return estimated counts of the steps that join the streams in order; empty: unknown.

    ``samples``: of each stream, as ``StreamSource.sample_tuples`` returns them.
    """
    if not samples:
        return []
    joiner = BlockJoiner(predicate, [None] * len(samples))
    first = BlockRows(samples[0].tuples)
    partial = PartialMatches({0: (first, first.row_positions())})
    factor, steps = samples[0].rows_per_tuple, list[StepCounts]()
    for stream, (tuples, rows_per_tuple) in enumerate(samples[1:], 1):
        joined = frozenset(range(stream))
        block = BlockRows(build_block(tuples, predicate.stream_orders(stream)))
        tally = joiner.find_tally(joined, stream)
        tally.rows = len(partial)
        try:
            found = [*joiner.probe_block(partial, block, stream, False, _Counter())]
        except EvaluationFailure:  # the run fails there too, and names the expression
            return []
        counts = tally.make_step_counts(joined, predicate.parts)
        steps.append(_scale_counts(counts, factor, rows_per_tuple))
        if not found:
            break
        partial = PartialMatches.concat_all(found)
        factor *= rows_per_tuple
        if len(partial) > SAMPLED_TUPLES:
            factor *= len(partial) / SAMPLED_TUPLES
            places = np.linspace(0, len(partial) - 1, SAMPLED_TUPLES).astype(np.int64)
            partial = partial.take_positions(places)
    return steps


def _scale_counts(counts: StepCounts, probing: float, stored: float) -> StepCounts:
    """Return counts of samples scaled to all tuples; ``probing``, ``stored``: their factors."""

    def scale_pair_count(pairs: int) -> int:
        return round(pairs * probing * stored)

    checks = (
        CheckCounts(c.parts, c.reached, scale_pair_count(c.pairs_in), scale_pair_count(c.pairs_out))
        for c in counts.checks
    )
    return counts._replace(
        rows=round(counts.rows * probing),
        candidate_pairs=scale_pair_count(counts.candidate_pairs),
        matches=scale_pair_count(counts.matches),
        seconds=0.0,
        checks=tuple(checks),
    )
