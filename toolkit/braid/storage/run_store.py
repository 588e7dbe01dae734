"""Store of a run: blocks, results, and a manifest log that alone tells which files exist.

Each part of the store owns some of its files. The parts share the run's medium, a folder or a
bucket, and know each other only by the arguments of their constructors.

**Durability before visibility**: with ``durability="power"``, every file that a manifest names, and
its folder, is forced to disk before the manifest. The manifest is forced to disk before the batch
is announced. With "process", the operating system decides when to write: a commit then survives the
end of the process, but not a power cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from braid.core.batch_report import BatchReport
from braid.core.event_jsonl import LOGGER, encode_event
from braid.core.run_state import FileChecksum, RunState
from braid.errors import FencedError
from braid.storage import durable_files
from braid.storage.committed_events import EventArchive
from braid.storage.committed_results import CommittedResults
from braid.storage.durable_files import Durability
from braid.storage.irregular_files import IrregularFiles
from braid.storage.log_checkpointer import LogCheckpointer
from braid.storage.log_entries import DriverIdentity, FileRef
from braid.storage.manifest_log import OLD, ManifestLog
from braid.storage.match_bitmaps import MatchBitmaps
from braid.storage.published_results import PublishedResults
from braid.storage.remote_medium import RemoteMedium, is_object_store_url
from braid.storage.result_compactor import ResultCompactor
from braid.storage.run_files import remove_unnamed_files
from braid.storage.run_lock import RunLock
from braid.storage.run_medium import LocalMedium, RunMedium
from braid.storage.run_settings import SettingsFile
from braid.storage.sink_progress import SinkProgress
from braid.storage.spark_checkpoint import SparkCheckpoint
from braid.storage.state_files import BlockFolder, StateFiles
from braid.storage.static_input_copy import InputSnapshot
from braid.storage.trace_files import TraceFiles
from braid.util.file_system import current_file_system

_OPENING = "opening.jsonl"
"""Object with the first lines of ``events.jsonl``, which is not in the bucket."""
_TRIES = 5
"""Attempts to take over a run in a bucket. The previous driver may commit a batch during each."""
_SWEEP_EVERY = 16
"""Batches after which results/ is forced to disk.

The folder has a file for every batch, and forcing it takes longer as it grows. Links in staging/
protect the files until then.
"""


class RunStore:
    """Parts of one run, and the order in which they are read and changed.

    One process at a time may acquire the run. ``place``: path of its folder, or its medium.

    - ``path``: folder in which this process works on the run.
    - ``url``: URL of the run's bucket; "": the run is in the folder.
    - ``where``: folder or URL, for users.

    Raises ValueError if the path is not on this machine.
    """

    def __init__(self, place: str | Path | RunMedium, durability: Durability = "power") -> None:
        medium = LocalMedium(place, durability) if isinstance(place, str | Path) else place
        self.remote = medium if isinstance(medium, RemoteMedium) else None
        self.path, self.where, self.url = medium.folder, medium.where, medium.url
        self.force, self.check_driver = medium.force, medium.check_driver
        self.settings, self.lock = SettingsFile(medium), RunLock(self.path / ".lock")
        self.log = ManifestLog(medium)
        self.states, self.blocks = StateFiles(medium), BlockFolder(medium)
        self.bitmaps = MatchBitmaps(medium)
        self.archive = EventArchive(self.log)
        self.events = self.archive.file
        self.input = InputSnapshot(self.path / "input", medium.check_driver)
        self.checkpoint = SparkCheckpoint(self.path / "checkpoint", medium.force)
        self.published, self.compactor = PublishedResults(medium), ResultCompactor(medium)
        self.results = CommittedResults(self.log, self.published, self.compactor)
        self.sink_progress = SinkProgress(medium)
        self.irregular = IrregularFiles(self.log, self.archive)
        self.trace = TraceFiles(self.log, self.archive)
        named = self.results, self.compactor, self.sink_progress, self.irregular
        self.checkpointer = LogCheckpointer(self.log, self.archive, *named)
        medium.fence = self.log.check_fence
        self.medium, self._is_fetched = medium, False
        self._visible: int | None = None

    def read_settings(self) -> dict[str, Any] | None:
        """Return the settings of the run; None for an empty or new folder or bucket.

        What has been committed to a bucket is available afterwards. Raises ValueError if it holds
        something else, so that nothing is overwritten.
        """
        settings = self.settings.read_settings()
        if self.remote and settings is not None:
            self.remote.snapshot = settings.get("input", self.remote.snapshot)
            if not self._is_fetched:
                self._fetch_committed(self.remote)
        return settings

    def _fetch_committed(self, remote: RemoteMedium) -> None:
        """Download what has been committed by now: log, states, opening events."""
        self._is_fetched = True
        self._make_folders()
        remote.fetch_entries(self.log.next_entry)
        self.log.read_new_entries()
        states = [
            commit.state.name for commit in self.log.commits[-OLD:] if commit.state is not None
        ]
        files = {f"commits/{name}": f"commits/{name}" for name in states}
        remote.prefetch_files({**files, _OPENING: self.events.path.name})

    def _make_folders(self) -> None:
        for part in (self.blocks, self.log, self.input):
            current_file_system().make_folder(part.folder)
        self.published.make_folders()

    def create_run(self, settings: Mapping[str, Any]) -> None:
        """Create the folders of a run, and write its settings.

        Raises RuntimeError if another driver has created the run meanwhile.
        """
        self._make_run_folder()
        self._make_folders()
        if self.force:  # before run.json exists
            durable_files.fsync_path(self.path)
        self.settings.write_settings(settings)
        self._is_fetched = True
        if self.remote and settings.get("ready"):
            self.remote.announce_run(settings)

    def _make_run_folder(self) -> None:
        """Create the run's folder and its parents."""
        above = [self.path, *self.path.parents]
        created = [folder for folder in above if not current_file_system().exists(folder)]
        current_file_system().make_folder(self.path, 0o700)  # it holds copies of the input
        for folder in created if self.force else ():
            durable_files.fsync_path(folder.parent)

    def acquire_run(self) -> None:
        """Acquire the run for this process. A killed process releases it.

        A run in a bucket is acquired by ``take_over``.

        Raises RuntimeError if another process holds it, ValueError if it cannot be written to.
        """
        try:
            self._make_run_folder()
            is_acquired = self.lock.try_acquire()
        except OSError as error:
            raise ValueError(
                f"the run's folder {self.path} cannot be made or written to: {error.strerror}; "
                "give another"
            ) from error
        if not is_acquired:
            raise RuntimeError(
                f"{self.path} is in use by a run that has not ended; stop that run first"
            )
        if self.remote:
            self.remote.check_usable()

    def release_run(self) -> None:
        """Release the run and close its block files. Nothing is written afterwards.

        Dropped files that could not be removed are removed at the next start.
        """
        try:
            self.blocks.wait_for_removals()
        except OSError as error:
            LOGGER.error("block files that nothing needs are still in %s: %s", self.where, error)
        self.input.stop()
        self.blocks.close_files()
        self.log.is_mine = False
        self.lock.release_lock()
        if self.remote:
            self.remote.clear_cache()

    def take_over(self, last_batch: int | None = None) -> None:
        """Append an entry by which this process takes over the run.

        A previous driver that does not know it can then neither commit nor move a temporary file
        into place, as those are removed. ``last_batch``: see ``ManifestLog.append_entry``.
        """
        for left in range(_TRIES if self.remote else 1)[::-1]:
            if self.remote:
                self._fetch_committed(self.remote)
            try:
                self._append_start(last_batch)
                break
            except FencedError:
                if not left:
                    raise
        self.input.clear_cache()  # the previous driver may have split all input
        self.sweep()

    def _append_start(self, last_batch: int | None) -> None:
        if not self.log.is_mine or last_batch is not None:
            if self.force:  # a killed driver may not have forced its last entry
                durable_files.fsync_path(self.log.folder)
            self._append_entry(driver=DriverIdentity.from_environment(), last_batch=last_batch)

    def _append_entry(self, *commit: Any, **start: Any) -> None:
        self.log.append_entry(*commit, **start)
        if self.remote:
            self.remote.bundle_entries(self.log.next_entry)

    def sweep(self) -> None:
        """Remove temporary files of drivers that were killed before they renamed them."""
        results = self.published.new, self.published.sink_log.folder
        folders = self.path, self.log.folder, *results, self.input.folder, self.irregular.folder
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

    def last_state(self, policy: type = object, shedding: type = object) -> RunState | None:
        """Return the state after the last commit; None before the first.

        ``policy``, ``shedding``: types of the placement's and the shedder's state. Default: the
        plain stored values.
        """
        self.log.read_new_entries()
        commits = self.log.commits
        return self.states.read_state(commits[-1], policy, shedding) if commits else None

    def check_reported_files(self, outcome: BatchReport) -> None:
        """Raise RuntimeError unless all files reported by tasks exist with their lengths."""
        places = dict.fromkeys(outcome.results, self.medium.new_results)
        places |= dict.fromkeys(outcome.irregular, self.irregular.folder.name)
        files = {f"{places.get(n, 'blocks')}/{n}": c for n, c in outcome.files.items()}
        for name, fault in self.medium.find_faults(files):
            worker = outcome.workers[Path(name).name]
            raise RuntimeError(
                f"a worker on {worker} has written {name}, but here {fault}; all workers must "
                f"share {self.where} with the driver"
            )
        if self.remote:
            self.remote.blocks |= outcome.files.keys() - places.keys()

    def commit_batch(
        self,
        batch: int,
        snapshot: FileRef,
        results: Mapping[str, FileChecksum],
        happened: Iterable[Any],
    ) -> None:
        """Commit a batch by putting its manifest into place, then publish its results.

        The content of every named file must be on disk; the folders are forced to disk here.

        Raises RuntimeError if another driver may have the run, FencedError if one has.
        """
        if self.remote and self.remote.has_checkpoints:
            self.remote.upload_files({f"checkpoint/{snapshot.name}": self.checkpoint.dump()})
        lines = [encode_event(e)[:-1] for e in happened]
        named = tuple(FileRef(*each) for each in results.items())
        with self.results.reading:
            self.lock.check_held()
            if self.force:
                rows = *self.irregular.list_folders(), *self.trace.list_folders()
                for folder in (self.blocks.folder, self.published.new, self.log.folder, *rows):
                    durable_files.fsync_path(folder)
            self.checkpoint.finish_sync()
            self._append_entry(snapshot, named, lines)
            self.results.publish_batch(batch, [*results])

    def remove_old_files(self, state: RunState, snapshot: FileRef) -> None:
        """Remove states but the last two, and block files that neither names, after a commit.

        At intervals, also remove result files that nothing names, from task attempts that came
        second (speculation). Block files are removed in the background; see ``BlockFolder``.
        """
        self.blocks.wait_for_removals()
        if state.batch % _SWEEP_EVERY == _SWEEP_EVERY - 1:
            self.published.remove_leftovers(state.batch)
        old = self.states.retain_state(snapshot.name, state.block_files)
        live = self.states.list_live_blocks()
        unnamed = self.blocks.list_unnamed(live)
        self.check_driver()
        self.states.remove_states(old)
        self.blocks.start_removing(unnamed)
        if self.remote:
            self.remote.remove_old(old, live)

    def log_opening_events(self, opening: Sequence[Any] = ()) -> None:
        """Log the ``opening`` events, and those of the batches so far."""
        self.archive.begin_log(opening)
        if self.remote:
            self.remote.upload_files({_OPENING: b"".join(map(encode_event, opening))})

    def log_events(self, happened: Sequence[Any]) -> None:
        """Log the events of the last commit. Write a checkpoint if it is due."""
        self.archive.append_events(happened)
        self.checkpointer.write_if_due()
        self.irregular.remove_expired(self.log.first_retained_batch)
        self.trace.remove_expired(self.log.first_retained_batch)

    def finish_commit(self) -> None:
        """Wait for removals after the last batch, and leave its results linked in results/ only."""
        self.blocks.wait_for_removals()
        self.published.remove_leftovers(self.log.batch_count - 1)

    def remove_unnamed_files(self) -> None:
        """Remove files that no manifest names, left by killed tasks or a killed driver.

        Call after ``take_over``. All named results of a folder are published. Files not named by
        Braid remain. Raises DamagedRunError if an object that the log names is missing or damaged.
        """
        self.log.read_new_entries()
        if not self.remote:
            self.results.recover_results(self._visible)
            self._visible = None
        self.states.load_retained(self.log.commits)
        if self.remote:
            self._remove_unnamed_objects(self.remote)
            return
        named = self.states.list_live_blocks() | self.states.block_files.keys()
        remove_unnamed_files([self.blocks.folder, self.log.folder], named, self.check_driver)
        self.irregular.remove_unnamed()
        self.trace.remove_unnamed()
        durable_files.remove_temporary_files([self.log.folder], self.check_driver)

    def _remove_unnamed_objects(self, remote: RemoteMedium) -> None:
        """Remove objects that no manifest names, and restore Spark's checkpoint."""
        checked = dict(self._list_named_files())
        remote.blocks = self.states.list_live_blocks()
        named = {*checked, *(f"blocks/{name}" for name in remote.blocks)}
        named |= {f"{at}/{s}" for at in ("commits", "checkpoint") for s in self.states.block_files}
        named |= {f"{self.trace.folder.name}/{file.name}" for file in self.trace.list_committed()}
        remote.remove_unnamed(named, checked)
        if remote.has_checkpoints and (state := self.last_state()) is not None:
            saved = remote.fetch_file(f"checkpoint/{[*self.states.block_files][-1]}")
            self.checkpoint.restore_from(saved)
            self.checkpoint.check_epoch(state.epoch)

    def _list_named_files(self) -> Iterator[tuple[str, FileChecksum]]:
        """Yield result files and irregular rows of all batches, and block files of the last."""
        for named in self.results.named_files():
            yield f"results/{named.name}", named.checksum
        for file in self.irregular.list_committed():
            yield f"{self.irregular.folder.name}/{file.name}", file.checksum
        if (state := self.last_state()) is not None:
            for name, checksum in state.block_files.items():
                yield f"blocks/{name}", checksum

    def verify_files(self) -> None:
        """Raise DamagedRunError unless every file that the log names exists with its length.

        The content of files is checked when they are opened. Objects of a bucket are checked by
        ``remove_unnamed_files``: before this driver takes over, another may still change them.
        """
        if self.remote:
            self.remote.fetch_input()
            return
        self.log.read_new_entries()
        for named in self.results.named_files():
            self.results.verified_path(named)
        later = sum(len(commit.results) for commit in self.log.commits)
        self._visible = self.published.count_published()
        if self._visible != sum(m.files for m in self.log.merged) + later:
            self.results.compacted_files()
        if (state := self.last_state()) is not None:
            self.blocks.check_files(state, deep=False)

    def fetch_all(self) -> None:
        """Download the complete run if it is in a bucket, as far as its objects exist."""
        if self.remote:
            self.remote.fetch_input()
            self.remote.prefetch_files({name: name for name, _ in self._list_named_files()})

    def keep_until_exit(self) -> None:
        """Keep result files in place until this process ends, as they are still being read."""
        if self.remote:
            self.remote.keep_until_exit()


def open_store(path: str | Path, durability: Durability = "power") -> RunStore:
    """Return the store of a run in a folder, or in a bucket by its URL.

    Raises ValueError if ``path`` is neither.
    """
    durable_files.check_durability(durability)
    return RunStore(RemoteMedium(str(path)) if is_object_store_url(path) else path, durability)
