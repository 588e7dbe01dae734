"""Copy of a run's static input: check it, and split that of Spark into micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from braid.core.run_state import VERSION, FileChecksum
from braid.errors import DamagedRunError
from braid.storage import durable_files, micro_batch_files
from braid.storage.background_input_splitter import InputChecksums, InputSplitter
from braid.storage.durable_files import skip_check
from braid.storage.generated_stream import SCHEMA, GeneratedStream
from braid.storage.staged_input import GeneratedFiles, StagedStream, is_staged
from braid.storage.table_input import TableInput, checksum_parts
from braid.util.clock_and_threads import current_workers
from braid.util.file_system import current_file_system


class _Noted(msgspec.Struct):
    """Checksums of micro-batch files by alias, in order.

    ``staged``: checksums of the staged files of streams that are not split yet. ``tables``: those
    of the parts of files that are tables (see table_input). ``generated``: streams whose tuples
    follow from these settings. ``generated_files``: number of files of each; 0: none, as nothing
    but this process reads them.
    """

    format_version: int
    files: InputChecksums
    staged: dict[str, FileChecksum] = {}
    tables: InputChecksums = {}
    generated: dict[str, GeneratedStream] = {}
    generated_files: int = 0


class InputSnapshot:
    """Copy of static input in a folder.

    ALIAS.arrow has all rows of a table. Of a stream of Spark, ALIAS/000012.parquet has the rows of
    micro-batch 12; a staged file, ALIAS.arrow, is split into these while the run goes on.
    ``check_driver`` raises FencedError if another driver has taken over the run.
    """

    def __init__(self, folder: Path, check_driver: Callable[[], None] = skip_check) -> None:
        self.folder, self.check_driver = folder, check_driver
        self._cutting: InputSplitter | None = None

    def write_checksums(
        self,
        force: bool,
        streams: Collection[str] = (),
        generated: Mapping[str, GeneratedStream] | None = None,
        generated_files: int = 0,
    ) -> None:
        """Record the checksums of all files. ``force``: force files and checksums to disk.

        ``generated``: streams that have no files yet. ``generated_files``: how many each will have.

        Raises DamagedRunError if one of the ``streams`` has no file: another driver that is writing
        the same input has removed it.
        """
        staged, tables = dict[str, FileChecksum](), InputChecksums()
        for file in current_file_system().find_files(self.folder, "*.arrow"):
            if is_staged(file):
                staged[file.stem] = durable_files.checksum_file(file, force)
            else:
                tables[file.stem] = checksum_parts(file, force)
        stored_names = staged.keys() | tables.keys()
        folders = current_file_system().find_files(self.folder, "[A-Za-z]*")
        files = [
            file
            for folder in folders
            if folder.name not in stored_names
            for file in current_file_system().find_files(folder, "*.parquet")
        ]
        with current_workers().open_pool("braid-checksum", 8) as pool:
            checksums = [*pool.map(partial(durable_files.checksum_file, force=force), files)]
        parts: InputChecksums = {}
        for file, checksum in zip(files, checksums, strict=True):
            parts.setdefault(file.parent.name, []).append(checksum)
        recorded = dict(generated or {})
        if missing := sorted({*streams} - parts.keys() - stored_names - recorded.keys()):
            raise DamagedRunError(f"{self._staged_path(missing[0])} is missing; start again")
        noted = _Noted(VERSION, parts, staged, tables, recorded, generated_files)
        self._write_file_list(noted, force)

    def _write_file_list(self, noted: _Noted, force: bool) -> None:
        for alias in noted.files if force else ():
            durable_files.fsync_path(self.folder / alias)
        if force:  # folder names too, before files.json names their content
            durable_files.fsync_path(self.folder)
        body = durable_files.encode_checksummed(noted)
        durable_files.write_atomically(
            self.folder / "files.json", body, force, check=self.check_driver
        )
        self.clear_cache()

    def clear_cache(self) -> None:
        """Forget the recorded checksums, as another driver may have changed them."""
        for attribute in ("_noted", "_streams", "_tables"):
            self.__dict__.pop(attribute, None)

    @cached_property
    def _noted(self) -> _Noted:
        body = durable_files.read_checksummed(
            self.folder / "files.json", f"the input in {self.folder}"
        )
        return msgspec.json.decode(body, type=_Noted)

    @cached_property
    def _streams(self) -> dict[str, StagedStream | GeneratedFiles]:
        """Streams that are not split yet."""
        streams: dict[str, StagedStream | GeneratedFiles] = {}
        streams |= {a: StagedStream(self._staged_path(a)) for a in self._noted.staged}
        if count := self._noted.generated_files:
            for a in self.generated:
                find_stream = partial(self._find_generated, a)
                streams[a] = GeneratedFiles(self.folder / a, count, find_stream)
        return streams

    @cached_property
    def _tables(self) -> dict[str, TableInput]:
        return {a: TableInput(self._staged_path(a), c) for a, c in self._noted.tables.items()}

    @property
    def generated(self) -> dict[str, GeneratedStream]:
        """Streams whose tuples are made when they are read, by alias, with their settings."""
        return self._noted.generated

    @property
    def first_unmade_batch(self) -> int:
        """The first micro-batch of generated streams that has no file yet; 0 without files."""
        return 0 if self._cutting is None else self._cutting.first_unrequested

    def _find_generated(self, alias: str) -> GeneratedStream:
        return self.generated[alias]

    def change_generated(self, streams: Mapping[str, GeneratedStream], force: bool) -> None:
        """Write other settings of generated streams. ``force``: force them to disk."""
        noted = msgspec.structs.replace(self._noted, generated={**self.generated, **streams})
        self._write_file_list(noted, force)

    def _staged_path(self, alias: str) -> Path:
        return self.folder / f"{alias}.arrow"

    def read_unsplit_rows(self, alias: str) -> pa.Table | None:
        """Return the rows of a stream that is not completely split; None if it is split."""
        stream = self._streams.get(alias)
        return stream.rows if isinstance(stream, StagedStream) else None

    def stream_schema(self, alias: str) -> pa.Schema:
        """Return the columns of a stream, with the metadata that its writer added."""
        if alias in self.generated:
            return SCHEMA
        if (table := self._tables.get(alias)) is not None:
            return table.schema
        if (stream := self._streams.get(alias)) is not None:
            return stream.micro_batch_schema
        file = micro_batch_files.batch_file(self.folder / alias, 0)
        durable_files.check_file(file, self._noted.files[alias][0])
        with current_file_system().open_source(file) as source:
            return pq.read_schema(source)

    def read_table_batch(self, alias: str, number: int) -> pa.Table:
        """Return the rows of a table in a micro-batch. Raises DamagedRunError."""
        if (stream := self.generated.get(alias)) is not None:
            return stream.make_batch(number)
        return self._tables[alias].read_micro_batch(number)

    def check_files(self, batch: int | None = None, deep: bool = False) -> None:
        """Raise DamagedRunError unless the files of a micro-batch match their recorded lengths.

        ``batch``: None: check all. ``deep``: compare checksums too. Raises RuntimeError if the
        files could not be written.
        """
        for table in self._tables.values():
            table.check_parts(batch, deep)
        try:
            for file, checksum in self._list_checksums(batch):
                durable_files.check_file(file, checksum, deep or file.suffix == ".arrow")
        except DamagedRunError:
            if self._cutting is not None or not self._is_note_changed():
                raise
            self.check_files(batch, deep)

    def _is_note_changed(self) -> bool:
        """Return whether another driver has split a stream since the checksums were read."""
        before = self._noted
        self.clear_cache()
        return self._noted != before

    def _list_checksums(self, batch: int | None) -> Iterator[tuple[Path, FileChecksum]]:
        if batch is not None and (cutting := self._cutting) is not None:
            for alias, checksum in cutting.checksums(batch).items():
                yield micro_batch_files.batch_file(self.folder / alias, batch), checksum
            return
        for alias, checksum in self._noted.staged.items():
            yield self._staged_path(alias), checksum
        for alias, checksums in self._noted.files.items():
            wanted = (
                range(len(checksums)) if batch is None else range(len(checksums))[batch : batch + 1]
            )
            yield from (
                (micro_batch_files.batch_file(self.folder / alias, n), checksums[n]) for n in wanted
            )

    def start_splitting(self, first: int, force: bool) -> None:
        """Start to split staged files in the background, from micro-batch ``first`` on."""
        there = current_file_system().find_files(self.folder, "*.arrow")
        named = self._noted.staged.keys() | self._noted.tables.keys()
        gone = [f for f in there if f.stem not in named]  # split before a kill
        self.check_driver()
        for file in gone:
            current_file_system().remove_file(file, missing_ok=True)
        if self._streams:
            folders = [stream.folder for stream in self._streams.values()]
            durable_files.remove_temporary_files(folders, self.check_driver)
            done = partial(self._finish_splitting, force=force)
            is_lazy = self._noted.generated_files > 0
            self._cutting = InputSplitter(self._streams, first, force, done, is_lazy)

    def _finish_splitting(self, checksums: InputChecksums, force: bool) -> None:
        """Record the checksums of all files, then remove the staged files."""
        staged = [*self._noted.staged]
        self._write_file_list(_Noted(VERSION, self._noted.files | checksums), force)
        self.check_driver()
        for alias in staged:
            current_file_system().remove_file(self._staged_path(alias), missing_ok=True)

    def wait_for_batch(self, batch: int) -> None:
        """Wait until the files of a micro-batch are written or splitting has ended."""
        if (cutting := self._cutting) is not None:
            cutting.wait_for_batch(batch)

    def wait_until_split(self) -> None:
        """Wait until all files are written and recorded. Raises the error of splitting."""
        if (cutting := self._cutting) is not None:
            cutting.wait_until_split()

    def split_all(self, force: bool) -> None:
        """Split all files now. Raises the error of splitting."""
        self.start_splitting(0, force)
        self.wait_until_split()
        self.stop()

    def request_stop(self) -> None:
        """Request that splitting stops."""
        if (cutting := self._cutting) is not None:
            cutting.request_stop()

    def stop(self) -> None:
        """Stop splitting, and wait for the file being written."""
        if (cutting := self._cutting) is not None:  # other threads may set it to None
            cutting.stop()
            self._cutting = None
            self.clear_cache()
