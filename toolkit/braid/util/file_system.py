"""The file system, in one place.

The engine and the hub access files through ``current_file_system()`` alone, so that a test can
replace it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import shutil
import zlib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from braid.util.clock_and_threads import Replaceable

Place = str | Path


class FileSystem:
    """The file system of this machine. Methods raise OSError as Python's own functions do."""

    # Content of files

    def read_file(self, path: Place) -> bytes:
        """Return the whole content of a file."""
        with open(path, "rb", buffering=0) as file:
            return file.read()

    def write_file(self, path: Place, body: bytes, force: bool = False) -> None:
        """Write a whole file. With ``force``, its content is on disk on return."""
        with open(path, "wb", buffering=0) as file:
            _write_all_bytes(file, body)
            if force:
                os.fsync(file.fileno())

    def append_bytes(self, path: Place, body: bytes) -> None:
        """Append to a file. It is created if missing."""
        with open(path, "ab", buffering=0) as file:
            _write_all_bytes(file, body)

    def truncate_file(self, path: Place, size: int) -> None:
        """Truncate a file to its first ``size`` bytes."""
        os.truncate(path, size)

    def open_file(self, path: Place, mode: str = "rb") -> IO[bytes]:
        """Open a file to read ("rb") or write ("wb") it in parts."""
        return open(path, mode)

    def open_sink(self, path: Place) -> Any:
        """Open a new file for pyarrow to write. The caller closes it."""
        return pa.OSFile(str(path), "wb")

    def open_source(self, path: Place) -> Any:
        """Open a file for pyarrow to read. The caller closes it."""
        return pa.OSFile(str(path), "rb")

    def map_file(self, path: Place) -> Any:
        """Map a file into memory for pyarrow."""
        return pa.memory_map(str(path))

    def compute_checksum(self, path: Place, force: bool = False) -> tuple[int, int]:
        """Return the size (bytes) and the crc32 of a file.

        With ``force``, it is on disk on return.
        """
        with open(path, "rb", buffering=0) as file:
            size, crc = os.fstat(file.fileno()).st_size, 0
            if size:
                with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
                    crc = zlib.crc32(content)
            if force:
                os.fsync(file.fileno())
        return size, crc

    def force_to_disk(self, path: Place) -> None:
        """Force the content of a file, or the names in a folder, to disk."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    # Names

    def list_names(self, folder: Place) -> list[str]:
        """Return the names in a folder, in any order."""
        return os.listdir(folder)

    def find_files(self, folder: Path, pattern: str = "*") -> list[Path]:
        """Return the sorted paths in a folder whose names match a shell pattern.

        The list is empty if the folder is missing.
        """
        if not self.is_folder(folder):
            return []
        return [folder / n for n in sorted(self.list_names(folder)) if fnmatchcase(n, pattern)]

    def exists(self, path: Place) -> bool:
        """Return whether a file or folder has this name."""
        return os.path.exists(path)

    def is_file(self, path: Place) -> bool:
        """Return whether a file has this name."""
        return os.path.isfile(path)

    def is_folder(self, path: Place) -> bool:
        """Return whether a folder has this name."""
        return os.path.isdir(path)

    def is_writable(self, folder: Place) -> bool:
        """Return whether this process may write to a folder; False if it is missing."""
        return os.access(folder, os.W_OK)

    def read_status(self, path: Place) -> os.stat_result:
        """Return the status of a file: size, inode and times."""
        return os.stat(path)

    def read_size(self, path: Place) -> int:
        """Return the size of a file in bytes."""
        return os.stat(path).st_size

    def measure_free_share(self, folder: Place) -> float:
        """Return the share of the disk of a folder that is free."""
        disk = shutil.disk_usage(folder)
        return disk.free / disk.total

    def replace_file(self, old: Place, new: Place) -> None:
        """Rename a file, replacing an existing one."""
        os.replace(old, new)

    def link_file(self, old: Place, new: Place) -> None:
        """Add a second name to a file. Raises FileExistsError if the name is taken."""
        os.link(old, new)

    def remove_file(self, path: Place, missing_ok: bool = False) -> None:
        """Remove a file name. With ``missing_ok``, it may be missing."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def set_times(self, path: Place, seconds: float) -> None:
        """Set the times of a file, in seconds since 1970."""
        os.utime(path, (seconds, seconds))

    def make_folder(self, folder: Place, mode: int = 0o777) -> None:
        """Create a folder with this ``mode``, and its parents. An existing one is unchanged."""
        os.makedirs(folder, mode, exist_ok=True)

    def remove_folder(self, folder: Place) -> None:
        """Remove a folder with its content. It may be missing."""
        shutil.rmtree(folder, ignore_errors=True)

    # Locks

    def lock_file(self, path: Place, shared: bool = False) -> IO[bytes] | None:
        """Lock a file and return it open; None if another process has locked it.

        The open file holds the lock.

        A file is created if it is missing, unless the lock is ``shared``.
        """
        file = open(path, "rb" if shared else "ab")  # noqa: SIM115 (open holds the lock)
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return file

    def is_same(self, file: IO[bytes], path: Place) -> bool:
        """Return whether an open file still has this name."""
        try:
            return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
        except FileNotFoundError:
            return False


def _write_all_bytes(file: IO[bytes], body: bytes) -> None:
    """Write all bytes. The system may write fewer at a time."""
    left = memoryview(body)
    while left:
        left = left[file.write(left) :]


_current = Replaceable(FileSystem())
current_file_system, replace_file_system = _current.get_current, _current.replace_meanwhile
