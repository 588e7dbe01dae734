"""Local joins: sorted blocks, two binary searches, the rest on candidate pairs only. NumPy and
Arrow, no Spark.

A block is an Arrow record batch sorted by its first index key. Beside the user's columns it has
``__time`` (event time in microseconds), ``__key`` (routing key), the key columns of the predicate,
and for every further index a permutation ``__p:key``.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from braid.condition.predicate import Link, Predicate, Residual, Step
from braid.core.columns import ROUTING, TIME
from braid.core.plan import Keys
from braid.local.bitmaps import QueryBitmaps
from braid.local.vectors import Vectors, measure

CHUNK = 1 << 20
"""Candidate pairs that are held in memory at once."""


class Comparisons(Protocol):
    compared: int


class Rows:
    """The rows of one block as a host sees it: a record batch, and the range of routing keys that
    counts (None: all).
    """

    def __init__(self, batch: pa.RecordBatch, keys: Keys | None = None) -> None:
        self.batch, self.keys = batch, keys
        self._numpy: dict[str, np.ndarray] = {}
        self._vectors: dict[str, Vectors] = {}
        self._span: tuple[int, int] | None = None

    def numpy(self, name: str) -> np.ndarray:
        found = self._numpy.get(name)
        if found is None:
            found = self._numpy[name] = self.batch.column(name).to_numpy(zero_copy_only=False)
        return found

    def vectors(self, name: str) -> Vectors:
        found = self._vectors.get(name)
        if found is None:
            found = self._vectors[name] = Vectors.of(self.batch.column(name))
        return found

    def span(self) -> tuple[int, int]:
        """The earliest and latest event time, in microseconds."""
        if self._span is None:
            times = self.numpy(TIME)
            self._span = int(times.min()), int(times.max())
        return self._span

    def ordered(self, name: str) -> tuple[np.ndarray, np.ndarray | None]:
        """The values of an index key in order, and the positions that this order takes them from
        (None: as stored).
        """
        permutation = f"__p:{name}"
        if permutation not in self.batch.schema.names:
            return self.numpy(name), None
        order = self.numpy(permutation)
        if (cached := self._numpy.get(f"ordered {name}")) is None:
            cached = self._numpy[f"ordered {name}"] = self.numpy(name)[order]
        return cached, order

    def chosen(self) -> np.ndarray | None:
        """Mask of the rows whose routing key is in range; None when all are."""
        if self.keys is None:
            return None
        key = self.numpy(ROUTING)
        return (key >= self.keys[0]) & (key < self.keys[1])


@dataclass
class Partial:
    """Partial results: for each visited stream its rows and, by result, the position in them. All
    arrays share one length.

    ``queries`` are the queries that each serves, as bits, in a run that serves many; what has not
    been asked yet is None.
    """

    parts: dict[int, tuple[Rows, np.ndarray]]
    queries: np.ndarray | None = None

    def __len__(self) -> int:
        return len(next(iter(self.parts.values()))[1])

    @property
    def nbytes(self) -> int:
        """About how much it takes to send: the rows' share of the bytes of their blocks."""
        return sum(
            len(at) * rows.batch.nbytes // max(1, rows.batch.num_rows)
            for rows, at in self.parts.values()
        )

    def values(self, stream: int, name: str) -> np.ndarray:
        rows, at = self.parts[stream]
        return rows.numpy(name)[at]

    def vectors(self, stream: int, name: str) -> tuple[Vectors, np.ndarray]:
        """A column of vectors and, by result, the position in it."""
        rows, at = self.parts[stream]
        return rows.vectors(name), at

    @staticmethod
    def concat(several: list[Partial]) -> Partial:
        """All of them as one. Rows of one block stay where they are; those of several are copied
        together.
        """
        if len(several) == 1:
            return several[0]
        return Partial({s: _together([p.parts[s] for p in several]) for s in several[0].parts})

    def take(self, chosen: np.ndarray) -> Partial:
        queries = None if self.queries is None else self.queries[chosen]
        return Partial({s: (rows, at[chosen]) for s, (rows, at) in self.parts.items()}, queries)


def _together(parts: list[tuple[Rows, np.ndarray]]) -> tuple[Rows, np.ndarray]:
    if all(rows is parts[0][0] for rows, _ in parts):
        return parts[0][0], np.concatenate([at for _, at in parts])
    rows = Rows(pa.concat_batches([rows.batch.take(pa.array(at)) for rows, at in parts]))
    return rows, np.arange(rows.batch.num_rows)


@dataclass
class Joiner:
    """Meets partial results with blocks under one predicate.

    ``windows`` gives W_i by stream in microseconds, None for full history. ``watermarks`` gives, by
    stream, the earliest event time still expected of the other streams: a stored tuple has expired
    when its time plus its window is not after it. With ``bitmaps``, only what serves some query
    is found, and each result carries the queries that it serves.
    """

    predicate: Predicate
    windows: Sequence[int | None]
    watermarks: Sequence[int | None]
    bitmaps: QueryBitmaps | None = None
    steps: dict[tuple[frozenset[int], int], Step] = field(default_factory=dict)

    def probe(
        self, partial: Partial, rows: Rows, stream: int, stored: bool, count: Comparisons
    ) -> Iterator[Partial]:
        """The partial results extended by matching rows of a block of ``stream``, in chunks of
        bounded size.

        ``stored`` says that the block was there before this batch, so that expired rows of it no
        longer count. The candidate pairs are added to ``count.compared``.
        """
        step = self._step(frozenset(partial.parts), stream)
        if self.bitmaps is not None and rows.batch.num_rows:
            partial = self.bitmaps.wanted(partial, rows, stream)
        for left, right in _candidates(partial, rows, stream, step.index):
            left, right = _in_range(rows, left, right)
            count.compared += len(left)
            keep = self._check(partial, left, rows, right, step, stored)
            if len(keep := np.flatnonzero(keep)):
                left, right = left[keep], right[keep]
                found = Partial({**partial.take(left).parts, stream: (rows, right)})
                if self.bitmaps is not None:
                    found.queries = self.bitmaps.of_results(found)
                    found = found.take(np.flatnonzero(found.queries))
                for residual in step.residuals:
                    found = self._residual(found, residual)
                if len(found):
                    yield found

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
    ) -> np.ndarray:
        keep = np.ones(len(left), bool)
        for link in step.links:
            a, b = (
                _end(partial, left, rows, right, step.stream, end)
                for end in (link.left, link.right)
            )
            keep &= _holds(a, b, link)
        window, watermark = self.windows[step.stream], self.watermarks[step.stream]
        if stored and window is not None and watermark is not None:
            keep &= rows.numpy(TIME)[right] > watermark - window
        return keep

    def _residual(self, found: Partial, residual: Residual) -> Partial:
        columns = {
            (s, name): found.parts[s][0].batch.column(name).take(pa.array(found.parts[s][1]))
            for s, name in residual.columns
        }
        measured = [
            measure(m.function, *found.vectors(*m.left), *found.vectors(*m.right))
            for m in residual.measures
        ]
        return found.take(
            np.flatnonzero(residual_mask(residual, self.predicate.aliases, columns, measured))
        )


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
    return rows.numpy(end[1])[right] if end[0] == stream else partial.values(*end)[left]


def _holds(a: np.ndarray, b: np.ndarray, link: Link) -> np.ndarray:
    """An exact link on aligned keys. Order is compared directly where there is no offset; NaN
    equals NaN and is the largest.
    """
    keep = np.ones(len(a), bool)
    if link.lo == link.hi == 0 and not any(link.strict):
        return (a == b) | ((a != a) & (b != b))
    if link.lo > -np.inf:
        keep &= _at_least(a, _shift(b, link.lo), link.strict[0]) & ~_beyond(b, max(link.lo, 0))
    if link.hi < np.inf:
        keep &= _at_least(_shift(b, link.hi), a, link.strict[1]) & ~_beyond(b, min(link.hi, 0))
    return keep


def _at_least(a: np.ndarray, b: np.ndarray, strict: bool) -> np.ndarray:
    a_nan, b_nan = a != a, b != b
    return (a > b) | (a_nan & ~b_nan) if strict else (a >= b) | a_nan


def _shift(values: np.ndarray, by: float) -> np.ndarray:
    """values + by, clipped at the ends of the integer range."""
    if by == 0 or values.dtype.kind == "f":
        return values + by
    limits = np.iinfo(values.dtype)
    by = int(max(min(by, 1 << 64), -1 << 64))
    if abs(by) > limits.max:
        return _shift(_shift(values, by // 2), by - by // 2)
    clipped = np.minimum(values, limits.max - by) if by > 0 else np.maximum(values, limits.min - by)
    return clipped + by


def _beyond(values: np.ndarray, by: float) -> Any:
    """Where values + by is past the end of the integer range, so that no integer is as far out."""
    if by == 0 or values.dtype.kind == "f":
        return np.False_
    limits = np.iinfo(values.dtype)
    return values > limits.max - by if by > 0 else values < limits.min - by


def _candidates(
    partial: Partial, rows: Rows, stream: int, index: Link | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs (position in the partial results, position in the block) that the index admits, in
    chunks.
    """
    size = rows.batch.num_rows
    if not size or not len(partial):
        return
    if index is None:
        first = np.zeros(len(partial), np.int64)
        last = np.full(len(partial), size)
        order = None
    else:
        first, last, order = _ranges(partial, rows, stream, index)
    counts = np.maximum(last - first, 0)
    hits = np.flatnonzero(counts)
    ends = np.cumsum(counts[hits])
    start = 0
    while start < len(hits):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + CHUNK, "right")))
        yield from _expand(
            hits[start:stop], first[hits[start:stop]], counts[hits[start:stop]], order
        )
        start = stop


def _expand(
    hits: np.ndarray, first: np.ndarray, counts: np.ndarray, order: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    total = int(counts.sum())
    starts = np.cumsum(counts) - counts
    left = np.repeat(hits, counts)
    right = np.arange(total) + np.repeat(first - starts, counts)
    if order is not None:
        right = order[right]
    for at in range(0, total, CHUNK):  # one probe alone may exceed a chunk
        yield left[at : at + CHUNK], right[at : at + CHUNK]


def _ranges(
    partial: Partial, rows: Rows, stream: int, link: Link
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """By binary search, for each partial result, the range of positions in key order that satisfies
    the link.
    """
    mine, theirs = (link.left, link.right) if link.left[0] == stream else (link.right, link.left)
    probe = partial.values(*theirs)
    stored, order = rows.ordered(mine[1])
    if mine == link.left:
        low, high, strict = link.lo, link.hi, link.strict
    else:
        low, high, strict = -link.hi, -link.lo, link.strict[::-1]
    first = np.zeros(len(probe), np.int64)
    last = np.full(len(probe), len(stored), np.int64)
    if low > -np.inf:
        first = np.searchsorted(
            stored, _widen(probe, low, link, -1), "right" if strict[0] and link.exact else "left"
        )
        first = np.where(_beyond(probe, max(low, 0)), len(stored), first)
    if high < np.inf:
        last = np.searchsorted(
            stored, _widen(probe, high, link, 1), "left" if strict[1] and link.exact else "right"
        )
        last = np.where(_beyond(probe, min(high, 0)), 0, last)
    return first, last, order


def _widen(probe: np.ndarray, by: float, link: Link, direction: int) -> np.ndarray:
    """probe + by; where rounding could hide a match, a little further out (the residual
    decides).
    """
    shifted = _shift(probe, by)
    if link.exact or probe.dtype.kind != "f":
        return shifted
    slack = 1e-6 * (np.abs(probe) + abs(by))
    return shifted + direction * np.where(np.isfinite(slack), slack, 0)


_OWN = threading.local()
"""By thread, its cursor of the process's DuckDB."""


@cache
def _duckdb() -> Any:
    import duckdb

    atexit.register(_duckdb.cache_clear)  # else it is told as leaked
    return duckdb.connect(config={"threads": 1})


def _cursor() -> Any:
    if not hasattr(_OWN, "cursor"):
        _OWN.cursor = _duckdb().cursor()
        _OWN.cursor.execute("SET TimeZone = 'UTC'")
    return _OWN.cursor


def residual_mask(
    residual: Residual,
    aliases: Sequence[str],
    columns: Mapping[tuple[int, str], pa.Array | pa.ChunkedArray],
    measured: Sequence[pa.Array] = (),
) -> np.ndarray:
    """Where the residual is true, for aligned columns by (stream, name) and what was ``measured``.

    Raises duckdb.Error where it cannot be evaluated.
    """
    names = [*(f"{aliases[s]}.{name}" for s, name in columns), *map(str, range(len(measured)))]
    candidates = pa.table([*columns.values(), *measured], names=names)
    connection = _cursor()
    connection.register("candidates", candidates)
    try:
        answer = connection.sql(
            f"SELECT coalesce({residual.sql}, false) AS holds FROM candidates"
        ).to_arrow_table()
    finally:
        connection.unregister("candidates")
    return np.asarray(answer.column("holds").to_numpy())


def build(
    columns: pa.RecordBatch, indexes: Sequence[str], ordered: bool = False, runs: bool = False
) -> pa.RecordBatch:
    """A block: the rows sorted by the first index, with a permutation for each further one.

    ``ordered`` says that they are sorted already, ``runs`` that they are a few sorted runs, which a
    stable sort merges.
    """
    if not ordered:
        key = columns.column(indexes[0]).to_numpy(zero_copy_only=False)
        columns = columns.take(pa.array(np.argsort(key, kind="stable" if runs else None)))
    for name in indexes[1:]:
        order = np.argsort(columns.column(name).to_numpy(zero_copy_only=False), kind="stable")
        columns = replaced(columns, f"__p:{name}", pa.array(order.astype(np.int32)))
    return columns


def replaced(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """The batch with a column put in place of one of that name, or after the others."""
    at = batch.schema.get_field_index(name)
    return batch.append_column(name, values) if at < 0 else batch.set_column(at, name, values)


def merge(sources: Sequence[Rows], indexes: Sequence[str]) -> pa.RecordBatch:
    """One block from the chosen rows of several."""
    batches = []
    for rows in sources:
        chosen = rows.chosen()
        batches.append(
            rows.batch if chosen is None else rows.batch.take(pa.array(np.flatnonzero(chosen)))
        )
    whole = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    return build(whole, indexes, ordered=len(batches) == 1, runs=True)
