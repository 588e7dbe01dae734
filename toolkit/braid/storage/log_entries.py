"""Records of a run's log, by entry and rolled up."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from braid.core.run_state import FileChecksum
from braid.storage.event_log import EventPrefix
from braid.util.environment import current_environment


class Named(NamedTuple):
    """A file of a run."""

    name: str
    seal: FileChecksum


class Driver(msgspec.Struct, frozen=True):
    """Who writes a log, and since when; ``token`` tells it from all others."""

    host: str
    process: int
    since: str
    token: str = ""

    @classmethod
    def from_environment(cls) -> Driver:
        """This process, now."""
        here = current_environment()
        since = datetime.fromtimestamp(here.read_time(), UTC).isoformat(" ", "seconds")
        return cls(here.find_host_name(), here.find_process_id(), since, here.make_token())

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, since {self.since}"


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry: the commit of ``batch`` with its state, its result files and its events; or, after
    that batch, the ``driver`` that began. ``before`` is the checksum of the entry before.
    """

    v: int
    entry: int
    before: str
    batch: int
    state: Named | None = None
    results: tuple[Named, ...] = ()
    events: list[msgspec.Raw] = []
    driver: Driver | None = None


class Kept(NamedTuple):
    """A commit in memory. One that is rolled up has no state and no entry."""

    entry: int
    batch: int
    state: Named | None
    results: tuple[Named, ...]


class Merged(NamedTuple):
    """The results of the batches from ``first`` up to, not with, ``end`` as few ``parts``: in
    compacted/, and as these many ``files`` in results/. They have so many ``bytes`` in all, and
    were merged at a ``time`` (microseconds since 1970).
    """

    first: int
    end: int
    files: int
    parts: tuple[Named, ...]
    bytes: int = 0
    time: int = 0


class Rolled(msgspec.Struct, frozen=True):
    """What all entries up to ``entry`` said, the last of which has the checksum ``before``: the
    results of the first batches, ``merged``, as far as they are kept, and by batch those of the
    ones after them; and the events, which are in events.jsonl after ``opening`` others.
    """

    v: int
    entry: int
    before: str
    results: list[tuple[Named, ...]]
    archive: EventPrefix
    opening: int
    merged: list[Merged] = []
