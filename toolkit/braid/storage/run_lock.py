"""Lock of a run on this machine, held by one process at a time and released if it is killed."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from braid.util.clock_and_threads import current_environment
from braid.util.file_system import current_file_system

_ASKING = 0.05
"""Seconds to wait before a retry, in case another process is only checking the lock."""


class RunLock:
    """Lock of a run, on a file that is never removed."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._mine: IO[bytes] | None = None

    def try_acquire(self) -> bool:
        """Acquire the lock for this process. Return whether no other process holds it.

        Raises OSError if the file cannot be created.
        """
        self._mine = current_file_system().lock_file(self.file)
        if self._mine is None:
            current_environment().wait_seconds(_ASKING)
            self._mine = current_file_system().lock_file(self.file)
        return self._mine is not None

    def is_held(self) -> bool:
        """Return whether some process holds the lock."""
        if not current_file_system().exists(self.file):
            return False
        if (lock := current_file_system().lock_file(self.file, shared=True)) is None:
            return True
        lock.close()
        return False

    def release_lock(self) -> None:
        """Release the lock."""
        if self._mine is not None:
            self._mine.close()
            self._mine = None

    def check_held(self) -> None:
        """Raise RuntimeError if the file of a lock that is held has been removed or replaced."""
        if self._mine is None:
            return
        if not current_file_system().is_same(self._mine, self.file):
            raise RuntimeError(
                f"{self.file} has been removed or replaced, so that another driver may have the "
                "run; this one stops"
            )
