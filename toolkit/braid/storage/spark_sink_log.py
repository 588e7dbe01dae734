"""Spark's own log of a file sink, in ``results/_spark_metadata``: the files that it names are what
``spark.readStream`` and ``spark.read`` take on the folder, each once.

The log has Spark's format (CompactibleFileStreamLog): a file a batch with the version and a line of
JSON for each file, and now and then, as ``N.compact``, the lines of all batches up to then: every
tenth batch up to 200, every hundredth up to 2,000, and so on, so that what is written stays in
proportion. Spark tells how often by the last two, so the one with which it grows rarer is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path

import msgspec

from braid.storage import durable_files
from braid.storage.durable_files import DamagedRunError, skip_check
from braid.storage.log_entries import Merged
from braid.storage.manifest_log import is_run_file, result_file_batch
from braid.util.file_system import current_file_system

_INTERVAL = 10
"""Spark's default of ``spark.sql.streaming.fileSink.log.compactInterval``."""
_VERSION = "v1"
_CHUNK = 1 << 20
"""Bytes that are read at once."""


class _Entry(msgspec.Struct):
    """What of a line is read."""

    path: str
    size: int
    time: int = msgspec.field(name="modificationTime")

    @property
    def file_name(self) -> str:
        """The file that it names."""
        return self.path.rpartition("/")[2]


class SparkSinkLog:
    """The log of the files in ``results``; ``check`` raises Superseded where another driver has
    the run.
    """

    def __init__(self, results: Path, check: Callable[[], None] = skip_check) -> None:
        self.check = check
        self.results, self.log = results, results / "_spark_metadata"
        self._folder = results.absolute().as_uri()
        self._time: int | None = None
        self._sizes: tuple[set[tuple[str, int, int, int]], dict[str, int]] = set(), {}

    def append_batch(self, batch: int, names: Sequence[str]) -> None:
        """Log the files of a batch. Raises Damaged where the line before them is, or one that is
        written again.
        """
        lines = self._format_lines(names, self._find_last_time(batch))
        if _is_compact_batch(batch):
            lines = [*self._read_checked_lines(batch), *lines]
        self._time = _last_entry_time(lines) or self._time
        self._put_entry(self._log_file_path(batch), lines)
        if _is_compact_batch(batch):
            self.remove_unknown(_retained_file_names(batch), batch)

    def remove_batches(self, since: int, first: int) -> None:
        """Name no longer the batches from ``since`` up to, not with, ``first``. Raises Damaged, and
        changes nothing, where a line does not say of which batch it is.
        """
        left = {
            file: [
                line
                for line in _read_lines(file)
                if result_file_batch(self._parse_checked_entry(line, file).file_name) >= first
            ]
            for file in current_file_system().find_files(self.log, "[0-9]*.compact")
        }
        for batch in range(since, first):
            if current_file_system().exists(file := self.log / str(batch)):
                self._put_entry(file, [])
        for file, lines in left.items():
            self._put_entry(file, lines)

    def remove_unknown(self, known: set[str], before: float = inf) -> None:
        """Remove files of the log that are not known, of batches ``before`` one."""
        there = [
            f
            for f in current_file_system().find_files(self.log, "[0-9]*")
            if _is_log_file_name(f.name) and _parse_batch_number(f) < before
        ]
        durable_files.remove_files([self.log], self.check)
        for file in there:
            if file.name not in known:
                current_file_system().remove_file(file, missing_ok=True)

    def is_complete(self, merged: Sequence[Merged], later: Sequence[Sequence[str]]) -> bool:
        """Whether it names these files, of batches that are merged as far as numbers tell."""
        first = merged[-1].end if merged else 0
        last = first + len(later) - 1
        names = filter(_is_log_file_name, current_file_system().list_names(self.log))
        sizes = {name: current_file_system().read_size(self.log / name) for name in names}
        needed = _required_file_names(last)
        if not needed <= sizes.keys() <= _retained_file_names(last):
            return False
        if any(sizes[name] < len(_VERSION) for name in needed):  # as a power cut leaves them
            return False
        plain = [b for b in range(max(first, _last_compact_batch(last) + 1), last + 1)]
        return all(
            self._has_exact_names(b, later[b - first]) for b in plain
        ) and self._has_expected_line_count(merged, later)

    def rewrite(self, files: Sequence[Sequence[str]], merged: int = 0) -> None:
        """Name these files by batch, where that is not so. Those of the batches before ``merged``
        keep the sizes that it has of them: of no other place are these known.
        """
        last = len(files) - 1
        needed = _required_file_names(last)
        numbers = sorted(int(name.partition(".")[0]) for name in needed)
        if not all(self._has_exact_names(b, self._expected_names(files, b)) for b in numbers):
            self._rewrite_entries(files, needed, merged)
            self._time = None
        self.remove_unknown(_retained_file_names(last))

    def _has_expected_line_count(
        self, merged: Sequence[Merged], later: Sequence[Sequence[str]]
    ) -> bool:
        """Whether the last file with all lines has as many as there are files of its batches."""
        first = merged[-1].end if merged else 0
        end = _last_compact_batch(first + len(later) - 1) + 1
        some = sum(map(len, later[: max(0, end - first)]))
        least = some + sum(m.files for m in merged if m.end <= end)
        most = some + sum(m.files for m in merged if m.first < end)
        begin = f'{_VERSION}\n{{"path":"{self._folder}'.encode()
        lines, begun, last = (
            _count_lines(self._log_file_path(end - 1), len(begin)) if end else (0, b"", b"")
        )
        return least <= lines <= most and (
            not lines or (begun == begin and self._parse_local_entry(last) is not None)
        )

    def _expected_names(self, files: Sequence[Sequence[str]], batch: int) -> list[str]:
        """What the log is to have of a batch."""
        first = 0 if _is_compact_batch(batch) else batch
        return [name for each in files[first : batch + 1] for name in each]

    def _has_exact_names(self, batch: int, names: Sequence[str]) -> bool:
        """Whether the log names these files with a batch, in any order, in lines that are whole."""
        file = self._log_file_path(batch)
        if not current_file_system().exists(file):
            return False
        try:
            said = sorted(self._parse_checked_entry(line, file).path for line in _read_lines(file))
        except DamagedRunError:
            return False
        return said == sorted(f"{self._folder}/{name}" for name in names)

    def _parse_local_entry(self, line: str | bytes) -> _Entry | None:
        """A line that names one of Braid's files here; None: it does not."""
        found = _parse_entry(line)
        return found if found and found.path == f"{self._folder}/{found.file_name}" else None

    def _parse_checked_entry(self, line: str, file: Path) -> _Entry:
        """A line of a file of the log. Raises Damaged when it names none of Braid's files here."""
        if (found := self._parse_local_entry(line)) is None:
            raise self._make_damage_error(file)
        return found

    def _make_damage_error(self, file: Path) -> DamagedRunError:
        return DamagedRunError(
            f"{file} is damaged: it has a line that is none of Spark's log; "
            f"`braid repair {self.results.parent}` writes the log anew"
        )

    def damaged_files(self) -> dict[Path, DamagedRunError]:
        """Of its files that are read, those with a line that names none of Braid's, and what to say
        of them.
        """
        files = [
            self.log / name for name in sorted(_required_file_names(self._last_logged_batch()))
        ]
        return {
            f: self._make_damage_error(f)
            for f in files
            if not all(map(_parse_entry, _read_lines(f)))
        }

    def _rewrite_entries(
        self, files: Sequence[Sequence[str]], needed: set[str], merged: int
    ) -> None:
        whole: list[str] = []
        known = self._read_logged_entries()
        for batch, names in enumerate(files):
            mine = self._format_lines(
                names, _last_entry_time(whole), known if batch < merged else {}
            )
            whole += mine
            if self._log_file_path(batch).name in needed:
                self._put_entry(
                    self._log_file_path(batch), whole if _is_compact_batch(batch) else mine
                )

    def _log_file_path(self, batch: int) -> Path:
        return self.log / (f"{batch}.compact" if _is_compact_batch(batch) else f"{batch}")

    def _format_lines(
        self, names: Sequence[str], after: int, known: Mapping[str, _Entry] | None = None
    ) -> list[str]:
        """A line for each file, as it was ``known`` if it was. Their times grow from batch to
        batch, since Spark reads files in the order of their times.
        """
        stats = [
            (self.results / name, *self._read_file_status(name, known or {})) for name in names
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

    def _read_file_status(self, name: str, known: Mapping[str, _Entry]) -> tuple[int, int]:
        """The bytes of a file, and when it was changed, in milliseconds. Raises Damaged."""
        if name in known:
            return known[name].size, known[name].time
        try:
            stat = current_file_system().read_status(self.results / name)
        except FileNotFoundError:
            raise DamagedRunError(f"{self.results / name} is missing") from None
        return stat.st_size, stat.st_mtime_ns // 10**6

    def logged_files(self, end: int) -> list[str]:
        """The files of the batches up to, not with, ``end`` that it names."""
        return [name for name in self._read_logged_entries() if result_file_batch(name) < end]

    def logged_sizes(self) -> dict[str, int]:
        """The bytes of the files that it names in lines that are whole; it is read anew when it has
        changed.
        """
        if (now := self._list_file_stamps()) != self._sizes[0]:
            self._sizes = (
                now,
                {name: line.size for name, line in self._read_logged_entries().items()},
            )
        return self._sizes[1]

    def _list_file_stamps(self) -> set[tuple[str, int, int, int]]:
        """What tells its files from those that were there before."""
        found = set()
        for file in current_file_system().find_files(self.log, "[0-9]*"):
            with suppress(FileNotFoundError):  # another process has removed it since
                stat = current_file_system().read_status(file)
                found.add((file.name, stat.st_ino, stat.st_mtime_ns, stat.st_size))
        return found

    def _read_logged_entries(self) -> dict[str, _Entry]:
        """Its lines by file, as far as it goes; what is damaged names none."""
        lines = (
            line
            for file in self._list_files_before(self._last_logged_batch() + 1)
            for line in _read_lines(file)
        )
        return {line.file_name: line for line in map(_parse_entry, lines) if line}

    def _last_logged_batch(self) -> int:
        """The last batch that it has; -1: none."""
        return max(
            (
                _parse_batch_number(file)
                for file in current_file_system().find_files(self.log, "[0-9]*")
            ),
            default=-1,
        )

    def update_sizes(self, sizes: Mapping[str, int], force: bool) -> None:
        """Have Spark's log name files with these sizes, also after a power cut if ``force``."""
        for file in current_file_system().find_files(self.log, "[0-9]*"):
            lines = _read_lines(file)
            if (new := [_replace_line_size(line, sizes) for line in lines]) != lines:
                self._put_entry(file, new, force)
        if force:
            durable_files.fsync_path(self.log)

    def _put_entry(self, file: Path, lines: Iterable[str], force: bool = False) -> None:
        """Write a log file so that it is there whole or not at all. It can be made again, so it is
        forced to disk only where something else will rest on it.
        """
        durable_files.write_atomically(
            file, "\n".join([_VERSION, *lines]).encode(), force, check=self.check
        )

    def _read_checked_lines(self, batch: int) -> list[str]:
        """The lines of all batches before this one, each of which names one of Braid's files here.
        Raises Damaged.
        """
        found = [
            (line, file) for file in self._list_files_before(batch) for line in _read_lines(file)
        ]
        for line, file in found:
            self._parse_checked_entry(line, file)
        return [line for line, _ in found]

    def _list_files_before(self, batch: int) -> list[Path]:
        """The files that have the lines of all batches before this one."""
        return [
            self._log_file_path(b) for b in range(max(0, _last_compact_batch(batch - 1)), batch)
        ]

    def _find_last_time(self, batch: int) -> int:
        """The time of the last file before this batch."""
        b = batch - 1
        while self._time is None and b >= 0:
            if lines := _read_lines(self._log_file_path(b)):
                self._time = self._parse_checked_entry(lines[-1], self._log_file_path(b)).time
            b = -1 if _is_compact_batch(b) else b - 1
        return self._time or 0


def _compact_interval(batch: int) -> int:
    """How often all lines are written at once, by then."""
    every = _INTERVAL
    while batch + 1 >= 2 * _INTERVAL * every:
        every *= 10
    return every


def _is_compact_batch(batch: int) -> bool:
    return (batch + 1) % _compact_interval(batch) == 0


def _last_compact_batch(batch: int) -> int:
    """The last batch up to this one with which all lines were written; -1: none."""
    every = _compact_interval(batch)
    return (batch + 1) // every * every - 1


def _retained_file_names(batch: int) -> set[str]:
    """What the log has after a batch: all since the last but one that was compact, and the one
    that will be the last but one when they grow rarer.
    """
    every, last = _compact_interval(batch), _last_compact_batch(batch)
    compact = {last, last - every, 10 * every - 1}
    plain = {b for b in range(max(0, last - every), batch + 1) if not _is_compact_batch(b)}
    return {f"{b}.compact" for b in compact if 0 <= b <= batch} | {str(b) for b in plain}


def _required_file_names(batch: int) -> set[str]:
    """What of that whoever reads the log after a batch needs."""
    return _retained_file_names(batch) - {str(b) for b in range(_last_compact_batch(batch))}


def _is_log_file_name(name: str) -> bool:
    """Whether a file of the log is named so."""
    return re.fullmatch(r"\d+(\.compact)?", name) is not None


def _parse_batch_number(file: Path) -> int:
    """The batch of a file of the log."""
    return int(file.name.partition(".")[0])


def _parse_entry(line: str | bytes) -> _Entry | None:
    """A line that names one of Braid's files, wherever the run is; None: it does not."""
    try:
        found = msgspec.json.decode(line, type=_Entry)
    except (msgspec.DecodeError, UnicodeError):
        return None
    return found if is_run_file(found.file_name) else None


def _replace_line_size(line: str, sizes: Mapping[str, int]) -> str:
    """A line of the log, with the size of its file where that is known."""
    found = _parse_entry(line)
    if found is None or (size := sizes.get(found.file_name)) is None:
        return line
    return json.dumps({**json.loads(line), "size": size}, separators=(",", ":"))


def _last_entry_time(lines: Sequence[str]) -> int:
    return msgspec.json.decode(lines[-1], type=_Entry).time if lines else 0


def _read_lines(file: Path) -> list[str]:
    if not current_file_system().exists(file):
        return []
    return current_file_system().read_file(file).decode(errors="replace").splitlines()[1:]


def _count_lines(file: Path, begin: int) -> tuple[int, bytes, bytes]:
    """How many line ends a file has, its first ``begin`` bytes, and its last line."""
    lines, last = 0, b""
    with current_file_system().open_file(file) as opened:
        begun = opened.read(begin)
        opened.seek(0)
        while chunk := opened.read(_CHUNK):
            lines, last = lines + chunk.count(b"\n"), (last + chunk).rpartition(b"\n")[2]
    return lines, begun, last
