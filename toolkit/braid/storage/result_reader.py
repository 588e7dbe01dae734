"""Read a run's results: compacted files, original files, and substitutes for lost ones."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from braid.core.event_io import LOGGER
from braid.core.run_state import FileChecksum
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.log_entries import Merged, Named
from braid.storage.manifest_log import ManifestLog, result_file_batch, result_file_sort_key
from braid.storage.published_results import PublishedResults
from braid.storage.result_compactor import ResultCompactor, is_compacted_file, read_verified_pages
from braid.util.file_system import current_file_system


class ResultReader:
    """Results of the run in the folder ``path``, as its log names them."""

    def __init__(self, path: Path) -> None:
        self.path, self.results, self.commits = path, path / "results", path / "commits"
        self.log: ManifestLog = ManifestLog(self.commits, path)
        self.output: PublishedResults = PublishedResults(path, self.check_driver)
        self.merging = ResultCompactor(path, self.check_driver)
        self.reading = threading.Lock()
        self.lost = set[str]()
        """Files missing from results/ whose rows are in compacted/."""
        self._gone = 0
        """First batch retained by another process, when this one last looked."""
        self._seen: tuple[tuple[int, int] | None, list[list[str]]] = None, []
        self._sizes: dict[str, int] = {}

    def check_driver(self) -> None:
        """Raise FencedError if another driver has taken over the run."""
        self.log.check_fence()

    def named_files(self) -> list[Named]:
        """Return the result files that the log names: compacted parts, then original files."""
        parts = [part for merged in self.log.merged for part in merged.parts]
        return parts + [named for kept in self.log.commits for named in kept.results]

    def verified_path(self, named: Named, deep: bool = False) -> str:
        """Return the path of a result file.

        Raises DamagedRunError if it differs in length, or in checksum if ``deep``.
        """
        many = is_compacted_file(named.name)
        file = (
            self.merging.compacted_path(named.name)
            if many
            else Path(self.output.committed_path(named.name))
        )
        if not many and not current_file_system().exists(file):
            file = self.merging.linked_path(named.name) or file
        durable_files.check_file(file, named.seal, deep)
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
        with self.reading:
            self.log.read_new_entries()
            end = self.log.batch_count if end is None else end
            since = self.log.first_retained_batch
            if first is not None and max(first, 0) < min(since, end):
                raise ValueError(_describe_expired_batch(first, since))
            wanted = range(since if first is None else max(first, 0), end)
            found = self._list_compacted_results(wanted, deep, merged)
            late = [kept for kept in self.log.commits if kept.batch in wanted]
            return found + [self.verified_path(f, deep) for kept in late for f in kept.results]

    def temporary_result_files(self, batch: int, deep: bool) -> list[str]:
        """Return the result files of a batch. They may go when another batch is requested."""
        return self.result_files(batch, batch + 1, deep, merged=False)

    def keep_until_exit(self) -> None:
        """Keep the result files in place until this process ends, as they are still being read."""

    def _list_compacted_results(self, wanted: range, deep: bool, merged: bool) -> list[str]:
        """Return the files of the wanted batches that are compacted."""
        found = list[str]()
        for group in self.log.merged:
            within = range(max(group.first, wanted.start), min(group.end, wanted.stop))
            if merged and within == range(group.first, group.end):
                found += [self.verified_path(part, deep) for part in group.parts]
            elif within:
                listed = self.published_files()
                if within.start < self._gone:
                    raise ValueError(_describe_expired_batch(within.start, self._gone))
                found += [self._find_original_file(name) for b in within for name in listed[b]]
        return found

    def _find_original_file(self, name: str) -> str:
        """Return the path of an original file of a compacted batch.

        Raises DamagedRunError if it is missing or replaced, ValueError if its batch is no longer
        retained.
        """
        file = self.results / name
        try:
            self.check_published_file(name)
            return str(file)
        except DamagedRunError:
            if current_file_system().exists(file):
                raise
        if same := self.merging.linked_path(name):
            return str(same)
        self.compacted_files()  # it may be lost or removed since the listing
        if result_file_batch(name) < self._gone:
            raise ValueError(_describe_expired_batch(result_file_batch(name), self._gone))
        if name in self.lost:
            raise DamagedRunError(
                f"{file} is missing; compacted/ has its rows, and `braid repair {self.path}` "
                "brings "
                "it back"
            )
        raise DamagedRunError(f"{file} is missing")

    def check_published_file(self, name: str, deep: bool = False) -> None:
        """Raise DamagedRunError if an original file is missing or not as long as Spark's log says.

        ``deep``: also if a page does not match its checksum.
        """
        file = self.results / name
        if deep:
            read_verified_pages(file)
        try:
            size = current_file_system().read_size(file)
        except FileNotFoundError:
            raise DamagedRunError(f"{file} is missing") from None
        if self._sizes.get(name, size) != size:
            self._sizes = self.output.logged_sizes()  # a repair may have restored the file
            if name in self._sizes:
                durable_files.check_file(file, FileChecksum(self._sizes[name], 0), deep=False)

    def published_files(self) -> list[list[str]]:
        """Return ``compacted_files`` for the names in Spark's sink log, cached per checkpoint."""
        known = self.log.first_retained_batch, self.log.first_uncompacted_batch
        if self._seen[0] != known:
            self._sizes = self.output.logged_sizes()
            self._seen = known, self.compacted_files(self._sizes)
        return self._seen[1]

    def compacted_files(self, known: Collection[str] = ()) -> list[list[str]]:
        """Return the original files of compacted batches, by batch.

        Lost files whose rows are in compacted/ are included; batches that another process has
        dropped are empty. Names are compared only if a number of files differs or a file in
        ``known`` is missing.

        Raises DamagedRunError if files and their rows are missing.
        """
        names = Counter(map(result_file_batch, known))
        found = self.output.published_files(self.log.first_uncompacted_batch)
        found[: self.log.first_retained_batch] = [[] for _ in range(self.log.first_retained_batch)]
        for merged in self.log.merged:
            there = [name for names in found[merged.first : merged.end] for name in names]
            wanted = sum(names[batch] for batch in range(merged.first, merged.end))
            if len(there) == merged.files and sum(n in known for n in there) == wanted:
                continue
            self._gone = self._first_retained_now()
            if merged.end > self._gone:
                self._substitute_compacted(merged, found)
            else:
                found[merged.first : merged.end] = [[] for _ in range(merged.first, merged.end)]
        return found

    def _substitute_compacted(self, merged: Merged, found: list[list[str]]) -> None:
        """Include lost files of a group, if compacted/ has their rows.

        Spark's sink log tells which files are lost, and which existing ones belong to no batch.
        Raises DamagedRunError if their numbers do not match.
        """
        batches = range(merged.first, merged.end)
        logged = {
            n for n in self.output.logged_files(merged.end) if result_file_batch(n) in batches
        }
        there = {name for batch in batches for name in found[batch]}
        if len(logged) == merged.files:
            there &= logged
            found[merged.first : merged.end] = [
                [name for name in found[batch] if name in logged] for batch in batches
            ]
        lost = logged - there
        amiss = len(there) + len(lost) != merged.files
        if amiss or (lost and any(map(self._is_damaged, merged.parts))):
            raise DamagedRunError(
                f"{self.results} is damaged: it has {len(there)} files of the batches "
                f"{merged.first} to {merged.end - 1}, {merged.files} were written"
            )
        for name in lost:
            found[result_file_batch(name)] = sorted(
                [*found[result_file_batch(name)], name], key=result_file_sort_key
            )
        if lost - self.lost:
            LOGGER.warning(
                "%s lacks %d files of the batches %d to %d, as %s; compacted/ has their rows, and "
                "`braid repair %s` brings them back",
                *(self.results, len(lost), merged.first, merged.end - 1, min(lost), self.path),
            )
        self.lost |= lost

    def _first_retained_now(self) -> int:
        """Return the first batch retained now, as another process may have removed some."""
        now = ManifestLog(self.commits, self.path)
        now.read_new_entries()
        return now.first_retained_batch

    def _is_damaged(self, part: Named) -> bool:
        try:
            self.verified_path(part)
        except DamagedRunError:
            return True
        return False


def _describe_expired_batch(batch: int, since: int) -> str:
    return f"the results of batch {batch} are no longer kept; those from batch {since} on are"
