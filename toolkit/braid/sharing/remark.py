"""Stored tuples get marks for new queries: Spark reads the blocks, evaluates the selections, and
writes the blocks anew.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from socket import gethostname
from typing import Any

import numpy as np
import pyarrow as pa
import sqlglot
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from sqlglot import exp

from braid.condition.dialect import SparkSql
from braid.condition.predicate import Predicate
from braid.core import report
from braid.core.clocks import find_watermarks
from braid.core.state import Address, Place, Seal
from braid.engine.engine import Engine
from braid.engine.files import BlockFiles, replica
from braid.engine.wire import chosen_rows
from braid.local.bitmaps import QueryBitmaps
from braid.local.rows import Rows
from braid.sharing.changes import Queries, bits, remarked, selections
from braid.sharing.marks import marks

_WHERE = (
    T.StructType()
    .add("partition", T.IntegerType())
    .add("__block", T.LongType())
    .add("__host", T.IntegerType())
)
_NUMBERS = ("length", "crc", "block", "host", "place", "rows", "bytes", "first", "last")
_TEXTS = ("worker", "file")
_REPORT = T.StructType(
    [
        *(T.StructField(n, T.StringType()) for n in _TEXTS),
        *(T.StructField(n, T.LongType()) for n in _NUMBERS),
    ]
)


@dataclass(frozen=True)
class Remarking:
    """What the driver tells every task: where replicas are, the marks that stay, and the queries
    that there will be; and whether what it writes is forced to disk.
    """

    folder: str
    number: int
    predicate: Predicate
    places: Mapping[Place, Address]
    files: Mapping[str, Seal]
    streams: Mapping[int, int]
    kept: int
    bitmaps: QueryBitmaps
    watermarks: tuple[int | None, ...]
    force: bool

    def rows(self, block: int, host: int) -> Rows:
        """The rows of a block as a host stored them."""
        address = self.places[block, host]
        file = Path(self.folder) / address.file
        return replica(str(file), address.part, address.keys, self.files[address.file])


def work(engine: Engine, queries: Queries) -> Remarking:
    """The work of changing to other queries."""
    state, streams = engine.state, {b.id: b.stream for b in engine.state.blocks.values()}
    return Remarking(
        str(engine.store.blocks),
        state.batch + 1,
        engine.spec.predicate,
        state.places,
        state.files,
        streams,
        bits(q for q in state.queries if q in queries),
        QueryBitmaps.of(queries),
        find_watermarks(state.clocks, engine.lateness),
        engine.store.force,
    )


def remark(
    spark: SparkSession, job: Remarking, schemas: list[T.StructType], new: Queries, partitions: int
) -> list[report.Report]:
    """Write every replica anew, with marks for ``new`` queries, and report them as hosts do (see
    ``Engine.amend``).
    """
    if not job.places:
        return []
    parts = []
    for stream, schema in enumerate(schemas):
        mine = [
            (host % partitions, block, host)
            for block, host in job.places
            if job.streams[block] == stream
        ]
        where = spark.createDataFrame(mine, _WHERE).repartitionById(partitions, "partition")
        wanted = selections(new, stream)
        trees = [sqlglot.parse_one(sql, dialect=SparkSql) for sql in wanted if sql]
        used = {
            column.parts[0].name.lower() for tree in trees for column in tree.find_all(exp.Column)
        }
        named = T.StructType([f for f in schema.fields if f.name.lower() in used])
        read = where.mapInArrow(
            reader(job, named.names), T.StructType([*_WHERE.fields[1:], *named.fields])
        )
        parts.append(read.select("__block", "__host", F.expr(marks(wanted)).alias("fresh")))
    whole = reduce(DataFrame.union, parts).mapInArrow(writer(job), _REPORT)
    return [reported(row.asDict()) for row in whole.collect()]


def reported(row: Mapping[str, Any]) -> report.Report:
    """A replica as it was written, from its row of ``_REPORT``."""
    size = report.Size(row["rows"], row["bytes"], (row["first"], row["last"]))
    address = Address(row["file"], row["place"])
    replica = report.Replica(row["block"], row["host"], address, size)
    seals = {row["file"]: Seal(row["length"], row["crc"])}
    return report.Report({}, [replica], files=seals, worker=row["worker"])


def reader(
    job: Remarking, columns: list[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow`` that makes rows of replicas: the tuples that count there, in
    order.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for block, host in _replicas(batches):
            rows = job.rows(block, host)
            at = rows.places()
            taken = chosen_rows(rows.batch.select(columns), at) if columns else None
            where = [pa.array(np.full(len(at), block)), pa.array(np.full(len(at), host, np.int32))]
            yield pa.record_batch(
                [*where, *(taken.columns if taken else ())], names=["__block", "__host", *columns]
            )

    return run


def writer(job: Remarking) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow`` that takes (__block, __host, fresh bits), rows as they were
    read, and writes the replicas.
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
        files = BlockFiles(Path(job.folder), stem, job.force)
        written = [
            line
            for (block, host), found in fresh.items()
            if (line := _written(job, files, block, host, np.concatenate(found))) is not None
        ]
        seals = files.close()
        for file, *numbers in written:
            line = (gethostname(), file, *seals[str(file)], *numbers)
            yield pa.record_batch([pa.array([value]) for value in line], names=_REPORT.names)

    return run


def _replicas(batches: Iterable[pa.RecordBatch]) -> Iterator[Place]:
    for batch in batches:
        yield from zip(
            batch.column("__block").to_pylist(), batch.column("__host").to_pylist(), strict=True
        )


def _written(
    job: Remarking, files: BlockFiles, block: int, host: int, fresh: np.ndarray
) -> tuple[str | int, ...] | None:
    """A line of the report; None when nothing is left of the block."""
    stream = job.streams[block]
    indexes = job.predicate.indexes(stream)
    batch = remarked(
        job.rows(block, host), fresh, job.kept, job.bitmaps, stream, job.watermarks[stream], indexes
    )
    if batch is None:
        return None
    address, rows = files.write(stream, batch), Rows(batch)
    return address.file, block, host, address.part, batch.num_rows, rows.nbytes, *rows.span()
