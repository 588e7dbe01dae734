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
_held: list[IO[bytes]] = []
"""The locks by which others know that this process's folders are in use."""


def folder(name: str) -> Path:
    """A new folder of the system's temporary directory that only this user can read. It goes when
    this process ends; what processes that were killed have left goes now.
    """
    root = Path(tempfile.gettempdir())
    for old in root.glob(f"{_PREFIX}*"):
        _sweep(old)
    made = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{name}-", dir=root))
    lock = (made / _LOCK).open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    _held.append(lock)
    atexit.register(_remove, made, os.getpid())
    return made


def _remove(made: Path, process: int) -> None:
    """Of this process, not of one that it was forked to."""
    if os.getpid() == process:
        shutil.rmtree(made, ignore_errors=True)


def _sweep(old: Path) -> None:
    """Remove a folder of this user's that has a lock which nobody holds."""
    try:
        if old.stat().st_uid != os.getuid():
            return
        with (old / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(old, ignore_errors=True)
    except OSError:  # it is in use, none of these folders, or gone
        return
