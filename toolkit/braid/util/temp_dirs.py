"""Private temporary folders of this process, which are removed when it ends."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

_PREFIX, _LOCK = "braid-", ".in-use"
_held: dict[Path, tuple[int, IO[bytes]]] = {}
"""By folder, the process that created it, and the lock that marks it as in use."""


def make_temp_dir(name: str) -> Path:
    """Return a new temporary folder that only this user can read.

    It is removed when this process ends, unless removed before. Folders of killed processes are
    removed now.
    """
    root = Path(tempfile.gettempdir())
    for old in root.glob(f"{_PREFIX}*"):
        _remove_if_unlocked(old)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{name}-", dir=root))
    _held[folder] = os.getpid(), _lock_folder(folder)
    return folder


def _lock_folder(folder: Path) -> IO[bytes]:
    """Return the lock of a folder.

    The lock file gets its name after it is locked, because an unlocked one marks the folder of a
    killed process.
    """
    unnamed = folder / f"{_LOCK}.new"
    lock = unnamed.open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(folder / _LOCK)
    return lock


def remove_temp_dir(folder: Path) -> None:
    """Remove a folder now, if this process created it and not the one it was forked from."""
    process, lock = _held.pop(folder)
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()


@atexit.register
def _remove_all() -> None:
    for folder in [*_held]:
        remove_temp_dir(folder)


def _remove_if_unlocked(old: Path) -> None:
    """Remove a folder of this user whose lock is not held."""
    try:
        if old.stat().st_uid != os.getuid():
            return
        with (old / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(old, ignore_errors=True)
    except OSError:  # in use, not such a folder, or removed
        return
