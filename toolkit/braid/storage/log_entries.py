"""Records of a run's manifest log: entries and checkpoints."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from braid.core.run_state import FileChecksum
from braid.storage.event_log import EventPrefix
from braid.util.environment import current_environment


class FileRef(NamedTuple):
    """Name and checksum of a file of a run."""

    name: str
    checksum: FileChecksum


class Driver(msgspec.Struct, frozen=True):
    """Driver that writes a log. ``token`` identifies it."""

    host: str
    process: int
    since: str
    token: str = ""

    @classmethod
    def from_environment(cls) -> Driver:
        """Return a record of this process."""
        here = current_environment()
        since = datetime.fromtimestamp(here.read_time(), UTC).isoformat(" ", "seconds")
        return cls(here.find_host_name(), here.find_process_id(), since, here.make_token())

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, since {self.since}"


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Entry of the log: the commit of a batch, or the start of a driver.

    - ``before``: checksum of the previous entry.
    - ``batch``: committed batch, or the one after which the driver goes on. Later commits before it
      do not count.
    - ``state``, ``results``, ``events``: those of the commit; state None: no commit.
    - ``driver``: driver that started.
    """

    v: int
    entry: int
    before: str
    batch: int
    state: FileRef | None = None
    results: tuple[FileRef, ...] = ()
    events: list[msgspec.Raw] = []
    driver: Driver | None = None


class CommitRecord(NamedTuple):
    """A commit in memory. If it is part of a checkpoint, it has no state and its entry is -1."""

    entry: int
    batch: int
    state: FileRef | None
    results: tuple[FileRef, ...]


class CompactedResults(NamedTuple):
    """Compacted results of the batches from ``first`` up to, excluding, ``end``.

    - ``files``: number of their original files in results/.
    - ``parts``: files in compacted/.
    - ``bytes``: bytes of all of these files.
    - ``time``: when they were compacted, in microseconds since 1970.
    """

    first: int
    end: int
    files: int
    parts: tuple[FileRef, ...]
    bytes: int = 0
    time: int = 0


class LogCheckpoint(msgspec.Struct, frozen=True):
    """Checkpoint of the log, which replaces all entries up to ``entry``.

    - ``before``: checksum of that entry.
    - ``results``: result files of the batches after the compacted ones, by batch.
    - ``archive``: their events in events.jsonl, after ``opening`` others.
    - ``merged``: retained compacted results of the first batches.
    """

    v: int
    entry: int
    before: str
    results: list[tuple[FileRef, ...]]
    archive: EventPrefix
    opening: int
    merged: list[CompactedResults] = []
