"""Compact the results of many batches into few files, for readers of all results.

With each checkpoint of the log, the results of a fixed number of batches are rewritten, in order,
as one file under ``compacted/``. The file is linked there once the checkpoint names it. So
``compacted/*.parquet`` lists complete files of complete batches, from the first on, which never
change. Files that are large already are linked, not rewritten.

The files under ``results/`` remain. A stream that reads them may have seen some, and would treat a
compacted file as new data.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from braid.core.run_state import FileChecksum
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.log_entries import CommitRecord, CompactedResults, FileRef
from braid.storage.run_files import find_moved_file, remove_unnamed_files, result_file_sort_key
from braid.storage.run_medium import RunMedium
from braid.util.file_system import current_file_system

_LARGE = 64 << 20
"""Bytes of result files per compacted file. Larger batches are not rewritten."""
_GROUP_ROWS = 1 << 16
_GROUP_BYTES = 1 << 28
"""Bytes of a row group. Arrow cannot read a struct's text if a row group has 2 GB of it."""


def read_verified_pages(file: Path) -> pa.Table:
    """Return the rows of a result file whose checksum is not known.

    Raises DamagedRunError unless all pages match their own checksums.
    """
    try:
        with current_file_system().open_source(file) as source:
            return pa.concat_tables(
                _read_row_groups(pq.ParquetFile(source, page_checksum_verification=True))
            )
    except FileNotFoundError:
        raise DamagedRunError(f"{file} is missing") from None
    except (OSError, pa.ArrowException) as error:
        raise DamagedRunError(f"{file} is damaged: {error}") from None


def _read_row_groups(file: pq.ParquetFile) -> Iterator[pa.Table]:
    """Yield the rows of each row group. All of them at once may exceed Arrow's limits."""
    for number in range(file.num_row_groups):
        yield file.read_row_group(number)
    if not file.num_row_groups:
        yield file.read()


class ResultCompactor:
    """Folder ``compacted`` of a run."""

    def __init__(self, medium: RunMedium) -> None:
        self.medium, self.folder = medium, medium.folder / "compacted"
        self.new, self.results = medium.folder / "staging", medium.folder / "results"

    def compacted_path(self, name: str) -> Path:
        """Return the path of a compacted file, which a killed run may have left in staging/."""
        return find_moved_file(self.folder, self.new, name)

    def linked_path(self, name: str) -> Path | None:
        """Return the link to an original file in compacted/; None if it was rewritten there."""
        return file if current_file_system().exists(file := self.folder / name) else None

    def compact(self, batches: Sequence[CommitRecord], now: int) -> CompactedResults:
        """Write the results of consecutive batches as parts, which a checkpoint must then name.

        ``now``: microseconds since 1970. Raises DamagedRunError if a result file is damaged.
        """
        parts: list[FileRef] = []
        for several in _group_by_size(batches):
            parts += self._compact_part(several)
        if self.medium.force:
            durable_files.fsync_path(self.new)
        files = [file for commit in batches for file in commit.results]
        size = sum(checksum.size_bytes for _, checksum in {*files, *parts})
        first, end = batches[0].batch, batches[-1].batch + 1
        return CompactedResults(first, end, len(files), tuple(parts), size, now)

    def _compact_part(self, several: Sequence[CommitRecord]) -> Sequence[FileRef]:
        """Return the results of some batches as one file, or their original files.

        The originals are used if they are large, single, or have different columns.
        """
        files = [file for commit in several for file in commit.results]
        files.sort(key=lambda file: result_file_sort_key(file.name))
        if len(files) < 2 or sum(file.checksum.size_bytes for file in files) > _LARGE:
            return files
        name = f"{several[0].batch:06d}-{several[-1].batch:06d}.parquet"
        if (checksum := self._put_part(name, self._read_tables(files))) is None:
            return files
        return [FileRef(name, checksum)]

    def _put_part(self, name: str, tables: Iterable[pa.Table]) -> FileChecksum | None:
        """Write tables as a file under staging/ atomically. Return its checksum.

        None if the tables have different columns.
        """
        temporary = durable_files.name_temporary(self.new / name)
        if not _try_write_tables(temporary, tables):
            current_file_system().remove_file(temporary, missing_ok=True)
            return None
        checksum = durable_files.checksum_file(temporary, self.medium.force)
        self.medium.check_driver()
        current_file_system().replace_file(temporary, self.new / name)
        return checksum

    def _read_tables(self, files: Iterable[FileRef]) -> Iterator[pa.Table]:
        for name, checksum in files:
            body = current_file_system().read_file(self.results / name)
            if FileChecksum(len(body), zlib.crc32(body)) != checksum:
                durable_files.check_file(self.results / name, checksum)
            yield from _read_row_groups(pq.ParquetFile(pa.BufferReader(body)))

    def rebuild_part(self, name: str, batches: Sequence[Sequence[str]]) -> FileRef:
        """Rebuild a part from the published files of its batches.

        Raises DamagedRunError if one of their pages is damaged.
        """
        files = [self.results / file for names in batches for file in names]
        checksum = self._put_part(name, map(read_verified_pages, files))
        assert checksum is not None, "they were merged before"
        named = FileRef(name, checksum)
        current_file_system().replace_file(self.new / name, self.folder / name)
        if self.medium.force:
            durable_files.fsync_path(self.folder)
        return named

    def stage_files(self, rows: Mapping[str, pa.Table]) -> dict[str, int]:
        """Write files of results/ again, under staging/. Return their bytes."""
        checksums = {name: self._put_part(name, [table]) for name, table in rows.items()}
        return {
            name: checksum.size_bytes
            for name, checksum in checksums.items()
            if checksum is not None
        }

    def publish_staged(self, names: Iterable[str]) -> None:
        """Move these files to results/."""
        for name in names:
            current_file_system().replace_file(self.new / name, self.results / name)
        if self.medium.force:
            durable_files.fsync_path(self.results)

    def publish_compacted(self, merged: Iterable[CompactedResults]) -> None:
        """Publish the parts that a checkpoint names. Repeat after a crash.

        A link in staging/ remains until the new one is on disk, so a power cut leaves one of them.
        """
        self.medium.check_driver()
        current_file_system().make_folder(self.folder)
        names = [part.name for each in merged for part in each.part_files]
        new = [name for name in names if current_file_system().exists(self.new / name)]
        for name in names:
            if not current_file_system().exists(self.folder / name):
                folder = self.new if name in new else self.results
                current_file_system().link_file(folder / name, self.folder / name)
        if self.medium.force:
            durable_files.fsync_path(self.folder)
            durable_files.fsync_path(self.folder.parent)
        for name in new:
            current_file_system().remove_file(self.new / name, missing_ok=True)

    def recover_compacted(self, merged: Sequence[CompactedResults]) -> None:
        """Complete what a crash may have interrupted, and remove parts that no checkpoint names."""
        self.publish_compacted(merged)
        named = {part.name for each in merged for part in each.part_files}
        remove_unnamed_files([self.folder], named, self.medium.check_driver)


def _group_by_size(batches: Iterable[CommitRecord]) -> Iterator[list[CommitRecord]]:
    """Yield consecutive batches up to a total size, or a single larger one."""
    several, size = list[CommitRecord](), 0
    for commit in batches:
        more = sum(file.checksum.size_bytes for file in commit.results)
        if several and size + more > _LARGE:
            yield several
            several, size = [], 0
        several, size = [*several, commit], size + more
    if several:
        yield several


def _try_write_tables(file: Path, tables: Iterable[pa.Table]) -> bool:
    """Write tables one after the other if their columns are equal. Return whether they are."""
    waiting, writer, sink = list[pa.Table](), None, None
    rows = size = 0
    try:
        for table in tables:
            if waiting and waiting[0].schema != table.schema:
                return False
            if writer is None:
                sink = current_file_system().open_sink(file)
                writer = pq.ParquetWriter(
                    sink, table.schema, compression="zstd", write_page_checksum=True
                )
            waiting.append(table)
            rows, size = rows + table.num_rows, size + table.nbytes
            if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
                writer.write_table(pa.concat_tables(waiting))
                waiting, rows, size = [table.slice(table.num_rows)], 0, 0
        if writer is not None:
            writer.write_table(pa.concat_tables(waiting))
        return True
    finally:
        if writer is not None:
            writer.close()
        if sink is not None:
            sink.close()
