"""A table as input of a run: one Arrow file, ALIAS.arrow, with a record batch for each micro-batch.

It is never rewritten. A micro-batch is verified and decoded when it is read, so that a run reads no
more of the file than it needs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from braid.core.run_state import FileChecksum
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.util.file_system import current_file_system

_MAGIC = 8
"""Bytes before the first message of an Arrow file."""
_LARGE = 1 << 14
"""Average bytes of a micro-batch from which columns are compressed. Decoding them takes less time
than writing and verifying the bytes that it saves.
"""


def write_table(
    rows: pa.Table,
    numbers: np.ndarray,
    batches: int,
    path: Path,
    check: Callable[[], None] = durable_files.skip_check,
) -> None:
    """Write the rows in the order of micro-batches.

    - ``numbers``: micro-batch of each row.
    - ``batches``: number of micro-batches.
    - ``check``: raises FencedError if another driver has taken over the run.
    """
    ordered, ends = sort_by_micro_batch(rows, numbers, batches)
    ordered = ordered.cast(read_parquet_schema(ordered.schema)).unify_dictionaries()
    codec = "lz4" if ordered.nbytes >= _LARGE * batches else None
    temporary = durable_files.name_temporary(path)
    with (
        current_file_system().open_sink(temporary) as sink,
        pa.ipc.new_file(
            sink, ordered.schema, options=pa.ipc.IpcWriteOptions(compression=codec)
        ) as file,
    ):
        for start, end in pairwise([0, *ends.tolist()]):
            file.write_batch(_take_one_batch(ordered, start, end))
    publish_file(temporary, path, check)


def publish_file(temporary: Path, path: Path, check: Callable[[], None]) -> None:
    """Give a file its final name. ``check``: as for ``write_table``."""
    check()
    try:
        current_file_system().replace_file(temporary, path)
    except FileNotFoundError:  # a driver that takes over removes temporary files
        check()
        raise


def sort_by_micro_batch(
    rows: pa.Table, numbers: np.ndarray, batches: int
) -> tuple[pa.Table, np.ndarray]:
    """Return the rows in the order of micro-batches, and the row at which each of them ends."""
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(1, batches + 1)).astype(np.int64)
    is_sorted = bool(np.all(order == np.arange(len(order))))
    return rows if is_sorted else rows.take(pa.array(order)), ends


def read_parquet_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns as a Parquet file has them, of which results consist."""
    empty = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), empty)
    return pq.read_schema(pa.BufferReader(empty.getvalue()))


def _take_one_batch(rows: pa.Table, start: int, end: int) -> pa.RecordBatch:
    batches = rows.slice(start, end - start).to_batches()
    if len(batches) == 1:
        return batches[0]
    if batches:
        return pa.concat_batches(batches)
    if rows.num_rows:  # a dictionary is the same in all record batches of a file
        return rows.to_batches()[0].slice(0, 0)
    return pa.record_batch([pa.array([], f.type) for f in rows.schema], schema=rows.schema)


def checksum_parts(path: Path, force: bool) -> list[FileChecksum]:
    """Return the checksums of the file's parts: its head, each micro-batch, and Arrow's footer.

    ``force``: force the file to disk.
    """
    if force:
        durable_files.fsync_path(path)
    content = current_file_system().map_file(path).read_buffer()
    bounds = [0, *_find_record_batches(content), content.size]
    parts = (content[start:end] for start, end in pairwise(bounds))
    return [FileChecksum(part.size, zlib.crc32(part)) for part in parts]


def _find_record_batches(content: pa.Buffer) -> Iterator[int]:
    """Yield the position of each record batch, and that after the last one."""
    source, end = pa.BufferReader(content), _MAGIC
    source.seek(_MAGIC)
    with suppress(EOFError):
        while True:
            if pa.ipc.read_message(source).type == "record batch":
                yield end
            end = source.tell()
    yield end


class TableInput:
    """A table's micro-batches, mapped from their file. ``checksums``: see ``checksum_parts``."""

    def __init__(self, path: Path, checksums: Sequence[FileChecksum]) -> None:
        self.path, self._checksums = path, checksums
        self._ends = [*accumulate((part.size_bytes for part in checksums), initial=0)]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns. Raises DamagedRunError."""
        return pa.ipc.open_stream(self._head[_MAGIC:]).schema

    def read_micro_batch(self, number: int) -> pa.Table:
        """Return the rows of a micro-batch; none after the last one. Raises DamagedRunError."""
        if number > len(self._checksums) - 3:  # a head and a footer are parts, too
            return self.schema.empty_table()
        stream = b"".join((self._head[_MAGIC:], self._read_part(1 + number)))
        return pa.ipc.open_stream(stream).read_all()

    def check_parts(self, number: int | None, deep: bool) -> None:
        """Raise DamagedRunError unless a micro-batch is what was written.

        ``number``: None: check all of the file. Not ``deep``: compare lengths only.
        """
        self._check_length()
        parts = range(len(self._checksums))
        chosen = parts if number is None else parts[1:-1][number : number + 1]
        for part in chosen if deep else ():
            self._read_part(part)

    def _check_length(self) -> None:
        try:
            size = current_file_system().read_size(self.path)
        except FileNotFoundError:
            raise DamagedRunError(f"{self.path} is missing") from None
        if size != self._ends[-1]:
            raise DamagedRunError(
                f"{self.path} is damaged: it has {size} bytes, {self._ends[-1]} were written"
            )

    @cached_property
    def _head(self) -> pa.Buffer:
        return self._read_part(0)

    @cached_property
    def _content(self) -> pa.Buffer:
        self._check_length()
        return current_file_system().map_file(self.path).read_buffer()

    def _read_part(self, part: int) -> pa.Buffer:
        body = self._content[self._ends[part] : self._ends[part + 1]]
        crc32, written = zlib.crc32(body), self._checksums[part].crc32
        if crc32 != written:
            is_batch = 0 < part < len(self._checksums) - 1
            what = f" of batch {part}" if is_batch else ""
            raise DamagedRunError(
                f"{self.path} is damaged: its checksum{what} is {crc32:08x}, that of what was "
                f"written {written:08x}"
            )
        return body
