"""Records of a run's manifest log: entries and checkpoints."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from braid.core.run_state import FileChecksum
from braid.storage.event_log import EventPrefix
from braid.util.clock_and_threads import current_environment


class FileRef(NamedTuple):
    """Name and checksum of a file of a run."""

    name: str
    checksum: FileChecksum


class DriverIdentity(msgspec.Struct, frozen=True):
    """DriverIdentity that writes a log. ``token`` identifies it."""

    host: str
    process: int
    since: str
    token: str = ""

    @classmethod
    def from_environment(cls) -> DriverIdentity:
        """Return a record of this process."""
        here = current_environment()
        since = datetime.fromtimestamp(here.read_time(), UTC).isoformat(" ", "seconds")
        return cls(here.find_host_name(), here.find_process_id(), since, here.make_token())

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, since {self.since}"


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Entry of the log: the commit of a batch, or the start of a driver.

    - ``previous_checksum``: checksum of the previous entry.
    - ``batch``: committed batch, or the one after which the driver goes on. Later commits before it
      do not count.
    - ``state``, ``results``, ``events``: those of the commit; state None: no commit.
    - ``driver``: driver that started.
    """

    format_version: int
    entry: int
    previous_checksum: str
    batch: int
    state: FileRef | None = None
    results: tuple[FileRef, ...] = ()
    events: list[msgspec.Raw] = []
    driver: DriverIdentity | None = None


class CommitRecord(NamedTuple):
    """A commit in memory. If it is part of a checkpoint, it has no state and its entry is -1."""

    entry: int
    batch: int
    state: FileRef | None
    results: tuple[FileRef, ...]


class CompactedResults(NamedTuple):
    """Compacted results of the batches from ``first_batch`` up to, excluding, ``end_batch``.

    - ``files``: number of their original files in results/.
    - ``part_files``: files in compacted/.
    - ``bytes``: bytes of all of these files.
    - ``time``: when they were compacted, in microseconds since 1970.
    - ``irregular``: files in late/ with the irregular rows of these batches.
    - ``event_count``: number of events up to those of these batches; 0: unknown.
    """

    first_batch: int
    end_batch: int
    files: int
    part_files: tuple[FileRef, ...]
    bytes: int = 0
    time: int = 0
    irregular: tuple[FileRef, ...] = ()
    event_count: int = 0


class LogCheckpoint(msgspec.Struct, frozen=True):
    """Checkpoint of the log, which replaces all entries up to ``entry``.

    - ``previous_checksum``: checksum of that entry.
    - ``results``: result files of the batches after the compacted ones, by batch.
    - ``archive``: their events in events.jsonl, after ``opening`` others.
    - ``compacted``: retained compacted results of the first batches.
    """

    format_version: int
    entry: int
    previous_checksum: str
    results: list[tuple[FileRef, ...]]
    archive: EventPrefix
    opening: int
    compacted: list[CompactedResults] = []
