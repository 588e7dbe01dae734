"""How far a run's results have been given to its sink."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from braid.core.state import VERSION
from braid.engine import durable
from braid.engine.disk import disk
from braid.engine.durable import unchecked


class _Delivered(msgspec.Struct, frozen=True):
    v: int
    batch: int


class Delivered:
    """The last batch that has been delivered, in a file, on disk if ``force``; ``check`` raises
    Superseded where another driver has the run.
    """

    def __init__(self, file: Path, force: bool, check: Callable[[], None] = unchecked) -> None:
        self.file, self.force, self.check = file, force, check

    @property
    def last(self) -> int:
        """-1: none. Raises Damaged."""
        if not disk().exists(self.file):
            return -1
        body = durable.opened(self.file, f"{self.file}")
        return msgspec.json.decode(body, type=_Delivered).batch

    def note(self, batch: int) -> None:
        """All batches up to this one have been delivered."""
        body = durable.sealed(_Delivered(VERSION, batch))
        durable.put(self.file, body, self.force, check=self.check)

    def cut(self, batch: int) -> None:
        """What comes after this batch will be another's, and has not been delivered."""
        if batch < self.last:
            self.note(batch)
