"""Partial results meet the rows of a block: two binary searches, the rest on candidate pairs
only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from braid.condition.failing import OverflowFailure
from braid.condition.predicate import Danger, Measure, Predicate, Residual, Step
from braid.condition.residual import residual_mask
from braid.core.columns import ROUTING, TIME
from braid.local.bitmaps import QueryBitmaps
from braid.local.candidates import candidates, cuts, pairs_at_risk
from braid.local.intervals import holds
from braid.local.overflow import leaves, may_leave
from braid.local.rows import Partial, Rows, unfixed
from braid.local.sets import overlap
from braid.local.vectors import measure
from braid.local.weighted import inner

CHUNK = 1 << 20
"""Candidate pairs that are held in memory at once."""
BYTES = 1 << 29
"""Bytes that are taken at once of columns of no fixed width, such as text: a column that is taken
cannot have 2^31, and of lists that have more elements Arrow makes wrong ones without a word.
"""
_LITTLE = BYTES >> 6
"""Bytes of candidates that need not be known better, although others are added to them."""
_NEAR = 16
"""So many values that lie in order are looked at as fast as one that lies anywhere."""
_LONG = 1 << 13
"""Candidate pairs of a block whose columns are not copied to those of other blocks."""


class Comparisons(Protocol):
    """Counts candidate pairs; of gathered blocks (see build.gather) those of each."""

    compared: Any


class Meet(NamedTuple):
    """Partial results meet the rows of a block, or of gathered ones. ``stored`` says that it was
    there before this batch, so that expired rows of it no longer count; the candidate pairs are
    added to ``counts.compared``.
    """

    partial: Partial
    rows: Rows
    stored: bool
    counts: Comparisons


@dataclass
class Joiner:
    """Meets partial results with blocks under one predicate.

    ``windows`` gives W_i by stream in microseconds, None for full history. ``watermarks`` gives, by
    stream, the earliest event time still expected of the other streams: a stored tuple has expired
    when its time plus its window is not after it. With ``bitmaps``, only what serves some query
    is found, and each result carries the queries that it serves. ``batch`` is the number of the
    micro-batch, for the sentence of a run that fails.
    """

    predicate: Predicate
    windows: Sequence[int | None]
    watermarks: Sequence[int | None]
    bitmaps: QueryBitmaps | None = None
    batch: int = 0
    steps: dict[tuple[frozenset[int], int], Step] = field(default_factory=dict)
    unfixed: dict[int, list[str]] = field(default_factory=dict)
    indexes: dict[int, Sequence[str]] = field(default_factory=dict)

    def probe(
        self, partial: Partial, rows: Rows, stream: int, stored: bool, count: Comparisons
    ) -> Iterator[Partial]:
        """The partial results extended by matching rows of a block of ``stream``, in chunks of
        bounded size; see Meet.
        """
        meet = Meet(partial, rows, stored, count)
        return (found for _, found in self.probe_all([meet], stream))

    def probe_all(self, several: Iterable[Meet], stream: int) -> Iterator[tuple[int, Partial]]:
        """The same of several blocks, in their order, each chunk with the number of its block. All
        partial results are of the same streams. Residuals are evaluated on the candidates of many
        blocks at once: for few they take as long as for ten thousand.
        """
        waiting: list[tuple[int, Partial]] = []
        pairs = size = 0
        for n, meet in enumerate(several):
            step = self._step(frozenset(meet.partial.parts), stream)
            for admitted in self._admitted(meet, step):
                if not step.residuals:
                    yield from self._whole(n, admitted)
                    continue
                for found, more in self._asked(admitted, step):
                    if waiting and (pairs + len(found) > CHUNK or size + more > BYTES):
                        yield from self._fulfilled(waiting, stream)
                        waiting, pairs, size = [], 0, 0
                    waiting.append((n, found))
                    pairs, size = pairs + len(found), size + more
        yield from self._fulfilled(waiting, stream)

    def _admitted(self, meet: Meet, step: Step) -> Iterator[Partial]:
        """What index, links and windows admit, in chunks."""
        partial, rows, stored, count = meet
        if self.bitmaps is not None and rows.batch.num_rows:
            partial = self.bitmaps.wanted(partial, rows, step.stream)
        if not len(partial):
            return
        if rows.batch.num_rows:
            for danger in step.dangers:
                self._check_danger(partial, rows, stored, step, danger)
        for left, right in candidates(partial, rows, step.stream, step.index, CHUNK):
            left, right = _in_range(rows, left, right)
            if not len(left):
                continue
            count.compared += rows.tally(right)
            found = self._holding(partial, left, rows, right, step, stored)
            if found is not None:
                yield found

    def _holding(
        self,
        partial: Partial,
        left: np.ndarray,
        rows: Rows,
        right: np.ndarray,
        step: Step,
        stored: bool,
    ) -> Partial | None:
        """Return the candidates that links, windows and queries admit; None if there is none."""
        holding = self._check(partial, left, rows, right, step, stored)
        if holding is not None:
            keep = np.flatnonzero(holding)
            left, right = left[keep], right[keep]
        if not len(left):
            return None
        visited = partial.take(left)
        parts = {**visited.parts, step.stream: (rows, right)}
        admitted = Partial(parts, weights=visited.weights, coins=visited.coins)
        if self.bitmaps is not None:
            admitted.queries = self.bitmaps.of_results(admitted)
            admitted = admitted.take(np.flatnonzero(admitted.queries))
        return admitted if len(admitted) else None

    def _check_danger(
        self, partial: Partial, rows: Rows, stored: bool, step: Step, danger: Danger
    ) -> None:
        """Raise OverflowFailure if Spark computes the guarded sum of a pair that leaves its type.
        Nearly always the bounds of the columns show that none can.
        """
        ends = danger.guard.ends
        bounds = [(rows if s == step.stream else partial.parts[s][0]).bounds(n) for s, n, _ in ends]
        if not may_leave(danger.guard, bounds):
            return
        for left, right in pairs_at_risk(partial, rows, danger, bounds, step.stream, CHUNK):
            left, right = _in_range(rows, left, right)
            columns = [_end(partial, left, rows, right, step.stream, (s, n)) for s, n, _ in ends]
            keep = np.flatnonzero(leaves(danger.guard, columns))
            pairs = partial, left[keep], rows, right[keep]
            if len(keep) and self._is_computed(*pairs, replace(step, links=danger.links), stored):
                raise self._failure(danger.guard.text, (s for s, _, _ in ends))

    def _indexes(self, stream: int) -> Sequence[str]:
        if stream not in self.indexes:
            self.indexes[stream] = self.predicate.indexes(stream)
        return self.indexes[stream]

    def _is_computed(
        self,
        partial: Partial,
        left: np.ndarray,
        rows: Rows,
        right: np.ndarray,
        step: Step,
        stored: bool,
    ) -> bool:
        """Whether the step's links and residuals admit one of these pairs."""
        admitted = self._holding(partial, left, rows, right, step, stored)
        pieces = () if admitted is None else self._asked(admitted, step)
        return any(self._apply_residuals([(0, piece)], step) for piece, _ in pieces)

    def _failure(self, text: str, streams: Iterable[int]) -> OverflowFailure:
        names = [self.predicate.aliases[s] for s in sorted(set(streams))]
        where = f"stream {names[0]}" if len(names) == 1 else f"streams {' and '.join(names)}"
        return OverflowFailure(f"{text}, batch {self.batch}, {where}")

    def _fulfilled(
        self, found: list[tuple[int, Partial]], stream: int
    ) -> Iterator[tuple[int, Partial]]:
        """Those that the residuals hold for."""
        if not found:
            return
        step = self._step(frozenset(found[0][1].parts) - {stream}, stream)
        for n, fulfilled in self._apply_residuals(found, step):
            yield from self._whole(n, fulfilled)

    def _whole(self, n: int, found: Partial) -> Iterator[tuple[int, Partial]]:
        """Partial results in pieces of which all columns can be taken."""
        columns = [(s, name) for s in found.parts for name in self._unfixed(s, found)]
        return ((n, piece) for piece, _ in _pieces(found, columns, BYTES))

    def _asked(self, found: Partial, step: Step) -> Iterator[tuple[Partial, int]]:
        """Candidates in pieces of which the columns can be taken that residuals read."""
        columns = {
            c for r in step.residuals for c in r.columns if c[1] in self._unfixed(c[0], found)
        }
        return _pieces(found, [*columns], _LITTLE)

    def _unfixed(self, stream: int, found: Partial) -> list[str]:
        if stream not in self.unfixed:
            self.unfixed[stream] = unfixed(found.parts[stream][0].batch.schema)
        return self.unfixed[stream]

    def _step(self, visited: frozenset[int], stream: int) -> Step:
        if (visited, stream) not in self.steps:
            self.steps[visited, stream] = self.predicate.step(visited, stream)
        return self.steps[visited, stream]

    def _check(
        self,
        partial: Partial,
        left: np.ndarray,
        rows: Rows,
        right: np.ndarray,
        step: Step,
        stored: bool,
    ) -> np.ndarray | None:
        """Where the links hold and the stored row counts; None: everywhere."""
        keep: np.ndarray | None = None
        for link in step.links:
            a, b = (
                _end(partial, left, rows, right, step.stream, end)
                for end in (link.left, link.right)
            )
            keep = _both(keep, holds(a, b, link))
        window, watermark = self.windows[step.stream], self.watermarks[step.stream]
        if not stored or window is None or watermark is None:
            return keep
        limit = watermark - window
        # To look at all rows once takes less than to look at more candidates.
        if len(right) >= rows.batch.num_rows and rows.span()[0] > limit:
            return keep
        return _both(keep, rows.numpy(TIME)[right] > limit)

    def _apply_residuals(
        self, pairs: list[tuple[int, Partial]], step: Step
    ) -> list[tuple[int, Partial]]:
        """Return the candidate pairs, by block, that all residuals of a step hold for."""
        for residual in step.residuals:
            pairs = self._apply_residual(pairs, residual) if pairs else []
        return pairs

    def _apply_residual(
        self, found: list[tuple[int, Partial]], residual: Residual
    ) -> list[tuple[int, Partial]]:
        columns = {
            (s, name): _concat(
                f.parts[s][0].batch.column(name).take(pa.array(f.parts[s][1])) for _, f in found
            )
            for s, name in residual.columns
        }
        measured = [_concat(_measured(m, f) for _, f in found) for m in residual.measures]
        try:
            holds = residual_mask(residual, self.predicate.aliases, columns, measured)
        except OverflowFailure as failure:
            raise self._failure(str(failure), residual.streams) from failure.__cause__
        parts = np.split(holds, np.cumsum([len(f) for _, f in found])[:-1])
        kept = ((n, f, np.flatnonzero(part)) for (n, f), part in zip(found, parts, strict=True))
        return [(n, f.take(at)) for n, f, at in kept if len(at)]


def _measured(m: Measure, found: Partial) -> pa.Array:
    if m.function == "set_overlap":
        return overlap(*found.sets(*m.left), *found.sets(*m.right))
    if m.function == "set_inner":
        return inner(*found.weighted(*m.left), *found.weighted(*m.right))
    return measure(m.function, *found.vectors(*m.left), *found.vectors(*m.right))


def _both(a: np.ndarray | None, b: np.ndarray) -> np.ndarray:
    return b if a is None else a & b


def _concat(parts: Iterable[pa.Array]) -> pa.Array | pa.ChunkedArray:
    """Arrays one after the other, copied together where they are short."""
    several = list(parts)
    if len(several) == 1:
        return several[0]
    whole = pa.chunked_array(several)
    return whole if len(whole) >= _LONG * len(several) else pa.concat_arrays(several)


def _in_range(rows: Rows, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs whose stored row counts on this host."""
    if rows.keys is None:
        return left, right
    key = rows.numpy(ROUTING)[right]
    chosen = np.flatnonzero((key >= rows.keys[0]) & (key < rows.keys[1]))
    return left[chosen], right[chosen]


def _end(
    partial: Partial,
    left: np.ndarray,
    rows: Rows,
    right: np.ndarray,
    stream: int,
    end: tuple[int, str],
) -> np.ndarray:
    return rows.numpy(end[1])[right] if end[0] == stream else partial.values_of(*end, left)


def _pieces(
    found: Partial, columns: Sequence[tuple[int, str]], little: int
) -> Iterator[tuple[Partial, int]]:
    """Partial results in pieces, for each of which these columns, of no fixed width, have BYTES at
    most, unless it is one result; and how many these are, or more. Nobody looks at the values where
    all columns have so ``little`` at most.
    """
    size, most, parts = len(found), 0, found.parts
    if columns:
        most = size * sum(rows.held for rows, _ in parts.values())
    if most > little:
        near = all(rows.batch.num_rows <= _NEAR * size for rows, _ in parts.values())
        longest = (parts[s][0].longest(name) for s, name in columns)
        most = size * sum(longest) if near else BYTES + 1
    if most <= BYTES:
        yield found, most
        return
    ends = np.cumsum(sum(parts[s][0].lengths(name, parts[s][1]) for s, name in columns))
    for start, stop in cuts(ends, BYTES):
        piece = found if stop - start == size else found.take(np.arange(start, stop))
        yield piece, int(ends[stop - 1] - (ends[start - 1] if start else 0))
