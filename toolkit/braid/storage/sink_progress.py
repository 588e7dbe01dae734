"""Record which results have been delivered to a run's sink."""

from __future__ import annotations

import msgspec

from braid.core.run_state import VERSION
from braid.storage import durable_files
from braid.storage.run_medium import RunMedium
from braid.util.file_system import current_file_system


class _Delivered(msgspec.Struct, frozen=True):
    format_version: int
    batch: int


class SinkProgress:
    """File ``sink-progress.json`` of a run: the last batch that its sink has received."""

    name = "sink-progress.json"

    def __init__(self, medium: RunMedium) -> None:
        self._medium, self.path = medium, medium.folder / self.name

    def has_file(self) -> bool:
        """Return whether the run has had a sink in this folder."""
        return current_file_system().exists(self.path)

    @property
    def last_batch(self) -> int:
        """Last delivered batch; -1: none. Raises DamagedRunError."""
        if not self._medium.has_file(self.name):
            return -1
        body = durable_files.read_checksummed(self.path, f"{self.path}")
        return msgspec.json.decode(body, type=_Delivered).batch

    def mark_delivered(self, batch: int) -> None:
        """Record that all batches up to this one are delivered.

        A driver that does not know that it has lost a run in a bucket may write an earlier batch.
        Later results are then delivered again.
        """
        self._medium.put_file(
            self.name, durable_files.encode_checksummed(_Delivered(VERSION, batch))
        )

    def truncate(self, batch: int) -> None:
        """Forget deliveries after this batch, since later batches will be different."""
        if batch < self.last_batch:
            self.mark_delivered(batch)
