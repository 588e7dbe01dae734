"""A stream's static input in one file, ALIAS.arrow, of which files of micro-batches are cut.

It has the rows in the order of their micro-batches, and where each of these ends. So it says all
that is still to come of the stream, and what is cut of it again is the same.
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
from braid.util.file_system import current_file_system

_ENDS = b"braid.ends"
"""Where the file says at which row each micro-batch ends."""


def write_stream(
    rows: pa.Table,
    numbers: np.ndarray,
    batches: int,
    folder: Path,
    alias: str,
    check: Callable[[], None] = durable_files.skip_check,
) -> None:
    """Write a stream's rows for ``batches`` micro-batches, by the number of each row's. ``check``
    raises Superseded where another driver has the run.
    """
    current_file_system().make_folder(folder)
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(1, batches + 1)).astype(np.int64)
    noted = {**(rows.schema.metadata or {}), _ENDS: ends.tobytes()}
    ordered = rows.take(pa.array(order)).replace_schema_metadata(noted)
    temporary = durable_files.name_temporary(folder / f"{alias}.arrow")
    with (
        current_file_system().open_sink(temporary) as sink,
        pa.ipc.new_file(sink, ordered.schema) as file,
    ):
        file.write_table(ordered)
    check()
    current_file_system().replace_file(temporary, folder / f"{alias}.arrow")


class StagedStream:
    """The rows of a stream in its file, which is mapped."""

    def __init__(self, file: Path) -> None:
        self.file, self.folder = file, file.with_suffix("")
        rows = pa.ipc.open_file(current_file_system().map_file(file)).read_all()
        noted = dict(rows.schema.metadata)
        self.ends = np.frombuffer(noted.pop(_ENDS), np.int64)
        self.rows = rows.replace_schema_metadata(noted)

    @cached_property
    def micro_batch_schema(self) -> pa.Schema:
        """The columns as a file of a micro-batch has them."""
        empty = pa.BufferOutputStream()
        pq.write_table(self.rows.schema.empty_table(), empty)
        return pq.read_schema(pa.BufferReader(empty.getvalue()))

    def create_placeholders(self) -> None:
        """Have a file there for each micro-batch, in the order in which Spark is to read them: it
        lists them when it starts, and reads one when its turn has come. One that is not cut yet is
        empty.
        """
        current_file_system().make_folder(self.folder)
        for left in current_file_system().find_files(self.folder, ".*"):
            current_file_system().remove_file(left)
        micro_batch_files.order_by_mtime(
            self.folder, len(self.ends), current_file_system().read_status(self.file).st_mtime
        )

    def write_micro_batch(self, number: int, force: bool) -> FileChecksum:
        """Put the file of a micro-batch into its place, on disk if ``force``; its seal."""
        path = micro_batch_files.batch_file(self.folder, number)
        temporary = durable_files.name_temporary(path)
        with current_file_system().open_sink(temporary) as sink:
            pq.write_table(self._slice_micro_batch(number), sink, write_page_checksum=True)
        seal, dated = (
            durable_files.checksum_file(temporary, force),
            current_file_system().read_status(path).st_mtime,
        )
        current_file_system().set_times(temporary, dated)
        current_file_system().replace_file(temporary, path)
        return seal

    def _slice_micro_batch(self, number: int) -> pa.Table:
        start = int(self.ends[number - 1]) if number else 0
        return self.rows.slice(start, int(self.ends[number]) - start)
