"""Build the fresh blocks of a batch; derive, hold and store the replicas of a task's hosts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from braid.core.batch_report import BlockSize, HostMetrics, ReplicaReport, TaskReport
from braid.core.horizon import find_late_limit
from braid.core.plan import Block, Derivation, Keys, Route
from braid.core.reserved_columns import ROUTING, TIME
from braid.core.run_state import Place as StoredAt
from braid.core.run_state import ReplicaAddress
from braid.core.stream_clocks import TimeSpread, needs_spread
from braid.kernels import join_spec
from braid.kernels.block_builder import build_block, describe_times, merge_blocks
from braid.kernels.host_block_rows import BlockRows, take_block_rows, value_bytes
from braid.kernels.join_spec import BatchSpec
from braid.kernels.position_sort import sort_positions
from braid.kernels.shedding_sampler import utility_types
from braid.storage.block_files import BlockFileWriter, keep_open_only, open_replica
from braid.storage.task_file_access import TaskFiles
from braid.util.clock_and_threads import current_environment

Counts = dict[int, dict[int, int]]
"""Number of occurrences of each value, by stream."""


class FreshBlock(NamedTuple):
    """A fresh block.

    - ``hosts``: hosts that store it or probe with it.
    - ``size_bytes``: bytes of its tuples.
    - ``address``: where it is stored; None: it is not.
    - ``late_tuples``: late tuples in it.
    - ``spread``: distribution of its event times; None: the clock does not need it.
    - ``seconds``: seconds that each host worked on it.
    """

    block: Block
    hosts: Collection[int]
    rows: BlockRows
    size_bytes: int
    address: ReplicaAddress | None
    late_tuples: int
    spread: TimeSpread | None = None
    seconds: float = 0.0


class FreshBlockBuilder:
    """Builder of fresh blocks, which it cuts from arrived tuples and writes.

    - ``key_counts``: tuples by routing key, in a run that serves many queries. The key tells how
      long a tuple is useful.
    - ``kinds``: tuples by utility type, if ``typed``, which a run that sheds load by utility needs.
    """

    def __init__(self, batch: BatchSpec, files: BlockFileWriter, typed: bool) -> None:
        self.batch, self.files, self.typed = batch, files, typed
        self.key_counts: Counts = {}
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
            rows = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
            stream_blocks = [
                self._build_fresh_block(*each, serves)
                for each in self._split_by_route(rows, s, routes)
            ]
            seconds = current_environment().read_clock() - began
            served_rows = sum(
                f.rows.batch.num_rows * len([*filter(serves, f.hosts)]) for f in stream_blocks
            )
            blocks += [
                f._replace(seconds=seconds / served_rows * f.rows.batch.num_rows)
                for f in stream_blocks
            ]
        return blocks

    def _split_by_route(
        self, whole: pa.RecordBatch, stream: int, routes: Sequence[Route]
    ) -> Iterator[tuple[Route, pa.RecordBatch]]:
        """Yield the rows of each route's fresh block, sorted by the column of the first order.

        The rows are copied once; every block is a view of the copy.
        """
        routes = [r for r in routes if r.block.stream == stream]
        if not routes:
            return
        number = np.full(
            self.batch.key_space.key_end, len(routes), np.int16 if len(routes) < 1 << 15 else int
        )
        for n, route in enumerate(routes):
            number[slice(*route.block.key_range)] = n
        block = number[whole.column(ROUTING).to_numpy()]
        ends = np.cumsum(np.bincount(block, minlength=len(routes)))[: len(routes)]
        key = whole.column(self.batch.spec.predicate.stream_orders(stream)[0].column)
        key = key.to_numpy(zero_copy_only=False)
        if ends[-1] < len(block):
            at = np.flatnonzero(block < len(routes))
            order = at[sort_positions(key[at], block[at])]
        else:
            order = sort_positions(key, block)
        rows = join_spec.restore_generated_columns(
            take_block_rows(
                join_spec.drop_generated_columns(whole, self.batch.spec.generated_columns(stream)),
                order,
            )
        )
        for route, first, last in zip(routes, [0, *ends], ends, strict=False):
            if first < last:
                yield route, rows.slice(first, last - first)

    def _build_fresh_block(
        self, route: Route, part: pa.RecordBatch, serves: Callable[[int], bool]
    ) -> FreshBlock:
        """Return the fresh block of these rows.

        It is written if a served host stores it; hosts share the file.
        """
        block = route.block
        rows = BlockRows(
            build_block(part, self.batch.spec.predicate.stream_orders(block.stream), ordered=True)
        )
        if serves(block.hosts[0]):
            self._count_keys_and_types(rows, block.stream)
        address, late, spread = None, 0, None
        if any(map(serves, block.hosts)):
            address = self.files.append_block(block.stream, rows.batch)
            late = self._count_late_rows(rows, block.stream)
            spread = self._summarize_event_times(rows, block.stream)
        return FreshBlock(
            block, route.reading_hosts(), rows, value_bytes(part), address, late, spread
        )

    def _count_keys_and_types(self, rows: BlockRows, stream: int) -> None:
        if self.batch.bitmaps is not None:
            _add_value_counts(self.key_counts.setdefault(stream, {}), rows.numpy_column(ROUTING))
        if self.typed:
            _add_value_counts(self.kinds.setdefault(stream, {}), utility_types(rows))

    def _count_late_rows(self, rows: BlockRows, stream: int) -> int:
        """Return the number of late rows. Their partners may have been dropped already."""
        limit = find_late_limit(stream, self.batch.horizons, self.batch.spec.reach)
        return 0 if limit is None else int(np.count_nonzero(rows.numpy_column(TIME) < limit))

    def _summarize_event_times(self, rows: BlockRows, stream: int) -> TimeSpread | None:
        """Return the event times of a block; None if their span suffices for the stream's clock."""
        ahead = self.batch.ahead
        at = self.batch.clocks[stream] if self.batch.clocks else None
        if ahead is None or not needs_spread(rows.event_time_range(), at, ahead):
            return None
        return describe_times(rows.numpy_column(TIME), at, ahead)


def _add_value_counts(counts: dict[int, int], values: np.ndarray) -> None:
    """Add the number of occurrences of each value."""
    for value, n in zip(*(each.tolist() for each in np.unique_counts(values)), strict=True):
        counts[value] = counts.get(value, 0) + n


class ReplicaStore:
    """Replicas of the hosts of one task attempt, with metrics of each host.

    Files are named by ``stem``. A file exists only if a report names it to the driver.
    """

    def __init__(self, batch: BatchSpec, partition: int, stem: str, copies: TaskFiles) -> None:
        folder = copies.folder / "blocks"
        self.batch, self.partition = batch, partition
        self.counts: dict[int, HostMetrics] = {}
        self.reports: list[ReplicaReport] = []
        self.files = BlockFileWriter(folder, stem, batch.spec.fsync, batch.spec.generated_columns)
        self._checksums, self._copies = dict(batch.files), copies
        keep_open_only(folder, self._checksums)
        self._replicas: dict[StoredAt, tuple[ReplicaAddress, BlockRows]] = {}
        self._open: dict[ReplicaAddress, BlockRows] = {}

    def is_local_host(self, host: int) -> bool:
        """Return whether a host belongs to this task's partition."""
        return host % self.batch.spec.partitions == self.partition

    def host_metrics(self, host: int) -> HostMetrics:
        """Return the metrics of a host so far."""
        return self.counts.setdefault(host, HostMetrics())

    def replica_rows(self, block: int, host: int) -> BlockRows | None:
        """Return a host's replica of a block; None if the block has no rows there."""
        if (block, host) in self._replicas:
            return self._replicas[block, host][1]
        address = self.batch.replica_addresses.get((block, host))
        if address is None:
            return None
        self._replicas[block, host] = (address, self._open_rows(address))
        return self._replicas[block, host][1]

    def _open_rows(self, address: ReplicaAddress) -> BlockRows:
        """Return the rows at an address, opened once for all hosts that share them."""
        if address not in self._open:
            file = self._copies.fetch_block(address.file)
            checksum = self._checksums[address.file]
            self._open[address] = open_replica(
                str(file), address.record_batch, address.key_range, checksum
            )
        return self._open[address]

    def derive_blocks(self) -> None:
        """Derive blocks on these hosts, in the order of the plan.

        A dense cut of a host's own replica is a view. Hosts that derive the same from the same
        replicas share the result.
        """
        for d in self.batch.derivations:
            shared: dict[Any, tuple[ReplicaAddress, BlockRows]] = {}
            for host, source in d.source_hosts.items():
                if self.is_local_host(host):
                    with _clock(self.host_metrics(host)):
                        self._derive_replica(d, host, source, shared)

    def _derive_replica(
        self,
        d: Derivation,
        host: int,
        source: int,
        shared: dict[Any, tuple[ReplicaAddress, BlockRows]],
    ) -> None:
        present = [s for s in d.source_blocks if self.replica_rows(s, source) is not None]
        if not present:
            return
        is_local = host == source
        same = (is_local, *(self._replicas[s, source][0] for s in present))
        if same not in shared:
            shared[same] = self._merge_sources(
                d, [self._replicas[s, source] for s in present], is_local
            )
        size = self._record_replica(d.block.id, host, *shared[same])
        if size is not None and not is_local:
            count = self.host_metrics(host)
            count.migrated_tuples += size.rows
            count.migrated_bytes += size.size_bytes

    def _merge_sources(
        self, d: Derivation, found: list[tuple[ReplicaAddress, BlockRows]], own: bool
    ) -> tuple[ReplicaAddress, BlockRows]:
        parts = [
            BlockRows(r.batch, _intersect_key_ranges(r.keys, d.block.key_range)) for _, r in found
        ]
        if len(parts) == 1 and own and _is_dense(parts[0]):
            return found[0][0]._replace(key_range=parts[0].keys), parts[0]
        rows = BlockRows(
            merge_blocks(parts, self.batch.spec.predicate.stream_orders(d.block.stream))
        )
        some = rows.batch.num_rows
        return self.files.append_block(d.block.stream, rows.batch) if some else ReplicaAddress(
            "", 0
        ), rows

    def _record_replica(
        self,
        block: int,
        host: int,
        address: ReplicaAddress,
        rows: BlockRows,
        late: int = 0,
        spread: TimeSpread | None = None,
    ) -> BlockSize | None:
        """Record a replica for the report; ignore it if it is empty."""
        if (count := rows.row_count()) == 0:
            return None
        size = BlockSize(
            count, rows.nbytes * count // rows.batch.num_rows, rows.event_time_range(), late, spread
        )
        self._replicas[block, host] = (address, rows)
        self.reports.append(ReplicaReport(block, host, address, size))
        return size

    def store_fresh(self, fresh: Iterable[FreshBlock]) -> dict[tuple[int, int], BlockRows]:
        """Return the fresh blocks of local hosts by (block, host), and store those placed here.

        No file is written after this.
        """
        self.files.finish_files()
        here: dict[tuple[int, int], BlockRows] = {}
        for f in fresh:
            for host in filter(self.is_local_host, f.hosts):
                here[f.block.id, host] = f.rows
                count = self.host_metrics(host)
                count.received_tuples += f.rows.batch.num_rows
                count.received_bytes += f.size_bytes
                count.seconds += f.seconds
            if f.address is not None:
                for host in filter(self.is_local_host, f.block.hosts):
                    self._record_replica(
                        f.block.id, host, f.address, f.rows, f.late_tuples, f.spread
                    )
        return here

    def register(self, report: TaskReport) -> None:
        """Register the blocks that an earlier task made on these hosts."""
        self._checksums |= report.files
        for r in report.replicas:
            if self.is_local_host(r.host):
                self._replicas[r.block, r.host] = (r.address, self._open_rows(r.address))


class _clock:
    """Context that adds its wall-clock seconds to a host's metrics."""

    def __init__(self, counts: HostMetrics) -> None:
        self.counts = counts

    def __enter__(self) -> None:
        self.began = current_environment().read_clock()

    def __exit__(self, *_: object) -> None:
        self.counts.seconds += current_environment().read_clock() - self.began


def _is_dense(view: BlockRows) -> bool:
    """Return whether at least a third of the rows in the file are active.

    A probe of a view searches and filters all rows of the file.
    """
    chosen = view.key_mask()
    return chosen is None or bool(3 * np.count_nonzero(chosen) >= len(chosen))


def _intersect_key_ranges(a: Keys | None, b: Keys) -> Keys:
    return b if a is None else (max(a[0], b[0]), min(a[1], b[1]))
