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
        self._lock: IO[bytes] | None = None

    def try_acquire(self) -> bool:
        """Acquire the lock for this process. Return whether no other process holds it.

        Raises OSError if the file cannot be created.
        """
        self._lock = current_file_system().lock_file(self.file)
        if self._lock is None:
            current_environment().wait_seconds(_ASKING)
            self._lock = current_file_system().lock_file(self.file)
        return self._lock is not None

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
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def check_held(self) -> None:
        """Raise RuntimeError if the file of a lock that is held has been removed or replaced."""
        if self._lock is None:
            return
        if not current_file_system().is_same(self._lock, self.file):
            raise RuntimeError(
                f"{self.file} has been removed or replaced, so that another driver may have the "
                "run; this one stops"
            )
