"""Log a run's events, and write checkpoints of its manifest log.

With a checkpoint, the results of the batches it covers are compacted. If retention is limited, the
oldest ones are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from braid.core.event_io import LOGGER, decode_event
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.event_log import EventLog, EventLogEnd, EventPrefix
from braid.storage.log_entries import Kept, Merged
from braid.storage.manifest_log import OLD
from braid.storage.result_reader import ResultReader
from braid.storage.result_retention import RetentionPolicy, count_expired_groups
from braid.storage.sink_progress import SinkProgress
from braid.util.environment import current_environment, current_workers
from braid.util.file_system import current_file_system

_EVERY = 500
"""Commits between two checkpoints, whose results are compacted together."""


class EventArchive(ResultReader):
    """Manifest log, events and results of the run in the folder ``path``.

    One process at a time writes to them. ``force``: force written files to disk.
    """

    def __init__(self, path: Path, force: bool) -> None:
        super().__init__(path)
        self.force = force
        check = self.check_driver
        self.told = EventLog(path / "events.jsonl", check_driver=check, mend=self._rewrite_events)
        self.delivered = SinkProgress(path / "sink-progress.json", force, check)
        self.begun = False
        """Whether the opening events have been logged."""
        self.keep: RetentionPolicy | None = None
        self._opening: Sequence[Any] = ()
        self._ends: dict[int, EventLogEnd] = {}
        """End of the events of each logged manifest entry."""

    def committed_events(self) -> list[Any]:
        """Return the events of all committed batches, in order."""
        self.log.read_new_entries()
        found, rolled = [], self.log.rolled
        if rolled is not None:
            told = EventLog(self.told.path, opening=rolled.opening)
            told.open_prefix(rolled.archive)
            found += told.read_since(rolled.opening)
        return [
            *found,
            *(
                e
                for kept in self.log.uncheckpointed_commits()
                for e in self._read_commit_events(kept)
            ),
        ]

    def _read_commit_events(self, kept: Kept) -> list[Any]:
        return [decode_event(line) for line in self.log.read_entry(kept.entry).events]

    def log_opening_events(self, opening: Sequence[Any] = ()) -> None:
        """Log the ``opening`` events, and those of the batches so far, in events.jsonl."""
        self.log.read_new_entries()
        self._opening, entries = opening, [kept.entry for kept in self.log.uncheckpointed_commits()]
        self._archive_events_of_entries(entries)
        self._drop_events()
        self.begun = True

    def _archive_events_of_entries(self, entries: Iterable[int]) -> None:
        """Restore the events of the checkpoint, or opening ones, then append those of entries."""
        if (rolled := self.log.rolled) is not None:
            self.told.opening = rolled.opening
            self.told.open_prefix(rolled.archive, and_cut=True)
        else:
            self.told.begin_log(self._opening)
            if self.force:  # the file's name, before a checkpoint relies on it
                durable_files.fsync_path(self.path)
        for entry in entries:
            self.told.append_encoded(self.log.read_entry(entry).events)
            self._ends[entry] = self.told.find_end

    def _rewrite_events(self) -> None:
        """Rewrite all events, since the file is not as this driver has written it."""
        LOGGER.warning(
            "%s does not have the lines that were written; it is rewritten", self.told.path
        )
        self._archive_events_of_entries([*self._ends])

    def _drop_events(self) -> None:
        """Trim events as results expire."""
        if (since := self.log.first_retained_batch) and self.told.trim(since, self.force):
            LOGGER.info("events are kept from batch %d on", since)

    def check_events(self) -> None:
        """Raise DamagedRunError unless the events covered by the checkpoint are intact."""
        if (rolled := self.log.rolled) is not None:
            EventLog(self.told.path, opening=rolled.opening).check_prefix(rolled.archive)

    def log_events(self, happened: Sequence[Any]) -> None:
        """Log the events of the last commit. Write a checkpoint if it is due."""
        self.told.append_events(happened)
        self._ends[self.log.commits[-1].entry] = self.told.find_end
        if len(waiting := self.log.uncheckpointed_commits()) >= _EVERY + OLD:
            self._write_checkpoint(waiting[-OLD - 1].entry)

    def _write_checkpoint(self, entry: int) -> None:
        """Write a checkpoint up to an entry's commit, and compact the results of its batches."""
        before = self.log.rolled.archive if self.log.rolled else None
        merged = self._compact_results()
        if self.force:
            durable_files.fsync_path(self.told.path)
            # The only links of compacted batches from here on.
            durable_files.fsync_path(self.results)
        with self.reading:
            archive, since = (
                self._archive_events(before, self._ends[entry]),
                self.log.first_retained_batch,
            )
            whole = [*self.log.merged, *merged]
            self.log.write_checkpoint(
                archive, self.told.opening, whole[self._count_expired_groups(whole) :], self.force
            )
            self.merging.publish_compacted(merged, self.force)
            if self.log.first_retained_batch > since:
                self.log.drop_expired_names(self.force)
                self._update_sink_log(
                    partial(self.output.unpublish, since, self.log.first_retained_batch)
                )
                self.merging.recover_compacted(self.log.merged, self.force)
                LOGGER.info("results are kept from batch %d on", self.log.first_retained_batch)
        self._drop_events()
        self._ends = {n: end for n, end in self._ends.items() if n > entry}

    def _archive_events(self, before: EventPrefix | None, end: EventLogEnd) -> EventPrefix:
        """Return the events up to an end as a prefix.

        Raises DamagedRunError if the file does not hold what was written.
        """
        for _ in range(2):
            found = self.told.describe_prefix(before, end.event_count, end.size_bytes)
            if found.crc32 == end.crc32:
                return found
            self.check_driver()
            self._rewrite_events()
        raise DamagedRunError(
            f"{self.told.path} is damaged: it does not have the lines that were written"
        )

    def _count_expired_groups(self, merged: Sequence[Merged]) -> int:
        """Return how many of the first groups of compacted batches have expired.

        Results that a sink has not received are retained. So are those compacted just now, so that
        the previous checkpoint remains usable.
        """
        if self.keep is None:
            return 0
        end = merged[-1].end if merged else 0
        later = sum(
            f.seal.size_bytes for k in self.log.commits if k.batch >= end for f in k.results
        )
        sink = current_file_system().exists(self.delivered.file)
        try:
            promised = (
                min(self.delivered.last_batch + 1, self.log.first_uncompacted_batch)
                if sink
                else self.log.first_uncompacted_batch
            )
        except DamagedRunError as damaged:
            LOGGER.error("all results are kept: %s", damaged)
            return 0
        return count_expired_groups(self.keep, merged, later, _current_microseconds(), promised)

    def _compact_results(self) -> list[Merged]:
        """Compact the results of batches for the next checkpoint.

        Batches are always grouped alike, so that a rebuilt file is the same.
        """
        made, waiting = list[Merged](), self.log.commits[:-OLD]
        some = _EVERY - self.log.first_uncompacted_batch % _EVERY
        while len(waiting) >= some:
            # Not on the caller's thread: Spark starts each run on a new one.
            thread = current_workers().share_pool("braid-merge", 1)
            merging = thread.submit(
                self.merging.compact, waiting[:some], self.force, _current_microseconds()
            )
            made.append(merging.result())
            waiting, some = waiting[some:], _EVERY
        return made

    def _update_sink_log(self, change: Callable[[], None]) -> None:
        """Change Spark's sink log. If it is damaged, rewrite it first."""
        try:
            change()
        except DamagedRunError as damaged:
            LOGGER.warning("%s, which is done now", damaged)
            self.rewrite_sink_log()
            change()

    def rewrite_sink_log(self) -> None:
        """Rewrite Spark's sink log with the files of all retained batches.

        Raises DamagedRunError if some of the files are missing.
        """
        later = [[f.name for f in kept.results] for kept in self.log.commits]
        self.output.republish(self._list_compacted_files(), later)

    def _list_compacted_files(self) -> list[list[str]]:
        """Return the original files of compacted batches that Spark's sink log names, by batch."""
        return self.compacted_files(self.output.logged_sizes())


def _current_microseconds() -> int:
    """Return microseconds since 1970."""
    return int(current_environment().read_time() * 10**6)
