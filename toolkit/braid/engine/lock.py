"""Who holds a run on this machine: one process at a time, and none that was killed."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from braid.core.environment import environment
from braid.engine.disk import disk

_ASKING = 0.05
"""Seconds, in which whoever has just asked whether a run is held has done so."""


class Lock:
    """The lock of a run, on a file that stays."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._mine: IO[bytes] | None = None

    def take(self) -> bool:
        """Hold it for this process, until it is released; whether no other one does. Raises OSError
        where the file cannot be made.
        """
        self._mine = disk().lock(self.file)
        if self._mine is None:
            environment().sleep(_ASKING)
            self._mine = disk().lock(self.file)
        return self._mine is not None

    def held(self) -> bool:
        """Whether some process holds it."""
        if not disk().exists(self.file):
            return False
        if (lock := disk().lock(self.file, shared=True)) is None:
            return True
        lock.close()
        return False

    def release(self) -> None:
        """Let other processes have it."""
        if self._mine is not None:
            self._mine.close()
            self._mine = None

    def check(self) -> None:
        """Raise RuntimeError if what this process holds is no longer that of the run."""
        if self._mine is None:
            return
        if not disk().is_same(self._mine, self.file):
            raise RuntimeError(
                f"{self.file} has been removed or replaced, so that another driver may have the "
                "run; this one stops"
            )
