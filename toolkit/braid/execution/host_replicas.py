"""Derive, hold and store the replicas of a task's hosts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from braid.core.answer_state import MatchedRows, make_mark_key
from braid.core.asof_releases import RIGHT
from braid.core.batch_report import BlockSize, HostMetrics, ReplicaReport, TaskReport
from braid.core.plan import Derivation
from braid.core.reserved_columns import MATCHED, MATCHED_NOW
from braid.core.run_state import Place as StoredAt
from braid.core.run_state import ReplicaAddress
from braid.execution.fresh_blocks import FreshBlock
from braid.execution.merge_pools import Merge, intersect_key_ranges, merge_together
from braid.kernels.block_builder import (
    copy_numbered_block,
    merge_blocks,
    merge_matched_blocks,
    merge_unmatched_rows,
)
from braid.kernels.change_merges import drop_cancelled_rows
from braid.kernels.dominance import drop_dominated_rows
from braid.kernels.host_block_rows import BlockRows
from braid.kernels.join_spec import BatchSpec
from braid.kernels.match_marks import Bits
from braid.storage.block_files import BlockFileWriter
from braid.storage.block_readers import OpenBlockFile, keep_open_only, open_block_file
from braid.storage.task_file_access import TaskFiles
from braid.util.clock_and_threads import current_environment


class ReplicaStore:
    """Replicas of the hosts of one task attempt, with metrics of each host.

    Files are named by ``stem``. A file exists only if a report names it to the driver.

    - ``merged_marks``: marks of the rows of merged blocks, in a join that is not inner.
    - ``forgotten``: by merged block, its stream and the matched tuples that left the state before
      they were final, in a join without pairs.
    """

    def __init__(self, batch: BatchSpec, partition: int, stem: str, copies: TaskFiles) -> None:
        folder = copies.folder / "blocks"
        self.batch, self.partition = batch, partition
        self.counts = defaultdict[int, HostMetrics](HostMetrics)
        self.reports: list[ReplicaReport] = []
        self.files = BlockFileWriter(folder, stem, batch.spec.fsync)
        self._has_births = not batch.spec.kind.is_inner
        self._checksums, self._copies = dict(batch.files), copies
        keep_open_only(folder, self._checksums)
        self._replicas: dict[StoredAt, tuple[ReplicaAddress, BlockRows]] = {}
        self._last_replicas: dict[int, tuple[ReplicaAddress, BlockRows]] = {}
        self._open: dict[ReplicaAddress, BlockRows] = {}
        self._block_files: dict[str, OpenBlockFile] = {}
        self.merged_marks: dict[int, Bits] = {}
        self.forgotten: dict[int, tuple[int, int]] = {}

    def share_replicas(self, others: Iterable[ReplicaStore]) -> None:
        """Read what other tasks of this process have made in this batch, too."""
        for other in others:
            self._replicas = other._replicas | self._replicas

    def is_local_host(self, host: int) -> bool:
        """Return whether a host belongs to this task's partition."""
        return host % self.batch.spec.partitions == self.partition

    def _derives(self, d: Derivation, host: int) -> bool:
        """Return whether this task makes a derived block for a host."""
        if self.batch.spec.shares_hosts:
            return d.block.stream % self.batch.spec.partitions == self.partition
        return self.is_local_host(host)

    def host_metrics(self, host: int) -> HostMetrics:
        """Return the metrics of a host so far."""
        return self.counts[host]

    def replica_rows(self, block: int, host: int) -> BlockRows | None:
        """Return a host's replica of a block; None if the block has no rows there."""
        place = block, host
        if (replica := self._replicas.get(place)) is not None:
            return replica[1]
        if (address := self.batch.replica_addresses.get(place)) is None:
            return None
        if (last := self._last_replicas.get(block)) is None or last[0] is not address:
            rows = self._open_rows(address)
            if self._has_births:
                rows.births = (self.batch.find_birth(block),)
            last = self._last_replicas[block] = (address, rows)
        self._replicas[place] = last
        return last[1]

    def _hold_replica(
        self, block: int, host: int, address: ReplicaAddress, rows: BlockRows
    ) -> None:
        if self._has_births:
            rows.births = (self.batch.find_birth(block),)
        self._replicas[block, host] = (address, rows)

    def find_known_marks(self, block: int, query: int | None = None) -> Bits | None:
        """Return the rows of a block's birth that matched before this batch; None: none did.

        ``query``: bit of the query that they matched for, in a run that serves many.
        """
        if (key := make_mark_key(block, query)) in self.merged_marks:
            return self.merged_marks[key]
        matched = self.batch.matched.get(make_mark_key(self.batch.find_birth(block), query))
        if matched is None or not matched.file:
            return None if matched is None else np.ones(matched.rows, bool)
        return self._read_bitmap(matched, MATCHED)

    def find_new_marks(self, block: int, query: int | None = None) -> Bits:
        """Return the rows of a block's birth that matched first in the last batch."""
        key = make_mark_key(self.batch.find_birth(block), query)
        return self._read_bitmap(self.batch.matched[key], MATCHED_NOW)

    def _read_bitmap(self, matched: MatchedRows, column: str) -> Bits:
        address = ReplicaAddress(matched.file, matched.record_batch)
        return self._open_rows(address).numpy_column(column)

    def _open_rows(self, address: ReplicaAddress) -> BlockRows:
        """Return the rows at an address, opened once for all hosts that share them."""
        file = self._block_files.get(address.file) or self._open_file(address.file)
        rows = file.small_blocks.get(address) or self._open.get(address)
        if rows is None:
            rows = self._open[address] = file.read_block(address)
        return rows

    def _open_file(self, name: str) -> OpenBlockFile:
        path = str(self._copies.fetch_block(name))
        file = self._block_files[name] = open_block_file(path, self._checksums[name])
        return file

    def derive_blocks(self) -> None:
        """Derive blocks on these hosts, in the order of the plan, after mergers of small blocks.

        A dense cut of a host's own replica is a view. Hosts that derive the same from the same
        replicas share the result.
        """
        done = self._merge_small_blocks()
        for d in self.batch.derivations:
            shared: dict[Any, tuple[ReplicaAddress, BlockRows]] = {}
            for host, source in d.source_hosts.items():
                if self._derives(d, host) and (d.block.id, host) not in done:
                    with _clock(self.host_metrics(host)):
                        self._derive_replica(d, host, source, shared)

    def _merge_small_blocks(self) -> set[StoredAt]:
        """Merge, cut and copy small blocks that hosts had before the batch.

        Return which were made, and where.
        """
        merges = [merge for merge in self._list_merges() if merge.is_small]
        if len(merges) < 2:
            return set()
        began = current_environment().read_clock()
        predicate = self.batch.spec.predicate
        streams = {merge.derivation.block.stream for merge in merges}
        orders = {stream: predicate.stream_orders(stream) for stream in sorted(streams)}
        for merged in merge_together(merges, orders, self.files):
            for host, source in merged.hosts.items():
                self._record_derived_replica(
                    merged.block, host, merged.address, merged.rows, host == source
                )
        seconds = current_environment().read_clock() - began
        total = sum(merge.rows for merge in merges)
        for merge in merges:
            for host in merge.hosts:
                self.host_metrics(host).seconds += (
                    seconds * merge.rows / max(1, total) / len(merge.hosts)
                )
        return {(merge.derivation.block.id, host) for merge in merges for host in merge.hosts}

    def _list_merges(self) -> Iterator[Merge]:
        """Yield the derivations that need no other order and no marks of their rows.

        A cut that is a view of an own block is none of them.
        """
        spec = self.batch.spec
        special_streams = {*spec.kind.preserved, *spec.change_streams}
        derived = {d.block.id for d in self.batch.derivations}
        addresses = self.batch.replica_addresses
        for d in self.batch.derivations:
            if spec.match is not None or d.block.stream in special_streams:
                continue
            if not derived.isdisjoint(d.source_blocks):
                continue
            shared: dict[tuple[ReplicaAddress | None, ...], Merge] = {}
            for host, source in d.source_hosts.items():
                if not self._derives(d, host):
                    continue
                same = tuple([addresses.get((s, source)) for s in d.source_blocks])
                if (merge := shared.get(same)) is None:
                    merge = shared[same] = self._make_merge(d, source)
                if not _is_source_view(d, merge.sources, host == source):
                    merge.hosts[host] = source
            yield from (merge for merge in shared.values() if merge.hosts and merge.sources)

    def _make_merge(self, d: Derivation, source: int) -> Merge:
        """Return a derivation from the replicas of a host, with those sources that have rows."""
        rows = {s: self.replica_rows(s, source) for s in d.source_blocks}
        present = {s: each for s, each in rows.items() if each is not None}
        size = sum(self.batch.block_sizes.get(s, 0) for s in present)
        total = sum(each.row_total for each in present.values())
        return Merge(d, {}, [*present.values()], size, total)

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
            replicas = [self._replicas[s, source] for s in present]
            if d.block.stream in self.batch.spec.kind.preserved:
                shared[same] = self._merge_marked_sources(d, present, replicas, is_local)
            else:
                shared[same] = self._merge_sources(d, replicas, is_local)
        self._record_derived_replica(d.block.id, host, *shared[same], is_local)

    def _merge_sources(
        self, d: Derivation, sources: list[tuple[ReplicaAddress, BlockRows]], is_local: bool
    ) -> tuple[ReplicaAddress, BlockRows]:
        parts = _cut_sources(d, sources)
        if is_local and len(parts) == 1 and _is_dense(parts[0]):
            return sources[0][0]._replace(key_range=parts[0].keys), parts[0]
        return self._write_derived(d, self._merge_rows(d, parts))

    def _merge_marked_sources(
        self,
        d: Derivation,
        present: Sequence[int],
        replicas: list[tuple[ReplicaAddress, BlockRows]],
        is_local: bool,
    ) -> tuple[ReplicaAddress, BlockRows]:
        """Merge blocks of a preserved stream: cuts keep their numbers, mergers their marks.

        Mergers leave out tuples that matched, if these change no result any more.
        """
        parts = _cut_sources(d, replicas)
        orders = self.batch.spec.predicate.stream_orders(d.block.stream)
        if len(d.source_blocks) == 1:
            if is_local and _is_dense(parts[0]):
                return replicas[0][0]._replace(key_range=parts[0].keys), parts[0]
            return self._write_derived(d, copy_numbered_block(parts[0], orders))
        marked = {
            query: [self.find_known_marks(source, query) for source in present]
            for query, streams in self.batch.list_preserved().items()
            if d.block.stream in streams
        }
        if self.batch.spec.kind.forgets_matched and self.batch.bitmaps is None:
            merged, times = merge_unmatched_rows(parts, orders, marked[None])
            self._count_forgotten(d, times)
            return self._write_derived(d, merged)
        merged, marks = merge_matched_blocks(parts, orders, marked)
        for query, bits in marks.items():
            if bits.any():
                self.merged_marks[make_mark_key(d.block.id, query)] = bits
        return self._write_derived(d, merged)

    def _count_forgotten(self, d: Derivation, times: np.ndarray) -> None:
        """Count matched tuples that leave the state before they are final, on one host of many."""
        horizon = self.batch.horizons[d.block.stream]
        waiting = len(times) if horizon is None else int(np.count_nonzero(times >= horizon))
        if self._derives(d, min(d.source_hosts)):
            self.forgotten[d.block.id] = d.block.stream, waiting

    def _write_derived(
        self, d: Derivation, batch: pa.RecordBatch
    ) -> tuple[ReplicaAddress, BlockRows]:
        if not batch.num_rows:
            return ReplicaAddress("", 0), BlockRows(batch)
        return self.files.append_block(d.block.stream, batch), BlockRows(batch)

    def _merge_rows(self, d: Derivation, parts: Sequence[BlockRows]) -> pa.RecordBatch:
        """Return the rows of several blocks, without what an as-of join may forget by then.

        Changes that cancel are left out. No pair of merged blocks is pending.
        """
        spec, rule, stream = self.batch.spec, self.batch.spec.match, d.block.stream
        orders = spec.predicate.stream_orders(stream)
        merged = merge_blocks(parts, orders, stores_orders=rule is None)
        if stream in spec.change_streams and len(d.source_blocks) > 1:
            return drop_cancelled_rows(merged, spec.columns[stream], orders)
        forgets = rule is not None and rule.forgets_dominated and d.block.stream == RIGHT
        if rule is None or not forgets or len(d.source_blocks) == 1:
            return merged
        return drop_dominated_rows(merged, spec.predicate, rule, self.batch.next_low)

    def _record_derived_replica(
        self, block: int, host: int, address: ReplicaAddress, rows: BlockRows, is_local: bool
    ) -> None:
        """Record a derived replica for the report; ignore it if it is empty.

        ``is_local``: whether the host had the sources itself.
        """
        if (count := rows.row_count()) == 0:
            return
        size = BlockSize(count, rows.nbytes * count // rows.row_total, rows.event_time_range())
        self._hold_replica(block, host, address, rows)
        self.reports.append(ReplicaReport(block, host, address, size))
        if not is_local:
            metrics = self.host_metrics(host)
            metrics.migrated_tuples += size.rows
            metrics.migrated_bytes += size.size_bytes

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
                count.received_tuples += f.rows.row_total
                count.received_bytes += f.size_bytes
                count.seconds += f.seconds
            if f.address is not None and f.size is not None:
                for host in filter(self.is_local_host, f.block.hosts):
                    self._hold_replica(f.block.id, host, f.address, f.rows)
                    self.reports.append(ReplicaReport(f.block.id, host, f.address, f.size))
        return here

    def register(self, report: TaskReport) -> None:
        """Register the blocks that an earlier task made on these hosts."""
        self._checksums |= report.files
        for r in report.replicas:
            if self.is_local_host(r.host):
                self._hold_replica(r.block, r.host, r.address, self._open_rows(r.address))


class _clock:
    """Context that adds its wall-clock seconds to a host's metrics."""

    def __init__(self, counts: HostMetrics) -> None:
        self.counts = counts

    def __enter__(self) -> None:
        self.began = current_environment().read_clock()

    def __exit__(self, *_: object) -> None:
        self.counts.seconds += current_environment().read_clock() - self.began


def _cut_sources(
    d: Derivation, replicas: Sequence[tuple[ReplicaAddress, BlockRows]]
) -> list[BlockRows]:
    """Return the rows of a derivation's sources that it keeps."""
    return [_cut_source_rows(d, rows) for _, rows in replicas]


def _cut_source_rows(d: Derivation, rows: BlockRows) -> BlockRows:
    keys = intersect_key_ranges(rows.keys, d.block.key_range)
    return BlockRows(rows.batch, keys, births=rows.births)


def _is_source_view(d: Derivation, sources: Sequence[BlockRows], is_local: bool) -> bool:
    """Return whether a derivation is a view of its only source, a replica of the same host."""
    return is_local and len(sources) == 1 and _is_dense(_cut_source_rows(d, sources[0]))


def _is_dense(view: BlockRows) -> bool:
    """Return whether at least a third of the rows in the file are active.

    A probe of a view searches and filters all rows of the file.
    """
    chosen = view.key_mask()
    return chosen is None or bool(3 * np.count_nonzero(chosen) >= len(chosen))
