"""Irregular rows of a run in files: late, untimed and early ones.

A task attempt writes a file for each stream to the folder ``late``. The driver writes the early
rows, since only the clock after the batch tells which rows these are. Events of the manifest name
the files (``core.irregular_rows``), so that files and events are kept as long as each other.

With each checkpoint of the log, the files of the batches whose results are compacted are merged,
one for each stream. The checkpoint names them, and replaces the events' names. The merged files of
the last such batches remain until the next checkpoint, as the one before may have to replace it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from braid.core.irregular_rows import EARLY, IrregularFile, IrregularRowsWritten
from braid.core.run_state import FileChecksum
from braid.errors import DamagedRunError
from braid.kernels.host_block_rows import take_block_rows
from braid.kernels.join_spec import JoinSpec
from braid.storage import durable_files
from braid.storage.block_files import read_parquet
from braid.storage.committed_events import EventArchive
from braid.storage.log_entries import FileRef
from braid.storage.manifest_log import ManifestLog
from braid.storage.run_files import remove_unnamed_files, result_file_batch
from braid.util.clock_and_threads import current_environment
from braid.util.file_system import current_file_system

FOLDER = "late"
"""Name of the folder of irregular rows."""
_LARGE = 64 << 20
"""Bytes of a stream's files that are not merged any more."""
_LOST = ".lost"
"""End of the name of an empty file that stands for one that was damaged and given up."""


def make_irregular_rows(
    rows: pa.RecordBatch, batch: int, reason: str, behind: np.ndarray | None = None
) -> pa.RecordBatch:
    """Return irregular rows as they are stored.

    ``rows`` have the columns of their stream. ``behind``: how far each is behind its limit, in
    microseconds; None: unknown.
    """
    count = rows.num_rows
    columns = {
        "batch": pa.array(np.full(count, batch, np.int32)),
        "reason": pa.repeat(pa.scalar(reason), count),
        "behind": pa.nulls(count, pa.int64()) if behind is None else pa.array(behind),
        "row": pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema)),
    }
    return pa.record_batch([*columns.values()], names=[*columns])


class IrregularRowWriter:
    """Writer of the irregular rows of a task attempt. A task without such rows writes no file."""

    def __init__(self, spec: JoinSpec, batch: int, folder: Path, stem: str) -> None:
        self.spec, self.batch, self.stem = spec, batch, stem
        self.folder = folder / FOLDER
        self._writers: dict[int, tuple[pq.ParquetWriter, Any]] = {}
        self._behind: dict[int, list[np.ndarray]] = {}

    def append_rows(
        self, stream: int, rows: pa.RecordBatch, reason: str, behind: np.ndarray | None = None
    ) -> None:
        """Append tuples of a stream; other columns than those of the stream are left out."""
        tuples = take_block_rows(
            rows.select(list(self.spec.columns[stream])), np.arange(rows.num_rows)
        )
        stored = make_irregular_rows(tuples, self.batch, reason, behind)
        if stream not in self._writers:
            current_file_system().make_folder(self.folder)
            sink = current_file_system().open_sink(self.folder / self._name_file(stream))
            writer = pq.ParquetWriter(sink, stored.schema, write_page_checksum=True)
            self._writers[stream] = writer, sink
        self._writers[stream][0].write_batch(stored)
        if behind is not None and len(behind):
            self._behind.setdefault(stream, []).append(behind)

    def measure_lateness(self) -> dict[int, int]:
        """Return the 95th percentile of how far late tuples are behind, by stream."""
        parts = {stream: np.concatenate(behind) for stream, behind in self._behind.items()}
        return {stream: round(np.percentile(behind, 95)) for stream, behind in parts.items()}

    def _name_file(self, stream: int) -> str:
        return f"{self.stem}-{stream}.parquet"

    def close_files(self) -> dict[str, FileChecksum]:
        """Close the files. Return their checksums by name."""
        checksums = {}
        for stream, (writer, sink) in self._writers.items():
            writer.close()
            sink.close()
            name = self._name_file(stream)
            checksums[name] = durable_files.checksum_file(self.folder / name, self.spec.fsync)
        return checksums


class IrregularFiles:
    """Folder ``late`` of a run. It exists once there are irregular rows."""

    def __init__(self, log: ManifestLog, archive: EventArchive) -> None:
        self._log, self._medium, self._archive = log, log.medium, archive
        self.folder = self._medium.folder / FOLDER

    def list_folders(self) -> list[Path]:
        """Return the folders that a commit forces to disk for these files."""
        there = current_file_system().exists(self.folder)
        return [self.folder, self.folder.parent] if there else []

    def write_early_rows(self, batch: int, stream: int, rows: pa.RecordBatch) -> IrregularFile:
        """Write rows of a stream that are too far ahead of its clock after a batch."""
        return self.write_rows(batch, stream, [make_irregular_rows(rows, batch, EARLY)])

    def write_rows(self, batch: int, stream: int, parts: Sequence[pa.RecordBatch]) -> IrregularFile:
        """Write the irregular rows of a stream in a batch, as ``make_irregular_rows`` has them."""
        name = f"{batch:06d}-{current_environment().make_token()}-{stream}.parquet"
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_batches(parts), sink, write_page_checksum=True)
        body = sink.getvalue().to_pybytes()
        current_file_system().make_folder(self.folder)
        self._medium.put_unique(f"{FOLDER}/{name}", body)
        return IrregularFile(name, FileChecksum(len(body), zlib.crc32(body)))

    def list_committed(self) -> Iterator[IrregularFile]:
        """Yield the files with the irregular rows of retained batches, in order."""
        return self._list_files(self._read_events(self._log.first_uncompacted_batch))

    def _read_events(self, first_batch: int) -> list[IrregularRowsWritten]:
        """Return the events that name the files of batches from ``first_batch`` on."""
        self._log.read_new_entries()
        earlier = (group for group in self._log.merged if group.end_batch <= first_batch)
        first = max((group.event_count for group in earlier), default=0)
        written = self._archive.committed_events_of_type(IrregularRowsWritten, first)
        return [event for event in written if event.batch >= first_batch]

    def _list_files(self, written: Iterable[IrregularRowsWritten]) -> Iterator[IrregularFile]:
        """Yield the merged files, and those ``written`` in later batches."""
        merged, since = [*self._log.merged], self._log.first_uncompacted_batch
        yield from (IrregularFile(*file) for group in merged for file in group.irregular)
        yield from (file for event in written if event.batch >= since for file in event.files)

    def list_names(self) -> set[str]:
        """Return the names of all files that must stay, among them marks of lost ones."""
        events = self._read_events(self._log.merged[-1].first_batch if self._log.merged else 0)
        files = [*self._list_files(events), *(file for event in events for file in event.files)]
        return {name for file in files for name in (file.name, f"{file.name}{_LOST}")}

    def merge_files(self, first: int, end: int) -> tuple[FileRef, ...]:
        """Merge the files of batches from ``first`` up to, excluding, ``end``. Return the files.

        They are one for each stream, or the original ones if there is one, if they are large or
        damaged. A checkpoint must then name them.
        """
        by_stream = dict[int, list[IrregularFile]]()
        for event in self._read_events(first):
            for file in event.files if event.batch < end else ():
                by_stream.setdefault(file.stream, []).append(file)
        merged_files = [
            self._merge_stream(f"{first:06d}-{end - 1:06d}-{stream}.parquet", by_stream[stream])
            for stream in sorted(by_stream)
        ]
        if merged_files and self._medium.force:
            durable_files.fsync_path(self.folder)
        return tuple(file for files in merged_files for file in files)

    def _merge_stream(self, name: str, files: Sequence[IrregularFile]) -> list[FileRef]:
        originals = [FileRef(*file) for file in files]
        if len(files) < 2 or sum(file.checksum.size_bytes for file in files) > _LARGE:
            return originals
        try:
            paths = [self.find_file(file) for file in files]
            tables = [read_parquet(path) for path in paths if path is not None]
        except DamagedRunError:
            return originals
        if not tables:
            return originals
        sink = pa.BufferOutputStream()
        whole_rows = pa.concat_tables(tables)
        pq.write_table(whole_rows, sink, compression="zstd", write_page_checksum=True)
        body = sink.getvalue().to_pybytes()
        check = self._medium.check_driver
        durable_files.write_atomically(self.folder / name, body, self._medium.force, check=check)
        return [FileRef(name, FileChecksum(len(body), zlib.crc32(body)))]

    def find_paths(
        self, written: Iterable[IrregularRowsWritten], streams: Sequence[str], deep: bool
    ) -> dict[str, list[str]]:
        """Return the paths of the files of retained batches by stream, without those given up.

        ``written``: all events of the run. Raises as ``find_file`` does.
        """
        files = dict[str, list[str]]()
        for file in self._list_files(written):
            if (path := self.find_file(file, deep)) is not None:
                files.setdefault(streams[file.stream], []).append(str(path))
        return files

    def find_file(self, file: IrregularFile, deep: bool = True) -> Path | None:
        """Return the path of a file; None: it was given up (``give_up_file``).

        ``deep``: compare its checksum, not only its length. Raises DamagedRunError if it is missing
        or damaged.
        """
        if current_file_system().exists(self._name_gap(file)):
            return None
        path = self._medium.fetch_file(f"{FOLDER}/{file.name}")
        durable_files.check_file(path, file.checksum, deep)
        return path

    def _name_gap(self, file: IrregularFile) -> Path:
        """Return the path of the empty file that states that a file is lost."""
        return self.folder / f"{file.name}{_LOST}"

    def give_up_file(self, file: IrregularFile) -> None:
        """State that a damaged file is lost, so that its rows are left out from now on."""
        current_file_system().make_folder(self.folder)
        current_file_system().append_bytes(self._name_gap(file), b"")
        current_file_system().remove_file(self.folder / file.name, missing_ok=True)

    def remove_unnamed(self) -> None:
        """Remove files that no committed batch names."""
        if current_file_system().find_files(self.folder):
            names = self.list_names()
            remove_unnamed_files([self.folder], names, self._medium.check_driver)

    def remove_expired(self, since: int) -> None:
        """Remove the files of batches before ``since``."""
        files = current_file_system().find_files(self.folder, "[0-9]*") if since else []
        for file in files:
            if result_file_batch(file.name) < since:
                current_file_system().remove_file(file, missing_ok=True)
