"""The disk that the engine sees in a simulated world: every call is a step of its driver."""

from __future__ import annotations

import errno
import io
import os
import stat
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

import pyarrow as pa
from braid.util.file_system import FileSystem, Place

from world.drivers import Driver, current
from world.files import Files, Folder, Inode

Step = Callable[[str, str], float]
"""A callback before each operation, with its name and path.

It may freeze the driver, and raises if the driver is dead or the operation fails. It returns the
share of its bytes that a write completes: below 1.0 the write then fails.
"""


class SimulatedDisk(FileSystem):
    """Files in memory. ``step`` is called before each operation."""

    def __init__(self, files: Files, step: Step) -> None:
        self.files, self.step = files, step
        self.locks: dict[int, Driver | None] = {}
        """The owner of each lock, by the number of the file."""

    def read_file(self, path: Place) -> bytes:
        self.step("read", str(path))
        return self.files.file(str(path)).content

    def write_file(self, path: Place, body: bytes, force: bool = False) -> None:
        done = self.step("write", str(path))
        node = self.files.create(str(path))
        self._add(node, body, done, path)
        if force:
            self.step("force", str(path))
            self.files.force(node)

    def append_bytes(self, path: Place, body: bytes) -> None:
        done = self.step("append", str(path))
        there = self.files.find(str(path))
        node = self.files.create(str(path)) if there is None else self.files.file(str(path))
        self._add(node, body, done, path)

    def _add(self, node: Inode, body: bytes, done: float, path: Place) -> None:
        self.files.append(node, bytes(body)[: int(done * len(body))])
        if done < 1:
            self.step("give up", str(path))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def truncate_file(self, path: Place, size: int) -> None:
        self.step("truncate", str(path))
        node = self.files.file(str(path))
        self.files.change(node, node.content[:size].ljust(size, b"\0"))

    def open_file(self, path: Place, mode: str = "rb") -> IO[bytes]:
        if mode != "rb":
            return self.open_sink(path)
        self.step("open", str(path))
        return _Reading(self.files.file(str(path)), str(path))

    def open_sink(self, path: Place) -> Any:
        self.step("create", str(path))
        return _Writing(self, self.files.create(str(path)), str(path))

    def open_source(self, path: Place) -> Any:
        return pa.BufferReader(self.read_file(path))

    def map_file(self, path: Place) -> Any:
        return pa.BufferReader(self.read_file(path))

    def compute_checksum(self, path: Place, force: bool = False) -> tuple[int, int]:
        self.step("checksum", str(path))
        node = self.files.file(str(path))
        if force:
            self.step("force", str(path))
            self.files.force(node)
        return len(node.content), zlib.crc32(node.content)

    def force_to_disk(self, path: Place) -> None:
        self.step("sync", str(path))
        node = self.files.find(str(path))
        self.files.force(self.files.file(str(path)) if node is None else node)

    def list_names(self, folder: Place) -> list[str]:
        self.step("names", str(folder))
        return sorted(self.files.folder(str(folder)).names)

    def exists(self, path: Place) -> bool:
        self.step("exists", str(path))
        return self.files.find(str(path)) is not None

    def is_file(self, path: Place) -> bool:
        self.step("is_file", str(path))
        return isinstance(self.files.find(str(path)), Inode)

    def is_folder(self, path: Place) -> bool:
        self.step("is_folder", str(path))
        return isinstance(self.files.find(str(path)), Folder)

    def is_writable(self, folder: Place) -> bool:
        return self.is_folder(folder)

    def read_status(self, path: Place) -> os.stat_result:
        self.step("status", str(path))
        node = self.files.find(str(path))
        node = self.files.file(str(path)) if node is None else node
        kind, size = stat.S_IFDIR, 0
        if isinstance(node, Inode):
            kind, size = stat.S_IFREG, len(node.content)
        times = [int(node.time)] * 3
        exact = {"st_mtime": node.time, "st_mtime_ns": int(node.time * 1e9)}
        return os.stat_result((kind, node.number, 0, 1, 0, 0, size, *times), exact)

    def measure_free_share(self, folder: Place) -> float:
        return 0.5

    def read_size(self, path: Place) -> int:
        return self.read_status(path).st_size

    def replace_file(self, old: Place, new: Place) -> None:
        self.step("replace", str(new))
        self.files.replace(str(old), str(new))

    def link_file(self, old: Place, new: Place) -> None:
        self.step("link", str(new))
        self.files.link(str(old), str(new))

    def remove_file(self, path: Place, missing_ok: bool = False) -> None:
        self.step("unlink", str(path))
        if not missing_ok or self.files.find(str(path)) is not None:
            self.files.unlink(str(path))

    def set_times(self, path: Place, seconds: float) -> None:
        self.step("utime", str(path))
        self.files.file(str(path)).time = seconds

    def make_folder(self, folder: Place, mode: int = 0o777) -> None:
        above = ""
        for part in str(folder).strip("/").split("/"):
            above += f"/{part}"
            if self.files.find(above) is None:
                self.step("mkdir", above)
                if self.files.find(above) is None:
                    self.files.mkdir(above)
        self.files.folder(str(folder))

    def remove_folder(self, folder: Place) -> None:
        for path, _ in [*self.files.walk(str(folder))]:
            self.remove_file(path, missing_ok=True)
        self.step("rmtree", str(folder))
        with suppress(OSError):  # a file that came meanwhile, as for shutil.rmtree
            self._remove(str(folder))

    def _remove(self, folder: str) -> None:
        node = self.files.find(folder)
        if isinstance(node, Folder):
            for name in sorted(node.names):
                self._remove(f"{folder}/{name}")
            self.files.rmdir(folder)

    def lock_file(self, path: Place, shared: bool = False) -> IO[bytes] | None:
        self.step("lock", str(path))
        node = self.files.find(str(path))
        node = self.files.create(str(path)) if node is None and not shared else node
        node = self.files.file(str(path)) if node is None or isinstance(node, Folder) else node
        holder = self.locks.get(node.number)
        if holder is not None and holder.is_alive and holder is not current():
            return None
        if not shared:
            self.locks[node.number] = current()
        return _Locked(self, node, shared)

    def is_same(self, file: IO[bytes], path: Place) -> bool:
        self.step("is_same", str(path))
        return isinstance(file, _Locked) and self.files.find(str(path)) is file.node


class _Reading(io.BytesIO):
    """A file opened for reading, with its content at that time."""

    def __init__(self, node: Inode, path: str) -> None:
        super().__init__(node.content)
        self.name, self.node = path, node


class _Writing(io.RawIOBase):
    """A file being written. Others see its content at once."""

    def __init__(self, disk: SimulatedDisk, node: Inode, path: str) -> None:
        super().__init__()
        self._disk, self.node, self.name = disk, node, path
        self._driver = current()

    def writable(self) -> bool:
        return True

    def write(self, body: Any) -> int:
        body = bytes(body)
        if self._driver is None or not self._driver.is_killed:
            self._disk.files.append(self.node, body)
        return len(body)

    def tell(self) -> int:
        return len(self.node.content)

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        if self._driver is not None and (self._driver.is_killed or current() is not self._driver):
            return  # the end of the process closes it
        done = self._disk.step("close", self.name)
        if done < 1:
            self._disk.files.change(self.node, self.node.content[: int(done * self.tell_size())])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.name)

    def tell_size(self) -> int:
        return len(self.node.content)


class _Locked(io.BytesIO):
    """The lock of a file, held until it is closed."""

    def __init__(self, disk: SimulatedDisk, node: Inode, shared: bool) -> None:
        super().__init__()
        self._disk, self.node, self._shared, self._driver = disk, node, shared, current()

    def close(self) -> None:
        mine = self._disk.locks.get(self.node.number) is self._driver
        if not self._shared and mine:
            del self._disk.locks[self.node.number]
        super().close()
