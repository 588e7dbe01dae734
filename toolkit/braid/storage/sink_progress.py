"""How far a run's results have been given to its sink."""

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
    """The last batch that has been delivered, in a file, on disk if ``force``; ``check`` raises
    Superseded where another driver has the run.
    """

    def __init__(self, file: Path, force: bool, check: Callable[[], None] = skip_check) -> None:
        self.file, self.force, self.check = file, force, check

    @property
    def last_batch(self) -> int:
        """-1: none. Raises Damaged."""
        if not current_file_system().exists(self.file):
            return -1
        body = durable_files.read_checksummed(self.file, f"{self.file}")
        return msgspec.json.decode(body, type=_Delivered).batch

    def mark_delivered(self, batch: int) -> None:
        """All batches up to this one have been delivered."""
        body = durable_files.encode_checksummed(_Delivered(VERSION, batch))
        durable_files.write_atomically(self.file, body, self.force, check=self.check)

    def truncate(self, batch: int) -> None:
        """What comes after this batch will be another's, and has not been delivered."""
        if batch < self.last_batch:
            self.mark_delivered(batch)
