"""Who holds a run on this machine: one process at a time, and none that was killed."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from braid.util.environment import current_environment
from braid.util.file_system import current_file_system

_ASKING = 0.05
"""Seconds, in which whoever has just asked whether a run is held has done so."""


class RunLock:
    """The lock of a run, on a file that stays."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._mine: IO[bytes] | None = None

    def try_acquire(self) -> bool:
        """Hold it for this process, until it is released; whether no other one does. Raises OSError
        where the file cannot be made.
        """
        self._mine = current_file_system().lock_file(self.file)
        if self._mine is None:
            current_environment().wait_seconds(_ASKING)
            self._mine = current_file_system().lock_file(self.file)
        return self._mine is not None

    def is_held(self) -> bool:
        """Whether some process holds it."""
        if not current_file_system().exists(self.file):
            return False
        if (lock := current_file_system().lock_file(self.file, shared=True)) is None:
            return True
        lock.close()
        return False

    def release_lock(self) -> None:
        """Let other processes have it."""
        if self._mine is not None:
            self._mine.close()
            self._mine = None

    def check_held(self) -> None:
        """Raise RuntimeError if what this process holds is no longer that of the run."""
        if self._mine is None:
            return
        if not current_file_system().is_same(self._mine, self.file):
            raise RuntimeError(
                f"{self.file} has been removed or replaced, so that another driver may have the "
                "run; this one stops"
            )
