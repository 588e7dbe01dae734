"""Probe the rows of a block with partial results.

A probe is two binary searches, then checks on candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from braid.condition.predicate import GuardedStep, Predicate, ProbeStep
from braid.condition.residual_evaluation import evaluate_residual
from braid.condition.residual_predicate import Measure, ResidualPredicate
from braid.core.horizon import Horizon
from braid.core.reserved_columns import TIME
from braid.core.step_counts import StepCounts
from braid.errors import EvaluationFailure
from braid.kernels.candidate_pairs import find_candidate_pairs, find_pairs_at_risk
from braid.kernels.compared_pairs import CandidatePairs
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.meetings import ONE_MEETING, Meetings
from braid.kernels.order_search import PairChunk
from braid.kernels.query_bitmaps import QueryBitmaps
from braid.kernels.range_search import split_into_chunks
from braid.kernels.set_overlap import pairwise_inner_product, pairwise_overlap
from braid.kernels.step_tally import StepTally
from braid.kernels.sum_overflows import find_overflows, may_overflow
from braid.kernels.value_sizes import variable_width_columns
from braid.kernels.vectors import pairwise_measure
from braid.util.batch_numbers import display_batch
from braid.util.clock_and_threads import current_environment

CHUNK = 1 << 20
"""Maximum number of candidate pairs in memory."""
BYTES = 1 << 29
"""Maximum bytes of variable-width columns, such as text, to take at once. Arrow limits a taken
column to 2^31 bytes, and returns wrong lists without an error if they have more elements.
"""
_LITTLE = BYTES >> 6
"""Up to this many bytes of candidates, an upper bound of their size suffices."""
_NEAR = 16
"""Scanning this many consecutive values takes as long as one random access."""
_LONG = 1 << 13
"""Columns of a block with this many candidate pairs are not copied together with those of
others.
"""


class ComparisonCounter(Protocol):
    """A counter of candidate pairs.

    It counts by meeting (see ``meetings``).
    """

    compared_pairs: Any


class ProbeInput(NamedTuple):
    """Partial results, and the rows of the block or gathered blocks that they probe.

    - ``is_stored``: whether the block existed before this batch, so that its expired rows are
      excluded.
    - ``counts``: the candidate pairs are added to ``counts.compared_pairs``.
    - ``since``: event time below which rows of a block that is not stored are excluded; None: none.
    - ``meetings``: which of several arrivals and gathered blocks meet.
    """

    partial: PartialMatches
    rows: BlockRows
    is_stored: bool
    counts: ComparisonCounter
    since: Horizon = None
    meetings: Meetings = ONE_MEETING

    def find_due_pairs(self, chunk: PairChunk, stream: int) -> CandidatePairs:
        """Return the pairs that an access path found and that are due on these hosts."""
        pairs = CandidatePairs.from_chunk(chunk, self.partial, self.rows, stream)
        return self.meetings.keep_due(pairs)


@dataclass
class BlockJoiner:
    """A joiner of partial results with blocks under one predicate.

    - ``horizons``: by stream, the event time below which stored tuples have expired, in
      microseconds; None: none has.
    - ``bitmaps``: queries of a shared run. Only results that serve some query are found, and each
      carries its queries.
    - ``batch_number``: number of the micro-batch, for error messages.
    """

    predicate: Predicate
    horizons: Sequence[Horizon]
    bitmaps: QueryBitmaps | None = None
    batch_number: int = 0
    tallies: dict[tuple[frozenset[int], int], StepTally] = field(default_factory=dict)
    variable_width_columns: dict[int, list[str]] = field(default_factory=dict)

    def probe_block(
        self,
        partial: PartialMatches,
        rows: BlockRows,
        stream: int,
        stored: bool,
        count: ComparisonCounter,
    ) -> Iterator[PartialMatches]:
        """Yield the partial results extended by matching rows of a block, in bounded chunks.

        See ``ProbeInput``.
        """
        meet = ProbeInput(partial, rows, stored, count)
        return (matches for _, matches in self.probe_blocks([meet], stream))

    def probe_blocks(
        self, several: Iterable[ProbeInput], stream: int
    ) -> Iterator[tuple[int, PartialMatches]]:
        """Yield the same for several blocks in order, each chunk with the index of its block.

        All partial results are of the same streams. Residuals are evaluated on the candidates of
        many blocks at once, because a few take as long as ten thousand.
        """
        waiting: list[tuple[int, PartialMatches]] = []
        pairs = size = 0
        for n, meet in enumerate(several):
            tally = self.find_tally(frozenset(meet.partial.parts), stream)
            step = tally.step
            for admitted in self._find_candidates(meet, tally):
                if not step.residuals:
                    tally.matches += len(admitted)
                    yield from self.split_for_output(n, admitted)
                    continue
                for matches, more in self._split_for_residuals(admitted, step):
                    if waiting and (pairs + len(matches) > CHUNK or size + more > BYTES):
                        yield from self._filter_by_residuals(waiting, stream)
                        waiting, pairs, size = [], 0, 0
                    waiting.append((n, matches))
                    pairs, size = pairs + len(matches), size + more
        yield from self._filter_by_residuals(waiting, stream)

    def _find_candidates(self, meet: ProbeInput, tally: StepTally) -> Iterator[PartialMatches]:
        """Yield the pairs that index, conditions and windows admit, in chunks."""
        partial, rows, step = meet.partial, meet.rows, tally.step
        horizon = self.horizons[step.stream] if meet.is_stored else meet.since
        if self.bitmaps is not None and rows.row_total:
            partial = self.bitmaps.filter_wanted(partial, rows, step.stream)
            meet = meet._replace(partial=partial)
        if not len(partial):
            return
        if rows.row_total:
            for danger in step.guarded_steps:
                self._check_danger(meet, horizon, step, danger)
        for chunk in find_candidate_pairs(partial, rows, step.stream, step.access_path, CHUNK):
            pairs = meet.find_due_pairs(chunk, step.stream)
            if self.bitmaps is not None and rows.sources is not None:
                pairs = self.bitmaps.keep_wanted_pairs(pairs)
            if not len(pairs.left):
                continue
            meet.counts.compared_pairs += meet.meetings.count_pairs(pairs)
            tally.candidate_pairs += len(pairs.left)
            admitted = self._admit_pairs(pairs, tally, horizon)
            if admitted is not None:
                yield admitted

    def _admit_pairs(
        self, pairs: CandidatePairs, tally: StepTally, horizon: Horizon
    ) -> PartialMatches | None:
        """Return the pairs that conditions, windows and queries admit; None: there is none."""
        step = tally.step
        holding = self._evaluate_conditions(pairs, tally, horizon)
        if holding is not None:
            pairs = pairs.take_positions(np.flatnonzero(holding))
        if not len(pairs.left):
            return None
        visited = pairs.partial.take_positions(pairs.left)
        parts = {**visited.parts, step.stream: (pairs.rows, pairs.right)}
        admitted = replace(visited, parts=parts, queries=None)
        if self.bitmaps is not None:
            admitted.queries = self.bitmaps.result_bitmaps(admitted)
            if horizon is not None:  # the block is stored
                admitted.queries = self.bitmaps.drop_answered(admitted, step.stream)
            admitted = admitted.take_positions(np.flatnonzero(admitted.queries))
        return admitted if len(admitted) else None

    def _check_danger(
        self, meet: ProbeInput, horizon: Horizon, step: ProbeStep, danger: GuardedStep
    ) -> None:
        """Raise EvaluationFailure if Spark computes the guarded sum of a pair and it overflows.

        In nearly all cases the bounds of the columns exclude this.
        """
        partial, rows, ends = meet.partial, meet.rows, danger.guard.weighted_columns
        bounds = [
            (rows if s == step.stream else partial.parts[s][0]).find_bounds(n) for s, n, _ in ends
        ]
        if not may_overflow(danger.guard, bounds):
            return
        for chunk in find_pairs_at_risk(partial, rows, danger, bounds, step.stream, CHUNK):
            pairs = meet.find_due_pairs(chunk, step.stream)
            columns = [pairs.column_values(s, n) for s, n, _ in ends]
            pairs = pairs.take_positions(np.flatnonzero(find_overflows(danger.guard, columns)))
            required = replace(step, conditions=danger.required_links)
            is_computed = len(pairs.left) and self._is_computed(pairs, required, horizon)
            if is_computed and not danger.fails_in_residual:
                raise self._make_failure(danger.guard.sentence, (s for s, _, _ in ends))

    def _is_computed(self, pairs: CandidatePairs, step: ProbeStep, horizon: Horizon) -> bool:
        """Return whether the step's conditions and residuals admit one of these pairs."""
        tally = StepTally(step)
        admitted = self._admit_pairs(pairs, tally, horizon)
        pieces = () if admitted is None else self._split_for_residuals(admitted, step)
        return any(self._apply_residuals([(0, piece)], tally) for piece, _ in pieces)

    def _make_failure(self, text: str, streams: Iterable[int]) -> EvaluationFailure:
        names = [self.predicate.aliases[s] for s in sorted(set(streams))]
        where = f"stream {names[0]}" if len(names) == 1 else f"streams {' and '.join(names)}"
        return EvaluationFailure(f"{text}, batch {display_batch(self.batch_number)}, {where}")

    def _filter_by_residuals(
        self, candidates: list[tuple[int, PartialMatches]], stream: int
    ) -> Iterator[tuple[int, PartialMatches]]:
        """Yield the partial results for which the residuals hold."""
        if not candidates:
            return
        tally = self.find_tally(frozenset(candidates[0][1].parts) - {stream}, stream)
        for n, fulfilled in self._apply_residuals(candidates, tally):
            tally.matches += len(fulfilled)
            yield from self.split_for_output(n, fulfilled)

    def split_for_output(
        self, n: int, partial: PartialMatches
    ) -> Iterator[tuple[int, PartialMatches]]:
        """Yield partial results in pieces small enough to take all columns."""
        columns = [
            (s, name) for s in partial.parts for name in self._variable_width_columns(s, partial)
        ]
        return ((n, piece) for piece, _ in _split_by_bytes(partial, columns, BYTES))

    def _split_for_residuals(
        self, candidates: PartialMatches, step: ProbeStep
    ) -> Iterator[tuple[PartialMatches, int]]:
        """Yield candidates in pieces small enough to take the columns that residuals read."""
        columns = {
            c
            for r in step.residuals
            for c in r.columns
            if c[1] in self._variable_width_columns(c[0], candidates)
        }
        return _split_by_bytes(candidates, [*columns], _LITTLE)

    def _variable_width_columns(self, stream: int, partial: PartialMatches) -> list[str]:
        if stream not in self.variable_width_columns:
            self.variable_width_columns[stream] = variable_width_columns(
                partial.parts[stream][0].batch.schema
            )
        return self.variable_width_columns[stream]

    def find_tally(self, visited: frozenset[int], stream: int) -> StepTally:
        """Return the tally of the step from the visited streams to the next, with its plan."""
        if (visited, stream) not in self.tallies:
            self.tallies[visited, stream] = StepTally(self.predicate.next_step(visited, stream))
        return self.tallies[visited, stream]

    def make_step_counts(self) -> list[StepCounts]:
        """Return the counts of all steps so far."""
        return [t.make_step_counts(at[0], self.predicate.parts) for at, t in self.tallies.items()]

    def _evaluate_conditions(
        self, pairs: CandidatePairs, tally: StepTally, horizon: Horizon
    ) -> np.ndarray | None:
        """Return a mask of the pairs that fulfill the conditions and are not expired; None: all."""
        keep: np.ndarray | None = None
        for link in pairs.unchecked:
            keep = _and_masks(keep, pairs.evaluate_condition(link))
        step, left = tally.step, len(pairs.left) if keep is None else int(np.count_nonzero(keep))
        for link, check in zip(step.conditions, tally.conditions, strict=True):
            keep = _and_masks(keep, pairs.evaluate_condition(link))
            check.pairs_in += left
            left = int(np.count_nonzero(keep))
            check.pairs_out += left
        if horizon is None:
            return keep
        # Checking all rows once is faster than checking as many candidates.
        rows = pairs.rows
        if len(pairs.right) >= rows.row_total and rows.event_time_range()[0] >= horizon:
            return keep
        return _and_masks(keep, rows.numpy_column(TIME)[pairs.right] >= horizon)

    def _apply_residuals(
        self, pairs: list[tuple[int, PartialMatches]], tally: StepTally
    ) -> list[tuple[int, PartialMatches]]:
        """Return the candidate pairs, by block, for which all residuals of a step hold."""
        for residual, check in zip(tally.step.residuals, tally.residuals, strict=True):
            began = current_environment().read_clock()
            check.pairs_in += sum(len(matches) for _, matches in pairs)
            pairs = self._apply_residual(pairs, residual) if pairs else []
            check.pairs_out += sum(len(matches) for _, matches in pairs)
            check.seconds += current_environment().read_clock() - began
        return pairs

    def find_fulfilling_pairs(
        self, pairs: CandidatePairs, residual: ResidualPredicate, step: ProbeStep
    ) -> np.ndarray:
        """Return which pairs fulfill a residual."""
        if not len(pairs.left):
            return np.zeros(0, bool)
        visited = pairs.partial.take_positions(pairs.left)
        joined = PartialMatches({**visited.parts, pairs.stream: (pairs.rows, pairs.right)})
        pieces = self._split_for_residuals(joined, step)
        holds = (self._evaluate_residual([(0, piece)], residual) for piece, _ in pieces)
        return np.concatenate([*holds])

    def _apply_residual(
        self, candidates: list[tuple[int, PartialMatches]], residual: ResidualPredicate
    ) -> list[tuple[int, PartialMatches]]:
        holds = self._evaluate_residual(candidates, residual)
        parts = np.split(holds, np.cumsum([len(f) for _, f in candidates])[:-1])
        passing = (
            (n, f, np.flatnonzero(part)) for (n, f), part in zip(candidates, parts, strict=True)
        )
        return [(n, f.take_positions(at)) for n, f, at in passing if len(at)]

    def _evaluate_residual(
        self, candidates: list[tuple[int, PartialMatches]], residual: ResidualPredicate
    ) -> np.ndarray:
        """Return for which candidate pairs, one block after the other, a residual holds."""
        columns = {
            (s, name): _concat_arrays(
                f.parts[s][0].batch.column(name).take(pa.array(f.parts[s][1]))
                for _, f in candidates
            )
            for s, name in residual.columns
        }
        measured = [
            _concat_arrays(_compute_measure(m, f) for _, f in candidates) for m in residual.measures
        ]
        try:
            return evaluate_residual(residual, self.predicate.aliases, columns, measured)
        except EvaluationFailure as failure:
            raise self._make_failure(str(failure), residual.streams) from failure.__cause__


def _compute_measure(m: Measure, pairs: PartialMatches) -> pa.Array:
    if m.function == "set_overlap":
        return pairwise_overlap(*pairs.set_column(*m.left), *pairs.set_column(*m.right))
    if m.function == "set_inner":
        return pairwise_inner_product(
            *pairs.weighted_set_column(*m.left), *pairs.weighted_set_column(*m.right)
        )
    return pairwise_measure(
        m.function, *pairs.vector_column(*m.left), *pairs.vector_column(*m.right)
    )


def _and_masks(a: np.ndarray | None, b: np.ndarray) -> np.ndarray:
    return b if a is None else a & b


def _concat_arrays(parts: Iterable[pa.Array]) -> pa.Array | pa.ChunkedArray:
    """Return concatenated arrays: copied together if they are short, else chunked."""
    several = list(parts)
    if len(several) == 1:
        return several[0]
    chunked = pa.chunked_array(several)
    return chunked if len(chunked) >= _LONG * len(several) else pa.concat_arrays(several)


def _split_by_bytes(
    partial: PartialMatches, columns: Sequence[tuple[int, str]], little: int
) -> Iterator[tuple[PartialMatches, int]]:
    """Yield partial results in pieces, with an upper bound of their bytes.

    Only these variable-width columns count.

    Each piece has at most BYTES, unless it is a single result. Values are not read if all columns
    together have at most ``little``.
    """
    size, most, parts = len(partial), 0, partial.parts
    if columns:
        most = size * sum(rows.buffer_bytes for rows, _ in parts.values())
    if most > little:
        near = all(rows.row_total <= _NEAR * size for rows, _ in parts.values())
        longest = (parts[s][0].max_value_bytes(name) for s, name in columns)
        most = size * sum(longest) if near else BYTES + 1
    if most <= BYTES:
        yield partial, most
        return
    ends = np.cumsum(sum(parts[s][0].value_bytes(name, parts[s][1]) for s, name in columns))
    for start, stop in split_into_chunks(ends, BYTES):
        piece = partial if stop - start == size else partial.take_positions(np.arange(start, stop))
        yield piece, int(ends[stop - 1] - (ends[start - 1] if start else 0))
