"""A run that lives in a bucket, and the folder on this process's disk in which it is worked on.

The folder, the **mirror**, is as any run's (see store.py), new and empty when a process opens the
run, and gone when nobody there has the run any more. So the bucket alone says what the run is, and
its log of manifests alone what of it exists. What a batch is made of is put into the bucket before
its manifest is, and that only if none is there:

1. tasks put their block files and result files, before they report them;
2. the driver looks whether all that was reported is there, and puts the state;
3. of streams that do not end it puts Spark's checkpoint, which Spark keeps in the mirror, under the
   state's name: how far they were read is part of what the batch leaves;
4. it puts the manifest, which is the commit. Of two drivers one finds that there is one, and stops;
5. it deletes what no state names any more.

Objects have names of their own and are never changed, so it does not matter what a killed driver or
task leaves at whichever point, nor what a driver puts that does not know yet that it has lost the
run. Before the next driver deletes what is not named, it has taken over, by an entry of the log.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from braid.core.batch_report import BatchReport
from braid.core.event_io import encode_event
from braid.core.run_state import VERSION, FileChecksum, RunState
from braid.storage import durable_files
from braid.storage.durable_files import DamagedRunError, Durability
from braid.storage.log_entries import Merged, Named
from braid.storage.manifest_log import OLD, FencedError, is_run_file
from braid.storage.object_store import map_concurrently, open_object_store
from braid.storage.remote_parts import RemoteManifestLog, RemotePublishedResults, RemoteSinkProgress
from braid.storage.run_store import RunStore
from braid.util import temp_dirs
from braid.util.environment import current_environment
from braid.util.file_system import current_file_system

_TRIES = 5
"""A driver that is taken over from may commit so many batches meanwhile."""
_OPENING = "opening.jsonl"


def open_store(path: str | Path, durability: Durability = "power") -> RunStore:
    """The run in a folder, or in a bucket by its URL. Raises ValueError for what is neither."""
    return (
        RemoteRunStore(str(path), durability)
        if is_object_store_url(path)
        else RunStore(path, durability)
    )


def is_object_store_url(path: Any) -> bool:
    """Whether a run's place is a URL other than ``file://``."""
    return isinstance(path, str) and "://" in path and not path.startswith("file://")


class RemoteRunStore(RunStore):
    """The mirror of a run that lives in the bucket at a URL. Raises ValueError for a URL of none,
    and ModuleNotFoundError without what opens it.
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
        """The query that the bucket holds a run of, or None for one without objects; what has been
        committed is at hand then. Raises ValueError for a bucket that holds something else.
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
        """Return whether the bucket has nothing, or what a killed start has left; False if another
        driver has begun a run meanwhile. Raises ValueError if it has something else.
        """
        others = [n for n in self.bucket.list_objects() if not n.startswith(("input/", "probe-"))]
        if others and "run.json" not in others:
            raise ValueError(
                f"{self.url} holds objects but no run of Braid, as {others[0]}; a new run needs a "
                "new or empty prefix"
            )
        return not others

    def _fetch_committed(self) -> None:
        """Bring what has been committed since the last time: the log, the last states, and how the
        run began.
        """
        for folder in (self.blocks, self.commits, self.input):
            current_file_system().make_folder(folder)
        self.output.make_folders()
        self.log.fetch_new_entries()
        states = [kept.state.name for kept in self.log.commits[-OLD:] if kept.state is not None]
        map_concurrently(self._fetch_if_missing, [f"commits/{name}" for name in states])
        self._fetch_if_missing(_OPENING, self.told.path.name)

    def _fetch_if_missing(self, name: str, to: str = "") -> None:
        """Copy an object to the mirror, if it is there and not here."""
        file = self.path / (to or name)
        if not current_file_system().exists(file):
            current_file_system().make_folder(file.parent)
            try:
                self.bucket.download(name, file)
            except FileNotFoundError:
                return  # whoever needs the file says that it is missing

    def create_run(self, query: dict[str, Any]) -> None:
        """Write the settings of the run: here, and once it is ready, in the bucket; there after the
        copy of static input, under a name of its own. Raises RuntimeError when another driver has
        begun the run meanwhile.
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
            if (
                self.bucket.get_object("run.json") != body
            ):  # else the answer was lost, and it is its own
                raise RuntimeError(
                    f"another driver has begun the run in {self.url} meanwhile; this one stops"
                ) from None

    @property
    def _snapshot_prefix(self) -> str:
        """Where the copy of static input is in the bucket."""
        return f"input/{self._input}"

    def _upload_files(self, files: Mapping[str, Path]) -> None:
        map_concurrently(lambda name: self.bucket.put_object(name, files[name]), files)

    def check_driver(self) -> None:
        """The mirror is this process's alone; who has the bucket is asked where objects go."""

    def acquire_run(self) -> None:
        """Make the mirror this process's. Raises ValueError for a store on which two drivers could
        both commit. Who has the run is said by ``take_over``.
        """
        super().acquire_run()
        self.bucket.check_conditional_put()

    def release_run(self) -> None:
        """Let go what only batches need."""
        super().release_run()
        for folder in (self.blocks, self.input):
            current_file_system().remove_folder(folder)

    def take_over(self) -> None:
        """Write into the log that this process goes on with the run from here, after whatever
        another driver has committed by now: that one stops before its next commit.
        """
        for last in range(_TRIES)[::-1]:
            self._fetch_committed()
            try:
                return super().take_over()
            except FencedError:
                if not last:
                    raise

    def remove_unnamed_files(self) -> None:
        """Remove objects that no manifest names, left by killed tasks or a killed driver. What
        Braid has not named stays. Called after ``take_over``: nobody else puts what will be named,
        unless the run has been taken over again, which is looked for after the names were.

        Raises Damaged unless all that the log names is in the bucket with its length.
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
        """Have Spark's checkpoint be that of the last commit."""
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
        """Put a state, which exists once a manifest names it."""
        named = super().write_state(state)
        self.bucket.put_object(f"commits/{named.name}", self.commits / named.name)
        return named

    def check_reported_files(self, outcome: BatchReport) -> None:
        """Raise RuntimeError unless all files that tasks report are in the bucket, whole."""
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
        """Make a batch real by putting its manifest. All that it names must be in the bucket.

        Raises Superseded when another driver has the run.
        """
        if self.follows:
            if current_file_system().exists(self.checkpoint.folder / "state"):
                raise RuntimeError(
                    f"a stream of the run in {self.url} keeps state in Spark, as one without "
                    "duplicates or with aggregates does, which a bucket does not get; keep the run "
                    "in a folder, or hand over streams without state"
                )
            self.bucket.put_object(_checkpoint_object_name(snapshot.name), self.checkpoint.dump())
        super().commit_batch(batch, snapshot, results, happened)

    def remove_old_files(self, state: RunState, snapshot: Named) -> None:
        """After a commit: drop states but the last two, and block files that neither names."""
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
        """Tell what has happened so far, here, and in the bucket how it began."""
        super().log_opening_events(opening)
        self.bucket.put_object(_OPENING, b"".join(map(encode_event, opening)))

    def verify_files(self) -> None:
        """Bring the copy of static input, in the order in which Spark is to read it. What the log
        names is looked for by ``clean``: before the run is taken over, another driver may go on
        with it.
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
        """The result files of all batches and the block files of the last, with their seals."""
        for kept in self.log.commits:
            yield from ((f"results/{name}", seal) for name, seal in kept.results)
        if (state := self.last_state()) is not None:
            yield from ((f"blocks/{name}", seal) for name, seal in state.block_files.items())

    def fetch_all(self) -> None:
        """Have all of the run here."""
        self.verify_files()
        map_concurrently(self._fetch_if_missing, [name for name, _ in self._list_named_files()])

    def result_files(
        self,
        first: int | None = None,
        end: int | None = None,
        deep: bool = False,
        merged: bool = True,
    ) -> list[str]:
        """The result files of the batches from ``first`` up to, not with, ``end``, brought here.
        Raises Damaged where one is missing or has not its length, or its checksum if ``deep``.
        """
        wanted = range(max(first or 0, 0), self.log.batch_count if end is None else end)
        commits = [kept for kept in self.log.commits if kept.batch in wanted]
        map_concurrently(
            self.output.committed_path, (f.name for kept in commits for f in kept.results)
        )
        return super().result_files(first, end, deep, merged)

    def temporary_result_files(self, batch: int, deep: bool) -> list[str]:
        """The result files of a batch, in a folder of their own, where the next ones replace them:
        whoever is given every batch would have all results here in the end.
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
        """Leave the mirror there until this process ends."""
        self._going.detach()

    def _compact_results(self) -> list[Merged]:
        """Results are not merged there, nor is the log rolled up but here."""
        return []


def _checkpoint_object_name(state: str) -> str:
    """The object that has Spark's checkpoint as it was with a state."""
    return f"checkpoint/{state}"


def _describe_object_fault(url: str, name: str, size: int, seal: FileChecksum) -> str:
    if size < 0:
        return f"{url}/{name} is missing"
    return f"{url}/{name} is damaged: it has {size} bytes, {seal.size_bytes} were written"
