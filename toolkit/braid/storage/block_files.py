"""Write the block and result files of a task attempt, and read replicas.

A file exists only if a report names it. Reports carry checksums, which a process verifies when it
opens a file that another process wrote.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from braid.core.plan import Keys
from braid.core.reserved_columns import CHANGE_TYPE, QUERIES, SIGN, WEIGHT
from braid.core.run_state import FileChecksum, ReplicaAddress
from braid.kernels.host_block_rows import BlockRows, PartialMatches, take_block_rows
from braid.kernels.join_spec import (
    GeneratedColumn,
    JoinSpec,
    drop_generated_columns,
    restore_generated_columns,
)
from braid.storage import durable_files
from braid.storage.parquet_encoding import choose_encodings
from braid.util.file_system import current_file_system

_EMIT_ROWS = 1 << 16
_EMIT_BYTES = 1 << 28
"""Bytes of pending results that are written at once.

Arrow cannot read a struct's text if a row group has 2 GB of it.
"""
_ONES = pa.array(np.ones(_EMIT_ROWS))
"""Weights of results that load shedding never skips, made once."""
_CHANGES = pa.array(["delete", "insert"])
_WEIGHT = pa.field(WEIGHT, pa.float64(), nullable=False)
_FILES_APART = 1_000
"""Added to the number of a stream in the name of each further file. A join has fewer streams."""
_MOST_OPEN = 512
"""Open block files per process. Many systems allow a process 1,024 open files."""
_SMALL = 1 << 18
"""File size in bytes up to which Parquet is read on one thread, which is faster."""


class BlockFileWriter:
    """Writer of a task attempt's block files.

    It writes one record batch per block and host, without ``echoes``: columns that copy others.
    Blocks of a stream are in one file if all store the same orders. ``force``: force the files to
    disk.
    """

    def __init__(
        self,
        folder: Path,
        stem: str,
        force: bool,
        echoes: Callable[[int], Sequence[GeneratedColumn]] = lambda _: (),
    ) -> None:
        self.folder, self.stem, self.force, self.echoes = folder, stem, force, echoes
        self.writers: dict[str, Any] = {}
        self.sinks: list[Any] = []
        self.written: dict[str, int] = {}
        self._file_names: dict[tuple[int, tuple[str, ...]], str] = {}
        self._pending_checksums: dict[str, Future[FileChecksum]] | None = None

    def append_block(self, stream: int, batch: pa.RecordBatch) -> ReplicaAddress:
        """Append a block's rows to the file of their stream. Return their address."""
        batch = drop_generated_columns(batch, self.echoes(stream))
        name = self._name_file(stream, tuple(batch.schema.names))
        if name not in self.writers:
            self.sinks.append(current_file_system().open_sink(self.folder / name))
            self.writers[name] = pa.ipc.new_file(self.sinks[-1], batch.schema)
        self.writers[name].write_batch(batch)
        self.written[name] = self.written.get(name, 0) + 1
        return ReplicaAddress(name, self.written[name] - 1)

    def _name_file(self, stream: int, columns: tuple[str, ...]) -> str:
        """Return the name of the file of a stream's blocks with these columns."""
        if (stream, columns) not in self._file_names:
            others = sum(s == stream for s, _ in self._file_names)
            number = stream + _FILES_APART * others
            self._file_names[stream, columns] = f"{self.stem}-{number}.arrow"
        return self._file_names[stream, columns]

    def finish_files(self) -> None:
        """Close all files and start to compute their checksums in the background."""
        for file in (*self.writers.values(), *self.sinks):
            file.close()
        paths = [self.folder / name for name in self.writers]
        _readers.mark_verified(map(str, paths))
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
    column of weights if it sheds load, and one of changes if some stream is of changes. Small
    pieces are collected before they are written. Pages have checksums, for readers that do not know
    the checksum of the file. ``served``: results by the bit of the query they serve.
    """

    def __init__(self, spec: JoinSpec, folder: Path, stem: str) -> None:
        self.spec, self.folder, self.name = spec, folder, f"{stem}.parquet"
        self.pending: list[pa.RecordBatch] = []
        self.weights: list[np.ndarray | None] = []
        self.rows = self.size = 0
        self.served: dict[int, int] = {}
        self.writer: pq.ParquetWriter | None = None
        self.sink: Any = None

    def append_results(self, found: PartialMatches, weights: np.ndarray | None = None) -> None:
        """Append results. They are written in row groups of limited rows and bytes.

        ``weights``: weights of results, in a run that sheds load; None: all are 1.
        """
        columns = [
            self._make_struct_column(*found.parts[s], s) for s in range(len(self.spec.columns))
        ]
        names = list(self.spec.predicate.aliases)
        if found.queries is not None:
            columns, names = [*columns, pa.array(found.queries)], [*names, QUERIES]
        if self.spec.change_streams:
            columns, names = [*columns, self._make_change_types(found)], [*names, CHANGE_TYPE]
        self._append_batch(pa.record_batch(columns, names=names), weights)

    def append_unmatched(
        self,
        stream: int,
        rows: pa.RecordBatch,
        at: np.ndarray,
        queries: pa.Array | None = None,
    ) -> None:
        """Append tuples of a stream without partners: the other structs are NULL.

        ``queries``: bitmaps of the queries that each serves, in a run that serves many.
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

    def _make_change_types(self, found: PartialMatches) -> pa.Array:
        """Return the change of each result: its sign is the product of its members' signs."""
        signs = np.ones(len(found), np.int8)
        for stream in self.spec.change_streams:
            signs *= found.column_values(stream, SIGN)
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


class _Readers:
    """Cache of recently used block files that are open in this process.

    Rows that were read stay mapped as long as they are referenced.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[Any, Lock]] = OrderedDict()
        self._whole: dict[str, set[str]] = {}  # verified paths by folder
        self._changing = Lock()

    def mark_verified(self, paths: Iterable[str]) -> None:
        """Mark files as verified, since this process has written them."""
        with self._changing:
            for path in paths:
                self._verified_in_folder(path).add(path)

    def open_verified(self, path: str, checksum: FileChecksum) -> tuple[Any, Lock]:
        """Return the reader of a file, and a lock to hold while reading.

        Raises DamagedRunError if the file does not match its checksum.
        """
        with self._changing:
            if path not in self._open:
                whole = self._verified_in_folder(path)
                durable_files.check_file(Path(path), checksum, deep=path not in whole)
                whole.add(path)
                # Arrow reads a file on another thread: three times as long for a small one.
                self._open[path] = (
                    pa.ipc.open_file(current_file_system().map_file(path).read_buffer()),
                    Lock(),
                )
            self._open.move_to_end(path)
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
            return self._open[path]

    def close_files(self, paths: Iterable[str]) -> None:
        """Close these files."""
        with self._changing:
            for path in paths:
                self._close_file(path)

    def _verified_in_folder(self, path: str) -> set[str]:
        return self._whole.setdefault(path.rpartition("/")[0], set())

    def _close_file(self, path: str) -> None:
        self._open.pop(path, None)
        self._verified_in_folder(path).discard(path)

    def close_others(self, folder: str, names: Collection[str]) -> None:
        """Close the files of a folder except those in ``names``."""
        with self._changing:
            # Open files are among the verified ones.
            for path in [*self._verified_in_folder(f"{folder}/")]:
                if path.rpartition("/")[2] not in names:
                    self._close_file(path)

    def list_below(self, folder: Path) -> list[str]:
        """Return the open files of a folder."""
        with self._changing:
            inside = [known for known in self._whole if Path(known).is_relative_to(folder)]
            return [path for known in inside for path in self._whole[known]]


_readers = _Readers()


def open_replica(path: str, index: int, keys: Keys | None, checksum: FileChecksum) -> BlockRows:
    """Return a host's replica of a block, mapped into memory.

    Raises DamagedRunError if the file does not match its checksum.
    """
    reader, lock = _readers.open_verified(path, checksum)
    with lock:
        return BlockRows(restore_generated_columns(reader.get_batch(index)), keys)


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
                found = file.schema_arrow
                if found.names == schema.names and found.types == schema.types:
                    return file.read(use_threads=False).cast(schema)
    with current_file_system().open_source(path) as source:
        return pq.read_table(source, schema=schema, **how)


def remove_block_files(files: Collection[Path]) -> None:
    """Remove block files and close them in this process."""
    for file in files:
        # Another start of the run removes them too.
        current_file_system().remove_file(file, missing_ok=True)
    _readers.close_files(map(str, files))


def keep_open_only(folder: Path, names: Collection[str]) -> None:
    """Close the block files of a folder except those in ``names``. Others may have been removed."""
    _readers.close_others(str(folder), names)


def close_block_files(folder: Path) -> None:
    """Close all block files of a folder in this process."""
    _readers.close_files(_readers.list_below(folder))
