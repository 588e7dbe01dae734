"""Manifest log of a run. An entry is created only if its number is free.

An entry is the commit of a batch or the start of a driver. Entries are numbered without gaps, and
each holds the checksum of the previous one. So only one of two drivers can go on: the other finds
that its next entry exists.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import inf
from pathlib import Path

import msgspec

from braid.core.run_state import VERSION
from braid.errors import DamagedRunError, FencedError
from braid.storage import durable_files
from braid.storage.event_log import EventPrefix
from braid.storage.log_checkpoints import LogCheckpoints, checkpoint_entry
from braid.storage.log_entries import (
    CommitRecord,
    CompactedResults,
    DriverIdentity,
    FileRef,
    LogCheckpoint,
    Manifest,
)
from braid.storage.run_files import entry_file_name, is_run_file
from braid.storage.run_medium import RunMedium
from braid.util.file_system import current_file_system

OLD = 2
"""Number of retained states and checkpoints. If one is damaged, the other replaces it."""


class ManifestLog:
    """Files ``commits/000012.json`` of a run, and the checkpoints that replace them."""

    def __init__(self, medium: RunMedium) -> None:
        self.medium, self.folder, self.run = medium, medium.folder / "commits", medium.where
        self.checkpoints = LogCheckpoints(medium, self.check_fence)
        self.merged: list[CompactedResults] = []
        """Retained compacted results of the first batches."""
        self.commits: list[CommitRecord] = []
        """Commits of the batches after the compacted ones, in order."""
        self.checkpoint: LogCheckpoint | None = None
        self.next_entry, self._before = 0, ""  # number, and checksum of the one before it
        self._appending, self._put = threading.RLock(), b""
        self.is_mine = False
        """Whether this process writes the log. It then accepts no entries of others."""
        self._last: tuple[int, ...] = ()
        """Identity of the file of the last entry, to detect that it was replaced."""

    @property
    def first_uncompacted_batch(self) -> int:
        """First batch whose results are not compacted."""
        return self.merged[-1].end_batch if self.merged else 0

    @property
    def first_retained_batch(self) -> int:
        """First batch whose results are retained."""
        return self.merged[0].first_batch if self.merged else 0

    @property
    def batch_count(self) -> int:
        """Number of committed batches."""
        return self.first_uncompacted_batch + len(self.commits)

    @property
    def last_entry(self) -> tuple[int, str]:
        """Number and checksum of the last entry; (-1, "") if there is none."""
        return self.next_entry - 1, self._before

    def entry_path(self, entry: int) -> Path:
        """Return the path of an entry."""
        return self.folder / entry_file_name(entry)

    def read_entry(self, entry: int) -> Manifest:
        """Return an entry. Raises DamagedRunError, or ValueError for another version."""
        return self._read_manifest(entry)[0]

    def _read_manifest(self, entry: int) -> tuple[Manifest, str]:
        path = self.entry_path(entry)
        body = durable_files.read_checksummed(path, f"entry {entry} of the log of {self.run}")
        try:
            manifest = msgspec.json.decode(body, type=Manifest)
        except msgspec.ValidationError as error:
            raise DamagedRunError(f"{path} is damaged: {error}") from None
        named = [f.name for f in (*manifest.results, *([manifest.state] if manifest.state else []))]
        if manifest.entry != entry or not all(map(is_run_file, named)):
            raise DamagedRunError(f"{path} is not entry {entry} of a log that Braid wrote")
        return manifest, durable_files.read_checksum(body)

    def read_new_entries(self) -> None:
        """Read new entries of the log, unless this process writes it.

        Raises DamagedRunError if an entry is missing, damaged, or does not follow the previous one.
        A driver reads none: an entry of another driver ends its run.
        """
        if self.is_mine:
            return
        while True:
            seen = self.checkpoints.list_files()
            try:
                self._read_following_entries()
                return
            except DamagedRunError:
                if self.checkpoints.list_files() == seen:
                    raise
                self.reset_log()  # another driver has put these entries into a checkpoint

    def _read_following_entries(self) -> None:
        first = not self.next_entry
        if first:
            self._load_last_checkpoint()
        self._read_all_entries()
        if not first and self.checkpoints.has_covered(self.next_entry):
            self.reset_log()  # other drivers have continued the run
            self.read_new_entries()
        while first and any(n > self.next_entry for n in self._list_entries()):
            # Else a driver has just appended it.
            if not current_file_system().exists(self.entry_path(self.next_entry)):
                raise DamagedRunError(
                    f"{self.entry_path(self.next_entry)} is missing, but later ones are there"
                )
            self._read_all_entries()

    def _read_all_entries(self) -> None:
        """Apply the next entries, as long as they exist."""
        while current_file_system().exists(self.entry_path(self.next_entry)):
            self._apply_manifest(*self._read_manifest(self.next_entry))

    def _load_last_checkpoint(self) -> None:
        """Load the last intact checkpoint. The entries since the one before it still exist.

        A checkpoint of entries that do not exist is ignored: a suspended driver wrote it after a
        repair went back.
        """
        files = self.checkpoints.list_files()
        for left, file in zip(range(len(files))[::-1], files[::-1], strict=True):
            try:
                checkpoint = self.checkpoints.read_checkpoint(file)
            except DamagedRunError:
                if not left:
                    raise
                continue
            if file == files[-1] and not self._is_followed(checkpoint, is_first=not left):
                continue
            self.checkpoint, self.merged = checkpoint, checkpoint.compacted
            self.commits = [
                CommitRecord(-1, b, None, r)
                for b, r in enumerate(checkpoint.results, self.first_uncompacted_batch)
            ]
            self.next_entry, self._before = checkpoint.entry + 1, checkpoint.previous_checksum
            return

    def _is_followed(self, checkpoint: LogCheckpoint, is_first: bool) -> bool:
        """Return whether the last checkpoint covers the entries of this log.

        Its last covered entry exists until the next checkpoint. If that one was damaged and
        removed, only the entry after it exists. ``is_first``: there is no earlier checkpoint, so it
        is valid unless the entries begin at 0.
        """
        last, after = self.entry_path(checkpoint.entry), self.entry_path(checkpoint.entry + 1)
        if current_file_system().exists(last):
            return (
                durable_files.read_checksum(current_file_system().read_file(last))
                == checkpoint.previous_checksum
            )
        if current_file_system().exists(after):
            return (
                self.read_entry(checkpoint.entry + 1).previous_checksum
                == checkpoint.previous_checksum
            )
        return is_first and not current_file_system().exists(self.entry_path(0))

    def write_checkpoint(
        self, archive: EventPrefix, opening: int, merged: Sequence[CompactedResults]
    ) -> None:
        """Write a checkpoint of all entries before the last two commits.

        Entries since the previous checkpoint are retained, and so is that checkpoint.

        - ``archive``: events of the covered entries.
        - ``merged``: compacted results of the first batches.
        """
        last = self.commits[-OLD].entry - 1
        crc = durable_files.read_checksum(current_file_system().read_file(self.entry_path(last)))
        end = merged[-1].end_batch if merged else 0
        recent = [k for k in self.commits if k.batch >= end]
        results = [k.results for k in recent[:-OLD]]
        checkpoint = LogCheckpoint(VERSION, last, crc, results, archive, opening, [*merged])
        self.checkpoints.write_checkpoint(checkpoint)
        before, self.checkpoint, self.merged = self.checkpoint, checkpoint, [*merged]
        self.commits = [k._replace(entry=-1, state=None) for k in recent[:-OLD]] + recent[-OLD:]
        self._remove_old_entries(-1 if before is None else before.entry)

    def drop_expired_names(self) -> None:
        """Remove expired results from earlier checkpoints; see ``LogCheckpoints``."""
        last = inf if self.checkpoint is None else self.checkpoint.entry
        self.checkpoints.drop_expired_names(last, self.first_retained_batch)

    def replace_part_checksum(self, part: FileRef) -> None:
        """Update the log to the new checksum of a rebuilt part."""
        self.checkpoints.replace_part_checksum(part)
        self.reset_log()

    def _remove_old_entries(self, entry: int) -> None:
        """Remove the entries up to ``entry``, and checkpoints before it."""
        entries, files = (
            [n for n in self._list_entries() if n <= entry],
            self.checkpoints.list_files()[:-OLD],
        )
        self.check_fence()
        for n in entries:
            current_file_system().remove_file(self.entry_path(n), missing_ok=True)
        for file in files:
            current_file_system().remove_file(file, missing_ok=True)

    def committed_batches(self) -> list[int]:
        """Return the numbers of committed batches, ascending, after reading new entries."""
        self.read_new_entries()
        return [*range(self.batch_count)]

    def uncheckpointed_commits(self) -> list[CommitRecord]:
        """Return the commits that no checkpoint covers, in order."""
        return [commit for commit in self.commits if commit.entry >= 0]

    def _list_entries(self) -> list[int]:
        return sorted(
            int(f.stem) for f in current_file_system().find_files(self.folder, "[0-9]*.json")
        )

    def _apply_manifest(self, manifest: Manifest, crc: str) -> None:
        if manifest.previous_checksum != self._before:
            raise DamagedRunError(
                f"{self.entry_path(manifest.entry)} does not follow the entry before it, so one of "
                "the two is of another run or time"
            )
        if manifest.state is None:  # the driver goes on after this batch
            if manifest.batch < 0:
                self.merged, self.commits, self.checkpoint = [], [], None
            del self.commits[max(0, manifest.batch + 1 - self.first_uncompacted_batch) :]
        else:
            if manifest.batch != self.batch_count:
                raise DamagedRunError(
                    f"{self.entry_path(manifest.entry)} is of batch {manifest.batch}, not the next"
                )
            self.commits.append(
                CommitRecord(manifest.entry, manifest.batch, manifest.state, manifest.results)
            )
        self.next_entry, self._before = manifest.entry + 1, crc

    def truncate(self, last: int) -> None:
        """Remove everything after entry ``last`` of a damaged log, the earliest entry first.

        Until the last removal, entries are missing, so that no other driver goes on with the log.
        For a log that is intact, an entry with ``last_batch`` does the same without a removal.
        """
        checkpoints = [f for f in self.checkpoints.list_files() if checkpoint_entry(f) > last]
        entries = [self.entry_path(n) for n in self._list_entries() if n > last]
        for file in [*reversed(checkpoints), *entries]:
            current_file_system().remove_file(file)
        self.reset_log()

    def reset_log(self) -> None:
        """Forget everything, so that the log is read again."""
        self.merged, self.commits, self.checkpoint = [], [], None
        self.next_entry, self._before = 0, ""
        self.is_mine, self._last = False, ()

    def reload_log(self) -> None:
        """Read the log again if the previous driver has written a checkpoint since it was read."""
        last = -1 if self.checkpoint is None else self.checkpoint.entry
        if self.checkpoints.has_covered(last + 1):
            self.reset_log()
            self.read_new_entries()
            self.is_mine = True

    def append_entry(
        self,
        state: FileRef | None = None,
        results: tuple[FileRef, ...] = (),
        events: Sequence[bytes] = (),
        driver: DriverIdentity | None = None,
        last_batch: int | None = None,
    ) -> None:
        """Append an entry: a commit, or the start of a driver. ``events`` are JSON.

        ``last_batch``: batch after which a driver goes on; later ones do not count. None: the last.
        Raises FencedError if another driver has taken over the run.
        """
        if not self.next_entry:
            self.read_new_entries()
        with self._appending:
            if self._put and self._has_next_entry() and self._has_put():
                path = self.entry_path(self.next_entry)
                raise RuntimeError(f"{path} was appended, but may not be on disk; start again")
            batch = self.batch_count - (state is None) if last_batch is None else last_batch
            raw = [*map(msgspec.Raw, events)]
            manifest = Manifest(
                VERSION, self.next_entry, self._before, batch, state, results, raw, driver
            )
            body = self._put = durable_files.encode_checksummed(manifest)
            self._check_follows()
            try:
                self.medium.put_new(f"commits/{entry_file_name(manifest.entry)}", body)
            except FileExistsError:
                raise self._make_fenced_error() from None
            except FileNotFoundError:  # a driver that takes over removes temporary files
                self._check_follows()
                if self._has_next_entry():
                    raise self._make_fenced_error() from None
                raise
            try:
                self._check_follows()  # others may have checkpointed an entry of this number
            except FencedError:
                self._remove_misplaced_entry(manifest.entry, body)
                raise
            self._apply_manifest(manifest, durable_files.read_checksum(body))
            self.is_mine, self._last, self._put = True, (), b""

    def _remove_misplaced_entry(self, entry: int, body: bytes) -> None:
        """Remove an entry that this driver has put in a place where it follows none.

        This happens after a repair went back, or after other drivers wrote two checkpoints. If one
        checkpoint covers the entry, it is a commit and stays.
        """
        covering = sum(checkpoint_entry(file) >= entry for file in self.checkpoints.list_files())
        path = self.entry_path(entry)
        is_there = covering != 1 and current_file_system().exists(path)
        if is_there and current_file_system().read_file(path) == body:
            current_file_system().remove_file(path, missing_ok=True)

    def check_fence(self) -> None:
        """Raise FencedError if another driver has taken over the run.

        It has if the next entry exists, or if this driver's last entry is gone: a repair went back,
        or others have gone on since.

        A caller that removes files must list them first, then call this, then remove the listed
        files. These existed while this driver was the last, so no later driver has made them.
        """
        with self._appending:  # an entry being appended by this driver is no other's
            if self.next_entry and self._has_next_entry() and not self._has_put():
                raise self._make_fenced_error()
            self._check_last()

    def _has_put(self) -> bool:
        """Return whether this driver has put the next entry before it failed."""
        try:
            return current_file_system().read_file(self.entry_path(self.next_entry)) == self._put
        except FileNotFoundError:  # a repair has removed it
            return False

    def _check_follows(self) -> None:
        """Raise FencedError unless the next entry follows the last one or is the first of all."""
        if self.next_entry:
            self._check_last()
        elif self.checkpoints.list_files():
            raise self._report_missing(self.entry_path(0))

    def _check_last(self) -> None:
        """Raise FencedError unless this log's last entry exists with its checksum."""
        if not self.next_entry:
            return
        path = self.entry_path(self.next_entry - 1)
        try:
            status = current_file_system().read_status(path)
            identity = status.st_ino, status.st_size, status.st_mtime_ns
            is_there = (
                identity == self._last
                or durable_files.read_checksum(current_file_system().read_file(path))
                == self._before
            )
            self._last = identity if is_there else ()
        except FileNotFoundError:
            is_there = not current_file_system().exists(self.folder)  # no driver removes the folder
        if not is_there:
            raise self._report_missing(path)

    def _report_missing(self, entry: Path) -> FencedError:
        return FencedError(
            f"another driver has taken over the run in {self.run}, where {entry.name} is no longer "
            "this driver's; this driver stops"
        )

    def _has_next_entry(self) -> bool:
        """Return whether the next entry exists, after bringing it into the folder."""
        return self.medium.has_file(f"commits/{entry_file_name(self.next_entry)}")

    def _make_fenced_error(self) -> FencedError:
        try:
            who: DriverIdentity | str = self.read_entry(self.next_entry).driver or "another driver"
        except ValueError:  # the entry is damaged but exists
            who = "another driver"
        return FencedError(f"{who} has taken over the run in {self.run}; this driver stops")
