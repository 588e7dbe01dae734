"""Parts of a run store whose data is in a bucket, with copies in a local mirror."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

from braid.core.event_io import LOGGER
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.manifest_log import ManifestLog
from braid.storage.object_store import ObjectStore, map_concurrently
from braid.storage.published_results import PublishedResults
from braid.storage.sink_progress import SinkProgress
from braid.util.file_system import current_file_system
from braid.util.validation import read_natural

_TOGETHER = 500
"""Entries in a bundle."""


class RemoteManifestLog(ManifestLog):
    """Manifest log of a run in a bucket, with copies in ``folder``.

    To open it without a request for each entry, groups of entries are also written as a **bundle**,
    with a line for each. The entries remain: an existing entry prevents a driver that has lost the
    run from writing it.
    """

    def __init__(self, folder: Path, there: ObjectStore) -> None:
        super().__init__(folder, there.url)
        self._bucket = there
        self._bundles = 0

    @property
    def next_object_name(self) -> str:
        """Name of the object of the next entry."""
        return f"commits/{self.entry_path(self._next).name}"

    def fetch_new_entries(self) -> None:
        """Download and read new entries."""
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
        """Download the entries of a bundle. A damaged bundle is ignored: its entries exist too."""
        entries = self._bucket.get_object(f"commits/{name}").split(b"\n")
        if len(entries) == _TOGETHER and all(map(durable_files.is_intact, entries)):
            for n, body in enumerate(entries, int(name.split("-")[1])):
                current_file_system().write_file(self.entry_path(n), body)

    def append_entry(self, *given: Any, **named: Any) -> None:
        """Append an entry; see ManifestLog. It is committed on return.

        If a bundle cannot be written, a warning is logged, and it is tried again after the next
        entry.
        """
        super().append_entry(*given, **named)
        try:
            self._put_bundles()
        except OSError as error:
            LOGGER.warning("%s; the run goes on, and tries that again with its next commit", error)

    def _put_bundles(self) -> None:
        """Write the bundles whose entries are complete."""
        while (end := (self._bundles + 1) * _TOGETHER) <= self._next:
            bodies = map_concurrently(
                self._read_entry_body,
                [self.entry_path(n).name for n in range(end - _TOGETHER, end)],
            )
            self._bucket.put_object(f"commits/{_bundle_name(end - _TOGETHER)}", b"\n".join(bodies))
            self._bundles += 1

    def _read_entry_body(self, name: str) -> bytes:
        # The mirror has it in a checkpoint.
        if not current_file_system().exists(self.folder / name):
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
        """Return whether the existing entry is the one this driver tried to put.

        If so, the answer of the store was lost, and the retry found the first attempt. No two
        drivers put equal entries: a commit names a unique state, and a driver's start has its
        token.
        """
        return current_file_system().read_file(self.entry_path(entry)) == body


def _bundle_name(first: int) -> str:
    """Return the name of the bundle that begins with an entry."""
    return f"entries-{first:06d}-{first + _TOGETHER - 1:06d}.jsonl"


class RemoteSinkProgress(SinkProgress):
    """Progress of a sink, stored in a bucket.

    A driver that does not know that it has lost the run may write an earlier batch. Later results
    are then delivered again.
    """

    def __init__(self, file: Path, there: ObjectStore) -> None:
        super().__init__(file, False)
        self._bucket = there

    @property
    def last_batch(self) -> int:
        """Last delivered batch; -1: none. Raises DamagedRunError."""
        try:
            self._bucket.download(self.file.name, self.file)
        except FileNotFoundError:
            return -1
        return super().last_batch

    def mark_delivered(self, batch: int) -> None:
        """Record that all batches up to this one are delivered."""
        super().mark_delivered(batch)
        self._bucket.put_object(self.file.name, self.file)


class RemotePublishedResults(PublishedResults):
    """Published results of a run in a bucket. Files are downloaded on demand."""

    def __init__(self, folder: Path, there: ObjectStore) -> None:
        super().__init__(folder)
        self._bucket = there

    def make_folders(self) -> None:
        """Create the folders."""
        for folder in (self.new, self.results):
            current_file_system().make_folder(folder)

    def committed_path(self, name: str) -> str:
        """Return the path of a committed file, after downloading it if needed."""
        file = self.results / name
        if not current_file_system().exists(file):
            try:
                self._bucket.download(f"results/{name}", file)
            except FileNotFoundError as error:
                raise DamagedRunError(str(error)) from None
        return str(file)

    def publish_batch(self, batch: int, names: Sequence[str]) -> None:
        """Do nothing: the manifest publishes the batch."""
