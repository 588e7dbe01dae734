"""A file system that knows what a cut of the power leaves of a folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from braid.engine.disk import Disk, Place


class PowerDisk(Disk):
    """The file system of this machine. Of a file in ``root``, a cut of the power leaves the content
    that the file had when it was last forced to disk; of a folder, the names.

    ``before`` is called with "sync", "replace" or "link" and a path relative to ``root``, before
    that is done. Nothing is forced to the real disk.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.lock_of_all = root, threading.RLock()
        self.contents: dict[int, bytes] = {}
        self.folders: dict[Path, dict[str, int]] = {}
        self.before: Callable[[str, str], None] = lambda operation, name: None

    def _note(self, operation: str, path: Place) -> None:
        self.before(operation, os.path.relpath(path, self.root))

    def write(self, path: Place, body: bytes, force: bool = False) -> None:
        super().write(path, body)
        if force:
            self.sync(path)

    def checksum(self, path: Place, force: bool = False) -> tuple[int, int]:
        seal = super().checksum(path)
        if force:
            self.sync(path)
        return seal

    def sync(self, path: Place) -> None:
        with self.lock_of_all:
            self._note("sync", path)
            if self.is_folder(path):
                folder = Path(path)
                self.folders[folder] = {f.name: f.stat().st_ino for f in folder.iterdir()}
            else:
                held = os.open(path, os.O_RDONLY)  # so that no other file gets its number
                self.contents[os.fstat(held).st_ino] = self.read(path)

    def replace(self, old: Place, new: Place) -> None:
        with self.lock_of_all:
            self._note("replace", new)
            super().replace(old, new)

    def link(self, old: Place, new: Place) -> None:
        with self.lock_of_all:
            self._note("link", new)
            super().link(old, new)

    def unlink(self, path: Place, missing_ok: bool = False) -> None:
        with self.lock_of_all:
            super().unlink(path, missing_ok)

    def leave_after_cut(self, target: Path, all_names: bool) -> None:
        """Copy what a cut of the power leaves now. Names that were not forced to disk are there or
        not; the content of such files is gone.
        """
        self._leave(self.root, target, all_names)

    def _leave(self, folder: Path, target: Path, all_names: bool) -> None:
        target.mkdir(parents=True)
        names = self.folders.get(folder, {})
        if all_names:
            names = {f.name: f.stat().st_ino for f in folder.iterdir()}
        for name, number in names.items():
            if (folder / name).is_dir():
                self._leave(folder / name, target / name, all_names)
            else:
                (target / name).write_bytes(self.contents.get(number, b""))
