"""Bundles of log entries in a bucket, so that a run is opened without a request for each entry.

A bundle has a line for each of some consecutive entries. The entries remain: an existing entry
prevents a driver that has lost the run from writing it.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path, PurePosixPath

from braid.core.event_jsonl import LOGGER
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.object_store import ObjectStore, map_concurrently
from braid.storage.run_files import entry_file_name
from braid.util.file_system import current_file_system
from braid.util.validation import read_natural

_TOGETHER = 500
"""Entries in a bundle."""


class EntryBundles:
    """Entries of the log in a bucket and their bundles, with copies in ``folder``."""

    def __init__(self, folder: Path, bucket: ObjectStore) -> None:
        self._folder, self._bucket = folder, bucket
        self._complete = 0

    def fetch_entries(self, first: int) -> None:
        """Download the entries from ``first`` on. Raises DamagedRunError if one is missing."""
        names = [PurePosixPath(name) for name in self._bucket.list_objects("commits")]
        numbers = (read_natural(name.stem) for name in names)
        end = max((n for n in numbers if n is not None), default=-1) + 1
        begins = range(-(-first // _TOGETHER) * _TOGETHER, end, _TOGETHER)
        there = {name.name for name in names}
        map_concurrently(
            self._fetch_bundle, [name for name in map(_bundle_name, begins) if name in there]
        )
        wanted = map(entry_file_name, range(first, end))
        map_concurrently(
            self._fetch_entry,
            [n for n in wanted if not current_file_system().exists(self._folder / n)],
        )
        self._complete = next(n for n in count() if _bundle_name(n * _TOGETHER) not in there)

    def _fetch_bundle(self, name: str) -> None:
        """Download the entries of a bundle. A damaged bundle is ignored: its entries exist too."""
        entries = self._bucket.get_object(f"commits/{name}").split(b"\n")
        if len(entries) == _TOGETHER and all(map(durable_files.is_intact, entries)):
            for n, body in enumerate(entries, int(name.split("-")[1])):
                current_file_system().write_file(self._folder / entry_file_name(n), body)

    def _fetch_entry(self, name: str) -> None:
        try:
            self._bucket.download(f"commits/{name}", self._folder / name)
        except FileNotFoundError as error:
            raise DamagedRunError(f"{error}, but later entries of the log are there") from None

    def put_complete(self, end: int) -> None:
        """Write the bundles that end before entry ``end``.

        If one cannot be written, a warning is logged, and the next call tries again.
        """
        try:
            while (until := (self._complete + 1) * _TOGETHER) <= end:
                names = map(entry_file_name, range(until - _TOGETHER, until))
                body = b"\n".join(map_concurrently(self._read_entry, names))
                self._bucket.put_object(f"commits/{_bundle_name(until - _TOGETHER)}", body)
                self._complete += 1
        except OSError as error:
            LOGGER.warning("%s; the run goes on, and tries that again with its next commit", error)

    def _read_entry(self, name: str) -> bytes:
        # A checkpoint replaces it in the folder alone.
        if not current_file_system().exists(self._folder / name):
            return self._bucket.get_object(f"commits/{name}")
        return current_file_system().read_file(self._folder / name)


def _bundle_name(first: int) -> str:
    """Return the name of the bundle that begins with an entry."""
    return f"entries-{first:06d}-{first + _TOGETHER - 1:06d}.jsonl"
