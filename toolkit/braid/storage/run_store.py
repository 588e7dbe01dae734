"""Folder of a run: blocks, results, and a manifest log that alone tells which files exist.

Layout of the folder::

    run.json                     settings of the run
    input/ALIAS.arrow            static input of a stream, until it is split (see staged_input)
    input/ALIAS/000012.parquet   static input of a stream, one file per micro-batch
    input/files.json             lengths and checksums of either
    checkpoint/                  Spark's offsets
    blocks/*.arrow               block files, each written once by one task attempt
    staging/*.parquet            result files until their batch is committed, likewise
    results/*.parquet            result files of committed batches (see published_results)
    compacted/*.parquet          results of many batches in few files (see result_compactor)
    commits/000012.json          the log (see manifest_log): a batch, its results and events;
                                 linking the file into place is the commit
    commits/state-000012-*.json  live blocks, addresses of their replicas, placement state
    events.jsonl                 events of all manifests in order, for other readers; trimmed
                                 if retention is limited (see event_log_head)
    sink-progress.json           last batch delivered to the run's sink, if it has one

Every JSON file ends with its checksum and has a format version; other versions are refused. For
block files, result files and states, length and checksum are stored where the file is named. A file
exists only if a manifest names it, whatever a killed task or driver left behind.

**Durability before visibility**: with ``durability="power"``, every file that a manifest names, and
its folder, is forced to disk before the manifest. The manifest is forced to disk before the batch
is announced. With "process", the operating system decides when to write: a commit then survives the
end of the process, but not a power cut.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from braid.core.batch_report import BatchReport
from braid.core.event_io import LOGGER, encode_event
from braid.core.run_state import VERSION, FileChecksum, RunState, state_from_json, state_to_json
from braid.errors import DamagedRunError
from braid.storage import block_files, durable_files
from braid.storage.durable_files import Durability
from braid.storage.input_snapshot import InputSnapshot
from braid.storage.log_checkpointer import EventArchive
from braid.storage.log_entries import Driver, Kept, Manifest, Named
from braid.storage.manifest_log import OLD, is_run_file
from braid.storage.run_lock import RunLock
from braid.storage.spark_checkpoint import SparkCheckpoint
from braid.util.environment import current_environment
from braid.util.file_system import current_file_system

_SWEEP_EVERY = 16
"""Batches after which results/ is forced to disk.

The folder has a file for every batch, and forcing it takes longer as it grows. Links in staging/
protect the files until then.
"""


class RunStore(EventArchive):
    """Folder of one run. One process at a time may acquire it.

    A run in an object store has a RemoteRunStore instead. Raises ValueError if the path is not on
    this machine.
    """

    url = ""
    """URL of the run's bucket; "": the run is in this folder."""
    follows = False
    """Whether Spark's checkpoint is uploaded to the bucket with each state."""

    def __init__(self, path: str | Path, durability: Durability = "power") -> None:
        super().__init__(local_path(path), durable_files.check_durability(durability) == "power")
        self.blocks, self.input = self.path / "blocks", self.path / "input"
        self.where, self.copied = str(self.path), InputSnapshot(self.input, self.check_driver)
        self.checkpoint = SparkCheckpoint(self.path / "checkpoint")
        self._lock = RunLock(self.path / ".lock")
        self._live: dict[str, frozenset[str]] = {}
        self._visible: int | None = None
        self._expected: Future[None] | None = None
        self._removed: Future[None] | None = None

    @property
    def settings_path(self) -> Path:
        """Path of the run's settings."""
        return self.path / "run.json"

    def read_settings(self) -> dict[str, Any] | None:
        """Return the settings of the run in the folder; None for an empty or new folder.

        Raises ValueError if the folder holds something else, so that nothing is overwritten.
        """
        if current_file_system().exists(self.settings_path):
            query = msgspec.json.decode(
                durable_files.read_checksummed(self.settings_path, f"the run in {self.path}"),
                type=dict[str, Any],
            )
            return {k: v for k, v in query.items() if k not in ("v", "crc")}
        if next(durable_files.list_files_below(self.path, "[!.]*"), None) is not None:
            # Another driver has just created the run.
            if current_file_system().exists(self.settings_path):
                return self.read_settings()
            raise ValueError(
                f"{self.path} holds files but no run of Braid; a new run needs a new or empty "
                "folder"
            )
        return None

    def create_run(self, query: dict[str, Any]) -> None:
        """Create the folders of a run, and write its settings."""
        self._make_run_folder()
        for folder in (self.blocks, self.results, self.commits, self.input):
            current_file_system().make_folder(folder)
        self.output.make_folders()
        if self.force:  # before run.json exists
            durable_files.fsync_path(self.path)
        body, new = (
            durable_files.encode_checksummed({"v": VERSION, **query}),
            not current_file_system().exists(self.settings_path),
        )
        try:
            durable_files.write_atomically(
                self.settings_path, body, self.force, new, self.check_driver
            )
        except OSError:  # a driver that takes over removes temporary files
            if not new or not current_file_system().exists(self.settings_path):
                raise
            raise RuntimeError(
                f"another driver has begun the run in {self.path} meanwhile; this one stops"
            ) from None

    def _make_run_folder(self) -> None:
        """Create the run's folder and its parents."""
        above = [self.path, *self.path.parents]
        made = [folder for folder in above if not current_file_system().exists(folder)]
        current_file_system().make_folder(self.path, 0o700)  # it holds copies of the input
        for folder in made if self.force else ():
            durable_files.fsync_path(folder.parent)

    def acquire_run(self) -> None:
        """Acquire the run for this process. A killed process releases it.

        Raises RuntimeError if another process holds it, ValueError if its folder cannot be written
        to.
        """
        try:
            self._make_run_folder()
            mine = self._lock.try_acquire()
        except OSError as error:
            raise ValueError(
                f"the run's folder {self.path} cannot be made or written to: {error.strerror}; "
                "give another"
            ) from error
        if not mine:
            raise RuntimeError(
                f"{self.path} is in use by a run that has not ended; stop that run first"
            )

    def is_held(self) -> bool:
        """Return whether some process holds the run."""
        return self._lock.is_held()

    def release_run(self) -> None:
        """Release the run and close its block files. Nothing is written afterwards.

        Dropped files that could not be removed are removed at the next start.
        """
        try:
            self.wait_for_removals()
        except OSError as error:
            LOGGER.error("block files that nothing needs are still in %s: %s", self.where, error)
        self.copied.stop()
        block_files.close_block_files(self.blocks)
        self.log.is_mine = False
        self._lock.release_lock()

    def take_over(self) -> None:
        """Append an entry by which this process takes over the run.

        A previous driver that does not know it can then neither commit nor move a temporary file
        into place, as those are removed.
        """
        if not self.log.is_mine:
            if self.force:  # a killed driver may not have forced its last entry
                durable_files.fsync_path(self.commits)
            self.log.append_entry(self.force, driver=Driver.from_environment())
        self.copied.clear_cache()  # the previous driver may have split all input
        self.sweep()

    def sweep(self) -> None:
        """Remove temporary files of drivers that were killed before they renamed them."""
        folders = (self.path, self.commits, self.output.new, self.output.log, self.input)
        durable_files.remove_temporary_files(folders, self.check_driver)
        self.log.reload_log()

    @contextmanager
    def raise_if_superseded(self) -> Iterator[None]:
        """Raise FencedError in place of an error in the context if another driver has the run.

        The other driver removes files that this one needs.
        """
        try:
            yield
        except Exception:
            if self.log.is_mine:
                self.log.check_fence()
            raise

    def committed_batches(self) -> list[int]:
        """Return the numbers of committed batches, ascending."""
        with self.reading:
            self.log.read_new_entries()
            return [*range(self.log.batch_count)]

    def read_manifest(self, batch: int) -> Manifest:
        """Return the manifest of a batch that no checkpoint covers yet.

        Raises ValueError if another version wrote it.
        """
        self.log.read_new_entries()
        return self.log.read_entry(self.log.commits[batch - self.log.first_uncompacted_batch].entry)

    def last_state(self, policy: type = object, shedding: type = object) -> RunState | None:
        """Return the state after the last commit; None before the first.

        ``policy``, ``shedding``: types of the placement's and the shedder's state. Default: the
        plain stored values.
        """
        self.log.read_new_entries()
        commits = self.log.commits
        return self.read_state(commits[-1], policy, shedding) if commits else None

    def read_state(self, kept: Kept, policy: type = object, shedding: type = object) -> RunState:
        """Return the state after a commit. Raises DamagedRunError if it is damaged or missing."""
        assert kept.state is not None, "the last commits are not rolled up"
        name, seal = kept.state
        durable_files.check_file(self.commits / name, seal)
        return state_from_json(
            current_file_system().read_file(self.commits / name), policy, shedding
        )

    def write_state(self, state: RunState) -> Named:
        """Write a state. It exists once a manifest names it."""
        name, body = (
            f"state-{state.batch:06d}-{current_environment().make_token()}.json",
            state_to_json(state),
        )
        current_file_system().write_file(self.commits / name, body, self.force)
        return Named(name, FileChecksum(len(body), zlib.crc32(body)))

    def start_checkpoint_sync(self) -> None:
        """Start to force to disk what Spark has written of the next batch.

        The commit of that batch waits for it.
        """
        if self.force:
            self._expected = durable_files.run_in_background(self.checkpoint.sync_new_files)

    def _force_source(self) -> None:
        """Force to disk what Spark has written of the batches up to this one."""
        if self._expected is not None:
            self._expected.result()
        self.checkpoint.sync_new_files()

    def prepare_commit(self) -> None:
        """Force to disk what a commit needs of Spark's files.

        Raises RuntimeError if another process may have the folder.
        """
        self._lock.check_held()
        if self.force:
            self._force_source()

    def check_reported_files(self, outcome: BatchReport) -> None:
        """Raise RuntimeError unless all files reported by tasks exist with their lengths."""
        for name, seal in outcome.files.items():
            folder = self.output.new if name in outcome.results else self.blocks
            try:
                durable_files.check_file(folder / name, seal, deep=False)
            except DamagedRunError as damaged:
                raise RuntimeError(
                    f"a worker on {outcome.workers[name]} has written {name}, but here {damaged}; "
                    f"all workers must share the folder {self.path} with the driver"
                ) from None

    def commit_batch(
        self,
        batch: int,
        snapshot: Named,
        results: Mapping[str, FileChecksum],
        happened: Iterable[Any],
    ) -> None:
        """Commit a batch by putting its manifest into place, then publish its results.

        The content of every named file must be on disk; the folders are forced to disk here.

        Raises RuntimeError if another driver may have the run, FencedError if one has.
        """
        lines = [encode_event(e)[:-1] for e in happened]
        named = tuple(Named(*each) for each in results.items())
        with self.reading:
            self._lock.check_held()
            if self.force:
                for folder in (self.blocks, self.output.new, self.commits):
                    durable_files.fsync_path(folder)
                self._force_source()
            self.log.append_entry(self.force, snapshot, named, lines)
            self._update_sink_log(partial(self.output.publish_batch, batch, [*results]))

    def remove_old_files(self, state: RunState, snapshot: Named) -> None:
        """Remove states but the last two, and block files that neither names, after a commit.

        At intervals, also remove result files that nothing names, from task attempts that came
        second (speculation). Block files are removed in the background; see ``wait_for_removals``.
        """
        self.wait_for_removals()
        if state.batch % _SWEEP_EVERY == _SWEEP_EVERY - 1:
            self._sweep_results(state.batch)
        self._live[snapshot.name] = frozenset(state.block_files)
        old = [*self._live][:-OLD]
        live = frozenset[str]().union(*(self._live[name] for name in [*self._live][-OLD:]))
        names = current_file_system().list_names(self.blocks)
        gone = [self.blocks / n for n in names if n not in live and is_run_file(n)]
        self.check_driver()
        for name in old:
            current_file_system().remove_file(self.commits / name, missing_ok=True)
            del self._live[name]
        self._removed = durable_files.run_in_background(
            partial(block_files.remove_block_files, gone)
        )

    def finish_commit(self) -> None:
        """Wait for removals after the last batch, and leave its results linked in results/ only."""
        self.wait_for_removals()
        self._sweep_results(self.log.batch_count - 1)

    def _sweep_results(self, batch: int) -> None:
        """Leave result files of the batches up to this one linked in results/ only.

        Their links in results/ are forced to disk first.
        """
        if self.force:
            durable_files.fsync_path(self.results)
        self.output.remove_leftovers(batch)

    def wait_for_removals(self) -> None:
        """Wait until dropped block files are removed. Raises the error that prevented it."""
        removed, self._removed = self._removed, None
        if removed is not None:
            removed.result()

    def remove_unnamed_files(self) -> None:
        """Remove files that no manifest names, left by killed tasks or a killed driver.

        All named results are published. Files not named by Braid remain.
        """
        self.log.read_new_entries()
        later = [[f.name for f in kept.results] for kept in self.log.commits]
        self.log.drop_expired_names(self.force)
        self.merging.recover_compacted(self.log.merged, self.force)
        self.output.recover_published(
            self.log.merged, later, self._list_compacted_files, self._visible, self.force
        )
        self._visible = None
        self._live = self._referenced_block_files()
        live = {*self._live}.union(*self._live.values())
        there = [
            file
            for folder in (self.blocks, self.commits)
            for file in current_file_system().find_files(folder)
        ]
        self.check_driver()
        for file in there:
            if is_run_file(file.name) and file.name not in live:
                current_file_system().remove_file(file, missing_ok=True)
        durable_files.remove_temporary_files([self.commits], self.check_driver)

    def _referenced_block_files(self) -> dict[str, frozenset[str]]:
        """Return the block files of each retained state, by the name of the state.

        Raises DamagedRunError if the last state is damaged. If an earlier one is, the run only
        cannot go back to it.
        """
        found = dict[str, frozenset[str]]()
        for left, kept in enumerate(self.log.commits[-1 : -OLD - 1 : -1]):
            try:
                if kept.state is not None:
                    found[kept.state.name] = frozenset(self.read_state(kept).block_files)
            except DamagedRunError as damaged:
                if not left:
                    raise
                LOGGER.warning("%s; the run cannot go back to batch %d", damaged, kept.batch)
        return dict(reversed(found.items()))

    def verify_files(self) -> None:
        """Raise DamagedRunError unless every file that the log names exists with its length.

        The content of files is checked when they are opened.
        """
        self.log.read_new_entries()
        for named in self.named_files():
            self.verified_path(named)
        later = sum(len(kept.results) for kept in self.log.commits)
        self._visible = self.output.count_published()
        if self._visible != sum(m.files for m in self.log.merged) + later:
            self.compacted_files()
        if (state := self.last_state()) is not None:
            for name, seal in state.block_files.items():
                durable_files.check_file(self.blocks / name, seal, deep=False)


def local_path(path: str | Path) -> Path:
    """Return the folder of a path or a ``file://`` URL. Raises ValueError for another URL."""
    text = str(path)
    if re.match(r"file:/", text):
        return Path(unquote(urlsplit(text).path)).absolute()
    if re.match(r"[A-Za-z][\w+.-]+:/", text):
        raise ValueError(
            f"{text} is not a folder on this machine; a run needs one that the driver and all "
            "workers share, as a path or file://"
        )
    return Path(path).absolute()
