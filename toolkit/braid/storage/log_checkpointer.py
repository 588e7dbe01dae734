"""What a run tells as it goes on, in events.jsonl, and how its log is rolled up now and then: the
results of the batches that a roll-up sums up are merged, and where they are kept for a time only,
the oldest go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from braid.core.event_io import decode_event
from braid.core.event_logging import LOGGER
from braid.storage import durable_files
from braid.storage.durable_files import DamagedRunError
from braid.storage.event_log import EventLog, EventLogEnd, EventPrefix
from braid.storage.log_entries import Kept, Merged
from braid.storage.manifest_log import OLD
from braid.storage.result_reader import ResultReader
from braid.storage.result_retention import RetentionPolicy, count_expired_groups
from braid.storage.sink_progress import SinkProgress
from braid.util.environment import current_environment
from braid.util.file_system import current_file_system
from braid.util.worker_threads import current_workers

_EVERY = 500
"""So many commits are rolled up at once, and their results merged."""


class EventArchive(ResultReader):
    """The log, events and results of the run in the folder ``path``, where one process adds to
    them; what it writes is on disk if ``force``.
    """

    def __init__(self, path: Path, force: bool) -> None:
        super().__init__(path)
        self.force = force
        check = self.check_driver
        self.told = EventLog(path / "events.jsonl", check_driver=check, mend=self._rewrite_events)
        self.delivered = SinkProgress(path / "sink-progress.json", force, check)
        self.begun = False
        """Whether what has happened so far has been told."""
        self.keep: RetentionPolicy | None = None
        self._opening: Sequence[Any] = ()
        self._ends: dict[int, EventLogEnd] = {}
        """By entry whose events have been told, where these end."""

    def committed_events(self) -> list[Any]:
        """The events of all committed batches, in order."""
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
        """Tell what has happened so far, after some ``opening`` events: in events.jsonl."""
        self.log.read_new_entries()
        self._opening, entries = opening, [kept.entry for kept in self.log.uncheckpointed_commits()]
        self._archive_events_of_entries(entries)
        self._drop_events()
        self.begun = True

    def _archive_events_of_entries(self, entries: Iterable[int]) -> None:
        """Tell what the roll-up has, or how the run opened, and then these entries of the log."""
        if (rolled := self.log.rolled) is not None:
            self.told.opening = rolled.opening
            self.told.open_prefix(rolled.archive, and_cut=True)
        else:
            self.told.begin_log(self._opening)
            if self.force:  # the name of the file, before a roll-up counts on it
                durable_files.fsync_path(self.path)
        for entry in entries:
            self.told.append_encoded(self.log.read_entry(entry).events)
            self._ends[entry] = self.told.find_end

    def _rewrite_events(self) -> None:
        """Tell all anew that has been told: the file is not as this driver has written it."""
        LOGGER.warning("%s had other lines than were written; it is written anew", self.told.path)
        self._archive_events_of_entries([*self._ends])

    def _drop_events(self) -> None:
        """Keep events no longer than results."""
        if (since := self.log.first_retained_batch) and self.told.trim(since, self.force):
            LOGGER.info("events are kept from batch %d on", since)

    def check_events(self) -> None:
        """Raise Damaged unless events are what was written, as far as they are rolled up."""
        if (rolled := self.log.rolled) is not None:
            EventLog(self.told.path, opening=rolled.opening).check_prefix(rolled.archive)

    def log_events(self, happened: Sequence[Any]) -> None:
        """Tell the events of the last commit; now and then, roll up those before it."""
        self.told.append_events(happened)
        self._ends[self.log.commits[-1].entry] = self.told.find_end
        if len(waiting := self.log.uncheckpointed_commits()) >= _EVERY + OLD:
            self._write_checkpoint(waiting[-OLD - 1].entry)

    def _write_checkpoint(self, entry: int) -> None:
        """Sum up the log up to the commit in an entry, and merge the results of its batches."""
        before = self.log.rolled.archive if self.log.rolled else None
        merged = self._compact_results()
        if self.force:
            durable_files.fsync_path(self.told.path)
            durable_files.fsync_path(
                self.results
            )  # files of merged batches have no other name from here on
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
        """What the file of events has up to an end. Raises Damaged where that is not what was
        written.
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
        """How many of the first groups of merged batches are not kept. A sink is promised all that
        it has not had; and what is merged only now stays, so that the roll-up before can stand in.
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
        """Write the results of batches once more, as few files, for the next roll-up. It is always
        the same batches that come together, so that a file that has to be made again is the same.
        """
        made, waiting = list[Merged](), self.log.commits[:-OLD]
        some = _EVERY - self.log.first_uncompacted_batch % _EVERY
        while len(waiting) >= some:
            thread = current_workers().share_pool(
                "braid-merge", 1
            )  # whenever a run starts, Spark has another
            merging = thread.submit(
                self.merging.compact, waiting[:some], self.force, _current_microseconds()
            )
            made.append(merging.result())
            waiting, some = waiting[some:], _EVERY
        return made

    def _update_sink_log(self, change: Callable[[], None]) -> None:
        """Change Spark's log; where it is damaged, after it has been written anew."""
        try:
            change()
        except DamagedRunError as damaged:
            LOGGER.warning("%s, which is done now", damaged)
            self.rewrite_sink_log()
            change()

    def rewrite_sink_log(self) -> None:
        """Write Spark's log anew, with the files of all batches that are kept. Raises Damaged where
        some of them are missing.
        """
        later = [[f.name for f in kept.results] for kept in self.log.commits]
        self.output.republish(self._list_compacted_files(), later)

    def _list_compacted_files(self) -> list[list[str]]:
        """By batch, the files of those that are merged, of the names that Spark's log has."""
        return self.compacted_files(self.output.logged_sizes())


def _current_microseconds() -> int:
    """Microseconds since 1970."""
    return int(current_environment().read_time() * 10**6)
