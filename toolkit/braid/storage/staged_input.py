"""Static input of a stream of Spark in one file, ALIAS.arrow, which is split into micro-batches.

It has the rows in the order of micro-batches, and the end of each. So it defines the rest of the
stream, and splitting it again gives the same files.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from braid.core.run_state import FileChecksum
from braid.storage import durable_files, micro_batch_files
from braid.storage.generated_stream import SCHEMA, GeneratedStream
from braid.storage.table_input import publish_file, read_parquet_schema, sort_by_micro_batch
from braid.util.file_system import current_file_system

_ENDS = b"braid.ends"
"""Metadata key under which the file stores the end row of each micro-batch."""


def write_stream(
    rows: pa.Table,
    numbers: np.ndarray,
    batches: int,
    folder: Path,
    alias: str,
    check: Callable[[], None] = durable_files.skip_check,
) -> None:
    """Write a stream's rows in the order of micro-batches.

    - ``numbers``: micro-batch of each row.
    - ``batches``: number of micro-batches.
    - ``check``: raises FencedError if another driver has taken over the run.
    """
    current_file_system().make_folder(folder)
    ordered, ends = sort_by_micro_batch(rows, numbers, batches)
    noted = {**(rows.schema.metadata or {}), _ENDS: ends.tobytes()}
    ordered = ordered.replace_schema_metadata(noted)
    temporary = durable_files.name_temporary(folder / f"{alias}.arrow")
    with (
        current_file_system().open_sink(temporary) as sink,
        pa.ipc.new_file(sink, ordered.schema) as file,
    ):
        file.write_table(ordered)
    publish_file(temporary, folder / f"{alias}.arrow", check)


def is_staged(file: Path) -> bool:
    """Return whether an Arrow file is to be split. Otherwise it is a table (see table_input)."""
    schema = pa.ipc.open_file(current_file_system().map_file(file)).schema
    return _ENDS in (schema.metadata or {})


def write_table_file(path: Path, rows: pa.Table, force: bool) -> FileChecksum:
    """Replace the file of a micro-batch, which keeps its time. Return its checksum.

    ``force``: force it to disk.
    """
    temporary = durable_files.name_temporary(path)
    with current_file_system().open_sink(temporary) as sink:
        pq.write_table(rows, sink, write_page_checksum=True)
    checksum = durable_files.checksum_file(temporary, force)
    current_file_system().set_times(temporary, current_file_system().read_status(path).st_mtime)
    current_file_system().replace_file(temporary, path)
    return checksum


class StagedStream:
    """Staged rows of a stream, mapped from their file."""

    def __init__(self, file: Path) -> None:
        self.file, self.folder = file, file.with_suffix("")
        rows = pa.ipc.open_file(current_file_system().map_file(file)).read_all()
        noted = dict(rows.schema.metadata)
        self.ends = np.frombuffer(noted.pop(_ENDS), np.int64)
        self.rows = rows.replace_schema_metadata(noted)

    @property
    def batches(self) -> int:
        """Number of micro-batches."""
        return len(self.ends)

    @cached_property
    def micro_batch_schema(self) -> pa.Schema:
        """Columns as a micro-batch file has them."""
        return read_parquet_schema(self.rows.schema)

    def create_placeholders(self) -> None:
        """Create an empty file for each micro-batch that is not split yet, in reading order.

        Spark lists the files when it starts, and reads each in its turn.
        """
        current_file_system().make_folder(self.folder)
        micro_batch_files.order_by_mtime(
            self.folder, len(self.ends), current_file_system().read_status(self.file).st_mtime
        )

    def write_micro_batch(self, number: int, force: bool) -> FileChecksum:
        """Write the file of a micro-batch. ``force``: force it to disk. Return its checksum."""
        start = int(self.ends[number - 1]) if number else 0
        rows = self.rows.slice(start, int(self.ends[number]) - start)
        path = micro_batch_files.batch_file(self.folder, number)
        return write_table_file(path, rows, force)


class GeneratedFiles:
    """Micro-batches of a generated stream, each made when its file is written.

    - ``find_stream``: returns the stream with its settings of now.
    """

    def __init__(
        self, folder: Path, batches: int, find_stream: Callable[[], GeneratedStream]
    ) -> None:
        self.folder, self.batches, self.find_stream = folder, batches, find_stream

    @property
    def micro_batch_schema(self) -> pa.Schema:
        """Columns as a micro-batch file has them."""
        return read_parquet_schema(SCHEMA)

    def create_placeholders(self) -> None:
        """Create an empty file for each micro-batch, with the time that it had if it is there."""
        current_file_system().make_folder(self.folder)
        first, end = micro_batch_files.batch_file(self.folder, 0), None
        if current_file_system().exists(first):
            end = current_file_system().read_status(first).st_mtime + self.batches
        micro_batch_files.order_by_mtime(self.folder, self.batches, end)

    def write_micro_batch(self, number: int, force: bool) -> FileChecksum:
        """Write the file of a micro-batch. ``force``: force it to disk. Return its checksum."""
        rows = self.find_stream().make_batch(number)
        path = micro_batch_files.batch_file(self.folder, number)
        return write_table_file(path, rows, force)
