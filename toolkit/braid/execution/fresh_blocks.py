"""Build the fresh blocks of a batch from arrived tuples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from braid.core.asof_releases import LEFT
from braid.core.batch_report import BlockSize, KeyCount
from braid.core.frequent_values import select_frequent_values
from braid.core.horizon import find_late_limit
from braid.core.irregular_rows import LATE
from braid.core.plan import Block, Keys, Route
from braid.core.query_waiting import add_waiting_counts
from braid.core.reserved_columns import MARK, ROUTING, TIME
from braid.core.run_state import ReplicaAddress
from braid.core.stream_clocks import needs_spread
from braid.execution.early_rows import encode_latest_rows
from braid.kernels.block_builder import (
    build_block,
    describe_times,
)
from braid.kernels.column_views import concat_without_views
from braid.kernels.host_block_rows import BlockRows, take_block_rows
from braid.kernels.join_spec import BatchSpec
from braid.kernels.position_sort import sort_positions
from braid.kernels.segment_rows import Segment
from braid.kernels.shedding_sampler import utility_types
from braid.kernels.tuple_order import checksum_order, sort_by_contents
from braid.storage.block_files import BlockFileWriter
from braid.storage.irregular_files import IrregularRowWriter
from braid.util.clock_and_threads import current_environment

Counts = dict[int, dict[int, int]]
"""Number of occurrences of each value, by stream."""


class FreshBlock(msgspec.Struct, gc=False):
    """A fresh block.

    - ``hosts``: hosts that store it or probe with it.
    - ``size_bytes``: bytes of its tuples.
    - ``address``: where it is stored; None: it is not.
    - ``size``: its size as it is stored; None: it is not.
    - ``seconds``: seconds that each host worked on it.
    """

    block: Block
    hosts: Collection[int]
    rows: BlockRows
    size_bytes: int
    address: ReplicaAddress | None = None
    size: BlockSize | None = None
    seconds: float = 0.0


_Built = Sequence[tuple[Segment, npt.NDArray[np.intp]]]
"""Segments of blocks, and the numbers of the blocks in each."""


class _Part(NamedTuple):
    """The rows of a fresh block, with the bytes of its tuples.

    ``order_checksum``: see ``BlockSize``.
    """

    route: Route
    rows: BlockRows
    size_bytes: int
    order_checksum: int = 0


class _TimeLimits(NamedTuple):
    """Limits of event times, in microseconds.

    - ``late``: a row before it is late; None: none is.
    - ``clock``: the clock of the stream; None: it has none yet.
    - ``ahead``: how far a single row may advance it; None: any distance, or no row is that far.
    """

    late: int | None
    clock: int | None
    ahead: int | None


def serves_all_hosts(host: int) -> bool:
    """Return True. Stands for all hosts in ``build_blocks``, which then gets all rows."""
    return True


class FreshBlockBuilder:
    """Builder of fresh blocks, which it cuts from arrived tuples and writes.

    - ``key_counts``: tuples by routing key, in a run that serves many queries. The key tells how
      long a tuple is useful.
    - ``value_counts``: by stream, tuples by join value, if values have several routing keys.
    - ``waiting``: tuples that wait for an answer, as ``core.query_waiting`` counts them.
    - ``kinds``: tuples by utility type, if ``typed``, which a run that sheds load by utility needs.
    """

    def __init__(
        self, batch: BatchSpec, files: BlockFileWriter, typed: bool, irregular: IrregularRowWriter
    ) -> None:
        self.batch, self.files, self.typed = batch, files, typed
        self.irregular = irregular
        self.key_counts: Counts = {}
        self.waiting: dict[int, int] = {}
        self.value_counts: dict[int, np.ndarray] = {}
        self.kinds: Counts = {}

    def build_blocks(
        self,
        arrived: dict[int, list[pa.RecordBatch]],
        routes: Sequence[Route],
        serves: Callable[[int], bool],
    ) -> list[FreshBlock]:
        """Return the fresh blocks of these routes for the hosts that ``serves`` accepts.

        Each block is sorted once and written once, even if hosts of other tasks use it.
        """
        blocks: list[FreshBlock] = []
        for s, batches in arrived.items():
            began = current_environment().read_clock()
            rows = concat_without_views(batches)
            stream_blocks = self._build_stream_blocks(rows, s, routes, serves)
            seconds = current_environment().read_clock() - began
            served_rows = sum(f.rows.row_total * sum(map(serves, f.hosts)) for f in stream_blocks)
            for f in stream_blocks:
                f.seconds = seconds / served_rows * f.rows.row_total
            blocks += stream_blocks
        return blocks

    def _build_stream_blocks(
        self,
        arrivals: pa.RecordBatch,
        stream: int,
        routes: Sequence[Route],
        serves: Callable[[int], bool],
    ) -> list[FreshBlock]:
        """Return the fresh blocks of one stream.

        Those of a segment are written together, unless some are not stored here.
        """
        routes = sorted(
            (r for r in routes if r.block.stream == stream), key=lambda r: r.block.key_range
        )
        if not routes or not arrivals.num_rows:
            return []
        segment, routes = self._sort_by_route(arrivals, stream, routes)
        if not routes:
            return []
        stored = [any(map(serves, route.block.hosts)) for route in routes]
        self._count_join_values(segment, routes, serves)
        parts, built = self._cut_segment(segment, routes, serves)
        addresses = self._write_blocks(stream, parts, built, stored)
        limits = self._find_time_limits(arrivals, stream, serves)
        each = zip(parts, addresses, strict=True)
        return [self._describe_block(part, address, limits, serves) for part, address in each]

    def _write_blocks(
        self, stream: int, parts: Sequence[_Part], built: _Built, stored: Sequence[bool]
    ) -> list[ReplicaAddress | None]:
        """Return the addresses of the blocks that are stored here; None: of the others."""
        addresses: list[ReplicaAddress | None] = [None] * len(parts)
        alone = {number for number, is_stored in enumerate(stored) if is_stored}
        for segment, numbers in built:
            if alone.issuperset(numbers.tolist()):
                alone.difference_update(numbers.tolist())
                written = self.files.append_blocks(stream, segment.batch, segment.list_bounds())
                for number, address in zip(numbers.tolist(), written, strict=True):
                    addresses[number] = address
        for number in sorted(alone):
            addresses[number] = self.files.append_block(stream, parts[number].rows.batch)
        return addresses

    def _cut_segment(
        self, segment: Segment, routes: Sequence[Route], serves: Callable[[int], bool]
    ) -> tuple[list[_Part], _Built]:
        """Return the rows of the blocks, and the segments that have those built together."""
        stream = routes[0].block.stream
        stores_orders = self.batch.spec.match is None
        orders = self.batch.spec.predicate.stream_orders(stream)
        is_inner = self.batch.spec.kind.is_inner
        numbered_apart = [self._is_numbered_apart(route, serves) for route in routes]
        sizes, bounds = segment.block_bytes.tolist(), segment.list_bounds()
        built = None if any(numbered_apart) else segment.build_blocks(orders, stores_orders)
        if built is not None:
            blocks: dict[int, BlockRows] = {}
            for part, numbers in built:
                births = () if is_inner else [(routes[n].block.id,) for n in numbers.tolist()]
                blocks |= zip(numbers.tolist(), part.slice_blocks(births), strict=True)
            return [_Part(r, blocks[n], sizes[n]) for n, r in enumerate(routes)], built
        parts = []
        for route, is_apart, size, (first, end) in zip(
            routes, numbered_apart, sizes, bounds, strict=True
        ):
            rows, checksum = segment.batch.slice(first, end - first), 0
            if is_apart:
                columns = self.batch.spec.columns[stream]
                rows = sort_by_contents(rows, orders[0].column, columns)
                checksum = checksum_order(rows)
            rows = build_block(rows, orders, ordered=True, stores_orders=stores_orders)
            block = BlockRows(rows, births=() if is_inner else (route.block.id,))
            parts.append(_Part(route, block, size, checksum))
        return parts, []

    def _sort_by_route(
        self, arrivals: pa.RecordBatch, stream: int, routes: Sequence[Route]
    ) -> tuple[Segment, list[Route]]:
        """Return the rows of fresh blocks, and the routes of those that have rows.

        The rows of each block are sorted by the column of the first order. They are copied once;
        every block is a view of the copy.
        """
        block = _number_by_range(
            arrivals.column(ROUTING).to_numpy(), [r.block.key_range for r in routes]
        )
        ends = np.cumsum(np.bincount(block, minlength=len(routes)))[: len(routes)]
        key = arrivals.column(self.batch.spec.predicate.stream_orders(stream)[0].column)
        key = key.to_numpy(zero_copy_only=False)
        if ends[-1] < len(block):
            at = np.flatnonzero(block < len(routes))
            order = at[sort_positions(key[at], block[at])]
        else:
            order = sort_positions(key, block)
        rows = take_block_rows(arrivals, order)
        filled = np.diff(ends, prepend=0) > 0
        chosen = [route for route, is_filled in zip(routes, filled, strict=True) if is_filled]
        return Segment(rows, ends[filled]), chosen

    def _describe_block(
        self,
        part: _Part,
        address: ReplicaAddress | None,
        limits: _TimeLimits,
        serves: Callable[[int], bool],
    ) -> FreshBlock:
        """Return a fresh block with its address and size, if a served host stores it."""
        (route, rows, size_bytes, checksum), block = part, part.route.block
        is_first = serves(block.hosts[0])
        if is_first:
            self._count_keys_and_types(rows, block)
        if address is None:
            return FreshBlock(block, route.reading_hosts(), rows, size_bytes)
        span, late, spread, latest = rows.event_time_range(), 0, None, b""
        if limits.late is not None and span[0] < limits.late:
            late = self._count_late_rows(rows, block.stream, limits.late, is_first)
        if needs_spread(span, limits.clock, limits.ahead):
            assert limits.ahead is not None
            spread = describe_times(rows.numpy_column(TIME), limits.clock, limits.ahead)
            latest = encode_latest_rows(rows, self.batch.spec.columns[block.stream])
        size = BlockSize(rows.row_total, rows.nbytes, span, late, spread, checksum, latest)
        return FreshBlock(block, route.reading_hosts(), rows, size_bytes, address, size)

    def _find_time_limits(
        self, arrivals: pa.RecordBatch, stream: int, serves: Callable[[int], bool]
    ) -> _TimeLimits:
        """Return the limits of the event times of a stream's fresh blocks.

        A first batch determines the clock by all of its times together. If this task has all of
        them, and they are near each other, none is too far ahead.
        """
        batch = self.batch
        clock, ahead = batch.clocks[stream] if batch.clocks else None, batch.ahead
        has_all_rows = serves is serves_all_hosts or batch.spec.partitions == 1
        if clock is None and ahead is not None and has_all_rows:
            times = arrivals.column(TIME).to_numpy()
            ahead = None if int(times.max()) - int(times.min()) <= ahead else ahead
        return _TimeLimits(self._find_late_limit(stream), clock, ahead)

    def _is_numbered_apart(self, route: Route, serves: Callable[[int], bool]) -> bool:
        """Return whether several tasks must number the rows of a fresh block alike."""
        if route.block.stream not in self.batch.spec.kind.preserved:
            return False
        return not all(map(serves, route.reading_hosts()))

    def _count_keys_and_types(self, rows: BlockRows, block: Block) -> None:
        if (bitmaps := self.batch.bitmaps) is not None:
            counts = self.key_counts.setdefault(block.stream, {})
            _add_value_counts(counts, rows.numpy_column(ROUTING))
            marks, times = rows.numpy_column(MARK), rows.numpy_column(TIME)
            waiting = bitmaps.count_waiting(block.stream, marks, times)
            self.waiting = add_waiting_counts(self.waiting, waiting)
        if self.typed:
            _add_value_counts(self.kinds.setdefault(block.stream, {}), utility_types(rows))

    def _count_join_values(
        self, segment: Segment, routes: Sequence[Route], serves: Callable[[int], bool]
    ) -> None:
        """Count the tuples of each join value of blocks, if values have several routing keys.

        Each block is counted by the task that serves its first host.
        """
        space, stream = self.batch.key_space, routes[0].block.stream
        if self.batch.bitmaps is not None or space.keys_per_value == 1:
            return
        is_counted = np.array([serves(route.block.hosts[0]) for route in routes])
        keys = segment.batch.column(ROUTING).to_numpy()
        if not is_counted.all():
            keys = keys[np.repeat(is_counted, segment.ends - segment.starts)]
        values = -(-space.key_end // space.keys_per_value)
        counts = np.bincount(keys // space.keys_per_value, minlength=values)
        self.value_counts[stream] = self.value_counts.get(stream, 0) + counts

    def list_key_counts(self) -> list[KeyCount]:
        """Return the tuples by routing key, or those of frequent join values and of the others."""
        listed = [
            KeyCount(stream, key, n)
            for stream, counts in self.key_counts.items()
            for key, n in counts.items()
        ]
        for stream, tuples in self.value_counts.items():
            frequent = select_frequent_values(tuples)
            listed += [KeyCount(stream, value, n) for value, n in frequent.items()]
        return listed

    def _count_late_rows(self, rows: BlockRows, stream: int, limit: int, is_written: bool) -> int:
        """Return the number of late rows. Their partners may have been dropped already.

        ``is_written``: whether to write them, which one task does.
        """
        times = rows.numpy_column(TIME)
        late = np.flatnonzero(times < limit)
        if is_written:
            columns = take_block_rows(
                rows.batch.select(list(self.batch.spec.columns[stream])), late
            )
            self.irregular.append_rows(stream, columns, LATE, limit - times[late])
        return len(late)

    def _find_late_limit(self, stream: int) -> int | None:
        """Return the event time below which an arriving tuple of a stream is late; None: none is.

        An as-of join may have forgotten partners of earlier left tuples by what dominates them.
        """
        rule = self.batch.spec.match
        if rule is not None and rule.forgets_dominated and stream == LEFT:
            return self.batch.next_low
        return find_late_limit(stream, self.batch.horizons, self.batch.spec.reach)


def _number_by_range(keys: np.ndarray, ranges: Sequence[Keys]) -> np.ndarray:
    """Return, by routing key, the index of its range; their number if it is in none.

    The ranges ascend and do not overlap.
    """
    low, high = (np.array(each, keys.dtype) for each in zip(*ranges, strict=True))
    number = low.searchsorted(keys, "right") - 1
    number[(number < 0) | (keys >= high[number])] = len(ranges)
    return number.astype(np.int16) if len(ranges) < 1 << 15 else number


def _add_value_counts(counts: dict[int, int], values: np.ndarray) -> None:
    """Add the number of occurrences of each value."""
    for value, n in zip(*(each.tolist() for each in np.unique_counts(values)), strict=True):
        counts[value] = counts.get(value, 0) + n
