"""Spark's own checkpoint of a run: force it to disk and compare it with the run's log.

Spark writes ``offsets/N`` before it passes micro-batch N to the run, and ``commits/N`` after the
run has committed it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from braid.core.run_state import VERSION
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.durable_files import skip_check
from braid.util.file_system import current_file_system
from braid.util.validation import read_natural


class SparkCheckpoint:
    """Spark's checkpoint in a folder, which may not exist. ``force``: whether commits need it."""

    def __init__(self, folder: Path, force: bool = True) -> None:
        self.folder, self.force = folder, force
        self._synced: dict[Path, set[str]] = {}
        self._syncing: Future[None] | None = None

    def _list_log_folders(self) -> list[Path]:
        sources = self.folder / "sources"
        below = current_file_system().find_files(sources)
        logs = [self.folder, self.folder / "offsets", self.folder / "commits", sources, *below]
        return [folder for folder in logs if current_file_system().is_folder(folder)]

    def sync_new_files(self) -> None:
        """Force to disk what Spark has written since the last call."""
        if not current_file_system().is_folder(self.folder):
            return
        if not self._synced:
            durable_files.fsync_path(self.folder.parent)
        for folder in self._list_log_folders():
            names = {n for n in current_file_system().list_names(folder) if not n.startswith(".")}
            new = names - self._synced.get(folder, set())
            for file in [folder / name for name in sorted(new)]:
                if current_file_system().is_file(file):
                    durable_files.fsync_path(file)
            if new:
                durable_files.fsync_path(folder)
            self._synced[folder] = names

    def start_sync(self) -> None:
        """Start to force to disk what Spark has written of the next batch."""
        if self.force and current_file_system().is_folder(self.folder):
            self._syncing = durable_files.run_in_background(self.sync_new_files)

    def finish_sync(self) -> None:
        """Force to disk what Spark has written of the batches up to this one."""
        if self._syncing is not None:
            self._syncing.result()
        if self.force:
            self.sync_new_files()

    def last_micro_batch(self, log: str) -> int:
        """Return the last micro-batch in the log "offsets" or "commits"; -1: none."""
        folder = self.folder / log
        names = (
            current_file_system().list_names(folder)
            if current_file_system().is_folder(folder)
            else []
        )
        return max(map(_parse_micro_batch, names), default=-1)

    def remove_empty_files(self, check: Callable[[], None] = skip_check) -> None:
        """Remove files that a power cut has left empty. Files of committed batches are on disk.

        ``check`` raises FencedError if another driver has taken over the run.
        """
        there = [
            f
            for folder in self._list_log_folders()
            for f in current_file_system().find_files(folder)
            if current_file_system().is_file(f)
        ]
        empty = [file for file in there if not current_file_system().read_size(file)]
        check()
        for file in empty:
            current_file_system().remove_file(file, missing_ok=True)

    def dump(self, last: int = 3) -> bytes:
        """Return the part of the checkpoint that Spark needs to continue, as checksummed JSON.

        Entries older than the ``last`` micro-batches are left out. All files are text.

        Raises RuntimeError if Spark keeps state, whose files are not text.
        """
        if current_file_system().exists(self.folder / "state"):
            raise RuntimeError(
                "a stream of the run keeps state in Spark, such as aggregates or dropped "
                "duplicates, which is not stored in a bucket; keep the run in a folder, or give "
                "streams without state"
            )
        logs = [self.folder / log for log in ("offsets", "commits")]
        texts: dict[str, str] = {}
        for folder in self._list_log_folders():
            files = [
                f
                for f in current_file_system().find_files(folder, "[!.]*")
                if current_file_system().is_file(f)
            ]
            if folder in logs:
                files = sorted(
                    (f for f in files if _parse_micro_batch(f.name) >= 0), key=_parse_file_number
                )[-last:]
            texts |= {f.relative_to(self.folder).as_posix(): _read_text(f) for f in files}
        return durable_files.encode_checksummed({"format_version": VERSION, "files": texts})

    def restore_from(self, saved: Path) -> None:
        """Replace the checkpoint by a saved one. Raises DamagedRunError if that is damaged."""
        body = durable_files.read_checksummed(saved, f"the checkpoint in {saved.parent}")
        current_file_system().remove_folder(self.folder)
        for name, text in msgspec.json.decode(body)["files"].items():
            current_file_system().make_folder((self.folder / name).parent)
            current_file_system().write_file(self.folder / name, text.encode())

    def check_epoch(self, epoch: int) -> None:
        """Raise DamagedRunError unless Spark's micro-batches match a last commit of ``epoch``."""
        done, begun = self.last_micro_batch("commits"), self.last_micro_batch("offsets")
        if done <= epoch <= max(done, begun):
            return
        raise DamagedRunError(
            f"{self.folder} and {self.folder.parent / 'commits'} are not of one run or time: Spark "
            f"has finished micro-batch {done} and begun {begun}, the run has committed {epoch}"
        )

    def source_files(self, batch: int) -> list[Path]:
        """Return the local files that Spark's file sources have listed for a micro-batch."""
        before = self._source_log_offsets(batch - 1)
        listed: list[Path] = []
        for source, last in self._source_log_offsets(batch).items():
            for number in range(before.get(source, -1) + 1, last + 1):
                listed += self._list_source_files(source, number)
        return listed

    def _source_log_offsets(self, batch: int) -> dict[int, int]:
        """Return each file source's last log entry that is part of a micro-batch or earlier."""
        file = self.folder / "offsets" / str(batch)
        lines = _read_text(file).splitlines()[2:] if current_file_system().exists(file) else []
        parsed = [json.loads(line) if line.startswith("{") else {} for line in lines]
        return {n: p["logOffset"] for n, p in enumerate(parsed) if "logOffset" in p}

    def _list_source_files(self, source: int, number: int) -> list[Path]:
        log = self.folder / "sources" / str(source)
        names = (log / f"{number}{suffix}" for suffix in ("", ".compact"))
        file = next(filter(current_file_system().exists, names), None)
        lines = _read_text(file).splitlines()[1:] if file is not None else []
        matching = [line for line in lines if line.endswith(f'"batchId":{number}}}')]
        urls = [urlsplit(json.loads(line)["path"]) for line in matching]
        return [Path(unquote(url.path)) for url in urls if url.scheme == "file"]

    def truncate(self, epoch: int, check: Callable[[], None]) -> None:
        """Let Spark continue after micro-batch ``epoch``; -1: remove the checkpoint.

        Spark's finished micro-batches are removed last and the latest of them first. Until then
        ``check_epoch`` fails, so no other driver goes on with a part of the checkpoint.

        ``check`` raises FencedError if another driver has taken over the run.
        """
        files = current_file_system()
        gone = [
            file
            for log, last in (("offsets", epoch + 1), ("commits", epoch))
            for file in sorted(files.find_files(self.folder / log), key=_parse_file_number)[::-1]
            if _parse_micro_batch(file.name) > last
        ]
        check()
        for file in gone:
            files.remove_file(file, missing_ok=True)
        if epoch < 0:
            files.remove_folder(self.folder)


def _read_text(file: Path) -> str:
    return current_file_system().read_file(file).decode()


def _parse_micro_batch(name: str) -> int:
    """Return the micro-batch of a log file; -1 for any other file."""
    number = read_natural(name)
    return -1 if number is None else number


def _parse_file_number(file: Path) -> int:
    return _parse_micro_batch(file.name)
