"""Spark's own checkpoint of a run: what of it must be on disk, and whether it and the run's log are
of one mind.

Spark writes ``offsets/N`` before it gives micro-batch N to the run, and ``commits/N`` after the run
has committed it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from braid.core.accept import read_natural
from braid.core.state import VERSION
from braid.engine import durable
from braid.engine.disk import disk
from braid.engine.durable import Damaged, unchecked


class Checkpoint:
    """The checkpoint in a folder, which need not be there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._synced: dict[Path, set[str]] = {}

    def _folders(self) -> list[Path]:
        sources = self.folder / "sources"
        below = disk().find(sources)
        logs = [self.folder, self.folder / "offsets", self.folder / "commits", sources, *below]
        return [folder for folder in logs if disk().is_folder(folder)]

    def sync(self) -> None:
        """Force to disk what Spark has written since the last time."""
        if not self._synced and disk().is_folder(self.folder):
            durable.sync(self.folder.parent)
        for folder in self._folders():
            names = {n for n in disk().names(folder) if not n.startswith(".")}
            new = names - self._synced.get(folder, set())
            for file in [folder / name for name in sorted(new)]:
                if disk().is_file(file):
                    durable.sync(file)
            if new:
                durable.sync(folder)
            self._synced[folder] = names

    def last(self, log: str) -> int:
        """The last micro-batch in a log, "offsets" or "commits"; -1: none."""
        folder = self.folder / log
        names = disk().names(folder) if disk().is_folder(folder) else []
        return max(map(_number, names), default=-1)

    def sweep(self, check: Callable[[], None] = unchecked) -> None:
        """Remove files that a power cut has left empty: of what the run has committed, all is on
        disk. ``check`` raises Superseded where another driver has the run.
        """
        there = [f for folder in self._folders() for f in disk().find(folder) if disk().is_file(f)]
        empty = [file for file in there if not disk().size(file)]
        check()
        for file in empty:
            disk().unlink(file, missing_ok=True)

    def saved(self, last: int = 3) -> bytes:
        """What Spark needs of it to go on, sealed: all but what is older than the ``last`` micro-
        batches. All of it is text.
        """
        logs = [self.folder / log for log in ("offsets", "commits")]
        found: dict[str, str] = {}
        for folder in self._folders():
            files = [f for f in disk().find(folder, "[!.]*") if disk().is_file(f)]
            if folder in logs:
                files = sorted((f for f in files if _number(f.name) >= 0), key=_file_number)[-last:]
            found |= {f.relative_to(self.folder).as_posix(): _text(f) for f in files}
        return durable.sealed({"v": VERSION, "files": found})

    def restore(self, saved: Path) -> None:
        """Have what was saved to a file, and nothing else. Raises Damaged when it is not that."""
        body = durable.opened(saved, f"the checkpoint in {saved.parent}")
        disk().rmtree(self.folder)
        for name, text in msgspec.json.decode(body)["files"].items():
            disk().mkdir((self.folder / name).parent)
            disk().write(self.folder / name, text.encode())

    def check(self, epoch: int) -> None:
        """Raise Damaged unless Spark's micro-batches are those of a run whose last one is
        ``epoch``.
        """
        done, begun = self.last("commits"), self.last("offsets")
        if done <= epoch <= max(done, begun):
            return
        raise Damaged(
            f"{self.folder} and {self.folder.parent / 'commits'} are not of one run or time: Spark "
            f"has finished micro-batch {done} and begun {begun}, the run has committed {epoch}"
        )

    def files(self, batch: int) -> list[Path]:
        """The files of this machine that Spark's file sources have listed for a micro-batch."""
        before = self._listed(batch - 1)
        found: list[Path] = []
        for source, last in self._listed(batch).items():
            for number in range(before.get(source, -1) + 1, last + 1):
                found += self._entries(source, number)
        return found

    def _listed(self, batch: int) -> dict[int, int]:
        """By file source, how far its list goes with a micro-batch."""
        file = self.folder / "offsets" / str(batch)
        lines = _text(file).splitlines()[2:] if disk().exists(file) else []
        parsed = [json.loads(line) if line.startswith("{") else {} for line in lines]
        return {n: p["logOffset"] for n, p in enumerate(parsed) if "logOffset" in p}

    def _entries(self, source: int, number: int) -> list[Path]:
        log = self.folder / "sources" / str(source)
        names = (log / f"{number}{suffix}" for suffix in ("", ".compact"))
        file = next(filter(disk().exists, names), None)
        lines = _text(file).splitlines()[1:] if file is not None else []
        mine = [line for line in lines if line.endswith(f'"batchId":{number}}}')]
        urls = [urlsplit(json.loads(line)["path"]) for line in mine]
        return [Path(unquote(url.path)) for url in urls if url.scheme == "file"]

    def cut(self, epoch: int) -> None:
        """Have Spark go on after micro-batch ``epoch``."""
        for log, last in (("commits", epoch), ("offsets", epoch + 1)):
            folder = self.folder / log
            for file in disk().find(folder):
                if _number(file.name) > last:
                    disk().unlink(file)


def _text(file: Path) -> str:
    return disk().read(file).decode()


def _number(name: str) -> int:
    """Return the micro-batch whose entry in a log the file is; -1 for any other file."""
    number = read_natural(name)
    return -1 if number is None else number


def _file_number(file: Path) -> int:
    return _number(file.name)
