"""The event that names the files of a batch's trace: the tuples that streaming sources sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from braid.core.run_events import Event
from braid.core.run_state import FileChecksum


class TraceFile(NamedTuple):
    """A file of the tuples of one stream in one batch; ``rows``: their number."""

    name: str
    checksum: FileChecksum
    stream: int
    rows: int


@dataclass(frozen=True, slots=True)
class TraceWritten(Event):
    """Files of the tuples of a batch, of a run that is started with ``trace=``.

    - ``time``: microseconds since 1970.
    - ``first_batch``: first batch whose files are still kept.
    """

    batch: int
    files: tuple[TraceFile, ...]
    time: int
    first_batch: int
