"""Record which results have been delivered to a run's sink."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from braid.core.run_state import VERSION
from braid.storage import durable_files
from braid.storage.durable_files import skip_check
from braid.util.file_system import current_file_system


class _Delivered(msgspec.Struct, frozen=True):
    v: int
    batch: int


class SinkProgress:
    """Last delivered batch, stored in a file.

    ``force``: force the file to disk. ``check`` raises FencedError if another driver has taken over
    the run.
    """

    def __init__(self, file: Path, force: bool, check: Callable[[], None] = skip_check) -> None:
        self.file, self.force, self.check = file, force, check

    @property
    def last_batch(self) -> int:
        """Last delivered batch; -1: none. Raises DamagedRunError."""
        if not current_file_system().exists(self.file):
            return -1
        body = durable_files.read_checksummed(self.file, f"{self.file}")
        return msgspec.json.decode(body, type=_Delivered).batch

    def mark_delivered(self, batch: int) -> None:
        """Record that all batches up to this one are delivered."""
        body = durable_files.encode_checksummed(_Delivered(VERSION, batch))
        durable_files.write_atomically(self.file, body, self.force, check=self.check)

    def truncate(self, batch: int) -> None:
        """Forget deliveries after this batch, since later batches will be different."""
        if batch < self.last_batch:
            self.mark_delivered(batch)
