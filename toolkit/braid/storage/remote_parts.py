"""What a run that lives in a bucket keeps there: its mirror has copies of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

from braid.core.event_logging import LOGGER
from braid.storage import durable_files
from braid.storage.durable_files import DamagedRunError
from braid.storage.manifest_log import ManifestLog
from braid.storage.object_store import ObjectStore, map_concurrently
from braid.storage.published_results import PublishedResults
from braid.storage.sink_progress import SinkProgress
from braid.util.file_system import current_file_system
from braid.util.validation import read_natural

_TOGETHER = 500
"""So many entries are in a bundle."""


class RemoteManifestLog(ManifestLog):
    """The log of a run that lives in a bucket, of which the folder has copies.

    So that it is not opened with a request for each entry, so many of them at a time are put once
    more together, as a **bundle**, a line for each. The entries stay: that an entry is there keeps
    a driver that has lost the run, however long ago, from putting it.
    """

    def __init__(self, folder: Path, there: ObjectStore) -> None:
        super().__init__(folder, there.url)
        self._bucket = there
        self._bundles = 0

    @property
    def next_object_name(self) -> str:
        """The object that the next entry will be."""
        return f"commits/{self.entry_path(self._next).name}"

    def fetch_new_entries(self) -> None:
        """Bring the entries that have been added, and read them."""
        names = [PurePosixPath(name) for name in self._bucket.list_objects("commits")]
        numbers = (read_natural(name.stem) for name in names)
        end = max((n for n in numbers if n is not None), default=-1) + 1
        begins = range(-(-self._next // _TOGETHER) * _TOGETHER, end, _TOGETHER)
        there = {name.name for name in names}
        map_concurrently(
            self._fetch_bundle_entries,
            [name for name in map(_bundle_name, begins) if name in there],
        )
        wanted = (self.entry_path(n) for n in range(self._next, end))
        map_concurrently(
            self._fetch_entry,
            [path.name for path in wanted if not current_file_system().exists(path)],
        )
        self.read_new_entries()
        self._bundles = next(n for n in count() if _bundle_name(n * _TOGETHER) not in there)

    def _fetch_bundle_entries(self, name: str) -> None:
        """Bring the entries of a bundle. One that is not whole brings none: they are there by
        themselves.
        """
        entries = self._bucket.get_object(f"commits/{name}").split(b"\n")
        if len(entries) == _TOGETHER and all(map(durable_files.is_intact, entries)):
            for n, body in enumerate(entries, int(name.split("-")[1])):
                current_file_system().write_file(self.entry_path(n), body)

    def append_entry(self, *given: Any, **named: Any) -> None:
        """Put the next entry into place; see Log. What it says is real then: that a bundle cannot
        be put is only told, and it is tried again after the next entry.
        """
        super().append_entry(*given, **named)
        try:
            self._put_bundles()
        except OSError as error:
            LOGGER.warning("%s; the run goes on, and tries that again with its next commit", error)

    def _put_bundles(self) -> None:
        """Put the bundles whose entries are all there."""
        while (end := (self._bundles + 1) * _TOGETHER) <= self._next:
            bodies = map_concurrently(
                self._read_entry_body,
                [self.entry_path(n).name for n in range(end - _TOGETHER, end)],
            )
            self._bucket.put_object(f"commits/{_bundle_name(end - _TOGETHER)}", b"\n".join(bodies))
            self._bundles += 1

    def _read_entry_body(self, name: str) -> bytes:
        if not current_file_system().exists(self.folder / name):  # it is rolled up here
            return self._bucket.get_object(f"commits/{name}")
        return current_file_system().read_file(self.folder / name)

    def _fetch_entry(self, name: str) -> None:
        try:
            self._bucket.download(f"commits/{name}", self.folder / name)
        except FileNotFoundError as error:
            raise DamagedRunError(f"{error}, but later entries of the log are there") from None

    def _has_next_entry(self) -> bool:
        if self._bucket.object_size(self.next_object_name) < 0:
            return False
        self._fetch_entry(self.entry_path(self._next).name)
        return True

    def _put_entry(self, entry: int, body: bytes, force: bool) -> None:
        name = f"commits/{self.entry_path(entry).name}"
        try:
            self._bucket.put_object(name, body, new=True)
        except FileExistsError:
            self._bucket.download(name, self.entry_path(entry))
            if not self._is_same_entry(entry, body):
                raise
        durable_files.write_atomically(self.entry_path(entry), body, force)

    def _is_same_entry(self, entry: int, body: bytes) -> bool:
        """Whether the entry that is there is the one that was put: the store's answer was lost, and
        the second try found the first. A commit names a state of its own, and a driver's beginning
        has its token.
        """
        return current_file_system().read_file(self.entry_path(entry)) == body


def _bundle_name(first: int) -> str:
    """The name of the bundle that begins with an entry."""
    return f"entries-{first:06d}-{first + _TOGETHER - 1:06d}.jsonl"


class RemoteSinkProgress(SinkProgress):
    """How far results have been given to a sink. A driver that has lost the run, and does not know
    it, may write an earlier batch here; what comes after that is given again, then.
    """

    def __init__(self, file: Path, there: ObjectStore) -> None:
        super().__init__(file, False)
        self._bucket = there

    @property
    def last_batch(self) -> int:
        """-1: none. Raises Damaged."""
        try:
            self._bucket.download(self.file.name, self.file)
        except FileNotFoundError:
            return -1
        return super().last_batch

    def mark_delivered(self, batch: int) -> None:
        """All batches up to this one have been delivered."""
        super().mark_delivered(batch)
        self._bucket.put_object(self.file.name, self.file)


class RemotePublishedResults(PublishedResults):
    """Results of a run that lives in a bucket: those that were asked for are here."""

    def __init__(self, folder: Path, there: ObjectStore) -> None:
        super().__init__(folder)
        self._bucket = there

    def make_folders(self) -> None:
        """Make the folders."""
        for folder in (self.new, self.results):
            current_file_system().make_folder(folder)

    def committed_path(self, name: str) -> str:
        """Where a committed file is, once it has been brought."""
        file = self.results / name
        if not current_file_system().exists(file):
            try:
                self._bucket.download(f"results/{name}", file)
            except FileNotFoundError as error:
                raise DamagedRunError(str(error)) from None
        return str(file)

    def publish_batch(self, batch: int, names: Sequence[str]) -> None:
        """The manifest has done it."""
