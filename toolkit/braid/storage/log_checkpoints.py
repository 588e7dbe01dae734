"""Checkpoints of a run's manifest log. A checkpoint replaces all entries up to one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.log_entries import CompactedResults, FileRef, LogCheckpoint
from braid.storage.run_medium import RunMedium
from braid.util.file_system import current_file_system


def checkpoint_entry(file: Path) -> int:
    """Return the last entry that a checkpoint covers."""
    return int(file.stem.partition("-")[2])


class LogCheckpoints:
    """Files ``commits/checkpoint-*.json`` of a run. A bucket has none, but its cache has.

    ``check`` raises FencedError if another driver has taken over the run.
    """

    def __init__(self, medium: RunMedium, check: Callable[[], None]) -> None:
        self._medium, self._check = medium, check
        self._folder = medium.folder / "commits"

    def list_files(self) -> list[Path]:
        """Return the checkpoints, the last one at the end."""
        files = current_file_system().find_files(self._folder, "checkpoint-*.json")
        return sorted(files, key=checkpoint_entry)

    def has_covered(self, entry: int) -> bool:
        """Return whether a checkpoint covers an entry."""
        return any(checkpoint_entry(file) >= entry for file in self.list_files())

    def read_checkpoint(self, file: Path) -> LogCheckpoint:
        """Return a checkpoint. Raises DamagedRunError, or ValueError for another version."""
        body = durable_files.read_checksummed(file, f"{file.name} of {self._medium.where}")
        return msgspec.json.decode(body, type=LogCheckpoint)

    def write_checkpoint(self, checkpoint: LogCheckpoint) -> None:
        """Write or replace a checkpoint. Raises FencedError."""
        durable_files.write_atomically(
            self._folder / f"checkpoint-{checkpoint.entry:06d}.json",
            durable_files.encode_checksummed(checkpoint),
            self._medium.force,
            check=self._check,
        )

    def drop_expired_names(self, last: float, since: int) -> None:
        """Remove results of batches before ``since``, so that each checkpoint can replace the last.

        Checkpoints after entry ``last`` are damaged and are removed.
        """
        files = self.list_files()
        self._check()
        for file in files:
            if checkpoint_entry(file) > last:
                current_file_system().remove_file(file)
            else:
                self._rewrite_file(file, lambda merged: _drop_older_groups(since, merged))

    def replace_part_checksum(self, part: FileRef) -> None:
        """Update checkpoints to the new checksum of a rebuilt part."""
        for file in self.list_files():
            self._rewrite_file(file, lambda merged: [_replace_part(part, m) for m in merged])

    def _rewrite_file(
        self, file: Path, change: Callable[[list[CompactedResults]], list[CompactedResults]]
    ) -> None:
        try:
            before = self.read_checkpoint(file)
        except DamagedRunError:  # another checkpoint replaces it
            return
        if (merged := change(before.compacted)) != before.compacted:
            self.write_checkpoint(msgspec.structs.replace(before, compacted=merged))


def _drop_older_groups(since: int, merged: list[CompactedResults]) -> list[CompactedResults]:
    """Return the groups from batch ``since`` on, or an empty one at the end if there are none."""
    end = merged[-1].end_batch if merged else 0
    return [m for m in merged if m.first_batch >= since] or (
        [CompactedResults(end, end, 0, ())] if end else []
    )


def _replace_part(part: FileRef, group: CompactedResults) -> CompactedResults:
    """Return a group with the part of this name replaced."""
    return group._replace(
        part_files=tuple(part if p.name == part.name else p for p in group.part_files)
    )
