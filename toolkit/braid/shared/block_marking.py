"""Rewrite stored tuples with the bits of new queries.

Spark reads the blocks, evaluates the selections, and writes the blocks again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from socket import gethostname
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import sqlglot
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from sqlglot import exp

from braid.condition.predicate import Predicate
from braid.condition.spark_dialect import SparkSql
from braid.core import batch_report
from braid.core.asof_releases import RIGHT, find_least
from braid.core.query import unite_kinds
from braid.core.reserved_columns import MARK, TIME
from braid.core.run_state import FileChecksum, Place, ReplicaAddress
from braid.core.stream_clocks import Clock
from braid.execution.engine import Engine
from braid.kernels.host_block_rows import BlockRows
from braid.kernels.join_spec import take_rows
from braid.kernels.query_bitmaps import QueryBitmaps
from braid.shared.query_changes import Queries, queries_by_selection, query_bitmap, rewrite_bitmaps
from braid.shared.query_marks import bitmap_sql
from braid.storage.block_files import BlockFileWriter
from braid.storage.block_readers import open_replica

_WHERE = (
    T.StructType()
    .add("partition", T.IntegerType())
    .add("__block", T.LongType())
    .add("__host", T.IntegerType())
)
_NUMBERS = ("length", "crc", "block", "host", "place", "start", "rows", "bytes", "first", "last")
_TEXTS = ("worker", "file", "waiting")
_REPORT = T.StructType(
    [
        *(T.StructField(n, T.StringType()) for n in _TEXTS),
        *(T.StructField(n, T.LongType()) for n in _NUMBERS),
    ]
)


@dataclass(frozen=True)
class BitmapRewrite:
    """Work of every task of a rewrite.

    It names the replicas, the bits to retain and the queries to serve from now on. ``fsync``: force
    written files to disk. ``preserved``: streams whose rows keep their numbers. ``answered``: those
    whose old rows stay until they are answered.
    """

    folder: str
    number: int
    predicate: Predicate
    replica_addresses: Mapping[Place, ReplicaAddress]
    files: Mapping[str, FileChecksum]
    streams: Mapping[int, int]
    retained_bits: int
    bitmaps: QueryBitmaps
    watermarks: tuple[Clock, ...]
    fsync: bool
    preserved: tuple[int, ...]
    answered: frozenset[int]

    def stored_rows(self, block: int, host: int) -> BlockRows:
        """Return the rows of a block as stored on a host."""
        address = self.replica_addresses[block, host]
        file = Path(self.folder) / address.file
        return open_replica(str(file), address, self.files[address.file])


def plan_rewrite(engine: Engine, queries: Queries) -> BitmapRewrite:
    """Return the work of changing to other queries."""
    state, streams = engine.state, {b.id: b.stream for b in engine.state.blocks.values()}
    return BitmapRewrite(
        str(engine.store.blocks.folder),
        state.batch + 1,
        engine.spec.predicate,
        state.replica_addresses,
        state.block_files,
        streams,
        query_bitmap(q for q in state.queries if q in queries),
        QueryBitmaps.from_queries(queries),
        _find_limits(engine),
        engine.store.force,
        unite_kinds(queries).preserved,
        frozenset(s for q in (*state.queries, *queries) for s in q.answered_streams),
    )


def _find_limits(engine: Engine) -> tuple[Clock, ...]:
    """Return, by stream, the event time from which on ages count.

    Partners of tuples that the next batch releases stay until then.
    """
    limits = list(engine.rules.find_state_watermarks(engine.state))
    lows = [each.low for each in engine.state.query_releases.values()]
    if lows:
        limits[RIGHT] = find_least([limits[RIGHT], *lows])
    return tuple(limits)


def rewrite_replicas(
    spark: SparkSession,
    job: BitmapRewrite,
    schemas: list[T.StructType],
    new: Queries,
    partitions: int,
) -> list[batch_report.TaskReport]:
    """Rewrite every replica with bits for ``new`` queries. Return one report for each replica.

    Pass the reports to ``Engine.commit_change``.
    """
    if not job.replica_addresses:
        return []
    parts = []
    for stream, schema in enumerate(schemas):
        own_files = [
            (host % partitions, block, host)
            for block, host in job.replica_addresses
            if job.streams[block] == stream
        ]
        where = spark.createDataFrame(own_files, _WHERE).repartitionById(partitions, "partition")
        wanted = queries_by_selection(new, stream, is_stored=True)
        trees = [sqlglot.parse_one(sql, dialect=SparkSql) for sql in wanted if sql]
        used = {
            column.parts[0].name.lower() for tree in trees for column in tree.find_all(exp.Column)
        }
        named = T.StructType([f for f in schema.fields if f.name.lower() in used])
        read = where.mapInArrow(
            make_reader(job, named.names), T.StructType([*_WHERE.fields[1:], *named.fields])
        )
        parts.append(read.select("__block", "__host", F.expr(bitmap_sql(wanted)).alias("fresh")))
    written = reduce(DataFrame.union, parts).mapInArrow(make_writer(job), _REPORT)
    return [report_from_row(row.asDict()) for row in written.collect()]


def report_from_row(row: Mapping[str, Any]) -> batch_report.TaskReport:
    """Return the report of a written replica from its row of ``_REPORT``."""
    size = batch_report.BlockSize(row["rows"], row["bytes"], (row["first"], row["last"]))
    rows = row["start"], row["start"] + row["rows"]
    address = ReplicaAddress(row["file"], row["place"], None, rows)
    replica = batch_report.ReplicaReport(row["block"], row["host"], address, size)
    checksums = {row["file"]: FileChecksum(row["length"], row["crc"])}
    waiting = msgspec.json.decode(row["waiting"], type=dict[int, int])
    return batch_report.TaskReport(
        {}, [replica], files=checksums, worker_id=row["worker"], waiting_changes=waiting
    )


def make_reader(
    job: BitmapRewrite, columns: list[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that yields the active tuples of replicas in order."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for block, host in _list_replicas(batches):
            rows = job.stored_rows(block, host)
            at = rows.row_positions()
            taken = take_rows(rows.batch.select(columns), at) if columns else None
            where = [pa.array(np.full(len(at), block)), pa.array(np.full(len(at), host, np.int32))]
            yield pa.record_batch(
                [*where, *(taken.columns if taken else ())], names=["__block", "__host", *columns]
            )

    return run


def make_writer(
    job: BitmapRewrite,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that writes replicas.

    It takes rows (__block, __host, fresh bits) in the order in which they were read.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fresh: dict[Place, list[np.ndarray]] = {}
        for batch in batches:
            block, host = (batch.column(n).to_numpy() for n in ("__block", "__host"))
            ends: Sequence[int] | np.ndarray = (
                np.flatnonzero(np.append((np.diff(block) != 0) | (np.diff(host) != 0), True)) + 1
                if len(block)
                else []
            )
            for a, b in zip([0, *ends], ends, strict=False):
                fresh.setdefault((int(block[a]), int(host[a])), []).append(
                    batch.column("fresh").to_numpy()[a:b]
                )
        stem = f"{job.number:06d}-{uuid.uuid4().hex[:8]}"
        files = BlockFileWriter(Path(job.folder), stem, job.fsync)
        first_hosts = dict(sorted(job.replica_addresses, reverse=True))

        def rewrite_replica(block: int, host: int, rows: np.ndarray) -> tuple[Any, ...] | None:
            is_first = host == first_hosts[block]
            return _rewrite_replica(job, files, block, host, rows, is_first)

        written = [
            line
            for (block, host), rows in fresh.items()
            if (line := rewrite_replica(block, host, np.concatenate(rows))) is not None
        ]
        checksums = files.close_files()
        for file, waiting, *numbers in written:
            line = (gethostname(), file, waiting, *checksums[str(file)], *numbers)
            yield pa.record_batch([pa.array([value]) for value in line], names=_REPORT.names)

    return run


def _list_replicas(batches: Iterable[pa.RecordBatch]) -> Iterator[Place]:
    for batch in batches:
        yield from zip(
            batch.column("__block").to_pylist(), batch.column("__host").to_pylist(), strict=True
        )


def _rewrite_replica(
    job: BitmapRewrite,
    files: BlockFileWriter,
    block: int,
    host: int,
    fresh: np.ndarray,
    is_first: bool,
) -> tuple[str | int, ...] | None:
    """Rewrite one replica. Return its line of the report, or None if no tuple is left.

    ``is_first``: whether it is the replica whose tuples are counted, one of each block.
    """
    stream = job.streams[block]
    batch = rewrite_bitmaps(
        job.stored_rows(block, host),
        fresh,
        job.retained_bits,
        job.bitmaps,
        stream,
        job.watermarks[stream],
        job.predicate.stream_orders(stream),
        stream in job.preserved,
        stream in job.answered,
    )
    if batch is None:
        return None
    address, rows = files.append_block(stream, batch), BlockRows(batch)
    assert address.rows is not None
    return (
        address.file,
        _count_waiting(job, stream, batch) if is_first else "{}",
        block,
        host,
        address.record_batch,
        address.rows[0],
        batch.num_rows,
        rows.nbytes,
        *rows.event_time_range(),
    )


def _count_waiting(job: BitmapRewrite, stream: int, batch: pa.RecordBatch) -> str:
    """Return the tuples that wait for new queries, as JSON."""
    marks, times = (batch.column(name).to_numpy() for name in (MARK, TIME))
    waiting = job.bitmaps.count_waiting(stream, marks, times, job.retained_bits)
    return msgspec.json.encode(waiting).decode()
