"""The event that names the files of a batch's irregular rows: late, untimed and early ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from braid.core.run_events import Event
from braid.core.run_state import FileChecksum

LATE, UNTIMED, EARLY = "late", "untimed", "ahead"
"""Why a row is irregular; see ``stream_clocks.IrregularCounts``."""


class IrregularFile(NamedTuple):
    """A file of irregular rows of one stream; its name ends with the number of the stream."""

    name: str
    checksum: FileChecksum

    @property
    def stream(self) -> int:
        """The number of the stream."""
        return int(self.name.removesuffix(".parquet").rpartition("-")[2])


@dataclass(frozen=True, slots=True)
class IrregularRowsWritten(Event):
    """Files of the late, untimed and early rows of a batch, which has some.

    ``batch``: number of the commit in the log. In a hub, changes of queries are commits, too.
    """

    batch: int
    files: tuple[IrregularFile, ...]
