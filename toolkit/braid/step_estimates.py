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


FEWEST_PAIRS = 10
"""Fewer sampled pairs estimate nothing: the error may be as large as the estimate."""
UNKNOWN = -1
"""Stands for a count whose sample has too few pairs."""


@dataclass(frozen=True)
class StepEstimate:
    """The estimated counts of a step, and what they were estimated from.

    - ``counts``: of the whole streams.
    - ``sampled``: the counts of the samples.
    - ``sample_sizes``: tuples of each stream in them.
    - ``scale``: pairs that a sampled pair stands for.
    - ``error``: half of the interval of the matches that holds for 95 % of samples.
    """

    counts: StepCounts
    sampled: StepCounts
    sample_sizes: tuple[int, ...]
    scale: float
    error: float

    def hide_uncertain_counts(self) -> StepCounts:
        """Return the counts with UNKNOWN for those estimated from too few pairs."""
        counts, sampled = self.counts, self.sampled
        checks = (
            c._replace(
                pairs_in=self._hide_uncertain(c.pairs_in, s.pairs_in),
                pairs_out=self._hide_uncertain(c.pairs_out, s.pairs_out),
            )
            for c, s in zip(counts.checks, sampled.checks, strict=True)
        )
        return counts._replace(
            candidate_pairs=self._hide_uncertain(counts.candidate_pairs, sampled.candidate_pairs),
            matches=self._hide_uncertain(counts.matches, sampled.matches),
            checks=tuple(checks),
        )

    def _hide_uncertain(self, count: int, sampled: int) -> int:
        return count if self.scale == 1 or sampled >= FEWEST_PAIRS else UNKNOWN

    def describe_sample(self, streams: Sequence[str]) -> str:
        """Return what was sampled, and how sure the number of matches is."""
        sizes = " and ".join(
            f"{n:,} of {s}" for n, s in zip(self.sample_sizes, streams, strict=False)
        )
        matches = f"{self.sampled.matches:,} match{'' if self.sampled.matches == 1 else 'es'}"
        head = f"{matches} among the tuples sampled, {sizes}"
        if self.scale == 1:
            return f"{head}, which are all"
        if self.sampled.matches < FEWEST_PAIRS:
            return f"{head}: too few to estimate"
        ends = (max(0.0, self.counts.matches + sign * self.error) for sign in (-1, 1))
        low, high = (f"{end:,.0f}" for end in ends)
        return f"{head}: {low} to {high} matches for 95 % of samples"


@dataclass
class _Counter:
    compared_pairs: Any = field(default_factory=lambda: np.zeros(1, np.int64))


def estimate_steps(predicate: Predicate, samples: Sequence[TupleSample]) -> list[StepEstimate]:
    """Return estimates of the steps that join the streams in order; empty: unknown.

    ``samples``: of each stream, as ``StreamSource.sample_tuples`` returns them.
    """
    if not samples:
        return []
    joiner = BlockJoiner(predicate, [None] * len(samples))
    first = BlockRows(samples[0].tuples)
    partial = PartialMatches({0: (first, first.row_positions())})
    factor, steps = samples[0].rows_per_tuple, list[StepEstimate]()
    for stream, (tuples, rows_per_tuple) in enumerate(samples[1:], 1):
        joined = frozenset(range(stream))
        block = BlockRows(build_block(tuples, predicate.stream_orders(stream)))
        tally = joiner.find_tally(joined, stream)
        tally.rows = len(partial)
        try:
            pieces = [*joiner.probe_block(partial, block, stream, False, _Counter())]
        except EvaluationFailure:  # the run fails there too, and names the expression
            return []
        counts = tally.make_step_counts(joined, predicate.parts)
        scaled = _scale_counts(counts, factor, rows_per_tuple)
        sizes = tuple(s.tuples.num_rows for s in samples[: stream + 1])
        scale, error = factor * rows_per_tuple, 0.0
        if pieces:
            partial = PartialMatches.concat_all(pieces)
            error = 1.96 * scale * _estimate_deviation(partial, samples)
        steps.append(StepEstimate(scaled, counts, sizes, scale, error))
        if not pieces:
            break
        factor *= rows_per_tuple
        if len(partial) > SAMPLED_TUPLES:
            factor *= len(partial) / SAMPLED_TUPLES
            places = np.linspace(0, len(partial) - 1, SAMPLED_TUPLES).astype(np.int64)
            partial = partial.take_positions(places)
    return steps


def _estimate_deviation(candidates: PartialMatches, samples: Sequence[TupleSample]) -> float:
    """Return the standard deviation of the number of sampled matches over samples.

    It is that of a U-statistic: for each stream, the variance of the matches of a tuple, times the
    tuples. A stream that is sampled whole adds nothing.
    """
    variance = 0.0
    for stream, (_, at) in candidates.parts.items():
        tuples, rows_per_tuple = samples[stream]
        matches = np.bincount(np.asarray(at), minlength=tuples.num_rows)
        variance += len(matches) * float(matches.var()) * (1 - 1 / rows_per_tuple)
    return float(np.sqrt(variance))


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
