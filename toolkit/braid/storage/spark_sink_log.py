"""Spark's log of a file sink, in ``results/_spark_metadata``.

``spark.readStream`` and ``spark.read`` on the folder read each file that it names once.

The log has Spark's format (CompactibleFileStreamLog): one file per batch, with the version and a
line of JSON for each result file. Some files have the lines of all batches (see
``sink_log_names``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path

import msgspec

from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.log_entries import CompactedResults
from braid.storage.run_files import is_run_file, result_file_batch
from braid.storage.run_medium import RunMedium
from braid.storage.sink_log_names import (
    is_compact_batch,
    is_log_file_name,
    last_compact_batch,
    log_file_name,
    parse_batch_number,
    required_file_names,
    retained_file_names,
)
from braid.util.file_system import current_file_system

_VERSION = "v1"
_CHUNK = 1 << 20
"""Bytes read at once."""


class _Entry(msgspec.Struct):
    """Fields that are read of a line."""

    path: str
    size: int
    time: int = msgspec.field(name="modificationTime")

    @property
    def file_name(self) -> str:
        """Name of the file."""
        return self.path.rpartition("/")[2]


class SparkSinkLog:
    """Folder ``results/_spark_metadata`` of a run."""

    def __init__(self, medium: RunMedium) -> None:
        self.medium, self.results = medium, medium.folder / "results"
        self.folder = self.results / "_spark_metadata"
        self._uri = self.results.absolute().as_uri()
        self._time: int | None = None
        self._sizes: tuple[set[tuple[str, int, int, int]], dict[str, int]] = set(), {}

    def append_batch(self, batch: int, names: Sequence[str]) -> None:
        """Append the files of a batch to the log.

        Raises DamagedRunError if the previous line, or a line that is rewritten, is damaged.
        """
        lines = self._format_lines(names, self._find_last_time(batch))
        if is_compact_batch(batch):
            lines = [*self._read_checked_lines(batch), *lines]
        self._time = _last_entry_time(lines) or self._time
        self._put_entry(self._log_file_path(batch), lines)
        if is_compact_batch(batch):
            self.remove_unknown(retained_file_names(batch), batch)

    def remove_batches(self, since: int, first: int) -> None:
        """Remove the batches from ``since`` up to, excluding, ``first`` from the log.

        Raises DamagedRunError, and changes nothing, if the batch of a line is unknown.
        """
        left = {
            file: [
                line
                for line in _read_lines(file)
                if result_file_batch(self._parse_checked_entry(line, file).file_name) >= first
            ]
            for file in current_file_system().find_files(self.folder, "[0-9]*.compact")
        }
        for batch in range(since, first):
            if current_file_system().exists(file := self.folder / str(batch)):
                self._put_entry(file, [])
        for file, lines in left.items():
            self._put_entry(file, lines)

    def remove_unknown(self, known_names: set[str], before: float = inf) -> None:
        """Remove unknown files of the log that belong to batches before ``before``."""
        there = [
            f
            for f in current_file_system().find_files(self.folder, "[0-9]*")
            if is_log_file_name(f.name) and parse_batch_number(f) < before
        ]
        durable_files.remove_temporary_files([self.folder], self.medium.check_driver)
        for file in there:
            if file.name not in known_names:
                current_file_system().remove_file(file, missing_ok=True)

    def is_complete(
        self, merged: Sequence[CompactedResults], later: Sequence[Sequence[str]]
    ) -> bool:
        """Return whether the log names these files; compacted batches are only counted."""
        first = merged[-1].end_batch if merged else 0
        last = first + len(later) - 1
        names = filter(is_log_file_name, current_file_system().list_names(self.folder))
        sizes = {name: current_file_system().read_size(self.folder / name) for name in names}
        needed = required_file_names(last)
        if not needed <= sizes.keys() <= retained_file_names(last):
            return False
        if any(sizes[name] < len(_VERSION) for name in needed):  # as after a power cut
            return False
        plain = [b for b in range(max(first, last_compact_batch(last) + 1), last + 1)]
        return all(
            self._has_exact_names(b, later[b - first]) for b in plain
        ) and self._has_expected_line_count(merged, later)

    def rewrite(self, files: Sequence[Sequence[str]], merged: int = 0) -> None:
        """Rewrite the log, if needed, to name these files by batch.

        Files of the batches before ``merged`` keep the sizes in the log, which are not stored
        elsewhere.
        """
        last = len(files) - 1
        needed = required_file_names(last)
        numbers = sorted(int(name.partition(".")[0]) for name in needed)
        if not all(self._has_exact_names(b, self._expected_names(files, b)) for b in numbers):
            self._rewrite_entries(files, needed, merged)
            self._time = None
        self.remove_unknown(retained_file_names(last))

    def _has_expected_line_count(
        self, merged: Sequence[CompactedResults], later: Sequence[Sequence[str]]
    ) -> bool:
        """Return whether the last compact file has as many lines as its batches have files."""
        first = merged[-1].end_batch if merged else 0
        end = last_compact_batch(first + len(later) - 1) + 1
        some = sum(map(len, later[: max(0, end - first)]))
        least = some + sum(m.files for m in merged if m.end_batch <= end)
        most = some + sum(m.files for m in merged if m.first_batch < end)
        begin = f'{_VERSION}\n{{"path":"{self._uri}'.encode()
        lines, begun, last = (
            _count_lines(self._log_file_path(end - 1), len(begin)) if end else (0, b"", b"")
        )
        return least <= lines <= most and (
            not lines or (begun == begin and self._parse_local_entry(last) is not None)
        )

    def _expected_names(self, files: Sequence[Sequence[str]], batch: int) -> list[str]:
        """Return the files that the log must name with a batch."""
        first = 0 if is_compact_batch(batch) else batch
        return [name for each in files[first : batch + 1] for name in each]

    def _has_exact_names(self, batch: int, names: Sequence[str]) -> bool:
        """Return whether the log names exactly these files with a batch, in intact lines."""
        file = self._log_file_path(batch)
        if not current_file_system().exists(file):
            return False
        try:
            logged = sorted(
                self._parse_checked_entry(line, file).path for line in _read_lines(file)
            )
        except DamagedRunError:
            return False
        return logged == sorted(f"{self._uri}/{name}" for name in names)

    def _parse_local_entry(self, line: str | bytes) -> _Entry | None:
        """Parse a line; None unless it names a file of Braid in this folder."""
        entry = _parse_entry(line)
        return entry if entry and entry.path == f"{self._uri}/{entry.file_name}" else None

    def _parse_checked_entry(self, line: str, file: Path) -> _Entry:
        """Parse a line. Raises DamagedRunError unless it names a file of Braid in this folder."""
        if (entry := self._parse_local_entry(line)) is None:
            raise self._make_damage_error(file)
        return entry

    def _make_damage_error(self, file: Path) -> DamagedRunError:
        return DamagedRunError(
            f"{file} is damaged: it has a line that is none of Spark's log; "
            f"`braid repair {self.results.parent}` writes the log anew"
        )

    def damaged_files(self) -> dict[Path, DamagedRunError]:
        """Return the log files with a line that names no file of Braid, and their errors."""
        files = [
            self.folder / name for name in sorted(required_file_names(self._last_logged_batch()))
        ]
        return {
            f: self._make_damage_error(f)
            for f in files
            if not all(map(_parse_entry, _read_lines(f)))
        }

    def _rewrite_entries(
        self, files: Sequence[Sequence[str]], needed: set[str], merged: int
    ) -> None:
        all_lines: list[str] = []
        entries = self._read_logged_entries()
        for batch, names in enumerate(files):
            added = self._format_lines(
                names, _last_entry_time(all_lines), entries if batch < merged else {}
            )
            all_lines += added
            if log_file_name(batch) in needed:
                self._put_entry(
                    self._log_file_path(batch), all_lines if is_compact_batch(batch) else added
                )

    def _log_file_path(self, batch: int) -> Path:
        return self.folder / log_file_name(batch)

    def _format_lines(
        self, names: Sequence[str], after: int, entries: Mapping[str, _Entry] | None = None
    ) -> list[str]:
        """Return a line for each file, with size and time from ``entries`` if it is there.

        Times grow from batch to batch, since Spark reads files in the order of their times.
        """
        stats = [
            (self.results / name, *self._read_file_status(name, entries or {})) for name in names
        ]
        time = max([after + 1, *(changed for _, _, changed in stats)])
        return [
            json.dumps(
                {
                    "path": file.as_uri(),
                    "size": size,
                    "isDir": False,
                    "modificationTime": time,
                    "blockReplication": 1,
                    "blockSize": 1 << 25,
                    "action": "add",
                },
                separators=(",", ":"),
            )
            for file, size, _ in stats
        ]

    def _read_file_status(self, name: str, entries: Mapping[str, _Entry]) -> tuple[int, int]:
        """Return bytes and modification time (milliseconds) of a file. Raises DamagedRunError."""
        if name in entries:
            return entries[name].size, entries[name].time
        try:
            stat = current_file_system().read_status(self.results / name)
        except FileNotFoundError:
            raise DamagedRunError(f"{self.results / name} is missing") from None
        return stat.st_size, stat.st_mtime_ns // 10**6

    def logged_files(self, end: int) -> list[str]:
        """Return the files of the batches before ``end`` that the log names."""
        return [name for name in self._read_logged_entries() if result_file_batch(name) < end]

    def logged_sizes(self) -> dict[str, int]:
        """Return the sizes of the files named in intact lines, rereading a changed log."""
        if (now := self._list_file_stamps()) != self._sizes[0]:
            self._sizes = (
                now,
                {name: line.size for name, line in self._read_logged_entries().items()},
            )
        return self._sizes[1]

    def _list_file_stamps(self) -> set[tuple[str, int, int, int]]:
        """Return stamps that differ if a file of the log was replaced."""
        stamps = set()
        for file in current_file_system().find_files(self.folder, "[0-9]*"):
            with suppress(FileNotFoundError):  # another process has just removed it
                stat = current_file_system().read_status(file)
                stamps.add((file.name, stat.st_ino, stat.st_mtime_ns, stat.st_size))
        return stamps

    def _read_logged_entries(self) -> dict[str, _Entry]:
        """Return all lines of the log by file. Damaged lines are ignored."""
        lines = (
            line
            for file in self._list_files_before(self._last_logged_batch() + 1)
            for line in _read_lines(file)
        )
        return {line.file_name: line for line in map(_parse_entry, lines) if line}

    def _last_logged_batch(self) -> int:
        """Return the last batch in the log; -1: none."""
        return max(
            (
                parse_batch_number(file)
                for file in current_file_system().find_files(self.folder, "[0-9]*")
            ),
            default=-1,
        )

    def update_sizes(self, sizes: Mapping[str, int]) -> None:
        """Set the sizes of these files in the log, and force it to disk."""
        for file in current_file_system().find_files(self.folder, "[0-9]*"):
            lines = _read_lines(file)
            if (new := [_replace_line_size(line, sizes) for line in lines]) != lines:
                self._put_entry(file, new, self.medium.force)
        if self.medium.force:
            durable_files.fsync_path(self.folder)

    def _put_entry(self, file: Path, lines: Iterable[str], force: bool = False) -> None:
        """Write a log file atomically.

        It can be rebuilt, so it is forced to disk only if something else will rely on it.
        """
        durable_files.write_atomically(
            file, "\n".join([_VERSION, *lines]).encode(), force, check=self.medium.check_driver
        )

    def _read_checked_lines(self, batch: int) -> list[str]:
        """Return the lines of all batches before this one.

        Raises DamagedRunError unless each names a file of Braid in this folder.
        """
        numbered = [
            (line, file) for file in self._list_files_before(batch) for line in _read_lines(file)
        ]
        for line, file in numbered:
            self._parse_checked_entry(line, file)
        return [line for line, _ in numbered]

    def _list_files_before(self, batch: int) -> list[Path]:
        """Return the log files that have the lines of all batches before this one."""
        return [self._log_file_path(b) for b in range(max(0, last_compact_batch(batch - 1)), batch)]

    def _find_last_time(self, batch: int) -> int:
        """Return the time of the last file before this batch."""
        b = batch - 1
        while self._time is None and b >= 0:
            if lines := _read_lines(self._log_file_path(b)):
                self._time = self._parse_checked_entry(lines[-1], self._log_file_path(b)).time
            b = -1 if is_compact_batch(b) else b - 1
        return self._time or 0


def _parse_entry(line: str | bytes) -> _Entry | None:
    """Parse a line; None unless it names a file of Braid, in any folder."""
    try:
        entry = msgspec.json.decode(line, type=_Entry)
    except (msgspec.DecodeError, UnicodeError):
        return None
    return entry if is_run_file(entry.file_name) else None


def _replace_line_size(line: str, sizes: Mapping[str, int]) -> str:
    """Return a line of the log with the new size of its file, if there is one."""
    entry = _parse_entry(line)
    if entry is None or (size := sizes.get(entry.file_name)) is None:
        return line
    return json.dumps({**json.loads(line), "size": size}, separators=(",", ":"))


def _last_entry_time(lines: Sequence[str]) -> int:
    return msgspec.json.decode(lines[-1], type=_Entry).time if lines else 0


def _read_lines(file: Path) -> list[str]:
    if not current_file_system().exists(file):
        return []
    return current_file_system().read_file(file).decode(errors="replace").splitlines()[1:]


def _count_lines(file: Path, begin: int) -> tuple[int, bytes, bytes]:
    """Return the number of lines of a file, its first ``begin`` bytes, and its last line."""
    lines, last = 0, b""
    with current_file_system().open_file(file) as opened:
        begun = opened.read(begin)
        opened.seek(0)
        while chunk := opened.read(_CHUNK):
            lines, last = lines + chunk.count(b"\n"), (last + chunk).rpartition(b"\n")[2]
    return lines, begun, last
