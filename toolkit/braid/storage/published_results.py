"""Publish committed results, so that other readers see each once while the run goes on.

A task attempt writes its results under ``staging/``. Once a manifest names them, they are linked
into ``results/``. The link in ``staging/`` is removed when the new one is on disk. A reader of
``results/*.parquet`` (pandas, DuckDB, Polars) sees complete files of committed batches only.
Spark's file-sink log (``spark_sink_log``) then names them, so that ``spark.readStream`` and
``spark.read`` on the folder read each file once.

When a run is resumed, links and log are restored from the manifests. A crash between any two steps
neither loses nor duplicates a result. Files that Braid has not named are ignored. For compacted
batches, only the numbers of files and log lines are compared; names are checked if a number
differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from braid.storage import durable_files
from braid.storage.log_entries import CompactedResults
from braid.storage.run_files import (
    find_moved_file,
    is_run_file,
    remove_unnamed_files,
    result_file_batch,
    result_file_sort_key,
)
from braid.storage.run_medium import RunMedium
from braid.storage.spark_sink_log import SparkSinkLog
from braid.util.file_system import current_file_system


class PublishedResults:
    """Folders ``staging`` and ``results`` of a run, and Spark's log of the latter.

    In a bucket, the manifest alone publishes results.
    """

    def __init__(self, medium: RunMedium) -> None:
        self.medium, self.sink_log = medium, SparkSinkLog(medium)
        self.new, self.results = medium.folder / "staging", medium.folder / "results"

    def make_folders(self) -> None:
        """Create the folders of the output, if missing."""
        for folder in (self.new, self.results, self.sink_log.folder):
            current_file_system().make_folder(folder)

    def committed_path(self, name: str) -> str:
        """Return the path of a committed file, which a killed run may have left in staging/."""
        self.medium.fetch_file(f"results/{name}")
        return str(find_moved_file(self.results, self.new, name))

    def published_files(self, end: int) -> list[list[str]]:
        """Return the published files of the batches before ``end``, in order."""
        by_batch = list[list[str]]([] for _ in range(end))
        for name in (
            current_file_system().list_names(self.results)
            if end and current_file_system().exists(self.results)
            else ()
        ):
            if is_run_file(name) and (batch := result_file_batch(name)) < end:
                by_batch[batch].append(name)
        return [sorted(names, key=result_file_sort_key) for names in by_batch]

    def unpublish(self, since: int, first: int) -> None:
        """Remove the batches from ``since`` up to, excluding, ``first``: log lines, then files."""
        self.sink_log.remove_batches(since, first)
        gone = [name for names in self.published_files(first) for name in names]
        self.medium.check_driver()
        for name in gone:
            current_file_system().remove_file(self.results / name, missing_ok=True)

    def publish_batch(self, batch: int, names: Sequence[str]) -> None:
        """Publish a committed batch."""
        if self.medium.url:
            return
        self._link_result(names)
        self.sink_log.append_batch(batch, names)

    def remove_leftovers(self, batch: int) -> None:
        """Leave files of the batches up to this one linked in results/ only.

        Their links in results/ are forced to disk first. Files that tasks left behind go too.
        """
        if self.medium.force:
            durable_files.fsync_path(self.results)
        left = [
            n
            for n in current_file_system().list_names(self.new)
            if is_run_file(n) and result_file_batch(n) <= batch
        ]
        if left:
            self.medium.check_driver()
        for name in left:
            current_file_system().remove_file(self.new / name, missing_ok=True)

    def count_published(self) -> int:
        """Return the number of published files, with anything else in the folder but the log."""
        return (
            len(current_file_system().list_names(self.results)) - 1
            if current_file_system().exists(self.results)
            else 0
        )

    def recover_published(
        self,
        merged: Sequence[CompactedResults],
        later: Sequence[Sequence[str]],
        earlier: Callable[[], list[list[str]]],
        seen: int | None = None,
    ) -> None:
        """Complete what a crash may have interrupted, and remove files that no batch names.

        - ``merged``: compacted batches.
        - ``later``: files of the committed batches after them.
        - ``earlier``: returns the files of compacted batches.
        - ``seen``: number of published files, if just counted.
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
        if self.medium.force:
            durable_files.fsync_path(self.results)
        remove_unnamed_files([self.new], (), self.medium.check_driver)

    def _is_published_completely(
        self, merged: Sequence[CompactedResults], later: Sequence[Sequence[str]], seen: int
    ) -> bool:
        """Return whether everything is published; compacted batches are compared by number only."""
        files = sum(m.files for m in merged) + sum(map(len, later))
        return seen == files and self.sink_log.is_complete(merged, later)

    def republish(self, merged: Sequence[Sequence[str]], later: Sequence[Sequence[str]]) -> None:
        """Update Spark's sink log to name exactly these files by batch, and remove other files.

        Sizes of compacted files are taken from the log, if it is intact.
        """
        files = [*merged, *later]
        listed = {name for names in files for name in names}
        there = {*current_file_system().list_names(self.results)}
        self._link_result(
            n for n in current_file_system().list_names(self.new) if n in listed and n not in there
        )
        self.sink_log.rewrite(files, len(merged))
        remove_unnamed_files([self.results], listed, self.medium.check_driver)

    def _link_result(self, names: Iterable[str]) -> None:
        """Link files into results/.

        The link in staging/ remains until the new one is on disk, so a power cut leaves one of
        them. A driver that starts between a commit and this call links the file, and removes
        the link in staging/.
        """
        for name in names:
            try:
                current_file_system().link_file(self.new / name, self.results / name)
            except FileExistsError:
                pass
            except FileNotFoundError:
                if not current_file_system().exists(self.results / name):
                    self.medium.check_driver()
                    raise
