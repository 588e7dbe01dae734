"""Events of committed batches: in their manifests, and in order in one file for other readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from braid.core.event_jsonl import LOGGER, decode_event
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.event_log import EventLog, EventLogEnd, EventPrefix
from braid.storage.log_entries import CommitRecord
from braid.storage.manifest_log import ManifestLog


class EventArchive:
    """File ``events.jsonl`` of a run, as its log defines it.

    - ``file``: the events, opening ones included.
    - ``has_begun``: whether the opening events have been logged.
    """

    def __init__(self, log: ManifestLog) -> None:
        self._medium, self._log = (medium := log.medium), log
        self.file = EventLog(
            medium.folder / "events.jsonl", check_driver=medium.check_driver, mend=self._rewrite_log
        )
        self.has_begun = False
        self._opening: Sequence[Any] = ()
        self._ends: dict[int, EventLogEnd] = {}
        """End of the events of each logged manifest entry."""

    def committed_events(self) -> list[Any]:
        """Return the events of all committed batches, in order."""
        self._log.read_new_entries()
        events, checkpoint = [], self._log.checkpoint
        if checkpoint is not None:
            file = EventLog(self.file.path, opening=checkpoint.opening)
            file.open_prefix(checkpoint.archive)
            events += file.read_since(checkpoint.opening)
        later = self._log.uncheckpointed_commits()
        return [*events, *(event for commit in later for event in self._read_commit_events(commit))]

    def committed_events_of_type(self, kind: type, first: int = 0) -> list[Any]:
        """Return the events of a type of all committed batches. Others are not decoded.

        ``first``: number of an event before which events may be left out.
        """
        self._log.read_new_entries()
        events, checkpoint = list[Any](), self._log.checkpoint
        if checkpoint is not None:
            file = EventLog(self.file.path, opening=checkpoint.opening)
            file.open_prefix(checkpoint.archive)
            events += file.events_of_type(kind, first=first)
        mark = f'"type":"{kind.__name__}"'.encode()
        for commit in self._log.uncheckpointed_commits():
            lines = self._log.read_entry(commit.entry).events
            events += [decode_event(line) for line in lines if mark in bytes(line)]
        return events

    def _read_commit_events(self, commit: CommitRecord) -> list[Any]:
        return [decode_event(line) for line in self._log.read_entry(commit.entry).events]

    def begin_log(self, opening: Sequence[Any] = ()) -> None:
        """Log the ``opening`` events, and those of the batches so far."""
        self._log.read_new_entries()
        self._opening = opening
        self._write_entries([commit.entry for commit in self._log.uncheckpointed_commits()])
        self.trim_log()
        self.has_begun = True

    def _write_entries(self, entries: Iterable[int]) -> None:
        """Restore the events of the checkpoint, or opening ones, then append those of entries."""
        if (checkpoint := self._log.checkpoint) is not None:
            self.file.opening = checkpoint.opening
            self.file.open_prefix(checkpoint.archive, and_cut=True)
        else:
            self.file.begin_log(self._opening)
            if self._medium.force:  # the file's name, before a checkpoint relies on it
                durable_files.fsync_path(self._medium.folder)
        for entry in entries:
            self.file.append_encoded(self._log.read_entry(entry).events)
            self._ends[entry] = self.file.end

    def _rewrite_log(self) -> None:
        """Rewrite all events, since the file is not as this driver has written it."""
        LOGGER.warning(
            "%s does not have the lines that were written; it is rewritten", self.file.path
        )
        self._write_entries([*self._ends])

    def trim_log(self) -> None:
        """Trim events as results expire."""
        since = self._log.first_retained_batch
        if since and self.file.try_trim(since, self._medium.force):
            LOGGER.info("events are kept from batch %d on", since)

    def check_file(self) -> None:
        """Raise DamagedRunError unless the events covered by the checkpoint are intact."""
        if (checkpoint := self._log.checkpoint) is not None:
            EventLog(self.file.path, opening=checkpoint.opening).check_prefix(checkpoint.archive)

    def append_events(self, happened: Sequence[Any]) -> None:
        """Log the events of the last commit."""
        self.file.append_events(happened)
        self._ends[self._log.commits[-1].entry] = self.file.end

    def describe_until(self, entry: int) -> EventPrefix:
        """Return the events up to those of an entry as a prefix.

        Raises DamagedRunError if the file does not hold what was written.
        """
        before, end = (
            self._log.checkpoint.archive if self._log.checkpoint else None,
            self._ends[entry],
        )
        for _ in range(2):
            prefix = self.file.describe_prefix(before, end.event_count, end.size_bytes)
            if prefix.crc32 == end.crc32:
                return prefix
            self._medium.check_driver()
            self._rewrite_log()
        raise DamagedRunError(
            f"{self.file.path} is damaged: it does not have the lines that were written"
        )

    def count_until(self, entry: int) -> int:
        """Return the number of events up to those of an entry; 0 if a checkpoint covers it."""
        return self._ends[entry].event_count if entry in self._ends else 0

    def forget_until(self, entry: int) -> None:
        """Forget the ends of entries up to this one, which a checkpoint covers."""
        self._ends = {n: end for n, end in self._ends.items() if n > entry}
