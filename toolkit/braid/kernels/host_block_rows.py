"""The rows of a block on a host, and partial results that refer to them. NumPy and Arrow, no Spark.

A block is an Arrow record batch sorted in its first order. In addition to the user's columns it has
``__time`` (event time in microseconds), ``__key`` (routing key), the key columns of the predicate,
and the columns of ``block_orders``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa

from braid.core.plan import Keys
from braid.core.reserved_columns import BIRTH, ROUTING, ROW, TIME
from braid.kernels.block_orders import drop_order_columns
from braid.kernels.column_views import concat_slices, take_without_views
from braid.kernels.ordered_rows import BlockOrders
from braid.kernels.position_sort import list_positions
from braid.kernels.set_overlap import SetColumn, WeightedSetColumn, map_keys
from braid.kernels.value_sizes import (
    bytes_before,
    max_value_bytes,
    value_bytes,
    variable_width_columns,
)
from braid.kernels.vectors import VectorColumn

T = TypeVar("T")
_PLACES = "__places"
"""Cache key that is no column name."""


class BlockRows:
    """The rows of one block on a host, or of several small blocks.

    - ``batch``: the record batch.
    - ``keys``: routing keys of the host's rows; None: all rows.
    - ``sources``: by row, the index of its block; None: one block.
    - ``births``: births of the blocks, in a join that marks matched rows (see ``core.answers``).
    - ``numbers``: by row, its number in its birth; None: see ``row_numbers``.
    - ``segment``, ``first``, ``row_total``: the record batch that the rows are a slice of, the
      position of the first, and their number.
    """

    __slots__ = (
        "_batch", "_cached", "_nbytes", "_numbers", "_numpy", "_span",
        "births", "first", "keys", "row_total", "segment", "sources",
    )  # fmt: skip

    def __init__(
        self,
        batch: pa.RecordBatch,
        keys: Keys | None = None,
        sources: np.ndarray | None = None,
        births: Sequence[int] = (),
        numbers: np.ndarray | None = None,
    ) -> None:
        self.births, self._numbers = births, numbers
        self._batch: pa.RecordBatch | None = batch
        self.keys, self.sources = keys, sources
        self.segment, self.first, self.row_total = batch, 0, batch.num_rows
        self._numpy: dict[str, np.ndarray] | None = None
        self._cached: dict[Hashable, Any] | None = None
        self._span: tuple[int, int] | None = None
        self._nbytes: int | None = None

    @classmethod
    def from_segment(
        cls, segment: pa.RecordBatch, rows: tuple[int, int] | None, keys: Keys | None = None
    ) -> Self:
        """Return the block at these positions of a segment; ``rows`` None: all."""
        block = cls(segment, keys)
        if rows is not None and rows != (0, segment.num_rows):
            block.first, block.row_total, block._batch = rows[0], rows[1] - rows[0], None
        return block

    @property
    def batch(self) -> pa.RecordBatch:
        """The rows, sliced from the segment when first needed: most blocks are read together."""
        if self._batch is None:
            self._batch = self.segment.slice(self.first, self.row_total)
        return self._batch

    def set_measures(self, event_times: tuple[int, int], size_bytes: int) -> None:
        """Set what is known of all rows: the earliest and latest event time, and the bytes."""
        self._span, self._nbytes = event_times, size_bytes

    def numpy_column(self, name: str) -> np.ndarray:
        """Return a column as a NumPy array; cached."""
        return self.cached_column(
            name, lambda: self.batch.column(name).to_numpy(zero_copy_only=False)
        )

    def _cache_value(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a value that is computed once, or once by each of several threads."""
        if (cached := self._cached) is None:
            cached = self._cached = {}
        if key not in cached:
            cached[key] = make()
        value: T = cached[key]
        return value

    def vector_column(self, name: str) -> VectorColumn:
        """Return a column of vectors; cached."""
        return self._cache_value(
            (VectorColumn, name), lambda: VectorColumn.from_arrow(self.batch.column(name))
        )

    def row_positions(self) -> np.ndarray:
        """Return the positions of the host's rows.

        For all rows it is a cached array, for which a column is taken without a copy.
        """
        if (chosen := self.key_mask()) is not None:
            return np.flatnonzero(chosen)
        return self._all_positions()

    def _all_positions(self) -> np.ndarray:
        return self.cached_column(_PLACES, lambda: list_positions(self.row_total))

    def row_numbers(self) -> np.ndarray:
        """Return the number of each row of the batch in its birth: its position, unless cut."""
        if self._numbers is not None:
            return self._numbers
        return self.numpy_column(ROW) if ROW in self.batch.schema.names else self._all_positions()

    def is_all_rows(self, at: np.ndarray) -> bool:
        """Return whether the positions are those that ``row_positions`` returned for all rows."""
        return self._numpy is not None and at is self._numpy.get(_PLACES)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows of the batch; see ``value_bytes``."""
        if self._nbytes is None:
            self._nbytes = value_bytes(self.batch)
        return self._nbytes

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers that the segment refers to. The rows may use only a part of them."""
        return int(self.segment.get_total_buffer_size())

    def max_value_bytes(self, name: str) -> int:
        """Return the bytes of the longest value of a column of variable width; cached."""
        return self._cache_value(
            (max_value_bytes, name), lambda: max_value_bytes(self.batch.column(name))
        )

    def value_bytes(self, name: str, at: np.ndarray) -> np.ndarray:
        """Return the bytes of a variable-width column's values at these positions.

        Each list element adds one.
        """
        column = self.batch.column(name)
        return (bytes_before(column, at + 1) - bytes_before(column, at)).astype(np.int64)

    def row_count(self) -> int:
        """Return the number of the host's rows."""
        chosen = self.key_mask()
        return self.row_total if chosen is None else int(np.count_nonzero(chosen))

    def set_column(self, name: str) -> SetColumn:
        """Return a column of sets with its index; cached."""

        def index_sets() -> SetColumn:
            values = self.batch.column(name)
            sets = map_keys(values) if pa.types.is_map(values.type) else values
            return SetColumn.from_arrow(sets)

        return self._cache_value((SetColumn, name), index_sets)

    def weighted_set_column(self, name: str) -> WeightedSetColumn:
        """Return a column of maps from elements to weights; cached."""
        return self._cache_value(
            (WeightedSetColumn, name), lambda: WeightedSetColumn.from_arrow(self.batch.column(name))
        )

    def event_time_range(self) -> tuple[int, int]:
        """Return the earliest and latest event time of the host's rows, in microseconds; cached."""
        if self._span is None:
            times, chosen = self.numpy_column(TIME), self.key_mask()
            times = times if chosen is None else times[chosen]
            self._span = int(times.min()), int(times.max())
        return self._span

    def find_bounds(self, name: str) -> tuple[int, int]:
        """Return the least and the greatest value of an integer column, over all rows; cached."""
        values = self.numpy_column(name)
        return self._cache_value(("bounds", name), lambda: (int(values.min()), int(values.max())))

    def sorted_keys(self, name: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the values of an index key in order, and their positions (None: as stored)."""
        return self.orders.sorted_keys(name)

    @property
    def orders(self) -> BlockOrders:
        """The orders that the block stores."""
        names = self.batch.schema.names
        return self._cache_value(BlockOrders, lambda: BlockOrders(names, self.numpy_column))

    def cached_column(self, name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Return an array computed from columns; cached under a name that is no column name."""
        if (columns := self._numpy) is None:
            columns = self._numpy = {}
        if (column := columns.get(name)) is None:
            column = columns[name] = make()
        return column

    def cached_rows(self, name: Hashable, make: Callable[[], BlockRows]) -> BlockRows:
        """Return rows made of these, such as some of them in another order; cached."""
        return self._cache_value((BlockRows, name), make)

    def key_mask(self) -> np.ndarray | None:
        """Return the mask of the rows whose routing key is in range; None: all are."""
        if self.keys is None:
            return None
        key = self.numpy_column(ROUTING)
        return (key >= self.keys[0]) & (key < self.keys[1])


@dataclass
class PartialMatches:
    """Partial results: by joined stream, its rows and the position of each result in them.

    All arrays have the same length.

    - ``queries``: by result, bits of the queries that it serves; None: not computed, or not a
      shared run.
    - ``weights``: 1 / the sampling probability, in a run that sheds load; None: all are 1.
    - ``sampling_hashes``: hashes by which the results were sampled, if needed.
    - ``origins``: numbers of the arrivals that are put together in them; None: one arrival.
    """

    parts: dict[int, tuple[BlockRows, np.ndarray]]
    queries: np.ndarray | None = None
    weights: np.ndarray | None = None
    sampling_hashes: np.ndarray | None = None
    origins: np.ndarray | None = None

    def __len__(self) -> int:
        return len(next(iter(self.parts.values()))[1])

    @property
    def nbytes(self) -> int:
        """The approximate bytes to send them: the rows' share of the bytes of their blocks."""
        return sum(
            len(at) * rows.nbytes // max(1, rows.row_total) for rows, at in self.parts.values()
        )

    def column_values(self, stream: int, name: str) -> np.ndarray:
        """Return a column of one stream, one value for each partial result."""
        rows, at = self.parts[stream]
        return rows.numpy_column(name) if rows.is_all_rows(at) else rows.numpy_column(name)[at]

    def values_at(self, stream: int, name: str, chosen: np.ndarray) -> np.ndarray:
        """Return the same for the partial results at these positions."""
        rows, at = self.parts[stream]
        return rows.numpy_column(name)[_compose_positions(rows, at, chosen)]

    def vector_column(self, stream: int, name: str) -> tuple[VectorColumn, np.ndarray]:
        """Return a column of vectors and, by result, the position in it."""
        rows, at = self.parts[stream]
        return rows.vector_column(name), at

    def set_column(self, stream: int, name: str) -> tuple[SetColumn, np.ndarray]:
        """Return a column of sets and, by result, the position in it."""
        rows, at = self.parts[stream]
        return rows.set_column(name), at

    def weighted_set_column(self, stream: int, name: str) -> tuple[WeightedSetColumn, np.ndarray]:
        """Return a column of weighted sets and, by result, the position in it."""
        rows, at = self.parts[stream]
        return rows.weighted_set_column(name), at

    @staticmethod
    def concat_all(several: Sequence[PartialMatches]) -> PartialMatches:
        """Concatenate partial results.

        Rows of one block are shared; rows of several blocks are copied.
        """
        if len(several) == 1:
            return several[0]
        parts = {s: _concat_parts([p.parts[s] for p in several]) for s in several[0].parts}
        numbers = [p.origins for p in several if p.origins is not None]
        origins = np.concatenate(numbers) if numbers else None
        if all(p.weights is None for p in several):
            return PartialMatches(parts, origins=origins)
        weights = [np.ones(len(p)) if p.weights is None else p.weights for p in several]
        coins = [
            np.zeros(len(p), np.uint64) if p.sampling_hashes is None else p.sampling_hashes
            for p in several
        ]
        return PartialMatches(
            parts, weights=np.concatenate(weights), sampling_hashes=np.concatenate(coins)
        )

    @staticmethod
    def concat_bounded(several: Sequence[PartialMatches], most: int) -> Iterator[PartialMatches]:
        """Concatenate partial results into as few as possible; see ``split_by_bytes``."""
        for start, stop in PartialMatches.split_by_bytes(several, most):
            yield PartialMatches.concat_all(several[start:stop])

    @staticmethod
    def split_by_bytes(several: Sequence[PartialMatches], most: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of partial results to concatenate, as few as possible.

        Each copies at most ``most`` bytes of variable-width columns, unless a single input has
        more.
        """
        parts = several[0].parts.items()
        columns = [
            (s, name)
            for s, (rows, _) in parts
            for name in variable_width_columns(rows.batch.schema)
        ]
        start = size = 0
        for n, p in enumerate(several) if columns and len(several) > 1 else ():
            lengths = (p.parts[s][0].value_bytes(name, p.parts[s][1]) for s, name in columns)
            more = sum(int(each.sum()) for each in lengths)
            if n > start and size + more > most:
                yield start, n
                start, size = n, 0
            size += more
        yield start, len(several)

    def take_positions(self, chosen: np.ndarray) -> PartialMatches:
        """Return the partial results at these positions."""
        by_result = (self.queries, self.weights, self.sampling_hashes, self.origins)
        taken = (None if values is None else values[chosen] for values in by_result)
        parts = {
            s: (rows, _compose_positions(rows, at, chosen)) for s, (rows, at) in self.parts.items()
        }
        return PartialMatches(parts, *taken)


def _compose_positions(rows: BlockRows, at: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    return chosen if rows.is_all_rows(at) else at[chosen]


def take_known_rows(rows: BlockRows, at: np.ndarray) -> pa.RecordBatch:
    """Return the rows at these positions without orders; they stay known by birth and number."""
    taken = drop_order_columns(rows.batch)
    if not rows.is_all_rows(at):
        taken = take_block_rows(taken, at)
    if not rows.births:
        return taken
    births = np.array(rows.births, np.int64)[0 if rows.sources is None else rows.sources[at]]
    columns = {BIRTH: np.broadcast_to(births, len(at)), ROW: rows.row_numbers()[at]}
    names = [name for name in taken.schema.names if name not in columns]
    arrays = [pa.array(values.astype(np.int64)) for values in columns.values()]
    return pa.record_batch([*taken.select(names).columns, *arrays], names=[*names, *columns])


def take_block_rows(batch: pa.RecordBatch, at: np.ndarray) -> pa.RecordBatch:
    """Return the rows at these positions, without a bounds check. Views of columns stay views."""
    return take_without_views(batch, at)


def order_by_segment(several: Sequence[BlockRows]) -> list[int]:
    """Return the numbers of blocks such that those of a segment follow one another."""
    numbers: dict[int, int] = {}
    places = [(numbers.setdefault(id(rows.segment), len(numbers)), rows.first) for rows in several]
    return sorted(range(len(several)), key=places.__getitem__)


def concat_rows(several: Sequence[BlockRows]) -> pa.RecordBatch:
    """Return all rows of several blocks without orders. Neighbors in a segment are not copied."""
    runs: list[tuple[pa.RecordBatch, int, int]] = []
    for rows in several:
        first, end = rows.first, rows.first + rows.row_total
        if runs and runs[-1][0] is rows.segment and runs[-1][2] == first:
            runs[-1] = rows.segment, runs[-1][1], end
        else:
            runs.append((rows.segment, first, end))
    segments = {id(segment): segment for segment, _, _ in runs}
    stored = {at: drop_order_columns(segment) for at, segment in segments.items()}
    return concat_slices([(stored[id(segment)], first, end) for segment, first, end in runs])


def _concat_parts(parts: list[tuple[BlockRows, np.ndarray]]) -> tuple[BlockRows, np.ndarray]:
    if all(rows is parts[0][0] for rows, _ in parts):
        return parts[0][0], np.concatenate([at for _, at in parts])
    if all(rows.is_all_rows(at) and not rows.births for rows, at in parts):
        rows = BlockRows(concat_rows([rows for rows, _ in parts]))
    else:
        rows = BlockRows(pa.concat_batches([take_known_rows(rows, at) for rows, at in parts]))
    return rows, rows.row_positions()
