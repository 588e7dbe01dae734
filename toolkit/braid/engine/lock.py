"""Who holds a run on this machine: one process at a time, and none that was killed."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import IO

_ASKING = 0.05
"""Seconds, in which whoever has just asked whether a run is held has done so."""


class Lock:
    """The lock of a run, on a file that stays."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._mine: IO[str] | None = None

    def take(self) -> bool:
        """Hold it for this process, until it is released; whether no other one does. Raises OSError
        where the file cannot be made.
        """
        lock = open(self.file, "w")  # noqa: SIM115 (held until release)
        if not _locked(lock, fcntl.LOCK_EX):
            time.sleep(_ASKING)
            if not _locked(lock, fcntl.LOCK_EX):
                lock.close()
                return False
        self._mine = lock
        return True

    def held(self) -> bool:
        """Whether some process holds it."""
        if not self.file.exists():
            return False
        with open(self.file) as lock:
            return not _locked(lock, fcntl.LOCK_SH)

    def release(self) -> None:
        """Let other processes have it."""
        if self._mine is not None:
            self._mine.close()
            self._mine = None

    def check(self) -> None:
        """Raise RuntimeError if what this process holds is no longer that of the run."""
        if self._mine is None:
            return
        file = self.file
        if not file.exists() or not os.path.samestat(os.fstat(self._mine.fileno()), file.stat()):
            raise RuntimeError(
                f"{file} has been removed or replaced, so that another driver may have the run; "
                "this one stops"
            )


def _locked(file: IO[str], how: int) -> bool:
    """Lock an open file, unless another process's lock is in the way."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
