"""Write checkpoints of a run's manifest log.

With a checkpoint, the results of the batches it covers are compacted. If retention is limited, the
oldest ones are removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from braid.core.event_jsonl import LOGGER
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.committed_events import EventArchive
from braid.storage.committed_results import CommittedResults
from braid.storage.irregular_files import IrregularFiles
from braid.storage.log_entries import CommitRecord, CompactedResults
from braid.storage.manifest_log import OLD, ManifestLog
from braid.storage.result_compactor import ResultCompactor
from braid.storage.result_retention import RetentionPolicy, count_expired_groups
from braid.storage.sink_progress import SinkProgress
from braid.util.clock_and_threads import current_environment, current_workers

_EVERY = 500
"""Commits between two checkpoints, whose results are compacted together."""


class LogCheckpointer:
    """Writer of checkpoints, in the order in which their parts must be on disk.

    ``keep``: limit of retained results; None: no limit.
    """

    def __init__(
        self,
        log: ManifestLog,
        archive: EventArchive,
        results: CommittedResults,
        compactor: ResultCompactor,
        sink_progress: SinkProgress,
        irregular: IrregularFiles,
    ) -> None:
        self._medium, self._log, self._archive = log.medium, log, archive
        self._results, self._compactor, self._sink_progress = results, compactor, sink_progress
        self._irregular = irregular
        self.keep: RetentionPolicy | None = None

    def write_if_due(self) -> None:
        """Write a checkpoint if enough batches were committed since the last one."""
        if len(self._log.uncheckpointed_commits()) >= _EVERY + OLD:
            self.write_checkpoint()

    def write_checkpoint(self) -> None:
        """Write a checkpoint of all but the last commits, and compact their results."""
        entry = self._log.commits[-OLD - 1].entry
        merged = self._compact_results()
        if self._medium.force:
            durable_files.fsync_path(self._archive.file.path)
            # The only links of compacted batches from here on.
            durable_files.fsync_path(self._compactor.results)
        with self._results.reading:
            archive, since = self._archive.describe_until(entry), self._log.first_retained_batch
            groups = [*self._log.merged, *merged]
            retained = groups[self._count_expired_groups(groups) :]
            self._log.write_checkpoint(archive, self._archive.file.opening, retained)
            self._compactor.publish_compacted(merged)
            if self._log.first_retained_batch > since:
                self._results.drop_expired(since)
        self._archive.trim_log()
        self._archive.forget_until(entry)
        if merged:
            self._irregular.remove_unnamed()

    def _count_expired_groups(self, merged: Sequence[CompactedResults]) -> int:
        """Return how many of the first groups of compacted batches have expired.

        Results that a sink has not received are retained. So are those compacted just now, so that
        the previous checkpoint remains usable.
        """
        if self.keep is None:
            return 0
        end = merged[-1].end_batch if merged else 0
        later = sum(
            f.checksum.size_bytes for k in self._log.commits if k.batch >= end for f in k.results
        )
        promised = self._log.first_uncompacted_batch
        try:
            if self._sink_progress.has_file():
                promised = min(self._sink_progress.last_batch + 1, promised)
        except DamagedRunError as damaged:
            LOGGER.error("all results are kept: %s", damaged)
            return 0
        return count_expired_groups(self.keep, merged, later, _current_microseconds(), promised)

    def _compact_results(self) -> list[CompactedResults]:
        """Compact the results of batches for the next checkpoint. Those in a bucket are not.

        Batches are always grouped alike, so that a rebuilt file is the same.
        """
        compacted, waiting = list[CompactedResults](), self._log.commits[:-OLD]
        some = _EVERY - self._log.first_uncompacted_batch % _EVERY
        while len(waiting) >= some and not self._medium.url:
            # Not on the caller's thread: Spark starts each run on a new one.
            thread = current_workers().share_pool("braid-merge", 1)
            compacted.append(thread.submit(self._compact_batches, waiting[:some]).result())
            waiting, some = waiting[some:], _EVERY
        return compacted

    def _compact_batches(self, batches: Sequence[CommitRecord]) -> CompactedResults:
        group = self._compactor.compact(batches, _current_microseconds())
        irregular = self._irregular.merge_files(group.first_batch, group.end_batch)
        count = self._archive.count_until(batches[-1].entry)
        return group._replace(irregular=irregular, event_count=count)


def _current_microseconds() -> int:
    """Return microseconds since 1970."""
    return int(current_environment().read_time() * 10**6)
