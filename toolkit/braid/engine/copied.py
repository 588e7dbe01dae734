"""A run's copy of static input: whether it is whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path

import msgspec

from braid.core.state import VERSION, Seal
from braid.engine import durable, microbatches


class _Seals(msgspec.Struct):
    """By alias, those of its files, in order."""

    v: int
    files: dict[str, list[Seal]]


class Copied:
    """The copy in a folder: ALIAS/000012.parquet is what a stream has of micro-batch 12."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def seal(self, force: bool) -> None:
        """Note what the files have; with ``force`` they are on disk then."""
        files = sorted(self.folder.glob("[A-Za-z]*/*.parquet"))
        with ThreadPoolExecutor(8) as pool:
            seals = [*pool.map(partial(durable.seal, force=force), files)]
        found: dict[str, list[Seal]] = {}
        for file, seal in zip(files, seals, strict=True):
            found.setdefault(file.parent.name, []).append(seal)
        for folder in {file.parent for file in files} if force else ():
            durable.sync(folder)
        body = durable.sealed(_Seals(VERSION, found))
        durable.put(self.folder / "files.json", body, force)

    @cached_property
    def _files(self) -> dict[str, list[Seal]]:
        body = durable.opened(self.folder / "files.json", f"the input in {self.folder}")
        return msgspec.json.decode(body, type=_Seals).files

    def check(self, batch: int | None = None, deep: bool = False) -> None:
        """Raise Damaged unless the files of a micro-batch, or of all, have their lengths, and their
        checksums if ``deep``.
        """
        for alias, seals in self._files.items():
            wanted = range(len(seals)) if batch is None else range(len(seals))[batch : batch + 1]
            for n in wanted:
                durable.check(microbatches.file(self.folder / alias, n), seals[n], deep)
