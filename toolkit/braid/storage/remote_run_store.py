"""Store of a run in a bucket, with a local folder in which it is processed.

The folder, the **mirror**, has the layout of any run (see ``run_store``). It is empty when a
process opens the run, and is removed when the process no longer needs it. The bucket alone holds
the run, and its manifest log alone tells which files exist. Everything that a batch consists of is
in the bucket before its manifest, which is created only if none exists:

1. Tasks upload block and result files before they report them.
2. The driver checks that all reported files exist, and uploads the state.
3. For unbounded streams, it uploads Spark's checkpoint, which Spark keeps in the mirror, under the
name of the state: read positions are part of the batch.
4. It creates the manifest, which is the commit. Of two drivers, one finds that it exists, and
stops.
5. It deletes objects that no state names any more.

Objects have unique names and are never changed. So leftovers of a killed driver or task do no harm,
nor do uploads of a driver that does not know yet that it has lost the run. The next driver takes
over, by an entry of the log, before it deletes objects that are not named.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from braid.core.batch_report import BatchReport
from braid.core.event_io import encode_event
from braid.core.run_state import VERSION, FileChecksum, RunState
from braid.errors import DamagedRunError, FencedError
from braid.storage import durable_files
from braid.storage.durable_files import Durability
from braid.storage.log_entries import Merged, Named
from braid.storage.manifest_log import OLD, is_run_file
from braid.storage.object_store import map_concurrently, open_object_store
from braid.storage.remote_parts import RemoteManifestLog, RemotePublishedResults, RemoteSinkProgress
from braid.storage.run_store import RunStore
from braid.util import temp_dirs
from braid.util.environment import current_environment
from braid.util.file_system import current_file_system

_TRIES = 5
"""Attempts to take over. The previous driver may commit a batch during each."""
_OPENING = "opening.jsonl"


def open_store(path: str | Path, durability: Durability = "power") -> RunStore:
    """Return the store of a run in a folder, or in a bucket by its URL.

    Raises ValueError if ``path`` is neither.
    """
    return (
        RemoteRunStore(str(path), durability)
        if is_object_store_url(path)
        else RunStore(path, durability)
    )


def is_object_store_url(path: Any) -> bool:
    """Return whether a run's path is a URL other than ``file://``."""
    return isinstance(path, str) and "://" in path and not path.startswith("file://")


class RemoteRunStore(RunStore):
    """Store of the run in the bucket at a URL.

    Raises ValueError for an invalid URL, ModuleNotFoundError if a required package is missing.
    """

    def __init__(self, url: str, durability: Durability = "power") -> None:
        durable_files.check_durability(durability)
        self.bucket = open_object_store(url.rstrip("/"))
        super().__init__(temp_dirs.make_temp_dir("mirror"), "process")
        self._going = weakref.finalize(self, temp_dirs.remove_temp_dir, self.path)
        self._going.atexit = False
        self.url = self.where = self.bucket.url
        self.log: RemoteManifestLog = RemoteManifestLog(self.commits, self.bucket)
        self.output = RemotePublishedResults(self.path, self.bucket)
        self.delivered = RemoteSinkProgress(self.delivered.file, self.bucket)
        self._input = ""
        self._there: set[str] = set()

    def read_settings(self) -> dict[str, Any] | None:
        """Return the settings of the run in the bucket; None if the bucket is empty.

        Committed data is available afterwards. Raises ValueError if the bucket holds something
        else.
        """
        if not current_file_system().exists(self.settings_path):
            try:
                self.bucket.download("run.json", self.settings_path)
            except FileNotFoundError:
                if self._is_prefix_empty():
                    return None
                self.bucket.download("run.json", self.settings_path)
            self._fetch_committed()
        found = super().read_settings()
        self._input = found.get("input", "") if found else ""
        return found

    def _is_prefix_empty(self) -> bool:
        """Return whether the bucket has nothing but leftovers of a killed start.

        False if another driver has started a run meanwhile. Raises ValueError if it has something
        else.
        """
        others = [n for n in self.bucket.list_objects() if not n.startswith(("input/", "probe-"))]
        if others and "run.json" not in others:
            raise ValueError(
                f"{self.url} holds objects but no run of Braid, as {others[0]}; a new run needs a "
                "new or empty prefix"
            )
        return not others

    def _fetch_committed(self) -> None:
        """Download what has been committed since the last call: log, states, opening events."""
        for folder in (self.blocks, self.commits, self.input):
            current_file_system().make_folder(folder)
        self.output.make_folders()
        self.log.fetch_new_entries()
        states = [kept.state.name for kept in self.log.commits[-OLD:] if kept.state is not None]
        map_concurrently(self._fetch_if_missing, [f"commits/{name}" for name in states])
        self._fetch_if_missing(_OPENING, self.told.path.name)

    def _fetch_if_missing(self, name: str, to: str = "") -> None:
        """Download an object to the mirror if it exists and is not there yet."""
        file = self.path / (to or name)
        if not current_file_system().exists(file):
            current_file_system().make_folder(file.parent)
            try:
                self.bucket.download(name, file)
            except FileNotFoundError:
                return  # the reader of the file reports that it is missing

    def create_run(self, query: dict[str, Any]) -> None:
        """Write the settings of the run, locally and, once they are ready, in the bucket.

        The copy of static input is uploaded first, under a unique name. Raises RuntimeError if
        another driver has started the run meanwhile.
        """
        super().create_run(query)
        if not query.get("ready"):
            return
        new = not self._input
        if new:
            self._input = current_environment().make_token()
            files = [*durable_files.list_files_below(self.input, "[!.]*")]
            self._upload_files(
                {
                    f"{self._snapshot_prefix}/{f.relative_to(self.input).as_posix()}": f
                    for f in files
                }
            )
        body = durable_files.encode_checksummed({"v": VERSION, **query, "input": self._input})
        try:
            self.bucket.put_object("run.json", body, new)
        except FileExistsError:
            # If equal, the answer of the store was lost.
            if self.bucket.get_object("run.json") != body:
                raise RuntimeError(
                    f"another driver has begun the run in {self.url} meanwhile; this one stops"
                ) from None

    @property
    def _snapshot_prefix(self) -> str:
        """Prefix of the copy of static input in the bucket."""
        return f"input/{self._input}"

    def _upload_files(self, files: Mapping[str, Path]) -> None:
        map_concurrently(lambda name: self.bucket.put_object(name, files[name]), files)

    def check_driver(self) -> None:
        """Do nothing: the mirror belongs to this process. Object writes check who has the run."""

    def acquire_run(self) -> None:
        """Acquire the mirror for this process. ``take_over`` acquires the run itself.

        Raises ValueError if two drivers could both commit to the store.
        """
        super().acquire_run()
        self.bucket.check_conditional_put()

    def release_run(self) -> None:
        """Release the run, and remove the files that only batches need."""
        super().release_run()
        for folder in (self.blocks, self.input):
            current_file_system().remove_folder(folder)

    def take_over(self) -> None:
        """Append an entry by which this process takes over the run.

        The previous driver stops before its next commit; what it has committed by now remains.
        """
        for last in range(_TRIES)[::-1]:
            self._fetch_committed()
            try:
                return super().take_over()
            except FencedError:
                if not last:
                    raise

    def remove_unnamed_files(self) -> None:
        """Remove objects that no manifest names, left by killed tasks or a killed driver.

        Objects not named by Braid remain. Call after ``take_over``: no other driver then adds
        objects that will be named, unless it takes over in turn, which is checked after listing
        them.

        Raises DamagedRunError unless every object that the log names exists with its length.
        """
        self._live = self._referenced_block_files()
        self._there = set().union(*self._live.values())
        results = (f.name for kept in self.log.commits for f in kept.results)
        known, there = {*self._live, *self._there, *results}, self.bucket.list_objects()
        for name, seal in self._list_named_files():
            if (size := there.get(name, -1)) != seal.size_bytes:
                raise DamagedRunError(_describe_object_fault(self.url, name, size, seal))
        gone = [name for name in there if self._is_unnamed_object(PurePosixPath(name), known)]
        self.log.check_fence()
        self.bucket.delete_objects(gone)
        self._restore_checkpoint()

    def _restore_checkpoint(self) -> None:
        """Restore Spark's checkpoint of the last commit."""
        state, last = self.last_state(), [kept.state for kept in self.log.commits][-1:]
        if not self.follows or state is None or last[0] is None:
            return
        saved = self.path / ".checkpoint.json"
        try:
            self.bucket.download(_checkpoint_object_name(last[0].name), saved)
        except FileNotFoundError as error:
            raise DamagedRunError(str(error)) from None
        self.checkpoint.restore_from(saved)
        self.checkpoint.check_epoch(state.epoch)

    def _is_unnamed_object(self, name: PurePosixPath, known: set[str]) -> bool:
        if name.parts[0] == "input":
            return name.parts[1] != self._input
        return (is_run_file(name.name) and name.name not in known) or name.name.startswith("probe-")

    def write_state(self, state: RunState) -> Named:
        """Write and upload a state. It exists once a manifest names it."""
        named = super().write_state(state)
        self.bucket.put_object(f"commits/{named.name}", self.commits / named.name)
        return named

    def check_reported_files(self, outcome: BatchReport) -> None:
        """Raise RuntimeError unless all reported files are in the bucket with their lengths."""
        results = {*outcome.results}
        names = {n: f"{'results' if n in results else 'blocks'}/{n}" for n in outcome.files}
        sizes = map_concurrently(lambda name: self.bucket.object_size(names[name]), names)
        for (name, seal), size in zip(outcome.files.items(), sizes, strict=True):
            if size != seal.size_bytes:
                raise RuntimeError(
                    f"a worker on {outcome.workers[name]} has put {names[name]}, but "
                    f"{_describe_object_fault(self.url, names[name], size, seal)}; all workers "
                    "must reach the same "
                    "store as the driver"
                )
        self._there |= outcome.files.keys() - results

    def commit_batch(
        self,
        batch: int,
        snapshot: Named,
        results: Mapping[str, FileChecksum],
        happened: Iterable[Any],
    ) -> None:
        """Commit a batch by writing its manifest. All objects that it names must exist.

        Raises FencedError if another driver has taken over the run.
        """
        if self.follows:
            if current_file_system().exists(self.checkpoint.folder / "state"):
                raise RuntimeError(
                    f"a stream of the run in {self.url} keeps state in Spark, such as aggregates "
                    "or dropped duplicates, which is not stored in a bucket; keep the run in a "
                    "folder, or give streams without state"
                )
            self.bucket.put_object(_checkpoint_object_name(snapshot.name), self.checkpoint.dump())
        super().commit_batch(batch, snapshot, results, happened)

    def remove_old_files(self, state: RunState, snapshot: Named) -> None:
        """Remove old states, and block files that no retained state names, after a commit."""
        before = {*self._live}
        super().remove_old_files(state, snapshot)
        live = set[str]().union(*self._live.values())
        old, self._there = self._there - live, live
        states = [f"commits/{name}" for name in before - self._live.keys()]
        if self.follows:
            states += [_checkpoint_object_name(name) for name in before - self._live.keys()]
        if states or old:
            self.log.check_fence()
        self.bucket.delete_objects([*states, *(f"blocks/{name}" for name in old)])

    def log_opening_events(self, opening: Sequence[Any] = ()) -> None:
        """Log the events so far, and upload the opening ones."""
        super().log_opening_events(opening)
        self.bucket.put_object(_OPENING, b"".join(map(encode_event, opening)))

    def verify_files(self) -> None:
        """Download the copy of static input, in the order in which Spark must read it.

        Objects that the log names are checked by ``remove_unnamed_files``: before this driver takes
        over, another may still change them.
        """
        copied = self.bucket.list_objects(self._snapshot_prefix)
        map_concurrently(
            lambda name: self._fetch_if_missing(
                name, name.replace(self._snapshot_prefix, "input", 1)
            ),
            copied,
        )
        for file in durable_files.list_files_below(self.input, "[!.]*"):
            if file.suffix == ".parquet":
                current_file_system().set_times(file, float(file.stem))

    def _list_named_files(self) -> Iterable[tuple[str, FileChecksum]]:
        """Yield the result files of all batches and the block files of the last, with checksums."""
        for kept in self.log.commits:
            yield from ((f"results/{name}", seal) for name, seal in kept.results)
        if (state := self.last_state()) is not None:
            yield from ((f"blocks/{name}", seal) for name, seal in state.block_files.items())

    def fetch_all(self) -> None:
        """Download the complete run."""
        self.verify_files()
        map_concurrently(self._fetch_if_missing, [name for name, _ in self._list_named_files()])

    def result_files(
        self,
        first: int | None = None,
        end: int | None = None,
        deep: bool = False,
        merged: bool = True,
    ) -> list[str]:
        """Return the result files of the batches from ``first`` up to, excluding, ``end``.

        Files are downloaded first. Raises DamagedRunError if one is missing or differs in length,
        or in checksum if ``deep``.
        """
        wanted = range(max(first or 0, 0), self.log.batch_count if end is None else end)
        commits = [kept for kept in self.log.commits if kept.batch in wanted]
        map_concurrently(
            self.output.committed_path, (f.name for kept in commits for f in kept.results)
        )
        return super().result_files(first, end, deep, merged)

    def temporary_result_files(self, batch: int, deep: bool) -> list[str]:
        """Return the result files of a batch, in a folder that the next call replaces.

        A reader of every batch would otherwise end up with all results on this disk.
        """
        folder = self.path / "lent"
        current_file_system().remove_folder(folder)
        current_file_system().make_folder(folder)
        files = {
            f.name: f.seal
            for f in self.log.commits[batch - self.log.first_uncompacted_batch].results
        }
        try:
            map_concurrently(
                lambda name: self.bucket.download(f"results/{name}", folder / name), files
            )
        except FileNotFoundError as error:
            raise DamagedRunError(str(error)) from None
        for name, seal in files.items():
            durable_files.check_file(folder / name, seal, deep)
        return [str(folder / name) for name in files]

    def keep_until_exit(self) -> None:
        """Keep the mirror until this process ends."""
        self._going.detach()

    def _compact_results(self) -> list[Merged]:
        """Return no groups: results in a bucket are not compacted."""
        return []


def _checkpoint_object_name(state: str) -> str:
    """Return the name of the object with the Spark checkpoint of a state."""
    return f"checkpoint/{state}"


def _describe_object_fault(url: str, name: str, size: int, seal: FileChecksum) -> str:
    if size < 0:
        return f"{url}/{name} is missing"
    return f"{url}/{name} is damaged: it has {size} bytes, {seal.size_bytes} were written"
