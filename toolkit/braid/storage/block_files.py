"""Write the block and result files of a task attempt. A file exists only if a report names it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from braid.core.change_types import DELETE, INSERT
from braid.core.reserved_columns import CHANGE_TYPE, QUERIES, SIGN, WEIGHT
from braid.core.run_state import FileChecksum, ReplicaAddress
from braid.kernels.column_views import drop_views, list_stored_columns
from braid.kernels.host_block_rows import BlockRows, PartialMatches, take_block_rows
from braid.kernels.join_spec import JoinSpec
from braid.storage import durable_files
from braid.storage.block_readers import mark_verified
from braid.storage.parquet_encoding import choose_encodings
from braid.util.file_system import current_file_system

_EMIT_ROWS = 1 << 16
_EMIT_BYTES = 1 << 28
"""Bytes of pending results that are written at once.

Arrow cannot read a struct's text if a row group has 2 GB of it.
"""
_ONES = pa.array(np.ones(_EMIT_ROWS))
"""Weights of results that load shedding never skips, made once."""
_CHANGES = pa.array([DELETE, INSERT])
_WEIGHT = pa.field(WEIGHT, pa.float64(), nullable=False)
_FILES_APART = 1_000
"""Added to the number of a stream in the name of each further file. A join has fewer streams."""
_LARGE = 1 << 18
"""Bytes from which rows are a segment of their own. Fewer are copied into one with others."""
_MOST_WAITING = 1 << 22
"""Bytes of rows that wait to be written with others."""
_SMALL = 1 << 18
"""File size in bytes up to which Parquet is read on one thread, which is faster."""


class _SegmentWriter:
    """Writer of one block file. Small blocks wait until they fill a segment, a record batch."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._sink = sink = current_file_system().open_sink(path)
        self._writer = pa.ipc.new_file(sink, schema)
        self._waiting: list[pa.RecordBatch] = []
        self._written = self._rows = self._bytes = 0

    def append_rows(self, batch: pa.RecordBatch) -> tuple[int, int]:
        """Append rows. Return the number of their segment, and the position of the first in it."""
        size = batch.nbytes
        if size >= _LARGE or self._bytes + size > _MOST_WAITING:
            self._write_waiting()
        at = self._written, self._rows
        self._waiting.append(batch)
        self._rows, self._bytes = self._rows + batch.num_rows, self._bytes + size
        if size >= _LARGE:
            self._write_waiting()
        return at

    def _write_waiting(self) -> None:
        if self._waiting:
            single = len(self._waiting) == 1
            self._writer.write_batch(
                self._waiting[0] if single else pa.concat_batches(self._waiting)
            )
            self._waiting, self._rows, self._bytes = [], 0, 0
            self._written += 1

    def close_file(self) -> None:
        """Write the last segment, and close the file."""
        self._write_waiting()
        self._writer.close()
        self._sink.close()


class BlockFileWriter:
    """Writer of a task attempt's block files.

    It writes segments: record batches with the rows of one or more blocks, without columns that
    are views of others. Blocks of a stream are in one file if all store the same columns.
    ``force``: force the files to disk.
    """

    def __init__(self, folder: Path, stem: str, force: bool) -> None:
        self.folder, self.stem, self.force = folder, stem, force
        self.writers: dict[str, _SegmentWriter] = {}
        self._file_names: dict[tuple[int, Hashable], str] = {}
        self._pending_checksums: dict[str, Future[FileChecksum]] | None = None

    def append_block(self, stream: int, batch: pa.RecordBatch) -> ReplicaAddress:
        """Append a block's rows to the file of their stream. Return their address."""
        return self.append_blocks(stream, batch, [(0, batch.num_rows)])[0]

    def append_blocks(
        self, stream: int, batch: pa.RecordBatch, bounds: Sequence[tuple[int, int]]
    ) -> list[ReplicaAddress]:
        """Append the rows of several blocks. Return the addresses of those at the ``bounds``."""
        batch = drop_views(batch)
        name = self._name_file(stream, list_stored_columns(batch))
        if name not in self.writers:
            self.writers[name] = _SegmentWriter(self.folder / name, batch.schema)
        segment, start = self.writers[name].append_rows(batch)
        return [
            ReplicaAddress(name, segment, None, (start + first, start + end))
            for first, end in bounds
        ]

    def _name_file(self, stream: int, columns: Hashable) -> str:
        """Return the name of the file of a stream's blocks with these columns."""
        if (stream, columns) not in self._file_names:
            others = sum(s == stream for s, _ in self._file_names)
            number = stream + _FILES_APART * others
            self._file_names[stream, columns] = f"{self.stem}-{number}.arrow"
        return self._file_names[stream, columns]

    def finish_files(self) -> None:
        """Close all files and start to compute their checksums in the background."""
        for writer in self.writers.values():
            writer.close_file()
        paths = [self.folder / name for name in self.writers]
        mark_verified(map(str, paths))
        self._pending_checksums = {
            path.name: durable_files.run_in_background(
                partial(durable_files.checksum_file, path, self.force)
            )
            for path in paths
        }

    def close_files(self) -> dict[str, FileChecksum]:
        """Return the checksums of all files by name, once the files are on disk."""
        if self._pending_checksums is None:
            self.finish_files()
        return {
            name: checksum.result() for name, checksum in (self._pending_checksums or {}).items()
        }


class ResultFileWriter:
    """Writer of a task attempt's result file.

    The file has one struct column per alias, a column of served queries if the run serves many, a
    column of weights if it sheds load, and one of changes if some stream is of changes or answers
    are early. Small pieces are collected before they are written. Pages have checksums, for readers
    that do not know the checksum of the file. ``served``: results by the bit of the query that they
    serve.
    """

    def __init__(self, spec: JoinSpec, folder: Path, stem: str) -> None:
        self.spec, self.folder, self.name = spec, folder, f"{stem}.parquet"
        self.pending: list[pa.RecordBatch] = []
        self.weights: list[np.ndarray | None] = []
        self.rows = self.size = 0
        self.served: dict[int, int] = {}
        self.writer: pq.ParquetWriter | None = None
        self.sink: Any = None

    def append_results(self, results: PartialMatches, weights: np.ndarray | None = None) -> None:
        """Append results. They are written in row groups of limited rows and bytes.

        ``weights``: weights of results, in a run that sheds load; None: all are 1.
        """
        columns = [
            self._make_struct_column(*results.parts[s], s) for s in range(len(self.spec.columns))
        ]
        names = list(self.spec.predicate.aliases)
        if results.queries is not None:
            columns, names = [*columns, pa.array(results.queries)], [*names, QUERIES]
        if self.spec.change_streams or self.spec.kind.is_early:
            columns, names = [*columns, self._make_change_types(results)], [*names, CHANGE_TYPE]
        self._append_batch(pa.record_batch(columns, names=names), weights)

    def append_unmatched(
        self,
        stream: int,
        rows: pa.RecordBatch,
        at: np.ndarray,
        queries: pa.Array | None = None,
        change: str = INSERT,
    ) -> None:
        """Append tuples of a stream without partners: the other structs are NULL.

        ``queries``: bitmaps of the queries that each serves, in a run that serves many.
        ``change``: with early answers, whether they are inserted or taken back.
        """
        aliases, structs = self.spec.predicate.aliases, self.spec.kind.structs
        columns = [
            self._make_struct_column(BlockRows(rows), at, s)
            if s == stream
            else pa.nulls(len(at), self.spec.result_types[s])
            for s in structs
        ]
        names = [aliases[s] for s in structs]
        if queries is not None:
            columns, names = [*columns, queries], [*names, QUERIES]
        if self.spec.kind.is_early:
            columns, names = [*columns, pa.repeat(change, len(at))], [*names, CHANGE_TYPE]
        self._append_batch(pa.record_batch(columns, names=names))

    def _append_batch(self, batch: pa.RecordBatch, weights: np.ndarray | None = None) -> None:
        self.pending.append(batch)
        self.weights.append(weights)
        self.rows += batch.num_rows
        self.size += self.pending[-1].get_total_buffer_size()
        if self.rows >= _EMIT_ROWS or self.size >= _EMIT_BYTES:
            self._write_pending()

    def _make_struct_column(self, rows: BlockRows, at: np.ndarray, stream: int) -> pa.StructArray:
        names = list(self.spec.columns[stream])
        taken = take_block_rows(rows.batch.select(names), at)
        struct = pa.StructArray.from_arrays(taken.columns, fields=list(taken.schema))
        types = self.spec.result_types
        return struct.cast(types[stream]) if types and struct.type != types[stream] else struct

    def _make_change_types(self, results: PartialMatches) -> pa.Array:
        """Return the change of each result: its sign is the product of its members' signs."""
        signs = np.ones(len(results), np.int8)
        for stream in self.spec.change_streams:
            signs *= results.column_values(stream, SIGN)
        return _CHANGES.take(pa.array((signs > 0).astype(np.int8)))

    def _write_pending(self) -> None:
        if not self.pending:
            return
        table = pa.Table.from_batches(self.pending)
        if self.spec.utility_rule is not None:
            table = table.append_column(_WEIGHT, self._pending_weights())
        if self.writer is None:
            self.sink = current_file_system().open_sink(self.folder / self.name)
            self.writer = pq.ParquetWriter(
                self.sink,
                table.schema,
                compression="lz4",
                use_dictionary=False,
                column_encoding=choose_encodings(table),
                write_statistics=False,
                write_page_checksum=True,
            )
        self.writer.write_table(table)
        if QUERIES in table.schema.names:
            self._count_query_results(table.column(QUERIES).to_numpy())
        self.pending, self.weights, self.rows, self.size = [], [], 0, 0

    def _pending_weights(self) -> pa.ChunkedArray:
        """Return the weights of pending results, without a new array if all are 1."""
        if all(weights is None for weights in self.weights):
            return pa.chunked_array([*_iterate_unit_weights(self.rows)], pa.float64())
        pieces = zip(self.pending, self.weights, strict=True)
        return pa.chunked_array(
            [
                w
                for p, w in pieces
                for w in (_iterate_unit_weights(p.num_rows) if w is None else [pa.array(w)])
            ],
            pa.float64(),
        )

    def _count_query_results(self, queries: np.ndarray) -> None:
        some = int(np.bitwise_or.reduce(queries))
        for bit in (k for k in range(some.bit_length()) if some >> k & 1):
            here = int(np.count_nonzero(queries & (1 << bit)))
            self.served[bit] = self.served.get(bit, 0) + here

    def close_file(self) -> dict[str, FileChecksum]:
        """Write pending results and close the file. Return its checksum by name; {}: no results."""
        self._write_pending()
        if self.writer is None:
            return {}
        self.writer.close()
        self.sink.close()
        return {self.name: durable_files.checksum_file(self.folder / self.name, self.spec.fsync)}


def _iterate_unit_weights(count: int) -> Iterator[pa.Array]:
    for since in range(0, count, len(_ONES)):
        yield _ONES.slice(0, count - since)


def read_parquet(path: str | Path, schema: pa.Schema | None = None, **how: Any) -> pa.Table:
    """Return the rows of a Parquet file, as pq.read_table does.

    A small file takes a quarter to half of the time. A column without nulls in the file may be
    nullable in ``schema``.
    """
    with suppress(OSError, pa.ArrowInvalid):  # raised below, with the file's name
        if current_file_system().read_size(path) <= _SMALL:
            with (
                current_file_system().open_source(path) as source,
                pq.ParquetFile(source, pre_buffer=False, **how) as file,
            ):
                if schema is None:
                    return file.read(use_threads=False)
                stored = file.schema_arrow
                if stored.names == schema.names and stored.types == schema.types:
                    return file.read(use_threads=False).cast(schema)
    with current_file_system().open_source(path) as source:
        return pq.read_table(source, schema=schema, **how)
