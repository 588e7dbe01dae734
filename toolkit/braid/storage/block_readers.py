"""Read replicas from block files, and keep the files open.

Reports carry checksums of files, which a process verifies when it opens a file that another process
wrote.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from braid.core.run_state import FileChecksum, ReplicaAddress
from braid.kernels.column_views import restore_views
from braid.kernels.host_block_rows import BlockRows
from braid.storage import durable_files
from braid.util.file_system import current_file_system

_MOST_OPEN = 512
"""Open block files per process. Many systems allow a process 1,024 open files."""


_SMALL = 1 << 12
"""Rows up to which a block stays open with its file, since to open it takes as long as to use it.
"""


class OpenBlockFile:
    """A block file that is open, with the segments and the ``small_blocks`` that were read."""

    def __init__(self, path: str) -> None:
        # Arrow reads a file on another thread: three times as long for a small one.
        self._reader = pa.ipc.open_file(current_file_system().map_file(path).read_buffer())
        self._segments: dict[int, pa.RecordBatch] = {}
        self.small_blocks: dict[ReplicaAddress, BlockRows] = {}
        self._reading = Lock()

    def read_segment(self, number: int) -> pa.RecordBatch:
        """Return a segment with all columns."""
        with self._reading:
            if number not in self._segments:
                segment = restore_views(self._reader.get_batch(number))
                self._segments[number] = segment
            return self._segments[number]

    def read_block(self, address: ReplicaAddress) -> BlockRows:
        """Return the rows at an address in this file."""
        if (rows := self.small_blocks.get(address)) is not None:
            return rows
        segment = self.read_segment(address.record_batch)
        rows = BlockRows.from_segment(segment, address.rows, address.key_range)
        if rows.row_total <= _SMALL:
            return self.small_blocks.setdefault(address, rows)
        return rows


class _Readers:
    """Cache of recently used block files that are open in this process.

    Rows that were read stay mapped as long as they are referenced.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[str, OpenBlockFile] = OrderedDict()
        self._verified: dict[str, set[str]] = {}  # verified paths by folder
        self._changing = Lock()

    def mark_verified(self, paths: Iterable[str]) -> None:
        """Mark files as verified, since this process has written them."""
        with self._changing:
            for path in paths:
                self._verified_in_folder(path).add(path)

    def open_verified(self, path: str, checksum: FileChecksum) -> OpenBlockFile:
        """Return an open file. Raises DamagedRunError if it does not match its checksum."""
        with self._changing:
            if path not in self._open:
                verified = self._verified_in_folder(path)
                durable_files.check_file(Path(path), checksum, deep=path not in verified)
                verified.add(path)
                self._open[path] = OpenBlockFile(path)
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
        return self._verified.setdefault(path.rpartition("/")[0], set())

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
            inside = [name for name in self._verified if Path(name).is_relative_to(folder)]
            return [path for name in inside for path in self._verified[name]]


_readers = _Readers()


def mark_verified(paths: Iterable[str]) -> None:
    """Mark files as verified, since this process has written them."""
    _readers.mark_verified(paths)


def open_block_file(path: str, checksum: FileChecksum) -> OpenBlockFile:
    """Return a block file, mapped into memory.

    Raises DamagedRunError if the file does not match its checksum.
    """
    return _readers.open_verified(path, checksum)


def open_replica(path: str, address: ReplicaAddress, checksum: FileChecksum) -> BlockRows:
    """Return a host's replica of a block, mapped into memory. ``path``: of its file.

    Raises DamagedRunError if the file does not match its checksum.
    """
    return open_block_file(path, checksum).read_block(address)


def read_replica_tuples(
    folder: Path,
    addresses: Iterable[ReplicaAddress],
    files: Mapping[str, FileChecksum],
    more: Collection[str] = (),
) -> dict[ReplicaAddress, pa.RecordBatch]:
    """Return the tuples of blocks, each once although several hosts have it.

    They are by the first address of each block: ``addresses`` of the same rows of a segment.
    ``more``: names of columns of Braid's own that are returned too, if blocks have them.
    """
    parts: dict[tuple[Any, ...], list[ReplicaAddress]] = {}
    for address in addresses:
        parts.setdefault((address.file, address.record_batch, address.rows), []).append(address)
    return {several[0]: _read_tuples(folder, several, files, more) for several in parts.values()}


def _read_tuples(
    folder: Path,
    addresses: Sequence[ReplicaAddress],
    files: Mapping[str, FileChecksum],
    more: Collection[str],
) -> pa.RecordBatch:
    """Return the columns of the tuples at several addresses of the same rows."""
    rows = [open_replica(f"{folder / a.file}", a, files[a.file]) for a in addresses]
    present = rows[0].batch.schema.names
    names = [name for name in present if name in more or not name.startswith("__")]
    tuples = rows[0].batch.select(names)
    masks = [mask for each in rows if (mask := each.key_mask()) is not None]
    if len(masks) < len(rows) or (chosen := np.logical_or.reduce(masks)).all():
        return tuples
    return tuples.filter(pa.array(chosen))


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
