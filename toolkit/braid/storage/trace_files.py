"""Trace of a run: the tuples of its streaming sources in files, for ``why``.

The driver writes a file for each stream and batch to the folder ``trace`` of the run, or of its
bucket, before the commit whose event names it (``core.trace_rows``). Files of whole batches are
removed, oldest first, once they are past the limit of ``trace=``. No result depends on them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from braid.core.run_state import FileChecksum
from braid.core.trace_rows import TraceFile, TraceWritten
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.committed_events import EventArchive
from braid.storage.manifest_log import ManifestLog
from braid.storage.result_retention import RetentionPolicy
from braid.storage.run_files import remove_unnamed_files, result_file_batch
from braid.util.clock_and_threads import current_environment
from braid.util.file_system import current_file_system

FOLDER = "trace"
"""Name of the folder of traced tuples."""
BATCH = "__batch"
"""Column with the batch of a tuple."""


class TraceFiles:
    """Folder ``trace`` of a run. It exists once tuples are traced.

    ``limit``: limit of the files; None: nothing is traced from now on.
    """

    def __init__(self, log: ManifestLog, archive: EventArchive) -> None:
        self._log, self._medium, self._archive = log, log.medium, archive
        self.folder = self._medium.folder / FOLDER
        self.limit: RetentionPolicy | None = None
        self._written: list[TraceWritten] | None = None
        self._expired: list[TraceFile] = []
        self._since = 0

    def list_folders(self) -> list[Path]:
        """Return the folders that a commit forces to disk for these files."""
        there = self.limit is not None and current_file_system().exists(self.folder)
        return [self.folder, self.folder.parent] if there else []

    def write_batch(
        self, batch: int, tuples: Mapping[int, Sequence[pa.RecordBatch]], limit: RetentionPolicy
    ) -> TraceWritten:
        """Write the tuples of a batch, by stream. Return the event that names the files."""
        files = tuple(self._write_file(batch, *each) for each in tuples.items())
        now = int(current_environment().read_time() * 10**6)
        written = TraceWritten(batch, files, now, batch)
        earlier = self._list_retained() if self._written is None else self._written
        every = [*(event for event in earlier if event.batch < batch), written]
        self._written = drop_expired_traces(every, limit, now)
        first = self._written[0].batch
        self._expired = [f for event in every if event.batch < first for f in event.files]
        return TraceWritten(batch, files, now, first)

    def _write_file(self, batch: int, stream: int, parts: Sequence[pa.RecordBatch]) -> TraceFile:
        rows = pa.Table.from_batches(parts)
        number = pa.array(np.full(rows.num_rows, batch, np.int32))
        sink = pa.BufferOutputStream()
        # A dictionary of values that are mostly different takes most of the time.
        settings = {"use_dictionary": [BATCH], "write_statistics": False, "compression": "none"}
        pq.write_table(rows.append_column(BATCH, number), sink, **settings)
        body = sink.getvalue().to_pybytes()
        current_file_system().make_folder(self.folder)
        name = f"{batch:06d}-{current_environment().make_token()}-{stream}.parquet"
        self._medium.put_unique(f"{FOLDER}/{name}", body)
        if self._medium.url:  # the cache needs no copy
            current_file_system().remove_file(self.folder / name)
        return TraceFile(name, FileChecksum(len(body), zlib.crc32(body)), stream, rows.num_rows)

    def _list_retained(self) -> list[TraceWritten]:
        """Return the events that name the present files, in order."""
        written: list[TraceWritten] = self._archive.committed_events_of_type(TraceWritten)
        first = written[-1].first_batch if written else 0
        return [event for event in written if event.batch >= first]

    def list_committed(self) -> Iterator[TraceFile]:
        """Yield the files of retained batches, in order."""
        yield from (file for event in self._list_retained() for file in event.files)

    def find_file(self, file: TraceFile) -> Path | None:
        """Return the path of a file; None: it was removed, maybe just now by the run's driver.

        Raises DamagedRunError.
        """
        path = self.folder / file.name
        try:
            self._medium.fetch_file(f"{FOLDER}/{file.name}")
            durable_files.check_file(path, file.checksum)
        except DamagedRunError:
            if current_file_system().exists(path):
                raise
            return None
        return path

    def remove_file(self, file: TraceFile) -> None:
        """Remove a file, so that its tuples are unknown from now on."""
        self._medium.remove_file(f"{FOLDER}/{file.name}")

    def remove_expired(self, since: int) -> None:
        """Remove the files past the limit after a commit, and those of batches before ``since``."""
        for expired in self._expired:
            self.remove_file(expired)
        self._expired = []
        if since > self._since:
            self._since = since
            for file in current_file_system().find_files(self.folder, "[0-9]*"):
                if result_file_batch(file.name) < since:
                    current_file_system().remove_file(file, missing_ok=True)

    def remove_unnamed(self) -> None:
        """Remove files that no committed batch names."""
        if current_file_system().find_files(self.folder):
            names = {file.name for file in self.list_committed()}
            remove_unnamed_files([self.folder], names, self._medium.check_driver)


def drop_expired_traces(
    written: Sequence[TraceWritten], limit: RetentionPolicy, now: int
) -> list[TraceWritten]:
    """Return the traces of batches within a limit, at least the last one. ``now``: see ``time``."""
    sizes = [sum(file.checksum.size_bytes for file in event.files) for event in written]
    for n, event in enumerate(written[:-1]):
        is_young = limit.max_age is None or now - event.time <= limit.max_age
        is_small = limit.max_bytes is None or sum(sizes[n:]) <= limit.max_bytes
        if is_young and is_small:
            return [*written[n:]]
    return [*written[-1:]]
