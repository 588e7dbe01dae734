"""Hold, derive and store the replicas of a task's hosts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from braid.core.batch_report import BlockSize, HostMetrics, ReplicaReport, TaskReport
from braid.core.plan import Derivation, Keys
from braid.core.run_state import Place as StoredAt
from braid.core.run_state import ReplicaAddress
from braid.core.stream_clocks import TimeSpread
from braid.execution.fresh_blocks import FreshBlock
from braid.kernels.block_builder import merge_blocks
from braid.kernels.block_rows import BlockRows
from braid.kernels.join_spec import BatchSpec
from braid.storage.block_files import BlockFileWriter, keep_open_only, open_replica
from braid.storage.task_files import TaskFiles
from braid.util.environment import current_environment


class ReplicaStore:
    """Replicas of the hosts of one task attempt, with metrics of each host.

    Files are named by ``stem``. A file exists only if a report names it to the driver.
    """

    def __init__(self, batch: BatchSpec, partition: int, stem: str, copies: TaskFiles) -> None:
        folder = copies.folder / "blocks"
        self.batch, self.partition = batch, partition
        self.counts: dict[int, HostMetrics] = {}
        self.told: list[ReplicaReport] = []
        self.files = BlockFileWriter(folder, stem, batch.spec.fsync, batch.spec.generated_columns)
        self._seals, self._copies = dict(batch.files), copies
        keep_open_only(folder, self._seals)
        self._made: dict[StoredAt, tuple[ReplicaAddress, BlockRows]] = {}
        self._open: dict[ReplicaAddress, BlockRows] = {}

    def is_local_host(self, host: int) -> bool:
        """Return whether a host belongs to this task's partition."""
        return host % self.batch.spec.partitions == self.partition

    def host_metrics(self, host: int) -> HostMetrics:
        """Return the metrics of a host so far."""
        return self.counts.setdefault(host, HostMetrics())

    def replica_rows(self, block: int, host: int) -> BlockRows | None:
        """Return a host's replica of a block; None if the block has no rows there."""
        if (block, host) in self._made:
            return self._made[block, host][1]
        address = self.batch.replica_addresses.get((block, host))
        if address is None:
            return None
        self._made[block, host] = (address, self._open_rows(address))
        return self._made[block, host][1]

    def _open_rows(self, address: ReplicaAddress) -> BlockRows:
        """Return the rows at an address, opened once for all hosts that share them."""
        if address not in self._open:
            file = self._copies.fetch_block(address.file)
            seal = self._seals[address.file]
            self._open[address] = open_replica(
                str(file), address.record_batch, address.key_range, seal
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
        same = (is_local, *(self._made[s, source][0] for s in present))
        if same not in shared:
            shared[same] = self._merge_sources(
                d, [self._made[s, source] for s in present], is_local
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
            merge_blocks(parts, self.batch.spec.predicate.index_columns(d.block.stream))
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
        self._made[block, host] = (address, rows)
        self.told.append(ReplicaReport(block, host, address, size))
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
        self._seals |= report.files
        for r in report.replicas:
            if self.is_local_host(r.host):
                self._made[r.block, r.host] = (r.address, self._open_rows(r.address))


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
