"""Results that others read while the run goes on, each once.

A task attempt writes its results under ``new/``. Once a manifest names them, they move to
``results/``: whatever lists ``results/*.parquet`` (pandas, DuckDB, Polars) sees whole files of
committed batches and no others. Then Spark's file-sink log in ``results/_spark_metadata`` names
them, so that ``spark.readStream`` and ``spark.read`` on the folder take each file once.

Moving and logging are done again from the manifests when a run is resumed, so that a crash between
any two steps loses and doubles nothing. What Braid has not named is left alone. Of batches that are
merged it is enough that there are as many files as there were, and that the log has as many lines:
only where not, or where something else is, are names looked at.

The log has Spark's format (CompactibleFileStreamLog): a file a batch with the version and a line of
JSON for each file, and now and then, as ``N.compact``, the lines of all batches up to then: every
tenth batch up to 200, every hundredth up to 2,000, and so on, so that what is written stays in
proportion. Spark tells how often by the last two, so the one with which it grows rarer is kept.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from braid.engine.log import Merged, in_order, ours

_INTERVAL = 10
"""Spark's default of ``spark.sql.streaming.fileSink.log.compactInterval``."""
_VERSION = "v1"
_CHUNK = 1 << 20
"""Bytes that are read at once."""


class Output:
    """The results of the run in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.new, self.results = folder / "new", folder / "results"
        self.log = self.results / "_spark_metadata"
        self._begin = f'{{"path":"{self.results.absolute().as_uri()}'
        self._time: int | None = None

    def create(self) -> None:
        """Make the folders of the output; those that are there stay."""
        for folder in (self.new, self.results, self.log):
            folder.mkdir(exist_ok=True)

    def path(self, name: str) -> str:
        """Where a committed file is; a run that was killed may have left it unmoved."""
        file = self.results / name
        return str(file if file.exists() or not (self.new / name).exists() else self.new / name)

    def listed(self, end: int) -> list[list[str]]:
        """The files of the batches up to, not with, ``end`` that others see, in order."""
        found = list[list[str]]([] for _ in range(end))
        for name in os.listdir(self.results) if end and self.results.is_dir() else ():
            if ours(name) and (batch := int(name.partition("-")[0])) < end:
                found[batch].append(name)
        return [sorted(names, key=in_order) for names in found]

    def drop(self, since: int, first: int) -> None:
        """Let others see no longer the batches from ``since`` up to, not with, ``first``: first the
        log names them no more, then their files go.
        """
        for batch in range(since, first):
            if (file := self.log / str(batch)).exists():
                _put(file, [])
        for file in self.log.glob("[0-9]*.compact"):
            _put(file, [line for line in _read(file) if _batch_of(line) >= first])
        for name in (name for names in self.listed(first) for name in names):
            (self.results / name).unlink()

    def publish(self, batch: int, names: Sequence[str]) -> None:
        """Let others see a batch that has been committed."""
        self._move(names)
        lines = self._lines(names, self._last_time(batch))
        self._time = _time_of(lines) or self._time
        if _compact(batch):
            lines = [*self._logged(batch), *lines]
        _put(self._file(batch), lines)
        if _compact(batch):
            self._clean(self.log, _kept(batch), _logs)

    def has(self, files: int) -> bool:
        """Whether others see so many files, and nothing else is there."""
        there = os.listdir(self.results) if self.results.is_dir() else []
        return len(there) == files + 1  # and the log

    def recover(
        self,
        merged: Sequence[Merged],
        later: Sequence[Sequence[str]],
        earlier: Callable[[], list[list[str]]],
    ) -> None:
        """Do again what a crash may have cut off. Committed are the batches that are ``merged``,
        whose files ``earlier`` gives, and after them some with the ``later`` files. What no batch
        names is removed.
        """
        self.create()
        named = {name for names in later for name in names}
        self._move(name for name in os.listdir(self.new) if name in named)
        if not self._whole(merged, later):
            self._again([*earlier(), *later])
        self._clean(self.new, set(), ours)

    def _whole(self, merged: Sequence[Merged], later: Sequence[Sequence[str]]) -> bool:
        """Whether nothing is to be done but for batches that are merged, as far as numbers tell."""
        first = merged[-1].end if merged else 0
        last, files = first + len(later) - 1, sum(m.files for m in merged)
        sizes = {e.name: e.stat().st_size for e in os.scandir(self.log) if _logs(e.name)}
        needed = _needed(last)
        if not self.has(files + sum(map(len, later))) or not needed <= sizes.keys() <= _kept(last):
            return False
        if any(sizes[name] < len(_VERSION) for name in needed):  # as a power cut leaves them
            return False
        plain = [b for b in range(max(first, _last_compact(last) + 1), last + 1)]
        return all(self._says(b, later[b - first]) for b in plain) and self._sums(merged, later)

    def _sums(self, merged: Sequence[Merged], later: Sequence[Sequence[str]]) -> bool:
        """Whether the last file with all lines has as many as there are files of its batches."""
        first = merged[-1].end if merged else 0
        end = _last_compact(first + len(later) - 1) + 1
        some = sum(map(len, later[: max(0, end - first)]))
        least = some + sum(m.files for m in merged if m.end <= end)
        most = some + sum(m.files for m in merged if m.first < end)
        begin = f"{_VERSION}\n{self._begin}".encode()
        lines, begun, last = _counted(self._file(end - 1), len(begin)) if end else (0, b"", b"")
        return least <= lines <= most and (not lines or (begun == begin and last == b"}"))

    def _again(self, files: Sequence[Sequence[str]]) -> None:
        """Log these files by batch, where the log does not, and remove others."""
        last = len(files) - 1
        needed = _needed(last)
        numbers = [int(name.partition(".")[0]) for name in needed]
        if not all(self._says(b, self._names(files, b)) for b in numbers):
            self._rebuild(files, needed)
        self._clean(self.results, {name for names in files for name in names}, ours)
        self._clean(self.log, _kept(last), _logs)

    def _names(self, files: Sequence[Sequence[str]], batch: int) -> list[str]:
        """What the log is to have of a batch."""
        first = 0 if _compact(batch) else batch
        return [name for each in files[first : batch + 1] for name in each]

    def _says(self, batch: int, names: Sequence[str]) -> bool:
        """Whether the log names these files with a batch, in any order."""
        lines = sorted(_read(self._file(batch))) if self._file(batch).exists() else None
        return (
            lines is not None
            and len(lines) == len(names)
            and all(map(str.startswith, lines, map(self._of, sorted(names))))
        )

    def _of(self, name: str) -> str:
        """How the line of a file begins."""
        return f'{self._begin}/{name}"'

    def _rebuild(self, files: Sequence[Sequence[str]], needed: set[str]) -> None:
        whole: list[str] = []
        for batch, names in enumerate(files):
            mine = self._lines(names, _time_of(whole))
            whole += mine
            if self._file(batch).name in needed:
                _put(self._file(batch), whole if _compact(batch) else mine)

    def _clean(self, folder: Path, known: set[str], is_ours: Callable[[str], bool]) -> None:
        for file in folder.iterdir():
            if file.name not in known and is_ours(file.name) and file.is_file():
                file.unlink()

    def _move(self, names: Iterable[str]) -> None:
        for name in names:
            if (self.new / name).exists():
                os.replace(self.new / name, self.results / name)

    def _file(self, batch: int) -> Path:
        return self.log / (f"{batch}.compact" if _compact(batch) else f"{batch}")

    def _lines(self, names: Sequence[str], after: int) -> list[str]:
        """A line for each file. Their times grow from batch to batch, since Spark reads files in
        the order of their times.
        """
        stats = [(self.results / name, (self.results / name).stat()) for name in names]
        time = max([after + 1, *(s.st_mtime_ns // 10**6 for _, s in stats)])
        return [
            json.dumps(
                {
                    "path": file.as_uri(),
                    "size": stat.st_size,
                    "isDir": False,
                    "modificationTime": time,
                    "blockReplication": 1,
                    "blockSize": 1 << 25,
                    "action": "add",
                },
                separators=(",", ":"),
            )
            for file, stat in stats
        ]

    def _logged(self, batch: int) -> list[str]:
        """The lines of all batches before this one."""
        first = max(0, _last_compact(batch - 1))
        return [line for b in range(first, batch) for line in _read(self._file(b))]

    def _last_time(self, batch: int) -> int:
        """The time of the last file before this batch."""
        b = batch - 1
        while self._time is None and b >= 0:
            if lines := _read(self._file(b)):
                self._time = _time_of(lines)
            b = -1 if _compact(b) else b - 1
        return self._time or 0


def _interval(batch: int) -> int:
    """How often all lines are written at once, by then."""
    every = _INTERVAL
    while batch + 1 >= 2 * _INTERVAL * every:
        every *= 10
    return every


def _compact(batch: int) -> bool:
    return (batch + 1) % _interval(batch) == 0


def _last_compact(batch: int) -> int:
    """The last batch up to this one with which all lines were written; -1: none."""
    every = _interval(batch)
    return (batch + 1) // every * every - 1


def _kept(batch: int) -> set[str]:
    """What the log has after a batch: all since the last but one that was compact, and the one
    that will be the last but one when they grow rarer.
    """
    every, last = _interval(batch), _last_compact(batch)
    compact = {last, last - every, 10 * every - 1}
    plain = {b for b in range(max(0, last - every), batch + 1) if not _compact(b)}
    return {f"{b}.compact" for b in compact if 0 <= b <= batch} | {str(b) for b in plain}


def _needed(batch: int) -> set[str]:
    """What of that whoever reads the log after a batch needs."""
    return _kept(batch) - {str(b) for b in range(_last_compact(batch))}


def _logs(name: str) -> bool:
    """Whether a file of the log, or what was to become one, is named so."""
    return re.fullmatch(r"\d+(\.compact)?|\.\d+(\.compact)?\.tmp", name) is not None


def _batch_of(line: str) -> int:
    """The batch of the file in a line of the log."""
    return int(str(json.loads(line)["path"]).rpartition("/")[2].partition("-")[0])


def _time_of(lines: Sequence[str]) -> int:
    return int(json.loads(lines[-1])["modificationTime"]) if lines else 0


def _read(file: Path) -> list[str]:
    return file.read_text().splitlines()[1:] if file.exists() else []


def _counted(file: Path, begin: int) -> tuple[int, bytes, bytes]:
    """How many line ends a file has, its first ``begin`` bytes, and its last one."""
    lines, last = 0, b""
    with open(file, "rb") as opened:
        begun = opened.read(begin)
        opened.seek(0)
        while chunk := opened.read(_CHUNK):
            lines, last = lines + chunk.count(b"\n"), chunk[-1:]
    return lines, begun, last


def _put(file: Path, lines: Iterable[str]) -> None:
    """Write a log file so that it is there whole or not at all. It can be made again, so it is not
    forced to disk.
    """
    temporary = file.with_name(f".{file.name}.tmp")
    temporary.write_text("\n".join([_VERSION, *lines]))
    os.replace(temporary, file)
