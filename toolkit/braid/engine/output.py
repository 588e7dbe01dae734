"""Results that others read while the run goes on, each once.

A task attempt writes its results under ``new/``. Once a manifest names them, they move to
``results/``: whatever lists ``results/*.parquet`` (pandas, DuckDB, Polars) sees whole files of
committed batches and no others. Then Spark's file-sink log in ``results/_spark_metadata`` names
them, so that ``spark.readStream`` and ``spark.read`` on the folder take each file once.

Moving and logging are done again from the manifests when a run is resumed, so that a crash between
any two steps loses and doubles nothing.

The log has Spark's format (CompactibleFileStreamLog): a file a batch with the version and a line of
JSON for each file, and in every tenth one, ``N.compact``, the lines of all batches up to then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

_INTERVAL = 10
"""Spark's default of ``spark.sql.streaming.fileSink.log.compactInterval``."""
_VERSION = "v1"


class Output:
    """The results of the run in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.new, self.results = folder / "new", folder / "results"
        self.log = self.results / "_spark_metadata"

    def create(self) -> None:
        """Make the folders of the output; those that are there stay."""
        for folder in (self.new, self.results, self.log):
            folder.mkdir(exist_ok=True)

    def path(self, name: str) -> str:
        """Where a committed file is; a run that was killed may have left it unmoved."""
        file = self.results / name
        return str(file if file.exists() or not (self.new / name).exists() else self.new / name)

    def publish(self, batch: int, names: Sequence[str]) -> None:
        """Let others see a batch that has been committed."""
        self._move(names)
        lines = self._lines(names, self._last_time(batch))
        if _compact(batch):
            lines = [*self._logged(batch), *lines]
        _put(self._file(batch), lines)
        if _compact(batch):
            for old in range(batch - 2 * _INTERVAL, batch - _INTERVAL):
                self._file(old).unlink(missing_ok=True)

    def recover(self, batches: Iterable[tuple[int, Sequence[str]]]) -> None:
        """Do again what a crash may have cut off; ``batches`` are all that are committed, in order,
        with their files. What no batch names is removed.
        """
        keep: set[str] = set()
        named: set[str] = set()
        whole: list[str] = []
        waiting: dict[int, list[str]] = {}
        for batch, names in batches:
            self._move(names)
            named |= set(names)
            mine = self._lines(names, _time_of(whole))
            whole += mine
            waiting[batch] = [*whole] if _compact(batch) else mine
        last = max(waiting, default=-1)
        for batch, lines in waiting.items():
            if batch >= (last + 1) // _INTERVAL * _INTERVAL - _INTERVAL - 1:
                keep.add(self._file(batch).name)
                if not self._file(batch).exists() or _read(self._file(batch)) != lines:
                    _put(self._file(batch), lines)
        for folder, known in ((self.new, set()), (self.results, named), (self.log, keep)):
            for file in folder.iterdir():
                if file.name not in known and file.is_file():
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
        first = (batch // _INTERVAL) * _INTERVAL - 1
        return [line for b in range(max(0, first), batch) for line in _read(self._file(b))]

    def _last_time(self, batch: int) -> int:
        """The time of the last file before this batch."""
        for b in range(batch - 1, max(-1, batch - 1 - 2 * _INTERVAL), -1):
            if lines := _read(self._file(b)):
                return _time_of(lines)
        return 0


def _compact(batch: int) -> bool:
    return (batch + 1) % _INTERVAL == 0


def _time_of(lines: Sequence[str]) -> int:
    return int(json.loads(lines[-1])["modificationTime"]) if lines else 0


def _read(file: Path) -> list[str]:
    return file.read_text().splitlines()[1:] if file.exists() else []


def _put(file: Path, lines: Iterable[str]) -> None:
    """Write a log file so that it is there whole or not at all. It can be made again, so it is not
    forced to disk.
    """
    temporary = file.with_name(f".{file.name}.tmp")
    temporary.write_text("\n".join([_VERSION, *lines]))
    os.replace(temporary, file)
