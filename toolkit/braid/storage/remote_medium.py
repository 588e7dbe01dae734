"""Bucket that holds a run, with a local cache in which a process works on it.

The cache has the layout of any run (see ``run_files``). It is empty when a process opens the run,
and is removed when the process no longer needs it. The bucket alone holds the run, and its manifest
log alone tells which files exist. Everything that a batch consists of is in the bucket before its
manifest, which is created only if none exists:

1. Tasks upload block and result files before they report them.
2. The driver checks that all reported files exist, and uploads the state.
3. For unbounded streams, it uploads Spark's checkpoint, which Spark keeps in the cache, under the
name of the state: read positions are part of the batch.
4. It creates the manifest, which is the commit. Of two drivers, one finds that it exists, and
stops.
5. It deletes objects that no state names any more.

Objects have unique names and are never changed, but for ``run.json`` and ``sink-progress.json``. So
leftovers of a killed driver or task do no harm, nor do uploads of a driver that does not know yet
that it has lost the run. The next driver takes over, by an entry of the log, before it deletes
objects that are not named.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from braid.core.run_state import VERSION, FileChecksum
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.durable_files import skip_check
from braid.storage.entry_bundles import EntryBundles
from braid.storage.object_store import map_concurrently, open_object_store
from braid.storage.run_files import is_run_file
from braid.storage.run_medium import make_lost_start_error
from braid.util import temp_dirs
from braid.util.clock_and_threads import current_environment
from braid.util.file_system import current_file_system


def is_object_store_url(path: Any) -> bool:
    """Return whether a run's path is a URL other than ``file://``."""
    return isinstance(path, str) and "://" in path and not path.startswith("file://")


class RemoteMedium:
    """Bucket at a URL, with a local cache that this process alone uses.

    - ``snapshot``: name of the copy of static input in the bucket; "": there is none yet.
    - ``blocks``: block files in the bucket, as tasks have reported or states name them.
    - ``has_checkpoints``: whether Spark's checkpoint is stored with each state.

    Raises ValueError for an invalid URL, ModuleNotFoundError if a required package is missing.
    """

    force, new_results = False, "results"

    def __init__(self, url: str) -> None:
        self._bucket = open_object_store(url.rstrip("/"))
        self.folder = temp_dirs.make_temp_dir("run-cache")
        self._going = weakref.finalize(self, temp_dirs.remove_temp_dir, self.folder)
        self._going.atexit = False
        self.url = self.where = self._bucket.url
        self.fence: Callable[[], None] = skip_check
        self.snapshot, self.has_checkpoints = "", False
        self.blocks: Set[str] = set()
        self._bundles = EntryBundles(self.folder / "commits", self._bucket)

    check_driver = staticmethod(skip_check)
    """The cache belongs to this process. Writes to the bucket check the fence."""

    def check_usable(self) -> None:
        """Raise ValueError if the store overwrites an object that must not exist."""
        self._bucket.check_conditional_put()

    def announce_run(self, settings: Mapping[str, Any]) -> None:
        """Upload the settings of a run that is ready, and before them the copy of static input.

        Raises RuntimeError if another driver has begun a run meanwhile.
        """
        new = not self.snapshot
        if new:
            self.snapshot = current_environment().make_token()
            files = durable_files.list_files_below(self.folder / "input", "[!.]*")
            self.upload_files(
                {f"{self._input}{f.relative_to(self.folder / 'input')}": f for f in files}
            )
        body = {"format_version": VERSION, **settings, "input": self.snapshot}
        try:
            (self.put_new if new else self.put_file)(
                "run.json", durable_files.encode_checksummed(body)
            )
        except FileExistsError:
            raise make_lost_start_error(self.where) from None

    @property
    def _input(self) -> str:
        """Prefix of the objects of static input."""
        return f"input/{self.snapshot}/"

    def put_new(self, name: str, body: bytes) -> None:
        """Create an object, then write it to the cache. Raises FileExistsError if it exists."""
        try:
            self._bucket.put_object(name, body, new=True)
        except FileExistsError:
            self._bucket.download(name, self.folder / name)
            if not self._is_same_object(name, body):
                raise
        durable_files.write_atomically(self.folder / name, body, self.force)

    def _is_same_object(self, name: str, body: bytes) -> bool:
        """Return whether the existing object is the one that this driver tried to put.

        If so, the answer of the store was lost, and the retry found the first attempt. No two
        drivers put equal entries: a commit names a unique state, and a driver's start has its
        token.
        """
        return current_file_system().read_file(self.folder / name) == body

    def put_file(self, name: str, body: bytes) -> None:
        """Write or replace a file in the cache, then the object.

        A driver that does not know that it has lost the run may replace a later object.
        """
        durable_files.write_atomically(self.folder / name, body, self.force)
        self._bucket.put_object(name, self.folder / name)

    def put_unique(self, name: str, body: bytes) -> None:
        """Write a file to the cache, then the object."""
        current_file_system().write_file(self.folder / name, body, self.force)
        self._bucket.put_object(name, self.folder / name)

    def remove_file(self, name: str) -> None:
        """Remove a file from the cache, and the object. Raises FencedError."""
        self.fence()
        self._bucket.delete_objects([name])
        current_file_system().remove_file(self.folder / name, missing_ok=True)

    def upload_files(self, files: Mapping[str, Path | bytes]) -> None:
        """Write objects, several at a time."""
        map_concurrently(lambda name: self._bucket.put_object(name, files[name]), files)

    def remove_old(self, states: Collection[str], live: Set[str]) -> None:
        """Remove states, and the block files that are not ``live``. Raises FencedError."""
        folders = ("commits", "checkpoint") if self.has_checkpoints else ("commits",)
        gone = [f"{folder}/{name}" for folder in folders for name in states]
        gone += [f"blocks/{name}" for name in self.blocks - live]
        if gone:
            self.fence()
        self._bucket.delete_objects(gone)
        self.blocks = live

    def has_file(self, name: str) -> bool:
        """Return whether an object exists, after downloading it."""
        if self._bucket.object_size(name) < 0:
            return False
        self._bucket.download(name, self.folder / name)
        return True

    def fetch_file(self, name: str) -> Path:
        """Return the path of a file, after downloading it if it is not in the cache.

        Raises DamagedRunError if the object is missing.
        """
        return self._fetch_as(name, name)

    def _fetch_as(self, name: str, local: str) -> Path:
        file = self.folder / local
        if not current_file_system().exists(file):
            current_file_system().make_folder(file.parent)
            try:
                self._bucket.download(name, file)
            except FileNotFoundError as error:
                raise DamagedRunError(str(error)) from None
        return file

    def prefetch_files(self, files: Mapping[str, str]) -> None:
        """Download objects to the cache by these names, several at a time, if they exist."""

        def fetch_one(name: str) -> None:
            with suppress(DamagedRunError):  # the reader of the file reports that it is missing
                self._fetch_as(name, files[name])

        map_concurrently(fetch_one, files)

    def find_foreign_file(self) -> str | None:
        """Return the name of an object that is no leftover of a killed start; None: there is none.

        Another driver may have started a run meanwhile.
        """
        names = [n for n in self._bucket.list_objects() if not n.startswith(("input/", "probe-"))]
        return names[0] if names else None

    def find_faults(self, files: Mapping[str, FileChecksum]) -> Iterator[tuple[str, str]]:
        """Yield the names of objects that are missing or differ in length, with the fault."""
        sizes = dict(zip(files, map_concurrently(self._bucket.object_size, files), strict=True))
        yield from self._compare_sizes(sizes, files)

    def _compare_sizes(
        self, sizes: Mapping[str, int], files: Mapping[str, FileChecksum]
    ) -> Iterator[tuple[str, str]]:
        for name, checksum in files.items():
            if (size := sizes.get(name, -1)) < 0:
                yield name, f"{self.url}/{name} is missing"
            elif size != checksum.size_bytes:
                yield (
                    name,
                    f"{self.url}/{name} is damaged: it has {size} bytes, "
                    f"{checksum.size_bytes} were written",
                )

    def remove_unnamed(self, named: Set[str], checked: Mapping[str, FileChecksum]) -> None:
        """Remove objects that are not ``named``. Raises FencedError.

        No other driver adds objects that will be named, unless it takes over in turn, which is
        checked after listing them. Raises DamagedRunError if one of the ``checked`` is missing or
        differs in length.
        """
        there = self._bucket.list_objects()
        for _, fault in self._compare_sizes(there, checked):
            raise DamagedRunError(fault)
        gone = [name for name in there if name not in named and self._is_ours(PurePosixPath(name))]
        self.fence()
        self._bucket.delete_objects(gone)

    def _is_ours(self, name: PurePosixPath) -> bool:
        """Return whether an object may be removed if nothing names it."""
        if name.parts[0] == "input":
            return name.parts[1] != self.snapshot
        return is_run_file(name.name) or name.name.startswith("probe-")

    def fetch_input(self) -> None:
        """Download the copy of static input, dated in the order in which Spark must read it."""
        names = self._bucket.list_objects(self._input.rstrip("/"))
        self.prefetch_files({name: name.replace(self._input, "input/", 1) for name in names})
        for file in durable_files.list_files_below(self.folder / "input", "[!.]*"):
            if file.suffix == ".parquet":
                current_file_system().set_times(file, float(file.stem))

    def lend_results(self, names: Collection[str]) -> Path:
        """Return a folder with these result files, which the next call replaces.

        Raises DamagedRunError if an object is missing.
        """
        folder = self.folder / "lent"
        current_file_system().remove_folder(folder)
        map_concurrently(lambda name: self._fetch_as(f"results/{name}", f"lent/{name}"), names)
        return folder

    def fetch_entries(self, first: int) -> None:
        """Download the entries of the log from ``first`` on."""
        self._bundles.fetch_entries(first)

    def bundle_entries(self, end: int) -> None:
        """Write the bundles that end before entry ``end``."""
        self._bundles.put_complete(end)

    def clear_cache(self) -> None:
        """Remove blocks and input from the cache."""
        for name in ("blocks", "input"):
            current_file_system().remove_folder(self.folder / name)

    def keep_until_exit(self) -> None:
        """Keep the cache until this process ends."""
        self._going.detach()
