"""Folders for what need not stay: of this process alone, private, and gone when it ends."""

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
"""By folder, which process made it, and the lock by which others know that it is in use."""


def make_temp_dir(name: str) -> Path:
    """A new folder of the system's temporary directory that only this user can read. It goes when
    this process ends, if not before; what processes that were killed have left goes now.
    """
    root = Path(tempfile.gettempdir())
    for old in root.glob(f"{_PREFIX}*"):
        _remove_if_unlocked(old)
    made = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{name}-", dir=root))
    _held[made] = os.getpid(), _lock_folder(made)
    return made


def _lock_folder(made: Path) -> IO[bytes]:
    """Hold a folder's lock. It has its name only when it is held: one that nobody holds is taken
    for that of a process that was killed.
    """
    unnamed = made / f"{_LOCK}.new"
    lock = unnamed.open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(made / _LOCK)
    return lock


def remove_temp_dir(made: Path) -> None:
    """Remove a folder now, if this process made it, and not one that it was forked from."""
    process, lock = _held.pop(made)
    if os.getpid() == process:
        shutil.rmtree(made, ignore_errors=True)
        lock.close()


@atexit.register
def _remove_all() -> None:
    for made in [*_held]:
        remove_temp_dir(made)


def _remove_if_unlocked(old: Path) -> None:
    """Remove a folder of this user's that has a lock which nobody holds."""
    try:
        if old.stat().st_uid != os.getuid():
            return
        with (old / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(old, ignore_errors=True)
    except OSError:  # it is in use, none of these folders, or gone
        return
