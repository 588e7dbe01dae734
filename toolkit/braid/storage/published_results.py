"""Results that others read while the run goes on, each once.

A task attempt writes its results under ``staging/``. Once a manifest names them, they are linked
into ``results/``, and lose their name in ``staging/`` when that is on disk: whatever lists
``results/*.parquet`` (pandas, DuckDB, Polars) sees whole files of committed batches and no others.
Then Spark's file-sink log names them (sink_log.py), so that ``spark.readStream`` and ``spark.read``
on the folder take each file once.

Linking and logging are done again from the manifests when a run is resumed, so that a crash between
any two steps loses and doubles nothing. What Braid has not named is left alone. Of batches that are
merged it is enough that there are as many files as there were, and that the log has as many lines:
only where not, or where something else is, are names looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from braid.storage import durable_files
from braid.storage.durable_files import skip_check
from braid.storage.log_entries import Merged
from braid.storage.manifest_log import is_run_file, result_file_batch, result_file_sort_key
from braid.storage.spark_sink_log import SparkSinkLog
from braid.util.file_system import current_file_system


class PublishedResults(SparkSinkLog):
    """The results of the run in ``folder``."""

    def __init__(self, folder: Path, check: Callable[[], None] = skip_check) -> None:
        super().__init__(folder / "results", check)
        self.new = folder / "staging"

    def make_folders(self) -> None:
        """Make the folders of the output; those that are there stay."""
        for folder in (self.new, self.results, self.log):
            current_file_system().make_folder(folder)

    def committed_path(self, name: str) -> str:
        """Where a committed file is; a run that was killed may have left it unmoved."""
        file = self.results / name
        moved = current_file_system().exists(file) or not current_file_system().exists(
            self.new / name
        )
        return str(file if moved else self.new / name)

    def published_files(self, end: int) -> list[list[str]]:
        """The files of the batches up to, not with, ``end`` that others see, in order."""
        found = list[list[str]]([] for _ in range(end))
        for name in (
            current_file_system().list_names(self.results)
            if end and current_file_system().exists(self.results)
            else ()
        ):
            if is_run_file(name) and (batch := result_file_batch(name)) < end:
                found[batch].append(name)
        return [sorted(names, key=result_file_sort_key) for names in found]

    def unpublish(self, since: int, first: int) -> None:
        """Let others see no longer the batches from ``since`` up to, not with, ``first``: first the
        log names them no more, then their files go.
        """
        self.remove_batches(since, first)
        gone = [name for names in self.published_files(first) for name in names]
        self.check()
        for name in gone:
            current_file_system().remove_file(self.results / name, missing_ok=True)

    def publish_batch(self, batch: int, names: Sequence[str]) -> None:
        """Let others see a batch that has been committed."""
        self._link_result(names)
        self.append_batch(batch, names)

    def remove_leftovers(self, batch: int) -> None:
        """Remove from staging/ what tasks have left of the batches up to this one, and what others
        see by its name in results/, which is on disk.
        """
        left = [
            n
            for n in current_file_system().list_names(self.new)
            if is_run_file(n) and result_file_batch(n) <= batch
        ]
        if left:
            self.check()
        for name in left:
            current_file_system().remove_file(self.new / name, missing_ok=True)

    def count_published(self) -> int:
        """How many files others see, and what else is there, but for the log."""
        return (
            len(current_file_system().list_names(self.results)) - 1
            if current_file_system().exists(self.results)
            else 0
        )

    def recover_published(
        self,
        merged: Sequence[Merged],
        later: Sequence[Sequence[str]],
        earlier: Callable[[], list[list[str]]],
        seen: int | None = None,
        force: bool = False,
    ) -> None:
        """Do again what a crash may have cut off. Committed are the batches that are ``merged``,
        whose files ``earlier`` gives, and after them some with the ``later`` files. What no batch
        names is removed. ``seen`` is how many files others see, if that has been asked just now.
        """
        self.make_folders()
        named = {name for names in later for name in names}
        there = {*current_file_system().list_names(self.results)}
        waiting = [
            n for n in current_file_system().list_names(self.new) if n in named and n not in there
        ]
        self._link_result(waiting)
        if not self._is_published_completely(
            merged, later, self.count_published() if seen is None else seen + len(waiting)
        ):
            self.republish(earlier(), later)
        if force:
            durable_files.fsync_path(self.results)
        self._remove_unlisted_files(self.new, set())

    def _is_published_completely(
        self, merged: Sequence[Merged], later: Sequence[Sequence[str]], seen: int
    ) -> bool:
        """Whether nothing is to be done but for batches that are merged, as far as numbers tell."""
        files = sum(m.files for m in merged) + sum(map(len, later))
        return seen == files and self.is_complete(merged, later)

    def republish(self, merged: Sequence[Sequence[str]], later: Sequence[Sequence[str]]) -> None:
        """Log these files by batch, where the log does not, and remove others. Those of batches
        that are ``merged`` are as large as the log has it, as far as it is whole.
        """
        files = [*merged, *later]
        known = {name for names in files for name in names}
        there = {*current_file_system().list_names(self.results)}
        self._link_result(
            n for n in current_file_system().list_names(self.new) if n in known and n not in there
        )
        self.rewrite(files, len(merged))
        self._remove_unlisted_files(self.results, known)

    def _remove_unlisted_files(self, folder: Path, known: set[str]) -> None:
        there = current_file_system().find_files(folder)
        self.check()
        for file in there:
            if (
                file.name not in known
                and is_run_file(file.name)
                and current_file_system().is_file(file)
            ):
                current_file_system().remove_file(file, missing_ok=True)

    def _link_result(self, names: Iterable[str]) -> None:
        """Give files a name in results/ too. That in staging/ stays until the other one is on disk,
        so that a power cut leaves one of them.
        """
        for name in names:
            with suppress(FileExistsError):
                current_file_system().link_file(self.new / name, self.results / name)
