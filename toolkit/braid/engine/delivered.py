"""How far a run's results have been given to its sink."""

from __future__ import annotations

from pathlib import Path

import msgspec

from braid.core.state import VERSION
from braid.engine import durable
from braid.engine.disk import disk


class _Delivered(msgspec.Struct, frozen=True):
    v: int
    batch: int


class Delivered:
    """The last batch that has been delivered, in a file, on disk if ``force``."""

    def __init__(self, file: Path, force: bool) -> None:
        self.file, self.force = file, force

    @property
    def last(self) -> int:
        """-1: none. Raises Damaged."""
        if not disk().exists(self.file):
            return -1
        body = durable.opened(self.file, f"{self.file}")
        return msgspec.json.decode(body, type=_Delivered).batch

    def note(self, batch: int) -> None:
        """All batches up to this one have been delivered."""
        durable.put(self.file, durable.sealed(_Delivered(VERSION, batch)), self.force)

    def cut(self, batch: int) -> None:
        """What comes after this batch will be another's, and has not been delivered."""
        if batch < self.last:
            self.note(batch)
