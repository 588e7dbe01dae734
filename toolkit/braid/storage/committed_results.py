"""Results of a run as its log names them: publish them, and find the files to read.

These are compacted files, original files, and substitutes for lost ones.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

from braid.core.event_jsonl import LOGGER
from braid.core.run_state import FileChecksum
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.log_entries import CompactedResults, FileRef
from braid.storage.manifest_log import ManifestLog
from braid.storage.published_results import PublishedResults
from braid.storage.remote_medium import RemoteMedium
from braid.storage.result_compactor import ResultCompactor, read_verified_pages
from braid.storage.run_files import is_compacted_file, result_file_batch, result_file_sort_key
from braid.util.file_system import current_file_system


class CommittedResults:
    """Results of the batches that a run's log names.

    ``reading``: lock that a commit holds while it changes log and results.
    """

    def __init__(
        self, log: ManifestLog, published: PublishedResults, compactor: ResultCompactor
    ) -> None:
        self._log, medium = log, log.medium
        self._remote = medium if isinstance(medium, RemoteMedium) else None
        self._path, self._sink_log = medium.folder, published.sink_log
        self._published, self._compactor = published, compactor
        self.reading = threading.Lock()
        self.lost = set[str]()
        """Files missing from results/ whose rows are in compacted/."""
        self._gone = 0
        """First batch retained by another process, when this one last looked."""
        self._seen: tuple[tuple[int, int] | None, list[list[str]]] = None, []
        self._sizes: dict[str, int] = {}

    def named_files(self) -> list[FileRef]:
        """Return the result files that the log names: compacted parts, then original files."""
        parts = [part for merged in self._log.merged for part in merged.part_files]
        return parts + [named for commit in self._log.commits for named in commit.results]

    def verified_path(self, named: FileRef, deep: bool = False) -> str:
        """Return the path of a result file.

        Raises DamagedRunError if it differs in length, or in checksum if ``deep``.
        """
        many = is_compacted_file(named.name)
        file = (
            self._compactor.compacted_path(named.name)
            if many
            else Path(self._published.committed_path(named.name))
        )
        if not many and not current_file_system().exists(file):
            file = self._compactor.linked_path(named.name) or file
        durable_files.check_file(file, named.checksum, deep)
        return str(file)

    def result_files(
        self,
        first: int | None = None,
        end: int | None = None,
        deep: bool = False,
        merged: bool = True,
    ) -> list[str]:
        """Return the result files of the batches from ``first`` up to, excluding, ``end``.

        Files are in order of batches.

        - ``first``: None: first retained batch.
        - ``end``: None: all batches.
        - ``deep``: compare checksums, not only lengths.
        - ``merged``: use compacted files for groups of batches that are requested completely.

        Raises DamagedRunError if a file is missing or damaged, ValueError if some batches are no
        longer retained.
        """
        if self._remote:
            self._prefetch(self._remote, first, end)
        with self.reading:
            self._log.read_new_entries()
            end = self._log.batch_count if end is None else end
            since = self._log.first_retained_batch
            if first is not None and max(first, 0) < min(since, end):
                raise ValueError(_describe_expired_batch(first, since))
            wanted = range(since if first is None else max(first, 0), end)
            paths = self._list_compacted_results(wanted, deep, merged)
            late = [commit for commit in self._log.commits if commit.batch in wanted]
            return paths + [self.verified_path(f, deep) for commit in late for f in commit.results]

    def temporary_result_files(self, batch: int, deep: bool) -> list[str]:
        """Return the result files of a batch. They may go when another batch is requested.

        A reader of every batch of a bucket would otherwise end up with all results on this disk.
        """
        if not self._remote:
            return self.result_files(batch, batch + 1, deep, merged=False)
        files = self._log.commits[batch - self._log.first_uncompacted_batch].results
        folder = self._remote.lend_results([f.name for f in files])
        for name, checksum in files:
            durable_files.check_file(folder / name, checksum, deep)
        return [str(folder / f.name) for f in files]

    def _prefetch(self, remote: RemoteMedium, first: int | None, end: int | None) -> None:
        """Download result files, several at a time, without holding the lock."""
        wanted = range(max(first or 0, 0), self._log.batch_count if end is None else end)
        names = (f.name for k in self._log.commits if k.batch in wanted for f in k.results)
        remote.prefetch_files({f"results/{name}": f"results/{name}" for name in names})

    def _list_compacted_results(self, wanted: range, deep: bool, merged: bool) -> list[str]:
        """Return the files of the wanted batches that are compacted."""
        paths = list[str]()
        for group in self._log.merged:
            within = range(max(group.first_batch, wanted.start), min(group.end_batch, wanted.stop))
            if merged and within == range(group.first_batch, group.end_batch):
                paths += [self.verified_path(part, deep) for part in group.part_files]
            elif within:
                listed = self.published_files()
                if within.start < self._gone:
                    raise ValueError(_describe_expired_batch(within.start, self._gone))
                paths += [self._find_original_file(name) for b in within for name in listed[b]]
        return paths

    def _find_original_file(self, name: str) -> str:
        """Return the path of an original file of a compacted batch.

        Raises DamagedRunError if it is missing or replaced, ValueError if its batch is no longer
        retained.
        """
        file = self._published.results / name
        try:
            self.check_published_file(name)
            return str(file)
        except DamagedRunError:
            if current_file_system().exists(file):
                raise
        if same := self._compactor.linked_path(name):
            return str(same)
        self.compacted_files()  # it may be lost or removed since the listing
        if result_file_batch(name) < self._gone:
            raise ValueError(_describe_expired_batch(result_file_batch(name), self._gone))
        if name in self.lost:
            raise DamagedRunError(
                f"{file} is missing; compacted/ has its rows, and `braid repair {self._path}` "
                "brings it back"
            )
        raise DamagedRunError(f"{file} is missing")

    def check_published_file(self, name: str, deep: bool = False) -> None:
        """Raise DamagedRunError if an original file is missing or not as long as Spark's log says.

        ``deep``: also if a page does not match its checksum.
        """
        file = self._published.results / name
        if deep:
            read_verified_pages(file)
        try:
            size = current_file_system().read_size(file)
        except FileNotFoundError:
            raise DamagedRunError(f"{file} is missing") from None
        if self._sizes.get(name, size) != size:
            self._sizes = self._sink_log.logged_sizes()  # a repair may have restored the file
            if name in self._sizes:
                durable_files.check_file(file, FileChecksum(self._sizes[name], 0), deep=False)

    def published_files(self) -> list[list[str]]:
        """Return ``compacted_files`` for the names in Spark's sink log, cached per checkpoint."""
        limits = self._log.first_retained_batch, self._log.first_uncompacted_batch
        if self._seen[0] != limits:
            self._sizes = self._sink_log.logged_sizes()
            self._seen = limits, self.compacted_files(self._sizes)
        return self._seen[1]

    def compacted_files(self, known_files: Collection[str] = ()) -> list[list[str]]:
        """Return the original files of compacted batches, by batch.

        Lost files whose rows are in compacted/ are included; batches that another process has
        dropped are empty. Names are compared only if a number of files differs or a file in
        ``known_files`` is missing.

        Raises DamagedRunError if files and their rows are missing.
        """
        names = Counter(map(result_file_batch, known_files))
        files = self._published.published_files(self._log.first_uncompacted_batch)
        files[: self._log.first_retained_batch] = [
            [] for _ in range(self._log.first_retained_batch)
        ]
        for merged in self._log.merged:
            there = [
                name for names in files[merged.first_batch : merged.end_batch] for name in names
            ]
            wanted = sum(names[batch] for batch in range(merged.first_batch, merged.end_batch))
            if len(there) == merged.files and sum(n in known_files for n in there) == wanted:
                continue
            self._gone = self._first_retained_now()
            if merged.end_batch > self._gone:
                self._substitute_compacted(merged, files)
            else:
                files[merged.first_batch : merged.end_batch] = [
                    [] for _ in range(merged.first_batch, merged.end_batch)
                ]
        return files

    def _substitute_compacted(
        self, merged: CompactedResults, files_by_batch: list[list[str]]
    ) -> None:
        """Include lost files of a group, if compacted/ has their rows.

        Spark's sink log tells which files are lost, and which existing ones belong to no batch.
        Raises DamagedRunError if their numbers do not match.
        """
        batches = range(merged.first_batch, merged.end_batch)
        logged = {
            n
            for n in self._sink_log.logged_files(merged.end_batch)
            if result_file_batch(n) in batches
        }
        there = {name for batch in batches for name in files_by_batch[batch]}
        if len(logged) == merged.files:
            there &= logged
            files_by_batch[merged.first_batch : merged.end_batch] = [
                [name for name in files_by_batch[batch] if name in logged] for batch in batches
            ]
        lost = logged - there
        amiss = len(there) + len(lost) != merged.files
        if amiss or (lost and any(map(self._is_damaged, merged.part_files))):
            raise DamagedRunError(
                f"{self._published.results} is damaged: it has {len(there)} files of the batches "
                f"{merged.first_batch} to {merged.end_batch - 1}, {merged.files} were written"
            )
        for name in lost:
            files_by_batch[result_file_batch(name)] = sorted(
                [*files_by_batch[result_file_batch(name)], name], key=result_file_sort_key
            )
        if lost - self.lost:
            LOGGER.warning(
                "%s lacks %d files of the batches %d to %d, as %s; compacted/ has their rows, and "
                "`braid repair %s` brings them back",
                *(
                    self._published.results,
                    len(lost),
                    merged.first_batch,
                    merged.end_batch - 1,
                    min(lost),
                    self._path,
                ),
            )
        self.lost |= lost

    def _first_retained_now(self) -> int:
        """Return the first batch retained now, as another process may have removed some."""
        now = ManifestLog(self._log.medium)
        now.read_new_entries()
        return now.first_retained_batch

    def _is_damaged(self, part: FileRef) -> bool:
        try:
            self.verified_path(part)
        except DamagedRunError:
            return True
        return False

    def publish_batch(self, batch: int, names: Sequence[str]) -> None:
        """Publish a committed batch."""
        self._update_sink_log(partial(self._published.publish_batch, batch, names))

    def drop_expired(self, since: int) -> None:
        """Remove the batches from ``since`` on that the last checkpoint does not retain."""
        first = self._log.first_retained_batch
        self._log.drop_expired_names()
        self._update_sink_log(partial(self._published.unpublish, since, first))
        self._compactor.recover_compacted(self._log.merged)
        LOGGER.info("results are kept from batch %d on", first)

    def recover_results(self, seen: int | None) -> None:
        """Publish all named results, and remove files that no manifest names.

        ``seen``: number of published files, if just counted.
        """
        self._log.drop_expired_names()
        self._compactor.recover_compacted(self._log.merged)
        self._published.recover_published(
            self._log.merged, self._list_later_files(), self._list_compacted_files, seen
        )

    def rewrite_sink_log(self) -> None:
        """Rewrite Spark's sink log with the files of all retained batches.

        Raises DamagedRunError if some of the files are missing.
        """
        self._published.republish(self._list_compacted_files(), self._list_later_files())

    def _update_sink_log(self, change: Callable[[], None]) -> None:
        """Change Spark's sink log. If it is damaged, rewrite it first."""
        try:
            change()
        except DamagedRunError as damaged:
            LOGGER.warning("%s, which is done now", damaged)
            self.rewrite_sink_log()
            change()

    def _list_later_files(self) -> list[list[str]]:
        """Return the files of the batches after the compacted ones, by batch."""
        return [[f.name for f in commit.results] for commit in self._log.commits]

    def _list_compacted_files(self) -> list[list[str]]:
        """Return the original files of compacted batches that Spark's sink log names, by batch."""
        return self.compacted_files(self._sink_log.logged_sizes())


def _describe_expired_batch(batch: int, since: int) -> str:
    return f"the results of batch {batch} are no longer kept; those from batch {since} on are"
