"""Follow the events of a run that another process writes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from braid.core.event_io import decode_event


class EventTail:
    """A reader of a growing file of events, in a run folder or a recording (.jsonl).

    Raises ValueError if the path is neither.
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        self.file = path / "events.jsonl" if path.is_dir() else path
        if not self.file.is_file():
            raise ValueError(f"{path} is neither a run folder nor a recording (.jsonl)")
        self._offset, self._begun, self._inode, self._head = 0, b"", -1, b""

    def seconds_since_write(self) -> float:
        """Return the seconds since the last write to the file."""
        return max(0.0, time.time() - self.file.stat().st_mtime)

    def read_new(self) -> list[Any]:
        """Return the events since the last call. An incomplete line is left for the next call.

        If the file was rewritten, all events are returned again, from RunStarted on. That
        happens if the run was resumed or its first events were trimmed.
        """
        with open(self.file, "rb") as file:
            now = os.fstat(file.fileno())
            head = file.readline() + file.readline()  # a new file may reuse the inode
            same = now.st_ino == self._inode and head.startswith(self._head)
            if not same or now.st_size < self._offset + len(self._begun):
                self._offset, self._begun = 0, b""
            self._inode, self._head = now.st_ino, head
            file.seek(self._offset + len(self._begun))
            text = self._begun + file.read()
        *lines, self._begun = text.split(b"\n")
        self._offset += len(text) - len(self._begun)
        return [decode_event(line) for line in lines if line.strip()]
