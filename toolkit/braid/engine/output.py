"""Results that others read while the run goes on, each once.

A task attempt writes its results under ``new/``. Once a manifest names them, they are linked into
``results/``, and lose their name in ``new/`` when that is on disk: whatever lists
``results/*.parquet`` (pandas, DuckDB, Polars) sees whole files of committed batches and no others.
Then Spark's file-sink log names them (sink_log.py), so that ``spark.readStream`` and ``spark.read``
on the folder take each file once.

Linking and logging are done again from the manifests when a run is resumed, so that a crash between
any two steps loses and doubles nothing. What Braid has not named is left alone. Of batches that are
merged it is enough that there are as many files as there were, and that the log has as many lines:
only where not, or where something else is, are names looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from braid.engine import durable
from braid.engine.disk import disk
from braid.engine.durable import unchecked
from braid.engine.entries import Merged
from braid.engine.log import in_order, number, ours
from braid.engine.sink_log import SinkLog


class Output(SinkLog):
    """The results of the run in ``folder``."""

    def __init__(self, folder: Path, check: Callable[[], None] = unchecked) -> None:
        super().__init__(folder / "results", check)
        self.new = folder / "new"

    def create(self) -> None:
        """Make the folders of the output; those that are there stay."""
        for folder in (self.new, self.results, self.log):
            disk().mkdir(folder)

    def path(self, name: str) -> str:
        """Where a committed file is; a run that was killed may have left it unmoved."""
        file = self.results / name
        moved = disk().exists(file) or not disk().exists(self.new / name)
        return str(file if moved else self.new / name)

    def listed(self, end: int) -> list[list[str]]:
        """The files of the batches up to, not with, ``end`` that others see, in order."""
        found = list[list[str]]([] for _ in range(end))
        for name in disk().names(self.results) if end and disk().exists(self.results) else ():
            if ours(name) and (batch := number(name)) < end:
                found[batch].append(name)
        return [sorted(names, key=in_order) for names in found]

    def drop(self, since: int, first: int) -> None:
        """Let others see no longer the batches from ``since`` up to, not with, ``first``: first the
        log names them no more, then their files go.
        """
        self.forget(since, first)
        gone = [name for names in self.listed(first) for name in names]
        self.check()
        for name in gone:
            disk().unlink(self.results / name, missing_ok=True)

    def publish(self, batch: int, names: Sequence[str]) -> None:
        """Let others see a batch that has been committed."""
        self._show(names)
        self.note(batch, names)

    def sweep(self, batch: int) -> None:
        """Remove from new/ what tasks have left of the batches up to this one, and what others see
        by its name in results/, which is on disk.
        """
        left = [n for n in disk().names(self.new) if ours(n) and number(n) <= batch]
        if left:
            self.check()
        for name in left:
            disk().unlink(self.new / name, missing_ok=True)

    def seen(self) -> int:
        """How many files others see, and what else is there, but for the log."""
        return len(disk().names(self.results)) - 1 if disk().exists(self.results) else 0

    def recover(
        self,
        merged: Sequence[Merged],
        later: Sequence[Sequence[str]],
        earlier: Callable[[], list[list[str]]],
        seen: int | None = None,
        force: bool = False,
    ) -> None:
        """Do again what a crash may have cut off. Committed are the batches that are ``merged``,
        whose files ``earlier`` gives, and after them some with the ``later`` files. What no batch
        names is removed. ``seen`` is how many files others see, if that has been asked just now.
        """
        self.create()
        named = {name for names in later for name in names}
        there = {*disk().names(self.results)}
        waiting = [n for n in disk().names(self.new) if n in named and n not in there]
        self._show(waiting)
        if not self._whole(merged, later, self.seen() if seen is None else seen + len(waiting)):
            self.again(earlier(), later)
        if force:
            durable.sync(self.results)
        self._clean(self.new, set())

    def _whole(self, merged: Sequence[Merged], later: Sequence[Sequence[str]], seen: int) -> bool:
        """Whether nothing is to be done but for batches that are merged, as far as numbers tell."""
        files = sum(m.files for m in merged) + sum(map(len, later))
        return seen == files and self.is_whole(merged, later)

    def again(self, merged: Sequence[Sequence[str]], later: Sequence[Sequence[str]]) -> None:
        """Log these files by batch, where the log does not, and remove others. Those of batches
        that are ``merged`` are as large as the log has it, as far as it is whole.
        """
        files = [*merged, *later]
        known = {name for names in files for name in names}
        there = {*disk().names(self.results)}
        self._show(n for n in disk().names(self.new) if n in known and n not in there)
        self.renew(files, len(merged))
        self._clean(self.results, known)

    def _clean(self, folder: Path, known: set[str]) -> None:
        there = disk().find(folder)
        self.check()
        for file in there:
            if file.name not in known and ours(file.name) and disk().is_file(file):
                disk().unlink(file, missing_ok=True)

    def _show(self, names: Iterable[str]) -> None:
        """Give files a name in results/ too. That in new/ stays until the other one is on disk, so
        that a power cut leaves one of them.
        """
        for name in names:
            with suppress(FileExistsError):
                disk().link(self.new / name, self.results / name)
